/*
 * See fit.h. The order: coarse places of theta by profiled evidence, each of the best refined with
 * its scales; then noise, scales and theta in turn, as each is made of what the others found; then
 * theta's own columns, and the posterior.
 */
#include "attribute/model/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/sensor/search.h"
#include "base/mem.h"

#define LIMIT       8.0  /* deviations: chance makes none so large in any recording */
#define MOST_STRAYS 0.03 /* of the rows: more of them are no strays, but a model that is wrong */
#define HILLS       3    /* coarse places that are refined: ATTRIBUTION.md has 3 to 5 */
#define TURNS       2    /* of powers, scales and theta, each made of what the others found */
#define SCORES      64   /* blocks of time */
#define PATTERN_MAX 8    /* rounds of a refinement */

/* A fit in work. */
struct work {
    const struct nrg_facts *facts;
    struct nrg_sensor sensor;
    struct nrg_scales scales;
    struct nrg_design design; /* of `sensor` */
    double *power_w, others_w;
    double log_z;
    bool *stray; /* per row */
    size_t n_strays;
};

static int make_design(struct work *w, const struct nrg_sensor *sensor, struct nrg_design *design)
{
    int rc = nrg_design_make(design, w->facts, sensor, w->power_w);
    design->stray = w->stray;
    return rc;
}

static int evidence_at(struct work *w, const struct nrg_sensor *sensor, bool profiled, double *z)
{
    struct nrg_design design;
    int rc = make_design(w, sensor, &design);
    if (rc)
        return rc;
    rc = nrg_scales_evidence(&w->scales, w->facts, &design, w->others_w, profiled, z);
    nrg_design_release(&design);
    return rc;
}

/* Steps of each parameter, in turn, as long as one helps; then smaller ones. */
static int refine(struct work *w, struct nrg_sensor *sensor, struct nrg_sensor step, bool profiled)
{
    double best, z;
    int rc = evidence_at(w, sensor, profiled, &best);
    for (int round = 0; !rc && round < PATTERN_MAX; round++) {
        bool moved = false;
        for (size_t i = 0; !rc && i < 2 * NRG_SENSOR_PARAMETERS; i++) {
            struct nrg_sensor trial = *sensor;
            double by = *nrg_sensor_parameter(&step, i / 2);
            *nrg_sensor_parameter(&trial, i / 2) += i % 2 ? -by : by;
            if (by == 0 || (sensor->width_s > 0 && !(trial.width_s > 0)))
                continue;
            rc = evidence_at(w, &trial, profiled, &z);
            if (!rc && z > best) {
                best = z;
                *sensor = trial;
                moved = true;
            }
        }
        for (size_t i = 0; !moved && i < NRG_SENSOR_PARAMETERS; i++)
            *nrg_sensor_parameter(&step, i) /= 3;
    }
    return rc;
}

/* Powers of the classes, of which the noise is made. */
static void take_powers(struct work *w, const double *mean)
{
    const struct nrg_facts *f = w->facts;
    double common = mean[w->design.first[NRG_BLOCK_COMMON]];
    for (size_t c = 0; c < f->n_classes; c++)
        w->power_w[c] = fmax(mean[c] + (c < f->spans ? common : 0), 0);
    if (f->others_class < f->n_classes)
        w->others_w = w->power_w[f->others_class];
}

/* The design's rows summed up, and the posterior of its columns. The sums are the caller's. */
static int solve(const struct work *w, struct nrg_model_sums *sums, double *mean,
                 double *covariance)
{
    struct nrg_arena memory = {0};
    struct nrg_model_room room;
    size_t k = w->design.k + w->design.n_extra;
    double *prior = nrg_arena_array(&memory, k + 1, sizeof *prior);
    int rc = nrg_model_room_init(&room, &memory, k);
    if (!rc)
        rc = nrg_model_sums_init(sums, k);
    if (!rc)
        rc = nrg_design_sum(&w->design, w->scales.noise, w->others_w, sums);
    if (!rc) {
        nrg_scales_prior(&w->scales, w->facts, &w->design, prior);
        nrg_model_posterior(sums, prior, mean, covariance, &room);
    }
    nrg_arena_release(&memory);
    return rc;
}

