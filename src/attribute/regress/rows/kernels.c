/*
 * What a reading saw of the slices, by its kernel: a level (what was used between two readings), a
 * mean of the past, or an exponential average. A slice that an end of the stretch cuts has a part
 * of its call in the row, which counts by where in its call the thread waits, and when energy is
 * used.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/regress/rows/prefix.h"
#include "attribute/regress/rows/rows.h"
#include "attribute/regress/rows/slice_index.h"
#include "base/linalg.h"
#include "base/mem.h"

#define FILTERED_ENDS  4    /* of slices that may go on: as many streams are common */
#define LEAST_FILTERED 1e-5 /* of the time constant: differences of shorter ones lose digits */

static const struct nrg_regress_slice *next_slice(const struct nrg_walker *w,
                                                  const struct nrg_slices *slices)
{
    return slices->items + (w->next - slices->dropped);
}

static inline void add_to_column(struct nrg_rowgen *gen, uint32_t column, double amount, double *to)
{
    column = gen->map ? gen->map[column] : column;
    to[column] += amount;
    if (to == gen->x)
        nrg_rowgen_touch(gen, column);
}

/* Most of the time of a search for a kernel or a grid is spent here: it has to be inline. */
static inline void add_activity(struct nrg_rowgen *gen, const struct nrg_regress_slice *slice,
                                double amount, double *to)
{
    add_to_column(gen, slice->column, amount * (double)slice->rate, to);
    if (gen->options->awake && !gen->map && slice->calls_column)
        add_to_column(gen, NRG_COLUMN_AWAKE, amount * nrg_slice_waits(gen->options, slice), to);
    if (!gen->options->calls || !slice->calls_column)
        return;
    add_to_column(gen, slice->calls_column, amount * nrg_slice_longer(gen->options, slice), to);
}

static double overlap_ns(const struct nrg_regress_slice *slice, int64_t from_ns, int64_t to_ns)
{
    int64_t from = slice->begin_ns > from_ns ? slice->begin_ns : from_ns;
    int64_t to = slice->end_ns < to_ns ? slice->end_ns : to_ns;
    return to > from ? (double)(to - from) : 0;
}

/* Integral of the part of an activity `age` ago that a level shows which is 0 to width late. */
static double ramp(double age, double width)
{
    return age <= 0 ? 0 : age < width ? age * age / (2 * width) : age - width / 2;
}

static double level_part(const struct nrg_regress_slice *s, int64_t t_ns, double width_ns)
{
    return ramp((double)(t_ns - s->begin_ns), width_ns) -
           ramp((double)(t_ns - s->end_ns), width_ns);
}

/* Time that a call waits, as far as is known. */
static double lacks_s(const struct nrg_rowgen *gen, const struct nrg_regress_slice *s)
{
    return (double)(s->end_ns - s->begin_ns) / 1e9 * nrg_slice_waits(gen->options, s);
}

/* The class's own column, where it is known when its calls wait. */
static void add_shape(struct nrg_rowgen *gen, const struct nrg_regress_slice *s, const double *more)
{
    const struct nrg_regress_options *o = gen->options;
    double scale = o->waits_scale ? o->waits_scale[s->column] : 0, sum = 0;
    for (size_t i = 0; scale > 0 && i < NRG_WAIT_SHAPES; i++)
        sum += o->waits_shape[i] * more[i] / scale;
    gen->x[gen->map ? gen->map[s->column] : s->column] += sum;
    if (o->calls && s->calls_column)
        gen->x[gen->map ? gen->map[s->calls_column] : s->calls_column] -= sum;
}

/* The class's own places, beside those that are common to all. */
static void add_places(struct nrg_rowgen *gen, const struct nrg_regress_slice *s, double w,
                       const double *more)
{
    double early = more[0], late = more[NRG_WAIT_SHAPES - 1];
    add_to_column(gen, s->calls_column, w * (late - early), gen->x);
    add_to_column(gen, gen->options->middle_of[s->calls_column],
                  w * (more[NRG_WAIT_SHAPES / 2] - (early + late) / 2), gen->x);
}

