/*
 * See layer.h. Each of the three layer types has two regressions, of time and of power. The rows
 * that cross-validation held out give the interval of their product, energy.
 */
#include "predict/compat/layer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

#define DEGREE  3
#define ALPHAS  100
#define FOLDS   10
#define MOST_IN 13

static const enum nrg_feature conv_inputs[] = {
    NRG_F_BATCH,     NRG_F_IN_0,     NRG_F_IN_1,     NRG_F_IN_2,     NRG_F_OUT_0,
    NRG_F_OUT_1,     NRG_F_OUT_2,    NRG_F_KERNEL_0, NRG_F_KERNEL_1, NRG_F_PADDING_0,
    NRG_F_PADDING_1, NRG_F_STRIDE_0, NRG_F_STRIDE_1};
static const enum nrg_feature pool_inputs[] = {
    NRG_F_BATCH, NRG_F_IN_0,     NRG_F_IN_1,     NRG_F_IN_2,     NRG_F_OUT_0,   NRG_F_OUT_1,
    NRG_F_OUT_2, NRG_F_KERNEL_0, NRG_F_KERNEL_1, NRG_F_STRIDE_0, NRG_F_STRIDE_1};
static const enum nrg_feature dense_inputs[] = {NRG_F_BATCH, NRG_F_IN_0, NRG_F_OUT_0};

static const struct {
    const enum nrg_feature *inputs;
    size_t n, terms;
} types[NRG_LAYER_TYPES] = {
    [NRG_LAYER_CONV] = {conv_inputs, 13, 2},
    [NRG_LAYER_POOL] = {pool_inputs, 11, 3},
    [NRG_LAYER_DENSE] = {dense_inputs, 3, 0},
};

size_t nrg_layer_inputs(int type, const enum nrg_feature **inputs)
{
    *inputs = types[type].inputs;
    return types[type].n;
}

void nrg_layer_release(struct nrg_layer_model *model)
{
    for (int t = 0; t < NRG_LAYER_TYPES; t++)
        for (int k = 0; k < NRG_LAYER_TARGETS; k++) {
            nrg_scaler_release(&model->fits[t][k].scaler);
            free(model->fits[t][k].coefficients);
        }
    *model = (struct nrg_layer_model){0};
}

/* ---- columns ---- */

size_t nrg_layer_columns(int type)
{
    return nrg_poly_count(types[type].n, DEGREE) + types[type].terms;
}

/* The products with a meaning: corrected, or as the study had them. */
static void add_terms(int type, bool original, const double *f, double *out)
{
    double in = f[NRG_F_IN_0] * f[NRG_F_IN_1] * f[NRG_F_IN_2];
    double result = f[NRG_F_OUT_0] * f[NRG_F_OUT_1] * f[NRG_F_OUT_2];
    double window = f[NRG_F_KERNEL_0] * f[NRG_F_KERNEL_1];
    if (type == NRG_LAYER_CONV) {
        double groups = isnan(f[NRG_F_GROUPS]) || f[NRG_F_GROUPS] < 1 ? 1 : f[NRG_F_GROUPS];
        out[0] = original ? in * window * f[NRG_F_OUT_2] : f[NRG_F_IN_0] / groups * window * result;
        out[1] = out[0] * f[NRG_F_BATCH];
    } else if (type == NRG_LAYER_POOL) {
        out[0] = f[NRG_F_BATCH] * in;
        out[1] = f[NRG_F_BATCH] * result;
        out[2] = f[NRG_F_BATCH] * window * (original ? in : result);
    }
}

/* The polynomial is of ln(1 + x) for a convolution's power. False: a feature is missing. */
static bool make_columns(int type, enum nrg_layer_target target, bool original, const double *f,
                         double *out)
{
    double x[MOST_IN];
    size_t n = types[type].n;
    for (size_t i = 0; i < n; i++) {
        x[i] = f[types[type].inputs[i]];
        if (isnan(x[i]))
            return false;
        if (type == NRG_LAYER_CONV && target == NRG_LAYER_POWER)
            x[i] = log1p(x[i]);
    }
    nrg_poly_expand(x, n, DEGREE, out);
    add_terms(type, original, f, out + nrg_poly_count(n, DEGREE));
    return true;
}

/* ---- fitting ---- */

struct sample {
    size_t row;
    double time_s, power_w;
};

