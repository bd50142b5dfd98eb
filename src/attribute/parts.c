/*
 * The energy domains that are attributed, and what must be known of each before: which tracks use
 * its energy, the time resolution of its sensor, its lag, and how much of its power is idle.
 *
 * Idle power is what the user gave, the estimate's own, the baseline's, or the intercept of power
 * over busy CPUs (of a GPU: over the time its tracks were busy). Where power did not follow the
 * load at all, everything is idle. Where idle power can't be found it counts as 0; only where spans
 * share idle energy they share the least power that was seen, which is no less than idle.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/idle_rests.h"
#include "attribute/internal.h"
#include "attribute/recorder.h"
#include "base/mem.h"
#include "base/stats.h"
#include "energy/idle.h"
#include "energy/lag.h"
#include "energy/quantum.h"
#include "sensors/total.h"

#define CEILING 4    /* times the highest power seen, where the sensor states no limit */
#define STEADY  0.1  /* spread of power over cells, of the middle */
#define NEVER   0.01 /* deviation of readings, of their mean */
#define AGES    1.4  /* times the variance that ages of updates make */

static bool is_wanted(const struct nrg_engine *e, const struct nrg_domain *d)
{
    const char *const *names = e->options->domains;
    if (!names)
        return d->in_total;
    for (; *names; names++)
        if (!strcmp(*names, d->channel->channel.name))
            return true;
    return false;
}

static const struct nrg_domain *find_domain(const struct nrg_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_domains; i++)
        if (!strcmp(s->domains[i].channel->channel.name, name))
            return &s->domains[i];
    return NULL;
}

/* The sum of the domains must not count anything twice. */
static int check_wanted(const struct nrg_engine *e)
{
    const struct nrg_summary *s = &e->out->summary;
    const char *const *names = e->options->domains;
    for (; names && *names; names++) {
        const struct nrg_domain *d = find_domain(s, *names);
        if (!d)
            return nrg_fail(e->err, -ENOENT, nrg_recording_path(e->recording),
                            "has no energy of a domain '%s'", *names);
        const char *parent = d->channel->channel.parent;
        for (int depth = 0; parent[0] && depth < 16; depth++) {
            const struct nrg_domain *above = find_domain(s, parent);
            if (above && is_wanted(e, above))
                return nrg_fail(e->err, -EINVAL, nrg_recording_path(e->recording),
                                "domain '%s' is part of '%s': their sum would count it twice",
                                *names, parent);
            parent = above ? above->channel->channel.parent : "";
        }
    }
    return 0;
}

void nrg_part_calibrate(struct nrg_part *part)
{
    const struct nrg_channel *c = &part->channel->channel;
    const struct nrg_domain *d = part->domain;
    part->factor_low = 1 - c->error_low;
    part->factor_high = 1 + c->error_high;
    if (!d->disputed || !(d->energy_j > 0))
        return;
    double low_j = d->second_j - d->second_uncertainty_j,
           high_j = d->second_j + d->second_uncertainty_j;
    part->factor_low = fmin(part->factor_low, fmax(0, low_j / d->energy_j));
    part->factor_high = fmax(part->factor_high, high_j / d->energy_j);
}

static void note_disputed(struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_domain *d = part->domain;
    if (d->disputed)
        nrg_attribution_note(e->out, part->channel->channel.name,
                             "it says %.4g J and, read in another way, %.4g J: which is true can't "
                             "be told, and the intervals of all rows hold both",
                             d->energy_j, d->second_j);
}

