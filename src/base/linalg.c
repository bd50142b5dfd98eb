/*
 * See linalg.h. Least squares scale their system to a unit diagonal before they solve it: features
 * of physics differ by ten powers of ten (1 call, 1e9 multiply-accumulates), and a tolerance must
 * mean the same for all of them.
 */
#include "base/linalg.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int nrg_gram_grow(struct nrg_gram *gram, size_t n)
{
    if (n <= gram->n)
        return 0;
    if (n > gram->cap) {
        size_t cap = gram->cap ? gram->cap : 16;
        while (cap < n)
            cap *= 2;
        size_t room_a = 0, room_b = 0;
        int rc = nrg_reserve(&gram->a, &room_a, cap * (cap + 1) / 2, sizeof *gram->a);
        if (!rc)
            rc = nrg_reserve(&gram->b, &room_b, cap, sizeof *gram->b);
        if (rc)
            return rc;
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

/* Four at a time: two pairs, or one operation of a processor that has these. */
typedef double quad __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) void add_scaled(double *to, const double *from,
                                                             double factor, size_t n)
{
    quad f = {factor, factor, factor, factor};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        quad a, b;
        memcpy(&a, to + i, sizeof a);
        memcpy(&b, from + i, sizeof b);
        a += f * b;
        memcpy(to + i, &a, sizeof a);
    }
    for (; i < n; i++)
        to[i] += factor * from[i];
}

void nrg_add_scaled(double *to, const double *from, double factor, size_t n)
{
    add_scaled(to, from, factor, n);
}

void nrg_scale(double *values, double factor, size_t n)
{
    quad f = {factor, factor, factor, factor};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        quad a;
        memcpy(&a, values + i, sizeof a);
        a *= f;
        memcpy(values + i, &a, sizeof a);
    }
    for (; i < n; i++)
        values[i] *= factor;
}

static inline __attribute__((always_inline)) void add_to_all(struct nrg_gram *gram, const double *x,
                                                             double weight)
{
    double *row = gram->a;
    for (size_t i = 0; i < gram->n; row += ++i)
        if (x[i] != 0)
            add_scaled(row, x, weight * x[i], i + 1);
}

static void add_row(struct nrg_gram *gram, const double *x, double weight)
{
    add_to_all(gram, x, weight);
}

/* The same to the last digit: products and sums stay apart. */
#if defined(__x86_64__)
static __attribute__((target("avx"))) void add_row_wide(struct nrg_gram *gram, const double *x,
                                                        double weight)
{
    add_to_all(gram, x, weight);
}

static bool is_wide(void)
{
    return __builtin_cpu_supports("avx");
}
#else
#define add_row_wide add_row

static bool is_wide(void)
{
    return false;
}
#endif

static double dot_product(const double *x, const double *y, size_t n)
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
        uint32_t i = touched[p];
        double wx = weight * x[i], *row = gram->a + nrg_packed(i, 0);
        for (size_t q = 0; q <= p; q++) {
            uint32_t j = touched[q];
            *(j <= i ? row + j : gram->a + nrg_packed(j, i)) += wx * x[j];
        }
    }
}

void nrg_gram_add(struct nrg_gram *gram, const double *x, const uint32_t *touched, size_t n_touched,
                  double y, double weight)
{
    gram->yy += weight * y * y;
    gram->weight += weight;
    gram->rows++;
    if (touched && n_touched < gram->n / 5 + 3) { /* else all columns cost less, several at once */
        add_pairs(gram, x, touched, n_touched, weight);
        for (size_t p = 0; p < n_touched; p++)
            gram->b[touched[p]] += weight * x[touched[p]] * y;
        return;
    }
    if (is_wide())
        add_row_wide(gram, x, weight);
    else
        add_row(gram, x, weight);
    nrg_add_scaled(gram->b, x, weight * y, gram->n);
}

