/*
 * Idle power that goes its own way: a fan that hunts, a room that warms up. The shapes of drift.c
 * do not have it, and a program that never rests shows idle power together with its load alone. But
 * a load that is the same from step to step shows how their sum goes, and where idle power begins
 * is known from the baseline. So what rows leave is taken to be a random walk from there on,
 * straight from one block of rows to the next: how far it goes, and how much blocks scatter
 * besides, are found by marginal likelihood, and what is then not known of it is in the covariance.
 *
 * A load that goes its own way looks much the same, and is the other explanation (rest.c). Each
 * counts by how likely it makes the readings.
 *
 * Blocks hold all that it takes: no row is made again.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/regress/internal.h"

#define LINE         (NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_LINE)
#define LEAST_BLOCKS 16
#define NEAREST      1e-3 /* of a drift: how far a walk goes at least, over a run */
#define FURTHEST     8.0  /* the same, at most */
#define LEAST_LEFT   1e-4 /* of what rows leave without a walk */
#define STEP         4.0  /* from one ratio of the two variances to the next that is tried */
#define LOAD_DRIFTS  0.05 /* of itself, a deviation: of what leaks while it runs, a part */
#define RESTS        0.1  /* of the run: more, and a program rests */
#define HARDLY       1e-3 /* a walk that is so unlikely is none */

/* Of a block's rows, idle's column and the same along its line. */
struct part {
    double *with[2]; /* each with the solved columns */
    double a[3], b[2];
};

/* One unknown per knot, and what the solved columns leave of it. */
struct knots {
    struct nrg_solver *s;
    size_t n, first; /* knots, and the border of blocks that the first of them is at */
    double *with;    /* n * m: what a knot has with the solved columns */
    double *moved;   /* how far these move, per watt of a knot */
    double *a, *b;   /* packed, and what rows say */
    double *course;  /* packed: inverse of the covariance of a walk that goes 1 W in a run */
    double *factor, *x;
    double course_log_det;
};

struct found {
    double hold;     /* variance of rows / that of a walk */
    double left;     /* the former */
    double log_odds; /* against no walk */
};

/* In place; the log of its determinant. All knots have about the same diagonal. */
static double factorise(double *a, size_t n)
{
    double mean = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        mean += a[nrg_packed(i, i)] / (double)n;
    nrg_scale(a, 1 / mean, n * (n + 1) / 2);
    nrg_gram_factor(a, n, NULL, NULL, false);
    nrg_scale(a, sqrt(mean), n * (n + 1) / 2);
    for (size_t i = 0; i < n; i++)
        sum += 2 * log(a[nrg_packed(i, i)]);
    return sum;
}

static double explained(const struct knots *k)
{
    double sum = 0;
    memcpy(k->x, k->b, k->n * sizeof *k->x);
    nrg_gram_solve(k->factor, k->n, k->x, false);
    for (size_t i = 0; i < k->n; i++)
        sum += k->b[i] * k->x[i];
    return sum;
}

/* Leaves the factor of all that is known of knots, and these in x. */
static struct found try_walk(const struct knots *k, double hold)
{
    double freedom = k->s->freedom, all = k->s->left * freedom, n = (double)k->n;
    memcpy(k->factor, k->a, k->n * (k->n + 1) / 2 * sizeof *k->a);
    nrg_add_scaled(k->factor, k->course, hold, k->n * (k->n + 1) / 2);
    double log_det = factorise(k->factor, k->n);
    double left = (all - explained(k)) / freedom;
    if (!(left > LEAST_LEFT * k->s->left)) /* more than there is: no knots that rows could tell */
        return (struct found){.log_odds = -INFINITY};
    double twice = k->course_log_det + n * log(hold) - log_det + freedom * log(k->s->left / left);
    return (struct found){hold, left, twice / 2};
}

static struct found best_walk(const struct knots *k, double far_w)
{
    double nearest = NEAREST * far_w, furthest = FURTHEST * far_w;
    double least = LEAST_LEFT * k->s->left / (furthest * furthest);
    double most = k->s->left / (nearest * nearest);
    struct found best = {.log_odds = -INFINITY};
    for (double hold = least; hold < most; hold *= STEP) {
        struct found f = try_walk(k, hold);
        if (f.log_odds > best.log_odds)
            best = f;
    }
    return best;
}

static double of_block(const struct nrg_gram *block, size_t i, size_t j)
{
    return i < block->n && j < block->n ? block->a[nrg_packed(i, j)] : 0;
}