static void set_sensor(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_channel *c = &part->channel->channel;
    const struct nrg_domain *d = part->domain;
    int64_t begin_ns = e->windows[0].begin_ns, end_ns = e->windows[e->n_windows - 1].end_ns;
    part->width_ns = nrg_timeline_width_ns(part->tl, part->channel);
    double peak_w = nrg_timeline_peak(part->tl, begin_ns, end_ns, part->width_ns);
    peak_w = fmax(peak_w, d->peak_w);
    part->ceiling_w = c->limit_w > peak_w ? c->limit_w : CEILING * fmax(peak_w, 0);
    bool modelled = c->provenance == NRG_ESTIMATED;
    if (c->kind == NRG_COUNTER && !modelled) {
        part->update_s = (double)c->update_ns * 1e-9;
        part->edge_noise_j2 = c->resolution * c->resolution / 12;
    } else if (c->kind == NRG_GAUGE) {
        double off_j = part->lag_s * nrg_gauge_noise_w(part->tl, c->resolution);
        part->edge_noise_j2 = off_j * off_j;
    }
    /* What a sensor that looks part of the time has missed may be any row's. */
    bool part_time = c->window_ns > 0 && c->window_ns < c->update_ns;
    bool banded = (modelled || part_time) && d->energy_j > 0;
    nrg_part_calibrate(part);
    if (banded) {
        part->factor_low = d->low_j / d->energy_j;
        part->factor_high = d->high_j / d->energy_j;
    }
    note_disputed(e, part);
    part->out->scale = (struct nrg_scale){NAN, NAN};
    if (modelled)
        part->out->scale = (struct nrg_scale){part->factor_low, part->factor_high};
}

/*
 * How old what a gauge shows may be, besides a lag: as much as an update, and what it shows may be
 * the mean of one, or of as long as its readings allow where nothing says it.
 */
static double reading_age_s(const struct nrg_part *part)
{
    const struct nrg_channel *c = &part->channel->channel;
    double update_s = (double)nrg_timeline_width_ns(part->tl, part->channel) * 1e-9;
    double unsaid_s = fmax(update_s, (double)part->tl->mean_ns * 1e-9);
    double mean_s = c->window_ns > 0 ? (double)c->window_ns * 1e-9 : unsaid_s;
    return c->provenance == NRG_ESTIMATED ? 0 : update_s + mean_s / 2;
}

static void set_lag(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_channel *c = &part->channel->channel;
    const char *source = "none";
    bool corrected = c->kind == NRG_GAUGE && e->options->lag != NRG_LAG_NONE;
    part->slack_s = (double)c->lag_ns * 1e-9; /* all of it, unless it is corrected */
    if (corrected && e->options->lag == NRG_LAG_GIVEN) {
        part->lag_s = e->options->lag_s;
        source = "given";
    } else if (corrected && nrg_total_lag_s(c) > 0) {
        part->lag_s = nrg_total_lag_s(c);
        source = "driver";
    } else if (corrected && !c->window_ns) { /* a window that is known is no running average */
        struct nrg_lag_fit fit = nrg_lag_fit(part->tl, nrg_point_ns(part->tl, 0),
                                             nrg_point_ns(part->tl, part->tl->n - 1),
                                             nrg_gauge_noise_w(part->tl, c->resolution));
        if (!isnan(fit.lag_s)) {
            part->lag_s = fit.lag_s;
            source = "fitted";
            nrg_attribution_note(e->out, c->name,
                                 "its readings follow a change of load like a sensor that averages "
                                 "over %.3g s: energy is corrected for that (--lag none: as shown)",
                                 fit.lag_s);
        }
    }
    nrg_copy(part->out->lag_source, sizeof part->out->lag_source, source);
    part->out->lag_s = part->lag_s;
    if (corrected)
        part->slack_s =
            e->options->lag == NRG_LAG_GIVEN ? 0 : part->lag_s / 2 + reading_age_s(part);
}

static int add_part(struct nrg_engine *e, const struct nrg_domain *d)
{
    struct nrg_part *part = &e->parts[e->n_parts];
    size_t channel = (size_t)(d->channel - e->frame.channels);
    *part = (struct nrg_part){
        .domain = d, .channel = d->channel, .method = e->options->method, .others_j = NAN};
    part->tl = nrg_frame_timeline(&e->frame, channel);
    if (!part->tl)
        return 0;
    part->out = &e->out->domains[e->n_parts++];
    *part->out = (struct nrg_attribution_domain){
        .domain = d, .method = part->method, .idle_w = NAN, .residual = NAN};
    part->pool = nrg_cells_pool(&e->cells, d->channel->channel.name);
    set_lag(e, part);
    set_sensor(e, part);
    part->idle_w = nrg_arena_array(&e->memory, e->cells.n + 1, sizeof *part->idle_w);
    part->most_w = nrg_arena_array(&e->memory, e->cells.n + 1, sizeof *part->most_w);
    return part->idle_w && part->most_w ? 0 : -ENOMEM;
}

