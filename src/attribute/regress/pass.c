/*
 * A pass over the rows that are held: their sums, the powers that explain them best, and what these
 * leave. Searches of all kinds (kernels, clocks, waits, noise) make passes and compare what is
 * left.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define HELD_ROUNDS 3
#define LOOKS       8    /* in a pass: whether it leaves too much already */
#define LOOK_ROWS   64   /* between two of them, at least */
#define ROUNDING    1e-8 /* of the readings' squares: what is left is not known better */
#define RIDGE                                                                                      \
    1e-9 /* of the diagonal: places of waits may depend on one another, but for rounding */

double nrg_regress_expected(const struct nrg_regress *r, const struct nrg_rowgen *gen)
{
    double sum = 0;
    size_t n = !r->prior ? 0 : r->n_prior < gen->n ? r->n_prior : gen->n;
    for (size_t i = 0; gen->dense && i < n; i++)
        sum += gen->x[i] * r->prior[i];
    for (size_t i = 0; !gen->dense && i < gen->n_touched; i++)
        if (gen->touched[i] < n)
            sum += gen->x[gen->touched[i]] * r->prior[gen->touched[i]];
    return sum;
}

double nrg_regress_load(const struct nrg_regress *r, const struct nrg_rowgen *gen, double expected)
{
    for (size_t i = 0; r->prior && i <= NRG_COLUMN_IDLE; i++)
        expected -= r->prior[i] * gen->x[i];
    return expected;
}

/* What CPU times of an edge are off by may have drawn the mean power, but no more than was drawn.
 */
static double edge_off_j(const struct nrg_regress *r, const struct nrg_rowgen *gen, double expected)
{
    double idle_w = r->prior ? r->prior[NRG_COLUMN_IDLE] : 0;
    double mean_w = r->energy_s > 0 ? r->energy_j / r->energy_s - idle_w : 0;
    double load_j = fmax(nrg_regress_load(r, gen, expected), 0);
    return fmin(load_j, r->options.edge_off_s * fmax(mean_w, 0));
}

double nrg_regress_variance(const struct nrg_regress *r, double expected,
                            const struct nrg_rowgen *gen)
{
    double edge_j = gen->seen.edge ? edge_off_j(r, gen, expected) : 0;
    return nrg_noise_variance(&r->noise, expected, gen) + edge_j * edge_j;
}

/* 1: added; 0: left out; -errno. */
static int add_trial_row(const struct nrg_regress *r, struct nrg_rowgen *gen,
                         struct nrg_whitener *white, bool weigh, struct nrg_gram *sum)
{
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w, weight = 1;
    double expected = weigh ? nrg_regress_expected(r, gen) : 0;
    double variance = weigh ? nrg_regress_variance(r, expected, gen)
                            : 1 + nrg_regress_unsure(r) * (gen->cut_begin2 + gen->cut_end2);
    weight = weigh ? 1 : 1 / variance;
    int rc = nrg_whiten(white, gen, &variance);
    if (rc <= 0)
        return rc;
    if (weigh) {
        double fresh = nrg_regress_expected(r, gen);
        if (white->phi > 0)
            variance = nrg_regress_variance(r, fresh, gen);
        weight = nrg_noise_weight(variance, gen->y - fresh);
    }
    nrg_gram_add(sum, gen->x, gen->dense ? NULL : gen->touched, gen->n_touched,
                 gen->y - idle_w * gen->x[NRG_COLUMN_IDLE], weight);
    return 1;
}

bool nrg_regress_sees_window(const struct nrg_regress *r)
{
    return r->published.used && r->published.window_s > 0;
}

bool nrg_regress_sees_drift(const struct nrg_regress *r, size_t max_rows)
{
    bool held = r->options.idle_shape_w[NRG_IDLE_BEND] > 0;
    return r->drifts && r->ready_ns == INT64_MAX && (held || max_rows >= r->rows_expected);
}

void nrg_regress_keep_rows(const struct nrg_regress *r, struct nrg_rowgen *gen)
{
    if (r->ready_ns == INT64_MAX)
        nrg_kept_rows_attach(r->kept, gen);
}

/*
 * -EDOM: the rows so far leave more than they may, with the powers that suit them best. With more
 * rows to suit, these leave no less of the first ones.
 */
static int look_at_rest(const struct nrg_regress *r, const struct nrg_pass *pass,
                        const struct nrg_slow *slow, const struct nrg_gram *sum)
{
    struct nrg_gram copy = {0};
    double *powers = nrg_calloc(sum->n + 1, sizeof *powers);
    int rc = powers ? nrg_gram_grow(&copy, sum->n) : -ENOMEM;
    if (!rc) {
        nrg_gram_join(&copy, sum);
        rc = nrg_slow_peek(slow, &copy);
    }
    if (!rc)
        rc = nrg_regress_powers(r, &copy, pass->is_calls, powers);
    if (!rc && nrg_gram_residual(&copy, powers) > pass->most_left + ROUNDING * copy.yy)
        rc = -EDOM;
    nrg_gram_release(&copy);
    free(powers);
    return rc;
}