/*
 * A call that waits draws its power part of the time. As columns, how much more of it a row has if
 * that is at certain times of the call. Of the whole call that is 0.
 */
static void add_waits(struct nrg_rowgen *gen, const struct nrg_regress_slice *s, int64_t from_ns,
                      int64_t to_ns)
{
    const struct nrg_regress_options *o = gen->options;
    bool cut = from_ns > s->begin_ns || to_ns < s->end_ns;
    double w = o->waits_w ? o->waits_w[s->column] : 0;
    double length_ns = (double)(s->end_ns - s->begin_ns), more[NRG_WAIT_SHAPES];
    if ((!(w > 0) && !o->waits_scale) || !cut ||
        (double)s->calls_per_s * length_ns / 1e9 < NRG_WHOLE_CALL)
        return;
    bool common = !o->waits_scale || o->waits_scale[s->column] > 0;
    double begin[NRG_WAIT_SHAPES] = {0}, end[NRG_WAIT_SHAPES] = {0};
    double length_s = length_ns / 1e9, lacks = lacks_s(gen, s) / length_s;
    if (from_ns > s->begin_ns)
        nrg_wait_work(fmin((double)(from_ns - s->begin_ns) / length_ns, 1), lacks, begin);
    if (to_ns < s->end_ns)
        nrg_wait_work(fmax((double)(to_ns - s->begin_ns) / length_ns, 0), lacks, end);
    for (uint32_t i = 0; i < NRG_WAIT_SHAPES; i++) {
        more[i] = length_s * (end[i] - begin[i]);
        if (w > 0 && common)
            nrg_rowgen_set(gen, NRG_COLUMN_WAITS + i, gen->x[NRG_COLUMN_WAITS + i] + w * more[i]);
    }
    if (w > 0 && o->middle_of && o->middle_of[s->calls_column])
        add_places(gen, s, w, more);
    add_shape(gen, s, more);
}

/* The square of the energy that may be on either side of a row's end, of the calls that it cuts. */
static void add_cut(struct nrg_rowgen *gen, const struct nrg_regress_slice *s, int64_t at_ns)
{
    const struct nrg_regress_options *o = gen->options;
    if (!o->waits_scale || !o->waits_w || at_ns <= s->begin_ns || at_ns >= s->end_ns)
        return;
    double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
    double part = (double)(at_ns - s->begin_ns) / 1e9 / length_s;
    double cut_j = o->waits_w[s->column] * length_s;
    gen->cut_end2 += cut_j * cut_j * nrg_wait_cut2(part, lacks_s(gen, s) / length_s);
}

/* What others began or ended in the row, and what is not known of where in a cell they did. */
static void add_late(struct nrg_rowgen *gen, const struct nrg_regress_slice *s, int64_t from_ns,
                     int64_t to_ns)
{
    bool begins = s->begin_ns < from_ns && s->end_ns >= from_ns,
         ends = s->begin_ns < to_ns && s->end_ns >= to_ns;
    if (!gen->options->others_column || s->column != gen->options->others_column)
        return;
    if (begins != ends)
        nrg_rowgen_set(gen, NRG_COLUMN_LATE,
                       gen->x[NRG_COLUMN_LATE] + (ends ? 1 : -1) * (double)s->rate);
    if (ends && !gen->options->waits_scale)
        gen->cut_end2 += (double)s->unsure2;
}

/* As columns, how much more of its energy than its part of the time a call has used up to a moment
 * that lies 0 to width_ns before t_ns, if it uses it early or late, so many times. */