static void find_part(const struct nrg_solver *s, const struct nrg_gram *block, struct part *part)
{
    size_t columns[2] = {NRG_COLUMN_IDLE, LINE};
    for (size_t v = 0; v < 2; v++) {
        for (size_t p = 0; p < s->m; p++)
            part->with[v][p] = of_block(block, s->index[p], columns[v]) * s->scale[p];
        part->b[v] = block->b[columns[v]];
    }
    part->a[0] = of_block(block, NRG_COLUMN_IDLE, NRG_COLUMN_IDLE);
    part->a[1] = of_block(block, NRG_COLUMN_IDLE, LINE);
    part->a[2] = of_block(block, LINE, LINE);
}

/* A knot is so much of a block's part, and of the same along its line. */
struct mix {
    double of[2];
};

static void add_knot(struct knots *k, size_t knot, const struct part *part, struct mix mix)
{
    double *with = k->with + knot * k->s->m;
    for (size_t v = 0; v < 2 && mix.of[v] != 0; v++) {
        nrg_add_scaled(with, part->with[v], mix.of[v], k->s->m);
        k->b[knot] += mix.of[v] * part->b[v];
    }
}

static void add_pair(struct knots *k, size_t i, size_t j, const struct part *part, struct mix a,
                     struct mix b)
{
    k->a[nrg_packed(i, j)] += a.of[0] * b.of[0] * part->a[0] + a.of[1] * b.of[1] * part->a[2] +
                              (a.of[0] * b.of[1] + a.of[1] * b.of[0]) * part->a[1];
}

/* From one border to the next. */
static void border_mixes(const struct nrg_solver *s, size_t g, struct mix mix[2])
{
    const double *at = s->walk.course.at;
    double width = at[g + 1] - at[g], after = s->r->options.course.seen == NRG_IDLE_AFTER;
    mix[1] = (struct mix){{(after - at[g]) / width, 1 / width}}; /* a line that ends with 0 */
    mix[0] = (struct mix){{1 - mix[1].of[0], -mix[1].of[1]}};
}

static void add_borders(struct knots *k, size_t g, const struct part *part)
{
    struct mix mix[2];
    border_mixes(k->s, g, mix);
    for (size_t i = 0; i < 2; i++) {
        size_t knot = g + i - k->first;
        if (knot >= k->n)
            continue;
        add_knot(k, knot, part, mix[i]);
        for (size_t j = 0; j <= i; j++)
            if (g + j - k->first < k->n)
                add_pair(k, knot, g + j - k->first, part, mix[i], mix[j]);
    }
}

/* Two knots, or one and the end that is held, this far apart. */
static void add_way(struct knots *k, size_t border, double width)
{
    size_t i = border - k->first, j = i + 1;
    if (i < k->n)
        k->course[nrg_packed(i, i)] += 1 / width;
    if (j < k->n)
        k->course[nrg_packed(j, j)] += 1 / width;
    if (i < k->n && j < k->n)
        k->course[nrg_packed(j, i)] -= 1 / width;
}

/* What the solved columns explain of knots is not theirs. */
static void take_solved(struct knots *k)
{
    const struct nrg_solver *s = k->s;
    for (size_t i = 0; i < k->n; i++) {
        double *with = k->with + i * s->m, *moved = k->moved + i * s->m;
        for (size_t p = 0; p < s->m; p++) {
            k->b[i] -= with[p] * s->free_beta[p];
            for (size_t q = 0; q < s->m && with[p] != 0; q++)
                moved[q] += with[p] * s->inverse[nrg_packed(p, q)];
        }
        for (size_t j = 0; j <= i; j++)
            for (size_t p = 0; p < s->m; p++)
                k->a[nrg_packed(i, j)] -= moved[p] * k->with[j * s->m + p];
    }
    size_t cells = k->n * (k->n + 1) / 2;
    memcpy(k->factor, k->course, cells * sizeof *k->a);
    k->course_log_det = factorise(k->factor, k->n);
}

static int make_room(struct knots *k)
{
    struct nrg_arena *memory = &k->s->memory;
    size_t n = k->s->walk.blocks + 1, m = k->s->m, cells = n * (n + 1) / 2;
    double **matrices[] = {&k->a, &k->course, &k->factor}, **columns[] = {&k->b, &k->x};
    k->with = nrg_arena_array(memory, n * m + 1, sizeof *k->with);
    k->moved = nrg_arena_array(memory, n * m + 1, sizeof *k->moved);
    for (size_t i = 0; i < 3; i++)
        *matrices[i] = nrg_arena_array(memory, cells, sizeof **matrices[i]);
    for (size_t i = 0; i < 2; i++)
        *columns[i] = nrg_arena_array(memory, n, sizeof **columns[i]);
    return memory->failed ? -ENOMEM : 0;
}

