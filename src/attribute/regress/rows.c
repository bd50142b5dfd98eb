/* See rows.h. A row costs the slices that its reading saw, not all classes, where the kernel
 * allows. */
#include "attribute/regress/rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

static int64_t to_ns(double s)
{
    return nrg_round_within(s * 1e9, -NRG_MAX_TIME_NS, NRG_MAX_TIME_NS);
}

double nrg_kernel_lag_s(const struct nrg_kernel *kernel)
{
    return kernel->kind == NRG_KERNEL_EXP ? kernel->near_s + kernel->tau_s
                                          : (kernel->near_s + kernel->far_s) / 2;
}

double nrg_kernel_memory_s(const struct nrg_kernel *kernel)
{
    return kernel->kind == NRG_KERNEL_EXP ? kernel->tau_s : kernel->far_s - kernel->near_s;
}

struct nrg_kernel nrg_kernel_moved(struct nrg_kernel kernel, double shift_s, double more_s)
{
    kernel.near_s += shift_s;
    if (kernel.kind == NRG_KERNEL_EXP)
        kernel.tau_s += more_s;
    else
        kernel.far_s += shift_s + more_s;
    return kernel;
}

void nrg_rowgen_init(struct nrg_rowgen *gen, const struct nrg_regress_options *options,
                     const struct nrg_kernel *kernel, const uint32_t *map, bool drift)
{
    *gen = (struct nrg_rowgen){
        .options = options, .kernel = *kernel, .map = map, .drift = drift, .block = 1};
    gen->margin_ns = kernel->near_s < 0 ? to_ns(-kernel->near_s) : 0;
    gen->usable_from_ns = options->begin_ns;
    gen->usable_to_ns = INT64_MAX;
    if (kernel->kind != NRG_KERNEL_EXP)
        gen->usable_from_ns += to_ns(kernel->far_s);
    gen->short_box = kernel->kind == NRG_KERNEL_BOX &&
                     (kernel->far_s - kernel->near_s) * 1e9 < (double)options->timeline->period_ns;
    nrg_observer_init(&gen->observer, options);
}

bool nrg_rowgen_remembers(const struct nrg_rowgen *gen)
{
    return gen->kernel.kind != NRG_KERNEL_LEVEL && !gen->short_box;
}

void nrg_rowgen_release(struct nrg_rowgen *gen)
{
    free(gen->head.open);
    free(gen->tail.open);
    free(gen->state);
    free(gen->x);
    free(gen->touched);
    free(gen->mark);
    *gen = (struct nrg_rowgen){0};
}

uint64_t nrg_rowgen_needs(const struct nrg_rowgen *gen)
{
    bool two = gen->kernel.kind == NRG_KERNEL_BOX && !gen->short_box;
    return two && gen->tail.next < gen->head.next ? gen->tail.next : gen->head.next;
}

static int grow_columns(struct nrg_rowgen *gen, size_t n)
{
    size_t cap = gen->cap, cap_x = cap, cap_touched = cap, cap_mark = cap;
    if (n <= gen->n)
        return 0;
    if (nrg_reserve(&gen->state, &cap, n, sizeof *gen->state) ||
        nrg_reserve(&gen->x, &cap_x, n, sizeof *gen->x) ||
        nrg_reserve(&gen->touched, &cap_touched, n, sizeof *gen->touched) ||
        nrg_reserve(&gen->mark, &cap_mark, n, sizeof *gen->mark))
        return -ENOMEM;
    gen->cap = cap;
    for (size_t i = gen->n; i < n; i++) {
        gen->state[i] = gen->x[i] = 0;
        gen->mark[i] = 0;
    }
    gen->n = n;
    return 0;
}

int nrg_walker_open(struct nrg_walker *w, const struct nrg_slices *slices, int64_t t_ns)
{
    for (; w->next < slices->dropped + slices->n; w->next++) {
        const struct nrg_regress_slice *slice = &slices->items[w->next - slices->dropped];
        if (slice->begin_ns >= t_ns)
            break;
        if (nrg_append(&w->open, &w->n_open, &w->cap_open, slice, sizeof *w->open))
            return -ENOMEM;
    }
    return 0;
}

static void touch_column(struct nrg_rowgen *gen, uint32_t column)
{
    if (!gen->mark[column]) {
        gen->mark[column] = 1;
        gen->touched[gen->n_touched++] = column;
    }
}

static inline void add_to_column(struct nrg_rowgen *gen, uint32_t column, double amount, double *to)
{
    column = gen->map ? gen->map[column] : column;
    to[column] += amount;
    if (to == gen->x)
        touch_column(gen, column);
}

