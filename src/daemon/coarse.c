/*
 * The coarse view's readings (policy.h): once a second, in whole joules and watts. A counter is
 * followed here, through its wraps, and counts whole joules from 0 on, so that the view tells
 * nothing of where the counter stands, and its range does not show.
 *
 * Such a count has a life, the epoch: from the first client to the last one, or until the counter
 * did what can't be followed (it went away, went back, may have wrapped twice). What was used
 * between two epochs is not known. Each is called by the time at which it began.
 */
#include <math.h>

#include "base/checked.h"
#include "base/clock.h"
#include "daemon/reader.h"
#include "sensors/integrate.h"

static const struct nrg_channel *channel_of(const struct nrg_sensor_reader *r, size_t i)
{
    return &r->found.channels[r->number[i]];
}

static int64_t in_steps(const struct nrg_sensor_reader *r, size_t i, int64_t raw)
{
    double steps = (double)raw * channel_of(r, i)->scale / NRG_COARSE_STEP;
    if (raw == NRG_MISSING)
        return NRG_MISSING;
    return nrg_round_i64(channel_of(r, i)->kind == NRG_COUNTER ? floor(steps) : steps);
}

/* Brings a counter to now. False: it can't be followed. A missing reading is left to the next. */
static bool follow(struct nrg_sensor_reader *r, size_t i, int64_t raw)
{
    if (raw == NRG_MISSING)
        return true;
    int64_t t_ns = r->now.t_ns, last_raw = r->last_raw[i], last_ns = r->last_ns[i];
    r->last_raw[i] = raw;
    r->last_ns[i] = t_ns;
    if (last_raw == NRG_MISSING)
        return true;
    double step = nrg_counter_step(channel_of(r, i), last_raw, raw, t_ns - last_ns, NULL);
    if (step < 0)
        return false;
    r->energy_raw[i] = nrg_add_i64(r->energy_raw[i], nrg_round_i64(step));
    return true;
}

static void begin_epoch(struct nrg_sensor_reader *r)
{
    r->tick.epoch = r->now.t_ns;
    r->source_epoch = r->now.epoch;
    for (size_t i = 0; i < r->n; i++) {
        r->last_raw[i] = r->now.raw[i];
        r->last_ns[i] = r->now.t_ns;
        r->energy_raw[i] = 0;
    }
}

/* The row that clients get. */
static void show(struct nrg_sensor_reader *r, bool with_gauges)
{
    r->tick.t_ns = r->now.t_ns;
    r->tick.width_ns = r->now.width_ns;
    for (size_t i = 0; i < r->n; i++) {
        bool counter = channel_of(r, i)->kind == NRG_COUNTER;
        bool known = r->now.raw[i] != NRG_MISSING && (counter || with_gauges);
        int64_t raw = counter ? r->energy_raw[i] : r->now.raw[i];
        r->tick.raw[i] = known ? in_steps(r, i, raw) : NRG_MISSING;
        r->tick.error[i] = r->now.error[i];
    }
}

/*
 * So that a run has a reading before its begin. Coming and going gives no more than staying: a
 * counter begins at 0, which tells nothing, and of a gauge a second has one reading.
 */
void nrg_reader_begin_coarse(struct nrg_sensor_reader *r)
{
    int64_t second = nrg_now_ns() / NRG_COARSE_PERIOD_NS;
    bool had = r->tick.t_ns / NRG_COARSE_PERIOD_NS == second;
    nrg_reader_read(r);
    begin_epoch(r);
    show(r, !had);
}

void nrg_reader_tick(struct nrg_sensor_reader *r)
{
    nrg_reader_read(r);
    bool followed = r->now.epoch == r->source_epoch;
    for (size_t i = 0; i < r->n; i++)
        if (channel_of(r, i)->kind == NRG_COUNTER)
            followed &= follow(r, i, r->now.raw[i]);
    if (!followed)
        begin_epoch(r);
    show(r, true);
}
