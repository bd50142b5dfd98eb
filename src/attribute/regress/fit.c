/*
 * Regression of readings on the activity of classes: see fit.h, and internal.h for the way through
 * the files.
 *
 * Slices are held, so that the model of the sensor can be found before rows are summed up; beyond
 * MAX_HELD of them the model is taken from what is there and the rest streams through. Rows are
 * summed up in blocks of time: their scatter is what the intervals are made of.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "energy/quantum.h"

#define MAX_HELD     (4u << 20) /* slices: 128 MB */
#define STREAMED     (1u << 18) /* slices between two turns of summing up, later */
#define MAX_COLUMNS  4096       /* a matrix of them is 67 MB */
#define BLOCK_BYTES  (128u << 20)
#define BLOCK_ROWS   4    /* a block has at least so many */
#define LOOK_BACK    16   /* slices: at most so many threads have calls open */
#define LITTLE       1e-3 /* of a CPU, squared: who may be off by less hides nothing */
#define BEND_LEAST_S 1e-6
#define BEND_MOST_S  50e-6

int nrg_regress_new(const struct nrg_regress_options *options, struct nrg_regress **regress)
{
    struct nrg_regress *r = nrg_calloc(1, sizeof *r);
    *regress = r;
    if (!r)
        return -ENOMEM;
    r->options = *options;
    r->course_odds = r->course_seen = -INFINITY;
    r->options.course.begin_ns = options->begin_ns;
    r->options.course.end_ns = options->end_ns;
    r->last_begin_ns = r->ready_ns = r->covered_until_ns = INT64_MIN;
    r->n_columns = NRG_COLUMN_CLASSES;
    r->next_turn = options->held ? options->held : MAX_HELD;
    size_t n_columns = NRG_REGRESS_COLUMNS(options);
    r->column_of = nrg_arena_array(&r->memory, options->n_classes + 1, sizeof *r->column_of);
    r->calls_column_of =
        nrg_arena_array(&r->memory, options->n_classes + 1, sizeof *r->calls_column_of);
    r->options.call_s = r->call_s = nrg_arena_array(&r->memory, n_columns, sizeof *r->call_s);
    r->mean_rate = nrg_arena_array(&r->memory, n_columns, sizeof *r->mean_rate);
    r->waits_w = nrg_arena_array(&r->memory, n_columns, sizeof *r->waits_w);
    r->middle_of = nrg_arena_array(&r->memory, n_columns, sizeof *r->middle_of);
    r->within_of = nrg_arena_array(&r->memory, n_columns, sizeof *r->within_of);
    r->is_calls = nrg_arena_array(&r->memory, n_columns, sizeof *r->is_calls);
    r->class_of = nrg_arena_array(&r->memory, n_columns, sizeof *r->class_of);
    r->pure = nrg_arena_array(&r->memory, n_columns, sizeof *r->pure);
    r->time_s = nrg_arena_array(&r->memory, n_columns, sizeof *r->time_s);
    r->kept = nrg_arena_array(&r->memory, 1, sizeof *r->kept);
    if (r->memory.failed) {
        nrg_regress_free(r);
        *regress = NULL;
        return -ENOMEM;
    }
    int rc = nrg_regress_take_news(r);
    if (rc) {
        nrg_regress_free(r);
        *regress = NULL;
        return rc;
    }
    const struct nrg_timeline *tl = r->options.timeline;
    if (tl->n && nrg_point_ns(tl, tl->n - 1) < r->options.end_ns)
        r->options.end_ns = nrg_point_ns(tl, tl->n - 1);
    nrg_regress_count_rows(r);
    return 0;
}

void nrg_regress_free(struct nrg_regress *r)
{
    if (!r)
        return;
    nrg_slices_release(&r->slices);
    nrg_borders_release(&r->borders);
    nrg_slices_release(&r->together.slices);
    free(r->together.sweep.open);
    nrg_rowgen_release(&r->gen);
    for (size_t i = 0; i < 4; i++)
        nrg_rowgen_release(&r->bend[i / 2].gen[i % 2]);
    nrg_whitener_release(&r->whitener);
    nrg_gram_release(&r->edges);
    for (size_t i = 0; i < NRG_REGRESS_BLOCKS; i++)
        nrg_gram_release(&r->block[i]);
    if (r->kept)
        nrg_kept_rows_forget(r->kept);
    nrg_arena_release(&r->memory);
    free(r);
}

