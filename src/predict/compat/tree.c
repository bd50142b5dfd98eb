/*
 * See tree.h. The tree of a model at one size is kept as its distinct measurements with how often
 * each occurs: 20 nodes instead of 214, and the same sums and gradients.
 */
#include "predict/compat/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linalg.h"
#include "base/mem.h"
#include "predict/compat/poly.h"

#define DEGREE   3
#define EPOCHS   8
#define RATE     1e-3
#define BETA_1   0.9
#define BETA_2   0.999
#define EPSILON  1e-8
#define CAP      0.1 /* what a weight may differ from 1 */
#define MOST_RAW 14

/* Ordinary least squares of one kind. */
struct regressor {
    const char *kind;
    struct nrg_scaler scaler;
    double coefficients[MOST_RAW + 1];
};

struct nrg_tree_model {
    size_t n_raw, n_phi;
    struct regressor *regressors;
    size_t n_regressors, cap_regressors;
    struct nrg_scaler scaler;
    double *phi;      /* n rows of n_phi; NULL for the sum */
    double *weights;  /* n_phi, then the bias; owns the next two */
    double *gradient; /* n_phi + 1 */
    double *moments;  /* 2 x (n_phi + 1) */
    double steps;
    double *operator_j; /* per row: predicted energy, NAN when it can't be; owns the next four */
    double *energy, *adjoint, *squashed, *occurs; /* per row, for the current tree */
};

static const enum nrg_feature specs[] = {NRG_F_PARAMS, NRG_F_BATCH, NRG_F_SEQ, NRG_F_SOURCE_FLOPS,
                                         NRG_F_SOURCE_BYTES};
static const enum nrg_feature resources[] = {
    NRG_F_CPU_UTIL, NRG_F_MEM_UTIL,   NRG_F_GPU_UTIL, NRG_F_GPU_MEM_UTIL,
    NRG_F_GPU_HZ,   NRG_F_GPU_MEM_HZ, NRG_F_TIME_S,   NRG_F_GPU_ENERGY_J};

/* Parameters, input size, batch, sequence, FLOPs, bytes, then utilisation. False: one is missing.
 */
static bool raw_features(const struct nrg_dataset *set, size_t row, size_t n, double *x)
{
    size_t at = 0;
    x[at++] = nrg_row_feature(set, row, specs[0]);
    x[at++] = nrg_row_feature(set, row, NRG_F_BATCH) * nrg_row_feature(set, row, NRG_F_SEQ);
    for (size_t i = 1; i < sizeof specs / sizeof *specs; i++)
        x[at++] = nrg_row_feature(set, row, specs[i]);
    for (size_t i = 0; at < n; i++)
        x[at++] = nrg_row_feature(set, row, resources[i]);
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return false;
    return true;
}

static void free_model(struct nrg_tree_model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_regressors; i++)
        nrg_scaler_release(&m->regressors[i].scaler);
    free(m->regressors);
    nrg_scaler_release(&m->scaler);
    free(m->phi);
    free(m->operator_j);
    free(m->weights);
    free(m);
}

/* ---- operators ---- */

/* Rows of one kind (NULL: all nodes) with mask, packed; returns how many. */
static size_t pack_rows(const struct nrg_dataset *set, const bool *mask, const char *kind,
                        size_t n_raw, double *x, double *weights, double *energy)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        const struct nrg_row *row = &set->rows[i];
        if (!mask[i] || (kind && (row->kind != kind || row->level != NRG_NODE_OPERATOR)) ||
            !raw_features(set, i, n_raw, x + n * n_raw))
            continue;
        weights[n] = (double)row->multiplicity;
        energy[n++] = row->energy_j;
    }
    return n;
}