static bool features_of(const struct nrg_dataset *set, size_t row, double *f)
{
    for (int i = 0; i < NRG_FEATURES; i++)
        f[i] = nrg_row_feature(set, row, (enum nrg_feature)i);
    return f[NRG_F_TIME_S] > 0;
}

static size_t list_samples(const struct nrg_dataset *set, const bool *mask, int type, bool original,
                           struct sample *out)
{
    double f[NRG_FEATURES], *scratch = nrg_calloc(nrg_layer_columns(type) + 1, sizeof *scratch);
    size_t n = 0;
    for (size_t i = 0; scratch && i < set->n; i++) {
        const struct nrg_row *row = &set->rows[i];
        if ((mask && !mask[i]) || row->level != NRG_NODE_OPERATOR || row->measurement != i ||
            nrg_layer_type_find(row->kind) != type || !features_of(set, i, f) ||
            !make_columns(type, NRG_LAYER_TIME, original, f, scratch))
            continue;
        out[n++] = (struct sample){i, f[NRG_F_TIME_S], row->energy_j / f[NRG_F_TIME_S]};
    }
    free(scratch);
    return n;
}

static int fit_target(struct nrg_layer_fit *fit, const struct nrg_dataset *set, int type,
                      enum nrg_layer_target target, bool original, const struct sample *samples,
                      size_t n, double *held_out)
{
    size_t columns = nrg_layer_columns(type);
    double *x = nrg_calloc(n * columns + n + 1, sizeof *x), *y = x ? x + n * columns : NULL;
    double f[NRG_FEATURES];
    struct nrg_lasso lasso = {0};
    struct nrg_lasso_options o = {.alphas = ALPHAS,
                                  .folds = FOLDS,
                                  .positive = type != NRG_LAYER_POOL || target != NRG_LAYER_TIME};
    int rc = x ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++) {
        features_of(set, samples[i].row, f);
        make_columns(type, target, original, f, x + i * columns);
        y[i] = target == NRG_LAYER_TIME ? samples[i].time_s : samples[i].power_w;
    }
    if (!rc)
        rc = nrg_scaler_fit(&fit->scaler, x, NULL, n, columns);
    for (size_t i = 0; !rc && i < n; i++)
        nrg_scaler_apply(&fit->scaler, x + i * columns);
    if (!rc)
        rc = nrg_lasso_fit(&lasso, x, y, n, columns, &o);
    if (!rc) {
        fit->n = columns;
        fit->intercept = lasso.intercept;
        fit->alpha = lasso.alpha;
        fit->coefficients = lasso.coefficients;
        lasso.coefficients = NULL;
        memcpy(held_out, lasso.held_out, n * sizeof *held_out);
    }
    nrg_lasso_release(&lasso);
    free(x);
    return rc;
}

/* From the errors of energy on rows that cross-validation held out. */
static void set_interval(struct nrg_layer_model *m, int type, const struct nrg_dataset *set,
                         const struct sample *samples, size_t n, const double *time,
                         const double *power, double *errors, double confidence)
{
    double sum = 0;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        double energy = set->rows[samples[i].row].energy_j, got = time[i] * power[i];
        if (!(got > 0))
            got = energy * 1e-3; /* a negative time or power counts as a large error */
        sum += fabs(got - energy) / energy;
        errors[used++] = fabs(log(energy / got));
    }
    nrg_sort(errors, used);
    size_t at = (size_t)ceil(confidence * (double)(used + 1));
    m->q[type] = errors[at < used ? at : used - 1];
    m->expected_error[type] = sum / (double)used;
}

static void find_range(struct nrg_layer_model *m, int type, const struct nrg_dataset *set,
                       const struct sample *samples, size_t n)
{
    for (int f = 0; f < NRG_FEATURES; f++) {
        m->range[type][f] = NRG_NO_RANGE;
        for (size_t i = 0; i < n; i++)
            nrg_range_extend(&m->range[type][f],
                             nrg_row_feature(set, samples[i].row, (enum nrg_feature)f));
    }
}

