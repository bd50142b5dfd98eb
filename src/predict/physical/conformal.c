/*
 * See conformal.h.
 *
 * The spread of all kinds is the root mean square of the folds' errors and of PRIOR_FOLDS folds of
 * the prior spread. The spread of a kind is the same with the spread of all kinds as its prior. The
 * score of an error is the error over a spread in which the error's own fold counts as OWN_FOLD:
 * what one fold alone gets wrong has a large score, as it will have when a model not seen before
 * comes. Without its own fold at all, one of two folds would count twice, in the score and in the
 * spread.
 *
 * The scores of a kind count as one for each fold that has it, those of all kinds together as
 * PRIOR_FOLDS, and those of errors with an exponential tail as SHAPE_FOLDS. Two or three folds
 * can't show a 95 % quantile, and this is where it comes from then. With many folds the kind's own
 * scores decide. The numbers were chosen on IrEne's data (docs/predict.md).
 */
#include "predict/physical/conformal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define PRIOR_FOLDS 2.0
#define SHAPE_FOLDS 4.0
#define OWN_FOLD    0.5
#define NO_FOLD     UINT32_MAX
#define MOST_SCORE  1e6

int nrg_conformal_kind(const struct nrg_conformal *c, uint64_t kind)
{
    for (size_t i = 0; i < c->n_kinds; i++)
        if (c->kinds[i] == kind)
            return (int)i;
    return -1;
}

static int find_kinds(struct nrg_conformal *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct nrg_residual *r = &c->items[i];
        int at = nrg_conformal_kind(c, r->kind);
        if (at < 0 && nrg_append(&c->kinds, &c->n_kinds, &c->cap_kinds, &r->kind, sizeof *c->kinds))
            return -ENOMEM;
        c->kind_of[i] = at < 0 ? (uint32_t)c->n_kinds - 1 : (uint32_t)at;
        c->n_folds = r->fold >= c->n_folds ? r->fold + 1 : c->n_folds;
    }
    return 0;
}

static void add_square(struct nrg_conformal *c, size_t kind, const struct nrg_residual *r)
{
    size_t at = kind * c->n_folds + r->fold;
    c->square[at] += r->weight * r->error * r->error;
    c->weight[at] += r->weight;
    c->here[kind] += r->weight;
}

/* The mean square over the folds, one of them with less weight, and a prior. */
static double mean_square(const struct nrg_conformal *c, size_t kind, uint32_t own, double prior)
{
    double sum = PRIOR_FOLDS * prior, n = PRIOR_FOLDS;
    for (uint32_t f = 0; f < c->n_folds; f++) {
        size_t at = kind * c->n_folds + f;
        double weight = !(c->weight[at] > 0) ? 0 : f == own ? OWN_FOLD : 1;
        sum += weight > 0 ? weight * c->square[at] / c->weight[at] : 0;
        n += weight;
    }
    return sum / n;
}

static double spread_of(const struct nrg_conformal *c, int kind, uint32_t own)
{
    double all = mean_square(c, c->n_kinds, own, c->prior * c->prior);
    return sqrt(kind < 0 ? all : mean_square(c, (size_t)kind, own, all));
}

static double folds_of(const struct nrg_conformal *c, size_t kind)
{
    double n = 0;
    for (size_t f = 0; f < c->n_folds; f++)
        n += c->weight[kind * c->n_folds + f] > 0;
    return n;
}

/* Spreads are asked for once per kind and fold, not per item. */
static int make_scores(struct nrg_conformal *c)
{
    size_t n = (c->n_kinds + 1) * c->n_folds;
    double *spread = nrg_calloc(n + 1, sizeof *spread);
    if (!spread)
        return -ENOMEM;
    for (size_t k = 0; k <= c->n_kinds; k++)
        for (uint32_t f = 0; f < c->n_folds; f++)
            spread[k * c->n_folds + f] = spread_of(c, k < c->n_kinds ? (int)k : -1, f);
    for (size_t i = 0; i < c->n; i++) {
        const struct nrg_residual *r = &c->items[i];
        c->score[i] = r->error / spread[c->kind_of[i] * c->n_folds + r->fold];
        c->any_score[i] = r->error / spread[c->n_kinds * c->n_folds + r->fold];
    }
    free(spread);
    return 0;
}

int nrg_conformal_init(struct nrg_conformal *c, const struct nrg_residual *items, size_t n,
                       double prior)
{
    *c = (struct nrg_conformal){.items = items,
                                .n = n,
                                .prior = prior,
                                .kind_of = nrg_calloc(n + 1, sizeof *c->kind_of),
                                .score = nrg_calloc(n + 1, sizeof *c->score),
                                .any_score = nrg_calloc(n + 1, sizeof *c->any_score)};
    int rc = c->kind_of && c->score && c->any_score ? find_kinds(c) : -ENOMEM;
    size_t cells = (c->n_kinds + 1) * c->n_folds + 1;
    if (!rc) {
        c->square = nrg_calloc(cells, sizeof *c->square);
        c->weight = nrg_calloc(cells, sizeof *c->weight);
        c->here = nrg_calloc(c->n_kinds + 1, sizeof *c->here);
        rc = c->square && c->weight && c->here ? 0 : -ENOMEM;
    }
    for (size_t i = 0; !rc && i < n; i++) {
        add_square(c, c->kind_of[i], &items[i]);
        add_square(c, c->n_kinds, &items[i]);
    }
    if (!rc)
        rc = make_scores(c);
    if (rc)
        nrg_conformal_release(c);
    return rc;
}

void nrg_conformal_release(struct nrg_conformal *c)
{
    free(c->kinds);
    free(c->kind_of);
    free(c->square);
    free(c->weight);
    free(c->here);
    free(c->score);
    free(c->any_score);
    *c = (struct nrg_conformal){0};
}

/* The part of the scores that is at most x. */
static double part_below(const struct nrg_conformal *c, int kind, double x)
{
    double sum = SHAPE_FOLDS * (1 - exp(-sqrt(2) * x)), total = SHAPE_FOLDS;
    size_t all = c->n_kinds;
    double own = kind < 0 ? 0 : folds_of(c, (size_t)kind) / c->here[kind];
    double others = (kind < 0 ? folds_of(c, all) : PRIOR_FOLDS) / c->here[all];
    for (size_t i = 0; i < c->n; i++) {
        double weight = c->items[i].weight * (others + ((int)c->kind_of[i] == kind ? own : 0));
        total += weight;
        sum += (kind < 0 ? c->any_score[i] : c->score[i]) <= x ? weight : 0;
    }
    return sum / total;
}

double nrg_conformal_half(const struct nrg_conformal *c, int kind, double confidence)
{
    double low = 0, high = 1;
    while (high < MOST_SCORE && part_below(c, kind, high) < confidence)
        high *= 2;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        *(part_below(c, kind, middle) < confidence ? &low : &high) = middle;
    }
    return high * spread_of(c, kind, NO_FOLD);
}