/* How many rows are added from one look to the next. */
static size_t look_rows(const struct nrg_regress *r, const struct nrg_pass *pass)
{
    size_t rows = pass->max_rows < r->rows_expected ? pass->max_rows : r->rows_expected;
    return rows / LOOKS > LOOK_ROWS ? rows / LOOKS : LOOK_ROWS;
}

/* Weights ask for all of a row; else its slow columns are added up in steps. */
static int add_trial_rows(const struct nrg_regress *r, const struct nrg_pass *pass,
                          struct nrg_rowgen *gen, struct nrg_slow *slow, struct nrg_gram *sum)
{
    struct nrg_whitener white = {
        .phi = pass->phi, .theta = pass->theta, .cut = pass->cut, .border2 = pass->border2};
    size_t apart = look_rows(r, pass);
    int rc = 0;
    for (size_t row = 0; rc >= 0 && row < pass->max_rows; row++) {
        if (pass->most_left > 0 && row && row % apart == 0)
            rc = look_at_rest(r, pass, slow, sum);
        if (rc < 0)
            break;
        rc = nrg_rowgen_next(gen, &r->slices, r->ready_ns, pass->n_columns);
        if (rc <= 0)
            break;
        if (pass->bend)
            pass->bend(gen, pass->of);
        if (gen->slow_apart)
            nrg_slow_row(slow, gen, sum);
        rc = add_trial_row(r, gen, &white, pass->weigh, sum);
    }
    nrg_slow_end(slow, sum);
    nrg_whitener_release(&white);
    return rc < 0 ? rc : 0;
}

int nrg_regress_sum_rows(const struct nrg_regress *r, const struct nrg_pass *pass,
                         struct nrg_gram *sum)
{
    bool drift = nrg_regress_sees_drift(r, pass->max_rows);
    struct nrg_rowgen gen;
    struct nrg_slow slow;
    nrg_rowgen_init(&gen, &r->options, &pass->kernel, pass->map, drift);
    if (!nrg_rowgen_remembers(&gen))
        gen.stride = pass->stride;
    if (pass->prefix && pass->prefix->sums &&
        (!gen.short_box || nrg_prefix_helps(pass->prefix, gen.far_ns - gen.near_ns)))
        gen.prefix = pass->prefix;
    if (pass->block)
        gen.block = pass->block;
    gen.slow_apart =
        !pass->weigh && nrg_slow_is_worth_it(r->rows_expected / (gen.stride ? gen.stride : 1));
    if (pass->kept && !gen.slow_apart)
        nrg_regress_keep_rows(r, &gen);
    int rc = nrg_slow_init(&slow, &r->options, drift, pass->n_columns);
    if (!rc)
        rc = nrg_gram_grow(sum, pass->n_columns);
    if (!rc) {
        nrg_gram_clear(sum);
        rc = add_trial_rows(r, pass, &gen, &slow, sum);
    }
    nrg_rowgen_release(&gen);
    nrg_slow_release(&slow);
    return rc;
}

size_t nrg_regress_pick(const bool *is_calls, const struct nrg_gram *sum, bool calls, size_t *index,
                        size_t n)
{
    for (size_t i = NRG_COLUMN_CLASSES; i < sum->n; i++)
        if (sum->a[nrg_packed(i, i)] > 0 && is_calls[i] == calls)
            index[n++] = i;
    return n;
}

/* Columns that have something in them: first those that can't be negative. */
int nrg_regress_powers(const struct nrg_regress *r, const struct nrg_gram *sum,
                       const bool *is_calls, double *beta)
{
    size_t *index = nrg_calloc(sum->n + 1, sizeof *index);
    if (!index)
        return -ENOMEM;
    bool fit_idle = isnan(r->options.idle_w);
    size_t n_bound = nrg_gram_pick(sum, NRG_COLUMN_IDLE, NRG_COLUMN_IDLE + fit_idle, index, 0);
    n_bound = nrg_regress_pick(is_calls, sum, false, index, n_bound);
    /* Where nothing holds what an average's first reading is off by, kernels would differ in it. */
    size_t m = nrg_gram_pick(sum, 0, NRG_COLUMN_START, index, n_bound);
    m = nrg_gram_pick(sum, NRG_COLUMN_START + 1, NRG_COLUMN_IDLE, index, m);
    m = nrg_regress_pick(is_calls, sum, true, index, m);
    int rc = nrg_gram_nonnegative(sum, index, m, n_bound, RIDGE, beta);
    free(index);
    return rc;
}

/*
 * What is left when idle power is held to what the baseline says of it, as firmly as what is left
 * allows. A window in a wrong place explains its readings by an idle power that can't be.
 */
