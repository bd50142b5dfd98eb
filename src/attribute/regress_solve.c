/*
 * From the blocks' normal equations to powers with intervals.
 *
 * Powers are not negative; their intervals come from the solution without that condition, cut at
 * 0, because only those cover whatever the truth is. Their width is the plain one of least squares
 * (scatter of what is left, times the inverse), corrected by how much the blocks scatter more or
 * less than it says: rows that depend on their neighbours, or noise that differs between classes,
 * show there. The correction of a class is drawn to that of all classes as far as blocks are too
 * few to tell them apart. A block's own share in the fit is taken out by leaving it out of the fit
 * (one side of the product), which makes the scatter right on average.
 */
#include "attribute/regress_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPENDENT     1e-9 /* of a column's square that is its own: less is rounding */
#define STAMP_NOISE   4.0  /* so many times what rounding of time stamps explains: not its own */
#define MEMBER        0.01 /* a part this small does not make a class one of a group */
#define LEFT_OUT_LOST 1e-7
#define MAX_JACKKNIFE 1e10 /* multiplications */
#define MOST_PRIOR    200.0
#define ROUNDING_ONE  0.243 /* of a step: 95 % of it are within 1.96 times this */
#define ROUNDING_TWO  0.285 /* the same of two steps together, each */
#define IDLE_KNOWN    0.5   /* of the mean power: an idle interval wider than this is not known */
#define IDLE_TIME     0.001

struct solver {
    const struct nrg_regress *r;
    struct nrg_gram sum;
    size_t m; /* columns that are solved for: bends, classes, then idle */
    size_t n_bends;
    size_t *index;                                           /* to columns of the sum */
    double *scale, *floor, *beta, *free_beta, *ratio, *work; /* beta: scaled */
    double *inverse;                                         /* packed; 0 for dependent columns */
    double *factor;
    double *covariance;
    bool *dependent;
    bool idle;
    double edge; /* see edge_noise */
    double left; /* mean square of what is left */
    double freedom;
    size_t *root; /* of groups: union by index */
};

double nrg_student_t(double confidence, double freedom)
{
    double low = 0, high = 40, tail = (1 - confidence) / 2;
    for (int i = 0; i < 80; i++) {
        double z = (low + high) / 2;
        *(erfc(z / sqrt(2)) / 2 > tail ? &low : &high) = z;
    }
    if (freedom < 1.5)
        return 1 / tan(acos(-1) * tail);
    if (freedom < 2.5)
        return (1 - 2 * tail) / sqrt(2 * tail * (1 - tail));
    double z = low, z2 = z * z, f = freedom;
    double a = z * (z2 + 1) / 4, b = z * ((5 * z2 + 16) * z2 + 3) / 96,
           c = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
           d = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (a + (b + (c + d / f) / f) / f) / f;
}

static void release(struct solver *s)
{
    nrg_gram_release(&s->sum);
    free(s->index);
    free(s->scale);
    free(s->inverse);
    free(s->factor);
    free(s->covariance);
    free(s->dependent);
    free(s->root);
}

static int init(struct solver *s, const struct nrg_regress *r)
{
    size_t n = r->n_columns, cells = n * (n + 1) / 2;
    *s = (struct solver){.r = r};
    int rc = nrg_gram_grow(&s->sum, n);
    for (size_t i = 0; !rc && i < r->n_blocks; i++)
        nrg_gram_join(&s->sum, &r->block[i]);
    s->index = calloc(n, sizeof *s->index);
    s->root = calloc(n, sizeof *s->root);
    s->scale = calloc(7 * n, sizeof *s->scale);
    s->inverse = calloc(cells, sizeof *s->inverse);
    s->factor = calloc(cells, sizeof *s->factor);
    s->covariance = calloc(cells, sizeof *s->covariance);
    s->dependent = calloc(n, sizeof *s->dependent);
    if (rc || !s->index || !s->root || !s->scale || !s->inverse || !s->factor || !s->covariance ||
        !s->dependent)
        return -ENOMEM;
    s->floor = s->scale + n;
    s->beta = s->floor + n;
    s->free_beta = s->beta + n;
    s->ratio = s->free_beta + n;
    s->work = s->ratio + n; /* two columns wide */
    return 0;
}