static int fit_type(struct nrg_layer_model *m, const struct nrg_dataset *set, const bool *mask,
                    int type, double confidence)
{
    struct sample *samples = nrg_calloc(set->n + 1, sizeof *samples);
    double *held = nrg_calloc(3 * set->n + 1, sizeof *held);
    int rc = samples && held ? 0 : -ENOMEM;
    size_t n = rc ? 0 : list_samples(set, mask, type, m->original, samples);
    m->q[type] = m->expected_error[type] = NAN;
    for (int k = 0; !rc && n >= 2 && k < NRG_LAYER_TARGETS; k++)
        rc = fit_target(&m->fits[type][k], set, type, (enum nrg_layer_target)k, m->original,
                        samples, n, held + (size_t)k * set->n);
    if (!rc && n >= 2) {
        m->rows[type] = n;
        find_range(m, type, set, samples, n);
        set_interval(m, type, set, samples, n, held, held + set->n, held + 2 * set->n, confidence);
    }
    free(samples);
    free(held);
    return rc;
}

int nrg_layer_fit(struct nrg_layer_model *m, const struct nrg_dataset *set, const bool *mask,
                  bool original, double confidence, struct nrg_error *err)
{
    size_t rows = 0;
    int rc = 0;
    *m = (struct nrg_layer_model){.original = original};
    for (int t = 0; !rc && t < NRG_LAYER_TYPES; t++) {
        rc = fit_type(m, set, mask, t, confidence);
        rows += m->rows[t];
    }
    if (rc)
        nrg_fail(err, rc, NULL, "out of memory");
    else if (!rows)
        rc = nrg_fail(err, -ENODATA, NULL,
                      "no layer type (convolutional, pooling, dense) has two layers or more with "
                      "sizes, time and energy");
    if (rc)
        nrg_layer_release(m);
    return rc;
}

/* ---- predicting ---- */

static double predict_target(const struct nrg_layer_fit *fit, double *x)
{
    double y = fit->intercept;
    nrg_scaler_apply(&fit->scaler, x);
    for (size_t j = 0; j < fit->n; j++)
        y += fit->coefficients[j] * x[j];
    return y;
}

int nrg_layer_predict(const struct nrg_layer_model *m, int type, const double *f,
                      struct nrg_layer_estimate *out)
{
    double *x, values[NRG_LAYER_TARGETS];
    *out = (struct nrg_layer_estimate){0};
    if (type < 0 || !m->rows[type] || !(x = nrg_calloc(nrg_layer_columns(type) + 1, sizeof *x)))
        return -ENODATA;
    for (int k = 0; k < NRG_LAYER_TARGETS; k++) {
        if (!make_columns(type, (enum nrg_layer_target)k, m->original, f, x)) {
            free(x);
            return -ENODATA;
        }
        values[k] = predict_target(&m->fits[type][k], x);
    }
    free(x);
    for (size_t i = 0; i < types[type].n; i++)
        out->energy.beyond =
            fmax(out->energy.beyond,
                 nrg_range_beyond(m->range[type][types[type].inputs[i]], f[types[type].inputs[i]]));
    out->time_s = fmax(0, values[NRG_LAYER_TIME]);
    out->power_w = fmax(0, values[NRG_LAYER_POWER]);
    out->energy.energy_j = out->time_s * out->power_w;
    out->energy.widen = m->q[type] * out->energy.beyond;
    double width = exp(m->q[type] + out->energy.widen);
    out->energy.low_j = out->energy.energy_j / width;
    out->energy.high_j = out->energy.energy_j * width;
    return 0;
}

/* ---- the predictor ---- */

static int layer_train(void *state, const struct nrg_dataset *set, const bool *mask,
                       struct nrg_error *err)
{
    struct nrg_layer_state *s = state;
    return nrg_layer_fit(&s->model, set, mask, s->original, s->confidence, err);
}

static void layer_forget(void *state)
{
    nrg_layer_release(&((struct nrg_layer_state *)state)->model);
}

static void layer_predict(void *state, const struct nrg_dataset *set, size_t row,
                          struct nrg_estimate *out)
{
    const struct nrg_layer_state *s = state;
    struct nrg_layer_estimate e;
    double f[NRG_FEATURES];
    features_of(set, row, f);
    if (nrg_layer_predict(&s->model, nrg_layer_type_find(set->rows[row].kind), f, &e))
        e.energy.energy_j = NAN;
    *out = e.energy;
}

struct nrg_predictor nrg_layer_predictor(struct nrg_layer_state *state)
{
    return (struct nrg_predictor){"layer", layer_train, layer_forget, layer_predict, state};
}
