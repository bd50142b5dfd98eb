/* See gram.h. */
#include "attribute/gram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define RIDGE     1e-12 /* of the diagonal: columns that depend on others share what they explain */
#define SMALL     1e-10 /* a gradient or solution this far below 0 is rounding */
#define MAX_TURNS 10    /* without progress, before single exchanges */

int nrg_gram_grow(struct nrg_gram *gram, size_t n)
{
    if (n <= gram->n)
        return 0;
    if (n > gram->cap) {
        size_t cap = gram->cap ? gram->cap : 16;
        while (cap < n)
            cap *= 2;
        double *a = realloc(gram->a, cap * (cap + 1) / 2 * sizeof *a);
        if (!a)
            return -ENOMEM;
        gram->a = a;
        double *b = realloc(gram->b, cap * sizeof *b);
        if (!b)
            return -ENOMEM;
        gram->b = b;
        gram->cap = cap;
    }
    size_t from = gram->n * (gram->n + 1) / 2, to = n * (n + 1) / 2;
    memset(gram->a + from, 0, (to - from) * sizeof *gram->a);
    memset(gram->b + gram->n, 0, (n - gram->n) * sizeof *gram->b);
    gram->n = n;
    return 0;
}

void nrg_gram_clear(struct nrg_gram *gram)
{
    if (gram->n) {
        memset(gram->a, 0, gram->n * (gram->n + 1) / 2 * sizeof *gram->a);
        memset(gram->b, 0, gram->n * sizeof *gram->b);
    }
    gram->yy = gram->weight = 0;
    gram->rows = 0;
}

void nrg_gram_release(struct nrg_gram *gram)
{
    free(gram->a);
    free(gram->b);
    *gram = (struct nrg_gram){0};
}

/* Two doubles at a time: what every 64 bit machine has, and -O2 does not do by itself. */
typedef double pair __attribute__((vector_size(16)));

static void add_scaled(double *to, const double *from, double factor, size_t n)
{
    pair f = {factor, factor};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair a, b, c, d;
        memcpy(&a, to + i, sizeof a);
        memcpy(&b, from + i, sizeof b);
        memcpy(&c, to + i + 2, sizeof c);
        memcpy(&d, from + i + 2, sizeof d);
        a += f * b;
        c += f * d;
        memcpy(to + i, &a, sizeof a);
        memcpy(to + i + 2, &c, sizeof c);
    }
    for (; i < n; i++)
        to[i] += factor * from[i];
}

static double dot(const double *x, const double *y, size_t n)
{
    pair s = {0, 0}, t = {0, 0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair a, b, c, d;
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, y + i, sizeof b);
        memcpy(&c, x + i + 2, sizeof c);
        memcpy(&d, y + i + 2, sizeof d);
        s += a * b;
        t += c * d;
    }
    s += t;
    double sum = s[0] + s[1];
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void add_pairs(struct nrg_gram *gram, const double *x, const uint32_t *touched,
                      size_t n_touched, double weight)
{
    for (size_t p = 0; p < n_touched; p++) {
        double wx = weight * x[touched[p]];
        for (size_t q = 0; q <= p; q++)
            gram->a[nrg_packed(touched[p], touched[q])] += wx * x[touched[q]];
    }
}

void nrg_gram_add(struct nrg_gram *gram, const double *x, const uint32_t *touched, size_t n_touched,
                  double y, double weight)
{
    gram->yy += weight * y * y;
    gram->weight += weight;
    gram->rows++;
    if (touched && n_touched < gram->n / 3 + 4) {
        add_pairs(gram, x, touched, n_touched, weight);
        for (size_t p = 0; p < n_touched; p++)
            gram->b[touched[p]] += weight * x[touched[p]] * y;
        return;
    }
    double *row = gram->a;
    for (size_t i = 0; i < gram->n; row += ++i)
        if (x[i] != 0)
            add_scaled(row, x, weight * x[i], i + 1);
    add_scaled(gram->b, x, weight * y, gram->n);
}

void nrg_gram_join(struct nrg_gram *sum, const struct nrg_gram *other)
{
    if (other->n) {
        add_scaled(sum->a, other->a, 1, other->n * (other->n + 1) / 2);
        add_scaled(sum->b, other->b, 1, other->n);
    }
    sum->yy += other->yy;
    sum->weight += other->weight;
    sum->rows += other->rows;
}

double nrg_gram_residual(const struct nrg_gram *gram, const double *beta)
{
    double rest = gram->yy;
    const double *row = gram->a;
    for (size_t i = 0; i < gram->n; row += ++i)
        rest += beta[i] * (2 * dot(row, beta, i) + row[i] * beta[i] - 2 * gram->b[i]);
    return rest > 0 ? rest : 0;
}

