/* See cycle_window.h. */
#include "attribute/cycles/window.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/cycles/rows.h"
#include "energy/readings.h"
#include "energy/timeline.h"
#include "base/mem.h"

#define UNCOVERED_NS 1000 /* rounding of times, not a gap */

/* The energy domains' meters. */
struct meters {
    struct nrg_timeline *timelines;
    double *lag_s;
    size_t n;
};

/* Whole microseconds, half to even: the resolution of the earlier tool's times. */
static int64_t round_us(int64_t ns)
{
    int64_t us = ns / 1000, rest = ns % 1000;
    if (rest > 500 || (rest == 500 && us % 2))
        us++;
    return us * 1000;
}

static void meters_release(struct meters *m)
{
    for (size_t i = 0; m->timelines && i < m->n; i++)
        nrg_timeline_release(&m->timelines[i]);
    free(m->timelines);
    free(m->lag_s);
}

static int meters_load(struct meters *m, const struct nrg_attribution *a,
                       struct nrg_recording *recording)
{
    int rc = 0;
    *m = (struct meters){.timelines = calloc(a->n_domains + 1, sizeof *m->timelines),
                         .lag_s = calloc(a->n_domains + 1, sizeof *m->lag_s)};
    if (!m->timelines || !m->lag_s)
        return -ENOMEM;
    for (; !rc && m->n < a->n_domains; m->n += !rc)
        rc = nrg_timeline_load(&m->timelines[m->n], recording, a->domains[m->n].domain->channel);
    return rc;
}

static void take_lags(struct nrg_cycles *c, struct meters *m, const struct nrg_attribution *a)
{
    nrg_copy(c->lag_source, sizeof c->lag_source, "none");
    for (size_t i = 0; i < m->n && i < a->n_domains; i++) {
        m->lag_s[i] = a->domains[i].lag_s;
        if (!(m->lag_s[i] > c->lag_s))
            continue;
        c->lag_s = m->lag_s[i];
        nrg_copy(c->lag_source, sizeof c->lag_source, a->domains[i].lag_source);
    }
}

/* Methods that take single readings correct no lag: what integration would correct is asked. */
static int find_lags(struct nrg_cycles *c, struct meters *m, const struct nrg_attribution *a,
                     struct nrg_recording *recording, const struct nrg_attribution_options *options,
                     struct nrg_error *err)
{
    struct nrg_attribution_options how = *options;
    struct nrg_attribution integrated;
    if (how.method != NRG_METHOD_WINDOW && how.method != NRG_METHOD_NEAREST) {
        take_lags(c, m, a);
        return 0;
    }
    how.method = NRG_METHOD_INTEGRATE;
    how.by = NRG_BY_NAME;
    int rc = nrg_attribution_make(&integrated, recording, &how, err);
    if (rc)
        return rc;
    take_lags(c, m, &integrated);
    nrg_attribution_release(&integrated);
    return 0;
}

/* ---- power of each execution ---- */

/* The earlier tool's rule. */
static void window_powers(struct nrg_cycles *c, const struct nrg_readings *r)
{
    size_t at = 0;
    bool ended = false;
    for (size_t i = 0; i < c->n; i++) {
        struct nrg_execution *e = &c->executions[i];
        int64_t begin_ns = round_us(e->begin_ns);
        int64_t end_ns = begin_ns + round_us(e->end_ns - e->begin_ns);
        e->left_out = ended;
        c->left_out += ended;
        if (ended)
            continue;
        while (at < r->n && r->t_ns[at] < begin_ns)
            at++;
        size_t from = at;
        while (at < r->n && r->t_ns[at] <= end_ns)
            at++;
        e->power_w = nrg_readings_mean(r, from, at);
        ended = at == r->n;
    }
}

static double nearest_w(const struct nrg_readings *r, int64_t t_ns)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r->t_ns[middle] < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == r->n || (low && t_ns - r->t_ns[low - 1] <= r->t_ns[low] - t_ns))
        low--;
    return r->n ? r->power_w[low] : NAN;
}