static void choose_blocks(struct nrg_regress *r)
{
    size_t bytes = r->n_columns * (r->n_columns + 1) / 2 * sizeof(double);
    size_t fit = BLOCK_BYTES / bytes, rows = r->rows_expected / BLOCK_ROWS;
    r->n_blocks = fit < NRG_REGRESS_BLOCKS ? fit : NRG_REGRESS_BLOCKS;
    if (r->n_blocks > rows)
        r->n_blocks = rows;
    if (r->n_blocks < 1)
        r->n_blocks = 1;
}

/* which 0: the kernel is later; 1: its memory is longer. */
static void start_bend(struct nrg_regress *r, size_t which, double step_s)
{
    r->bend[which].step_s = step_s;
    for (size_t i = 0; i < 2; i++) {
        double by_s = i ? -step_s : step_s;
        struct nrg_kernel moved = nrg_kernel_moved(r->kernel, which ? 0 : by_s, which ? by_s : 0);
        nrg_rowgen_init(&r->bend[which].gen[i], &r->options, &moved, NULL, r->drifts);
        /* What changes slowly is the same in both, unless an average fills up at another pace. */
        r->bend[which].gen[i].slow_apart = r->kernel.kind != NRG_KERNEL_EXP;
    }
}

/* An average that was found in these rows is known as well as they tell it: that it is a little off
 * must be in the intervals, also where rows are few. */
static bool bends(const struct nrg_regress *r)
{
    bool found = r->kernel.kind == NRG_KERNEL_EXP && !strcmp(r->lag_source, "fitted");
    return r->prior && (r->plenty || found) && r->options.lag == NRG_LAG_AUTO;
}

/* What the user says of the sensor is taken as it is; anything else may be a little off. */
static void start_rows(struct nrg_regress *r)
{
    double period_s = (double)r->options.timeline->period_ns / 1e9;
    double memory_s = nrg_kernel_memory_s(&r->kernel);
    nrg_rowgen_init(&r->gen, &r->options, &r->kernel, NULL, r->drifts);
    if (r->kept->complete)
        nrg_regress_keep_rows(r, &r->gen);
    if (bends(r)) {
        start_bend(r, 0, fmin(fmax(period_s / 50, BEND_LEAST_S), BEND_MOST_S));
        if (memory_s > 0 && strcmp(r->lag_source, "none"))
            start_bend(r, 1, memory_s / 50);
    }
    double margin_s = fabs(r->kernel.near_s) + memory_s / 50 + BEND_MOST_S;
    int64_t margin_ns = nrg_round_within(margin_s * 1e9, 0, NRG_MAX_TIME_NS) + 1;
    int64_t from_ns = r->gen.usable_from_ns + margin_ns;
    bool without_edges = r->options.first_whole_ns != 0;
    if (without_edges && from_ns < r->options.first_whole_ns)
        from_ns = r->options.first_whole_ns;
    for (size_t i = 0; i < 5; i++) {
        struct nrg_rowgen *gen = i < 4 ? &r->bend[i / 2].gen[i % 2] : &r->gen;
        gen->margin_ns = margin_ns;
        gen->usable_from_ns = from_ns;
        gen->usable_to_ns = without_edges ? r->options.last_whole_ns : INT64_MAX;
    }
}

/* Once, when slices are no longer only held. */
static int begin_rows(struct nrg_regress *r)
{
    int rc = nrg_regress_choose_model(r);
    if (!rc)
        start_rows(r);
    r->whitener = (struct nrg_whitener){.phi = r->noise.phi,
                                        .theta = r->noise.theta,
                                        .cut = r->noise.cut,
                                        .border2 = r->noise.border2};
    choose_blocks(r);
    r->chosen = true;
    return rc ? rc : nrg_regress_weigh_sums(r);
}

/* Difference of what two kernels close to the chosen one expect, per second of their distance. */
static int bend_row(struct nrg_regress *r, size_t which)
{
    struct nrg_bend *bend = &r->bend[which];
    double sum = 0;
    for (size_t i = 0; i < 2; i++) {
        struct nrg_rowgen *gen = &bend->gen[i];
        int rc = nrg_rowgen_next(gen, &r->slices, r->ready_ns, r->n_columns);
        if (rc <= 0)
            return rc;
        double start = gen->seen.y - gen->y; /* of an average, that was taken off */
        sum += (i ? -1 : 1) * (nrg_regress_expected(r, gen) + start);
    }
    nrg_rowgen_set(&r->gen, NRG_COLUMN_SHIFT + (uint32_t)which, sum / (2 * bend->step_s));
    return 0;
}

