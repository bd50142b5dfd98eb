/*
 * See when.h. There are far more classes than cells can tell: short ones join who they are next to,
 * until MOST_PARTS are left that would show, and then, one after the other, those two neighbours
 * whose difference explains least. Of all these, from one rate for each part to one for all,
 * Schwarz's criterion takes one: a part costs two numbers, its rate and which classes it has.
 */
#include "attribute/regress/load/when.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/nnls.h"

#define MOST_PARTS  24
#define PART_COSTS  2
#define SHOWS       4.0   /* standard errors */
#define LEAST_CELLS 100   /* a few seconds tell what they have in common by chance */
#define ROUNDING    1e-12 /* of squares */
#define LEAST_OFF   1e-6  /* CPUs */
#define PACKED      (MOST_PARTS * (MOST_PARTS + 1) / 2)

/* Parts, and their normal equations. */
struct parts {
    size_t n;
    double a[PACKED], b[MOST_PARTS], next[PACKED];
    double yy;
    double rate[MOST_PARTS];
};

struct joining {
    const struct nrg_when_cells *cells;
    size_t n;
    uint32_t *part; /* per column: the column that stands for its part */
    double *open_s, *next;
    double *told; /* per part: sum over cells of the square of how long it is open */
    size_t left;
};

static int start_joining(struct joining *j, const struct nrg_when_cells *cells,
                         struct nrg_arena *memory)
{
    size_t n = cells->gram->n, packed = n * (n + 1) / 2;
    *j = (struct joining){.cells = cells, .n = n};
    j->part = nrg_arena_array(memory, n + 1, sizeof *j->part);
    j->open_s = nrg_arena_array(memory, n + 1, sizeof *j->open_s);
    j->next = nrg_arena_array(memory, packed + 1, sizeof *j->next);
    j->told = nrg_arena_array(memory, n + 1, sizeof *j->told);
    if (memory->failed)
        return -ENOMEM;
    memcpy(j->open_s, cells->open_s, n * sizeof *j->open_s);
    memcpy(j->next, cells->next, packed * sizeof *j->next);
    for (size_t c = 0; c < n; c++) {
        j->part[c] = (uint32_t)c;
        j->told[c] = cells->gram->a[nrg_packed(c, c)];
        j->left += j->open_s[c] > 0;
    }
    return 0;
}

static bool stands(const struct joining *j, size_t c)
{
    return j->part[c] == c && j->open_s[c] > 0;
}

/* Sum over cells of the time of one part times that of another. */
static double both_open(const struct joining *j, size_t from, size_t to)
{
    double sum = 0;
    for (size_t c = 0; c < j->n; c++)
        for (size_t d = 0; j->part[c] == from && d < j->n; d++)
            sum += j->part[d] == to ? j->cells->gram->a[nrg_packed(c, d)] : 0;
    return sum;
}

static void join_columns(struct joining *j, size_t from, size_t to)
{
    j->told[to] += j->told[from] + 2 * both_open(j, from, to);
    for (size_t c = 0; c < j->n; c++) {
        j->part[c] = j->part[c] == from ? (uint32_t)to : j->part[c];
        if (c != from)
            j->next[nrg_packed(c, to)] += j->next[nrg_packed(c, from)];
    }
    j->open_s[to] += j->open_s[from];
    j->left--;
}

/* Spans inside of others are next to what is around them as often as to each other: of these, who
 * is open for longer is nearer. */
static double nearness(const struct joining *j, size_t c, size_t to)
{
    return j->next[nrg_packed(c, to)] * j->open_s[c];
}

/* The part that cells tell least of. */
static size_t least_told(const struct joining *j)
{
    size_t least = SIZE_MAX;
    for (size_t c = 0; c < j->n; c++)
        if (stands(j, c) && (least == SIZE_MAX || j->told[c] < j->told[least]))
            least = c;
    return least;
}

static void join_to_next(struct joining *j, size_t part)
{
    size_t near = SIZE_MAX;
    for (size_t c = 0; c < j->n; c++)
        if (c != part && stands(j, c) &&
            (near == SIZE_MAX || nearness(j, c, part) > nearness(j, near, part)))
            near = c;
    join_columns(j, part, near);
}

/* Until there are few, and one CPU that runs all through any of them shows in cells. `noise2`: the
 * square of what a cell leaves. */
static void join_short(struct joining *j, double noise2)
{
    while (j->left > 1) {
        size_t least = least_told(j);
        if (j->left <= MOST_PARTS && j->told[least] > SHOWS * SHOWS * noise2)
            return;
        join_to_next(j, least);
    }
}

