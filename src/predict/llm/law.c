/*
 * See law.h. Least squares of ln(measured / predicted) by reweighting: with weights
 * 1 / (predicted x measured) a squared difference is the squared error in ln, to second order, and
 * each round is a linear system whose solution may not be negative.
 */
#include "predict/llm/law.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/nnls.h"
#include "predict/llm/transfer.h"
#include "predict/physical/conformal.h"

#define ROUNDS 12
/* Root mean square of errors on held-out models in the public data for the H100. */
#define USUAL_ERROR 0.15
/* What a stand-in for experts, and a made-up architecture, add to the half width, ln. */
#define STAND_IN_LN 0.7
#define GUESSED_LN  0.4
/* The least half width after training on one model. */
#define ONE_MODEL_LN 0.6931471805599453

const char *const nrg_llm_limit_names[NRG_LLM_LIMITS] = {"batch", "gpus", "context", "token_macs"};

const enum nrg_feature nrg_llm_term_columns[NRG_LLM_COUNTED] = {
    NRG_F_GPU_LAYERS,  NRG_F_DENSE_BYTES, NRG_F_EXPERT_BYTES, NRG_F_CACHE_BYTES,     NRG_F_MACS,
    NRG_F_PROMPT_MACS, NRG_F_ROUTED,      NRG_F_UNPACKED,     NRG_F_ACTIVATION_BYTES};

bool nrg_llm_has_rows(const struct nrg_dataset *set)
{
    return set->columns[NRG_F_GPU_LAYERS] && set->columns[NRG_F_GPUS];
}

bool nrg_llm_row_point(const struct nrg_dataset *set, size_t row, struct nrg_llm_point *p)
{
    bool whole = true;
    *p = (struct nrg_llm_point){.gpus = nrg_row_feature(set, row, NRG_F_GPUS),
                                .weight_bits = nrg_row_feature(set, row, NRG_F_WEIGHT_BITS)};
    for (int t = 0; t < NRG_LLM_COUNTED; t++) {
        p->terms[t] = nrg_row_feature(set, row, nrg_llm_term_columns[t]);
        whole &= p->terms[t] >= 0 && isfinite(p->terms[t]);
    }
    if (isnan(p->weight_bits)) /* data of earlier versions */
        p->weight_bits = p->terms[NRG_LLM_UNPACKED] > 0 ? 8 : 16;
    nrg_llm_derive(p->terms, p->gpus, p->weight_bits);
    p->limits[NRG_LLM_BATCH] = nrg_row_feature(set, row, NRG_F_BATCH);
    p->limits[NRG_LLM_GPUS] = p->gpus;
    p->limits[NRG_LLM_CONTEXT] = nrg_row_feature(set, row, NRG_F_SEQ);
    p->limits[NRG_LLM_TOKEN_MACS] = p->terms[NRG_LLM_MACS];
    return whole && p->gpus >= 1 && isfinite(p->gpus) && set->rows[row].level == NRG_NODE_MODEL;
}

struct nrg_llm_group nrg_llm_point_group(const struct nrg_llm_point *p)
{
    bool prompts = p->terms[NRG_LLM_PROMPT_MACS] > p->terms[NRG_LLM_MACS];
    return nrg_llm_group(p->terms[NRG_LLM_EXPERT_BYTES] > 0, p->weight_bits, prompts,
                         p->limits[NRG_LLM_CONTEXT], p->limits[NRG_LLM_BATCH]);
}

/* ---- fitting ---- */

struct sample {
    struct nrg_llm_point point;
    double energy_j, time_s; /* per output token; time NAN: unknown */
    uint32_t model;
};

struct samples {
    struct sample *items;
    size_t n;
    uint32_t models; /* numbers of models are below this */
};