/* The end at which a baseline holds idle power is no knot. */
static int make_knots(struct nrg_solver *s, struct knots *k)
{
    const struct nrg_walk *w = &s->walk;
    bool after = s->r->options.course.seen == NRG_IDLE_AFTER, twice = s->r->options.seen_twice;
    *k = (struct knots){.s = s, .n = w->blocks - twice, .first = !after};
    int rc = make_room(k);
    struct part part = {.with = {nrg_arena_array(&s->memory, s->m + 1, sizeof(double)),
                                 nrg_arena_array(&s->memory, s->m + 1, sizeof(double))}};
    if (rc || s->memory.failed)
        return -ENOMEM;
    for (size_t g = 0; g < w->blocks; g++) {
        find_part(s, &s->r->block[g], &part);
        add_borders(k, g, &part);
        add_way(k, g, w->course.at[g + 1] - w->course.at[g]);
    }
    take_solved(k);
    return 0;
}

/* Where a program rests now and then, readings show idle power itself. */
static bool hardly_rests(const struct nrg_regress *r)
{
    double run_s = (double)(r->options.end_ns - r->options.begin_ns) / 1e9;
    return r->covered_s > (1 - RESTS) * run_s;
}

bool nrg_regress_idle_may_walk(const struct nrg_regress *r)
{
    const struct nrg_regress_options *o = &r->options;
    return !o->timeline->is_gauge && !isnan(o->idle_w) && o->idle_error_w > 0 &&
           o->idle_shape_w[NRG_IDLE_LINE] > 0 && o->course.seen != NRG_IDLE_NOT_SEEN &&
           hardly_rests(r);
}

/* Borders of blocks as parts of the run; false: there are too few, or they do not follow one
 * another. */
static bool find_borders(struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    struct nrg_walk *w = &s->walk;
    double run_ns = (double)(r->options.end_ns - r->options.begin_ns);
    while (w->blocks < r->n_blocks && r->block[w->blocks].rows)
        w->blocks++;
    for (size_t g = 1; g < w->blocks; g++)
        w->course.at[g] = (double)(r->block_ns[g] - r->options.begin_ns) / run_ns;
    w->course.at[0] = 0;
    w->rows_at = fmax((double)(r->block_ns[0] - r->options.begin_ns) / run_ns, 0);
    w->course.at[w->blocks] = 1;
    bool in_order = w->blocks >= LEAST_BLOCKS;
    for (size_t g = 0; in_order && g < w->blocks; g++)
        in_order = w->course.at[g + 1] > w->course.at[g];
    w->course.n = in_order ? w->blocks + 1 : 0;
    return in_order;
}

/* What rows have of the course is taken off them. */
static void take_off(struct nrg_solver *s, size_t g, struct mix mix)
{
    const struct nrg_gram *block = &s->r->block[g];
    size_t columns[2] = {NRG_COLUMN_IDLE, LINE};
    for (size_t v = 0; v < 2; v++) {
        for (size_t i = 0; i < block->n; i++)
            s->sum.b[i] -= mix.of[v] * of_block(block, i, columns[v]);
        s->sum.yy -= 2 * mix.of[v] * block->b[columns[v]];
        for (size_t u = 0; u < 2; u++)
            s->sum.yy += mix.of[v] * mix.of[u] * of_block(block, columns[v], columns[u]);
    }
}

/* Of a block, how the course goes: so much of idle's column, and of its line. */
static struct mix mix_of(const struct nrg_solver *s, size_t g)
{
    struct mix mix[2], sum;
    border_mixes(s, g, mix);
    for (size_t v = 0; v < 2; v++)
        sum.of[v] = s->walk.course.w[g] * mix[0].of[v] + s->walk.course.w[g + 1] * mix[1].of[v];
    return sum;
}

void nrg_solver_walk_block(const struct nrg_solver *s, size_t g, double *b)
{
    size_t columns[2] = {NRG_COLUMN_IDLE, LINE};
    if (!s->walk.used || g >= s->walk.blocks)
        return;
    struct mix mix = mix_of(s, g);
    for (size_t v = 0; v < 2; v++)
        for (size_t p = 0; p < s->m; p++)
            b[p] -= mix.of[v] * of_block(&s->r->block[g], s->index[p], columns[v]) * s->scale[p];
}