/*
 * Rounded time stamps give columns variation that is not theirs, which would draw their powers
 * towards one another: so much per edge of a slice. A gauge that averages sees a part of it in
 * many rows, and whitening adds rows up.
 */
static double edge_noise(const struct solver *s)
{
    const struct nrg_regress *r = s->r;
    const struct nrg_noise *noise = &r->noise;
    double grain_s = (double)r->grain_ns / 1e9, rows = (double)s->sum.rows;
    double square = grain_s * grain_s / 12 * s->sum.weight / rows,
           across = noise->theta - noise->phi;
    square *= 1 + across * across / (1 - noise->theta * noise->theta);
    if (r->options.timeline->gauge) {
        double h_s = r->sum_s / rows, memory_s = nrg_kernel_memory_s(&r->kernel);
        double seen_s = r->kernel.kind == NRG_KERNEL_EXP   ? 2 * memory_s
                        : r->kernel.kind == NRG_KERNEL_BOX ? memory_s
                                                           : h_s;
        square /= h_s * fmax(seen_s, h_s);
    }
    return r->grain_ns > 1 ? square : 0;
}

static void pick_columns(struct solver *s, bool idle)
{
    s->m = s->n_bends = 0;
    s->edge = edge_noise(s);
    s->idle = idle;
    for (size_t i = 0; i < s->sum.n; i++) /* those that may be negative come first */
        if (i != NRG_COLUMN_IDLE && s->sum.a[nrg_packed(i, i)] > 0)
            s->index[s->m++] = i;
    while (s->n_bends < s->m && s->index[s->n_bends] < NRG_COLUMN_CLASSES)
        s->n_bends++;
    if (idle)
        s->index[s->m++] = NRG_COLUMN_IDLE;
    for (size_t p = 0; p < s->m; p++) {
        size_t i = s->index[p];
        s->scale[p] = 1 / sqrt(s->sum.a[nrg_packed(i, i)]);
        double noise = i < s->r->edges.n ? s->edge * s->r->edges.a[nrg_packed(i, i)] : 0;
        s->floor[p] = fmax(DEPENDENT, STAMP_NOISE * noise * s->scale[p] * s->scale[p]);
        s->root[p] = p;
    }
}

/* Scaled matrix of the picked columns, of the sum or a block. */
static void fill(const struct solver *s, const struct nrg_gram *from, double *a, double *b)
{
    double *row = a;
    for (size_t p = 0; p < s->m; row += ++p) {
        size_t i = s->index[p];
        b[p] = i < from->n ? from->b[i] * s->scale[p] : 0;
        for (size_t q = 0; q <= p; q++) {
            size_t j = s->index[q];
            bool there = i < from->n && j < from->n;
            row[q] = there ? from->a[nrg_packed(i, j)] * s->scale[p] * s->scale[q] : 0;
        }
    }
}

/* What rounding of time stamps added to a matrix of `part` of all rows. */
static void take_edges(const struct solver *s, double part, double *a)
{
    const struct nrg_gram *edges = &s->r->edges;
    double *row = a;
    for (size_t p = 0; s->edge > 0 && p < s->m; row += ++p) {
        size_t i = s->index[p];
        for (size_t q = 0; i < edges->n && q <= p; q++)
            if (s->index[q] < edges->n)
                row[q] -= part * s->edge * edges->a[nrg_packed(i, s->index[q])] * s->scale[p] *
                          s->scale[q];
    }
}

static size_t root_of(const struct solver *s, size_t p)
{
    while (s->root[p] != p)
        p = s->root[p];
    return p;
}

static void join(struct solver *s, size_t p, size_t q)
{
    size_t a = root_of(s, p), b = root_of(s, q);
    if (a != b)
        s->root[a > b ? a : b] = a > b ? b : a;
}

static void make_groups(struct solver *s)
{
    for (size_t p = 0; p < s->m; p++) {
        if (!s->dependent[p])
            continue;
        nrg_gram_parts(s->factor, p, s->work);
        double most = 0;
        for (size_t q = s->n_bends; q < p; q++)
            most = fmax(most, fabs(s->work[q]));
        for (size_t q = 0; q < p; q++)
            if (q >= s->n_bends && fabs(s->work[q]) > MEMBER * most)
                join(s, p, q);
    }
}

