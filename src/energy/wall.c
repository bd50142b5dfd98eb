/*
 * The meter at the plug against the parts: what the chips do not see.
 *
 * The wall is the widest meter that contains the processors (not one of another machine). A meter
 * that measures the machine on several lines (phases, two supplies) is all of its lines together.
 * The parts are the disjoint domains beside it (sensors/total.h says which), or the next widest
 * meter where no part was measured. Nothing of this is ever added to the parts.
 *
 * A meter may have gaps of its own, so that energies of different times would be compared. What the
 * parts used in the wall's time is taken from their mean power; without gaps that is their energy.
 */
#include <stdio.h>
#include <string.h>

#include "energy/internal.h"

static void add_wall(struct nrg_wall *wall, const struct nrg_domain *d)
{
    size_t len = strlen(wall->name);
    snprintf(wall->name + len, sizeof wall->name - len, "%s%s", len ? " + " : "",
             d->channel->channel.name);
    wall->energy_j += d->energy_j;
    wall->uncertainty_j += d->covered_uncertainty_j;
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
    double of_own = d->covered_uncertainty_j;
    wall->left_over_uncertainty_j += own > 0 ? of_own * here / own : of_own;
    wall->n_parts++;
}

/* Disjoint parts, or failing those the meter that is next below the wall. */
static void add_parts(struct nrg_wall *wall, struct nrg_summary *s,
                      const struct nrg_total_item *items, size_t widest)
{
    double wall_s = wall->covered * s->duration_s;
    for (size_t i = 0; i < s->n_domains; i++)
        if (nrg_total_is_part(items, s->n_domains, i))
            add_part(wall, &s->domains[i], wall_s);
    size_t next = nrg_total_widest(items, s->n_domains, widest);
    if (!wall->n_parts && next < s->n_domains)
        add_part(wall, &s->domains[next], wall_s);
}

void nrg_wall_make(struct nrg_summary *s, const struct nrg_total_item *items)
{
    size_t widest = nrg_total_widest(items, s->n_domains, s->n_domains);
    if (widest == s->n_domains)
        return;
    struct nrg_wall wall = {.domain = &s->domains[widest], .covered = 1};
    for (size_t i = 0; i < s->n_domains; i++)
        if (nrg_total_same_meter(&items[widest], &items[i]))
            add_wall(&wall, &s->domains[i]);
    add_parts(&wall, s, items, widest);
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
