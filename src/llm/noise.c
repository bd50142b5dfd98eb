/*
 * The noise of the rows, learnt from what a law leaves of them (fit.c): how much of it each row has
 * by its power and its edges, and how it follows its own past.
 */
#include "llm/internal.h"

#include <math.h>

#include "base/nnls.h"

#define MOST_PHI  0.95
#define LEAST_PHI (-0.5)
#define FLOOR     0.01 /* of the mean variance: no row is more certain than that */

static bool has_next(const struct nrg_serving_work *w, size_t i)
{
    return i + 1 < w->n && w->rows[i + 1].follows;
}

/* Variance per second that rows have in common with those that are so many before. */
static double common_variance(const struct nrg_serving_work *w, size_t apart)
{
    double sum = 0;
    size_t pairs = 0, run = 0; /* rows before this one without a gap */
    for (size_t i = 0; i < w->n; i++) {
        const struct nrg_serving_row *r = &w->rows[i];
        run = r->follows ? run + 1 : 0;
        if (run < apart)
            continue;
        sum += r->left * r[-(ptrdiff_t)apart].left / r->length_s;
        pairs++;
    }
    return pairs ? sum / (double)pairs : 0;
}

/*
 * What drifts, drifts at any power, as far as is known: the few rows of a baseline can't tell that
 * they drift less, because their own mean is fitted to them.
 */
static double drifting_variance(const struct nrg_serving_work *w)
{
    return fmax(fmax(common_variance(w, 1), common_variance(w, 2)), 0);
}

/*
 * Variance per second of a row: a constant, a part that grows with power, and one of uncertain
 * edges, which grows with the steps of power there; not less than what drifts.
 */
int nrg_serving_learn_variance(struct nrg_serving_work *w)
{
    enum { PARTS = 3 };
    struct nrg_gram gram = {0};
    double v[PARTS] = {0}, mean = 0, least = drifting_variance(w);
    int rc = nrg_gram_grow(&gram, PARTS);
    for (int turn = 0; !rc && turn < 2; turn++) {
        for (size_t i = 0; i < w->n; i++) {
            struct nrg_serving_row *r = &w->rows[i];
            double before = r->follows ? r->power_w - w->rows[i - 1].power_w : 0;
            double after = has_next(w, i) ? w->rows[i + 1].power_w - r->power_w : 0;
            double x[PARTS] = {1, r->power_w * r->power_w,
                               (before * before + after * after) / r->length_s};
            double square = r->left * r->left / r->length_s;
            if (!turn) {
                /* Squares scatter as much as they are large. */
                double now = r->sd * r->sd / r->length_s;
                nrg_gram_add(&gram, x, NULL, 0, square, 1 / (now * now));
                mean += square / (double)w->n;
            } else {
                double variance = v[0] * x[0] + v[1] * x[1] + v[2] * x[2];
                r->sd = sqrt(fmax(variance, fmax(least, FLOOR * mean)) * r->length_s);
            }
        }
        if (!turn && mean > 0)
            rc = nrg_gram_nonnegative(&gram, NULL, 0, 0, NRG_RIDGE, v);
        if (!(mean > 0))
            break; /* the law fits to the last digit */
    }
    nrg_gram_release(&gram);
    return rc;
}

/* Correlation of residuals that are so many rows apart; NAN where there are too few. */
static double correlation(const struct nrg_serving_work *w, size_t apart)
{
    double both = 0, own = 0;
    size_t pairs = 0, run = 0; /* rows before this one without a gap */
    for (size_t i = 0; i < w->n; i++) {
        const struct nrg_serving_row *r = &w->rows[i];
        run = r->follows ? run + 1 : 0;
        own += r->left / r->sd * r->left / r->sd;
        if (run < apart)
            continue;
        both += r->left / r->sd * r[-(ptrdiff_t)apart].left / r[-(ptrdiff_t)apart].sd;
        pairs++;
    }
    bool few = pairs < NRG_SERVING_LEAST_ROWS || !(own > 0);
    return few ? NAN : both / own * (double)w->n / (double)pairs;
}

/* Fitted columns take some of the correlation with them; about so much is given back. */
static double given_back(const struct nrg_serving_work *w, double phi)
{
    phi += ((double)w->m / 2 + 3 * phi) / (double)w->n;
    return fmin(fmax(phi, LEAST_PHI), MOST_PHI);
}

/*
 * What is slow is partly hidden from neighbours by what each row has for itself, such as tokens at
 * the wrong side of its edge, and less so from the next but one: the root of their correlation is
 * that of neighbours where there is nothing else. It says how many rows are as good as independent;
 * for the rows themselves the middle of both is best.
 */
void nrg_serving_learn_phi(struct nrg_serving_work *w)
{
    double one = correlation(w, 1), two = correlation(w, 2);
    if (isnan(one))
        return;
    double slow = two > 0 ? fmax(one, sqrt(two)) : one;
    w->phi = given_back(w, (one + slow) / 2);
    w->slow = given_back(w, slow);
}

double nrg_serving_freedom(const struct nrg_serving_work *w)
{
    return (double)(w->n - w->m) * (1 - w->slow * w->slow) / (1 + w->slow * w->slow);
}