/* Solutions with and without the condition, the inverse, and what is left. */
static int solve(struct solver *s, bool idle)
{
    pick_columns(s, idle);
    fill(s, &s->sum, s->factor, s->free_beta);
    take_edges(s, 1, s->factor);
    size_t rank = nrg_gram_factor(s->factor, s->m, s->floor, s->dependent);
    /* Where classes can't be told apart, what edges take may be more than there is. */
    fill(s, &s->sum, s->inverse, s->free_beta);
    if (rank == s->m)
        take_edges(s, 1, s->inverse);
    int rc = nrg_gram_nonnegative(s->inverse, s->free_beta, s->m, s->n_bends, s->beta);
    if (rc)
        return rc;
    make_groups(s);
    for (size_t p = 0; p < s->m; p++) /* rows of dependent columns are of no more use */
        for (size_t q = 0; s->dependent[p] && q <= p; q++)
            s->factor[nrg_packed(p, q)] = 0;
    nrg_gram_solve(s->factor, s->m, s->free_beta);
    nrg_gram_invert(s->factor, s->m, s->inverse);
    memset(s->work, 0, 2 * s->sum.n * sizeof *s->work);
    for (size_t p = 0; p < s->m; p++)
        s->work[s->index[p]] = s->free_beta[p] * s->scale[p];
    s->freedom = (double)s->sum.rows - (double)rank;
    s->left = nrg_gram_residual(&s->sum, s->work) / fmax(s->freedom, 1);
    return s->freedom >= 1 ? 0 : -ENODATA;
}

/* Score of a block: what its rows would have the solution be moved by, before any inverse. */
static void score(const struct solver *s, double *a, double *b)
{
    for (size_t p = 0; p < s->m; p++) {
        double sum = 0;
        for (size_t q = 0; q < s->m; q++)
            sum += a[nrg_packed(p, q)] * s->free_beta[q];
        b[p] = s->dependent[p] ? 0 : b[p] - sum;
    }
}

static void multiply(const struct solver *s, const double *x, double *y)
{
    for (size_t p = 0; p < s->m; p++) {
        y[p] = 0;
        for (size_t q = 0; q < s->m; q++)
            y[p] += s->inverse[nrg_packed(p, q)] * x[q];
    }
}

/*
 * Adds what one block says of each column's variance to ratio. `a` and `all` are room for
 * matrices: the block's, and that of all blocks.
 */
static void add_block(struct solver *s, const struct nrg_gram *block, double *a, const double *all,
                      bool leave_out, bool *lost)
{
    double *b = s->work, *moved = s->work + s->m;
    fill(s, block, a, b);
    take_edges(s, (double)block->rows / (double)s->sum.rows, a);
    score(s, a, b);
    multiply(s, b, moved);
    if (leave_out) {
        for (size_t p = 0; p < s->m; p++)
            for (size_t q = 0; q <= p; q++)
                a[nrg_packed(p, q)] = s->dependent[p] || s->dependent[q]
                                          ? 0
                                          : all[nrg_packed(p, q)] - a[nrg_packed(p, q)];
        for (size_t p = 0; p < s->m; p++)
            s->floor[p] = LEFT_OUT_LOST;
        nrg_gram_factor(a, s->m, s->floor, lost);
        for (size_t p = 0; p < s->m; p++)
            for (size_t q = 0; lost[p] && q <= p; q++)
                a[nrg_packed(p, q)] = 0;
        nrg_gram_solve(a, s->m, b);
    } else {
        memcpy(b, moved, s->m * sizeof *b);
    }
    for (size_t p = 0; p < s->m; p++)
        s->ratio[p] += b[p] * moved[p];
}

/* Blocks in which a column has its part; 0 when one block has most of it. */
static double blocks_of(const struct solver *s, size_t p)
{
    size_t i = s->index[p];
    double all = s->sum.a[nrg_packed(i, i)], square = 0;
    for (size_t g = 0; g < s->r->n_blocks; g++) {
        const struct nrg_gram *block = &s->r->block[g];
        double part = i < block->n ? block->a[nrg_packed(i, i)] / all : 0;
        if (part > 0.5)
            return 0;
        square += part * part;
    }
    return square > 0 ? 1 / square - 1 : 0;
}