static void add_used(struct nrg_rowgen *gen, const struct nrg_regress_slice *s, int64_t t_ns,
                     int64_t width_ns, double times)
{
    const struct nrg_regress_options *o = gen->options;
    uint32_t column = o->within_of ? o->within_of[s->column] : 0;
    bool calls = o->calls && !o->within_evenly;
    double length_s = (double)(s->end_ns - s->begin_ns) / 1e9, used[NRG_WITHIN_SHAPES];
    if (!column || (double)s->calls_per_s * length_s < NRG_WHOLE_CALL)
        return;
    nrg_within_used(s, calls, t_ns, width_ns, used);
    /* Where energy comes with the call, so does what is at its begin. */
    double edge_s = calls ? NRG_WITHIN_FIRST_S : o->call_s[s->calls_column];
    for (uint32_t i = 0; i < NRG_WITHIN_SHAPES; i++) {
        double of_s = i < NRG_WITHIN_SLOPE ? edge_s : (double)s->rate * length_s;
        add_to_column(gen, column + i, times * o->within_w * of_s * used[i], gen->x);
    }
}

/* The same of what it uses in a row. Of the whole call that is 0. */
static void add_within(struct nrg_rowgen *gen, const struct nrg_regress_slice *s, int64_t from_ns,
                       int64_t to_ns, int64_t width_ns)
{
    add_used(gen, s, to_ns, width_ns, 1);
    add_used(gen, s, from_ns, width_ns, -1);
}

/* The time between two levels, each 0 to width_ns late, to which activity is added, and as what. */
struct stretch {
    int64_t from_ns, to_ns, width_ns;
    double sign, *to;
};

static bool ends_within(const struct stretch *t, const struct nrg_regress_slice *s)
{
    return s->end_ns + t->width_ns <= t->to_ns;
}

/* A slice that an end of the stretch may cut. */
static void add_part(struct nrg_rowgen *gen, const struct stretch *t,
                     const struct nrg_regress_slice *s)
{
    double width = (double)t->width_ns,
           ns = t->width_ns ? level_part(s, t->to_ns, width) - level_part(s, t->from_ns, width)
                            : overlap_ns(s, t->from_ns, t->to_ns);
    if (ns > 0)
        add_activity(gen, s, t->sign * ns / 1e9, t->to);
    if (!gen->cuts || t->to != gen->x)
        return;
    if (ns > 0)
        add_waits(gen, s, t->from_ns - t->width_ns / 2, t->to_ns - t->width_ns / 2);
    add_cut(gen, s, t->to_ns - t->width_ns / 2);
    add_late(gen, s, t->from_ns - t->width_ns / 2, t->to_ns - t->width_ns / 2);
    if (gen->options->within_of)
        add_within(gen, s, t->from_ns, t->to_ns, t->width_ns);
}

/* False: it goes on after the stretch. */
static inline bool add_slice(struct nrg_rowgen *gen, const struct stretch *t,
                             const struct nrg_regress_slice *s)
{
    bool ends = ends_within(t, s);
    if (ends && s->begin_ns >= t->from_ns) /* all of it */
        add_activity(gen, s, t->sign * (double)(s->end_ns - s->begin_ns) / 1e9, t->to);
    else
        add_part(gen, t, s);
    return ends;
}

/* Slices that began before, and those that begin now: only what goes on after it stays open. */
static int add_levels(struct nrg_rowgen *gen, struct nrg_walker *w, const struct nrg_slices *slices,
                      const struct stretch *t)
{
    int rc = 0;
    for (size_t i = 0; i < w->n_open;) {
        if (add_slice(gen, t, &w->open[i]))
            w->open[i] = w->open[--w->n_open];
        else
            i++;
    }
    const struct nrg_regress_slice *s = next_slice(w, slices), *end = slices->items + slices->n;
    for (; !rc && s < end && s->begin_ns < t->to_ns; s++)
        if (!add_slice(gen, t, s))
            rc = nrg_append(&w->open, &w->n_open, &w->cap_open, s, sizeof *w->open);
    w->next = slices->dropped + (uint64_t)(s - slices->items);
    return rc;
}

/* Slices of the columns of CPUs that are busy together; NULL: there are none. */
static const struct nrg_slices *together(const struct nrg_rowgen *gen)
{
    return gen->options->together ? &gen->options->together->slices : NULL;
}

