/* See window.h. The meters are those of the attribution; the recording is read once more for them.
 */
#include "attribute/cycles/window.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/cycles/rows.h"
#include "attribute/internal.h"
#include "base/mem.h"
#include "base/search.h"
#include "energy/readings.h"

/* The energy domains' meters. */
struct meters {
    struct nrg_frame frame;
    const struct nrg_attribution *a;
};

/* NULL when it has no readings. */
static const struct nrg_timeline *meter_timeline(struct meters *m, size_t domain)
{
    const struct nrg_recorded_channel *channel = m->a->domains[domain].domain->channel;
    return nrg_frame_timeline(&m->frame, (size_t)(channel - m->frame.channels));
}

/* Whole microseconds, half to even: the resolution of the earlier tool's times. */
static int64_t round_us(int64_t ns)
{
    int64_t us = ns / 1000, rest = ns % 1000;
    if (rest > 500 || (rest == 500 && us % 2))
        us++;
    return us * 1000;
}

/* The longest lag of a meter. */
static void set_lag(struct nrg_cycles *c, const struct nrg_attribution *a)
{
    nrg_copy(c->lag_source, sizeof c->lag_source, "none");
    for (size_t i = 0; i < a->n_domains; i++) {
        if (!(a->domains[i].lag_s > c->lag_s))
            continue;
        c->lag_s = a->domains[i].lag_s;
        nrg_copy(c->lag_source, sizeof c->lag_source, a->domains[i].lag_source);
    }
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

static void set_powers(struct nrg_cycles *c, const struct nrg_readings *r, enum nrg_method method)
{
    if (method == NRG_METHOD_WINDOW)
        window_powers(c, r);
    for (size_t i = 0; i < c->n; i++) {
        struct nrg_execution *e = &c->executions[i];
        if (method == NRG_METHOD_NEAREST)
            e->power_w = nrg_readings_nearest(r, e->end_ns);
        else if (method != NRG_METHOD_WINDOW && e->end_ns > e->begin_ns)
            e->power_w = e->lag_corrected_j * 1e9 / (double)(e->end_ns - e->begin_ns);
        c->with_power += isnan(e->power_w) ? 0 : 1;
        /* No power above idle where there is no reading, or the meter showed 0. */
        if (e->power_w > 0 || e->power_w < 0)
            e->power_above_idle_w = e->power_w - c->idle_w;
    }
}

/* ---- energy ---- */

/* What a gauge shows at an instant, on the straight line between its readings. */
static double gauge_w(const struct nrg_timeline *tl, int64_t t_ns)
{
    size_t at = nrg_timeline_below(tl, t_ns);
    if (at == 0 || at == tl->n || nrg_point_gap(tl, at - 1))
        return nrg_point_gauge(tl, at == tl->n ? tl->n - 1 : at);
    double part = (double)(t_ns - nrg_point_ns(tl, at - 1)) /
                  (double)(nrg_point_ns(tl, at) - nrg_point_ns(tl, at - 1));
    return nrg_point_gauge(tl, at - 1) +
           part * (nrg_point_gauge(tl, at) - nrg_point_gauge(tl, at - 1));
}

/* Of all meters between two instants; NAN when no meter covers all of it. */
static double energy_j(struct meters *m, int64_t begin_ns, int64_t end_ns, bool corrected,
                       bool whole)
{
    double sum_j = NAN;
    for (size_t i = 0; i < m->a->n_domains; i++) {
        const struct nrg_timeline *tl = meter_timeline(m, i);
        double lag_s = m->a->domains[i].lag_s;
        int64_t covered_ns = 0;
        double j = tl ? nrg_timeline_between(tl, begin_ns, end_ns, &covered_ns) : 0;
        if (!tl || (whole ? covered_ns < end_ns - begin_ns - NRG_UNCOVERED_NS : covered_ns <= 0))
            continue;
        if (corrected && tl->is_gauge && lag_s > 0)
            j += lag_s * (gauge_w(tl, end_ns) - gauge_w(tl, begin_ns));
        sum_j = nrg_sum_known(sum_j, j);
    }
    return sum_j;
}

static int by_begin(const void *left, const void *right)
{
    const struct nrg_execution *a = left, *b = right;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

/* Layers in sum; where windows overlap, time counts once. */
static int sum_layers(struct nrg_cycles *c, struct meters *m)
{
    struct nrg_execution *sorted = nrg_calloc(c->n + 1, sizeof *sorted);
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
        c->layers_j = nrg_sum_known(c->layers_j, energy_j(m, from_ns, upto_ns, false, false));
        c->layers_corrected_j =
            nrg_sum_known(c->layers_corrected_j, energy_j(m, from_ns, upto_ns, true, false));
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
    c->executions = nrg_calloc(n + 1, sizeof *c->executions);
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
                     const struct nrg_layer_run *runs)
{
    int rc = nrg_cycle_rows_find(c, a, runs);
    c->of_row = rc ? NULL : nrg_calloc(a->n_rows + 1, sizeof *c->of_row);
    if (!rc && !c->of_row)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < a->n_rows; i++)
        c->of_row[i] = SIZE_MAX;
    for (size_t i = c->n; !rc && i-- > 0;)
        if (c->executions[i].row < a->n_rows)
            c->of_row[c->executions[i].row] = i;
    return rc;
}

static int measure_executions(struct nrg_cycles *c, const struct nrg_attribution *a,
                              struct nrg_recording *recording, enum nrg_method method)
{
    struct meters m = {.a = a};
    struct nrg_readings readings = {0};
    int rc = nrg_frame_init(&m.frame, recording);
    set_lag(c, a);
    for (size_t i = 0; !rc && i < c->n; i++)
        c->executions[i].lag_corrected_j =
            energy_j(&m, c->executions[i].begin_ns, c->executions[i].end_ns, true, true);
    if (!rc)
        rc = sum_layers(c, &m);
    const struct nrg_timeline *first = !rc && a->n_domains ? meter_timeline(&m, 0) : NULL;
    if (first)
        rc = nrg_readings_init(&readings, first);
    if (!rc)
        set_powers(c, &readings, method);
    nrg_readings_release(&readings);
    nrg_frame_release(&m.frame);
    return rc;
}

int nrg_cycles_make(struct nrg_cycles *c, struct nrg_attribution *a,
                    struct nrg_recording *recording, enum nrg_method method, double idle_w,
                    struct nrg_error *err)
{
    struct nrg_layer_run *runs = NULL;
    size_t n = 0;
    *c = (struct nrg_cycles){.idle_w = idle_w};
    int rc = nrg_layer_runs_load(recording, &runs, &n, err);
    if (rc)
        return rc;
    rc = n ? copy_runs(c, runs, n) : -ENODATA;
    if (!rc)
        rc = find_rows(c, a, runs);
    if (!rc)
        rc = measure_executions(c, a, recording, method);
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
    *c = (struct nrg_cycles){0};
}