/* Ratios are drawn to their mean as far as they scatter by chance alone. */
static void moderate(struct solver *s)
{
    double n = 0, mean = 0, square = 0, chance = 0;
    for (size_t p = 0; p < s->m; p++) {
        double blocks = s->dependent[p] ? 0 : blocks_of(s, p);
        s->work[p] = blocks;
        if (blocks < 2)
            continue;
        double ratio = fmin(fmax(s->ratio[p], 0.02), 50);
        n++;
        mean += ratio;
        square += ratio * ratio;
        chance += 2 / blocks;
    }
    mean = n > 0 ? mean / n : 1;
    double spread =
        n > 1 ? (square / n - mean * mean) / (mean * mean) * n / (n - 1) - chance / n : 0;
    double prior = n > 1 ? (spread > 2 / MOST_PRIOR ? 2 / spread : MOST_PRIOR) : 4;
    for (size_t p = 0; p < s->m; p++) {
        double blocks = s->work[p] < 2 ? 0 : s->work[p];
        double ratio = fmin(fmax(s->ratio[p], 0.02), 50);
        s->ratio[p] = (prior * mean + blocks * ratio) / (prior + blocks);
        s->work[p] = fmin(s->freedom, prior + blocks);
    }
    double freedom = 0;
    for (size_t p = 0; p < s->m; p++)
        freedom += s->work[p] / (double)s->m;
    s->freedom = freedom;
}

/* Rounding that comes back every step does not average out over them. */
static double rounded_alike(const struct solver *s)
{
    const struct nrg_regress *r = s->r;
    double w_mean = r->sum_y / r->sum_s, q2 = r->quantum * r->quantum / 12;
    double all = s->left * (r->noise.floor2 + r->noise.slope2 * w_mean * w_mean);
    return all > 0 ? 1 + fmin(q2 / all, 1) * r->repeats : 1;
}

/* How much wider than plain least squares says, per column. */
static int find_ratios(struct solver *s)
{
    size_t cells = s->m * (s->m + 1) / 2;
    double m = (double)s->m, cost = (double)s->r->n_blocks * m * m * m / 3;
    double *a = malloc((2 * cells + 1) * sizeof *a);
    bool *lost = malloc(s->m + 1);
    if (!a || !lost) {
        free(a);
        free(lost);
        return -ENOMEM;
    }
    for (size_t p = 0; p < s->m; p++)
        s->ratio[p] = 0;
    fill(s, &s->sum, a + cells, s->work);
    take_edges(s, 1, a + cells);
    for (size_t g = 0; g < s->r->n_blocks; g++)
        add_block(s, &s->r->block[g], a, a + cells, cost < MAX_JACKKNIFE, lost);
    for (size_t p = 0; p < s->m; p++) {
        double plain = s->left * s->inverse[nrg_packed(p, p)];
        s->ratio[p] = s->r->n_blocks > 2 && plain > 0 ? s->ratio[p] / plain : 1;
    }
    moderate(s);
    for (size_t p = 0; p < s->m; p++)
        s->ratio[p] = fmax(s->ratio[p], rounded_alike(s));
    free(a);
    free(lost);
    return 0;
}

/*
 * Rounding of readings that saw one power alone is the same in all of them, unless noise blurs it:
 * up to half a step, which moves the class and, as it is below all of them, idle.
 */
static void add_rounding(struct solver *s)
{
    const struct nrg_regress *r = s->r;
    double q = r->quantum, blur2 = r->pure_rows > 0 ? r->pure_e2 / r->pure_rows : 0;
    double off = q * (s->idle ? ROUNDING_TWO : ROUNDING_ONE);
    if (q > 0)
        off *= exp(-2 * M_PI * M_PI * blur2 / (q * q));
    for (size_t p = s->n_bends; q > 0 && p < s->m; p++) {
        double weight = r->pure[s->index[p]] * off;
        if (!(weight > 0) || s->dependent[p])
            continue;
        memset(s->work, 0, s->m * sizeof *s->work);
        s->work[p] = weight * s->scale[p];
        if (s->idle && p != s->m - 1)
            s->work[s->m - 1] = weight * s->scale[s->m - 1];
        multiply(s, s->work, s->work + s->m);
        for (size_t a = 0; a < s->m; a++)
            for (size_t b = 0; b <= a; b++)
                s->covariance[nrg_packed(a, b)] += s->work[s->m + a] * s->work[s->m + b];
    }
}