/* Most of the time of a search for a kernel or a grid is spent here: it has to be inline. */
static inline void add_activity(struct nrg_rowgen *gen, const struct nrg_regress_slice *slice,
                                double amount, double *to)
{
    add_to_column(gen, slice->column, amount * (double)slice->rate, to);
    if (!gen->options->calls || !slice->calls_column)
        return;
    double longer = (double)slice->calls_per_s * gen->options->call_s[slice->calls_column] -
                    (double)slice->rate;
    add_to_column(gen, slice->calls_column, amount * longer, to);
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
    double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
    double scale = gen->options->waits_scale ? gen->options->waits_scale[s->column] : 1;
    return length_s * fmax(1 - (double)s->rate * (scale > 0 ? scale : 1), 0);
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
    if (ns > 0 && t->to == gen->x)
        add_waits(gen, s, t->from_ns - t->width_ns / 2, t->to_ns - t->width_ns / 2);
    if (t->to == gen->x)
        add_cut(gen, s, t->to_ns - t->width_ns / 2);
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
    for (; !rc && w->next < slices->dropped + slices->n; w->next++) {
        const struct nrg_regress_slice *s = &slices->items[w->next - slices->dropped];
        if (s->begin_ns >= t->to_ns)
            break;
        if (!add_slice(gen, t, s))
            rc = nrg_append(&w->open, &w->n_open, &w->cap_open, s, sizeof *w->open);
    }
    return rc;
}

static int level_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int64_t late = to_ns(gen->kernel.near_s), width = to_ns(gen->kernel.far_s) - late;
    gen->cut_begin2 = gen->started && !gen->seen.restart ? gen->cut_end2 : 0;
    gen->cut_end2 = 0;
    const struct stretch t = {gen->seen.from_ns - late, gen->seen.to_ns - late, width, 1, gen->x};
    return add_levels(gen, &gen->head, slices, &t);
}

/* What of a slice is in a window, as a part of the window. */
static void add_to_window(struct nrg_rowgen *gen, const struct nrg_regress_slice *s,
                          int64_t from_ns, int64_t to_ns)
{
    double ns = overlap_ns(s, from_ns, to_ns);
    if (ns > 0)
        add_activity(gen, s, ns / (double)(to_ns - from_ns), gen->x);
}

/* A window that is short beside the time between readings: most slices are in none, and a row has
 * few columns. */
static int short_box_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int64_t from = gen->seen.to_ns - to_ns(gen->kernel.far_s),
            to = gen->seen.to_ns - to_ns(gen->kernel.near_s);
    struct nrg_walker *w = &gen->head;
    int rc = 0;
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

static int box_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int64_t near = to_ns(gen->kernel.near_s), far = to_ns(gen->kernel.far_s);
    if (gen->short_box)
        return short_box_row(gen, slices);
    int64_t from = gen->started ? gen->at_ns : INT64_MIN / 2, to = gen->seen.to_ns;
    const struct stretch enters = {from - near, to - near, 0, 1, gen->state},
                         leaves = {from - far, to - far, 0, -1, gen->state};
    int rc = add_levels(gen, &gen->head, slices, &enters);
    if (!rc)
        rc = add_levels(gen, &gen->tail, slices, &leaves);
    for (size_t i = 0; !rc && i < gen->n; i++)
        gen->x[i] = fabs(gen->state[i]) < 1e-12 ? 0 : gen->state[i] * 1e9 / (double)(far - near);
    gen->dense = true;
    return rc;
}

/* The filter's answer to a slice, between the moment of its state and t. */
static double exp_part(const struct nrg_regress_slice *s, int64_t from_ns, int64_t t_ns,
                       double tau_ns)
{
    int64_t from = s->begin_ns > from_ns ? s->begin_ns : from_ns;
    int64_t to = s->end_ns < t_ns ? s->end_ns : t_ns;
    if (to <= from)
        return 0;
    return exp(-(double)(t_ns - to) / tau_ns) * -expm1(-(double)(to - from) / tau_ns);
}