static int collect(struct samples *all, const struct nrg_dataset *set, const bool *mask)
{
    struct nrg_name_list models;
    *all = (struct samples){.items = nrg_calloc(set->n + 1, sizeof *all->items)};
    if (!all->items || nrg_dataset_list(set, offsetof(struct nrg_row, model), &models))
        return -ENOMEM;
    for (size_t i = 0; i < set->n; i++) {
        struct sample *s = &all->items[all->n];
        if (!mask[i] || !nrg_llm_row_point(set, i, &s->point))
            continue;
        s->energy_j = set->rows[i].energy_j;
        s->time_s = nrg_row_feature(set, i, NRG_F_TIME_S);
        s->time_s = s->time_s > 0 && isfinite(s->time_s) ? s->time_s : NAN;
        s->model = models.of_row[i];
        all->n++;
    }
    all->models = (uint32_t)models.n;
    nrg_name_list_release(&models);
    return 0;
}

/* One of the two linear systems: of times, or of energies (with the static power first). */
struct target {
    bool time;
    const double *seconds; /* energies: launches are replaced by the time of the GPUs; NULL: not */
};

static double dot(const double *x, const double *prices)
{
    double sum = 0;
    for (int t = 0; t < NRG_LLM_TERMS; t++)
        sum += x[t] * prices[t];
    return sum;
}

/* The times that energies go with are measured ones; a row without one gets what the law says. */
static double regressors(const struct sample *s, struct target target, double *x)
{
    double gpus_s = s->time_s * s->point.gpus;
    for (int t = 0; t < NRG_LLM_TERMS; t++)
        x[t] = s->point.terms[t];
    if (target.time)
        return gpus_s;
    if (target.seconds)
        x[NRG_LLM_LAUNCHES] = isnan(gpus_s) ? dot(s->point.terms, target.seconds) : gpus_s;
    return s->energy_j;
}

/* Rows of model `without` are not used; -1: all are. */
static int solve(const struct samples *all, struct target target, int64_t without, double *prices)
{
    struct nrg_gram gram = {0};
    int rc = nrg_gram_grow(&gram, NRG_LLM_TERMS);
    for (int round = 0; !rc && round < ROUNDS; round++) {
        nrg_gram_clear(&gram);
        for (size_t i = 0; i < all->n; i++) {
            const struct sample *s = &all->items[i];
            double x[NRG_LLM_TERMS];
            if (s->model == without || (target.time && isnan(s->time_s)))
                continue;
            double y = regressors(s, target, x);
            double guess = round ? fmax(dot(x, prices), 1e-6 * y) : y;
            nrg_gram_add(&gram, x, NULL, 0, y, 1 / (guess * y));
        }
        rc = nrg_gram_nonnegative(&gram, NULL, 0, 0, NRG_RIDGE, prices);
    }
    nrg_gram_release(&gram);
    return rc;
}

static void note_ranges(struct nrg_llm_law *law, const struct samples *all, int64_t without)
{
    law->rows = law->timed_rows = 0;
    law->seen = 0;
    for (int l = 0; l < NRG_LLM_LIMITS; l++)
        law->limits[l] = NRG_NO_RANGE;
    for (size_t i = 0; i < all->n; i++) {
        const struct sample *s = &all->items[i];
        if (s->model == without)
            continue;
        law->rows++;
        law->timed_rows += isnan(s->time_s) ? 0 : 1;
        for (int t = 0; t < NRG_LLM_TERMS; t++)
            law->seen |= s->point.terms[t] > 0 ? 1u << t : 0;
        for (int l = 0; l < NRG_LLM_LIMITS; l++)
            nrg_range_extend(&law->limits[l], s->point.limits[l]);
    }
}

static int fit_prices(struct nrg_llm_law *law, const struct samples *all, int64_t without)
{
    *law = (struct nrg_llm_law){0};
    note_ranges(law, all, without);
    bool timed = 2 * law->timed_rows >= law->rows;
    if (!timed)
        law->timed_rows = 0;
    int rc = timed ? solve(all, (struct target){.time = true}, without, law->seconds) : 0;
    if (!rc)
        rc = solve(all, (struct target){.seconds = timed ? law->seconds : NULL}, without,
                   law->joules);
    if (timed) {
        law->static_w = law->joules[NRG_LLM_LAUNCHES];
        law->joules[NRG_LLM_LAUNCHES] = 0;
    }
    return rc;
}

