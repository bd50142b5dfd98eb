/*
 * The meter at the plug against the parts: what the chips do not see.
 *
 * The wall is the widest meter that has the processors in it (one of another machine has not); one
 * that measures the machine on several lines (phases, two supplies) is all of its lines together.
 * The parts are the disjoint domains beside it, or the next widest meter where no part was
 * measured. Nothing of this is ever added to the parts.
 *
 * A meter may have gaps of its own, so joules of different times would be compared. What the
 * parts used in the wall's time is taken from their mean power; without gaps that is their energy.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "energy/frame.h"

static const char *const fixed_names[] = {"wall", "machine", "battery", "psys"};

static bool is_fixed(const char *name)
{
    for (size_t i = 0; i < sizeof fixed_names / sizeof *fixed_names; i++)
        if (!strcmp(fixed_names[i], name))
            return true;
    return false;
}

const struct nrg_domain *nrg_domains_widest(const struct nrg_summary *s,
                                            const struct nrg_domain *besides)
{
    for (size_t k = 0; k < sizeof fixed_names / sizeof *fixed_names; k++)
        for (size_t i = 0; i < s->n_domains; i++) {
            const struct nrg_domain *d = &s->domains[i];
            if (d != besides && d->channel->channel.wide &&
                !strcmp(d->channel->channel.name, fixed_names[k]))
                return d;
        }
    for (size_t i = 0; i < s->n_domains; i++)
        if (&s->domains[i] != besides && s->domains[i].channel->channel.wide &&
            s->domains[i].channel->channel.covers_cpu &&
            !(besides && nrg_domains_same_wall(besides, &s->domains[i])))
            return &s->domains[i];
    return NULL;
}

bool nrg_domains_same_wall(const struct nrg_domain *a, const struct nrg_domain *b)
{
    const struct nrg_channel *p = &a->channel->channel, *q = &b->channel->channel;
    if (a == b)
        return true;
    return p->wide && q->wide && p->covers_cpu && q->covers_cpu && !is_fixed(p->name) &&
           !is_fixed(q->name) && !strcmp(p->parent, q->parent) &&
           !strcmp(a->channel->driver, b->channel->driver) &&
           !strcmp(a->channel->sensor, b->channel->sensor);
}

static void add_wall(struct nrg_wall *wall, const struct nrg_domain *d)
{
    size_t len = strlen(wall->name);
    snprintf(wall->name + len, sizeof wall->name - len, "%s%s", len ? " + " : "",
             d->channel->channel.name);
    wall->energy_j += d->energy_j;
    wall->uncertainty_j += d->uncertainty_j;
    wall->mean_w += d->mean_w;
    if (d->covered < wall->covered)
        wall->covered = d->covered;
}

static void add_part(struct nrg_wall *wall, struct nrg_domain *d, double wall_s)
{
    double own = d->energy_j, here = d->mean_w * wall_s;
    d->wall_part = true;
    wall->parts_w += d->mean_w;
    wall->parts_j += here;
    wall->left_over_uncertainty_j += own > 0 ? d->uncertainty_j * here / own : d->uncertainty_j;
    wall->n_parts++;
}

/* Disjoint parts, or failing those the meter that is next below the wall. */
static void add_parts(struct nrg_wall *wall, struct nrg_summary *s, double wall_s)
{
    for (size_t i = 0; i < s->n_domains; i++)
        if (nrg_domains_is_part(s, &s->domains[i]))
            add_part(wall, &s->domains[i], wall_s);
    const struct nrg_domain *next = nrg_domains_widest(s, wall->domain);
    if (!wall->n_parts && next)
        add_part(wall, &s->domains[next - s->domains], wall_s);
}

void nrg_wall_make(struct nrg_summary *s)
{
    const struct nrg_domain *widest = nrg_domains_widest(s, NULL);
    struct nrg_wall wall = {.domain = widest, .covered = 1};
    if (!widest)
        return;
    for (size_t i = 0; i < s->n_domains; i++)
        if (nrg_domains_same_wall(widest, &s->domains[i]))
            add_wall(&wall, &s->domains[i]);
    add_parts(&wall, s, wall.covered * s->duration_s);
    wall.left_over_uncertainty_j += wall.uncertainty_j;
    wall.ratio = wall.parts_j > 0 ? wall.energy_j / wall.parts_j : NAN;
    wall.left_over_j = wall.energy_j - wall.parts_j;
    wall.left_over_w = wall.mean_w - wall.parts_w;
    if (wall.n_parts)
        s->wall = wall;
    if (wall.n_parts && wall.left_over_j < -wall.left_over_uncertainty_j)
        nrg_summary_missing(s, wall.name,
                            "reads less than the parts that it should contain: it does not see "
                            "all of the machine (covers=), or its scale is wrong "
                            "(nrg meter calibrate)");
}