size_t nrg_gram_factor(double *a, size_t n, const double *floor, bool *dependent)
{
    size_t rank = 0;
    double *row = a;
    for (size_t i = 0; i < n; row += ++i) {
        const double *other = a;
        for (size_t j = 0; j < i; other += ++j)
            row[j] = other[j] > 0 ? (row[j] - dot(row, other, j)) / other[j] : 0;
        double pivot = row[i] - dot(row, row, i), least = floor ? floor[i] : RIDGE;
        bool lost = !(pivot > least);
        if (dependent)
            dependent[i] = lost;
        rank += !lost;
        row[i] = !lost ? sqrt(pivot) : dependent ? 0 : sqrt(least);
        /* A dependent row is kept for whoever asks what it depends on; its pivot is 0. */
    }
    return rank;
}

void nrg_gram_solve(const double *l, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        const double *row = l + nrg_packed(i, 0);
        x[i] = row[i] > 0 ? (x[i] - dot(row, x, i)) / row[i] : 0;
    }
    for (size_t i = n; i-- > 0;) {
        const double *row = l + nrg_packed(i, 0);
        x[i] = row[i] > 0 ? x[i] / row[i] : 0;
        if (x[i] != 0)
            add_scaled(x, row, -x[i], i);
    }
}

void nrg_gram_parts(const double *l, size_t j, double *parts)
{
    memcpy(parts, l + nrg_packed(j, 0), j * sizeof *parts);
    for (size_t i = j; i-- > 0;) {
        const double *row = l + nrg_packed(i, 0);
        parts[i] = row[i] > 0 ? parts[i] / row[i] : 0;
        if (parts[i] != 0)
            add_scaled(parts, row, -parts[i], i);
    }
}

/* Row i of L^-1 is (e_i - sum over j < i of l_ij * row j of L^-1) / l_ii. */
static void invert_triangle(double *l, size_t n, double *old)
{
    double *row = l;
    for (size_t i = 0; i < n; row += ++i) {
        memcpy(old, row, (i + 1) * sizeof *old);
        memset(row, 0, (i + 1) * sizeof *row);
        if (!(old[i] > 0))
            continue;
        const double *other = l;
        for (size_t j = 0; j < i; other += ++j)
            if (old[j] != 0)
                add_scaled(row, other, -old[j], j + 1);
        for (size_t j = 0; j < i; j++)
            row[j] /= old[i];
        row[i] = 1 / old[i];
    }
}

void nrg_gram_invert(double *l, size_t n, double *inverse)
{
    /* The first n cells of the result serve as room for one row. */
    invert_triangle(l, n, inverse);
    memset(inverse, 0, n * (n + 1) / 2 * sizeof *inverse);
    const double *row = l;
    for (size_t i = 0; i < n; row += ++i)
        for (size_t a = 0; a <= i; a++)
            if (row[a] != 0)
                add_scaled(inverse + nrg_packed(a, 0), row, row[a], a + 1);
}

struct exchange {
    const double *a, *b;
    size_t n, n_bound, n_in; /* n_in: how many are solved for */
    bool *in;
    size_t *index;
    double *l, *x, *beta, *gradient;
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
        row[p] *= 1 + RIDGE;
        e->x[p] = e->b[e->index[p]];
    }
    nrg_gram_factor(e->l, m, NULL, NULL);
    nrg_gram_solve(e->l, m, e->x);
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
        add_scaled(e->gradient, e->a + nrg_packed(at, 0), value, at + 1);
        for (size_t i = at + 1; i < e->n; i++)
            e->gradient[i] += value * e->a[nrg_packed(i, at)];
    }
}

static bool wrong(const struct exchange *e, size_t i, double scale)
{
    if (i >= e->n_bound)
        return false;
    return e->in[i] ? e->beta[i] < -SMALL * scale : e->gradient[i] < -SMALL * scale;
}

/* One turn; returns how many variables were on the wrong side. `single`: move the last only. */
static size_t exchange(struct exchange *e, double scale, bool single)
{
    size_t bad = 0, last = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!wrong(e, i, scale))
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
            bad += wrong(e, i, scale);
        if (bad < fewest) {
            fewest = bad;
            patience = MAX_TURNS;
        } else if (patience) {
            patience--;
        }
        if (!exchange(e, scale, !patience))
            break;
    }
    for (size_t i = 0; i < e->n; i++)
        e->beta[i] = e->beta[i] > 0 || i >= e->n_bound ? e->beta[i] : 0;
}

int nrg_gram_nonnegative(const double *a, const double *b, size_t n, size_t n_bound, double *beta)
{
    size_t cells = n * (n + 1) / 2;
    struct exchange e = {.a = a, .b = b, .n = n, .n_bound = n_bound, .beta = beta};
    e.in = malloc(n + 1);
    e.index = malloc((n + 1) * sizeof *e.index);
    e.l = malloc((cells + 2 * n + 1) * sizeof *e.l);
    int rc = e.in && e.index && e.l ? 0 : -ENOMEM;
    if (!rc) {
        e.x = e.l + cells;
        e.gradient = e.x + n;
        memset(e.in, 1, n);
        find_nonnegative(&e);
    }
    free(e.in);
    free(e.index);
    free(e.l);
    return rc;
}
