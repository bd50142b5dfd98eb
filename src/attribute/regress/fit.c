/*
 * Regression of readings on the activity of classes: see regress.h, and regress_model.h for the
 * way through the files.
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

#include "energy/quantum.h"
#include "base/mem.h"

#define MAX_HELD     (4u << 20) /* slices: 96 MB */
#define STREAMED     (1u << 18) /* slices between two turns of summing up, later */
#define MAX_COLUMNS  4096       /* a matrix of them is 67 MB */
#define BLOCK_BYTES  (128u << 20)
#define BLOCK_ROWS   4 /* a block has at least so many */
#define PLENTY       8 /* rows per column, for more to be fitted than powers */
#define BEND_LEAST_S 1e-6
#define BEND_MOST_S  50e-6

int nrg_regress_new(const struct nrg_regress_options *options, struct nrg_regress **regress)
{
    struct nrg_regress *r = calloc(1, sizeof *r);
    *regress = r;
    if (!r)
        return -ENOMEM;
    r->options = *options;
    r->last_begin_ns = r->ready_ns = r->covered_until_ns = INT64_MIN;
    r->n_columns = NRG_COLUMN_CLASSES;
    r->next_turn = options->held ? options->held : MAX_HELD;
    r->column_of = calloc(options->n_classes + 1, sizeof *r->column_of);
    r->class_of = calloc(options->n_classes + NRG_COLUMN_CLASSES, sizeof *r->class_of);
    r->pure = calloc(options->n_classes + NRG_COLUMN_CLASSES, sizeof *r->pure);
    r->time_s = calloc(options->n_classes + NRG_COLUMN_CLASSES, sizeof *r->time_s);
    if (!r->column_of || !r->class_of || !r->pure || !r->time_s) {
        nrg_regress_free(r);
        *regress = NULL;
        return -ENOMEM;
    }
    const struct nrg_timeline *tl = options->timeline;
    struct nrg_observer observer;
    struct nrg_observation seen;
    if (tl->n && tl->t_ns[tl->n - 1] < r->options.end_ns)
        r->options.end_ns = tl->t_ns[tl->n - 1];
    nrg_observer_init(&observer, &r->options);
    while (nrg_observe(&observer, &seen)) {
        if (!seen.usable)
            continue;
        r->rows_expected++;
        r->energy_j += seen.y;
        r->energy_s += (double)(seen.to_ns - seen.from_ns) / 1e9;
    }
    return 0;
}

