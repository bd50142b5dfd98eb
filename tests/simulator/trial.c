/* See trial.h. */
#include "simulator/trial.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "energy/lag.h"
#include "energy/quantum.h"

struct nrg_channel trial_channel(const struct sim_machine *m)
{
    const struct sim_options *o = &m->options;
    bool counter = o->sensor == SIM_COUNTER;
    return (struct nrg_channel){
        .name = "package-0",
        .quantity = counter ? NRG_ENERGY : NRG_POWER,
        .kind = counter ? NRG_COUNTER : NRG_GAUGE,
        .scale = o->quantum,
        .resolution = o->quantum,
        .wrap = o->wrap_j > 0 ? (uint64_t)llround(o->wrap_j / o->quantum) : 0,
        .limit_w = o->wrap_j > 0 ? 2000 : 0,
    };
}

void trial_timeline(const struct sim_machine *m, const struct nrg_channel *c,
                    struct nrg_timeline *tl)
{
    size_t n = m->n_readings;
    bool counter = c->kind == NRG_COUNTER;
    *tl = (struct nrg_timeline){.n = n, .is_gauge = !counter};
    tl->period_ns = (int64_t)llround(m->options.period_s * 1e9);
    tl->t_ns = calloc(n + 1, sizeof *tl->t_ns);
    tl->sum_j = calloc(n + 1, sizeof *tl->sum_j);
    tl->gap = calloc(n + 1, 1);
    tl->own_gauge = counter ? NULL : calloc(n + 1, sizeof *tl->own_gauge);
    for (size_t i = 0; i < n; i++) {
        const struct sim_reading *now = &m->readings[i], *last = i ? now - 1 : now;
        tl->t_ns[i] = now->t_ns;
        if (tl->own_gauge)
            tl->own_gauge[i] = (double)now->raw * c->scale;
        if (!i)
            continue;
        int64_t dt_ns = now->t_ns - last->t_ns;
        double step = counter ? nrg_counter_step(c, last->raw, now->raw, dt_ns, NULL)
                              : (double)(now->raw + last->raw) / 2 * (double)dt_ns / 1e9;
        tl->gap[i - 1] = step < 0;
        tl->sum_j[i] = tl->sum_j[i - 1] + fmax(step, 0) * c->scale;
    }
}

static void keep(struct trial_sum *sum, double error, double width)
{
    if (sum->n == sum->cap) {
        sum->cap = sum->cap ? 2 * sum->cap : 1024;
        sum->errors = realloc(sum->errors, sum->cap * sizeof *sum->errors);
        sum->widths = realloc(sum->widths, sum->cap * sizeof *sum->widths);
        if (!sum->errors || !sum->widths)
            abort();
    }
    sum->errors[sum->n] = error;
    sum->widths[sum->n++] = width;
}

/* Power that the result's figures mean: above idle, or all of it. */
static double true_w(const struct sim_machine *m, const struct nrg_regress_result *result,
                     size_t layer)
{
    double w = m->energy_j[layer] / m->time_s[layer];
    return isnan(result->idle_w) ? w + m->options.idle_w : w;
}

/* The same for the layer or its group. */
static double true_joint_w(const struct sim_machine *m, const struct nrg_regress_result *result,
                           size_t layer)
{
    double j = 0, s = 0;
    for (size_t i = 0; i < m->options.layers; i++) {
        if (result->classes[i].group != result->classes[layer].group)
            continue;
        j += true_w(m, result, i) * m->time_s[i];
        s += m->time_s[i];
    }
    return j / s;
}

static void judge_layer(const struct sim_machine *m, const struct nrg_regress_result *result,
                        size_t layer, struct trial_sum *sum)
{
    const struct nrg_regress_class *c = &result->classes[layer];
    if (!(m->time_s[layer] > 0) || isnan(c->power_w))
        return;
    double truth = true_joint_w(m, result, layer), part = truth * m->time_s[layer] / m->total_j;
    sum->intervals++;
    sum->held += c->low_w <= truth && truth <= c->high_w;
    sum->unresolved += c->unresolved;
    sum->clear += !c->unresolved;
    sum->clear_held += !c->unresolved && c->low_w <= truth && truth <= c->high_w;
    if (getenv("TRIAL_VERBOSE"))
        fprintf(stderr, "%zu: true %.4f W, %.4f (%.4f .. %.4f)%s time %.4f part %.4f group %zu%s\n",
                layer, truth, c->power_w, c->low_w, c->high_w,
                c->low_w <= truth && truth <= c->high_w ? "" : " MISSED", c->time_s, part, c->group,
                c->unresolved ? " unresolved" : "");
    if (part >= 0.01)
        keep(sum, fabs(c->power_w / truth - 1), (c->high_w - c->low_w) / 2 / truth);
}

