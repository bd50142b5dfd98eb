/*
 * Whether idle power drifted. Where the load hardly changes from row to row, idle power is found by
 * going back from there to no load at all, and what is not known of the load then looks like idle
 * power that is not where it was measured. So that idle stayed where it was, and that it drifted,
 * are two explanations: each counts by how likely it makes the readings, and where that does not
 * decide, intervals hold both. The same for a drift that is not straight: a machine that warms up
 * comes to a new level, fast at first.
 */
#include <math.h>

#include "attribute/regress/internal.h"

#define LEAST_KEPT   1e-3
#define STRAIGHT     3    /* log odds before the readings that a drift is not bent */
#define BEND_OFF     0.1  /* of the bend: found on simulated machines */
#define LEAST_IDLE   0.1  /* of the power of a baseline in which others were busy */
#define AS_IDLE      2    /* deviations of a baseline */
#define CLEARLY_MORE 4    /* standard errors */
#define NOT_TOLD     4    /* the same of a baseline: beyond, readings do not tell what gaps draw */
#define LEAST_GAP    0.02 /* of its deviation */
#define LEAST_TOLD   1e-6 /* of what a baseline tells of idle power: less is rounding */
#define IMPOSSIBLE   2    /* deviations of what idle power may drift by */
#define CLEARLY      2    /* standard errors */
#define MOST_AWAKE   3    /* times what a CPU second draws in the mean */
#define FAR_SHORTER  3    /* by so many powers of 2 */
#define LEAST_FREE   1e-6 /* of what is known of idle power by readings: less is rounding */
#define QUARTERS     4
#define N_WARM       (NRG_IDLE_HEAT - NRG_IDLE_WARM)
/* Part of a line that the means of the first and the last quarter differ by. */
#define ONE_QUARTER_TO_ANOTHER 0.75

/* Of idle power, without what others had in the baseline. */
static double idle_part(const struct nrg_regress *r)
{
    const struct nrg_regress_options *o = &r->options;
    uint32_t column = o->idle_busy > 0 ? r->column_of[o->others_class] : 0;
    double others_w = column && r->prior && column < r->n_prior ? r->prior[column] : 0;
    double busy_w = fmin(others_w * o->idle_busy, o->idle_busy_w);
    return fmax(o->idle_w > 0 ? 1 - busy_w / o->idle_w : 1, LEAST_IDLE);
}

double nrg_regress_idle_deviation_w(const struct nrg_regress *r, size_t column)
{
    const struct nrg_regress_options *o = &r->options;
    if (column == NRG_COLUMN_IDLE_OFF)
        return o->idle_error_w;
    if (column == NRG_COLUMN_AWAKE)
        return o->awake ? r->awake_w : 0;
    if (column < NRG_COLUMN_IDLE_SHAPES)
        return 0;
    double all_w = o->idle_shape_w[column - NRG_COLUMN_IDLE_SHAPES];
    return all_w > 0 ? all_w * idle_part(r) : 0;
}

double nrg_regress_furthest_idle_w(const struct nrg_regress *r)
{
    return IMPOSSIBLE * nrg_regress_idle_deviation_w(r, NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_LINE);
}

/* A machine that is known to have warmed up did so fast at first. */
static void expect_bend(const struct nrg_regress *r, struct nrg_gram *sum)
{
    size_t column = NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_BEND;
    double w = nrg_regress_idle_deviation_w(r, column), bent_w = r->options.idle_bent_w;
    if (w > 0 && sum->a[nrg_packed(column, column)] > 0) {
        sum->b[column] += bent_w / (w * w);
        sum->yy += bent_w * bent_w / (w * w);
    }
}

/* Columns that make up what a baseline after the run shows, and how much of each. */
struct anchor {
    size_t column[NRG_COLUMN_IDLE_OFF + 2], n;
    double x[NRG_COLUMN_IDLE_OFF + 2];
};

static void add_to_anchor(struct anchor *a, const struct nrg_gram *sum, size_t column, double x)
{
    if (x == 0 || !(sum->a[nrg_packed(column, column)] > 0))
        return;
    a->column[a->n] = column;
    a->x[a->n++] = x;
}