void nrg_gram_join(struct nrg_gram *sum, const struct nrg_gram *other)
{
    if (other->n) {
        nrg_add_scaled(sum->a, other->a, 1, other->n * (other->n + 1) / 2);
        nrg_add_scaled(sum->b, other->b, 1, other->n);
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
        rest += beta[i] * (2 * dot_product(row, beta, i) + row[i] * beta[i] - 2 * gram->b[i]);
    return rest > 0 ? rest : 0;
}

#define ROWS 4 /* of a matrix, that are reduced at once: each waits for its own sums only */

static inline __attribute__((always_inline)) void add_product(quad *to, const double *x,
                                                              const quad *by)
{
    quad a;
    memcpy(&a, x, sizeof a);
    *to += a * *by;
}

/* A quad has in each half what dot_product has in s and t. */
static inline __attribute__((always_inline)) double sum_of_quad(const quad *q)
{
    return ((*q)[0] + (*q)[2]) + ((*q)[1] + (*q)[3]);
}

/* dot_product of each of some rows with y, to the last digit. Sums have names: -O2 leaves arrays in
 * memory. */
static inline __attribute__((always_inline)) void dot_products(double *const rows[ROWS],
                                                               const double *y, size_t n,
                                                               double out[ROWS])
{
    const double *x0 = rows[0], *x1 = rows[1], *x2 = rows[2], *x3 = rows[3];
    quad s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, b;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        memcpy(&b, y + i, sizeof b);
        add_product(&s0, x0 + i, &b);
        add_product(&s1, x1 + i, &b);
        add_product(&s2, x2 + i, &b);
        add_product(&s3, x3 + i, &b);
    }
    double d0 = sum_of_quad(&s0), d1 = sum_of_quad(&s1), d2 = sum_of_quad(&s2),
           d3 = sum_of_quad(&s3);
    for (; i < n; i++) {
        d0 += x0[i] * y[i];
        d1 += x1[i] * y[i];
        d2 += x2[i] * y[i];
        d3 += x3[i] * y[i];
    }
    out[0] = d0;
    out[1] = d1;
    out[2] = d2;
    out[3] = d3;
}

/* The first n columns of some rows of a factor, after the n rows before them. */
static inline __attribute__((always_inline)) void reduce_all(double *const rows[ROWS],
                                                             const double *a, size_t n)
{
    const double *other = a;
    for (size_t j = 0; j < n; other += ++j) {
        double dots[ROWS];
        dot_products(rows, other, j, dots);
        for (size_t r = 0; r < ROWS; r++)
            rows[r][j] = other[j] > 0 ? (rows[r][j] - dots[r]) / other[j] : 0;
    }
}

static void reduce_rows(double *const rows[ROWS], const double *a, size_t n)
{
    reduce_all(rows, a, n);
}

#if defined(__x86_64__)
static __attribute__((target("avx"))) void reduce_rows_wide(double *const rows[ROWS],
                                                            const double *a, size_t n)
{
    reduce_all(rows, a, n);
}
#else
#define reduce_rows_wide reduce_rows
#endif

/* Reduces the rows from i on, if there are so many; returns how many of their columns are done. */
static size_t reduce_some(double *a, size_t i, size_t n, bool in_order)
{
    double *rows[ROWS];
    if (in_order || i + ROWS > n)
        return 0;
    for (size_t r = 0; r < ROWS; r++)
        rows[r] = a + nrg_packed(i + r, 0);
    if (is_wide())
        reduce_rows_wide(rows, a, i);
    else
        reduce_rows(rows, a, i);
    return i;
}

/* from - x'y */
static double minus_dot(double from, const double *x, const double *y, size_t n, bool in_order)
{
    if (!in_order)
        return from - dot_product(x, y, n);
    for (size_t i = 0; i < n; i++)
        from -= x[i] * y[i];
    return from;
}

size_t nrg_gram_factor(double *a, size_t n, const double *floor, bool *dependent, bool in_order)
{
    size_t rank = 0, done = 0;
    double *row = a;
    for (size_t i = 0; i < n; row += ++i) {
        if (i % ROWS == 0)
            done = reduce_some(a, i, n, in_order);
        const double *other = a + nrg_packed(done, 0);
        for (size_t j = done; j < i; other += ++j)
            row[j] = other[j] > 0 ? minus_dot(row[j], row, other, j, in_order) / other[j] : 0;
        double pivot = minus_dot(row[i], row, row, i, in_order),
               least = floor ? floor[i] : NRG_RIDGE;
        bool lost = !(pivot > least);
        if (dependent)
            dependent[i] = lost;
        rank += !lost;
        row[i] = !lost ? sqrt(pivot) : dependent ? 0 : sqrt(least);
        /* A dependent row is kept, with a pivot of 0, for nrg_gram_parts. */
    }
    return rank;
}