/* The time between two moments, from sums up to each of them; both are left in gen. */
static void seconds_between(struct nrg_rowgen *gen, int64_t from_ns, int64_t to_ns, double factor)
{
    if (gen->summed && gen->summed_ns == from_ns) /* by the row before */
        memcpy(gen->x, gen->state, gen->n * sizeof *gen->x);
    else
        nrg_prefix_up_to(gen->prefix, from_ns, gen->x);
    nrg_prefix_up_to(gen->prefix, to_ns, gen->state);
    gen->summed = true;
    gen->summed_ns = to_ns;
    for (size_t i = 0; i < gen->n; i++) {
        double s = gen->state[i] - gen->x[i];
        gen->x[i] = fabs(s) < 1e-12 ? 0 : s * factor;
        if (gen->x[i] != 0)
            nrg_rowgen_touch(gen, (uint32_t)i);
    }
}

static int level_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int64_t late = gen->near_ns, width = gen->far_ns - late;
    gen->cut_begin2 = gen->started && !gen->seen.restart ? gen->cut_end2 : 0;
    gen->cut_end2 = 0;
    const struct stretch t = {gen->seen.from_ns - late, gen->seen.to_ns - late, width, 1, gen->x};
    if (gen->prefix && !width && !gen->cuts) {
        seconds_between(gen, t.from_ns, t.to_ns, 1);
        return 0;
    }
    int rc = gen->stride ? nrg_walker_skip(&gen->head, slices, t.from_ns - width - 1) : 0;
    if (!rc)
        rc = add_levels(gen, &gen->head, slices, &t);
    return rc || !together(gen) ? rc : add_levels(gen, &gen->together[0], together(gen), &t);
}

/* What of a slice is in a window, as a part of the window. */
static void add_to_window(struct nrg_rowgen *gen, const struct nrg_regress_slice *s,
                          int64_t from_ns, int64_t to_ns)
{
    double ns = overlap_ns(s, from_ns, to_ns), window_ns = (double)(to_ns - from_ns);
    if (!(ns > 0))
        return;
    add_activity(gen, s, ns / window_ns, gen->x);
    if (gen->options->within_of) {
        add_used(gen, s, to_ns, 0, 1e9 / window_ns);
        add_used(gen, s, from_ns, 0, -1e9 / window_ns);
    }
}

/* The same of calls that an end of a longer window cuts: those that go on after it. */
static void add_cut_calls(struct nrg_rowgen *gen, const struct nrg_walker *w, int64_t at_ns,
                          double times)
{
    for (size_t i = 0; gen->options->within_of && i < w->n_open; i++)
        add_used(gen, &w->open[i], at_ns, 0, times);
}

/* A window that is short beside the time between readings: most slices are in none, and a row has
 * few columns. */
static int add_short_box(struct nrg_rowgen *gen, struct nrg_walker *w,
                         const struct nrg_slices *slices)
{
    int64_t from = gen->seen.to_ns - gen->far_ns, to = gen->seen.to_ns - gen->near_ns;
    int rc = nrg_walker_skip(w, slices, from);
    for (size_t i = 0; i < w->n_open;) {
        add_to_window(gen, &w->open[i], from, to);
        if (w->open[i].end_ns <= from)
            w->open[i] = w->open[--w->n_open];
        else
            i++;
    }
    for (; !rc && w->next < slices->dropped + slices->n; w->next++) {
        const struct nrg_regress_slice *s = &slices->items[w->next - slices->dropped];
        if (s->begin_ns >= to)
            break;
        if (s->end_ns <= from)
            continue;
        add_to_window(gen, s, from, to);
        rc = nrg_append(&w->open, &w->n_open, &w->cap_open, s, sizeof *w->open);
    }
    return rc;
}

static int short_box_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int64_t to = gen->seen.to_ns, width = gen->far_ns - gen->near_ns;
    if (gen->prefix) {
        seconds_between(gen, to - gen->far_ns, to - gen->near_ns, 1e9 / (double)width);
        return 0;
    }
    int rc = add_short_box(gen, &gen->head, slices);
    return rc || !together(gen) ? rc : add_short_box(gen, &gen->together[0], together(gen));
}

