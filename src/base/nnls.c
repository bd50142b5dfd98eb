/* See nnls.h. */
#include "base/nnls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SMALL     1e-10 /* a gradient or solution this far below 0 is rounding */
#define MAX_TURNS 10    /* without progress, before single exchanges */

struct exchange {
    const double *a, *b;
    size_t n, n_bound, n_in; /* n_in: how many are solved for */
    double ridge;
    bool *in, *dependent;
    size_t *index;
    double *l, *x, *beta, *gradient, *floor;
};

static void solve_free(struct exchange *e)
{
    size_t m = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->in[i])
            e->index[m++] = i;
    double *row = e->l;
    for (size_t p = 0; p < m; row += ++p) {
        for (size_t q = 0; q <= p; q++)
            row[q] = e->a[nrg_packed(e->index[p], e->index[q])];
        row[p] *= 1 + e->ridge;
        e->x[p] = e->b[e->index[p]];
    }
    nrg_gram_factor(e->l, m, e->floor, e->ridge > 0 ? NULL : e->dependent, !(e->ridge > 0));
    nrg_gram_solve(e->l, m, e->x, !(e->ridge > 0));
    memset(e->beta, 0, e->n * sizeof *e->beta);
    for (size_t p = 0; p < m; p++)
        e->beta[e->index[p]] = e->x[p];
    e->n_in = m;
}

static void set_gradient(struct exchange *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->gradient[i] = -e->b[i];
    for (size_t p = 0; p < e->n_in; p++) {
        size_t at = e->index[p];
        double value = e->beta[at];
        if (value == 0)
            continue;
        nrg_add_scaled(e->gradient, e->a + nrg_packed(at, 0), value, at + 1);
        for (size_t i = at + 1; i < e->n; i++)
            e->gradient[i] += value * e->a[nrg_packed(i, at)];
    }
}

static bool violates_bound(const struct exchange *e, size_t i, double scale)
{
    if (i >= e->n_bound)
        return false;
    return e->in[i] ? e->beta[i] < -SMALL * scale : e->gradient[i] < -SMALL * scale;
}

/* One turn; returns how many variables were on the wrong side. `single`: move the last only. */
static size_t exchange_variables(struct exchange *e, double scale, bool single)
{
    size_t bad = 0, last = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!violates_bound(e, i, scale))
            continue;
        bad++;
        last = i;
        if (!single)
            e->in[i] = !e->in[i];
    }
    if (bad && single)
        e->in[last] = !e->in[last];
    return bad;
}

static void find_nonnegative(struct exchange *e)
{
    double scale = 0;
    size_t fewest = e->n + 1, patience = MAX_TURNS;
    for (size_t i = 0; i < e->n; i++)
        scale = fmax(scale, fabs(e->b[i]));
    for (size_t turn = 0; turn < 5 * e->n + 100; turn++) {
        solve_free(e);
        set_gradient(e);
        size_t bad = 0;
        for (size_t i = 0; i < e->n; i++)
            bad += violates_bound(e, i, scale);
        if (bad < fewest) {
            fewest = bad;
            patience = MAX_TURNS;
        } else if (patience) {
            patience--;
        }
        if (!exchange_variables(e, scale, !patience))
            break;
    }
    for (size_t i = 0; i < e->n; i++)
        e->beta[i] = e->beta[i] > 0 || i >= e->n_bound ? e->beta[i] : 0;
}

int nrg_nnls(const double *a, const double *b, size_t n, size_t n_bound, double ridge, double *beta)
{
    size_t cells = n * (n + 1) / 2;
    struct exchange e = {.a = a, .b = b, .n = n, .n_bound = n_bound, .ridge = ridge, .beta = beta};
    e.in = nrg_calloc(2 * n + 1, 1);
    e.index = nrg_calloc(n + 1, sizeof *e.index);
    e.l = nrg_calloc(cells + 3 * n + 1, sizeof *e.l);
    int rc = e.in && e.index && e.l ? 0 : -ENOMEM;
    if (!rc) {
        e.dependent = e.in + n;
        e.x = e.l + cells;
        e.gradient = e.x + n;
        e.floor = e.gradient + n;
        for (size_t i = 0; i < n; i++)
            e.floor[i] = ridge > 0 ? ridge : NRG_PIVOT_TOLERANCE;
        memset(e.in, 1, n);
        find_nonnegative(&e);
    }
    free(e.in);
    free(e.index);
    free(e.l);
    return rc;
}

int nrg_gram_nonnegative(const struct nrg_gram *gram, const size_t *index, size_t m, size_t n_bound,
                         double ridge, double *x)
{
    struct nrg_scaled s;
    int rc = nrg_scaled_init(&s, gram, index, m);
    if (!rc)
        rc = nrg_nnls(s.a, s.b, s.m, index ? n_bound : s.m, ridge, s.x);
    if (!rc)
        nrg_scaled_solution(&s, x);
    nrg_scaled_release(&s);
    return rc;
}