static void set_powers(struct nrg_cycles *c, const struct nrg_readings *r, enum nrg_method method)
{
    if (method == NRG_METHOD_WINDOW)
        window_powers(c, r);
    for (size_t i = 0; i < c->n; i++) {
        struct nrg_execution *e = &c->executions[i];
        if (method == NRG_METHOD_NEAREST)
            e->power_w = nearest_w(r, e->end_ns);
        else if (method != NRG_METHOD_WINDOW && e->end_ns > e->begin_ns)
            e->power_w = e->lag_corrected_j * 1e9 / (double)(e->end_ns - e->begin_ns);
        c->with_power += isnan(e->power_w) ? 0 : 1;
        /* None from none, and from a meter that showed nothing. */
        if (e->power_w > 0 || e->power_w < 0)
            e->power_above_idle_w = e->power_w - c->idle_w;
    }
}

/* ---- energy ---- */

/* What a gauge shows at an instant, on the straight line between its readings. */
static double gauge_w(const struct nrg_timeline *tl, int64_t t_ns)
{
    size_t low = 0, high = tl->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (tl->t_ns[middle] < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || low == tl->n || tl->gap[low - 1])
        return tl->gauge[low == tl->n ? tl->n - 1 : low];
    double part = (double)(t_ns - tl->t_ns[low - 1]) / (double)(tl->t_ns[low] - tl->t_ns[low - 1]);
    return tl->gauge[low - 1] + part * (tl->gauge[low] - tl->gauge[low - 1]);
}

/* Of all meters between two instants; NAN when no meter covers all of it. */
static double energy_j(const struct meters *m, int64_t begin_ns, int64_t end_ns, bool corrected,
                       bool whole)
{
    double sum_j = NAN;
    for (size_t i = 0; i < m->n; i++) {
        const struct nrg_timeline *tl = &m->timelines[i];
        int64_t covered_ns = 0;
        double j = tl->n ? nrg_timeline_between(tl, begin_ns, end_ns, &covered_ns) : 0;
        if (whole ? covered_ns < end_ns - begin_ns - UNCOVERED_NS || !tl->n : covered_ns <= 0)
            continue;
        if (corrected && tl->gauge && m->lag_s[i] > 0)
            j += m->lag_s[i] * (gauge_w(tl, end_ns) - gauge_w(tl, begin_ns));
        sum_j = isnan(sum_j) ? j : sum_j + j;
    }
    return sum_j;
}

