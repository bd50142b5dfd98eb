/*
 * Power that does not add up over threads. A package draws some watts as soon as any CPU is awake
 * (the uncore), whoever runs; where more CPUs run, the clock falls and each draws less (turbo); two
 * threads of one core draw less than twice what one does (SMT). So a regression whose classes only
 * add up is wrong wherever threads work at the same time in one moment and alone in another, and
 * what it gets wrong goes to idle power.
 *
 * Columns say how power bends with n, the number of CPUs that are busy at an instant:
 *
 *   per CPU    (n - k)+                            watts that come once, and not with each CPU
 *   per watt   (n - k)+ / n * sum of w over them   each draws less, by a part of its own watts w
 *
 * for k = 1, 2, 3, 5 and 9 as far as so many run: any bend up to 4 CPUs, straight pieces beyond.
 * Where threads wait, n is a number by chance, and (n - k)+ its expected value if they wait
 * independently of one another.
 *
 * What is in such a column belongs to the classes that are active then: per CPU alike, per watt by
 * their watts. A class's part of it, in the mean of its CPU time over the run, is taken off the
 * column as so much time of the class. So over the run the column is 0 in each class, and a class's
 * energy is its power * its CPU time whatever the column's power is, as with calls.
 *
 * Which kinds there are is decided by Schwarz's criterion. Watts w that are taken off per watt are
 * themselves to be found: so once the bend is known, the CPU time of a class counts as it then
 * draws (less where others run, so that its sum stays), and the columns have what is left of the
 * bend. Where readings can't tell one kind from the other, who had the watts is not known: figures
 * are between the two, and intervals reach both.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/internal.h"
#include "base/mem.h"

#define LEAST_TIME  1e-3  /* of the CPU time: less of it together tells nothing */
#define LEAST_VALUE 1e-4  /* CPUs: less is nobody */
#define SAME        1e-6  /* values that differ by less are one */
#define MOST_LEFT   0.9   /* of what rows leave without a bend */
#define ROUNDING    1e-14 /* of the squares of readings: less is left by that alone */

static const size_t knots[NRG_TOGETHER_KNOTS] = {1, 2, 3, 5, 9};

#define MOST_KNOT       9
#define PER_CPU_COLUMNS ((1u << NRG_TOGETHER_KNOTS) - 1)

/* What is busy at an instant: expected values of (n - k)+, CPUs, and their watts. */
struct instant {
    double value[NRG_TOGETHER_KNOTS];
    double busy, watts;
};

/* CPU time of a slice per second of it, once it is known how its calls wait. */
static double busy_rate(const struct nrg_regress *r, const struct nrg_regress_slice *s)
{
    double scale = r->waits.used ? r->waits.scale[s->column] : 1;
    return fmax((double)s->rate * (scale > 0 ? scale : 1), 0);
}

/* Adds one that is busy with this probability to how likely 0, 1, ... of them are. */
static void add_one(double likely[MOST_KNOT], double busy)
{
    for (size_t i = MOST_KNOT; i-- > 0;)
        likely[i] = likely[i] * (1 - busy) + (i ? likely[i - 1] * busy : 0);
}

/* (n - k)+ = n - the sum over j < k of whether n is more than j. */
static void find_values(struct instant *now, const double likely[MOST_KNOT], size_t always)
{
    double most = 0, up_to = 0; /* expected value of the lesser of n and j; n is j or less */
    size_t knot = 0;
    for (size_t j = 0; j <= MOST_KNOT && knot < NRG_TOGETHER_KNOTS; j++) {
        if (j == knots[knot])
            now->value[knot++] = fmax(now->busy - most, 0);
        up_to += j >= always && j - always < MOST_KNOT ? likely[j - always] : 0;
        most += 1 - up_to;
    }
}

static struct instant look(const struct nrg_regress *r)
{
    const struct nrg_together *t = &r->together;
    struct instant now = {.busy = 0};
    double likely[MOST_KNOT] = {1};
    size_t always = 0;
    for (size_t i = 0; i < t->sweep.n_open; i++) {
        double busy = busy_rate(r, &t->sweep.open[i]), whole = floor(busy + SAME);
        always += (size_t)whole;
        if (busy - whole > SAME)
            add_one(likely, busy - whole);
        now.busy += busy;
        now.watts += busy * t->weight[t->sweep.open[i].column];
    }
    if (now.busy > 0)
        find_values(&now, likely, always);
    return now;
}

