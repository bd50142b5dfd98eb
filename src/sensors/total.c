/* See total.h. */
#include "sensors/total.h"

#include <math.h>
#include <string.h>

/* The gauge is better than a counter whose step is more than this part of the energy, */
#define COARSE 0.005
/* but never better than a counter of smaller steps than this, as chips have them. */
#define COARSE_LEAST_J 1.0
#define MOST_DEPTH     16 /* of nested channels; more must be a cycle */

static const char *const wide_names[] = {"wall", "machine", "battery", "psys"};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static size_t channel_named(const struct nrg_total_source *s, const char *name,
                            enum nrg_quantity quantity)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct nrg_channel *c = s->channel(s->arg, i);
        if (c->quantity == quantity && !strcmp(c->name, name))
            return i;
    }
    return s->n;
}

/*
 * A plug counts whole watt-hours: over a short run its power is more exact. The gauge of the same
 * name replaces a counter whose step is a good part of the energy, or that was never read. Where
 * the driver does not know the step (a meter's text may have decimals or not), readings tell.
 */
static bool gauge_is_better(const struct nrg_total_source *s, size_t counter, size_t gauge)
{
    double step_j = s->channel(s->arg, counter)->resolution;
    bool counted = gauge < s->n && s->was_read(s->arg, counter);
    if (gauge == s->n || (counted && step_j > 0 && step_j < COARSE_LEAST_J))
        return false;
    if (!s->was_read(s->arg, gauge) || !counted)
        return s->was_read(s->arg, gauge);
    double seen_j = s->seen_step_j(s->arg, counter);
    return (seen_j > step_j ? seen_j : step_j) > COARSE * s->gauge_energy_j(s->arg, gauge);
}

bool nrg_total_is_domain(const struct nrg_total_source *s, size_t i)
{
    const struct nrg_channel *c = s->channel(s->arg, i);
    if (nrg_channel_is_companion(c))
        return false;
    if (c->quantity == NRG_ENERGY)
        return !gauge_is_better(s, i, channel_named(s, c->name, NRG_POWER));
    if (c->quantity != NRG_POWER)
        return false;
    size_t counter = channel_named(s, c->name, NRG_ENERGY);
    return counter == s->n || gauge_is_better(s, counter, i);
}

double nrg_total_seen_step_j(size_t still, size_t moved, double moved_j)
{
    return still <= moved ? 0 : moved ? moved_j / (double)moved : INFINITY;
}

bool nrg_total_is_stuck(const struct nrg_channel *c, double energy_j, double duration_s)
{
    return c->kind == NRG_COUNTER && energy_j <= 0 && duration_s * 1e9 > NRG_STUCK_NS;
}

double nrg_total_lag_s(const struct nrg_channel *c)
{
    if (c->lag_ns > 0)
        return (double)c->lag_ns / 1e9;
    return nrg_channel_is_running_mean(c) ? (double)(c->window_ns + c->update_ns) / 2e9 : 0;
}

double nrg_total_lag_j(const struct nrg_channel *c, double first_w, double last_w)
{
    double lag_s = nrg_total_lag_s(c);
    return lag_s > 0 ? lag_s * (last_w - first_w) : NAN;
}

static size_t item_named(const struct nrg_total_item *items, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(items[i].channel->name, name) != 0)
        i++;
    return i;
}

/* Moves the items below `parent` ("" for the top) to `out`, each followed by its own parts. */
static size_t order_below(struct nrg_total_item *items, size_t n, const char *parent,
                          struct nrg_total_item *out, size_t at, int depth)
{
    for (size_t i = 0; depth < MOST_DEPTH && i < n; i++) {
        const struct nrg_channel *c = items[i].channel;
        bool top = !c->parent[0] || item_named(items, n, c->parent) == n;
        if (items[i].ordered || (parent[0] ? strcmp(c->parent, parent) != 0 : !top))
            continue;
        items[i].ordered = true;
        out[at++] = items[i];
        at = order_below(items, n, c->name, out, at, depth + 1);
    }
    return at;
}