static int hold_idle(const struct nrg_regress *r, struct nrg_gram *sum, double *beta, double *rest)
{
    double added[NRG_COLUMN_IDLE_OFF + 1] = {0};
    int rc = 0;
    for (int round = 0; !rc && round < HELD_ROUNDS; round++) {
        double variance = fmax(*rest, 0) / (double)sum->rows;
        for (size_t i = NRG_COLUMN_AWAKE; i <= NRG_COLUMN_IDLE_OFF; i++) {
            double *a = &sum->a[nrg_packed(i, i)], w = nrg_regress_idle_deviation_w(r, i);
            double hold = w > 0 && *a > 0 ? variance / (w * w) : 0;
            *a += hold - added[i];
            added[i] = hold;
        }
        rc = nrg_regress_powers(r, sum, r->is_calls, beta);
        *rest = nrg_gram_residual(sum, beta);
    }
    for (size_t i = NRG_COLUMN_AWAKE; i <= NRG_COLUMN_IDLE_OFF; i++)
        sum->a[nrg_packed(i, i)] -= added[i];
    return rc;
}

/* Powers of a sum, and the sum of squares that they leave. */
static int fit_sum(const struct nrg_regress *r, struct nrg_gram *sum, double *powers, double *rest)
{
    int rc = nrg_regress_powers(r, sum, r->is_calls, powers);
    *rest = rc ? 0 : fmax(nrg_gram_residual(sum, powers), 0);
    if (!rc && nrg_regress_sees_window(r))
        rc = hold_idle(r, sum, powers, rest);
    if (!isnan(r->options.idle_w))
        powers[NRG_COLUMN_IDLE] = r->options.idle_w;
    return rc;
}

int nrg_regress_held_powers(const struct nrg_regress *r, struct nrg_gram *sum, double *beta,
                            double *rest)
{
    int rc = nrg_regress_powers(r, sum, r->is_calls, beta);
    *rest = rc ? 0 : fmax(nrg_gram_residual(sum, beta), 0);
    return rc ? rc : hold_idle(r, sum, beta, rest);
}

int nrg_regress_fit(const struct nrg_regress *r, const struct nrg_pass *pass, double *powers,
                    double *rest, double *rows)
{
    struct nrg_gram sum = {0};
    int rc = nrg_regress_sum_rows(r, pass, &sum);
    if (!rc)
        rc = fit_sum(r, &sum, powers, rest);
    *rows = (double)sum.rows;
    nrg_gram_release(&sum);
    return rc;
}

static struct nrg_pass plain_pass(const struct nrg_regress *r, size_t max_rows)
{
    return (struct nrg_pass){
        .kernel = r->kernel, .n_columns = r->n_columns, .max_rows = max_rows, .phi = r->first_phi};
}

int nrg_regress_rest(const struct nrg_regress *r, size_t max_rows, size_t stride, double most_left,
                     double *rest, double *rows)
{
    struct nrg_pass pass = plain_pass(r, max_rows);
    double *powers = nrg_calloc(r->n_columns + 1, sizeof *powers);
    pass.stride = stride;
    pass.most_left = most_left;
    pass.is_calls = r->is_calls;
    pass.prefix = r->grid_sums;
    int rc = powers ? nrg_regress_fit(r, &pass, powers, rest, rows) : -ENOMEM;
    free(powers);
    return rc;
}

/* A column of nothing is left out of a fit. */
static void leave_out(const struct nrg_regress *r, const double *all,
                      const struct nrg_left_out *out, struct nrg_gram *sum)
{
    for (size_t i = NRG_COLUMN_CLASSES; i < sum->n; i++) {
        bool within = nrg_regress_is_within(r, i), calls = nrg_regress_is_of_calls(r, i);
        bool left = (calls && out->calls) || (within && out->within);
        sum->a[nrg_packed(i, i)] = left ? 0 : all[i];
    }
}

int nrg_regress_rest_without(const struct nrg_regress *r, const struct nrg_pass *pass,
                             const struct nrg_left_out *out, size_t n, double *rest, double *rows)
{
    struct nrg_gram sum = {0};
    double *powers = nrg_calloc(2 * r->n_columns + 1, sizeof *powers);
    int rc = powers ? nrg_regress_sum_rows(r, pass, &sum) : -ENOMEM;
    for (size_t i = 0; !rc && i < sum.n; i++)
        powers[r->n_columns + i] = sum.a[nrg_packed(i, i)];
    for (size_t k = 0; !rc && k < n; k++) {
        leave_out(r, powers + r->n_columns, &out[k], &sum);
        rc = fit_sum(r, &sum, powers, &rest[k]);
        if (!rc)
            rc = nrg_regress_expect_powers(r, &sum, powers, &rest[k]);
    }
    *rows = (double)sum.rows;
    nrg_gram_release(&sum);
    free(powers);
    return rc;
}

int nrg_regress_rest_calls(const struct nrg_regress *r, size_t max_rows, double rest[2],
                           double *rows)
{
    static const struct nrg_left_out out[] = {{.calls = true}, {0}};
    struct nrg_pass pass = plain_pass(r, max_rows);
    return nrg_regress_rest_without(r, &pass, out, 2, rest, rows);
}
