/* See live.h. The sums of a channel equal what energy/timeline.c computes from its readings, but it
 * knows less: of counters that stood still, and of slow ones after their last reading. */
#include "record/sampler/live.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/integrate.h"
#include "sensors/total.h"

void nrg_live_init(struct nrg_live *live)
{
    *live = (struct nrg_live){.begin_ns = INT64_MAX};
    pthread_mutex_init(&live->lock, NULL);
}

void nrg_live_release(struct nrg_live *live)
{
    for (size_t i = 0; i < live->n; i++)
        free(live->channels[i].steps);
    free(live->channels);
    live->channels = NULL;
    live->n = live->cap = 0;
    pthread_mutex_destroy(&live->lock);
}

static int add_live_channel(struct nrg_live *live, const struct nrg_live_channel *c)
{
    bool learns = c->channel->kind == NRG_GAUGE && !c->channel->update_ns;
    if (nrg_reserve(&live->channels, &live->cap, live->n + 1, sizeof *live->channels))
        return -ENOMEM;
    struct nrg_live_channel *added = &live->channels[live->n++];
    *added = *c;
    if (learns)
        added->steps = calloc(NRG_FIRST_SPACINGS, sizeof *added->steps);
    return learns && !added->steps ? -ENOMEM : 0;
}

int nrg_live_add(struct nrg_live *live, const struct nrg_found *found, int64_t period_ns)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < found->n_channels; i++) {
        const struct nrg_channel *c = &found->channels[i];
        struct nrg_live_channel channel = {.found = found,
                                           .channel = c,
                                           .period_ns =
                                               c->update_ns > period_ns ? c->update_ns : period_ns,
                                           .t_ns = NRG_MISSING};
        for (size_t k = 0; k < i; k++)
            channel.column += found->channels[k].group == c->group;
        if (found->wanted[i] && (c->quantity == NRG_ENERGY || c->quantity == NRG_POWER))
            rc = add_live_channel(live, &channel);
    }
    return rc;
}

static double last_w(const struct nrg_live_channel *c)
{
    return (double)c->raw * c->channel->scale;
}

/* Estimated from the steps so far if the driver could not say. */
static int64_t period_ns_of(const struct nrg_live_channel *c)
{
    int64_t spacings_ns[NRG_FIRST_SPACINGS];
    if (!c->steps)
        return c->period_ns;
    for (size_t i = 0; i < c->n_steps; i++)
        spacings_ns[i] = c->steps[i].dt_ns;
    int64_t update_ns = nrg_gauge_update_ns(spacings_ns, c->n_steps, c->period_ns);
    return update_ns > c->period_ns ? update_ns : c->period_ns;
}

/* Energy between readings of the run. */
static double joined_energy_j(const struct nrg_live_channel *c, int64_t period_ns,
                              int64_t *covered_ns)
{
    double energy_j = c->energy_j;
    *covered_ns = c->covered_ns;
    for (size_t i = 0; i < c->n_steps; i++)
        if (c->steps[i].dt_ns <= nrg_gauge_gap_ns(period_ns)) {
            energy_j += c->steps[i].energy_j;
            *covered_ns += c->steps[i].covered_ns;
        }
    return energy_j;
}

void nrg_live_begin(struct nrg_live *live, int64_t begin_ns)
{
    pthread_mutex_lock(&live->lock);
    live->begin_ns = begin_ns;
    for (size_t i = 0; i < live->n; i++) {
        struct nrg_live_channel *c = &live->channels[i];
        c->edge_ns = c->t_ns;
        c->edge_w = last_w(c);
        c->energy_j = c->moved_j = 0;
        c->covered_ns = 0;
        c->still = c->moved = 0;
        for (size_t k = 0; k < c->n_steps; k++)
            c->steps[k] = (struct nrg_live_step){.dt_ns = c->steps[k].dt_ns};
    }
    pthread_mutex_unlock(&live->lock);
}