static int fit_kind(struct nrg_tree_model *m, const struct nrg_dataset *set, const bool *mask,
                    const char *kind, double *x, double *weights, double *energy)
{
    struct nrg_gram gram = {0};
    size_t n = m->n_raw, rank, rows = pack_rows(set, mask, kind, n, x, weights, energy);
    if (nrg_reserve(&m->regressors, &m->cap_regressors, m->n_regressors + 1, sizeof *m->regressors))
        return -ENOMEM;
    struct regressor *r = &m->regressors[m->n_regressors];
    *r = (struct regressor){.kind = kind};
    if (nrg_scaler_fit(&r->scaler, x, weights, rows, n))
        return -ENOMEM;
    m->n_regressors++;
    int rc = nrg_gram_grow(&gram, n + 1);
    for (size_t i = 0; !rc && i < rows; i++) {
        double row[MOST_RAW + 1] = {1};
        memcpy(row + 1, x + i * n, n * sizeof *row);
        nrg_scaler_apply(&r->scaler, row + 1);
        nrg_gram_add(&gram, row, NULL, 0, 0, weights[i]);
        for (size_t j = 0; j <= n;
             j++) /* in this order: nearly dependent columns are sensitive to it */
            gram.b[j] += weights[i] * row[j] * energy[i];
    }
    if (!rc)
        rc = nrg_gram_least_squares(&gram, r->coefficients, &rank);
    nrg_gram_release(&gram);
    return rc;
}

static struct regressor *regressor_of(struct nrg_tree_model *m, const char *kind)
{
    for (size_t i = 0; i < m->n_regressors; i++)
        if (m->regressors[i].kind == kind)
            return &m->regressors[i];
    return NULL;
}

static int fit_operators(struct nrg_tree_model *m, const struct nrg_dataset *set, const bool *mask)
{
    double *x = nrg_calloc(set->n * (m->n_raw + 2) + 1, sizeof *x);
    int rc = x ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < set->n; i++)
        if (mask[i] && set->rows[i].level == NRG_NODE_OPERATOR &&
            !regressor_of(m, set->rows[i].kind))
            rc = fit_kind(m, set, mask, set->rows[i].kind, x, x + set->n * m->n_raw,
                          x + set->n * (m->n_raw + 1));
    if (!rc) { /* for modules: all nodes of the training models */
        size_t rows = pack_rows(set, mask, NULL, m->n_raw, x, x + set->n * m->n_raw,
                                x + set->n * (m->n_raw + 1));
        rc = nrg_scaler_fit(&m->scaler, x, x + set->n * m->n_raw, rows, m->n_raw);
    }
    free(x);
    return rc;
}

static void predict_operators(struct nrg_tree_model *m, const struct nrg_dataset *set)
{
    for (size_t i = 0; i < set->n; i++) {
        double x[MOST_RAW];
        struct regressor *r = regressor_of(m, set->rows[i].kind);
        m->operator_j[i] = NAN;
        if (set->rows[i].level != NRG_NODE_OPERATOR || !r || !raw_features(set, i, m->n_raw, x))
            continue;
        nrg_scaler_apply(&r->scaler, x);
        m->operator_j[i] = r->coefficients[0];
        for (size_t j = 0; j < m->n_raw; j++)
            m->operator_j[i] += r->coefficients[j + 1] * x[j];
    }
}

static void expand_rows(struct nrg_tree_model *m, const struct nrg_dataset *set)
{
    for (size_t i = 0; i < set->n; i++) {
        double x[MOST_RAW];
        if (!raw_features(set, i, m->n_raw, x))
            memset(x, 0, sizeof x);
        else
            nrg_scaler_apply(&m->scaler, x);
        nrg_poly_expand(x, m->n_raw, DEGREE, m->phi + i * m->n_phi);
    }
}

/* ---- trees ---- */

static double weighted_sum(const struct nrg_tree_model *m, size_t row)
{
    const double *phi = m->phi + row * m->n_phi;
    double sum = m->weights[m->n_phi];
    for (size_t j = 0; j < m->n_phi; j++)
        sum += m->weights[j] * phi[j];
    return sum;
}

/* A leaf of the tree: an operator, or a module that has no parts. */
static bool is_leaf(const struct nrg_row *row)
{
    return !row->n_parts;
}

/* Energy of a row from its parts, which stand before it and have theirs. */
static double compose_energy(const struct nrg_tree_model *m, const struct nrg_dataset *set,
                             size_t i, enum nrg_tree_variant variant, bool measured)
{
    const struct nrg_row *row = &set->rows[i];
    double sum = 0;
    if (variant == NRG_TREE_UNSTRUCTURED)
        return weighted_sum(m, i);
    for (uint32_t p = 0; p < row->n_parts; p++) {
        struct nrg_module_part part = set->parts[row->first_part + p];
        double child = measured ? set->rows[part.row].energy_j : m->energy[part.row];
        double weight = variant == NRG_TREE_SUM ? 1 : 1 + CAP * m->squashed[part.row];
        sum += part.count * weight * child;
    }
    return sum;
}

