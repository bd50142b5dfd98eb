/*
 * Intervals of the physical model: how wrong it is on models that it has not seen. Every model of
 * the training data is held out in turn, the rest is fitted, and |ln(measured / predicted)| of the
 * held-out rows is kept, once for each of the rows that a measurement stands for. The interval's
 * half width is the quantile of that for the confidence asked for (split conformal, over models).
 *
 * Rows of one model are wrong together, so what counts for a quantile's own error is how many
 * (model, kind) pairs there are, not how many rows: Student's t of that number over the normal
 * quantile widens it.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/kinds.h"
#include "predict/physical/fit.h"

#define ROW_FOLDS  5  /* of a data set with one model */
#define MOST_FOLDS 20 /* several models are held out at once when there are more */

struct residual {
    double error, weight;
    enum nrg_node_level level;
    const char *group, *model, *kind;
};

struct residuals {
    struct residual *items;
    size_t n, cap;
};

static int by_error(const void *a, const void *b)
{
    const struct residual *x = a, *y = b;
    return x->error < y->error ? -1 : x->error > y->error;
}

/* Of those of a level, and of a group where that is not NULL; sorted by error. */
static double quantile(const struct residuals *r, enum nrg_node_level level, const char *group,
                       double part)
{
    double total = 0, sum = 0, last = NAN;
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].level == level && (!group || !strcmp(r->items[i].group, group)))
            total += r->items[i].weight;
    for (size_t i = 0; i < r->n && (isnan(last) || sum < part * total); i++) {
        if (r->items[i].level != level || (group && strcmp(r->items[i].group, group)))
            continue;
        sum += r->items[i].weight;
        last = r->items[i].error;
    }
    return last;
}

/* Quantiles of the normal and of Student's distribution (Cornish and Fisher's expansion). */
static double normal_quantile(double p)
{
    double low = 0, high = 8;
    for (int i = 0; i < 60; i++) {
        double mid = (low + high) / 2;
        if (0.5 * erfc(-mid / sqrt(2)) < p)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static double student_over_normal(double p, size_t n)
{
    double z = normal_quantile(p), v = n > 2 ? (double)n : 2, z2 = z * z;
    double t = 1 + (z2 + 1) / (4 * v) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * v * v);
    return t + (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * v * v * v);
}

static int by_cluster(const void *a, const void *b)
{
    const struct residual *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->model != y->model)
        return x->model < y->model ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Pairs of model and kind, per level. */
static void clusters(struct residuals *r, size_t n[NRG_NODE_LEVELS])
{
    memset(n, 0, NRG_NODE_LEVELS * sizeof *n);
    if (r->n)
        qsort(r->items, r->n, sizeof *r->items, by_cluster);
    for (size_t i = 0; i < r->n; i++)
        n[r->items[i].level] += !i || by_cluster(&r->items[i - 1], &r->items[i]) != 0;
}

static double mean_error(const struct residuals *r, enum nrg_node_level level)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->items[i].level != level)
            continue;
        sum += r->items[i].weight * (exp(r->items[i].error) - 1);
        weight += r->items[i].weight;
    }
    return weight > 0 ? sum / weight : NAN;
}

static int collect(struct residuals *out, const struct nrg_physical *fit,
                   const struct nrg_dataset *set, const bool *mask, const bool *train)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct nrg_row *row = &set->rows[i];
        struct nrg_estimate e;
        if ((mask && !mask[i]) || train[i] || nrg_physical_row(fit, set, i, &e) ||
            !(e.energy_j > 0))
            continue;
        if (nrg_reserve(&out->items, &out->cap, out->n + 1, sizeof *out->items))
            return -ENOMEM;
        out->items[out->n++] = (struct residual){.error = fabs(log(row->energy_j / e.energy_j)),
                                                 .weight = (double)row->multiplicity,
                                                 .level = row->level,
                                                 .group = nrg_kind_group(row->kind),
                                                 .model = row->model,
                                                 .kind = row->kind};
    }
    return 0;
}

/* What is held out: a fold of models, or of rows where there is but one model. */
struct folds {
    const struct nrg_dataset *set;
    const bool *mask;
    enum nrg_feature_set features;
    uint32_t *of_row;
    size_t n;
    bool *train;
};

static int hold_out(struct residuals *out, const struct folds *f, size_t fold)
{
    struct nrg_physical fit;
    for (size_t i = 0; i < f->set->n; i++)
        f->train[i] = (!f->mask || f->mask[i]) && f->of_row[i] != fold;
    if (nrg_physical_fit(&fit, f->set, f->train, f->features, NULL))
        return 0; /* nothing to fit without it: no residual either */
    int rc = collect(out, &fit, f->set, f->mask, f->train);
    nrg_physical_release(&fit);
    return rc;
}

static void finish(struct nrg_physical *model, struct residuals *r, double confidence)
{
    size_t n[NRG_NODE_LEVELS];
    clusters(r, n);
    if (model->features == NRG_SET_ALL) /* one law for all levels: all of them speak for it */
        n[0] = n[1] = n[2] = n[0] + n[1] + n[2];
    if (r->n)
        qsort(r->items, r->n, sizeof *r->items, by_error);
    for (int l = 0; l < NRG_NODE_LEVELS; l++) {
        enum nrg_node_level level = (enum nrg_node_level)l;
        double widen = student_over_normal((1 + confidence) / 2, n[l]);
        model->q[l] = widen * quantile(r, level, NULL, confidence);
        model->expected_error[l] = mean_error(r, level);
        if (level != NRG_NODE_OPERATOR)
            continue;
        for (size_t g = 0; g < model->n; g++)
            model->groups[g].q = widen * quantile(r, level, model->groups[g].name, confidence);
    }
}

/* Numbers the models of the mask, then shares them out to folds. */
static int make_folds(struct folds *f, struct nrg_name_list *models)
{
    uint32_t *number = calloc(models->n + 1, sizeof *number);
    uint32_t n = 0;
    if (!number)
        return -ENOMEM;
    for (size_t i = 0; i < f->set->n; i++)
        if ((!f->mask || f->mask[i]) && !number[models->of_row[i]])
            number[models->of_row[i]] = ++n;
    f->n = n > MOST_FOLDS ? MOST_FOLDS : n > 1 ? n : ROW_FOLDS;
    f->of_row = models->of_row;
    for (size_t i = 0; i < f->set->n; i++)
        f->of_row[i] = n > 1 ? (number[models->of_row[i]] - 1) % MOST_FOLDS
                             : f->set->rows[i].measurement % ROW_FOLDS;
    free(number);
    return (int)(n > 1);
}

int nrg_physical_calibrate(struct nrg_physical *model, const struct nrg_dataset *set,
                           const bool *mask, double confidence, struct nrg_error *err)
{
    struct residuals r = {0};
    struct nrg_name_list models = {0};
    struct folds f = {.set = set,
                      .mask = mask,
                      .features = model->features,
                      .train = calloc(set->n + 1, sizeof(bool))};
    int rc = f.train ? nrg_dataset_list(set, offsetof(struct nrg_row, model), &models) : -ENOMEM;
    if (!rc && (rc = make_folds(&f, &models)) >= 0) {
        model->held_out_models = rc;
        rc = 0;
    }
    for (size_t i = 0; !rc && i < f.n; i++)
        rc = hold_out(&r, &f, i);
    if (!rc)
        finish(model, &r, confidence);
    free(r.items);
    free(f.train);
    nrg_name_list_release(&models);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}
