/*
 * See fit.h. Feasible generalised least squares: rows are divided by the standard deviation that
 * their power and their edges make likely, and freed of what follows from the row before (a first
 * order autoregression); then both are learnt anew from what is left, a few times. Intervals come
 * from the scatter of the rows themselves (a sandwich with leverages and a short memory) or from
 * the residuals' mean square, whichever is wider, because the one holds when the noise is not as
 * modelled and the other when there are few rows.
 *
 * A sensor that is late moves energy from a slot into the next. To first order that is delay times
 * the difference of power at the two edges of a slot: one more column, whose price is the delay.
 * Steps that read prompts take longer, and tokens are counted when a step ends: prompts are late
 * by more than the rest, which has a column of its own. Without it their price is too small, by the
 * part of a row that this is, twice that where rows follow each other.
 *
 * A server counts tokens when a step ends, and is asked at a moment that is not quite known. Such
 * errors at the edges of a row would make all prices too small, as errors of what is regressed on
 * do. So the amounts are taken as their instruments explain them: the amounts of a little more and
 * a little less time, which are right and wrong at other edges (two-stage least squares). Where the
 * number of sequences is sampled, the variance of that error is known, and subtracted.
 *
 * The values are the non-negative solution. Sequences, busy time and requests that are not
 * understood are left out of it where they explain no more than chance does (Schwarz's criterion),
 * so that noise does not divide a token's joules among terms that do nothing; the intervals have
 * all terms (bounds.c).
 */
#include "llm/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/nnls.h"
#include "base/stats.h"

#define ROUNDS     5
#define LEAST_PART 1e-6 /* of a column's squares that no other explains, to be told from them */
#define CONFIDENCE 0.95
#define LONGEST_S  86400 /* of a run that one would wait for */
#define BISECTIONS 40
#define WIDER      4 /* over degrees of freedom: weights and memory are learnt from the rows, too */

static void whiten_row(const struct nrg_serving_work *w, size_t i)
{
    struct nrg_serving_row *r = &w->rows[i];
    const struct nrg_serving_row *last = r->follows ? r - 1 : r;
    double by = (r->follows ? 1 : sqrt(1 - w->phi * w->phi)) / r->sd;
    double from = r->follows ? w->phi / last->sd : 0;
    for (size_t c = 0; c < NRG_SERVING_COLUMNS; c++) {
        r->white[c] = r->x[c] * by - last->x[c] * from;
        r->white_z[c] = r->z[c] * by - last->z[c] * from;
    }
    r->white_y = r->y * by - last->y * from;
}

/* What errors of the sampled amounts add to the products of instruments and amounts. */
static struct nrg_serving_doubt common_doubt(const struct nrg_serving_work *w)
{
    struct nrg_serving_doubt sum = {0};
    for (size_t i = 0; i < w->n; i++) {
        const struct nrg_serving_row *r = &w->rows[i];
        const struct nrg_serving_row *last = r->follows ? r - 1 : r;
        double by = (r->follows ? 1 : sqrt(1 - w->phi * w->phi)) / r->sd;
        double from = r->follows ? w->phi / last->sd : 0;
        nrg_serving_add_doubt(&sum, r->own, by * by);
        nrg_serving_add_doubt(&sum, last->own, from * from);
        nrg_serving_add_doubt(&sum, last->last, -by * from);
        nrg_serving_add_doubt(&sum, r->first, -by * from);
    }
    return sum;
}

/* Each amount as the instruments explain it, in place of white_z. */
static int first_stage(struct nrg_serving_work *w)
{
    double part[NRG_SERVING_COLUMNS][NRG_SERVING_COLUMNS];
    struct nrg_serving_doubt doubt = common_doubt(w);
    size_t rank;
    int rc = 0;
    for (size_t c = 0; !rc && c < NRG_SERVING_COLUMNS; c++) {
        rc = nrg_gram_grow(&w->gram, NRG_SERVING_COLUMNS);
        if (rc)
            break;
        nrg_gram_clear(&w->gram);
        for (size_t i = 0; i < w->n; i++)
            nrg_gram_add(&w->gram, w->rows[i].white_z, NULL, 0, w->rows[i].white[c], 1);
        if (c == NRG_SERVING_SEQUENCE || c == NRG_SERVING_BUSY) {
            w->gram.b[NRG_SERVING_SEQUENCE] -= c == NRG_SERVING_BUSY ? doubt.both : doubt.sequence;
            w->gram.b[NRG_SERVING_BUSY] -= c == NRG_SERVING_BUSY ? doubt.busy : doubt.both;
        }
        rc = nrg_gram_least_squares(&w->gram, part[c], &rank);
    }
    for (size_t i = 0; !rc && i < w->n; i++) {
        double explained[NRG_SERVING_COLUMNS] = {0};
        for (size_t c = 0; c < NRG_SERVING_COLUMNS; c++)
            for (size_t q = 0; q < NRG_SERVING_COLUMNS; q++)
                explained[c] += part[c][q] * w->rows[i].white_z[q];
        memcpy(w->rows[i].white_z, explained, sizeof explained);
    }
    return rc;
}