static void predict_node(struct nrg_tree_model *m, const struct nrg_dataset *set, size_t i,
                         enum nrg_tree_variant variant, bool measured)
{
    bool leaf = is_leaf(&set->rows[i]);
    if (variant != NRG_TREE_SUM && variant != NRG_TREE_UNSTRUCTURED)
        m->squashed[i] = tanh(weighted_sum(m, i));
    m->energy[i] = leaf ? m->operator_j[i] : compose_energy(m, set, i, variant, measured);
}

/* Adds the gradient of (E - g)^2 / g^2 of all nodes below the root that are not leaves. */
static void add_gradient(struct nrg_tree_model *m, const struct nrg_dataset *set,
                         const size_t *order, size_t n, const struct nrg_tree_state *state)
{
    bool stepwise = state->variant == NRG_TREE_STEPWISE;
    for (size_t k = 0; k < n; k++) {
        size_t i = order[k];
        const struct nrg_row *row = &set->rows[i];
        if (is_leaf(row))
            continue;
        double own =
            m->occurs[i] * 2 * (m->energy[i] - row->energy_j) / (row->energy_j * row->energy_j);
        m->adjoint[i] += own;
        if (state->variant == NRG_TREE_UNSTRUCTURED) {
            for (size_t j = 0; j < m->n_phi; j++)
                m->gradient[j] += own * m->phi[i * m->n_phi + j];
            m->gradient[m->n_phi] += own;
            continue;
        }
        for (uint32_t p = 0; p < row->n_parts; p++) {
            struct nrg_module_part part = set->parts[row->first_part + p];
            double t = m->squashed[part.row];
            double child = stepwise ? set->rows[part.row].energy_j : m->energy[part.row];
            double slope = m->adjoint[i] * part.count * child * CAP * (1 - t * t);
            const double *phi = m->phi + part.row * m->n_phi;
            for (size_t j = 0; j < m->n_phi; j++)
                m->gradient[j] += slope * phi[j];
            m->gradient[m->n_phi] += slope;
            if (!stepwise)
                m->adjoint[part.row] += m->adjoint[i] * part.count * (1 + CAP * t);
        }
    }
}

/* Rows of the tree below `root`, parts last, and how often each occurs. */
static size_t list_tree(struct nrg_tree_model *m, const struct nrg_dataset *set, size_t root,
                        size_t *order)
{
    size_t n = 0;
    m->occurs[root] = 1;
    for (size_t i = root + 1; i-- > 0;) { /* parts stand before what they are parts of */
        if (m->occurs[i] <= 0)
            continue;
        order[n++] = i;
        const struct nrg_row *row = &set->rows[i];
        for (uint32_t p = 0; p < row->n_parts; p++) {
            struct nrg_module_part part = set->parts[row->first_part + p];
            m->occurs[part.row] += m->occurs[i] * part.count;
        }
    }
    return n;
}

static void adam_step(struct nrg_tree_model *m)
{
    size_t n = m->n_phi + 1;
    m->steps++;
    double first = 1 - pow(BETA_1, m->steps), second = 1 - pow(BETA_2, m->steps);
    for (size_t j = 0; j < n; j++) {
        double g = m->gradient[j], *mean = &m->moments[j], *square = &m->moments[n + j];
        *mean = BETA_1 * *mean + (1 - BETA_1) * g;
        *square = BETA_2 * *square + (1 - BETA_2) * g * g;
        m->weights[j] -= RATE * (*mean / first) / (sqrt(*square / second) + EPSILON);
        m->gradient[j] = 0;
    }
}

/* Whether all leaves have a prediction; without them a tree can't be trained on. */
static bool is_complete(const struct nrg_tree_model *m, const struct nrg_dataset *set,
                        const size_t *order, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (is_leaf(&set->rows[order[k]]) && isnan(m->operator_j[order[k]]))
            return false;
    return true;
}