/* Of picked columns, scaled. */
static void make_covariance(struct solver *s)
{
    for (size_t p = 0; p < s->m; p++)
        for (size_t q = 0; q <= p; q++)
            s->covariance[nrg_packed(p, q)] =
                s->left * s->inverse[nrg_packed(p, q)] * sqrt(s->ratio[p] * s->ratio[q]);
    add_rounding(s);
}

static double covariance(const struct solver *s, size_t p, size_t q)
{
    return s->covariance[nrg_packed(p, q)] * s->scale[p] * s->scale[q];
}

static double column_time_s(const struct solver *s, size_t p)
{
    return s->index[p] >= NRG_COLUMN_CLASSES ? s->r->time_s[s->index[p]] : 0;
}

/* A class, or all of its group by their time: the mean of what f gives for its columns. */
struct part {
    size_t root, alone; /* alone: SIZE_MAX when it is a group */
    double time_s;
};

static double share_in(const struct solver *s, const struct part *part, size_t p)
{
    if (part->alone != SIZE_MAX)
        return p == part->alone;
    return root_of(s, p) == part->root ? column_time_s(s, p) / part->time_s : 0;
}

static struct part part_of(const struct solver *s, size_t p)
{
    struct part part = {.root = root_of(s, p), .alone = p};
    for (size_t q = 0; q < s->m; q++) {
        if (root_of(s, q) != part.root)
            continue;
        part.time_s += column_time_s(s, q);
        if (q != p)
            part.alone = SIZE_MAX;
    }
    return part;
}

static double part_sum(const struct solver *s, const struct part *part, const double *beta)
{
    double sum = 0;
    for (size_t p = 0; p < s->m; p++)
        sum += share_in(s, part, p) * beta[p] * s->scale[p];
    return sum;
}

static double part_covariance(const struct solver *s, const struct part *a, const struct part *b)
{
    double sum = 0;
    if (a->alone != SIZE_MAX && b->alone != SIZE_MAX)
        return covariance(s, a->alone, b->alone);
    for (size_t p = 0; p < s->m; p++) {
        double x = share_in(s, a, p);
        for (size_t q = 0; x > 0 && q < s->m; q++) {
            double y = share_in(s, b, q);
            if (y > 0)
                sum += x * y * covariance(s, p, q);
        }
    }
    return sum;
}

struct interval {
    double value, low, high;
};

static struct interval make_interval(double value, double center, double half, double most)
{
    struct interval i = {value, fmax(center - half, 0), fmax(center + half, half)};
    i.high = fmin(i.high, most);
    i.low = fmin(i.low, value);
    i.high = fmax(i.high, value);
    return i;
}

static void set_class(const struct solver *s, struct nrg_regress_result *result, size_t p,
                      const struct part *part)
{
    const struct nrg_regress *r = s->r;
    struct nrg_regress_class *c = &result->classes[r->class_of[s->index[p]]];
    double value = part_sum(s, part, s->beta);
    double half = result->t * sqrt(part_covariance(s, part, part));
    struct interval i = make_interval(value, part_sum(s, part, s->free_beta), half,
                                      part->time_s > 0 ? 1.05 * r->sum_y / part->time_s : INFINITY);
    c->power_w = i.value;
    c->low_w = i.low;
    c->high_w = i.high;
    c->time_s = column_time_s(s, p);
    c->unresolved = !(i.high - i.low <= i.value);
    c->group = r->class_of[s->index[part->root]];
}