static void judge(const struct sim_machine *m, const struct nrg_regress_result *result,
                  struct trial_sum *sum)
{
    double total_j = 0;
    for (size_t i = 0; i < m->options.layers; i++) {
        judge_layer(m, result, i, sum);
        if (!isnan(result->classes[i].power_w))
            total_j += result->classes[i].power_w * m->time_s[i];
    }
    if (result->idle_fitted) {
        sum->idles++;
        sum->idles_held +=
            result->idle_low_w <= m->options.idle_w && m->options.idle_w <= result->idle_high_w;
    }
    if (!isnan(result->idle_w))
        total_j += result->idle_w * m->end_s;
    sum->total_error = fmax(sum->total_error, fabs(total_j / m->total_j - 1));
    snprintf(sum->lag, sizeof sum->lag, "%.4g", result->lag_s);
}

void trial_run(const struct trial_scenario *scenario, uint64_t seed, struct trial_sum *sum)
{
    struct sim_machine m;
    struct sim_options options = scenario->options;
    struct nrg_timeline tl;
    struct nrg_regress *regress;
    struct nrg_regress_result result;
    options.seed = seed;
    sim_run(&m, &options);
    struct nrg_channel channel = trial_channel(&m);
    channel.lag_ns = (int64_t)llround(scenario->driver_lag_s * 1e9);
    trial_timeline(&m, &channel, &tl);
    struct nrg_regress_options o = {.timeline = &tl,
                                    .channel = &channel,
                                    .begin_ns = m.start_ns,
                                    .end_ns = m.start_ns + (int64_t)(m.end_s * 1e9),
                                    .n_classes = options.layers,
                                    .lag = scenario->lag,
                                    .lag_s = scenario->given_lag_s,
                                    .idle_w = scenario->idle_known ? m.options.idle_w : NAN,
                                    .confidence = 0.95};
    if (scenario->lag == NRG_LAG_AUTO && !channel.lag_ns && tl.is_gauge) { /* as parts.c does */
        double noise_w = nrg_gauge_noise_w(&tl, channel.resolution);
        double seen_s = nrg_lag_fit(&tl, tl.t_ns[0], tl.t_ns[tl.n - 1], noise_w).lag_s;
        o.seen_lag_s = isnan(seen_s) ? 0 : seen_s;
    }
    int rc = nrg_regress_new(&o, &regress);
    for (size_t i = 0; !rc && i < m.n_calls; i++)
        rc =
            nrg_regress_slice(regress, &(struct nrg_class_activity){.begin_ns = m.calls[i].begin_ns,
                                                                    .end_ns = m.calls[i].end_ns,
                                                                    .class_ = m.calls[i].layer,
                                                                    .rate = 1,
                                                                    .calls = 1});
    if (!rc)
        rc = nrg_regress_solve(regress, &result);
    sum->runs++;
    if (rc) {
        fprintf(stderr, "seed %llu: %d\n", (unsigned long long)seed, rc);
        sum->failed++;
    } else {
        judge(&m, &result, sum);
        nrg_regress_result_release(&result);
    }
    nrg_regress_free(regress);
    nrg_timeline_release(&tl);
    sim_release(&m);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct trial_figures trial_figures(struct trial_sum *sum)
{
    struct trial_figures f = {.total_error = sum->total_error};
    if (sum->n) {
        qsort(sum->errors, sum->n, sizeof *sum->errors, compare);
        qsort(sum->widths, sum->n, sizeof *sum->widths, compare);
        f.median_error = sum->errors[sum->n / 2];
        f.p90_error = sum->errors[sum->n * 9 / 10];
        f.median_width = sum->widths[sum->n / 2];
    }
    f.coverage = (double)sum->held / (double)(sum->intervals ? sum->intervals : 1);
    f.unresolved = (double)sum->unresolved / (double)(sum->intervals ? sum->intervals : 1);
    f.clear_coverage = sum->clear ? (double)sum->clear_held / (double)sum->clear : NAN;
    f.idle_coverage = sum->idles ? (double)sum->idles_held / (double)sum->idles : NAN;
    return f;
}

void trial_sum_release(struct trial_sum *sum)
{
    free(sum->errors);
    free(sum->widths);
    *sum = (struct trial_sum){0};
}