/* Posterior mean of the blocks' columns. */
static int find_mean(const struct work *w, double *mean)
{
    struct nrg_model_sums sums = {0};
    size_t k = w->design.k;
    double *covariance = nrg_calloc(k * (k + 1) / 2 + 1, sizeof *covariance);
    int rc = covariance ? solve(w, &sums, mean, covariance) : -ENOMEM;
    nrg_model_sums_release(&sums);
    free(covariance);
    return rc;
}

static int find_powers(struct work *w)
{
    double *mean = nrg_calloc(w->design.k + 1, sizeof *mean);
    int rc = mean ? find_mean(w, mean) : -ENOMEM;
    if (!rc)
        take_powers(w, mean);
    free(mean);
    return rc;
}

/* Scales at a sensor, by the noise of powers that are found there. */
static int settle(struct work *w)
{
    nrg_design_release(&w->design);
    int rc = make_design(w, &w->sensor, &w->design);
    if (!rc)
        rc = find_powers(w);
    if (!rc) {
        nrg_design_release(&w->design);
        rc = make_design(w, &w->sensor, &w->design);
    }
    return rc ? rc : nrg_scales_search(&w->scales, w->facts, &w->design, w->others_w, &w->log_z);
}

struct hill {
    struct nrg_sensor sensor;
    double log_z;
};

static int higher(const void *a, const void *b)
{
    const struct hill *x = a, *y = b;
    return x->log_z > y->log_z ? -1 : x->log_z < y->log_z;
}

static int climb_hill(struct work *w, const struct hill *hill, const struct nrg_sensor *step,
                      struct nrg_sensor *best, struct nrg_scales *best_scales, double *best_z)
{
    nrg_scales_start(&w->scales, w->facts);
    w->sensor = hill->sensor;
    int rc = refine(w, &w->sensor, *step, true);
    if (!rc)
        rc = settle(w);
    if (!rc && w->log_z > *best_z) {
        *best = w->sensor;
        *best_scales = w->scales;
        *best_z = w->log_z;
    }
    return rc;
}

static int find_sensor(struct work *w)
{
    struct nrg_sensor *starts = nrg_calloc(NRG_SENSOR_STARTS, sizeof *starts), step, best;
    struct hill *hills = nrg_calloc(NRG_SENSOR_STARTS, sizeof *hills);
    struct nrg_scales best_scales = w->scales;
    double best_z = -INFINITY;
    int rc = starts && hills ? 0 : -ENOMEM;
    size_t n = rc ? 0 : nrg_sensor_starts(w->facts, starts, &step), taken = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        hills[i].sensor = starts[i];
        rc = evidence_at(w, &starts[i], true, &hills[i].log_z);
    }
    if (!rc)
        qsort(hills, n, sizeof *hills, higher);
    for (size_t i = 0; !rc && i < n && taken < HILLS; i++) {
        bool near = false;
        for (size_t j = 0; j < i && !near; j++)
            near = nrg_sensor_near(&hills[i].sensor, &hills[j].sensor, &step);
        if (near)
            continue;
        taken++;
        rc = climb_hill(w, &hills[i], &step, &best, &best_scales, &best_z);
    }
    free(starts);
    free(hills);
    if (!rc) {
        w->sensor = best;
        w->scales = best_scales;
    }
    return rc;
}

static struct nrg_sensor fine_step(const struct nrg_facts *f, const struct nrg_sensor *s)
{
    if (f->is_gauge)
        return (struct nrg_sensor){.delay_s = 2e-3,
                                   .width_s = f->update_s >= 0.5 ? 0 : s->width_s / 20};
    return (struct nrg_sensor){.delay_s = f->update_s / 1000,
                               .slew = f->update_s >= 0.05 ? 1e-6 : 1e-8};
}

/* Rows that are further off than the model's noise makes them: LIMIT standard deviations, at least.
 * Something ran there that nobody recorded. */
static int find_strays(struct work *w)
{
    struct nrg_design *d = &w->design;
    double *mean = nrg_calloc(d->k + 1, sizeof *mean), *y = nrg_calloc(d->n + 1, sizeof *y);
    int rc = mean && y ? find_mean(w, mean) : -ENOMEM;
    if (!rc)
        nrg_design_predict(d, mean, y);
    for (size_t i = 0; !rc && i < d->n; i++) {
        double off = fabs(d->y[i] - y[i]),
               sd = nrg_design_deviation(d, w->scales.noise, w->others_w, i);
        if (off > LIMIT * sd && !w->stray[i] && (double)w->n_strays < MOST_STRAYS * (double)d->n) {
            w->stray[i] = true;
            w->n_strays++;
        }
    }
    free(mean);
    free(y);
    return rc;
}