/* Idle power and its shapes where the run ends are what was seen after it, with the others that
 * there were more then than before. Of others who were not there in the run nothing is known. */
void nrg_regress_anchor(const struct nrg_regress *r, struct nrg_gram *sum)
{
    const struct nrg_regress_options *o = &r->options;
    expect_bend(r, sum);
    double error_w = sqrt(2) * o->idle_error_w, weight = 1 / (error_w * error_w);
    struct anchor a = {.n = 0};
    size_t others = o->busy_after != 0 ? r->column_of[o->others_class] : 0;
    bool known = o->busy_after == 0 || (others && sum->a[nrg_packed(others, others)] > 0);
    if (!o->seen_twice || !(error_w > 0) || !known)
        return;
    add_to_anchor(&a, sum, NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_LINE, 1);
    add_to_anchor(&a, sum, NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_HEAT,
                  o->course.heat ? o->course.heat->after : 0);
    add_to_anchor(&a, sum, NRG_COLUMN_IDLE_OFF, 1);
    if (others)
        add_to_anchor(&a, sum, others, o->busy_after);
    for (size_t i = 0; i < a.n; i++) {
        sum->b[a.column[i]] += a.x[i] * o->idle_after_w * weight;
        for (size_t k = 0; k <= i; k++)
            sum->a[nrg_packed(a.column[i], a.column[k])] += a.x[i] * a.x[k] * weight;
    }
    sum->yy += o->idle_after_w * o->idle_after_w / (error_w * error_w);
}

/* At least half of the gaps are not far shorter than those that half of their time is in. */
static bool gaps_are_alike(const struct nrg_stretches *gaps)
{
    double all_n = 0, all_s = 0, long_n = 0, long_s = 0;
    int i, shorter;
    for (i = 0; i < 64; i++) {
        all_n += gaps->n[i];
        all_s += gaps->s[i];
    }
    for (i = 63; i > 0 && long_s < all_s / 2; i--)
        long_s += gaps->s[i];
    shorter = i + 1 > FAR_SHORTER ? i + 1 - FAR_SHORTER : 0;
    for (i = shorter; i < 64; i++)
        long_n += gaps->n[i];
    return long_n >= all_n / 2;
}

/* Odds that something ran in gaps which seem to draw so much, against nothing. It would have drawn
 * anything up to the most that is given, all alike. Both in standard errors. */
static double odds_of_work(double seen, double most)
{
    double nothing = exp(-seen * seen / 2) / sqrt(2 * M_PI);
    double something = erfc(-seen / sqrt(2)) / 2 / fmax(most, 1);
    return nothing > 0 ? something / nothing : INFINITY;
}

static double error_of(const struct nrg_solver *s, size_t p)
{
    return sqrt(s->left * s->inverse[nrg_packed(p, p)]) * s->scale[p];
}

/* Gaps of another age clearly draw more than idle power: the device stays awake for a while, and
 * what these draw, too, may be the rest of that. */
static bool draws_in_other_gaps(const struct nrg_solver *s, size_t gap)
{
    const struct nrg_regress_options *o = &s->r->options;
    bool any = false;
    for (size_t p = 0; p < s->n_classes; p++) {
        size_t class_ = s->r->class_of[s->index[p]];
        bool other = p != gap && class_ >= o->spans && !s->dependent[p] &&
                     class_ != o->others_class && class_ != o->workers_class;
        any |= other && s->free_beta[p] * s->scale[p] > CLEARLY_MORE * error_of(s, p);
    }
    return any;
}

/*
 * Time without any span may draw idle power alone, or something may have run that has no span. Both
 * together explain readings of that time whatever idle power was, and then a baseline's own error
 * is in all classes. But where these readings are those of the baseline, something that ran would
 * have had to make up for just what idle power changed by: so nothing ran, as far as the odds say,
 * and they show idle power (of a device that stays awake after work, and where readings hardly
 * tell what gaps draw, what they differ by may be either). Not where a few long stretches speak for
 * many short ones.
 */