/* Sums that describe the row as it is, before it is whitened. */
static void count_row(struct nrg_regress *r, double expected_y)
{
    const struct nrg_rowgen *gen = &r->gen;
    double unit_s = r->options.timeline->is_gauge ? gen->weight_s : 1;
    for (size_t i = 0; i < gen->n; i++)
        r->time_s[i] += gen->x[i] * unit_s;
    r->sum_y += gen->y * unit_s;
    r->sum_s += gen->x[NRG_COLUMN_IDLE] * unit_s;
    r->sum_y2 += gen->y * gen->y;
    r->sum_e2 += (gen->y - expected_y) * (gen->y - expected_y);
}

/*
 * A gauge always rounds a constant power the same way: that error does not average out. So readings
 * that saw one class alone, or none, are counted: one whose part is that of idle, which is always
 * there. Whitened, that holds for rows whose past was the same. SIZE_MAX: more than one.
 */
static size_t pure_column(const struct nrg_regress *r)
{
    const double *x = r->gen.x;
    size_t only = NRG_COLUMN_IDLE, active = 0;
    for (size_t i = NRG_COLUMN_CLASSES; i < r->gen.n && active < 2; i++) {
        if (fabs(x[i]) < 1e-9 || r->is_calls[i])
            continue;
        active++;
        only = i;
    }
    bool mixed = active > 1 || fabs(x[only] - x[NRG_COLUMN_IDLE]) > 1e-9;
    return mixed ? SIZE_MAX : only;
}

static void count_pure(struct nrg_regress *r, double weight, double e)
{
    const double *x = r->gen.x;
    size_t only = pure_column(r);
    if (only == SIZE_MAX)
        return;
    r->pure[only].own += weight * x[only] * x[only];
    for (size_t i = 0; i < NRG_COLUMN_CLASSES; i++)
        r->pure[only].common[i] += weight * x[only] * x[i];
    r->pure_rows++;
    r->pure_e2 += e * e;
}

/* What of a row drifts with the reading: what has columns of its own that are slow does not. Idle
 * power has, where it was measured; both together then look like a load that does not drift. */
static double drifting_y(const struct nrg_regress *r, double expected_y)
{
    double load_y = nrg_regress_load(r, &r->gen, expected_y);
    bool own = r->options.idle_shape_w[NRG_IDLE_LINE] > 0;
    for (size_t i = NRG_COLUMN_IDLE_OFF; !own && i <= NRG_COLUMN_IDLE; i++)
        load_y += r->prior[i] * r->gen.x[i];
    return load_y;
}

static int add_fit_row(struct nrg_regress *r)
{
    struct nrg_rowgen *gen = &r->gen;
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w,
           expected_y = nrg_regress_expected(r, &r->gen);
    size_t total = r->rows_expected ? r->rows_expected : 1;
    size_t at = r->row * r->n_blocks / total;
    struct nrg_gram *block = &r->block[at < r->n_blocks ? at : r->n_blocks - 1];
    r->row++;
    if (!block->rows)
        r->block_ns[block - r->block] = nrg_rowgen_moment_ns(gen);
    if (r->prior && r->plenty && gen->n <= r->n_prior)
        nrg_rowgen_drift(gen, drifting_y(r, expected_y));
    int rc = nrg_gram_grow(block, gen->n);
    for (size_t i = 0; !rc && i < 2; i++)
        if (r->bend[i].step_s > 0)
            rc = bend_row(r, i);
    count_row(r, expected_y);
    if (!rc)
        nrg_regress_add_to_sums(r, block);
    double variance = nrg_regress_variance(r, expected_y, gen);
    if (!rc)
        rc = nrg_whiten(&r->whitener, gen, &variance);
    if (rc <= 0)
        return rc;
    /* A class that the prior does not know would make the row look off. */
    bool known = r->prior && gen->n <= r->n_prior;
    double fresh = nrg_regress_expected(r, gen), white_e = known ? gen->y - fresh : 0;
    if (r->noise.phi > 0)
        variance = nrg_regress_variance(r, fresh, gen);
    double weight = nrg_noise_weight(variance, white_e);
    if (r->quantum > 0)
        count_pure(r, weight, white_e);
    nrg_gram_add(block, gen->x, gen->dense ? NULL : gen->touched, gen->n_touched,
                 gen->y - idle_w * gen->x[NRG_COLUMN_IDLE], weight);
    return 0;
}

static void drop_first(struct nrg_slices *slices, uint64_t needs)
{
    size_t passed = (size_t)(needs - slices->dropped);
    if (passed)
        memmove(slices->items, slices->items + passed,
                (slices->n - passed) * sizeof *slices->items);
    slices->n -= passed;
    slices->dropped += passed;
}