static void add_counter_step(struct nrg_live_channel *c, int64_t t_ns, int64_t raw,
                             int64_t begin_ns)
{
    int64_t dt_ns = t_ns - c->t_ns, from_ns = c->t_ns > begin_ns ? c->t_ns : begin_ns;
    double step = nrg_counter_step(c->channel, c->raw, raw, dt_ns, NULL);
    double step_j = step * c->channel->scale;
    c->lost = nrg_counter_is_lost(c->lost, step);
    if (step < 0 || c->lost || t_ns <= from_ns)
        return;
    *(step_j > 0 ? &c->moved : &c->still) += 1;
    c->moved_j += step_j;
    c->energy_j += step_j * (double)(t_ns - from_ns) / (double)dt_ns;
    c->covered_ns += t_ns - from_ns;
}

/* The part of a trapezoid that lies in the run. */
static void add_gauge_step(struct nrg_live_channel *c, int64_t t_ns, int64_t raw, int64_t begin_ns)
{
    struct nrg_live_step step = {.dt_ns = t_ns - c->t_ns};
    int64_t from_ns = c->t_ns > begin_ns ? c->t_ns : begin_ns;
    if (t_ns > from_ns) {
        double slope_w = ((double)raw * c->channel->scale - last_w(c)) / (double)step.dt_ns;
        double middle_ns = (double)(from_ns - c->t_ns) + (double)(t_ns - from_ns) / 2;
        step.covered_ns = t_ns - from_ns;
        step.energy_j = (last_w(c) + slope_w * middle_ns) * (double)step.covered_ns / 1e9;
    }
    if (c->steps)
        c->steps[c->n_steps++] = step;
    else if (step.dt_ns <= nrg_gauge_gap_ns(c->period_ns)) {
        c->energy_j += step.energy_j;
        c->covered_ns += step.covered_ns;
    }
    if (c->n_steps == NRG_FIRST_SPACINGS) { /* the report uses no more, either */
        c->period_ns = period_ns_of(c);
        c->energy_j = joined_energy_j(c, c->period_ns, &c->covered_ns);
        free(c->steps);
        c->steps = NULL;
        c->n_steps = 0;
    }
}

static void add_reading(struct nrg_live_channel *c, int64_t t_ns, int64_t raw, int64_t begin_ns)
{
    if (raw == NRG_MISSING || (c->t_ns != NRG_MISSING && t_ns <= c->t_ns))
        return;
    if (c->t_ns == NRG_MISSING) {
        c->edge_ns = t_ns;
        c->edge_w = (double)raw * c->channel->scale;
    } else if (c->channel->kind == NRG_COUNTER)
        add_counter_step(c, t_ns, raw, begin_ns);
    else
        add_gauge_step(c, t_ns, raw, begin_ns);
    c->raw = raw;
    c->t_ns = t_ns;
}

void nrg_live_row(struct nrg_live *live, const struct nrg_found *found, unsigned group,
                  int64_t t_ns, const int64_t *raw)
{
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < live->n; i++) {
        struct nrg_live_channel *c = &live->channels[i];
        if (c->found == found && c->channel->group == group)
            add_reading(c, t_ns, raw[c->column], live->begin_ns);
    }
    pthread_mutex_unlock(&live->lock);
}

static int64_t latest_ns(const struct nrg_live *live)
{
    int64_t t_ns = NRG_MISSING;
    for (size_t i = 0; i < live->n; i++)
        if (live->channels[i].t_ns > t_ns)
            t_ns = live->channels[i].t_ns;
    return t_ns;
}