/* ---- errors on models that were held out ---- */

struct errors {
    struct nrg_llm_miss *energy;
    struct nrg_residual *time;
    size_t n, n_time;
    double sum, time_sum;
};

static void hold_out(const struct samples *all, const struct nrg_llm_law *law, int64_t model,
                     struct errors *e)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct sample *s = &all->items[i];
        struct nrg_llm_estimate guess;
        if (model >= 0 && s->model != model)
            continue;
        nrg_llm_law_estimate(law, &s->point, &guess);
        struct nrg_llm_miss *miss = &e->energy[e->n++];
        *miss = (struct nrg_llm_miss){.group = nrg_llm_point_group(&s->point), .model = s->model};
        miss->error = guess.energy_j > 0 ? fabs(log(s->energy_j / guess.energy_j)) : 10;
        miss->error /= guess.farther;
        e->sum += fabs(guess.energy_j / s->energy_j - 1);
        if (isnan(s->time_s) || !(guess.time_s > 0))
            continue;
        e->time[e->n_time++] = (struct nrg_residual){
            .error = fabs(log(s->time_s / guess.time_s)), .weight = 1, .fold = s->model};
        e->time_sum += fabs(guess.time_s / s->time_s - 1);
    }
}

static int set_widths(struct nrg_llm_law *law, const struct errors *e, double confidence)
{
    struct nrg_conformal c;
    law->expected_error = e->n ? e->sum / (double)e->n : NAN;
    law->time_error = e->n_time ? e->time_sum / (double)e->n_time : NAN;
    law->time_q = NAN;
    int rc = nrg_llm_width_fit(&law->width, e->energy, e->n, USUAL_ERROR, confidence);
    if (rc || !e->n_time)
        return rc;
    rc = nrg_conformal_init(&c, e->time, e->n_time, USUAL_ERROR);
    if (rc)
        return rc;
    law->time_q = nrg_conformal_half(&c, -1, confidence);
    nrg_conformal_release(&c);
    return 0;
}

/* Rows of one model say nothing of others: at least from half to twice, and no expected error. */
static void distrust(struct nrg_llm_law *law)
{
    law->width.least = ONE_MODEL_LN;
    law->time_q = fmax(law->time_q, ONE_MODEL_LN);
    law->expected_error = law->time_error = NAN;
}

/* Each model in turn; with a single one its own rows. */
static int measure_errors(struct nrg_llm_law *law, const struct samples *all, double confidence)
{
    struct errors e = {.energy = nrg_calloc(all->n + 1, sizeof *e.energy),
                       .time = nrg_calloc(all->n + 1, sizeof *e.time)};
    int rc = e.energy && e.time ? 0 : -ENOMEM;
    for (uint32_t m = 0; m < all->models && !rc; m++) {
        struct nrg_llm_law without;
        size_t rows = 0;
        for (size_t i = 0; i < all->n; i++)
            rows += all->items[i].model == m;
        law->models += rows > 0;
        if (!rows || rows == all->n)
            continue;
        rc = fit_prices(&without, all, m);
        if (!rc)
            hold_out(all, &without, m, &e);
    }
    if (!rc && law->models == 1)
        hold_out(all, law, -1, &e);
    if (!rc)
        rc = set_widths(law, &e, confidence);
    if (!rc && law->models == 1)
        distrust(law);
    free(e.energy);
    free(e.time);
    return rc;
}

int nrg_llm_law_fit(struct nrg_llm_law *law, const struct nrg_dataset *set, const bool *mask,
                    double confidence, struct nrg_error *err)
{
    struct samples all;
    int rc = collect(&all, set, mask);
    *law = (struct nrg_llm_law){0};
    if (!rc && !all.n)
        rc = nrg_fail(err, -ENODATA, NULL,
                      "no row of a language model has all that a prediction needs");
    else if (!rc)
        rc = fit_prices(law, &all, -1);
    if (!rc)
        rc = measure_errors(law, &all, confidence);
    free(all.items);
    return rc == -ENOMEM ? nrg_fail(err, rc, NULL, "out of memory") : rc;
}