static void drop_slices(struct nrg_regress *r)
{
    uint64_t needs = nrg_rowgen_needs(&r->gen), together = nrg_rowgen_needs_together(&r->gen);
    for (size_t i = 0; i < 4; i++) {
        const struct nrg_rowgen *gen = &r->bend[i / 2].gen[i % 2];
        if (!(r->bend[i / 2].step_s > 0))
            continue;
        uint64_t own = nrg_rowgen_needs(gen), own_together = nrg_rowgen_needs_together(gen);
        needs = own < needs ? own : needs;
        together = own_together < together ? own_together : together;
    }
    if (r->options.together && r->together.sweep.next < needs)
        needs = r->together.sweep.next;
    drop_first(&r->slices, needs);
    drop_first(&r->together.slices, together);
    r->next_turn = r->slices.n + (r->options.held ? r->options.held / 4 + 1 : STREAMED);
}

static int sum_up(struct nrg_regress *r)
{
    int rc = r->chosen ? nrg_regress_settle_waits(r) : begin_rows(r);
    if (!rc)
        rc = nrg_regress_go_on_together(r);
    while (!rc) {
        rc = nrg_rowgen_next(&r->gen, &r->slices, r->ready_ns, r->n_columns);
        if (rc <= 0)
            break;
        rc = add_fit_row(r);
    }
    drop_slices(r);
    return rc;
}