static void learn_tree(struct nrg_tree_model *m, const struct nrg_dataset *set, size_t root,
                       size_t *order, const struct nrg_tree_state *state)
{
    size_t n = list_tree(m, set, root, order);
    if (is_complete(m, set, order, n)) {
        for (size_t k = n; k-- > 0;)
            predict_node(m, set, order[k], state->variant, state->variant == NRG_TREE_STEPWISE);
        add_gradient(m, set, order, n, state);
        adam_step(m);
    }
    for (size_t k = 0; k < n; k++)
        m->occurs[order[k]] = m->adjoint[order[k]] = 0;
}

/* Uniform in [-1, 1): splitmix64. */
static double next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / 4503599627370496.0 - 1;
}

static int learn_weights(struct nrg_tree_model *m, const struct nrg_dataset *set, const bool *mask,
                         const struct nrg_tree_state *state)
{
    uint64_t random = state->seed;
    size_t *order = nrg_calloc(set->n + 1, sizeof *order);
    if (!order)
        return -ENOMEM;
    for (size_t j = 0; j <= m->n_phi; j++)
        m->weights[j] = next_random(&random) / sqrt((double)m->n_phi);
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (size_t i = 0; i < set->n; i++)
            if (mask[i] && set->rows[i].level == NRG_NODE_MODEL)
                learn_tree(m, set, i, order, state);
    free(order);
    return 0;
}

/* ---- the predictor ---- */

static struct nrg_tree_model *new_model(const struct nrg_dataset *set,
                                        const struct nrg_tree_state *state)
{
    struct nrg_tree_model *m = nrg_calloc(1, sizeof *m);
    size_t n = set->n + 1;
    if (!m)
        return NULL;
    m->n_raw = state->features == NRG_SET_ALL ? 14 : 6;
    m->n_phi = nrg_poly_count(m->n_raw, DEGREE);
    m->operator_j = nrg_calloc(5 * n, sizeof(double));
    m->weights = nrg_calloc(4 * (m->n_phi + 1), sizeof(double));
    m->phi = state->variant == NRG_TREE_SUM ? NULL : nrg_calloc(n * m->n_phi, sizeof(double));
    if (!m->operator_j || !m->weights || (!m->phi && state->variant != NRG_TREE_SUM)) {
        free_model(m);
        return NULL;
    }
    m->gradient = m->weights + m->n_phi + 1;
    m->moments = m->gradient + m->n_phi + 1;
    m->energy = m->operator_j + n;
    m->adjoint = m->energy + n;
    m->squashed = m->adjoint + n;
    m->occurs = m->squashed + n;
    return m;
}

static int tree_train(void *arg, const struct nrg_dataset *set, const bool *mask,
                      struct nrg_error *err)
{
    struct nrg_tree_state *state = arg;
    struct nrg_tree_model *m = state->model = new_model(set, state);
    int rc = m ? fit_operators(m, set, mask) : -ENOMEM;
    if (!rc && !m->n_regressors)
        return nrg_fail(err, -ENODATA, NULL,
                        "no operator has the features of the earlier system: parameters, batch, "
                        "sequence, and FLOPs and bytes by its own counts");
    if (!rc) {
        predict_operators(m, set);
        if (state->variant != NRG_TREE_SUM) {
            expand_rows(m, set);
            rc = learn_weights(m, set, mask, state);
        }
    }
    for (size_t i = 0; !rc && i < set->n; i++)
        predict_node(m, set, i, state->variant, false);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}

static void tree_forget(void *arg)
{
    struct nrg_tree_state *state = arg;
    free_model(state->model);
    state->model = NULL;
}

static void tree_predict(void *arg, const struct nrg_dataset *set, size_t row,
                         struct nrg_estimate *out)
{
    const struct nrg_tree_state *state = arg;
    *out =
        (struct nrg_estimate){.energy_j = state->model->energy[row], .low_j = NAN, .high_j = NAN};
}

struct nrg_predictor nrg_tree_predictor(struct nrg_tree_state *state)
{
    return (struct nrg_predictor){"tree", tree_train, tree_forget, tree_predict, state};
}