/* Knots as they are likely to be; the factor is that of what is known of them. */
static void take_walk(struct nrg_solver *s, struct knots *k, struct found best)
{
    struct nrg_walk *w = &s->walk;
    nrg_gram_invert(k->factor, k->n, k->a);
    for (size_t i = 0; i < k->n; i++)
        for (size_t j = 0; j <= i; j++) {
            double *error2 = &k->a[nrg_packed(i, j)];
            *error2 = w->likely * (best.left * *error2 + (1 - w->likely) * k->x[i] * k->x[j]);
        }
    for (size_t i = 0; i < k->n; i++)
        w->course.w[k->first + i] = w->likely * k->x[i];
    w->used = true;
    w->n = k->n;
    w->error2 = k->a;
    w->moved = k->moved;
    for (size_t g = 0; g < w->blocks; g++)
        take_off(s, g, mix_of(s, g));
}

/* A load that may drift as far as it likes would take back all that idle power is found to do. -1:
 * it may again. */
static void hold_load(struct nrg_solver *s, double sign)
{
    for (size_t i = NRG_COLUMN_DRIFT; i <= NRG_COLUMN_DRIFT2; i++) {
        double *a = &s->sum.a[nrg_packed(i, i)];
        *a += *a > 0 ? sign / (LOAD_DRIFTS * LOAD_DRIFTS) : 0;
    }
}

/* Whether idle power can be where the walk has it; if not, it is the load that went there, and may
 * drift as it likes. */
static bool goes_that_far(struct knots *k, struct found best)
{
    struct nrg_solver *s = k->s;
    double sum_w = 0;
    try_walk(k, best.hold);
    for (size_t i = 0; i < k->n; i++)
        sum_w += fabs(k->x[i]) / (double)k->n;
    if (sum_w < nrg_regress_furthest_idle_w(s->r))
        return true;
    s->walk.likely = 0;
    hold_load(s, -1);
    return false;
}

static int find_walk(struct nrg_solver *s, struct knots *k, struct found *best)
{
    int rc = make_knots(s, k);
    if (rc)
        return rc;
    *best = best_walk(k, nrg_regress_idle_deviation_w(s->r, LINE));
    double more = log((double)k->n) / 2; /* a walk has one number more than none */
    s->walk.likely = 1 / (1 + exp(more - best->log_odds) + exp(-s->r->course_odds));
    return 0;
}

/* A walk has no need of shapes that are as fast, and these would leave the baseline with it. */
static int leave_fast(struct nrg_solver *s)
{
    for (size_t i = NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_FAST;
         i < NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_HEAT; i++)
        s->sum.a[nrg_packed(i, i)] = 0;
    return nrg_solver_solve(s, false);
}

int nrg_solver_walk(struct nrg_solver *s)
{
    struct knots k;
    struct found best;
    bool seen =
        isfinite(s->r->course_odds) && LINE < s->sum.n && s->sum.a[nrg_packed(LINE, LINE)] > 0;
    if (!seen || !find_borders(s))
        return 0;
    hold_load(s, 1);
    int rc = nrg_solver_solve(s, false);
    if (!rc)
        rc = find_walk(s, &k, &best);
    if (!rc && s->walk.likely > 0.5) {
        rc = leave_fast(s);
        if (!rc)
            rc = find_walk(s, &k, &best);
    }
    if (rc)
        return rc;
    if (s->walk.likely >= HARDLY && goes_that_far(&k, best))
        take_walk(s, &k, best);
    return nrg_solver_solve(s, false);
}

/* Columns of the solution move with the knots, as far as these are not known. */
static void move_with_knots(struct nrg_solver *s)
{
    const struct nrg_walk *w = &s->walk;
    for (size_t i = 0; i < w->n; i++) {
        double *sum = s->work;
        memset(sum, 0, s->m * sizeof *sum);
        for (size_t j = 0; j < w->n; j++)
            nrg_add_scaled(sum, w->moved + j * s->m, w->error2[nrg_packed(i, j)], s->m);
        for (size_t p = 0; p < s->m; p++)
            for (size_t q = 0; q <= p; q++)
                s->covariance[nrg_packed(p, q)] += sum[p] * w->moved[i * s->m + q];
    }
}

void nrg_solver_add_walk(struct nrg_solver *s)
{
    if (!s->walk.used)
        return;
    move_with_knots(s);
    nrg_solver_miss_ends(s);
}

void nrg_solver_give_walk(const struct nrg_solver *s, struct nrg_idle_walk *walk)
{
    const struct nrg_regress *r = s->r;
    size_t own = NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_HEAT;
    double run_ns = (double)(r->options.end_ns - r->options.begin_ns);
    *walk = s->walk.course;
    for (size_t p = s->n_bound; p < s->m && r->options.course.heat == &r->own_course; p++)
        for (size_t i = 0; s->index[p] == own && i < walk->n; i++)
            walk->w[i] += s->free_beta[p] * s->scale[p] *
                          nrg_idle_heat(&r->options.course,
                                        r->options.begin_ns + (int64_t)(walk->at[i] * run_ns));
}
