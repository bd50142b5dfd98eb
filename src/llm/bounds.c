/*
 * Intervals of prices that are not negative. The unbound solution and its covariance make an
 * ellipsoid of laws that the rows do not contradict; what lies below 0 is cut off, and the ends of
 * an interval are the ends of what is left (the likelihood ratio of the bound law). Where two terms
 * go nearly together, such as tokens and the seconds that they take, this is much narrower than
 * cutting each interval at 0: more joules for the one would be fewer than none for the other.
 *
 * The end of the cut ellipsoid in a direction is where the least of (distance - pull * direction)
 * lies, for the pull that leads just to its surface; that least is a non-negative least squares.
 *
 * There are two covariances, of the rows' own scatter and of their mean square (fit.c), and an
 * interval has the ends that are farther.
 */
#include "llm/internal.h"

#include <math.h>
#include <string.h>

#include "base/nnls.h"

#define TRIALS    40
#define CLOSE     1e-4 /* of the half width */
#define MOST_PULL 1e4  /* times the half width: the end is a corner */

/* Prices in units of their standard deviations. */
struct region {
    size_t index[NRG_SERVING_TERMS], m;
    double sd[NRG_SERVING_TERMS], direction[NRG_SERVING_TERMS];
    double inverse[NRG_SERVING_CELLS]; /* of the correlations, packed */
    double middle[NRG_SERVING_TERMS], least;
    double at[NRG_SERVING_TERMS]; /* the last solution */
};

static double variance(const double covariance[NRG_SERVING_TERMS][NRG_SERVING_TERMS],
                       const double amount[NRG_SERVING_TERMS])
{
    double sum = 0;
    for (size_t a = 0; a < NRG_SERVING_TERMS; a++)
        for (size_t b = 0; b < NRG_SERVING_TERMS; b++)
            sum += amount[a] * amount[b] * covariance[a][b];
    return fmax(sum, 0);
}

double nrg_serving_variance(const struct nrg_serving_fit *fit,
                            const double amount[NRG_SERVING_TERMS])
{
    return fmax(variance(fit->covariance[0], amount), variance(fit->covariance[1], amount));
}

/* False: nothing is uncertain in this direction. */
static bool set_region(struct region *g, const struct nrg_serving_fit *fit,
                       const double covariance[NRG_SERVING_TERMS][NRG_SERVING_TERMS],
                       const double amount[NRG_SERVING_TERMS])
{
    double factor[NRG_SERVING_CELLS], sd = sqrt(variance(covariance, amount));
    *g = (struct region){0};
    for (size_t c = 0; c < NRG_SERVING_TERMS; c++)
        if (covariance[c][c] > 0) {
            g->sd[g->m] = sqrt(covariance[c][c]);
            g->middle[g->m] = fit->unbound[c] / g->sd[g->m];
            g->direction[g->m] = sd > 0 ? amount[c] * g->sd[g->m] / sd : 0;
            g->index[g->m++] = c;
        }
    for (size_t p = 0; p < g->m; p++)
        for (size_t q = 0; q <= p; q++)
            factor[nrg_packed(p, q)] = covariance[g->index[p]][g->index[q]] / (g->sd[p] * g->sd[q]);
    nrg_gram_factor(factor, g->m, NULL, NULL, true);
    nrg_gram_invert(factor, g->m, g->inverse);
    return sd > 0;
}

static double distance(const struct region *g)
{
    double sum = 0;
    for (size_t p = 0; p < g->m; p++)
        for (size_t q = 0; q < g->m; q++)
            sum += (g->at[p] - g->middle[p]) * (g->at[q] - g->middle[q]) *
                   g->inverse[nrg_packed(p, q)];
    return sum;
}

/* The point that this pull leads to; how far beyond the least distance it lies, as a root. */
static int pull_to(struct region *g, double pull, double *root)
{
    double b[NRG_SERVING_TERMS];
    for (size_t p = 0; p < g->m; p++) {
        b[p] = pull * g->direction[p];
        for (size_t q = 0; q < g->m; q++)
            b[p] += g->inverse[nrg_packed(p, q)] * g->middle[q];
    }
    int rc = nrg_nnls(g->inverse, b, g->m, g->m, NRG_RIDGE, g->at);
    *root = sqrt(fmax(distance(g) - g->least, 0));
    return rc;
}

/* Regula falsi: without corners the root is the pull itself. */
static int go_to_end(struct region *g, double half, double sign)
{
    double low = 0, low_root = -half, high = half, root;
    int rc = pull_to(g, sign * high, &root);
    while (!rc && root < half && high < MOST_PULL * half) {
        low = high;
        low_root = root - half;
        rc = pull_to(g, sign * (high *= 2), &root);
    }
    double high_root = root - half;
    for (int i = 0; !rc && i < TRIALS && fabs(root - half) > CLOSE * half && high_root > 0; i++) {
        double pull = (low * high_root - high * low_root) / (high_root - low_root);
        rc = pull_to(g, sign * pull, &root);
        bool below = root < half;
        *(below ? &low : &high) = pull;
        *(below ? &low_root : &high_root) = root - half;
        *(below ? &high_root : &low_root) *= 0.5;
    }
    return rc;
}

static double cost_there(const struct region *g, const double amount[NRG_SERVING_TERMS])
{
    double sum = 0;
    for (size_t p = 0; p < g->m; p++)
        sum += amount[g->index[p]] * g->at[p] * g->sd[p];
    return sum;
}

static int widen(struct region *g, double half, const double amount[NRG_SERVING_TERMS],
                 struct nrg_serving_value *cost)
{
    double nothing;
    int rc = pull_to(g, 0, &nothing);
    g->least = distance(g);
    if (!rc)
        rc = go_to_end(g, half, 1);
    cost->high = fmax(cost_there(g, amount), cost->high);
    if (!rc)
        rc = go_to_end(g, half, -1);
    cost->low = fmin(cost_there(g, amount), cost->low);
    return rc;
}

int nrg_serving_bound(const struct nrg_serving_fit *fit, const double amount[NRG_SERVING_TERMS],
                      struct nrg_serving_value *cost)
{
    struct region g;
    double value = 0;
    int rc = 0;
    for (size_t c = 0; c < NRG_SERVING_TERMS; c++)
        if (!isnan(fit->price[c].per.value))
            value += fit->price[c].per.value * amount[c];
    *cost = (struct nrg_serving_value){value, value, value};
    for (size_t k = 0; !rc && k < 2; k++)
        if (set_region(&g, fit, fit->covariance[k], amount))
            rc = widen(&g, fit->half, amount, cost);
    return rc;
}