static int exp_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    double tau_ns = gen->kernel.tau_s * 1e9, tau_s = gen->kernel.tau_s;
    bool counter = !gen->options->timeline->is_gauge;
    int64_t late = to_ns(gen->kernel.near_s), to = gen->seen.to_ns - late;
    int64_t from = (gen->started ? gen->at_ns : gen->seen.from_ns) - late;
    double decay = exp(-(double)(to - from) / tau_ns);
    for (size_t i = 0; counter && i < gen->n; i++)
        gen->x[i] = tau_s * gen->state[i];
    for (size_t i = 0; i < gen->n; i++)
        gen->state[i] *= decay;
    int rc = nrg_walker_open(&gen->head, slices, to);
    for (size_t i = 0; !rc && i < gen->head.n_open;) {
        const struct nrg_regress_slice *s = &gen->head.open[i];
        add_activity(gen, s, exp_part(s, from, to, tau_ns), gen->state);
        if (counter)
            add_activity(gen, s, overlap_ns(s, from, to) / 1e9, gen->x);
        if (s->end_ns <= to)
            gen->head.open[i] = gen->head.open[--gen->head.n_open];
        else
            i++;
    }
    for (size_t i = 0; i < gen->n; i++)
        gen->x[i] = counter ? gen->x[i] - tau_s * gen->state[i] : gen->state[i];
    gen->dense = true;
    return rc;
}

/*
 * A running average starts from what it showed, whatever made it: that part of the reading is
 * taken off, and idle fills up only what is left.
 */
static void start_of_average(struct nrg_rowgen *gen)
{
    double tau_ns = gen->kernel.tau_s * 1e9;
    double old = exp(-(double)(gen->seen.to_ns - gen->first_ns) / tau_ns);
    gen->y -= gen->first_y * old;
    gen->x[NRG_COLUMN_IDLE] = 1 - old;
}

void nrg_rowgen_set(struct nrg_rowgen *gen, uint32_t column, double value)
{
    gen->x[column] = value;
    touch_column(gen, column);
}

static bool finish_row(struct nrg_rowgen *gen)
{
    const struct nrg_observation *seen = &gen->seen;
    bool gauge = gen->options->timeline->is_gauge, average = gen->kernel.kind == NRG_KERNEL_EXP;
    double h_s = (double)(seen->to_ns - seen->from_ns) / 1e9;
    gen->y = seen->y;
    gen->restart = seen->restart;
    gen->weight_s = h_s;
    nrg_rowgen_set(gen, NRG_COLUMN_IDLE, gauge ? 1 : h_s);
    if (gauge && gen->kernel.kind == NRG_KERNEL_LEVEL) {
        if (seen->restart || !(h_s > 0))
            return false;
        for (size_t i = 0; i < gen->n_touched; i++)
            if (gen->touched[i] >= NRG_COLUMN_CLASSES)
                gen->x[gen->touched[i]] /= h_s;
    }
    if (average && !gen->started)
        gen->first_y = gauge ? seen->y : 0;
    if (average && gauge) {
        if (!gen->started)
            return false;
        start_of_average(gen);
    }
    if (!gen->slow_apart)
        nrg_rowgen_set_slow(gen);
    int64_t reach_ns = gen->kernel.kind == NRG_KERNEL_BOX ? seen->to_ns : seen->from_ns;
    return seen->usable && reach_ns >= gen->usable_from_ns && seen->to_ns <= gen->usable_to_ns;
}

static int make_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int rc = gen->kernel.kind == NRG_KERNEL_LEVEL ? level_row(gen, slices)
             : gen->kernel.kind == NRG_KERNEL_BOX ? box_row(gen, slices)
                                                  : exp_row(gen, slices);
    if (rc)
        return rc;
    if (!gen->started)
        gen->first_ns = gen->seen.to_ns;
    bool usable = finish_row(gen);
    gen->started = true;
    gen->at_ns = gen->seen.to_ns;
    return usable;
}

static void clear_row(struct nrg_rowgen *gen)
{
    for (size_t i = 0; i < gen->n_touched; i++) {
        gen->mark[gen->touched[i]] = 0;
        gen->x[gen->touched[i]] = 0;
    }
    if (gen->dense)
        memset(gen->x, 0, gen->n * sizeof *gen->x);
    gen->n_touched = 0;
    gen->dense = false;
}

int nrg_rowgen_next(struct nrg_rowgen *gen, const struct nrg_slices *slices, int64_t ready_ns,
                    size_t n_columns)
{
    int rc = grow_columns(gen, n_columns);
    while (!rc) {
        if (!gen->pending && !nrg_observe(&gen->observer, &gen->seen))
            break;
        gen->pending = true;
        if (gen->seen.to_ns > ready_ns - gen->margin_ns)
            break;
        gen->pending = false;
        if (gen->stride && !nrg_row_is_taken(gen->nth++, gen->stride, gen->block))
            continue;
        clear_row(gen);
        rc = make_row(gen, slices);
    }
    return rc;
}