bool nrg_solver_know_gaps(struct nrg_solver *s)
{
    const struct nrg_regress_options *o = &s->r->options;
    size_t p = 0, column = o->has_gaps ? s->r->column_of[o->gap_class] : 0;
    while (p < s->n_classes && s->index[p] != column)
        p++;
    if (!column || p == s->n_classes || s->dependent[p] || !(o->idle_error_w > 0) ||
        o->course.seen == NRG_IDLE_NOT_SEEN || !gaps_are_alike(&s->r->gaps))
        return false;
    double gap_w = s->free_beta[p] * s->scale[p];
    double error_w = fmax(error_of(s, p), o->idle_error_w);
    double ran = odds_of_work(gap_w / error_w, nrg_solver_mean_power(s) / error_w);
    bool either = draws_in_other_gaps(s, p) || error_w > NOT_TOLD * o->idle_error_w;
    if (either ? fabs(gap_w) > AS_IDLE * o->idle_error_w : ran > 1)
        return false;
    double off_w = either ? fabs(gap_w) : ran / (1 + ran) * hypot(gap_w, error_w);
    off_w += LEAST_GAP * o->idle_error_w;
    s->sum.a[nrg_packed(column, column)] += s->left / (off_w * off_w);
    return true;
}

/* Of the CPUs that a column's class had in a part of the run: their mean. */
static double quarter_rate(const struct nrg_regress *r, size_t column, size_t quarter)
{
    double time = 0, all = 0;
    for (size_t g = quarter * r->n_blocks / QUARTERS; g < (quarter + 1) * r->n_blocks / QUARTERS;
         g++) {
        const struct nrg_gram *block = &r->block[g];
        if (NRG_COLUMN_IDLE_OFF >= block->n)
            continue;
        all += block->a[nrg_packed(NRG_COLUMN_IDLE_OFF, NRG_COLUMN_IDLE_OFF)];
        time += column < block->n ? block->a[nrg_packed(column, NRG_COLUMN_IDLE_OFF)] : 0;
    }
    return all > 0 ? time / all : NAN;
}

/* The same in the mean of the run, and how much it differs between its quarters; NAN: not known. */
struct rate {
    double mean, change;
};

static struct rate rate_of(const struct nrg_regress *r, size_t column)
{
    double least = INFINITY, most = -INFINITY;
    struct rate rate = {r->sum_s > 0 ? r->time_s[column] / r->sum_s : 0, NAN};
    for (size_t i = 0; i < QUARTERS; i++) {
        double now = quarter_rate(r, column, i);
        if (isnan(now))
            return rate;
        least = fmin(least, now);
        most = fmax(most, now);
    }
    rate.change = most - least;
    return rate;
}

/* When in their calls threads waited is not known, which draws powers towards one another: how much
 * power, in the mean, may be missing from some of them; and how much that may change in the run. */
static struct rate blur_w(const struct nrg_solver *s)
{
    double mean_w = nrg_solver_mean_power(s), mean = 0, change = 0;
    for (size_t p = 0; p < s->n_classes; p++) {
        double waited = nrg_regress_waited(s->r, s->index[p]);
        if (!(waited > 0))
            continue;
        double off_w = waited * (s->beta[p] * s->scale[p] - mean_w);
        struct rate rate = rate_of(s->r, s->index[p]);
        mean += pow(off_w * rate.mean, 2);
        change += pow(off_w * rate.change, 2);
    }
    return (struct rate){sqrt(mean), sqrt(change)};
}

/* Where a column stands; m: it is not solved for. */
static size_t place_of(const struct nrg_solver *s, size_t column)
{
    size_t p = s->n_bound;
    while (p < s->m && (s->index[p] != column || s->dependent[p]))
        p++;
    return p;
}

