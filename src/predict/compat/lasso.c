/*
 * See lasso.h. Works on the Gram matrix of centred columns. The gradient is kept up to date, so a
 * coefficient that does not change costs nothing, and most of them stay at 0. Sweeps update the
 * coefficients that are not 0 until they converge, then all of them once more.
 */
#include "predict/compat/lasso.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PATH_END   1e-3
#define TOLERANCE  1e-7 /* of a step, in units of the largest coefficient's effect */
#define MAX_SWEEPS 2000

struct problem {
    const double *x, *y;
    size_t rows, n;
    const bool *use; /* NULL: all rows */
    double *gram, *gradient, *mean, *b;
    double y_mean, used;
    bool positive;
};

static void find_means(struct problem *p)
{
    p->used = p->y_mean = 0;
    memset(p->mean, 0, p->n * sizeof *p->mean);
    for (size_t i = 0; i < p->rows; i++) {
        if (p->use && !p->use[i])
            continue;
        p->used++;
        p->y_mean += p->y[i];
        for (size_t j = 0; j < p->n; j++)
            p->mean[j] += p->x[i * p->n + j];
    }
    p->y_mean /= p->used;
    for (size_t j = 0; j < p->n; j++)
        p->mean[j] /= p->used;
}

/* Gram matrix and X'y of the centred rows in use, per row. */
static int make_gram(struct problem *p)
{
    double *row = nrg_calloc(p->n + 1, sizeof *row);
    if (!row)
        return -ENOMEM;
    find_means(p);
    memset(p->gram, 0, p->n * p->n * sizeof *p->gram);
    memset(p->gradient, 0, p->n * sizeof *p->gradient);
    memset(p->b, 0, p->n * sizeof *p->b);
    for (size_t i = 0; i < p->rows; i++) {
        if (p->use && !p->use[i])
            continue;
        for (size_t j = 0; j < p->n; j++)
            row[j] = p->x[i * p->n + j] - p->mean[j];
        for (size_t j = 0; j < p->n; j++) {
            p->gradient[j] += row[j] * (p->y[i] - p->y_mean) / p->used;
            if (row[j] != 0)
                for (size_t k = 0; k < p->n; k++)
                    p->gram[j * p->n + k] += row[j] * row[k] / p->used;
        }
    }
    free(row);
    return 0;
}

/* Sets one coefficient to its best value. Returns how much that changed the prediction. */
static double update_coefficient(struct problem *p, size_t j, double alpha)
{
    double own = p->gram[j * p->n + j], before = p->b[j];
    if (!(own > 1e-12))
        return 0;
    double z = p->gradient[j] + own * before, after = 0;
    if (z > alpha)
        after = (z - alpha) / own;
    else if (z < -alpha && !p->positive)
        after = (z + alpha) / own;
    double change = after - before;
    if (change == 0)
        return 0;
    p->b[j] = after;
    for (size_t k = 0; k < p->n; k++)
        p->gradient[k] -= change * p->gram[j * p->n + k];
    return fabs(change) * sqrt(own);
}

static double sweep_coefficients(struct problem *p, double alpha, bool all)
{
    double most = 0;
    for (size_t j = 0; j < p->n; j++)
        if (all || p->b[j] != 0)
            most = fmax(most, update_coefficient(p, j, alpha));
    return most;
}

static void descend_to_minimum(struct problem *p, double alpha, double scale)
{
    for (int i = 0; i < MAX_SWEEPS; i++) {
        if (sweep_coefficients(p, alpha, true) <= TOLERANCE * scale)
            return;
        for (int k = 0; k < MAX_SWEEPS && sweep_coefficients(p, alpha, false) > TOLERANCE * scale;
             k++)
            ;
    }
}

static double alpha_at(double largest, size_t i, size_t n)
{
    return n > 1 ? largest * pow(PATH_END, (double)i / (double)(n - 1)) : largest;
}

static double predict_row(const struct problem *p, size_t row)
{
    double y = p->y_mean;
    for (size_t j = 0; j < p->n; j++)
        y += p->b[j] * (p->x[row * p->n + j] - p->mean[j]);
    return y;
}

static double spread_of(const double *y, size_t rows)
{
    double mean = 0, sum = 0;
    for (size_t i = 0; i < rows; i++)
        mean += y[i] / (double)rows;
    for (size_t i = 0; i < rows; i++)
        sum += (y[i] - mean) * (y[i] - mean);
    return sqrt(sum / (double)rows);
}

/* The first row of fold k. The first folds are larger by one row where folds are not equal. */
static size_t fold_start(size_t rows, size_t folds, size_t k)
{
    size_t extra = rows % folds;
    return k * (rows / folds) + (k < extra ? k : extra);
}

