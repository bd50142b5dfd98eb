/*
 * The coarse view's readings (policy.h): once a second, in whole joules and watts. A counter is
 * followed here, through its wraps, and counts whole joules from 0 on, so that the view tells
 * nothing of where the counter stands, and its range does not show.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "daemon/catalog.h"
#include "sensors/integrate.h"

static int64_t coarse_counter(struct nrg_served *served, size_t i, int64_t raw)
{
    const struct nrg_channel *channel = &served->found->channels[served->number[i]];
    int64_t step;
    bool known = served->tick.t_ns && served->last_raw[i] != NRG_MISSING;
    if (!served->tick.t_ns)
        served->energy_raw[i] = 0;
    if (known && raw != NRG_MISSING &&
        !nrg_counter_difference(channel, served->last_raw[i], raw, &step) && step > 0)
        served->energy_raw[i] = nrg_add_i64(served->energy_raw[i], step);
    if (raw == NRG_MISSING)
        return NRG_MISSING; /* the next one that is read continues from the last */
    served->last_raw[i] = raw;
    return nrg_round_i64(floor((double)served->energy_raw[i] * channel->scale / NRG_COARSE_STEP));
}

static void tick_sensor(struct nrg_served *served)
{
    struct nrg_wire_row row;
    nrg_served_row(served, NRG_VIEW_FULL, UINT32_MAX, &row);
    for (size_t i = 0; i < served->n; i++) {
        const struct nrg_channel *channel = &served->found->channels[served->number[i]];
        if (!served->tick.t_ns)
            served->last_raw[i] = NRG_MISSING;
        if (channel->kind == NRG_COUNTER)
            row.raw[i] = coarse_counter(served, i, row.raw[i]);
        else if (row.raw[i] != NRG_MISSING)
            row.raw[i] = nrg_round_i64((double)row.raw[i] * channel->scale / NRG_COARSE_STEP);
    }
    served->tick = row;
}

static bool had_reading(const struct nrg_catalog *catalog, const char *sensor, int64_t second)
{
    for (size_t s = 0; s < catalog->n; s++) {
        const struct nrg_served *served = &catalog->items[s];
        if (!strcmp(served->found->sensor, sensor) &&
            served->tick.t_ns / NRG_COARSE_PERIOD_NS == second)
            return true;
    }
    return false;
}

/* So that a run of a second has a reading at its begin. Coming and going gives no more than
 * staying: what was read in this second, for anybody, stays this second's. */
void nrg_served_begin_coarse(const struct nrg_catalogs *catalogs, struct nrg_served *served)
{
    int64_t second = nrg_now_ns() / NRG_COARSE_PERIOD_NS;
    bool own = served->tick.t_ns / NRG_COARSE_PERIOD_NS == second, other = false;
    for (const struct nrg_catalog *c = catalogs->newest; c; c = c->next)
        other |= had_reading(c, served->found->sensor, second);
    if (own)
        return;
    served->tick = (struct nrg_wire_row){0}; /* an old one says nothing about now */
    if (!other)
        tick_sensor(served);
}

bool nrg_catalogs_tick(struct nrg_catalogs *catalogs)
{
    bool any = false;
    for (struct nrg_catalog *catalog = catalogs->newest; catalog; catalog = catalog->next) {
        for (size_t s = 0; s < catalog->n; s++) {
            if (!catalog->items[s].n_coarse)
                continue;
            tick_sensor(&catalog->items[s]);
            any = true;
        }
    }
    return any;
}