/*
 * Where threads wait, CPU times of rows have errors: at their borders it is not known who waited.
 * These errors make all powers too small or too large together, and idle power makes up for it. If
 * all that rows leave were such errors of the time x that threads worked in a row, of variance e2,
 * then powers would be off by e2 / variance of x, and since that is also what their own variance
 * is made of, idle power by the number of rows * its variance by rows / power above idle. How much
 * of that it is, and on which side, depends on what is assumed of waits: anything up to that.
 * Returns a deviation; by_rows_w2: variance of idle power as rows alone know it.
 */
static double smeared_w(const struct nrg_solver *s, double by_rows_w2)
{
    const struct nrg_regress *r = s->r;
    double energy_j = 0;
    for (size_t p = 0; p < s->n_classes; p++)
        energy_j += s->beta[p] * s->scale[p] * r->time_s[s->index[p]];
    return energy_j > 0 ? (double)s->sum.rows * by_rows_w2 * r->sum_s / energy_j / sqrt(3) : 0;
}

/* What rows alone know of idle power, of which both know this: as a variance. */
static double by_rows_w2(const struct nrg_solver *s, double all_w2)
{
    double before_w = s->r->options.idle_error_w, before = 1 / (before_w * before_w);
    return 1 / fmax(1 / all_w2 - before, before * LEAST_TOLD);
}

/*
 * So rows count for less against what a baseline says, by that error. They leave more than their
 * weights say where it is not known when in a long call its thread waited, and then are off by as
 * much more; blocks of time may know of more scatter still.
 */
static int doubt_rows(struct nrg_solver *s)
{
    size_t off = place_of(s, NRG_COLUMN_IDLE_OFF);
    double before_w = s->r->options.idle_error_w, before = 1 / (before_w * before_w);
    if (!s->r->waits.used || off == s->m || !(before_w > 0))
        return 0;
    double all_w2 = s->inverse[nrg_packed(off, off)] * s->scale[off] * s->scale[off];
    double rows_w2 = by_rows_w2(s, all_w2 * fmax(s->left, 1));
    s->smeared_w = smeared_w(s, rows_w2);
    double scatter_w2 = nrg_solver_covariance(s, off, off);
    double doubted_w2 = fmax(rows_w2, scatter_w2) + s->smeared_w * s->smeared_w;
    double now_w2 = 1 / (before + 1 / doubted_w2);
    nrg_solver_narrow(s, s->covariance, off, now_w2 / scatter_w2);
    return nrg_solver_draw(s, off, now_w2 / doubted_w2 * by_rows_w2(s, all_w2) / all_w2,
                           s->work + s->m);
}

/* Log odds that a column is not 0, of which so much was seen with the variance v, and a deviation
 * was expected; before that, even. */
static double log_odds(double seen, double v, double deviation)
{
    double all = v + deviation * deviation;
    return (seen * seen / v - seen * seen / all - log(all / v)) / 2;
}

/*
 * What readings say of the shapes by how power changes within the run alone: with idle power free
 * where it was seen. What is missing in all rows alike, as waits that lie elsewhere make it, is
 * then not taken for a shape. Told by the baseline's error that comes off what is known of it.
 */
static void tell_within(struct nrg_solver *s)
{
    size_t off = place_of(s, NRG_COLUMN_IDLE_OFF);
    double error_w = s->r->options.idle_error_w, known = 0, free = 0;
    if (off < s->m && error_w > 0) {
        known = pow(s->scale[off] / error_w, 2);
        free = 1 - known * s->inverse[nrg_packed(off, off)];
    }
    for (size_t i = 0; i < NRG_IDLE_SHAPES; i++) {
        size_t p = place_of(s, NRG_COLUMN_IDLE_SHAPES + i);
        s->drift[i].within_w2 = INFINITY;
        if (p == s->m || !(free > LEAST_FREE))
            continue;
        double with = known * s->inverse[nrg_packed(p, off)] / free;
        s->drift[i].within_w = (s->free_beta[p] + with * s->free_beta[off]) * s->scale[p];
        s->drift[i].within_w2 =
            nrg_solver_covariance(s, p, p) *
            (1 + with * s->inverse[nrg_packed(p, off)] / s->inverse[nrg_packed(p, p)]);
    }
}