/* ---- predicting ---- */

/* Experts cost what other weights do where none were measured. */
static double price_of(const struct nrg_llm_law *law, const double *prices, int term)
{
    bool unseen = term == NRG_LLM_EXPERT_BYTES && !(law->seen >> term & 1);
    return prices[unseen ? NRG_LLM_DENSE_BYTES : term];
}

static double widen(const struct nrg_llm_law *law, const struct nrg_llm_point *p,
                    struct nrg_llm_estimate *out)
{
    double far = 0;
    for (int l = 0; l < NRG_LLM_LIMITS; l++) {
        out->beyond[l] = nrg_range_beyond(law->limits[l], p->limits[l]);
        far += out->beyond[l];
    }
    out->farther = 1 + far;
    double half = hypot(nrg_llm_width_half(&law->width, nrg_llm_point_group(p)), law->carried_ln);
    return half * out->farther + (out->stand_in ? STAND_IN_LN : 0) + (p->guessed ? GUESSED_LN : 0);
}

void nrg_llm_law_estimate(const struct nrg_llm_law *law, const struct nrg_llm_point *p,
                          struct nrg_llm_estimate *out)
{
    double time_s = 0;
    *out = (struct nrg_llm_estimate){.time_s = NAN, .time_low_s = NAN, .time_high_s = NAN};
    for (int t = 0; t < NRG_LLM_TERMS; t++) {
        double own_s = price_of(law, law->seconds, t) * p->terms[t];
        out->term_j[t] = price_of(law, law->joules, t) * p->terms[t] + law->static_w * own_s;
        out->energy_j += out->term_j[t];
        out->static_j += law->static_w * own_s;
        time_s += own_s / p->gpus;
    }
    out->prompt_j = out->term_j[NRG_LLM_PROMPT_MACS];
    out->stand_in = p->terms[NRG_LLM_EXPERT_BYTES] > 0 && !(law->seen >> NRG_LLM_EXPERT_BYTES & 1);
    out->half = widen(law, p, out);
    out->low_j = out->energy_j * exp(-out->half);
    out->high_j = out->energy_j * exp(out->half);
    if (!law->timed_rows)
        return;
    double more = fmax(out->half - law->width.any, 0);
    out->time_s = time_s;
    out->time_low_s = time_s * exp(-law->time_q - more);
    out->time_high_s = time_s * exp(law->time_q + more);
}

/* ---- as a predictor ---- */

static int train(void *state, const struct nrg_dataset *set, const bool *mask,
                 struct nrg_error *err)
{
    struct nrg_llm_state *s = state;
    if (s->device)
        return 0;
    return nrg_llm_law_fit(&s->law, set, mask, s->confidence, err);
}

static void forget(void *state)
{
    (void)state;
}

static void predict(void *state, const struct nrg_dataset *set, size_t row,
                    struct nrg_estimate *out)
{
    const struct nrg_llm_state *s = state;
    struct nrg_llm_law law = s->law;
    struct nrg_llm_point point;
    struct nrg_llm_estimate e;
    *out = (struct nrg_estimate){.energy_j = NAN, .low_j = NAN, .high_j = NAN};
    if (!nrg_llm_row_point(set, row, &point) ||
        (s->gpu && nrg_llm_law_transfer(&law, s->device, s->gpu, point.weight_bits, NULL)))
        return;
    nrg_llm_law_estimate(&law, &point, &e);
    out->energy_j = e.energy_j;
    out->low_j = e.low_j;
    out->high_j = e.high_j;
}

struct nrg_predictor nrg_llm_predictor(struct nrg_llm_state *state)
{
    return (struct nrg_predictor){"llm", train, forget, predict, state};
}