void nrg_gram_solve(const double *l, size_t n, double *x, bool in_order)
{
    for (size_t i = 0; i < n; i++) {
        const double *row = l + nrg_packed(i, 0);
        x[i] = row[i] > 0 ? minus_dot(x[i], row, x, i, in_order) / row[i] : 0;
    }
    for (size_t i = n; i-- > 0;) {
        const double *row = l + nrg_packed(i, 0);
        for (size_t k = i + 1; in_order && k < n; k++)
            x[i] -= l[nrg_packed(k, i)] * x[k];
        x[i] = row[i] > 0 ? x[i] / row[i] : 0;
        if (!in_order && x[i] != 0)
            nrg_add_scaled(x, row, -x[i], i);
    }
}

void nrg_gram_parts(const double *l, size_t j, double *parts)
{
    memcpy(parts, l + nrg_packed(j, 0), j * sizeof *parts);
    for (size_t i = j; i-- > 0;) {
        const double *row = l + nrg_packed(i, 0);
        parts[i] = row[i] > 0 ? parts[i] / row[i] : 0;
        if (parts[i] != 0)
            nrg_add_scaled(parts, row, -parts[i], i);
    }
}

/* Row i of L^-1 is (e_i - sum over j < i of l_ij * row j of L^-1) / l_ii. */
static inline __attribute__((always_inline)) void invert_triangle(double *l, size_t n, double *old)
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

static inline __attribute__((always_inline)) void invert_all(double *l, size_t n, double *inverse)
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

static void invert(double *l, size_t n, double *inverse)
{
    invert_all(l, n, inverse);
}

#if defined(__x86_64__)
static __attribute__((target("avx"))) void invert_wide(double *l, size_t n, double *inverse)
{
    invert_all(l, n, inverse);
}
#else
#define invert_wide invert
#endif

void nrg_gram_invert(double *l, size_t n, double *inverse)
{
    if (is_wide())
        invert_wide(l, n, inverse);
    else
        invert(l, n, inverse);
}

size_t nrg_gram_pick(const struct nrg_gram *gram, size_t from, size_t to, size_t *index, size_t m)
{
    for (size_t i = from; i < to && i < gram->n; i++)
        if (gram->a[nrg_packed(i, i)] > 0)
            index[m++] = i;
    return m;
}

int nrg_scaled_init(struct nrg_scaled *s, const struct nrg_gram *gram, const size_t *index,
                    size_t m)
{
    size_t n = gram->n, cells = n * (n + 1) / 2;
    *s = (struct nrg_scaled){.index = nrg_calloc(n + 1, sizeof *s->index), .n = n};
    s->a = nrg_calloc(cells + 3 * n + 1, sizeof *s->a);
    if (!s->index || !s->a) {
        nrg_scaled_release(s);
        return -ENOMEM;
    }
    s->b = s->a + cells;
    s->x = s->b + n;
    s->scale = s->x + n;
    s->m = index ? m : nrg_gram_pick(gram, 0, n, s->index, 0);
    if (index)
        memcpy(s->index, index, m * sizeof *index);
    double *row = s->a;
    for (size_t p = 0; p < s->m; row += ++p) {
        s->scale[p] = 1 / sqrt(gram->a[nrg_packed(s->index[p], s->index[p])]);
        s->b[p] = gram->b[s->index[p]] * s->scale[p];
        for (size_t q = 0; q <= p; q++)
            row[q] = gram->a[nrg_packed(s->index[p], s->index[q])] * s->scale[p] * s->scale[q];
    }
    return 0;
}

void nrg_scaled_solution(const struct nrg_scaled *s, double *x)
{
    memset(x, 0, s->n * sizeof *x);
    for (size_t p = 0; p < s->m; p++)
        x[s->index[p]] = s->x[p] * s->scale[p];
}

void nrg_scaled_release(struct nrg_scaled *s)
{
    free(s->index);
    free(s->a);
    *s = (struct nrg_scaled){0};
}

int nrg_gram_least_squares(const struct nrg_gram *gram, double *x, size_t *rank)
{
    struct nrg_scaled s;
    int rc = nrg_scaled_init(&s, gram, NULL, 0);
    bool *dependent = rc ? NULL : nrg_calloc(s.m + 1, sizeof *dependent);
    if (!dependent)
        rc = -ENOMEM;
    for (size_t p = 0; !rc && p < s.m; p++)
        s.x[p] = NRG_PIVOT_TOLERANCE;
    if (!rc) {
        *rank = nrg_gram_factor(s.a, s.m, s.x, dependent, true);
        memcpy(s.x, s.b, s.m * sizeof *s.x);
        nrg_gram_solve(s.a, s.m, s.x, true);
        nrg_scaled_solution(&s, x);
    }
    free(dependent);
    nrg_scaled_release(&s);
    return rc;
}