/* How far idle power went along a shape, and the variance of that. */
struct course {
    double w, w2;
};

/* By its level and its changes, or by its changes alone, where more is known of these. */
static struct course seen_of(const struct nrg_solver *s, size_t p)
{
    size_t shape = s->index[p] - NRG_COLUMN_IDLE_SHAPES;
    struct rate blur = blur_w(s);
    struct course level = {s->free_beta[p] * s->scale[p], nrg_solver_covariance(s, p, p) +
                                                              pow(2 * blur.mean, 2) +
                                                              s->smeared_w * s->smeared_w};
    double changes = blur.mean > 0 ? blur.change / blur.mean : 1;
    double off_w = hypot(2 * blur.change, changes * s->smeared_w) / ONE_QUARTER_TO_ANOTHER;
    struct course within = {s->drift[shape].within_w, s->drift[shape].within_w2 + off_w * off_w};
    return within.w2 < level.w2 ? within : level;
}

/* Probability that it went along a shape, whose column is p; `against`: log odds before. */
static double probability(const struct nrg_solver *s, size_t p, double drift_w, double against)
{
    struct course seen = seen_of(s, p);
    return 1 / (1 + exp(against - log_odds(seen.w, seen.w2, drift_w)));
}

/* Waits draw neither less than idle power nor far more than work does. What says so, or says
 * nothing clear, is a program that always does the same, of which rows tell nothing but their
 * rounding. */
bool nrg_solver_drop_awake(struct nrg_solver *s)
{
    size_t p = place_of(s, NRG_COLUMN_AWAKE);
    double most_w = nrg_regress_idle_deviation_w(s->r, NRG_COLUMN_AWAKE);
    if (p == s->m)
        return false;
    double w = s->free_beta[p] * s->scale[p];
    double error_w = sqrt(s->left * s->inverse[nrg_packed(p, p)]) * s->scale[p];
    if (w > CLEARLY * error_w && w < MOST_AWAKE * most_w)
        return false;
    s->sum.a[nrg_packed(NRG_COLUMN_AWAKE, NRG_COLUMN_AWAKE)] = 0;
    return true;
}

/*
 * Waits that draw something, or idle power that moved: for a program that never rests the readings
 * are the same, and what was known of idle power before decides. That it is not known who waited
 * at a row's borders looks like either, too, and does less harm to classes as the former.
 */
static int judge_awake(struct nrg_solver *s)
{
    size_t p = place_of(s, NRG_COLUMN_AWAKE);
    double most_w = nrg_regress_idle_deviation_w(s->r, NRG_COLUMN_AWAKE);
    if (p == s->m || !(most_w > 0))
        return 0;
    double seen_w = s->free_beta[p] * s->scale[p];
    double odds = log_odds(seen_w, nrg_solver_covariance(s, p, p), most_w);
    double drawn = fmax(seen_w > 0 ? 1 / (1 + exp(-odds)) : 0, LEAST_KEPT), other = 1 - drawn;
    s->awake_w = drawn * fmax(seen_w, 0);
    s->drift[NRG_DOUBT_AWAKE].untold = fmin(2 * sqrt(drawn * other), fmax(drawn, other));
    nrg_solver_narrow(s, s->covariance, p, drawn);
    return nrg_solver_draw(s, p, drawn, s->drift[NRG_DOUBT_AWAKE].moved);
}

/* Rows leave more than the ages of a counter's readings make of them: the load varied by itself.
 * What they leave where it is not known when others ran says nothing of it. */
static bool load_varies(const struct nrg_regress *r)
{
    double update_s = (double)r->options.channel->update_ns / 1e9;
    double row_s = r->row ? r->sum_s / (double)r->row : 0, aged = update_s / row_s;
    bool apart = r->noise.cut > 0 && !r->waits.used;
    double left2 = apart ? r->noise.floor2 * (double)r->row : r->sum_e2;
    return !r->options.timeline->is_gauge && update_s > 0 && row_s > 0 && r->prior &&
           left2 > r->sum_y2 * aged * aged / 6;
}