/* A slice of a column; where the one before goes on, it does. */
static int add_segment(struct nrg_together *t, size_t column, struct nrg_span_ns when, double rate)
{
    struct nrg_slices *slices = &t->slices;
    struct nrg_regress_slice *last = t->last[column] ? &slices->items[t->last[column] - 1] : NULL;
    if (last && last->end_ns == when.begin_ns &&
        fabs((double)last->rate - rate) <= SAME * fabs(rate)) {
        last->end_ns = when.end_ns;
        return 0;
    }
    const struct nrg_regress_slice slice = {.begin_ns = when.begin_ns,
                                            .end_ns = when.end_ns,
                                            .column = (uint16_t)column,
                                            .rate = (float)rate};
    int rc = nrg_append(&slices->items, &slices->n, &slices->cap, &slice, sizeof slice);
    t->last[column] = rc ? 0 : slices->n;
    return rc;
}

/* By how much more each active class draws then, as a part of its CPU time. */
static int bend_classes(struct nrg_together *t, const struct instant *now, struct nrg_span_ns when)
{
    double more = 0, s = (double)(when.end_ns - when.begin_ns) / 1e9;
    int rc = 0;
    for (size_t k = 0; k < NRG_TOGETHER_KNOTS; k++)
        more += t->bend[k] * now->value[k] / now->busy;
    for (size_t i = 0; more != 0 && !rc && i < t->sweep.n_open; i++) {
        const struct nrg_regress_slice *open = &t->sweep.open[i];
        if (!t->settled)
            t->as_much[open->column] += more * (double)open->rate * s;
        rc = add_segment(t, open->column, when, more * (double)open->rate);
    }
    return rc;
}

/* What each class that is active has of the columns. */
static void add_parts(struct nrg_regress *r, const struct instant *now, double s)
{
    struct nrg_together *t = &r->together;
    for (size_t i = 0; i < t->sweep.n_open; i++) {
        uint32_t column = t->sweep.open[i].column;
        double busy = busy_rate(r, &t->sweep.open[i]), part = busy / now->busy * s;
        double *to = &t->mean[column * NRG_TOGETHER];
        t->time_s[column] += (double)t->sweep.open[i].rate * s;
        for (size_t k = 0; k < NRG_TOGETHER_KNOTS; k++) {
            to[k] += part * now->value[k];
            to[NRG_TOGETHER_KNOTS + k] += part * now->value[k] * t->weight[column];
        }
    }
}

/* The time in which the same slices are open. */
static int add_stretch(struct nrg_regress *r, int64_t from_ns, int64_t to_ns)
{
    struct nrg_together *t = &r->together;
    struct instant now = look(r);
    const struct nrg_span_ns when = {from_ns, to_ns};
    double s = (double)(to_ns - from_ns) / 1e9;
    int rc = 0;
    if (!(now.busy > 0))
        return 0;
    t->busy_s += now.busy * s;
    if (!t->settled)
        add_parts(r, &now, s);
    for (size_t k = 0; !rc && k < NRG_TOGETHER; k++) {
        double value = now.value[k % NRG_TOGETHER_KNOTS];
        t->sum_s[k] += value * s;
        if (value > LEAST_VALUE && (t->picked & 1u << k))
            rc = add_segment(t, t->first + k, when,
                             k < NRG_TOGETHER_KNOTS ? value : value * now.watts / now.busy);
    }
    return rc || !(now.value[0] > LEAST_VALUE) ? rc : bend_classes(t, &now, when);
}

/* From where the sweep is up to t_ns, at which nothing is open any more, or the next slice begins.
 */
static int go_on(struct nrg_regress *r, int64_t t_ns)
{
    struct nrg_together *t = &r->together;
    int rc = 0;
    while (!rc && t->at_ns < t_ns && t->sweep.n_open) {
        int64_t end_ns = t_ns;
        for (size_t i = 0; i < t->sweep.n_open;) {
            if (t->sweep.open[i].end_ns <= t->at_ns) {
                t->sweep.open[i] = t->sweep.open[--t->sweep.n_open];
                continue;
            }
            if (t->sweep.open[i].end_ns < end_ns)
                end_ns = t->sweep.open[i].end_ns;
            i++;
        }
        if (t->sweep.n_open)
            rc = add_stretch(r, t->at_ns, end_ns);
        t->at_ns = end_ns;
    }
    t->at_ns = t_ns;
    return rc;
}