/* All that the parts will need, in one pass: they are walked together. */
static int load_timelines(struct nrg_engine *e, size_t n_domains)
{
    const struct nrg_domain *domains = e->out->summary.domains;
    bool *wanted = nrg_calloc(e->frame.n + 1, sizeof *wanted);
    for (size_t i = 0; wanted && i < n_domains; i++)
        if (is_wanted(e, &domains[i]))
            wanted[domains[i].channel - e->frame.channels] = true;
    int rc = wanted ? nrg_frame_load(&e->frame, wanted) : -ENOMEM;
    free(wanted);
    return rc;
}

int nrg_parts_make(struct nrg_engine *e)
{
    const struct nrg_summary *s = &e->out->summary;
    int rc = check_wanted(e);
    e->parts = nrg_arena_array(&e->memory, s->n_domains + 1, sizeof *e->parts);
    e->out->domains = nrg_calloc(s->n_domains + 1, sizeof *e->out->domains);
    if (!rc && (!e->parts || !e->out->domains))
        rc = -ENOMEM;
    /* Where sensors and spans are of different machines, none of the energy is theirs. */
    size_t n = s->processes_elsewhere ? 0 : s->n_domains;
    if (!rc)
        rc = load_timelines(e, n);
    for (size_t i = 0; !rc && i < n; i++)
        if (is_wanted(e, &s->domains[i]))
            rc = add_part(e, &s->domains[i]);
    e->out->n_domains = e->n_parts;
    return rc;
}

void nrg_parts_release(struct nrg_engine *e)
{
    for (size_t i = 0; i < e->n_parts; i++) {
        nrg_regress_result_release(&e->parts[i].regressed);
        free(e->parts[i].divisions);
    }
}

/* Power of a part over the cells. */
struct cell_power {
    double *w;      /* mean of each cell; NAN where nothing is known */
    double least_w; /* of a cell; NAN: of no cell is anything known */
    bool steady;    /* that of most cells hardly differs from the middle */
};

void nrg_part_fill_power(const struct nrg_engine *e, const struct nrg_part *part, double *power_w)
{
    const struct nrg_cells *c = &e->cells;
    struct nrg_energy_cursor cursor;
    nrg_energy_cursor_init(&cursor, part->tl, c->begin_ns[0], part->lag_s);
    struct nrg_energy_at last = {0}, at;
    for (size_t k = 0; k < c->n; k++, last = at) {
        at = nrg_energy_cursor_at(&cursor, c->begin_ns[k + 1]);
        double known_s = (at.covered_ns - last.covered_ns) * 1e-9;
        power_w[k] = known_s > 0 ? (at.energy_j - last.energy_j) / known_s : NAN;
    }
}

enum whose { ALL, WORKLOAD };

/* Busy CPUs, or for a GPU with tracks of its own how many of them were busy. */
static double busy_in(const struct nrg_cells *c, const struct nrg_part *part, enum whose whose,
                      size_t k)
{
    double open_s = 0, others_s = whose == WORKLOAD && c->other_s ? c->other_s[k] : 0;
    if (!part->pool)
        return c->busy_s ? fmax(0, c->busy_s[k] - others_s) / nrg_cells_length_s(c, k) : NAN;
    for (size_t i = 0; i < c->n_tracks; i++)
        if (c->track_pool[i] == part->pool)
            open_s += (double)c->open_s[k * c->n_tracks + i];
    return fmin(1, open_s / nrg_cells_length_s(c, k));
}

/* 0: of a counter. */
static double memory_s(const struct nrg_part *part)
{
    double said_s = fmax((double)part->channel->channel.window_ns * 1e-9, part->lag_s);
    return part->tl->is_gauge ? nrg_idle_memory_s((double)part->width_ns * 1e-9, said_s) : 0;
}

static void fit_line(const struct nrg_engine *e, const struct nrg_part *part, enum whose whose,
                     const double *power_w, struct nrg_idle_fit *fit)
{
    const struct nrg_cells *c = &e->cells;
    nrg_idle_init(fit, memory_s(part));
    if (!strncmp(part->channel->channel.name, "gpu", 3) && !part->pool)
        return; /* busy CPUs say nothing about a GPU */
    for (size_t k = 0; k < c->n; k++) {
        double length_s = nrg_cells_length_s(c, k);
        double busy_s = c->outside[k] ? NAN : busy_in(c, part, whose, k) * length_s;
        nrg_idle_add(fit, length_s, busy_s, power_w[k] * length_s);
    }
}