/* How far idle power is taken to be from where baselines saw it, in the mean of the run: from one,
 * or from the line between two. */
static double away_w(const struct nrg_solver *s)
{
    bool twice = s->r->options.seen_twice;
    double sum_w = 0;
    for (size_t p = s->n_bound; p < s->m; p++) {
        size_t column = s->index[p], shape = column - NRG_COLUMN_IDLE_SHAPES;
        double w = s->free_beta[p] * s->scale[p];
        if (column == NRG_COLUMN_IDLE_OFF)
            sum_w += w;
        else if (column >= NRG_COLUMN_IDLE_SHAPES && column <= NRG_COLUMN_IDLE_SHAPES_LAST &&
                 !(twice && shape == NRG_IDLE_LINE))
            sum_w += w * nrg_idle_shape_mean(&s->r->options.course, shape);
    }
    return fabs(sum_w);
}

/*
 * Idle power that readings want so far from its baseline as it does not drift: then the model of
 * the load is wrong, and idle power has what classes lack, or the other way round. Which ones is
 * not known: any CPU second, by as much.
 */
static void doubt_load(struct nrg_solver *s)
{
    const struct nrg_regress_options *o = &s->r->options;
    size_t shape = o->seen_twice ? NRG_IDLE_BEND : NRG_IDLE_LINE;
    double off_w = away_w(s), drift_w = o->idle_shape_w[shape], time_s = 0;
    for (size_t p = 0; p < s->n_classes; p++)
        time_s += fmax(s->r->time_s[s->index[p]], 0);
    if (!(drift_w > 0) || off_w < IMPOSSIBLE * hypot(drift_w, o->idle_error_w) || !(time_s > 0))
        return;
    for (size_t q = 0; q < s->n_classes; q++)
        s->drift[NRG_DOUBT_REST].moved[q] = off_w * s->r->sum_s / time_s / s->scale[q];
    s->drift[NRG_DOUBT_REST].untold = 1;
}

/*
 * What no shape has of the course: as the fastest one is large, faster ones are not nothing. In the
 * mean of the run they look like idle power that was off. And a load that varies by itself may
 * look like idle power that is not where it was seen, all of it.
 */
static void doubt_rest(struct nrg_solver *s)
{
    size_t last = NRG_IDLE_HEAT - 1, p = place_of(s, NRG_COLUMN_IDLE_SHAPES + last);
    size_t off = place_of(s, NRG_COLUMN_IDLE_OFF);
    double own = off < s->m ? s->inverse[nrg_packed(off, off)] : 0;
    if (p == s->m || !(own > 0))
        return;
    double rest_w = fabs(s->free_beta[p] * s->scale[p]);
    if (load_varies(s->r) && !s->r->options.seen_twice)
        rest_w = fmax(rest_w, away_w(s));
    /* Where readings tell idle power from load by themselves, they do so whatever its course. */
    double told = sqrt(nrg_solver_covariance(s, off, off)) / s->r->options.idle_error_w;
    rest_w *= fmin(told, 1);
    for (size_t q = 0; q < s->m; q++)
        s->drift[NRG_DOUBT_REST].moved[q] =
            s->inverse[nrg_packed(off, q)] / own * rest_w / s->scale[off];
    s->drift[NRG_DOUBT_REST].untold = 1;
}

static int judge_shape(struct nrg_solver *s, size_t shape, double against)
{
    size_t column = NRG_COLUMN_IDLE_SHAPES + shape, p = place_of(s, column);
    double drift_w = nrg_regress_idle_deviation_w(s->r, column);
    if (p == s->m || !(drift_w > 0))
        return 0;
    double drifted = fmax(probability(s, p, drift_w, against), LEAST_KEPT), other = 1 - drifted;
    s->drift[shape].untold = fmin(2 * sqrt(drifted * other), fmax(drifted, other));
    nrg_solver_narrow(s, s->covariance, p, drifted); /* not known as far as there was one */
    return nrg_solver_draw(s, p, drifted, s->drift[shape].moved);
}