/* Slices that begin before ready_ns. Others' CPU time is left aside: it is too uncertain. */
static int sweep(struct nrg_regress *r)
{
    struct nrg_together *t = &r->together;
    uint32_t others = r->column_of[r->options.others_class];
    int rc = 0;
    /* rows may have used those */
    memset(t->last, 0, NRG_REGRESS_COLUMNS(&r->options) * sizeof *t->last);
    for (; !rc && t->sweep.next < r->slices.dropped + r->slices.n; t->sweep.next++) {
        const struct nrg_regress_slice *s = &r->slices.items[t->sweep.next - r->slices.dropped];
        if (s->begin_ns >= r->ready_ns)
            break;
        if (s->column == others || !(s->rate > 0))
            continue;
        rc = go_on(r, s->begin_ns);
        if (!rc)
            rc = nrg_append(&t->sweep.open, &t->sweep.n_open, &t->sweep.cap_open, s, sizeof *s);
    }
    return rc ? rc : go_on(r, r->ready_ns);
}

/* All of it again, with columns and watts that are other ones. */
static int sweep_again(struct nrg_regress *r, uint32_t picked)
{
    struct nrg_together *t = &r->together;
    t->picked = picked;
    t->slices.n = 0;
    t->sweep.n_open = 0;
    t->sweep.next = 0;
    t->at_ns = INT64_MIN;
    t->busy_s = 0;
    t->settled = false;
    memset(t->sum_s, 0, sizeof t->sum_s);
    size_t n = NRG_REGRESS_COLUMNS(&r->options);
    memset(t->time_s, 0, n * sizeof *t->time_s);
    memset(t->as_much, 0, n * sizeof *t->as_much);
    memset(t->mean, 0, n * NRG_TOGETHER * sizeof *t->mean);
    int rc = sweep(r);
    for (size_t i = 0; i < n; i++) {
        double time_s = t->time_s[i] > 0 ? t->time_s[i] : 1;
        t->as_much[i] = 1 + t->as_much[i] / time_s;
        for (size_t k = 0; k < NRG_TOGETHER; k++)
            t->mean[i * NRG_TOGETHER + k] /= time_s;
    }
    t->settled = true;
    return rc;
}

static int make_room(struct nrg_regress *r)
{
    struct nrg_together *t = &r->together;
    size_t n = NRG_REGRESS_COLUMNS(&r->options);
    t->mean = nrg_arena_array(&r->memory, n * NRG_TOGETHER, sizeof *t->mean);
    t->time_s = nrg_arena_array(&r->memory, n, sizeof *t->time_s);
    t->weight = nrg_arena_array(&r->memory, n, sizeof *t->weight);
    t->as_much = nrg_arena_array(&r->memory, n, sizeof *t->as_much);
    t->last = nrg_arena_array(&r->memory, n, sizeof *t->last);
    t->doubt_w = nrg_arena_array(&r->memory, n, sizeof *t->doubt_w);
    for (size_t i = 0; t->weight && i < n; i++)
        t->weight[i] = 1;
    return r->memory.failed ? -ENOMEM : 0;
}

/* Columns of calls may be negative, and so may these. They are of no class. */
static void add_columns(struct nrg_regress *r)
{
    r->together.first = r->n_columns;
    for (size_t k = 0; k < NRG_TOGETHER; k++) {
        r->class_of[r->n_columns] = r->options.n_classes;
        r->is_calls[r->n_columns] = true;
        r->mean_rate[r->n_columns++] = 1;
    }
}

int nrg_regress_find_together(struct nrg_regress *r)
{
    struct nrg_together *t = &r->together;
    uint32_t picked = 0, there = 0;
    if (!r->options.adds_up || !r->plenty)
        return 0;
    int rc = make_room(r);
    add_columns(r);
    if (!rc)
        rc = sweep_again(r, PER_CPU_COLUMNS);
    for (uint32_t k = 0; k < NRG_TOGETHER_KNOTS; k++) {
        there |= t->sum_s[k] > 0 ? 1u << k : 0;
        picked |= t->sum_s[k] > LEAST_TIME * t->busy_s ? 1u << k : 0;
    }
    if (!rc && picked && picked != there)
        rc = sweep_again(r, picked);
    t->picked = picked;
    if (!picked)
        r->n_columns = t->first;
    r->options.together = rc || !picked ? NULL : t;
    return rc;
}

int nrg_regress_go_on_together(struct nrg_regress *r)
{
    return r->options.together ? sweep(r) : 0;
}

/* CPU time of classes counts by what they draw then, and is as much in sum. */
static void even_out(struct nrg_rowgen *gen, const struct nrg_together *t)
{
    size_t n = gen->dense ? t->first : gen->n_touched;
    for (size_t i = 0; i < n; i++) {
        size_t column = gen->dense ? i : gen->touched[i];
        if (column < t->first && t->as_much[column] > 0)
            gen->x[column] /= t->as_much[column];
    }
}