static int64_t min_ns(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * In the run until end_ns, of which *covered_ns are known. A gauge holds for one period before its
 * first and after its last reading.
 */
static double energy_until(const struct nrg_live *live, const struct nrg_live_channel *c,
                           int64_t end_ns, int64_t *covered_ns)
{
    int64_t period_ns = period_ns_of(c), begin_ns = live->begin_ns;
    double energy_j = joined_energy_j(c, period_ns, covered_ns);
    if (c->channel->kind == NRG_COUNTER)
        return energy_j;
    int64_t since_ns = c->t_ns > begin_ns ? c->t_ns : begin_ns;
    int64_t before_ns = c->edge_ns > begin_ns ? min_ns(c->edge_ns - begin_ns, period_ns) : 0;
    int64_t after_ns = min_ns(end_ns, c->t_ns + period_ns) - since_ns;
    if (after_ns < 0)
        after_ns = 0;
    *covered_ns += before_ns + after_ns;
    return energy_j + (c->edge_w * (double)before_ns + last_w(c) * (double)after_ns) / 1e9;
}

/* The same, plus the energy that a gauge's own averaging has held back. */
static double domain_energy_j(const struct nrg_live *live, const struct nrg_live_channel *c,
                              int64_t end_ns, int64_t *covered_ns)
{
    double energy_j = energy_until(live, c, end_ns, covered_ns);
    int64_t period_ns = period_ns_of(c), gap_ns = nrg_gauge_gap_ns(period_ns);
    int64_t from_ns = live->begin_ns - c->edge_ns;
    if (c->channel->kind == NRG_COUNTER || from_ns > gap_ns || -from_ns > period_ns ||
        end_ns - c->t_ns > gap_ns)
        return energy_j;
    double lag_j = nrg_total_lag_j(c->channel, c->edge_w, last_w(c));
    return isnan(lag_j) ? energy_j : energy_j + lag_j;
}

static const struct nrg_channel *live_channel(void *arg, size_t i)
{
    return ((struct nrg_live *)arg)->channels[i].channel;
}

static bool live_was_read(void *arg, size_t i)
{
    return ((struct nrg_live *)arg)->channels[i].t_ns != NRG_MISSING;
}

static double live_step_j(void *arg, size_t i)
{
    const struct nrg_live_channel *c = &((struct nrg_live *)arg)->channels[i];
    return nrg_total_seen_step_j(c->still, c->moved, c->moved_j);
}

static double live_energy_j(void *arg, size_t i)
{
    const struct nrg_live *live = arg;
    int64_t covered_ns;
    return energy_until(live, &live->channels[i], latest_ns(live), &covered_ns);
}

/*
 * The domains of the run. `early`: also those that have been read but cover no time of the run yet,
 * with no energy, as is the case right after it began.
 */
static size_t find_domains(struct nrg_live *live, struct nrg_total_item *items, bool early)
{
    const struct nrg_total_source source = {live,          live->n,     live_channel,
                                            live_was_read, live_step_j, live_energy_j};
    int64_t end_ns = latest_ns(live), covered_ns;
    double duration_s = live->begin_ns < end_ns ? (double)(end_ns - live->begin_ns) / 1e9 : 0;
    size_t n = 0;
    for (size_t i = 0; i < live->n; i++) {
        const struct nrg_live_channel *c = &live->channels[i];
        if (c->t_ns == NRG_MISSING || !nrg_total_is_domain(&source, i))
            continue;
        double energy_j = domain_energy_j(live, c, end_ns, &covered_ns);
        if ((early || covered_ns > 0) && !nrg_total_is_stuck(c->channel, energy_j, duration_s))
            items[n++] = (struct nrg_total_item){.channel = c->channel,
                                                 .driver = c->found->driver->name,
                                                 .sensor = c->found->sensor,
                                                 .energy_j = covered_ns > 0 ? energy_j : 0,
                                                 .index = i};
    }
    return n;
}

static int sum_total(const struct nrg_live *live, const struct nrg_total_item *items, size_t n,
                     struct nrg_live_sum *sum)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].in_total)
            continue;
        int64_t t_ns = live->channels[items[i].index].t_ns;
        sum->energy_j += items[i].energy_j;
        if (t_ns > sum->t_ns)
            sum->t_ns = t_ns;
        if (items[i].channel->provenance > sum->provenance)
            sum->provenance = items[i].channel->provenance;
    }
    return sum->t_ns != NRG_MISSING ? 0 : -ENODATA;
}

int nrg_live_energy(struct nrg_live *live, struct nrg_live_sum *sum)
{
    struct nrg_total_item *found = calloc(live->n + 1, sizeof *found);
    struct nrg_total_item *items = calloc(live->n + 1, sizeof *items);
    int rc = found && items ? -ENODATA : -ENOMEM;
    *sum = (struct nrg_live_sum){.t_ns = NRG_MISSING};
    pthread_mutex_lock(&live->lock);
    for (int early = 0; rc == -ENODATA && early < 2; early++) {
        size_t n = find_domains(live, found, early);
        nrg_total_order(found, n, items);
        nrg_total_choose(items, n);
        rc = sum_total(live, items, n, sum);
    }
    pthread_mutex_unlock(&live->lock);
    free(found);
    free(items);
    return rc;
}