static void set_idle(const struct solver *s, struct nrg_regress_result *result)
{
    const struct nrg_regress *r = s->r;
    if (!isnan(r->options.idle_w))
        result->idle_w = result->idle_low_w = result->idle_high_w = r->options.idle_w;
    if (!s->idle)
        return;
    size_t p = s->m - 1;
    double variance = covariance(s, p, p);
    struct interval i = make_interval(s->beta[p] * s->scale[p], s->free_beta[p] * s->scale[p],
                                      result->t * sqrt(variance), 1.05 * r->sum_y / r->sum_s);
    result->idle_fitted = true;
    result->idle_variance = variance;
    result->idle_w = i.value;
    result->idle_low_w = i.low;
    result->idle_high_w = i.high;
}

static int set_classes(const struct solver *s, struct nrg_regress_result *result)
{
    const struct nrg_regress *r = s->r;
    size_t n = r->options.n_classes;
    struct part *parts = calloc(s->m + 1, sizeof *parts);
    if (!parts)
        return -ENOMEM;
    for (size_t p = 0; p < s->m; p++)
        parts[p] = part_of(s, p);
    for (size_t p = 0; p < s->m; p++) {
        if (s->index[p] < NRG_COLUMN_CLASSES)
            continue;
        size_t a = r->class_of[s->index[p]];
        set_class(s, result, p, &parts[p]);
        for (size_t q = s->n_bends; q <= p; q++) {
            size_t b = r->class_of[s->index[q]];
            double value = part_covariance(s, &parts[p], &parts[q]);
            result->covariance[a * n + b] = result->covariance[b * n + a] = value;
        }
        if (s->idle)
            result->idle_covariance[a] = part_covariance(s, &parts[p], &parts[s->m - 1]);
    }
    free(parts);
    return 0;
}

/* Idle stays when there was time without spans, and enough of it to be known from. */
static bool idle_is_known(const struct solver *s)
{
    const struct nrg_regress *r = s->r;
    size_t p = s->m - 1;
    if (s->dependent[p] || r->covered_s > (1 - IDLE_TIME) * r->sum_s)
        return false;
    double half = nrg_student_t(r->options.confidence, s->freedom) * sqrt(covariance(s, p, p));
    return half < IDLE_KNOWN * r->sum_y / r->sum_s;
}

static int solve_all(struct solver *s)
{
    bool fit_idle = isnan(s->r->options.idle_w);
    int rc = solve(s, fit_idle);
    if (!rc)
        rc = find_ratios(s);
    if (!rc)
        make_covariance(s);
    if ((!rc && fit_idle && !idle_is_known(s)) || (rc == -ENODATA && fit_idle)) {
        rc = solve(s, false);
        if (!rc)
            rc = find_ratios(s);
        if (!rc)
            make_covariance(s);
    }
    return rc;
}

static int make_room(const struct nrg_regress *r, struct nrg_regress_result *result)
{
    size_t n = r->options.n_classes;
    result->classes = calloc(n + 1, sizeof *result->classes);
    result->covariance = calloc(n * n + 1, sizeof *result->covariance);
    result->idle_covariance = calloc(n + 1, sizeof *result->idle_covariance);
    if (!result->classes || !result->covariance || !result->idle_covariance)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        result->classes[i] =
            (struct nrg_regress_class){.power_w = NAN, .low_w = NAN, .high_w = NAN, .group = i};
    return 0;
}

int nrg_regress_make_result(const struct nrg_regress *r, struct nrg_regress_result *result)
{
    struct solver s;
    int rc = init(&s, r);
    if (!rc)
        rc = solve_all(&s);
    if (!rc)
        rc = make_room(r, result);
    if (!rc) {
        result->t = nrg_student_t(r->options.confidence, s.freedom);
        result->intervals = r->row;
        result->lag_s = strcmp(r->lag_source, "none") ? nrg_kernel_lag_s(&r->kernel) : 0;
        memcpy(result->lag_source, r->lag_source, sizeof result->lag_source);
        result->residual = r->sum_y2 > 0 ? sqrt(r->sum_e2 / r->sum_y2) : 0;
        set_idle(&s, result);
        rc = set_classes(&s, result);
    }
    if (rc || !s.idle) {
        free(result->idle_covariance);
        result->idle_covariance = NULL;
    }
    if (rc)
        nrg_regress_result_release(result);
    release(&s);
    return rc;
}