/* What a cell leaves where there is one rate for all. */
static double even_noise2(const struct nrg_gram *g)
{
    double xx = 0, xy = 0;
    for (size_t c = 0; c < g->n; c++) {
        xy += g->b[c];
        for (size_t d = 0; d < g->n; d++)
            xx += g->a[nrg_packed(c, d)];
    }
    return xx > 0 ? fmax(g->yy - xy * xy / xx, 0) / (double)g->rows : 0;
}

/* Sums over the columns of each part. */
static void sum_parts(const struct joining *j, struct parts *p, uint32_t *number)
{
    const struct nrg_gram *g = j->cells->gram;
    uint32_t column[MOST_PARTS];
    *p = (struct parts){.yy = g->yy};
    for (size_t c = 0; c < j->n; c++)
        if (stands(j, c)) {
            column[p->n] = (uint32_t)c;
            number[c] = (uint32_t)p->n++;
        }
    for (size_t c = 0; c < j->n; c++) {
        uint32_t to = number[j->part[c]];
        if (!(j->open_s[j->part[c]] > 0))
            continue;
        p->b[to] += g->b[c];
        for (size_t d = 0; d < j->n; d++)
            if (j->open_s[j->part[d]] > 0 && number[j->part[d]] <= to)
                p->a[nrg_packed(to, number[j->part[d]])] += g->a[nrg_packed(c, d)];
    }
    for (size_t a = 0; a < p->n; a++)
        for (size_t b = 0; b < a; b++)
            p->next[nrg_packed(a, b)] = j->next[nrg_packed(column[a], column[b])];
}

/* Fills the rates; *left2 is the sum of squares that they leave. */
static int solve(struct parts *p, double *left2)
{
    struct nrg_gram gram = {.n = p->n, .a = p->a, .b = p->b, .yy = p->yy};
    int rc = nrg_gram_nonnegative(&gram, NULL, 0, 0, NRG_RIDGE, p->rate);
    *left2 = rc ? INFINITY : fmax(nrg_gram_residual(&gram, p->rate), 0);
    return rc;
}

/* Part `from` joins `to`, which is before it; those after it move up. */
static void join_parts(const struct parts *p, size_t from, size_t to, struct parts *joined)
{
    size_t number[MOST_PARTS], n = 0;
    *joined = (struct parts){.n = p->n - 1, .yy = p->yy};
    for (size_t i = 0; i < p->n; i++)
        number[i] = i == from ? SIZE_MAX : n++;
    number[from] = number[to];
    for (size_t i = 0; i < p->n; i++) {
        joined->b[number[i]] += p->b[i];
        for (size_t k = 0; k <= i; k++) {
            bool both = i != k && number[i] == number[k];
            joined->a[nrg_packed(number[i], number[k])] += (both ? 2 : 1) * p->a[nrg_packed(i, k)];
            joined->next[nrg_packed(number[i], number[k])] += p->next[nrg_packed(i, k)];
        }
    }
}

struct pair {
    size_t from, to;
    double left2;
};

/* The two neighbours that are best joined; any two where none are neighbours. */
static int find_pair(const struct parts *p, struct pair *best)
{
    struct parts joined;
    int rc = 0;
    *best = (struct pair){.left2 = INFINITY};
    for (int any = 0; any < 2 && !(best->left2 < INFINITY); any++)
        for (size_t a = 1; !rc && a < p->n; a++)
            for (size_t b = 0; !rc && b < a; b++) {
                double left2;
                if (!any && !(p->next[nrg_packed(a, b)] > 0))
                    continue;
                join_parts(p, a, b, &joined);
                rc = solve(&joined, &left2);
                if (left2 < best->left2)
                    *best = (struct pair){a, b, left2};
            }
    return rc;
}

static double schwarz(double left2, size_t parts, size_t cells)
{
    double n = (double)cells;
    return n * log(left2 / n) + PART_COSTS * (double)parts * log(n);
}

/* What was chosen: which part of the first ones is in which, and what that leaves. */
struct choice {
    struct parts parts;
    double left2, schwarz;
    size_t in[MOST_PARTS]; /* per one of the first parts */
};