/* Squared errors per alpha of one fold, and its predictions for all of them. */
static int run_fold(struct problem *p, const struct nrg_lasso_options *o, double largest,
                    size_t begin, size_t end, double *errors, double *predictions)
{
    double scale = spread_of(p->y, p->rows);
    int rc = make_gram(p);
    for (size_t a = 0; !rc && a < o->alphas; a++) {
        double sum = 0;
        descend_to_minimum(p, alpha_at(largest, a, o->alphas), scale);
        for (size_t i = begin; i < end; i++) {
            double got = predict_row(p, i);
            sum += (got - p->y[i]) * (got - p->y[i]);
            predictions[i * o->alphas + a] = got;
        }
        errors[a] += sum / (double)(end - begin);
    }
    return rc;
}

static double largest_alpha(const struct problem *p)
{
    double most = 0;
    for (size_t j = 0; j < p->n; j++)
        most = fmax(most, p->positive ? p->gradient[j] : fabs(p->gradient[j]));
    return most;
}

static int choose_alpha(struct problem *p, const struct nrg_lasso_options *o, double largest,
                        struct nrg_lasso *out)
{
    size_t folds = o->folds < p->rows ? o->folds : p->rows, best = 0;
    double *errors = nrg_calloc(o->alphas + 1, sizeof *errors);
    double *predictions = nrg_calloc(p->rows * o->alphas + 1, sizeof *predictions);
    bool *use = nrg_calloc(p->rows + 1, sizeof *use);
    int rc = errors && predictions && use ? 0 : -ENOMEM;
    p->use = use;
    for (size_t k = 0; !rc && k < folds; k++) {
        size_t begin = fold_start(p->rows, folds, k), end = fold_start(p->rows, folds, k + 1);
        for (size_t i = 0; i < p->rows; i++)
            use[i] = i < begin || i >= end;
        rc = run_fold(p, o, largest, begin, end, errors, predictions);
    }
    for (size_t a = 1; !rc && a < o->alphas; a++)
        best = errors[a] < errors[best] ? a : best;
    for (size_t i = 0; !rc && i < p->rows; i++)
        out->held_out[i] = predictions[i * o->alphas + best];
    out->alpha = alpha_at(largest, best, o->alphas);
    p->use = NULL;
    free(errors);
    free(predictions);
    free(use);
    return rc;
}

/* Down the path again, on all rows, to the alpha that was chosen. */
static int fit_all_rows(struct problem *p, const struct nrg_lasso_options *o, double largest,
                        struct nrg_lasso *out)
{
    double scale = spread_of(p->y, p->rows);
    int rc = make_gram(p);
    for (size_t a = 0; !rc && a < o->alphas; a++) {
        double alpha = alpha_at(largest, a, o->alphas);
        descend_to_minimum(p, alpha, scale);
        if (alpha <= out->alpha)
            break;
    }
    out->intercept = p->y_mean;
    for (size_t j = 0; j < p->n; j++) {
        out->coefficients[j] = p->b[j];
        out->intercept -= p->b[j] * p->mean[j];
    }
    return rc;
}

void nrg_lasso_release(struct nrg_lasso *lasso)
{
    free(lasso->coefficients);
    free(lasso->held_out);
    *lasso = (struct nrg_lasso){0};
}

int nrg_lasso_fit(struct nrg_lasso *out, const double *x, const double *y, size_t rows, size_t n,
                  const struct nrg_lasso_options *o)
{
    struct problem p = {.x = x, .y = y, .rows = rows, .n = n, .positive = o->positive};
    *out = (struct nrg_lasso){.coefficients = nrg_calloc(n + 1, sizeof(double)),
                              .held_out = nrg_calloc(rows + 1, sizeof(double)),
                              .n = n};
    if (rows < 2)
        return -ENODATA;
    p.gram = nrg_calloc(n * n + 1, sizeof(double));
    p.gradient = nrg_calloc(3 * n + 1, sizeof(double));
    int rc = p.gram && p.gradient && out->coefficients && out->held_out ? 0 : -ENOMEM;
    if (!rc) {
        p.mean = p.gradient + n;
        p.b = p.gradient + 2 * n;
        rc = make_gram(&p);
    }
    double largest = rc ? 0 : largest_alpha(&p);
    if (!rc)
        rc = choose_alpha(&p, o, largest, out);
    if (!rc)
        rc = fit_all_rows(&p, o, largest, out);
    free(p.gram);
    free(p.gradient);
    return rc;
}
