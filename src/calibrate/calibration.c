/*
 * See calibration.h. A reading is a window of calls; at least three are taken, and more until
 * Student's interval of their mean is narrow enough. The systematic error of the sensors is the
 * same in all readings, so more readings do not reduce it; it is added to the result only.
 *
 * The idle power before decides when to stop; the mean of idle before and after is subtracted.
 */
#include "calibrate/calibration.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"

#define LEAST_REPEATS 3
#define MOST_REPEATS  1000
#define GO_S          0.01 /* calls between two looks at the clock */
#define NAP_NS        (20 * NRG_NS_PER_MS)

struct run {
    struct nrg_calibration *out;
    const struct nrg_meter *meter;
    const struct nrg_calibrate_options *options;
    struct nrg_team *team;
    struct nrg_error *err;
};

/* Sums over the readings of one point. */
struct sums {
    size_t n;
    double calls, time_s, energy_j, uncertainty_j;
    double mean_sum_j, squares; /* of the readings' energies per call */
};

/* ---- work ---- */

struct window {
    const struct run *run;
    struct nrg_workload *workload; /* NULL: idle */
    unsigned calls_per_go;
    double length_s, calls;
};

static bool is_stopped(const struct run *r)
{
    return r->meter->stop(r->meter->arg);
}

static void stay_idle(void *arg)
{
    const struct window *w = arg;
    int64_t until = nrg_now_ns() + (int64_t)(w->length_s * 1e9);
    for (int64_t now = nrg_now_ns(); now < until && !is_stopped(w->run); now = nrg_now_ns()) {
        struct timespec nap = {0, until - now < NAP_NS ? (long)(until - now) : (long)NAP_NS};
        nanosleep(&nap, NULL);
    }
}

static void run_workload(void *arg)
{
    struct window *w = arg;
    int64_t until = nrg_now_ns() + (int64_t)(w->length_s * 1e9);
    do {
        nrg_workload_run(w->workload, w->calls_per_go);
        w->calls += w->calls_per_go;
    } while (nrg_now_ns() < until && !is_stopped(w->run));
}

/* Warms up, and finds how many calls to make between two looks at the clock. */
static void find_pace(struct window *w)
{
    unsigned calls = 1;
    for (;;) {
        int64_t before = nrg_now_ns();
        nrg_workload_run(w->workload, calls);
        double took_s = (double)(nrg_now_ns() - before) / 1e9;
        if (took_s >= GO_S || calls > 1u << 24 || is_stopped(w->run))
            break;
        calls = took_s < GO_S / 8 ? calls * 8 : calls * 2;
    }
    w->calls_per_go = calls;
}

/* ---- one point ---- */

/* Per call: energy without `idle_w`, and Student's half width of the readings' mean. */
static void mean_of(const struct sums *s, double idle_w, double *mean, double *half)
{
    double n = (double)s->n, center = s->mean_sum_j / n;
    double variance = s->n > 1 ? (s->squares - n * center * center) / (n - 1) : NAN;
    *mean = (s->energy_j - idle_w * s->time_s) / s->calls;
    *half = variance > 0    ? nrg_student_half95(s->n - 1) * sqrt(variance / n)
            : variance <= 0 ? 0
                            : NAN;
}

static bool good_enough(const struct run *r, const struct sums *s)
{
    double mean, half, idle_w = r->out->idle_before_w;
    if (s->n < LEAST_REPEATS)
        return false;
    mean_of(s, isnan(idle_w) ? 0 : idle_w, &mean, &half);
    if (!(mean > half)) /* about as idle: the relative error would never become small */
        mean_of(s, 0, &mean, &half);
    return half <= r->options->relative_error * mean;
}

static int take_reading(struct run *r, struct window *w, struct sums *s)
{
    struct nrg_work_reading reading;
    w->calls = 0;
    int rc = r->meter->measure(r->meter->arg, run_workload, w, &reading, r->err);
    if (rc || is_stopped(r) || !(w->calls > 0)) /* a window that was cut short does not count */
        return rc;
    double per_call = reading.energy_j / w->calls;
    s->n++;
    s->calls += w->calls;
    s->time_s += reading.duration_s;
    s->energy_j += reading.energy_j;
    s->uncertainty_j += reading.uncertainty_j;
    s->mean_sum_j += per_call;
    s->squares += per_call * per_call;
    return 0;
}

static void keep_result(struct run *r, const struct nrg_point *point, const struct sums *s,
                        bool reached)
{
    struct nrg_point_result *result = &r->out->results[r->out->n++];
    double mean, half, sensor_j = s->uncertainty_j / s->calls;
    mean_of(s, 0, &mean, &half);
    *result = (struct nrg_point_result){.point = point,
                                        .repeats = s->n,
                                        .calls = s->calls,
                                        .time_s = s->time_s / s->calls,
                                        .energy_j = mean,
                                        .reached_error = reached};
    if (isnan(half)) /* a single reading has no spread of its own */
        half = mean;
    result->spread = half / mean;
    result->uncertainty_j = hypot(half, sensor_j);
}

