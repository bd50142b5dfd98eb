/*
 * See linalg.h. Systems are scaled to a unit diagonal before they are solved: features of physics
 * differ by ten powers of ten (1 call, 1e9 multiply-accumulates), and a tolerance must mean the
 * same for all of them.
 */
#include "base/linalg.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A gradient below this, in units of a column's own length, is no reason to enter. */
#define ENTER_TOLERANCE 1e-12
#define ROUNDS_PER_VAR  8

void nrg_normal_add(double *gram, double *rhs, size_t n, const double *row, double value,
                    double weight)
{
    for (size_t i = 0; i < n; i++) {
        double w = weight * row[i];
        if (w == 0)
            continue;
        rhs[i] += w * value;
        for (size_t j = 0; j < n; j++)
            gram[i * n + j] += w * row[j];
    }
}

size_t nrg_cholesky(double *a, size_t n, double tolerance)
{
    size_t rank = 0;
    for (size_t j = 0; j < n; j++) {
        double pivot = a[j * n + j], least = tolerance * pivot;
        for (size_t k = 0; k < j; k++)
            pivot -= a[j * n + k] * a[j * n + k];
        bool independent = pivot > least && pivot > 0;
        double root = independent ? sqrt(pivot) : 0;
        a[j * n + j] = root;
        rank += independent;
        for (size_t i = j + 1; i < n; i++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = independent ? sum / root : 0;
        }
    }
    return rank;
}

void nrg_cholesky_solve(const double *l, size_t n, double *b)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= l[i * n + k] * b[k];
        b[i] = l[i * n + i] > 0 ? b[i] / l[i * n + i] : 0;
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            b[i] -= l[k * n + i] * b[k];
        b[i] = l[i * n + i] > 0 ? b[i] / l[i * n + i] : 0;
    }
}

/* A system scaled to a unit diagonal, with room to solve parts of it. */
struct scaled {
    size_t n;
    double *gram, *rhs, *scale; /* scale: 0 for a column of zeros */
    double *factor, *part;
    size_t *index;
    bool *free;
};

static void scaled_release(struct scaled *s)
{
    free(s->gram);
    free(s->factor);
    free(s->rhs);
    free(s->index);
    free(s->free);
}

static int scaled_init(struct scaled *s, const double *gram, const double *rhs, size_t n)
{
    *s = (struct scaled){.n = n,
                         .gram = calloc(n * n + 1, sizeof(double)),
                         .factor = calloc(n * n + 1, sizeof(double)),
                         .rhs = calloc(3 * n + 1, sizeof(double)),
                         .index = calloc(n + 1, sizeof(size_t)),
                         .free = calloc(n + 1, sizeof(bool))};
    if (!s->gram || !s->factor || !s->rhs || !s->index || !s->free) {
        scaled_release(s);
        return -ENOMEM;
    }
    s->scale = s->rhs + n;
    s->part = s->rhs + 2 * n;
    for (size_t i = 0; i < n; i++)
        s->scale[i] = gram[i * n + i] > 0 ? 1 / sqrt(gram[i * n + i]) : 0;
    for (size_t i = 0; i < n; i++) {
        s->rhs[i] = rhs[i] * s->scale[i];
        for (size_t j = 0; j < n; j++)
            s->gram[i * n + j] = gram[i * n + j] * s->scale[i] * s->scale[j];
    }
    return 0;
}

/* Solves for the free unknowns alone; the others of z are 0. Returns the rank. */
static size_t solve_free(struct scaled *s, double *z)
{
    size_t m = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->free[i])
            s->index[m++] = i;
    for (size_t i = 0; i < m; i++) {
        s->part[i] = s->rhs[s->index[i]];
        for (size_t j = 0; j <= i; j++)
            s->factor[i * m + j] = s->gram[s->index[i] * s->n + s->index[j]];
    }
    size_t rank = nrg_cholesky(s->factor, m, NRG_PIVOT_TOLERANCE);
    nrg_cholesky_solve(s->factor, m, s->part);
    memset(z, 0, s->n * sizeof *z);
    for (size_t i = 0; i < m; i++)
        z[s->index[i]] = s->part[i];
    return rank;
}

int nrg_least_squares(const double *gram, const double *rhs, size_t n, double *x, size_t *rank)
{
    struct scaled s;
    int rc = scaled_init(&s, gram, rhs, n);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        s.free[i] = s.scale[i] > 0;
    size_t found = solve_free(&s, x);
    for (size_t i = 0; i < n; i++)
        x[i] *= s.scale[i];
    if (rank)
        *rank = found;
    scaled_release(&s);
    return 0;
}

/* Gradients are told from rounding by the largest of the right-hand side. */
static double enter_least(const struct scaled *s)
{
    double largest = 0;
    for (size_t i = 0; i < s->n; i++)
        largest = fmax(largest, fabs(s->rhs[i]));
    return ENTER_TOLERANCE * largest;
}

/* The unknown at 0 whose growth would help most; n when none would. */
static size_t best_to_enter(const struct scaled *s, const double *x)
{
    size_t best = s->n;
    double most = enter_least(s);
    for (size_t i = 0; i < s->n; i++) {
        if (s->free[i] || s->scale[i] <= 0)
            continue;
        double gradient = s->rhs[i];
        for (size_t j = 0; j < s->n; j++)
            gradient -= s->gram[i * s->n + j] * x[j];
        if (gradient > most) {
            most = gradient;
            best = i;
        }
    }
    return best;
}

/* Goes from x towards z until an unknown becomes 0; that one leaves. False: z was reached. */
static bool step(struct scaled *s, double *x, const double *z)
{
    double length = 1;
    size_t leaving = s->n;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->free[i] || z[i] > 0)
            continue;
        double at = x[i] > z[i] ? x[i] / (x[i] - z[i]) : 0;
        if (leaving == s->n || at < length) {
            length = at;
            leaving = i;
        }
    }
    if (leaving == s->n) {
        memcpy(x, z, s->n * sizeof *x);
        return false;
    }
    for (size_t i = 0; i < s->n; i++)
        x[i] += s->free[i] ? length * (z[i] - x[i]) : 0;
    x[leaving] = 0;
    s->free[leaving] = false;
    return true;
}

int nrg_nnls(const double *gram, const double *rhs, size_t n, double *x)
{
    struct scaled s;
    double *z = calloc(n + 1, sizeof *z);
    int rc = z ? scaled_init(&s, gram, rhs, n) : -ENOMEM;
    if (rc) {
        free(z);
        return rc;
    }
    memset(x, 0, n * sizeof *x);
    for (size_t round = 0; n && round < ROUNDS_PER_VAR * n; round++) {
        size_t entering = best_to_enter(&s, x);
        if (entering == n)
            break;
        s.free[entering] = true;
        do
            solve_free(&s, z);
        while (step(&s, x, z));
    }
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] * s.scale[i] : 0;
    scaled_release(&s);
    free(z);
    return 0;
}