/* Those of cells that say something about power; how many. */
static size_t sort_known(const struct nrg_cells *c, const struct cell_power *power, const double *w,
                         double *sorted)
{
    size_t n = 0;
    for (size_t k = 0; k < c->n; k++)
        if (!c->outside[k] && !isnan(power->w[k]) &&
            (c->n < 3 || nrg_cells_length_s(c, k) >= NRG_LEAST_CELL_S))
            sorted[n++] = w[k];
    if (n)
        nrg_sort(sorted, n);
    return n;
}

/* `sorted` is room for a number of each cell. */
static void set_least_power(const struct nrg_cells *c, const struct nrg_part *part,
                            struct cell_power *power, double *sorted)
{
    size_t n = sort_known(c, power, part->most_w, sorted);
    power->least_w = nrg_idle_least_w(sorted, n);
    sort_known(c, power, power->w, sorted);
    power->steady = n >= 10 && sorted[n * 9 / 10] - sorted[n / 10] < STEADY * sorted[n / 2];
}

/* The estimate knows its own idle energy: power of each cell. */
static bool idle_by_estimate(struct nrg_engine *e, struct nrg_part *part)
{
    size_t channel = nrg_frame_companion(&e->frame, part->channel->channel.name, NRG_IDLE_SUFFIX);
    const struct nrg_timeline *tl = nrg_frame_timeline(&e->frame, channel);
    for (size_t k = 0; tl && k < e->cells.n; k++) {
        int64_t known_ns = 0;
        double j =
            nrg_timeline_between(tl, e->cells.begin_ns[k], e->cells.begin_ns[k + 1], &known_ns);
        part->idle_w[k] = known_ns > 0 ? j * 1e9 / (double)known_ns : 0;
    }
    if (tl)
        nrg_frame_drop(&e->frame, channel);
    return tl != NULL;
}

/* Idle power in the run's report, which cuts time differently, where it is this domain's alone. */
static double summary_idle_w(const struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_summary *s = &e->out->summary;
    if (!s->idle_method || strcmp(s->idle_method, "regression") != 0 || !part->domain->in_total ||
        !part->channel->channel.covers_cpu)
        return NAN;
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].in_total && s->domains[i].channel->channel.covers_cpu &&
            &s->domains[i] != part->domain)
            return NAN;
    return s->idle_w;
}

/* True when readings differ by no more than noise and the age of a counter's last update make them:
 * each end of an interval is up to one update late. */
static bool never_changes(const struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_timeline *tl = part->tl;
    double update_s = (double)part->channel->channel.update_ns * 1e-9;
    double n = 0, sum = 0, squares = 0, ages = 0;
    for (size_t i = 0; i + 1 < tl->n; i++) {
        double s = (double)(nrg_point_ns(tl, i + 1) - nrg_point_ns(tl, i)) * 1e-9;
        if (nrg_point_gap(tl, i) || !(s > 0) || nrg_point_ns(tl, i) < e->windows[0].begin_ns ||
            nrg_point_ns(tl, i + 1) > e->windows[e->n_windows - 1].end_ns)
            continue;
        double w = (nrg_point_j(tl, i + 1) - nrg_point_j(tl, i)) / s;
        n++;
        sum += w;
        squares += w * w;
        ages += update_s * update_s / (6 * s * s);
    }
    double mean = n > 0 ? sum / n : 0;
    double most = NEVER * NEVER + (n > 0 ? AGES * ages / n : 0);
    return n > 2 && squares / n - mean * mean < most * mean * mean;
}

/* Where idle is shared by time, power that hardly changes is shared by time too. A regression sees
 * what changes inside of a cell, and finds the idle power itself, if anything changes. */
static bool shares_all(const struct nrg_engine *e, const struct nrg_part *part,
                       const struct cell_power *power, const struct nrg_idle_fit *fit)
{
    bool regressed = part->method == NRG_METHOD_REGRESS;
    return nrg_idle_flat(fit) ||
           (power->steady && (!regressed || (e->cells.has_rates && never_changes(e, part))));
}

/* Where idle is apart, this leaves nothing to the spans, so it takes more: the workload's own load
 * varied and power did not follow that (it may ignore others that draw little, beside a program
 * that never rests), nor does any reading differ that a regression could tell spans by. */