static int sum_up(struct nrg_serving_work *w)
{
    for (size_t i = 0; i < w->n; i++)
        whiten_row(w, i);
    int rc = first_stage(w);
    if (rc)
        return rc;
    nrg_gram_clear(&w->gram);
    for (size_t i = 0; i < w->n; i++)
        nrg_gram_add(&w->gram, w->rows[i].white_z, NULL, 0, w->rows[i].white_y, 1);
    return 0;
}

/* Which columns are told apart, their solution and the inverse of their system. */
static int solve(struct nrg_serving_work *w)
{
    struct nrg_scaled s;
    bool dependent[NRG_SERVING_COLUMNS];
    double floor[NRG_SERVING_COLUMNS];
    for (size_t i = 0; i < NRG_SERVING_COLUMNS; i++)
        floor[i] = LEAST_PART;
    int rc = nrg_scaled_init(&s, &w->gram, NULL, 0);
    if (rc)
        return rc;
    nrg_gram_factor(s.a, s.m, floor, dependent, true);
    w->m = 0;
    for (size_t p = 0; p < s.m; p++)
        if (!dependent[p])
            w->index[w->m++] = s.index[p];
    nrg_scaled_release(&s);
    rc = nrg_scaled_init(&s, &w->gram, w->index, w->m);
    if (rc)
        return rc;
    nrg_gram_factor(s.a, s.m, NULL, NULL, true);
    memcpy(s.x, s.b, s.m * sizeof *s.x);
    nrg_gram_solve(s.a, s.m, s.x, true);
    nrg_scaled_solution(&s, w->beta);
    nrg_gram_invert(s.a, s.m, w->inverse);
    for (size_t p = 0; p < s.m; p++)
        for (size_t q = 0; q <= p; q++)
            w->inverse[nrg_packed(p, q)] *= s.scale[p] * s.scale[q];
    nrg_scaled_release(&s);
    return 0;
}

static void set_left(struct nrg_serving_work *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct nrg_serving_row *r = &w->rows[i];
        double expected = 0, white = 0, power = 0;
        for (size_t c = 0; c < NRG_SERVING_COLUMNS; c++) {
            expected += r->x[c] * w->beta[c];
            white += r->white[c] * w->beta[c];
            power += c >= NRG_SERVING_TERMS ? 0 : r->x[c] * w->beta[c];
        }
        r->left = r->y - expected;
        r->white_left = r->white_y - white;
        r->power_w = power / r->length_s;
        sum += r->white_left * r->white_left;
    }
    w->mean_square = w->n > w->m ? sum / (double)(w->n - w->m) : 0;
}

/* In standard errors. */
static double half_width(double free_rows)
{
    return (1 + WIDER / free_rows) * nrg_student_half(CONFIDENCE, free_rows);
}

double nrg_serving_time_for(const struct nrg_serving_fit *fit, double now, double then)
{
    double low = log(1e-3), high = log(LONGEST_S / fit->time_s);
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2, longer = exp(middle);
        double reached =
            now * half_width(fmax(fit->freedom * longer, 1)) / fit->half / sqrt(longer);
        *(reached > then ? &low : &high) = middle;
    }
    bool found = now > then && exp(high) < 0.99 * LONGEST_S / fit->time_s;
    return found ? exp(high) * fit->time_s : NAN;
}

static int learn(struct nrg_serving_work *w)
{
    int rc = 0;
    for (int round = 0; !rc && round < ROUNDS; round++) {
        rc = sum_up(w);
        if (!rc)
            rc = solve(w);
        if (rc)
            break;
        set_left(w);
        if (round + 1 == ROUNDS)
            break;
        nrg_serving_set_late(w);
        rc = nrg_serving_learn_variance(w);
        nrg_serving_learn_phi(w);
    }
    return rc;
}

/* inverse * x, over the columns that are told apart. */
static void through_inverse(const struct nrg_serving_work *w, const double *x, double *out)
{
    for (size_t p = 0; p < w->m; p++) {
        out[p] = 0;
        for (size_t q = 0; q < w->m; q++)
            out[p] += w->inverse[nrg_packed(p, q)] * x[w->index[q]];
    }
}