/* Takes the classes' own parts off a column. */
static void take_parts(struct nrg_rowgen *gen, const struct nrg_together *t, size_t k)
{
    double sum = gen->x[t->first + k];
    size_t n = gen->dense ? t->first : gen->n_touched;
    for (size_t i = 0; i < n; i++) {
        size_t column = gen->dense ? i : gen->touched[i];
        if (column < t->first)
            sum -= gen->x[column] * t->mean[column * NRG_TOGETHER + k];
    }
    nrg_rowgen_set(gen, (uint32_t)(t->first + k), sum);
}

void nrg_rowgen_set_together(struct nrg_rowgen *gen, const struct nrg_together *t)
{
    even_out(gen, t);
    for (size_t k = 0; k < NRG_TOGETHER; k++)
        if (t->picked & 1u << k)
            take_parts(gen, t, k);
}

/* A solution with some of the columns, as a row of the trials. */
struct trial {
    double rest, *beta;
    uint32_t picked;
};

static double count(uint32_t picked)
{
    double n = 0;
    for (; picked; picked &= picked - 1)
        n++;
    return n;
}

/* Leaves out the columns that are not picked. */
static int try_columns(const struct nrg_regress *r, const struct nrg_gram *all,
                       struct nrg_gram *sum, struct trial *trial)
{
    const struct nrg_together *t = &r->together;
    nrg_gram_clear(sum);
    nrg_gram_join(sum, all);
    for (size_t k = 0; k < NRG_TOGETHER; k++)
        if (!(trial->picked & 1u << k))
            sum->a[nrg_packed(t->first + k, t->first + k)] = 0;
    int rc = nrg_regress_held_powers(r, sum, trial->beta, &trial->rest);
    trial->rest = fmax(trial->rest, ROUNDING * all->yy);
    return rc;
}

/* Schwarz's criterion: twice the log of the likelihood, less what columns cost. */
static double merit(const struct trial *trial, double rows)
{
    return -rows * log(trial->rest) - log(rows) * count(trial->picked);
}

/* What a class has of the columns of a trial, W. */
static double part_w(const struct nrg_together *t, const struct trial *trial, size_t column)
{
    double sum_w = 0;
    for (size_t k = 0; k < NRG_TOGETHER; k++)
        sum_w += trial->picked & 1u << k
                     ? trial->beta[t->first + k] * t->mean[column * NRG_TOGETHER + k]
                     : 0;
    return sum_w;
}

/* Watts of each class where its CPU alone is busy, by a trial, over their mean; returns that. */
static double set_weights(struct nrg_regress *r, const struct trial *trial)
{
    struct nrg_together *t = &r->together;
    double energy_j = 0, time_s = 0;
    for (size_t i = NRG_COLUMN_CLASSES; i < t->first; i++) {
        t->weight[i] = fmax(trial->beta[i] - part_w(t, trial, i), 0);
        energy_j += t->weight[i] * t->time_s[i];
        time_s += t->time_s[i];
    }
    for (size_t i = NRG_COLUMN_CLASSES; i < t->first; i++)
        t->weight[i] = energy_j > 0 ? t->weight[i] * time_s / energy_j : 1;
    return time_s > 0 ? energy_j / time_s : 0;
}

static int sum_rows(struct nrg_regress *r, struct nrg_gram *sum)
{
    struct nrg_pass pass = {.kernel = r->kernel,
                            .n_columns = r->n_columns,
                            .max_rows = SIZE_MAX,
                            .phi = r->noise.phi,
                            .theta = r->noise.theta,
                            .cut = r->noise.cut,
                            .weigh = true};
    return nrg_regress_sum_rows(r, &pass, sum);
}

/*
 * Where one kind explains nearly as much as the other, who had its watts may be either. Rows leave
 * more than their own noise (the recorder is busy itself when it reads, say), and that is alike in
 * many of them: so all rows of a block count as one here.
 */
static void set_doubt(struct nrg_regress *r, const struct trial *taken, const struct trial *other)
{
    struct nrg_together *t = &r->together;
    double odds = pow(fmin(taken->rest / other->rest, 1), NRG_REGRESS_BLOCKS / 2.0);
    double p = 1 / (1 + odds);
    t->other = 1 - p;
    t->untold = fmin(2 * sqrt(p * (1 - p)), p);
    for (size_t i = NRG_COLUMN_CLASSES; i < t->first; i++)
        t->doubt_w[i] = part_w(t, taken, i) - part_w(t, other, i);
}

/* Trials: none, per CPU, per watt, both. */
enum { NONE, PER_CPU, PER_WATT, BOTH, KINDS };

static bool explains_more(const struct trial *trial, const struct trial *none, double rows)
{
    return merit(trial, rows) > merit(none, rows);
}