/*
 * Idle power that falls fast as a load begins is seldom its own: a processor that may draw more for
 * a while (turbo) makes the load fall, and readings are much the same. So what comes with all
 * shapes of a warm-up together may be the load's. A machine that warms up draws more.
 */
static void doubt_fall(struct nrg_solver *s)
{
    size_t p[N_WARM], n = 0;
    double known[N_WARM * (N_WARM + 1) / 2], y[N_WARM], fall_w = 0;
    for (size_t i = NRG_IDLE_WARM; i < NRG_IDLE_HEAT; i++)
        if (place_of(s, NRG_COLUMN_IDLE_SHAPES + i) < s->m)
            p[n++] = place_of(s, NRG_COLUMN_IDLE_SHAPES + i);
    for (size_t i = 0; i < n; i++) {
        double own = sqrt(s->inverse[nrg_packed(p[i], p[i])]);
        y[i] = s->free_beta[p[i]] / own;
        fall_w -= s->free_beta[p[i]] * s->scale[p[i]];
        for (size_t k = 0; k <= i; k++)
            known[nrg_packed(i, k)] =
                s->inverse[nrg_packed(p[i], p[k])] / own / sqrt(s->inverse[nrg_packed(p[k], p[k])]);
    }
    if (!(fall_w > 0))
        return;
    nrg_gram_factor(known, n, NULL, NULL, false);
    nrg_gram_solve(known, n, y, false);
    for (size_t q = 0; q < s->m; q++)
        for (size_t i = 0; i < n; i++)
            s->drift[NRG_DOUBT_FALL].moved[q] +=
                s->inverse[nrg_packed(p[i], q)] * y[i] / sqrt(s->inverse[nrg_packed(p[i], p[i])]);
    s->drift[NRG_DOUBT_FALL].untold = 1;
}

/* Log odds against a bend: a machine that drifts at all mostly warms up, fast at first, so that
 * they are the less the surer it is that it drifted. */
static double straight(const struct nrg_solver *s)
{
    size_t column = NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_LINE, p = place_of(s, column);
    double drift_w = nrg_regress_idle_deviation_w(s->r, column);
    double drifted = p < s->m && drift_w > 0 ? probability(s, p, drift_w, 0) : 0;
    return STRAIGHT * fmin(2 * (1 - drifted), 1); /* even odds say nothing */
}

/* Idle power is known to have changed: a load that changes as the machine warms up looks much the
 * same as the bend, of which a part may be that. */
static int doubt_bend(struct nrg_solver *s)
{
    size_t p = place_of(s, NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_BEND);
    if (p == s->m)
        return 0;
    s->drift[NRG_IDLE_BEND].untold = BEND_OFF;
    return nrg_solver_draw(s, p, 1, s->drift[NRG_IDLE_BEND].moved);
}

/* Where it is known that a machine warmed up, nothing speaks against shapes of it but their number.
 */
int nrg_solver_judge_drift(struct nrg_solver *s)
{
    bool known = s->r->options.idle_bent_w != 0;
    tell_within(s);
    int rc = doubt_rows(s);
    if (!rc)
        rc = judge_awake(s);
    if (s->walk.likely > 0.5) /* that it drifts is known, and how: shapes are a part of that */
        return rc;
    for (size_t i = NRG_IDLE_HEAT; !rc && i-- > NRG_IDLE_WARM;)
        rc = judge_shape(s, i, log(NRG_IDLE_HEAT - NRG_IDLE_WARM) + (known ? 0 : straight(s)));
    if (!rc)
        doubt_fall(s);
    if (!rc)
        rc = known ? doubt_bend(s) : judge_shape(s, NRG_IDLE_BEND, straight(s));
    if (!rc)
        rc = judge_shape(s, NRG_IDLE_LINE, 0);
    if (!rc)
        rc = judge_shape(s, NRG_IDLE_HEAT, 0);
    if (!rc)
        doubt_rest(s);
    if (!rc)
        doubt_load(s);
    return rc;
}