/* What row i moves the solution by when it is left out, nearly: a third kind of leverage. */
static void influence(const struct nrg_serving_work *w, size_t i, double *out)
{
    const struct nrg_serving_row *r = &w->rows[i];
    double leverage = 0;
    through_inverse(w, r->white_z, out);
    for (size_t p = 0; p < w->m; p++)
        leverage += out[p] * r->white_z[w->index[p]];
    double by = r->white_left / fmax(1 - leverage, 0.1);
    for (size_t p = 0; p < w->m; p++)
        out[p] *= by;
}

/* Newey and West's weights over a few rows; those that begin anew have no past. */
static int sandwich(const struct nrg_serving_work *w, struct nrg_arena *memory, double *covariance)
{
    size_t m = w->m, memory_rows = (size_t)(4 * pow((double)w->n / 100, 2.0 / 9));
    double *u = nrg_arena_array(memory, w->n * NRG_SERVING_COLUMNS, sizeof *u);
    if (memory->failed)
        return -ENOMEM;
    for (size_t i = 0; i < w->n; i++)
        influence(w, i, u + i * NRG_SERVING_COLUMNS);
    memset(covariance, 0, NRG_SERVING_CELLS * sizeof *covariance);
    for (size_t i = 0; i < w->n; i++)
        for (size_t back = 0; back <= memory_rows && back <= i; back++) {
            double weight = back ? 1 - (double)back / (double)(memory_rows + 1) : 0.5;
            const double *a = u + i * NRG_SERVING_COLUMNS,
                         *b = u + (i - back) * NRG_SERVING_COLUMNS;
            for (size_t p = 0; p < m; p++)
                for (size_t q = 0; q <= p; q++)
                    covariance[nrg_packed(p, q)] += weight * (a[p] * b[q] + b[p] * a[q]);
            if (!w->rows[i - back].follows)
                break;
        }
    return 0;
}

static int set_covariance(const struct nrg_serving_work *w, struct nrg_serving_fit *fit)
{
    struct nrg_arena memory = {0};
    double own[NRG_SERVING_CELLS];
    int rc = sandwich(w, &memory, own);
    nrg_arena_release(&memory);
    for (size_t p = 0; !rc && p < w->m; p++)
        for (size_t q = 0; q < w->m; q++) {
            size_t a = w->index[p], b = w->index[q], cell = nrg_packed(p, q);
            if (a >= NRG_SERVING_TERMS || b >= NRG_SERVING_TERMS)
                continue;
            fit->covariance[0][a][b] = w->inverse[cell] * w->mean_square;
            fit->covariance[1][a][b] = own[cell];
        }
    return rc;
}

static bool is_told(const struct nrg_serving_work *w, size_t column)
{
    for (size_t p = 0; p < w->m; p++)
        if (w->index[p] == column)
            return true;
    return false;
}

/* The non-negative solution without those of the optional terms that chance explains as well. */
static int choose(const struct nrg_serving_work *w, double *value)
{
    static const size_t optional[] = {NRG_SERVING_SEQUENCE, NRG_SERVING_BUSY, NRG_SERVING_OTHER};
    double best = INFINITY;
    for (unsigned without = 0; without < 8; without++) {
        size_t index[NRG_SERVING_COLUMNS], m = 0, bound = 0;
        double x[NRG_SERVING_COLUMNS];
        for (size_t p = 0; p < w->m; p++) {
            size_t c = w->index[p];
            bool out = false;
            for (size_t o = 0; o < sizeof optional / sizeof *optional; o++)
                out |= c == optional[o] && without >> o & 1;
            if (out)
                continue;
            index[m++] = c;
            bound += c < NRG_SERVING_TERMS;
        }
        int rc = nrg_gram_nonnegative(&w->gram, index, m, bound, NRG_RIDGE, x);
        if (rc)
            return rc;
        /* What instruments leave of the amounts is in all of these alike, so scatter divides. */
        double square = fmax(w->mean_square, 1e-12 * w->gram.yy / (double)w->n);
        double score = nrg_gram_residual(&w->gram, x) / square + log((double)w->n) * (double)m;
        if (score < best) {
            best = score;
            memcpy(value, x, sizeof x);
        }
    }
    return 0;
}

static void set_values(const struct nrg_serving_work *w, const double *value,
                       struct nrg_serving_fit *fit)
{
    double square = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct nrg_serving_row *r = &w->rows[i];
        square += r->left * r->left / (r->length_s * r->length_s);
    }
    fit->scatter_w = sqrt(square / (double)w->n);
    fit->follows = w->phi;
    for (size_t c = 0; c < NRG_SERVING_TERMS; c++) {
        struct nrg_serving_price *p = &fit->price[c];
        p->used = p->amount > 0;
        p->joined = p->used && !is_told(w, c);
        p->per = (struct nrg_serving_value){NAN, NAN, NAN};
        fit->unbound[c] = w->beta[c];
        if (!p->used || p->joined)
            continue;
        p->per.value = value[c];
        p->energy_j = value[c] * p->amount;
    }
}