/* From one rate for each part to one for all. */
static int choose(struct parts p, size_t cells, struct choice *best)
{
    struct parts joined;
    struct pair pair;
    size_t n = p.n, in[MOST_PARTS];
    int rc = solve(&p, &pair.left2);
    double least2 = ROUNDING * p.yy;
    best->schwarz = INFINITY;
    for (size_t i = 0; i < n; i++)
        in[i] = i;
    while (!rc) {
        double now = schwarz(fmax(pair.left2, least2), p.n, cells);
        if (now < best->schwarz) {
            *best = (struct choice){.parts = p, .left2 = fmax(pair.left2, least2), .schwarz = now};
            memcpy(best->in, in, sizeof in);
        }
        if (p.n == 1)
            break;
        rc = find_pair(&p, &pair);
        if (rc || !(pair.left2 < INFINITY))
            break;
        for (size_t i = 0; i < n; i++)
            in[i] = in[i] == pair.from ? pair.to : in[i] - (in[i] > pair.from);
        join_parts(&p, pair.from, pair.to, &joined);
        p = joined;
        rc = solve(&p, &pair.left2);
    }
    return rc;
}

/* Inverse of a packed matrix with a diagonal above 0. */
static void invert(const double *a, size_t n, double *inverse)
{
    double l[PACKED], scale[MOST_PARTS], floor[MOST_PARTS] = {0};
    for (size_t i = 0; i < n; i++) {
        scale[i] = 1 / sqrt(a[nrg_packed(i, i)]);
        floor[i] = NRG_PIVOT_TOLERANCE;
        for (size_t k = 0; k <= i; k++)
            l[nrg_packed(i, k)] = a[nrg_packed(i, k)] * scale[i] * scale[k];
    }
    nrg_gram_factor(l, n, floor, NULL, true);
    nrg_gram_invert(l, n, inverse);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            inverse[nrg_packed(i, k)] *= scale[i] * scale[k];
}

/*
 * What is not known of the rates of the first parts. Processes run or do not: parts whose mean is r
 * of at most `most` CPUs scatter around it by r * (most - r) at most (a square), and inside of
 * cells by most2. How much of that is left is told by cells.
 */
static void find_covariance(const struct parts *first, const struct choice *c, size_t cells,
                            double most2, double *covariance)
{
    double a[PACKED], errors2[PACKED], most = 1;
    double noise2 = c->left2 / (double)(cells - c->parts.n);
    invert(c->parts.a, c->parts.n, errors2);
    for (size_t i = 0; i < c->parts.n; i++)
        most = fmax(most, c->parts.rate[i]);
    for (size_t i = 0; i < first->n * (first->n + 1) / 2; i++)
        a[i] = first->a[i] / noise2;
    for (size_t i = 0; i < first->n; i++) {
        double r = c->parts.rate[c->in[i]];
        double off2 =
            fmin(r * (most - r), most2) + noise2 * errors2[nrg_packed(c->in[i], c->in[i])];
        a[nrg_packed(i, i)] += 1 / fmax(off2, LEAST_OFF * LEAST_OFF);
    }
    invert(a, first->n, covariance);
}

static void keep(const struct joining *j, const struct choice *c, const uint32_t *number,
                 struct nrg_when *when)
{
    when->differs = c->parts.n > 1;
    for (size_t i = 0; i < j->n; i++)
        if (j->open_s[j->part[i]] > 0) {
            when->part[i] = number[j->part[i]];
            when->rate[i] = c->parts.rate[c->in[when->part[i]]];
        }
}

int nrg_when_fit(struct nrg_when *when, const struct nrg_when_cells *cells,
                 struct nrg_arena *memory)
{
    struct joining j;
    struct parts first;
    struct choice choice;
    *when = (struct nrg_when){0};
    int rc = start_joining(&j, cells, memory);
    if (rc || cells->gram->rows < LEAST_CELLS + MOST_PARTS || !(cells->gram->yy > 0) || !j.left)
        return rc;
    join_short(&j, even_noise2(cells->gram));
    uint32_t *number = nrg_arena_array(memory, j.n, sizeof *number);
    when->part = nrg_arena_array(memory, j.n, sizeof *when->part);
    when->covariance = nrg_arena_array(memory, PACKED, sizeof *when->covariance);
    double *rate = nrg_arena_array(memory, j.n, sizeof *rate);
    if (memory->failed)
        return -ENOMEM;
    when->rate = rate;
    sum_parts(&j, &first, number);
    rc = choose(first, cells->gram->rows, &choice);
    if (rc)
        return rc;
    find_covariance(&first, &choice, cells->gram->rows, cells->most2, when->covariance);
    keep(&j, &choice, number, when);
    return 0;
}