static int64_t common_grain(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void note_grain(struct nrg_regress *r, int64_t begin_ns, int64_t end_ns)
{
    if (r->grain_ns == 1)
        return;
    r->grain_ns = common_grain(end_ns - begin_ns, r->grain_ns);
    if (r->last_begin_ns != INT64_MIN)
        r->grain_ns = common_grain(begin_ns - r->last_begin_ns, r->grain_ns);
}

/* Time in which any class was active. */
static void note_covered(struct nrg_regress *r, int64_t begin_ns, int64_t end_ns)
{
    int64_t from = begin_ns > r->covered_until_ns ? begin_ns : r->covered_until_ns;
    int64_t to = end_ns < r->options.end_ns ? end_ns : r->options.end_ns;
    from = from > r->options.begin_ns ? from : r->options.begin_ns;
    if (to > from)
        r->covered_s += (double)(to - from) / 1e9;
    if (end_ns > r->covered_until_ns)
        r->covered_until_ns = end_ns;
}

static void note_gap(struct nrg_regress *r, size_t class_, int64_t length_ns)
{
    if (!r->options.has_gaps || class_ != r->options.gap_class)
        return;
    int i = ilogb((double)length_ns);
    r->gaps.n[i]++;
    r->gaps.s[i] += (double)length_ns / 1e9;
}

/* The column of a class, or of its calls; 0 where there are too many: solve says so. */
static uint32_t column_for(struct nrg_regress *r, size_t class_, bool calls)
{
    uint32_t *column = calls ? &r->calls_column_of[class_] : &r->column_of[class_];
    if (!*column && r->n_columns <= MAX_COLUMNS) {
        r->class_of[r->n_columns] = class_;
        r->is_calls[r->n_columns] = calls;
        r->mean_rate[r->n_columns] = 1;
        *column = (uint32_t)r->n_columns++;
    }
    return *column;
}

/* Slices are cut at the borders of cells: the first one of a cell completes those before. */
static void note_cell(struct nrg_regress *r, const struct nrg_class_activity *a)
{
    if (!a->cell || a->cell == r->last_cell)
        return;
    r->first_cell = r->last_cell ? r->first_cell : a->cell;
    r->last_cell = a->cell;
    r->cell_slice = r->slices.dropped + r->slices.n;
    r->cell_begin_ns = a->begin_ns;
}

/*
 * A call that a border of cells cuts, while its thread's CPU time is known from before to after, is
 * one slice: nothing is known of its parts. Not once slices stream: rows may have used the first.
 * Gaps between spans have no group; parts with the same rate have one CPU time.
 */
static bool joins_last(struct nrg_regress *r, const struct nrg_class_activity *a, uint32_t column)
{
    double length_s = (double)(a->end_ns - a->begin_ns) / 1e9;
    bool gap = a->class_ == r->options.gap_class;
    for (size_t i = r->slices.n, most = i > LOOK_BACK ? i - LOOK_BACK : 0;
         (a->group || gap) && a->calls > 0 && !r->chosen && i-- > most;) {
        struct nrg_regress_slice *s = &r->slices.items[i];
        double before_s = (double)(s->end_ns - s->begin_ns) / 1e9, sum_s = before_s + length_s;
        double calls = (double)s->calls_per_s * before_s;
        if (s->group != a->group || s->column != column || s->end_ns != a->begin_ns ||
            calls + a->calls > 2 - NRG_WHOLE_CALL || calls > NRG_WHOLE_CALL ||
            (gap && s->rate != (float)a->rate))
            continue;
        s->end_ns = a->end_ns;
        s->rate = (float)(((double)s->rate * before_s + a->rate * length_s) / sum_s);
        s->calls_per_s = (float)((calls + a->calls) / sum_s);
        return true;
    }
    return false;
}

int nrg_regress_slice(struct nrg_regress *r, const struct nrg_class_activity *a)
{
    int64_t begin_ns = a->begin_ns, end_ns = a->end_ns;
    if (a->class_ >= r->options.n_classes || begin_ns < r->last_begin_ns || !isfinite(a->rate) ||
        !(a->calls >= 0))
        return -EINVAL;
    if (end_ns <= begin_ns || (a->rate == 0 && a->calls == 0))
        return 0;
    double length_s = (double)(end_ns - begin_ns) / 1e9;
    uint32_t column = column_for(r, a->class_, false);
    uint32_t calls_column = a->calls > 0 ? column_for(r, a->class_, true) : 0;
    if (!column)
        return 0;
    note_grain(r, begin_ns, end_ns);
    if (!a->anywhere)
        note_covered(r, begin_ns, end_ns);
    note_gap(r, a->class_, end_ns - begin_ns);
    if (joins_last(r, a, column))
        return 0;
    if (nrg_gram_grow(&r->edges, r->n_columns))
        return -ENOMEM;
    r->edges.a[nrg_packed(column, column)] += 2;
    if (r->last_end_ns == begin_ns)
        r->edges.a[nrg_packed(column, r->last_column)]--;
    r->last_begin_ns = begin_ns;
    r->last_end_ns = end_ns;
    r->last_column = column;
    struct nrg_regress_slice slice = {.begin_ns = begin_ns,
                                      .end_ns = end_ns,
                                      .column = (uint16_t)column,
                                      .calls_column = (uint16_t)calls_column,
                                      .group = a->group,
                                      .rate = (float)a->rate,
                                      .calls_per_s = (float)(a->calls / length_s)};
    if (a->anywhere && a->class_ == r->options.others_class) {
        slice.unsure2 = (float)a->unsure2;
        if (a->rate * a->rate > LITTLE) /* less is rounding of CPU times, and can't be late */
            r->options.others_column = column;
        r->others_s += length_s;
        r->unsure_s += a->unsure2 > LITTLE ? length_s : 0;
    }
    note_cell(r, a);
    if (nrg_append(&r->slices.items, &r->slices.n, &r->slices.cap, &slice, sizeof slice))
        return -ENOMEM;
    if (r->slices.n >= r->next_turn) {
        r->ready_ns = r->last_cell ? r->cell_begin_ns : begin_ns;
        return sum_up(r);
    }
    return 0;
}

/* Means that overlap tell no more than as many that do not: calls of one class that differ are in
 * all of them, and differences of neighbours were seen to promise too much. */
static bool has_too_few_means(const struct nrg_regress *r)
{
    double classes = (double)(r->n_columns - NRG_COLUMN_CLASSES);
    return (double)r->rows_expected < classes * r->published.mean_updates;
}

int nrg_regress_solve(struct nrg_regress *r, struct nrg_regress_result *result)
{
    *result = (struct nrg_regress_result){.idle_w = NAN, .idle_low_w = NAN, .idle_high_w = NAN};
    if (r->n_columns > MAX_COLUMNS || r->n_columns == NRG_COLUMN_CLASSES ||
        r->rows_expected < r->n_columns - NRG_COLUMN_CLASSES)
        return -ENODATA;
    r->ready_ns = INT64_MAX;
    int rc = sum_up(r);
    if (!rc && (r->published.lost || has_too_few_means(r)))
        return -ENODATA;
    return rc ? rc : nrg_regress_make_result(r, result);
}

const struct nrg_timeline *nrg_regress_timeline(const struct nrg_regress *r)
{
    return r->options.timeline;
}

void nrg_regress_result_release(struct nrg_regress_result *result)
{
    free(result->classes);
    free(result->covariance);
    free(result->idle_covariance);
    *result = (struct nrg_regress_result){0};
}