/* Items in a cycle of parents, which no driver makes, come last. */
void nrg_total_order(struct nrg_total_item *items, size_t n, struct nrg_total_item *out)
{
    for (size_t i = 0; i < n; i++)
        items[i].ordered = false;
    size_t at = order_below(items, n, "", out, 0, 0);
    for (size_t i = 0; i < n; i++)
        if (!items[i].ordered)
            out[at++] = items[i];
}

/* True when a domain that is not wide contains this one, directly or further up. */
static bool is_contained(const struct nrg_total_item *items, size_t n, size_t i)
{
    const char *parent = items[i].channel->parent;
    for (int depth = 0; parent[0] && depth < MOST_DEPTH; depth++) {
        size_t above = item_named(items, n, parent);
        if (above == n)
            return false;
        if (!items[above].channel->wide)
            return true;
        parent = items[above].channel->parent;
    }
    return false;
}

static bool is_top(const struct nrg_total_item *items, size_t n, size_t i)
{
    return !items[i].channel->wide && !is_contained(items, n, i);
}

/* The same processors twice: a model of them, and a sensor that has readings. */
static bool stands_by(const struct nrg_total_item *items, size_t n, size_t i)
{
    bool measured = false;
    if (!items[i].channel->covers_cpu || items[i].channel->provenance != NRG_ESTIMATED)
        return false;
    for (size_t k = 0; k < n; k++)
        measured |= items[k].channel->covers_cpu && items[k].channel->provenance != NRG_ESTIMATED &&
                    is_top(items, n, k);
    return measured;
}

bool nrg_total_is_part(const struct nrg_total_item *items, size_t n, size_t i)
{
    return is_top(items, n, i) && !stands_by(items, n, i);
}

static bool has_wide_name(const struct nrg_channel *c)
{
    for (size_t i = 0; i < COUNT(wide_names); i++)
        if (!strcmp(wide_names[i], c->name))
            return true;
    return false;
}

bool nrg_total_same_meter(const struct nrg_total_item *a, const struct nrg_total_item *b)
{
    const struct nrg_channel *p = a->channel, *q = b->channel;
    if (p == q)
        return true;
    return p->wide && q->wide && p->covers_cpu && q->covers_cpu && !has_wide_name(p) &&
           !has_wide_name(q) && !strcmp(p->parent, q->parent) && !strcmp(a->driver, b->driver) &&
           !strcmp(a->sensor, b->sensor);
}

size_t nrg_total_widest(const struct nrg_total_item *items, size_t n, size_t besides)
{
    for (size_t k = 0; k < COUNT(wide_names); k++)
        for (size_t i = 0; i < n; i++)
            if (i != besides && items[i].channel->wide &&
                !strcmp(items[i].channel->name, wide_names[k]))
                return i;
    for (size_t i = 0; i < n; i++)
        if (items[i].channel->wide && items[i].channel->covers_cpu &&
            !(besides < n && nrg_total_same_meter(&items[besides], &items[i])))
            return i;
    return n;
}

/* True when no part covers the processors (GPUs alone, say) but the widest meter does. */
static bool widest_covers_more(const struct nrg_total_item *items, size_t n, size_t widest)
{
    double parts_j = 0;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!items[i].in_total)
            continue;
        if (items[i].channel->covers_cpu)
            return false;
        any = true;
        parts_j += items[i].energy_j;
    }
    return !any || (items[widest].channel->covers_cpu && parts_j <= items[widest].energy_j);
}

size_t nrg_total_choose(struct nrg_total_item *items, size_t n)
{
    size_t widest = nrg_total_widest(items, n, n);
    for (size_t i = 0; i < n; i++)
        items[i].in_total = nrg_total_is_part(items, n, i);
    if (widest == n || !widest_covers_more(items, n, widest))
        return widest;
    for (size_t i = 0; i < n; i++)
        items[i].in_total = nrg_total_same_meter(&items[widest], &items[i]);
    return n;
}