static bool all_is_idle(const struct nrg_engine *e, const struct nrg_part *part,
                        const struct nrg_idle_fit *own)
{
    return nrg_idle_flat(own) && (part->method != NRG_METHOD_REGRESS || never_changes(e, part));
}

/* Which of the ways applies; fills part->idle_w unless it is one number. NULL: not known. */
static const char *find_idle(struct nrg_engine *e, struct nrg_part *part,
                             const struct cell_power *power, double given_w, double *idle_w)
{
    struct nrg_idle_fit fit, own;
    bool share = e->options->idle == NRG_IDLE_SHARE;
    if (e->options->idle == NRG_IDLE_NONE) {
        *idle_w = 0;
        return "none";
    }
    if (!isnan(given_w)) {
        *idle_w = given_w;
        return "given";
    }
    if (idle_by_estimate(e, part))
        return "estimate"; /* a baseline would be the same model, with what else ran meanwhile */
    if (nrg_part_baseline(e, part, power->least_w, idle_w))
        return "baseline";
    fit_line(e, part, ALL, power->w, &fit);
    fit_line(e, part, WORKLOAD, power->w, &own);
    *idle_w = nrg_idle_solve(&fit);
    if (share ? shares_all(e, part, power, &fit) : all_is_idle(e, part, &own)) {
        *idle_w = INFINITY;
        return "constant power";
    }
    /* A regression finds it where the line is one over others' CPUs alone. */
    if (!share && part->method == NRG_METHOD_REGRESS && !nrg_idle_can_tell(&own))
        return NULL;
    double always = fmax(nrg_idle_always(&fit), nrg_idle_always(&own));
    part->idle_error_w = isnan(*idle_w) ? 0 : nrg_idle_error(&fit, always);
    if (isnan(*idle_w) && !share) {
        *idle_w = summary_idle_w(e, part);
        part->idle_error_w = isnan(*idle_w) ? 0 : e->out->summary.idle_found.more_w / 2;
    }
    if (!isnan(*idle_w))
        return "regression";
    *idle_w = share ? power->least_w : NAN;
    return isnan(*idle_w) ? NULL : "least power";
}

void nrg_part_note_idle(struct nrg_engine *e, const struct nrg_part *part, const char *source)
{
    if (e->options->idle != NRG_IDLE_APART || nrg_method_reads(part->method))
        return;
    if (!source)
        nrg_attribution_note(e->out, part->channel->channel.name,
                             "idle power is not known, so all energy counts as active: nrg run "
                             "--baseline 5s measures it first");
    else if (!strcmp(source, "constant power"))
        nrg_attribution_note(
            e->out, part->channel->channel.name,
            "its power did not follow the load, so all of it is idle: --idle share "
            "gives it to the spans by time");
}

static void fill_idle(struct nrg_engine *e, struct nrg_part *part, const struct cell_power *power,
                      double given_w)
{
    const struct nrg_cells *c = &e->cells;
    double idle_w = NAN, sum_j = 0, sum_s = 0;
    const char *source = find_idle(e, part, power, given_w, &idle_w);
    bool by_cell = source && !strcmp(source, "estimate");
    for (size_t k = 0; k < c->n; k++) {
        double w = by_cell ? part->idle_w[k] : source ? idle_w : 0;
        nrg_part_set_idle(part, k, w);
        if (!c->outside[k] && !isnan(power->w[k])) {
            sum_j += fmin(w, part->most_w[k]) * nrg_cells_length_s(c, k);
            sum_s += nrg_cells_length_s(c, k);
        }
    }
    if (source || part->method != NRG_METHOD_REGRESS) /* which fits it, or says so then */
        nrg_part_note_idle(e, part, source);
    part->idle_known = source && strcmp(source, "least power") != 0;
    /* Up to the least power that was seen may be idle. A regression finds out, where it can. */
    part->least_w = power->least_w;
    if (!source && e->options->idle == NRG_IDLE_APART)
        part->idle_most_w = isnan(power->least_w) ? 0 : power->least_w;
    part->everything_idle = source && isinf(idle_w);
    part->out->idle_w = source && sum_s > 0 ? sum_j / sum_s : NAN;
    nrg_copy(part->out->idle_source, sizeof part->out->idle_source, source ? source : "unknown");
}

