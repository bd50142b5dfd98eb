/*
 * What CPU times leave open about waits, as errors of powers: whose CPU time it was (waits.c), and
 * where in its call a thread waits, of which five places tell the rough outline only.
 */
#include <math.h>

#include "attribute/regress/waits/waits.h"

#define MISPLACED       0.2  /* of what a call waits: two deviations */
#define MISPLACED_FINER 0.1  /* the same where it is better known how long calls wait */
#define WIDER           2.0  /* variance, where threads read their CPU times: by simulation */
#define WIDER_UNEVEN    0.4  /* more variance, where classes wait differently: by simulation */
#define CURVED          0.1  /* of how much two lines differ */
#define UNEVEN          0.08 /* deviation of classes from how busy they are in the mean */
#define SHORT           0.5  /* of a cell: rows that tell most themselves */
#define SHORT_ROWS      0.5 /* power of a row's length: how much it goes with the cell's CPU time */

/* Position of a column among the solved ones; m: rows say nothing of it. */
static size_t solved_at(const struct nrg_solver *s, size_t column)
{
    size_t p = s->n_bound;
    while (p < s->m && s->index[p] != column)
        p++;
    return p;
}

static double solved(const struct nrg_solver *s, size_t column)
{
    size_t p = solved_at(s, column);
    return p < s->m ? s->free_beta[p] * s->scale[p] : 0;
}

/* What a class has at the places beside what all have (rows.c); column 0: no class. */
static void add_own_places(const struct nrg_solver *s, size_t column, double part[NRG_WAIT_SHAPES])
{
    const struct nrg_regress *r = s->r;
    uint32_t calls = column ? r->calls_column_of[r->class_of[column]] : 0;
    if (!r->options.middle_of || !calls || !r->options.middle_of[calls])
        return;
    double late = solved(s, calls), middle = solved(s, r->options.middle_of[calls]);
    part[0] -= late + middle / 2;
    part[NRG_WAIT_SHAPES / 2] += middle;
    part[NRG_WAIT_SHAPES - 1] += late - middle / 2;
}

double nrg_solver_concentration(const struct nrg_solver *s, size_t column, double errors)
{
    const struct nrg_waits *w = &s->r->waits;
    double part[NRG_WAIT_SHAPES], mean = 0, square = 0;
    for (size_t i = 0; i < NRG_WAIT_SHAPES; i++) {
        part[i] = w->shape[i] + solved(s, NRG_COLUMN_WAITS + i);
        mean += part[i] / NRG_WAIT_SHAPES;
    }
    add_own_places(s, column, part);
    for (size_t i = 0; i < NRG_WAIT_SHAPES; i++) {
        size_t p = solved_at(s, NRG_COLUMN_WAITS + i);
        double error2 =
            p < s->m ? nrg_solver_covariance(s, p, p) : w->shape_error2[nrg_packed(i, i)];
        square += fmax((part[i] - mean) * (part[i] - mean) + errors * error2, 0);
    }
    return fmin(sqrt(square * NRG_WAIT_SHAPES / (NRG_WAIT_SHAPES - 1)), 1);
}

double nrg_solver_misplaced_w(const struct nrg_solver *s, size_t p)
{
    const struct nrg_regress *r = s->r;
    const struct nrg_waits *w = &r->waits;
    double lack_s = 0, calls = 0;
    if (!w->used || !(w->scale[s->index[p]] > 0))
        return 0;
    for (size_t i = 0; i < w->n_places; i++) {
        lack_s += w->open_s[i] * (1 - w->busy[i]);
        calls += w->call_s[i] > 0 ? w->open_s[i] / w->call_s[i] : 0;
    }
    double call_s = w->call_s[w->place_of[s->index[p]]] * r->mean_rate[s->index[p]];
    if (!(calls > 0) || !(call_s > 0))
        return 0;
    double misplaced = w->finer ? MISPLACED_FINER : MISPLACED;
    return misplaced * nrg_solver_concentration(s, s->index[p], -1) * lack_s / calls / call_s *
           nrg_solver_mean_power(s);
}

/* How much of what is in a cell rows tell apart. */
static double short_rows(const struct nrg_solver *s)
{
    return fmax(1 - nrg_regress_row_per_cell(s->r), 0);
}

/*
 * Whether a call that is longer worked longer or waited longer decides between idle power and all
 * classes together, where rows are shorter than cells. Two straight lines say it (waits.c); the
 * more they differ, the less they are the curve that it is.
 */
double nrg_solver_curved_part(const struct nrg_solver *s)
{
    const struct nrg_waits *w = &s->r->waits;
    double busy_s = 0, open_s = 0;
    if (!w->used || w->finer)
        return 0;
    for (size_t i = 0; i < w->n_places; i++) {
        busy_s += w->open_s[i] * w->busy[i];
        open_s += w->open_s[i];
    }
    return busy_s > 0 ? CURVED * fabs(w->bend) * short_rows(s) * open_s / busy_s : 0;
}

/*
 * How far apart the places of waits are, of all classes together: 0 where all wait at one place, 1
 * where they are as far apart as the five places or further. Parts may be negative by their errors.
 */
static double places_apart(const struct nrg_solver *s)
{
    double part[NRG_WAIT_SHAPES], all = 0, mean = 0, square = 0;
    for (size_t i = 0; i < NRG_WAIT_SHAPES; i++) {
        part[i] = s->r->waits.shape[i] + solved(s, NRG_COLUMN_WAITS + i);
        all += part[i];
        mean += part[i] * (double)i;
    }
    if (!(all > 0))
        return 1;
    for (size_t i = 0; i < NRG_WAIT_SHAPES; i++)
        square += part[i] / all * ((double)i - mean / all) * ((double)i - mean / all);
    return fmin(sqrt(fmax(square, 0)), 1);
}