/* The interval of what these amounts cost together; none costs more than all joules do. */
static int set_interval(const struct nrg_serving_fit *fit, const double amount[NRG_SERVING_TERMS],
                        const double edges[NRG_SERVING_TERMS], double most,
                        struct nrg_serving_value *v)
{
    double more = 0, unbound = 0;
    int rc = nrg_serving_bound(fit, amount, v);
    for (size_t c = 0; c < NRG_SERVING_TERMS; c++) {
        more += amount[c] * edges[c];
        unbound += amount[c] * fit->unbound[c];
    }
    v->low = fmax(v->low - fabs(more), 0);
    /* Below 0 no price is: the law is wrong there, and the noise is still its doubt. */
    if (unbound < 0)
        v->high = fmax(v->high, fit->half * sqrt(nrg_serving_variance(fit, amount)));
    v->high = fmin(v->high + fabs(more), fmax(v->value, most));
    return rc;
}

static int set_intervals(const struct nrg_serving_work *w, const double *value,
                         struct nrg_serving_fit *fit)
{
    double edges[NRG_SERVING_TERMS];
    int rc = nrg_serving_edges(w, value, edges);
    for (size_t c = 0; !rc && c < NRG_SERVING_TERMS; c++) {
        struct nrg_serving_price *p = &fit->price[c];
        double one[NRG_SERVING_TERMS] = {[NRG_SERVING_IDLE] = 0};
        one[c] = 1;
        if (isnan(p->per.value))
            continue;
        rc = set_interval(fit, one, edges, fit->energy_j / p->amount, &p->per);
        p->resolved = p->per.high - p->per.low <= p->per.value;
    }
    double output = fit->price[NRG_SERVING_OUTPUT].amount;
    double with_time[NRG_SERVING_TERMS] = {
        [NRG_SERVING_OUTPUT] = 1,
        [NRG_SERVING_SEQUENCE] = fit->price[NRG_SERVING_SEQUENCE].amount / output,
    };
    if (!rc && output > 0)
        rc = set_interval(fit, with_time, edges, fit->energy_j / output, &fit->output_with_time);
    return rc;
}

static const char *check(const struct nrg_serving_slot *slots, size_t n)
{
    double output = 0, prompt = 0;
    for (size_t i = 0; i < n; i++) {
        output += slots[i].amount[NRG_SERVING_OUTPUT];
        prompt += slots[i].amount[NRG_SERVING_PROMPT];
    }
    if (n && !(output > 0) && !(prompt > 0))
        return "the server counted no tokens";
    return NULL;
}

static void add_slots(struct nrg_serving_fit *fit, const struct nrg_serving_slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fit->energy_j += slots[i].energy_j;
        fit->time_s += (double)(slots[i].end_ns - slots[i].begin_ns) / 1e9;
        for (size_t c = 0; c < NRG_SERVING_TERMS; c++)
            fit->price[c].amount += slots[i].amount[c];
    }
    fit->price[NRG_SERVING_IDLE].amount = fit->time_s;
}

int nrg_serving_prices(const struct nrg_serving_slot *slots, size_t n, size_t group,
                       struct nrg_serving_fit *fit)
{
    struct nrg_arena memory = {0};
    struct nrg_serving_work w = {0};
    double value[NRG_SERVING_COLUMNS] = {0};
    *fit = (struct nrg_serving_fit){.slots = n, .why = check(slots, n)};
    add_slots(fit, slots, n);
    if (fit->why)
        return 0;
    w.rows = nrg_arena_array(&memory, n, sizeof *w.rows);
    int rc = memory.failed ? -ENOMEM : 0;
    if (!rc) {
        nrg_serving_set_rows(&w, slots, n, group);
        fit->rows = w.n;
        fit->why =
            w.n < NRG_SERVING_LEAST_ROWS ? "the run is too short to tell prices from noise" : NULL;
    }
    if (!rc && !fit->why)
        rc = learn(&w);
    if (!rc && !fit->why)
        rc = choose(&w, value);
    if (!rc && !fit->why)
        rc = set_covariance(&w, fit);
    if (!rc && !fit->why) {
        fit->freedom = nrg_serving_freedom(&w);
        fit->half = half_width(fit->freedom);
        set_values(&w, value, fit);
        rc = nrg_serving_all_in(&w, fit);
        if (!rc)
            rc = set_intervals(&w, value, fit);
    }
    nrg_gram_release(&w.gram);
    nrg_arena_release(&memory);
    return rc;
}