static int box_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int64_t near = gen->near_ns, far = gen->far_ns;
    if (gen->short_box)
        return short_box_row(gen, slices);
    int64_t from = gen->started ? gen->at_ns : INT64_MIN / 2, to = gen->seen.to_ns;
    const struct stretch enters = {from - near, to - near, 0, 1, gen->state},
                         leaves = {from - far, to - far, 0, -1, gen->state};
    double per_second = 1e9 / (double)(far - near);
    if (gen->prefix) {
        seconds_between(gen, to - far, to - near, per_second);
        gen->dense = true;
        return 0;
    }
    int rc = add_levels(gen, &gen->head, slices, &enters);
    if (!rc)
        rc = add_levels(gen, &gen->tail, slices, &leaves);
    if (!rc && together(gen))
        rc = add_levels(gen, &gen->together[0], together(gen), &enters);
    if (!rc && together(gen))
        rc = add_levels(gen, &gen->together[1], together(gen), &leaves);
    for (size_t i = 0; !rc && i < gen->n; i++)
        gen->x[i] = fabs(gen->state[i]) < 1e-12 ? 0 : gen->state[i] * per_second;
    if (!rc) {
        add_cut_calls(gen, &gen->head, to - near, per_second);
        add_cut_calls(gen, &gen->tail, to - far, -per_second);
    }
    gen->dense = true;
    return rc;
}

/* The time up to a reading, and the filter that it is seen through. */
struct filtered {
    int64_t from_ns, to_ns;
    double tau_ns;
    bool counter;
    bool rough; /* a search can do without the last digits */
    /* Where the last slices ended, and how much of these moments is left: one after the other. */
    int64_t ends_ns[FILTERED_ENDS];
    double left[FILTERED_ENDS];
    size_t oldest;
};

/* How much of a moment is left; -1: it is none of the last ones. */
static double left_of(const struct filtered *f, int64_t t_ns)
{
    for (size_t i = 0; i < FILTERED_ENDS; i++)
        if (f->ends_ns[i] == t_ns)
            return f->left[i];
    return -1;
}

/* The filter's answer to a slice, between the moment of its state and t. Most slices begin where
 * another one ended. */
static double exp_part(struct filtered *f, const struct nrg_regress_slice *s)
{
    int64_t from = s->begin_ns > f->from_ns ? s->begin_ns : f->from_ns;
    int64_t to = s->end_ns < f->to_ns ? s->end_ns : f->to_ns;
    if (to <= from)
        return 0;
    double begin = f->rough ? left_of(f, from) : -1,
           end = exp(-(double)(f->to_ns - to) / f->tau_ns);
    f->ends_ns[f->oldest] = to;
    f->left[f->oldest] = end;
    f->oldest = (f->oldest + 1) % FILTERED_ENDS;
    if (begin >= 0 && (double)(to - from) > LEAST_FILTERED * f->tau_ns)
        return end - begin;
    return end * -expm1(-(double)(to - from) / f->tau_ns);
}

/* False: it goes on after the reading. */
static inline bool add_filtered(struct nrg_rowgen *gen, struct filtered *f,
                                const struct nrg_regress_slice *s)
{
    add_activity(gen, s, exp_part(f, s), gen->state);
    if (f->counter)
        add_activity(gen, s, overlap_ns(s, f->from_ns, f->to_ns) / 1e9, gen->x);
    return s->end_ns <= f->to_ns;
}

static int filter_slices(struct nrg_rowgen *gen, struct nrg_walker *w,
                         const struct nrg_slices *slices, struct filtered *f)
{
    int rc = 0;
    for (size_t i = 0; i < w->n_open;) {
        if (add_filtered(gen, f, &w->open[i]))
            w->open[i] = w->open[--w->n_open];
        else
            i++;
    }
    const struct nrg_regress_slice *s = next_slice(w, slices), *end = slices->items + slices->n;
    for (; !rc && s < end && s->begin_ns < f->to_ns; s++)
        if (!add_filtered(gen, f, s))
            rc = nrg_append(&w->open, &w->n_open, &w->cap_open, s, sizeof *w->open);
    w->next = slices->dropped + (uint64_t)(s - slices->items);
    return rc;
}