static int measure_point(struct run *r, const struct nrg_point *point)
{
    struct nrg_workload workload;
    struct sums s = {0};
    int rc = nrg_workload_open(&workload, point, r->team, r->err);
    if (rc)
        return rc;
    struct window w = {.run = r, .workload = &workload, .length_s = r->options->window_s};
    int64_t until = nrg_now_ns() + (int64_t)(r->options->limit_s * 1e9);
    bool enough = false;
    find_pace(&w);
    while (!rc && !is_stopped(r) && !enough && s.n < MOST_REPEATS) {
        rc = take_reading(r, &w, &s);
        enough = good_enough(r, &s);
        if (s.n >= LEAST_REPEATS && nrg_now_ns() >= until)
            break;
    }
    if (!rc && s.n)
        keep_result(r, point, &s, enough);
    nrg_workload_close(&workload);
    return rc;
}

/* ---- all ---- */

static int measure_idle(struct run *r, double *power_w, double *uncertainty_w)
{
    struct window w = {.run = r, .length_s = r->options->idle_s};
    struct nrg_work_reading reading;
    if (!(r->options->idle_s > 0) || is_stopped(r))
        return 0;
    int rc = r->meter->measure(r->meter->arg, stay_idle, &w, &reading, r->err);
    if (!rc && reading.duration_s > 0 && !is_stopped(r)) {
        *power_w = reading.energy_j / reading.duration_s;
        *uncertainty_w = reading.uncertainty_j / reading.duration_s;
        r->out->idle_utilisation = fmax(r->out->idle_utilisation, reading.utilisation);
        r->out->others_out = reading.others_out;
    }
    return rc;
}

static void report_progress(const struct run *r, size_t at, const char *what)
{
    if (r->meter->progress)
        r->meter->progress(r->meter->arg, at, r->out->n_points, what);
}

/* Subtracts idle energy. Idle power is uncertain by half of its change from before to after. */
static void subtract_idle(struct nrg_calibration *out, double sensor_w)
{
    double before = out->idle_before_w, after = out->idle_after_w;
    out->idle_w = isnan(after) ? before : isnan(before) ? after : (before + after) / 2;
    double drift_w = isnan(before) || isnan(after) ? 0 : fabs(before - after) / 2;
    out->idle_uncertainty_w = isnan(out->idle_w) ? NAN : hypot(drift_w, sensor_w);
    for (size_t i = 0; i < out->n; i++) {
        struct nrg_point_result *p = &out->results[i];
        double idle_j = out->idle_w * p->time_s;
        p->above_j = p->energy_j - idle_j;
        p->above_uncertainty_j = hypot(p->uncertainty_j, out->idle_uncertainty_w * p->time_s);
        /* Errors of the sensors are in idle, too: the spread alone decides. */
        if (!(p->above_j > hypot(p->spread * p->energy_j, drift_w * p->time_s)))
            p->above_j = p->above_uncertainty_j = NAN;
    }
}

int nrg_calibrate(struct nrg_calibration *out, const struct nrg_points *points,
                  struct nrg_team *team, const struct nrg_meter *meter,
                  const struct nrg_calibrate_options *options, struct nrg_error *err)
{
    struct run r = {.out = out, .meter = meter, .options = options, .team = team, .err = err};
    double before_w = 0, after_w = 0;
    *out = (struct nrg_calibration){.idle_before_w = NAN,
                                    .idle_after_w = NAN,
                                    .idle_utilisation = NAN,
                                    .n_points = points->n,
                                    .results = nrg_calloc(points->n + 1, sizeof *out->results)};
    if (!out->results)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    report_progress(&r, 0, "idle");
    int rc = measure_idle(&r, &out->idle_before_w, &before_w);
    for (size_t i = 0; !rc && i < points->n && !is_stopped(&r); i++) {
        report_progress(&r, i + 1, points->items[i].name);
        rc = measure_point(&r, &points->items[i]);
    }
    out->interrupted = is_stopped(&r);
    if (!rc && !out->interrupted) {
        report_progress(&r, points->n + 1, "idle");
        rc = measure_idle(&r, &out->idle_after_w, &after_w);
        out->interrupted = is_stopped(&r);
    }
    subtract_idle(out, fmax(before_w, after_w));
    if (rc)
        nrg_calibration_release(out);
    return rc;
}

void nrg_calibration_release(struct nrg_calibration *calibration)
{
    free(calibration->results);
    *calibration = (struct nrg_calibration){0};
}