/* What the user gave is of the sum: divided in proportion to the least power of each. */
int nrg_parts_idle(struct nrg_engine *e)
{
    struct nrg_arena memory = {0};
    struct cell_power *power = nrg_arena_array(&memory, e->n_parts + 1, sizeof *power);
    double *sorted = nrg_arena_array(&memory, e->cells.n + 1, sizeof *sorted), all_w = 0;
    for (size_t p = 0; power && p < e->n_parts; p++)
        power[p].w = nrg_arena_array(&memory, e->cells.n + 1, sizeof *power[p].w);
    int rc = memory.failed ? -ENOMEM : 0;
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        nrg_part_fill_power(e, &e->parts[p], power[p].w);
        nrg_part_note_power(e, &e->parts[p], power[p].w);
        set_least_power(&e->cells, &e->parts[p], &power[p], sorted);
        all_w = nrg_sum_known(all_w, power[p].least_w);
    }
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        double least_w = power[p].least_w;
        double part = all_w > 0 && !isnan(least_w) ? least_w / all_w : 1 / (double)e->n_parts;
        fill_idle(e, &e->parts[p], &power[p], e->options->idle_w * part);
    }
    nrg_arena_release(&memory);
    return rc;
}

double nrg_part_idle_line_w(const struct nrg_engine *e, const struct nrg_part *part, size_t k)
{
    const struct nrg_cells *c = &e->cells;
    double all_ns = fmax((double)(c->begin_ns[c->n] - c->begin_ns[0]), 1);
    double middle_ns = (double)(c->begin_ns[k] - c->begin_ns[0]) / 2 +
                       (double)(c->begin_ns[k + 1] - c->begin_ns[0]) / 2;
    return part->idle_change_w * (middle_ns / all_ns - 0.5);
}

static struct nrg_baseline_ends baseline_ends(struct nrg_engine *e, const struct nrg_part *part)
{
    bool measured = part->method == NRG_METHOD_INTEGRATE && !part->idle_found &&
                    !strcmp(part->out->idle_source, "baseline");
    return measured
               ? nrg_frame_baseline_ends(&e->frame, (size_t)(part->channel - e->frame.channels))
               : (struct nrg_baseline_ends){NAN, NAN};
}

/*
 * It goes from the one to the other, and how is not known: along a line, and in the mean of a row
 * it may be anything between the two.
 */
void nrg_parts_idle_ends(struct nrg_engine *e)
{
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        struct nrg_baseline_ends ends = baseline_ends(e, part);
        double change_w = ends.after - ends.before, middle_w = (ends.after + ends.before) / 2;
        if (isnan(change_w))
            continue;
        part->idle_change_w = change_w;
        for (size_t k = 0; k < e->cells.n; k++)
            nrg_part_set_idle(part, k, middle_w + nrg_part_idle_line_w(e, part, k));
        part->idle_less_w = part->idle_more_w = fabs(change_w) / 2;
        part->out->idle_w = middle_w;
    }
}

/* What the recorder woke in the baseline is in idle power, which a regression knows already. */
static void doubt_woken(struct nrg_engine *e, struct nrg_part *part)
{
    bool seen = part->method == NRG_METHOD_INTEGRATE && !part->idle_found &&
                !strcmp(part->out->idle_source, "baseline");
    double woken_w = seen ? nrg_recorder_woken_w(e, part) * nrg_own_busy(e) : 0;
    part->idle_less_w += (NRG_WOKEN_OFF + 1) * woken_w;
    part->idle_more_w += (NRG_WOKEN_OFF - 1) * woken_w;
}

/* Since one baseline. */
static void doubt_drift(struct nrg_engine *e, struct nrg_part *part)
{
    double drift_w = nrg_part_drift_w(e, part), in_rests_w = nrg_part_off_in_rests_w(e, part);
    part->idle_in_rests = in_rests_w < drift_w;
    part->idle_less_w = part->idle_more_w = fmin(drift_w, in_rests_w);
}

void nrg_parts_idle_drift(struct nrg_engine *e)
{
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        struct nrg_baseline_ends ends = baseline_ends(e, part);
        if (isnan(ends.before) != isnan(ends.after))
            doubt_drift(e, part);
        doubt_woken(e, part);
    }
}