/* d(X mean)/d(theta i), of unit length, as a column. */
static int add_theta(struct work *w, const double *mean, size_t i)
{
    double little = nrg_sensor_little(&w->sensor, w->facts, i), sum = 0;
    struct nrg_design *d = &w->design;
    double *column = nrg_calloc(d->n + 1, sizeof *column),
           *back = nrg_calloc(d->n + 1, sizeof *back);
    int rc = column && back ? 0 : -ENOMEM;
    for (int side = 0; !rc && little > 0 && side < 2; side++) {
        struct nrg_sensor moved = w->sensor;
        struct nrg_design other;
        *nrg_sensor_parameter(&moved, i) += side ? -little : little;
        rc = make_design(w, &moved, &other);
        if (rc)
            break;
        nrg_design_predict(&other, mean, side ? back : column);
        nrg_design_release(&other);
    }
    for (size_t r = 0; !rc && r < d->n; r++) {
        column[r] -= back[r];
        sum += column[r] * column[r];
    }
    if (!rc && sum > 0) {
        nrg_scale(column, 1 / sqrt(sum), d->n);
        d->extra[d->n_extra++] = column;
        column = NULL;
    }
    free(column);
    free(back);
    return rc;
}

/* What each block of time leaves, as the covariance sees it: scores. Rows are whitened again. */
static int make_scores(struct nrg_model_fit *fit, const struct work *w)
{
    size_t k = fit->k + fit->n_extra, n = w->design.n;
    struct nrg_model_sums *part = nrg_calloc(SCORES, sizeof *part);
    fit->scores = nrg_arena_array(&fit->memory, SCORES * k + 1, sizeof *fit->scores);
    int rc = part && fit->scores ? 0 : -ENOMEM;
    for (size_t b = 0; !rc && b < SCORES; b++) {
        struct nrg_design slice = w->design; /* rows of the block alone */
        size_t from = n * b / SCORES, to = n * (b + 1) / SCORES;
        slice.n = to - from;
        slice.start += from;
        slice.y += from;
        slice.noise += from;
        for (size_t e = 0; e < slice.n_extra; e++)
            slice.extra[e] += from;
        rc = nrg_model_sums_init(&part[b], k);
        if (!rc)
            rc = nrg_design_sum(&slice, w->scales.noise, w->others_w, &part[b]);
        double *score = fit->scores + b * k;
        for (size_t i = 0; !rc && i < k; i++) {
            score[i] = part[b].gram.b[i];
            for (size_t j = 0; j < k; j++)
                score[i] -= part[b].gram.a[nrg_packed(i, j)] * fit->mean[j];
        }
        nrg_model_sums_release(&part[b]);
    }
    fit->n_scores = SCORES;
    free(part);
    return rc;
}

static int make_posterior(struct nrg_model_fit *fit, struct work *w)
{
    struct nrg_model_sums sums = {0};
    size_t k = fit->k + fit->n_extra, cells = k * (k + 1) / 2 + 1;
    fit->mean = nrg_arena_array(&fit->memory, k + 1, sizeof *fit->mean);
    fit->covariance = nrg_arena_array(&fit->memory, cells, sizeof *fit->covariance);
    fit->data2 = nrg_arena_array(&fit->memory, cells, sizeof *fit->data2);
    int rc = fit->memory.failed ? -ENOMEM : solve(w, &sums, fit->mean, fit->covariance);
    if (!rc) {
        memcpy(fit->data2, sums.gram.a, (cells - 1) * sizeof *fit->data2);
        fit->rows = sums.n;
    }
    nrg_model_sums_release(&sums);
    return rc ? rc : make_scores(fit, w);
}

/* rms of what the columns leave, over that of the rows. */
static int find_residual(struct nrg_model_fit *fit, const struct work *w)
{
    const struct nrg_design *d = &w->design;
    double *y = nrg_calloc(d->n + 1, sizeof *y), left = 0, all = 0;
    if (!y)
        return -ENOMEM;
    nrg_design_predict(d, fit->mean, y);
    for (size_t i = 0; i < d->n; i++) {
        left += (d->y[i] - y[i]) * (d->y[i] - y[i]);
        all += d->y[i] * d->y[i];
    }
    free(y);
    fit->residual = all > 0 ? sqrt(left / all) : 0;
    return 0;
}