void nrg_regress_free(struct nrg_regress *r)
{
    if (!r)
        return;
    free(r->column_of);
    free(r->class_of);
    free(r->pure);
    free(r->time_s);
    free(r->slices.items);
    free(r->prior);
    nrg_rowgen_release(&r->gen);
    for (size_t i = 0; i < 2; i++) {
        nrg_rowgen_release(&r->bend[i].more);
        nrg_rowgen_release(&r->bend[i].less);
    }
    nrg_whitener_release(&r->whitener);
    nrg_gram_release(&r->edges);
    for (size_t i = 0; i < NRG_REGRESS_BLOCKS; i++)
        nrg_gram_release(&r->block[i]);
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

static int start_bend(struct nrg_regress *r, size_t which, double step_s)
{
    struct nrg_bend *bend = &r->bend[which];
    bool shift = which == 0;
    struct nrg_kernel more = nrg_kernel_moved(r->kernel, shift ? step_s : 0, shift ? 0 : step_s);
    struct nrg_kernel less = nrg_kernel_moved(r->kernel, shift ? -step_s : 0, shift ? 0 : -step_s);
    bend->step_s = step_s;
    int rc = nrg_rowgen_init(&bend->more, &r->options, &more, NULL, r->plenty);
    return rc ? rc : nrg_rowgen_init(&bend->less, &r->options, &less, NULL, r->plenty);
}

/* What the user says of the sensor is taken as it is; anything else may be a little off. */
static int start_rows(struct nrg_regress *r)
{
    double period_s = (double)r->options.timeline->period_ns / 1e9;
    double memory_s = nrg_kernel_memory_s(&r->kernel);
    int rc = nrg_rowgen_init(&r->gen, &r->options, &r->kernel, NULL, r->plenty);
    if (!rc && r->prior && r->plenty && r->options.lag == NRG_LAG_AUTO) {
        rc = start_bend(r, 0, fmin(fmax(period_s / 50, BEND_LEAST_S), BEND_MOST_S));
        if (!rc && memory_s > 0 && strcmp(r->lag_source, "none"))
            rc = start_bend(r, 1, memory_s / 50);
    }
    int64_t margin_ns = (int64_t)((fabs(r->kernel.near_s) + memory_s / 50 + BEND_MOST_S) * 1e9) + 1;
    struct nrg_rowgen *gens[] = {&r->gen, &r->bend[0].more, &r->bend[0].less, &r->bend[1].more,
                                 &r->bend[1].less};
    int64_t from_ns = r->gen.usable_from_ns + margin_ns;
    for (size_t i = 0; i < sizeof gens / sizeof *gens; i++) {
        gens[i]->margin_ns = margin_ns;
        gens[i]->usable_from_ns = from_ns;
    }
    return rc;
}

static int choose_model(struct nrg_regress *r)
{
    r->plenty = r->rows_expected > PLENTY * r->n_columns;
    r->quantum = nrg_gauge_quantum(r->options.timeline, r->options.channel->resolution);
    int rc = nrg_regress_choose_kernel(r);
    if (!rc)
        rc = nrg_regress_choose_noise(r);
    if (!rc)
        rc = start_rows(r);
    r->whitener = (struct nrg_whitener){.phi = r->noise.phi, .theta = r->noise.theta};
    choose_blocks(r);
    r->chosen = true;
    return rc;
}

/* Difference of what two kernels close to the chosen one expect, per second of their distance. */
static int bend_row(struct nrg_regress *r, size_t which)
{
    struct nrg_bend *bend = &r->bend[which];
    struct nrg_rowgen *gens[] = {&bend->more, &bend->less};
    double sum = 0;
    for (size_t i = 0; i < 2; i++) {
        int rc = nrg_rowgen_next(gens[i], &r->slices, r->ready_ns, r->n_columns);
        if (rc <= 0)
            return rc;
        double start = gens[i]->seen.y - gens[i]->y; /* of an average, that was taken off */
        sum += (i ? -1 : 1) * (nrg_regress_expected(r, gens[i]) + start);
    }
    nrg_rowgen_set(&r->gen, NRG_COLUMN_SHIFT + (uint32_t)which, sum / (2 * bend->step_s));
    return 0;
}

/* Sums that describe the row as it is, before it is whitened. */
static void count_row(struct nrg_regress *r, double expected_y)
{
    const struct nrg_rowgen *gen = &r->gen;
    double unit_s = r->options.timeline->gauge ? gen->weight_s : 1;
    for (size_t i = NRG_COLUMN_CLASSES; i < gen->n; i++)
        r->time_s[i] += gen->x[i] * unit_s;
    r->sum_y += gen->y * unit_s;
    r->sum_s += gen->x[NRG_COLUMN_IDLE] * unit_s;
    r->sum_y2 += gen->y * gen->y;
    r->sum_e2 += (gen->y - expected_y) * (gen->y - expected_y);
}

/*
 * A gauge rounds a power that does not change always the same way: that does not average out. So
 * readings that saw one class alone, or none, are counted.
 */
static void count_pure(struct nrg_regress *r, double weight, double e)
{
    const struct nrg_rowgen *gen = &r->gen;
    size_t only = NRG_COLUMN_IDLE, active = 0;
    for (size_t i = NRG_COLUMN_CLASSES; i < gen->n && active < 2; i++) {
        if (gen->x[i] < 1e-9)
            continue;
        active++;
        only = i;
    }
    if (active > 1 || (active == 1 && gen->x[only] < 1 - 1e-9))
        return;
    r->pure[only] += weight;
    r->pure_rows++;
    r->pure_e2 += e * e;
}

static int add_row(struct nrg_regress *r)
{
    struct nrg_rowgen *gen = &r->gen;
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w,
           expected_y = nrg_regress_expected(r, &r->gen);
    size_t total = r->rows_expected ? r->rows_expected : 1;
    size_t at = r->row * r->n_blocks / total;
    struct nrg_gram *block = &r->block[at < r->n_blocks ? at : r->n_blocks - 1];
    r->row++;
    count_row(r, expected_y);
    int rc = nrg_gram_grow(block, gen->n);
    for (size_t i = 0; !rc && i < 2; i++)
        if (r->bend[i].step_s > 0)
            rc = bend_row(r, i);
    if (!rc)
        rc = nrg_whiten(&r->whitener, gen);
    if (rc <= 0)
        return rc;
    /* A class that the prior does not know would make the row look off. */
    bool known = r->prior && gen->n <= r->n_prior;
    double fresh = nrg_regress_expected(r, gen), white_e = known ? gen->y - fresh : 0;
    double weight = nrg_noise_weight(&r->noise, r->noise.phi > 0 ? fresh : expected_y, white_e);
    if (r->quantum > 0)
        count_pure(r, weight, white_e);
    nrg_gram_add(block, gen->x, gen->dense ? NULL : gen->touched, gen->n_touched,
                 gen->y - idle_w * gen->x[NRG_COLUMN_IDLE], weight);
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void drop_slices(struct nrg_regress *r)
{
    uint64_t needs = nrg_rowgen_needs(&r->gen);
    for (size_t i = 0; i < 2; i++) {
        if (!(r->bend[i].step_s > 0))
            continue;
        needs = least(needs, nrg_rowgen_needs(&r->bend[i].more));
        needs = least(needs, nrg_rowgen_needs(&r->bend[i].less));
    }
    size_t passed = (size_t)(needs - r->slices.dropped);
    memmove(r->slices.items, r->slices.items + passed,
            (r->slices.n - passed) * sizeof *r->slices.items);
    r->slices.n -= passed;
    r->slices.dropped += passed;
    r->next_turn = r->slices.n + (r->options.held ? r->options.held / 4 + 1 : STREAMED);
}

static int sum_up(struct nrg_regress *r)
{
    int rc = r->chosen ? 0 : choose_model(r);
    while (!rc) {
        rc = nrg_rowgen_next(&r->gen, &r->slices, r->ready_ns, r->n_columns);
        if (rc <= 0)
            break;
        rc = add_row(r);
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

int nrg_regress_slice(struct nrg_regress *r, int64_t begin_ns, int64_t end_ns, size_t class_,
                      double share)
{
    if (class_ >= r->options.n_classes || begin_ns < r->last_begin_ns || !(share >= 0))
        return -EINVAL;
    if (end_ns <= begin_ns || share == 0)
        return 0;
    if (!r->column_of[class_]) {
        if (r->n_columns > MAX_COLUMNS)
            return 0; /* said by solve */
        r->class_of[r->n_columns] = class_;
        r->column_of[class_] = (uint32_t)r->n_columns++;
    }
    note_grain(r, begin_ns, end_ns);
    note_covered(r, begin_ns, end_ns);
    if (nrg_gram_grow(&r->edges, r->n_columns))
        return -ENOMEM;
    r->edges.a[nrg_packed(r->column_of[class_], r->column_of[class_])] += 2;
    if (r->last_end_ns == begin_ns)
        r->edges.a[nrg_packed(r->column_of[class_], r->last_column)]--;
    r->last_begin_ns = begin_ns;
    r->last_end_ns = end_ns;
    r->last_column = r->column_of[class_];
    if (nrg_reserve(&r->slices.items, &r->slices.cap, r->slices.n + 1, sizeof *r->slices.items))
        return -ENOMEM;
    r->slices.items[r->slices.n++] = (struct nrg_slice){.begin_ns = begin_ns,
                                                        .end_ns = end_ns,
                                                        .column = r->column_of[class_],
                                                        .share = (float)share};
    if (r->slices.n >= r->next_turn) {
        r->ready_ns = begin_ns;
        return sum_up(r);
    }
    return 0;
}

int nrg_regress_solve(struct nrg_regress *r, struct nrg_regress_result *result)
{
    *result = (struct nrg_regress_result){.idle_w = NAN, .idle_low_w = NAN, .idle_high_w = NAN};
    if (r->n_columns > MAX_COLUMNS || r->n_columns == NRG_COLUMN_CLASSES ||
        r->rows_expected < r->n_columns - NRG_COLUMN_CLASSES)
        return -ENODATA;
    r->ready_ns = INT64_MAX;
    int rc = sum_up(r);
    return rc ? rc : nrg_regress_make_result(r, result);
}

void nrg_regress_result_release(struct nrg_regress_result *result)
{
    free(result->classes);
    free(result->covariance);
    free(result->idle_covariance);
    *result = (struct nrg_regress_result){0};
}