/* Where CPUs draw as much whoever else runs, it is so by either kind: only one is tried. */
static int try_kinds(struct nrg_regress *r, struct nrg_gram *all, struct nrg_gram *sum,
                     struct trial *trials)
{
    uint32_t cpu = trials[PER_CPU].picked;
    int rc = sum_rows(r, all);
    if (!rc)
        rc = nrg_gram_grow(sum, all->n);
    for (size_t i = NONE; !rc && i <= PER_CPU; i++)
        rc = try_columns(r, all, sum, &trials[i]);
    if (rc || !explains_more(&trials[PER_CPU], &trials[NONE], (double)all->rows))
        return rc;
    set_weights(r, &trials[PER_CPU]);
    rc = sweep_again(r, cpu | cpu << NRG_TOGETHER_KNOTS);
    if (!rc)
        rc = sum_rows(r, all);
    for (size_t i = NONE; !rc && i < KINDS; i++)
        rc = try_columns(r, all, sum, &trials[i]);
    return rc;
}

/* A package draws once, and less per CPU, as more run. What would need one of these to be the
 * contrary, and the other one to make up for it, is something else. */
static bool agree(const struct nrg_together *t, const struct trial *both)
{
    return both->beta[t->first] * both->beta[t->first + NRG_TOGETHER_KNOTS] > 0;
}

/* No more of what classes draw can be a bend's than that is. Where as many CPUs are busy nearly
 * always, a few rows that differ in something else would make it anything. */
static bool is_possible(const struct nrg_together *t, const struct trial *trial)
{
    double parts_j = 0, energy_j = 0;
    for (size_t i = NRG_COLUMN_CLASSES; i < t->first; i++) {
        parts_j += fabs(part_w(t, trial, i)) * t->time_s[i];
        energy_j += fmax(trial->beta[i], 0) * t->time_s[i];
    }
    return parts_j <= energy_j;
}

/* What rows leave is never noise alone, and a bend may explain a little of anything: then classes
 * stay as they add up, and intervals reach what they would be with it. */
static void set_untold(struct nrg_together *t, const struct trial *best, const struct trial *none)
{
    t->untold = 1;
    for (size_t i = NRG_COLUMN_CLASSES; i < t->first; i++)
        t->doubt_w[i] = best->beta[i] - none->beta[i];
}

static int take_best(struct nrg_regress *r, const struct trial *trials, double rows)
{
    struct nrg_together *t = &r->together;
    size_t best = NONE;
    for (size_t i = 1; i < KINDS; i++)
        if (trials[i].rest > 0 && explains_more(&trials[i], &trials[best], rows) &&
            is_possible(t, &trials[i]) && (i != BOTH || agree(t, &trials[i])))
            best = i;
    if (trials[best].rest > MOST_LEFT * trials[NONE].rest) {
        set_untold(t, &trials[best], &trials[NONE]);
        r->options.together = NULL;
        return 0;
    }
    if (best != BOTH && is_possible(t, &trials[PER_CPU + PER_WATT - best]))
        set_doubt(r, &trials[best], &trials[PER_CPU + PER_WATT - best]);
    double mean_w = set_weights(r, &trials[best]);
    for (size_t k = 0; mean_w > 0 && k < NRG_TOGETHER_KNOTS; k++)
        if (trials[best].picked & 1u << (NRG_TOGETHER_KNOTS + k))
            t->bend[k] = trials[best].beta[t->first + NRG_TOGETHER_KNOTS + k] / mean_w;
    return sweep_again(r, trials[best].picked);
}

int nrg_regress_choose_together(struct nrg_regress *r)
{
    struct nrg_arena memory = {0};
    struct nrg_gram all = {0}, sum = {0};
    struct trial trials[KINDS] = {{0}};
    uint32_t cpu = r->together.picked;
    for (size_t i = 0; i < KINDS; i++)
        trials[i].beta = nrg_arena_array(&memory, r->n_columns + 1, sizeof(double));
    trials[PER_CPU].picked = cpu;
    trials[PER_WATT].picked = cpu << NRG_TOGETHER_KNOTS;
    trials[BOTH].picked = cpu | cpu << NRG_TOGETHER_KNOTS;
    int rc = memory.failed ? -ENOMEM : try_kinds(r, &all, &sum, trials);
    if (!rc)
        rc = take_best(r, trials, (double)all.rows);
    if (!rc && r->options.together &&
        r->together.picked != cpu) /* weights are without the others */
        rc = nrg_regress_choose_noise(r);
    nrg_gram_release(&all);
    nrg_gram_release(&sum);
    nrg_arena_release(&memory);
    return rc;
}