static int finish(struct nrg_model_fit *fit, struct work *w)
{
    double *mean = nrg_calloc(w->design.k + 1, sizeof *mean);
    int rc = mean ? 0 : -ENOMEM;
    fit->k = w->design.k;
    memcpy(fit->first, w->design.first, sizeof fit->first);
    if (!rc)
        rc = make_posterior(fit, w);
    if (!rc)
        memcpy(mean, fit->mean, fit->k * sizeof *mean);
    for (size_t i = 0; !rc && i < NRG_SENSOR_PARAMETERS; i++)
        rc = add_theta(w, mean, i);
    fit->n_extra = w->design.n_extra;
    if (!rc)
        rc = make_posterior(fit, w);
    if (!rc)
        rc = find_residual(fit, w);
    free(mean);
    fit->sensor = w->sensor;
    fit->scales = w->scales;
    fit->log_z = w->log_z;
    return rc;
}

int nrg_model_fit_make(struct nrg_model_fit *fit, const struct nrg_facts *f)
{
    struct work w = {.facts = f, .others_w = f->mean_w};
    *fit = (struct nrg_model_fit){0};
    w.power_w = nrg_arena_array(&fit->memory, f->n_classes + 1, sizeof *w.power_w);
    if (!w.power_w)
        return -ENOMEM;
    for (size_t c = 0; c < f->n_classes; c++)
        w.power_w[c] = f->mean_w / 2;
    nrg_scales_start(&w.scales, f);
    w.stray = nrg_arena_array(&fit->memory, f->n + 1, sizeof *w.stray);
    int rc = w.stray ? find_sensor(&w) : -ENOMEM;
    if (!rc)
        rc = settle(&w);
    if (!rc)
        rc = find_strays(&w);
    if (!rc && w.n_strays) { /* they may have hidden the sensor's clock */
        nrg_scales_start(&w.scales, f);
        rc = find_sensor(&w);
    }
    for (int turn = 0; !rc && turn < TURNS; turn++) {
        rc = settle(&w);
        if (!rc)
            rc = refine(&w, &w.sensor, fine_step(f, &w.sensor), false);
    }
    if (!rc)
        rc = settle(&w);
    if (!rc)
        rc = finish(fit, &w);
    nrg_design_release(&w.design);
    if (rc)
        nrg_model_fit_release(fit);
    return rc;
}

void nrg_model_fit_release(struct nrg_model_fit *fit)
{
    nrg_arena_release(&fit->memory);
    *fit = (struct nrg_model_fit){0};
}

double nrg_model_fit_mean(const struct nrg_model_fit *fit, const double *l)
{
    double sum = 0;
    for (size_t i = 0; i < fit->k; i++)
        sum += l[i] * fit->mean[i];
    return sum;
}

static double form(const double *packed, size_t k, const double *l)
{
    double sum = 0;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; l[i] != 0 && j < k; j++)
            sum += l[i] * l[j] * packed[nrg_packed(i, j)];
    return sum;
}

/* v = l'Cl; v_d = l'CGCl is what noise makes of it; the scores say how much of that there was. */
double nrg_model_fit_variance(const struct nrg_model_fit *fit, const double *l)
{
    size_t k = fit->k + fit->n_extra;
    double *c = nrg_calloc(2 * k + 1, sizeof *c), seen = 0;
    if (!c)
        return INFINITY;
    memcpy(c + k, l, fit->k * sizeof *c);
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < fit->k; j++)
            c[i] += fit->covariance[nrg_packed(i, j)] * l[j];
    double variance = form(fit->covariance, k, c + k), data = form(fit->data2, k, c);
    for (size_t b = 0; b < fit->n_scores; b++) {
        double sum = 0;
        for (size_t i = 0; i < k; i++)
            sum += c[i] * fit->scores[b * k + i];
        seen += sum * sum;
    }
    double ratio = data > 0 ? seen * SCORES / (SCORES - 1) / data : 0;
    free(c);
    return variance + fmax(ratio / 1.5 - 1, 0) * data;
}