static int by_begin(const void *left, const void *right)
{
    const struct nrg_execution *a = left, *b = right;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static void add_known(double *sum, double value)
{
    *sum += isnan(value) ? 0 : value;
}

/* Layers in sum; where windows overlap, time counts once. */
static int sum_layers(struct nrg_cycles *c, const struct meters *m)
{
    struct nrg_execution *sorted = calloc(c->n + 1, sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, c->executions, c->n * sizeof *sorted);
    qsort(sorted, c->n, sizeof *sorted, by_begin);
    int64_t upto_ns = sorted[0].begin_ns;
    for (size_t i = 0; i < c->n; i++) {
        int64_t from_ns = sorted[i].begin_ns > upto_ns ? sorted[i].begin_ns : upto_ns;
        if (sorted[i].end_ns <= from_ns)
            continue;
        upto_ns = sorted[i].end_ns;
        c->layers_s += (double)(upto_ns - from_ns) / 1e9;
        add_known(&c->layers_j, energy_j(m, from_ns, upto_ns, false, false));
        add_known(&c->layers_corrected_j, energy_j(m, from_ns, upto_ns, true, false));
    }
    c->between_s = (double)(upto_ns - sorted[0].begin_ns) / 1e9;
    c->between_j = energy_j(m, sorted[0].begin_ns, upto_ns, false, false);
    c->between_corrected_j = energy_j(m, sorted[0].begin_ns, upto_ns, true, false);
    if (isnan(c->between_j)) /* the logs do not meet */
        c->layers_j = c->layers_corrected_j = NAN;
    free(sorted);
    return 0;
}

/* ---- all of it ---- */

static int copy_runs(struct nrg_cycles *c, const struct nrg_layer_run *runs, size_t n)
{
    c->executions = calloc(n + 1, sizeof *c->executions);
    if (!c->executions)
        return -ENOMEM;
    for (c->n = 0; c->n < n; c->n++)
        c->executions[c->n] =
            (struct nrg_execution){.begin_ns = runs[c->n].begin_ns,
                                   .end_ns = runs[c->n].end_ns,
                                   .cycle = runs[c->n].cycle,
                                   .row = SIZE_MAX,
                                   .run_time_s = (double)runs[c->n].duration_ns / 1e9,
                                   .power_w = NAN,
                                   .power_above_idle_w = NAN,
                                   .lag_corrected_j = NAN};
    return 0;
}

static int find_rows(struct nrg_cycles *c, struct nrg_attribution *a,
                     struct nrg_recording *recording, const struct nrg_layer_run *runs,
                     struct nrg_error *err)
{
    struct nrg_span_catalog catalog;
    int rc = nrg_span_catalog_load(&catalog, recording, err);
    if (rc)
        return rc;
    rc = nrg_cycle_rows_find(c, a, runs, &catalog);
    nrg_span_catalog_release(&catalog);
    c->of_row = rc ? NULL : calloc(a->n_rows + 1, sizeof *c->of_row);
    if (!rc && !c->of_row)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < a->n_rows; i++)
        c->of_row[i] = SIZE_MAX;
    for (size_t i = c->n; !rc && i-- > 0;)
        if (c->executions[i].row < a->n_rows)
            c->of_row[c->executions[i].row] = i;
    return rc;
}

static int measure(struct nrg_cycles *c, const struct nrg_attribution *a,
                   struct nrg_recording *recording, const struct nrg_attribution_options *options,
                   struct nrg_error *err)
{
    struct meters m;
    struct nrg_readings readings = {0};
    int rc = meters_load(&m, a, recording);
    if (!rc)
        rc = find_lags(c, &m, a, recording, options, err);
    for (size_t i = 0; !rc && i < c->n; i++)
        c->executions[i].lag_corrected_j =
            energy_j(&m, c->executions[i].begin_ns, c->executions[i].end_ns, true, true);
    if (!rc)
        rc = sum_layers(c, &m);
    if (!rc && m.n)
        rc = nrg_readings_init(&readings, &m.timelines[0]);
    if (!rc)
        set_powers(c, &readings, options->method);
    nrg_readings_release(&readings);
    meters_release(&m);
    return rc;
}

int nrg_cycles_make(struct nrg_cycles *c, struct nrg_attribution *a,
                    struct nrg_recording *recording, const struct nrg_attribution_options *options,
                    double idle_w, struct nrg_error *err)
{
    struct nrg_layer_run *runs = NULL;
    size_t n = 0;
    *c = (struct nrg_cycles){.idle_w = idle_w};
    int rc = nrg_layer_runs_load(recording, &runs, &n, err);
    if (rc)
        return rc;
    rc = n ? copy_runs(c, runs, n) : -ENODATA;
    if (!rc)
        rc = find_rows(c, a, recording, runs, err);
    if (!rc)
        rc = measure(c, a, recording, options, err);
    free(runs);
    if (rc == -ENOMEM)
        nrg_fail(err, rc, nrg_recording_path(recording), "out of memory");
    else if (rc && rc != -ENODATA)
        nrg_fail(err, rc, nrg_recording_path(recording), "cannot be read: %s", strerror(-rc));
    if (rc)
        nrg_cycles_release(c);
    return rc;
}

void nrg_cycles_release(struct nrg_cycles *c)
{
    free(c->executions);
    free(c->of_row);
    free(c->rows);
    *c = (struct nrg_cycles){0};
}