/* The ages that a reading may have: what it shows was averaged up to some moment between. */
struct ages {
    int64_t oldest_ns, newest_ns;
    double width_ns, tau_ns;
};

/* How much of a moment between is left, in the mean over all ages. */
static double mean_left(const struct ages *a, int64_t t_ns)
{
    double since_ns = (double)(a->newest_ns - t_ns);
    return (a->width_ns - since_ns - a->tau_ns * expm1(-since_ns / a->tau_ns)) / a->width_ns;
}

static void add_between(struct nrg_rowgen *gen, const struct ages *a,
                        const struct nrg_regress_slice *s)
{
    int64_t from = s->begin_ns > a->oldest_ns ? s->begin_ns : a->oldest_ns;
    int64_t to = s->end_ns < a->newest_ns ? s->end_ns : a->newest_ns;
    if (to > from)
        add_activity(gen, s, mean_left(a, to) - mean_left(a, from), gen->x);
}

static void add_all_between(struct nrg_rowgen *gen, const struct nrg_walker *w,
                            const struct nrg_slices *slices, const struct ages *a)
{
    for (size_t i = 0; i < w->n_open; i++)
        add_between(gen, a, &w->open[i]);
    const struct nrg_regress_slice *s = next_slice(w, slices), *end = slices->items + slices->n;
    for (; s < end && s->begin_ns < a->newest_ns; s++)
        add_between(gen, a, s);
}

/* The state is that of the oldest moment; of later ones it has decayed, and more has come. */
static void spread_ages(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    struct ages a = {gen->seen.to_ns - gen->far_ns, gen->seen.to_ns - gen->near_ns,
                     (double)(gen->far_ns - gen->near_ns), gen->kernel.tau_s * 1e9};
    nrg_scale(gen->x, -expm1(-a.width_ns / a.tau_ns) * a.tau_ns / a.width_ns, gen->n);
    add_all_between(gen, &gen->head, slices, &a);
    if (together(gen))
        add_all_between(gen, &gen->together[0], together(gen), &a);
}

static int exp_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    double tau_s = gen->kernel.tau_s;
    int64_t late = gen->far_ns;
    struct filtered f = {
        .from_ns = (gen->started ? gen->at_ns : gen->seen.from_ns) - late,
        .to_ns = gen->seen.to_ns - late,
        .tau_ns = tau_s * 1e9,
        .counter = !gen->options->timeline->is_gauge,
        .rough = gen->map != NULL,
    };
    double decay = exp(-(double)(f.to_ns - f.from_ns) / f.tau_ns);
    for (size_t i = 0; i < FILTERED_ENDS; i++) {
        f.ends_ns[i] = f.from_ns;
        f.left[i] = decay;
    }
    for (size_t i = 0; f.counter && i < gen->n; i++)
        gen->x[i] = tau_s * gen->state[i];
    nrg_scale(gen->state, decay, gen->n);
    int rc = filter_slices(gen, &gen->head, slices, &f);
    if (!rc && together(gen))
        rc = filter_slices(gen, &gen->together[0], together(gen), &f);
    if (f.counter)
        nrg_add_scaled(gen->x, gen->state, -tau_s, gen->n);
    else
        memcpy(gen->x, gen->state, gen->n * sizeof *gen->x);
    if (!rc && gen->far_ns > gen->near_ns)
        spread_ages(gen, slices);
    gen->dense = true;
    return rc;
}

int nrg_rowgen_see(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    return gen->kernel.kind == NRG_KERNEL_LEVEL ? level_row(gen, slices)
           : gen->kernel.kind == NRG_KERNEL_BOX ? box_row(gen, slices)
                                                : exp_row(gen, slices);
}