/*
 * The same where waits lie elsewhere in their calls than was found, each class's at a place of its
 * own. Its neighbours have what a class lacks then; of a sum of all classes that cancels, and only
 * what idle power has at the edges of steps remains (in_sum): none where all wait at one place, as
 * no class can have another.
 */
double nrg_solver_misplaced_part(const struct nrg_solver *s, bool in_sum)
{
    const struct nrg_waits *w = &s->r->waits;
    double lack_s = 0, busy_s = 0;
    if (!w->used || w->finer)
        return 0;
    for (size_t i = 0; i < w->n_places; i++) {
        lack_s += w->open_s[i] * (1 - w->busy[i]);
        busy_s += w->open_s[i] * w->busy[i];
    }
    double part = MISPLACED * nrg_solver_concentration(s, 0, -1) * short_rows(s);
    if (in_sum)
        part *= places_apart(s);
    return busy_s > 0 ? part * lack_s / busy_s : 0;
}

/* How differently classes wait, beyond what is not known of each: 0 to 1. */
static double unevenness(const struct nrg_waits *w)
{
    double sum = 0, open_s = 0, square = 0;
    for (size_t i = 0; i < w->n_places; i++) {
        sum += w->open_s[i] * w->busy[i];
        open_s += w->open_s[i];
    }
    for (size_t i = 0; open_s > 0 && i < w->n_places; i++) {
        double off = w->busy[i] - sum / open_s;
        square += (off * off - w->error2[nrg_packed(i, i)]) / (double)w->n_places;
    }
    return fmin(sqrt(fmax(square, 0)) / UNEVEN, 1);
}

/* What rows say of classes that wait differently is less certain than it looks: what calls wait is
 * drawn to the mean of all. */
static double wider(const struct nrg_regress *r)
{
    if (r->waits.finer)
        return WIDER;
    return nrg_regress_row_per_cell(r) < SHORT ? 1 + WIDER_UNEVEN * unevenness(&r->waits) : 1;
}

/*
 * All classes together have what was measured, less idle power: which of them waited does not
 * matter there, but as far as rows say what idle power is. Where they are doubted (drift.c), a
 * baseline says it, and its error is in the sum already. Returns how far it is the rows.
 */
static double idle_by_rows(const struct nrg_solver *s)
{
    size_t off = solved_at(s, NRG_COLUMN_IDLE_OFF);
    double before_w = s->r->options.idle_error_w;
    if (off == s->m || !(before_w > 0))
        return 1;
    return fmax(1 - nrg_solver_covariance(s, off, off) / (before_w * before_w), 0);
}

/* How far each of n figures goes with the sum of all, by the weights; for what is known of it. */
static void with_sum(const double *packed, const double *weight, size_t n, double *with)
{
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        with[i] = 0;
        for (size_t k = 0; k < n; k++)
            with[i] += packed[nrg_packed(i, k)] * weight[k];
        all += with[i] * weight[i];
    }
    for (size_t i = 0; i < n; i++)
        with[i] = all > 0 ? with[i] / sqrt(all) : 0;
}

/* More variance of what rows say, but not of what a baseline says of the sum of all classes. */
static void widen(struct nrg_solver *s, double by)
{
    double *time_s = s->work, *with = s->work + s->m;
    size_t others = s->r->column_of[s->r->options.others_class];
    for (size_t p = 0; p < s->m; p++)
        time_s[p] =
            p < s->n_classes && s->index[p] != others ? s->r->time_s[s->index[p]] * s->scale[p] : 0;
    with_sum(s->covariance, time_s, s->m, with);
    for (size_t p = 0; p < s->m; p++)
        for (size_t q = 0; q <= p; q++)
            s->covariance[nrg_packed(p, q)] +=
                (by - 1) *
                (s->covariance[nrg_packed(p, q)] - (1 - s->idle_by_rows) * with[p] * with[q]);
}

/* Energy that is a class's because of CPU time that may not be its own: of all at the mean power.
 */
void nrg_solver_add_waits(struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    const struct nrg_waits *w = &r->waits;
    double mean_w = w->used ? nrg_solver_mean_power(s) : 0, with[NRG_WAIT_PLACES];
    s->idle_by_rows = w->used ? idle_by_rows(s) : 1;
    if (!(mean_w > 0))
        return;
    if (!w->finer)
        mean_w *= fmin(pow(nrg_regress_row_per_cell(r), SHORT_ROWS), 1);
    widen(s, wider(r));
    with_sum(w->error2, w->open_s, w->n_places, with);
    for (size_t p = 0; p < s->n_classes; p++) {
        size_t i = s->index[p];
        for (size_t q = 0; w->scale[i] > 0 && q <= p; q++) {
            size_t k = s->index[q], a = w->place_of[i], b = w->place_of[k];
            double error2 = w->error2[nrg_packed(a, b)] - (1 - s->idle_by_rows) * with[a] * with[b];
            if (w->scale[k] > 0)
                s->covariance[nrg_packed(p, q)] += mean_w * mean_w * error2 /
                                                   (r->mean_rate[i] * r->mean_rate[k]) /
                                                   (s->scale[p] * s->scale[q]);
        }
    }
}
