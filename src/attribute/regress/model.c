/*
 * What is chosen once, from the slices that are held, before rows are summed up: how long rows are,
 * whether calls have columns, what calls lack while they wait, how the sensor sees the past, and
 * the noise. See internal.h for the way through the files.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "energy/quantum.h"

#define PLENTY        8     /* rows per column, for more to be fitted than powers */
#define MORE_COLUMNS  20    /* beside those of classes: a run has no more of them than that */
#define SHAPE_ROWS    2     /* the same for shapes of idle power, which are held */
#define CALLS_TRIAL   16000 /* rows */
#define CALLS_ROWS    2     /* the same for energies of calls, per column of a class */
#define PLACES_ROWS   6     /* the same for places at which classes wait */
#define CALLS_GAIN    2.5   /* of the likelihood, per column of calls: twice its logarithm */
#define CUT_WORK      2e10  /* multiplications: whitened rows are dense */
#define CUT_ROWS      0.5   /* of a cell: longer rows are as certain as its CPU time */
#define MERGED        10
#define MERGED_ROWS   50   /* rows per column that are left */
#define LEAST_ROWS    1024 /* of a run: idle power goes its own way within it (idle/rest.c) */
#define WORTH_MERGING 1.5  /* rows of one */
#define MOSTLY        0.8  /* of the time: others hide all rows alike */

void nrg_regress_count_rows(struct nrg_regress *r)
{
    struct nrg_observer observer;
    struct nrg_observation seen;
    r->rows_expected = 0;
    r->energy_j = r->energy_s = 0;
    nrg_observer_init(&observer, &r->options);
    while (nrg_observe(&observer, &seen)) {
        if (!seen.usable)
            continue;
        r->rows_expected++;
        r->energy_j += seen.y;
        r->energy_s += (double)(seen.to_ns - seen.from_ns) / 1e9;
    }
}

static double row_s(const struct nrg_regress *r)
{
    return r->rows_expected ? r->energy_s / (double)r->rows_expected : 0;
}

/* Rows of a counter that are so long, as far as enough of them are left. */
static void merge_rows(struct nrg_regress *r, double long_s)
{
    double most_s = r->energy_s / (double)(MERGED_ROWS * r->n_columns);
    r->options.merged_ns = (int64_t)(0.95 * fmin(long_s, most_s) * 1e9);
    nrg_regress_count_rows(r);
}

/* Rows as long as MERGED updates of a counter. */
static void choose_rows(struct nrg_regress *r)
{
    double update_s = (double)r->options.channel->update_ns / 1e9;
    if (r->options.timeline->is_gauge || !(update_s > 0) || !(row_s(r) > 0) ||
        row_s(r) >= MERGED * update_s)
        return;
    merge_rows(r, MERGED * update_s);
    if (3 * r->options.timeline->period_ns < r->options.merged_ns) {
        r->options.punctual_ns = nrg_observer_due(r->options.timeline);
        nrg_regress_count_rows(r);
    }
}

/* Of classes and of their calls; most of the other columns are there in few runs only. */
static size_t class_columns(const struct nrg_regress *r)
{
    return r->n_columns - NRG_COLUMN_CLASSES;
}

/* Rows of a counter as long as nothing begins or ends: shorter ones cost time and tell no more, but
 * of when the counter was updated, and of others, which come and go meanwhile. */
static int choose_long_rows(struct nrg_regress *r)
{
    struct nrg_regress_options *o = &r->options;
    double least = fmax(LEAST_ROWS, (double)(MERGED_ROWS * class_columns(r)));
    size_t most = (size_t)fmax((double)r->rows_expected / WORTH_MERGING - least, 0);
    if (o->timeline->is_gauge || !(o->channel->update_ns > 0) || r->waits.used ||
        o->others_column || r->ready_ns != INT64_MAX)
        return 0;
    int rc = nrg_borders_find(&r->borders, &r->slices, r->n_columns, most);
    if (rc || !r->borders.n)
        return rc;
    o->borders = &r->borders;
    o->steady_ns = (int64_t)(r->energy_s / least * 1e9);
    rc = nrg_borders_observe(&r->borders, o);
    if (!rc)
        nrg_regress_count_rows(r);
    return rc;
}

/* What does not ask when the counter was updated, with such rows; then they are as they were. */
static int with_long_rows(struct nrg_regress *r, int (*step)(struct nrg_regress *r))
{
    double energy_j = r->energy_j, energy_s = r->energy_s;
    size_t rows = r->rows_expected;
    int rc = choose_long_rows(r);
    if (!rc)
        rc = step(r);
    r->options.borders = NULL;
    r->rows_expected = rows;
    r->energy_j = energy_j;
    r->energy_s = energy_s;
    return rc;
}

/* The mean work of a call and of a second, from the slices that are held. */
static int set_means(struct nrg_regress *r)
{
    struct nrg_arena memory = {0};
    double *calls = nrg_arena_array(&memory, r->n_columns, sizeof *calls);
    double *open_s = nrg_arena_array(&memory, r->n_columns, sizeof *open_s);
    for (size_t i = 0; !memory.failed && i < r->n_columns; i++)
        r->call_s[i] = r->mean_rate[i] = 0;
    for (size_t i = 0; !memory.failed && i < r->slices.n; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[i];
        double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        r->mean_rate[s->column] += (double)s->rate * length_s;
        open_s[s->column] += length_s;
        if (!s->calls_column)
            continue;
        r->call_s[s->calls_column] += (double)s->rate * length_s;
        calls[s->calls_column] += (double)s->calls_per_s * length_s;
    }
    for (size_t i = 0; !memory.failed && i < r->n_columns; i++) {
        r->call_s[i] = calls[i] > 0 ? r->call_s[i] / calls[i] : 0;
        r->mean_rate[i] = open_s[i] > 0 ? r->mean_rate[i] / open_s[i] : 1;
    }
    int rc = memory.failed ? -ENOMEM : 0;
    nrg_arena_release(&memory);
    return rc;
}

static size_t count_calls_columns(const struct nrg_regress *r)
{
    size_t n = 0;
    for (size_t i = NRG_COLUMN_CLASSES; i < r->n_columns; i++)
        n += nrg_regress_is_of_calls(r, i);
    return n;
}

static bool can_count_calls(const struct nrg_regress *r)
{
    return count_calls_columns(r) && r->rows_expected >= CALLS_ROWS * class_columns(r);
}

/*
 * How much speaks for the other answer, where columns of calls gain so much of the likelihood: at
 * CALLS_GAIN it is as good. Where threads wait, others run, or a gauge's readings depend on those
 * before, rows leave more than noise, and likelihoods say little: by chance the gain is 1.
 */
static double untold_calls(const struct nrg_regress *r, double gain, double columns)
{
    double odds = exp((gain - CALLS_GAIN) * columns / 2), likely = odds / (1 + odds);
    if (r->waits.used || r->options.others_column || r->options.timeline->is_gauge)
        return fmin(fmax(gain - 1, 0), 1);
    return isfinite(odds) ? fmin(2 * sqrt(likely * (1 - likely)), likely) : 0;
}

/* Columns of calls stay where they explain more than so many columns do by chance. */
static int choose_calls(struct nrg_regress *r)
{
    size_t columns = count_calls_columns(r);
    double rest[2], rows = 0;
    if (!can_count_calls(r))
        return 0;
    r->options.calls = true;
    int rc = nrg_regress_rest_calls(r, CALLS_TRIAL, rest, &rows);
    if (rc)
        return rc;
    /* Columns take up rows: what is left of few rows shrinks by more than each column's part. */
    double spare = fmax(rows - (double)class_columns(r), 0);
    double gain = rest[0] > 0 ? spare * log(rest[0] / fmax(rest[1], 1e-300)) / (double)columns : 0;
    /* Of calls that wait, CPU times say it where threads read them. */
    r->options.calls = gain > CALLS_GAIN && !(r->waits.used && r->waits.finer);
    r->untold = untold_calls(r, gain, (double)columns);
    return 0;
}

/* What calls lack while they wait, of those that do: of their power, or before that is known of
 * the mean. */
static bool set_waits(struct nrg_regress *r)
{
    double mean_w = r->energy_s > 0 ? r->energy_j / r->energy_s : 0;
    bool any = false;
    for (size_t i = NRG_COLUMN_CLASSES; i < r->n_columns; i++) {
        double w = r->prior && i < r->n_prior ? fmax(r->prior[i], 0) : mean_w;
        double scale = r->waits.used ? r->waits.scale[i] : 0, waited = nrg_regress_waited(r, i);
        r->waits_w[i] = r->is_calls[i] || !(waited > 0) ? 0 : w / (scale > 0 ? scale : 1);
        any |= r->waits_w[i] > 0;
    }
    any &= r->plenty && !r->options.timeline->is_gauge;
    r->options.waits_w = any ? r->waits_w : NULL;
    return any;
}

/*
 * Classes that wait do so at places of their own, as far as there are rows to tell. Not where no
 * more than the CPU time of cells says how long calls wait.
 */
static bool choose_places(struct nrg_regress *r)
{
    size_t n = r->n_columns;
    if (r->options.calls ||
        r->rows_expected < PLACES_ROWS * (3 * r->options.n_classes + NRG_COLUMN_CLASSES) ||
        !r->options.waits_w || (r->waits.used && !r->waits.finer))
        return false;
    for (size_t i = NRG_COLUMN_CLASSES; i < n; i++) {
        size_t class_ = r->class_of[i];
        if (!r->is_calls[i] || !(r->waits_w[r->column_of[class_]] > 0))
            continue;
        r->class_of[r->n_columns] = class_;
        r->is_calls[r->n_columns] = true;
        r->mean_rate[r->n_columns] = 1;
        r->middle_of[i] = (uint32_t)r->n_columns++;
    }
    return r->n_columns > n;
}

/* Rows depend on what calls lack: not where threads only wait outside of them. */
static bool calls_wait(const struct nrg_regress *r)
{
    bool any = r->waits.used;
    for (size_t i = NRG_COLUMN_CLASSES; i < r->n_columns; i++)
        any |= r->waits_w[i] > 0 && r->calls_column_of[r->class_of[i]];
    return any;
}

/*
 * How the sensor sees the past. A clockwork that explains nearly all that is left needs no kernel
 * to be sought; readings are of any age up to an update until it is found.
 */
static int choose_sensor(struct nrg_regress *r)
{
    double update_s = (double)r->options.channel->update_ns / 1e9;
    int rc = 0;
    if (nrg_regress_may_have_clockwork(r) && !r->waits.used) {
        r->kernel = (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL, .far_s = update_s};
        rc = with_long_rows(r, choose_calls);
        if (!rc)
            rc = nrg_regress_find_clockwork(r);
        if (rc || r->clock_gain >= NRG_SURE_CLOCK) {
            nrg_copy(r->lag_source, sizeof r->lag_source, "none");
            return rc ? rc : with_long_rows(r, choose_calls);
        }
        nrg_regress_forget_clockwork(r);
        r->options.calls = false;
    }
    if (r->options.updates.sought && !r->options.timeline->is_gauge) { /* no clockwork, then */
        rc = choose_calls(r);
        return rc ? rc : nrg_regress_choose_kernel(r);
    }
    rc = nrg_regress_choose_kernel(r);
    if (!rc)
        rc = nrg_regress_find_clockwork(r);
    if (!rc)
        rc = choose_calls(r);
    if (!rc && r->options.calls &&
        r->clock_gain < NRG_SURE_CLOCK) { /* it is told better with them */
        nrg_regress_forget_clockwork(r);
        rc = nrg_regress_choose_kernel(r);
        if (!rc)
            rc = nrg_regress_find_clockwork(r);
    }
    return rc;
}

/* The powers if calls had columns, which they have not earned; or had none. */
static int doubt_calls(struct nrg_regress *r)
{
    r->options.calls = !r->options.calls;
    int rc = nrg_regress_try_otherwise(r);
    r->options.calls = !r->options.calls;
    return rc;
}

int nrg_regress_choose_model(struct nrg_regress *r)
{
    choose_rows(r);
    size_t columns = class_columns(r) + MORE_COLUMNS;
    r->working_w = nrg_regress_working_w(r);
    r->plenty = r->rows_expected > PLENTY * columns;
    r->drifts = r->plenty || (r->options.idle_shape_w[NRG_IDLE_BEND] > 0 &&
                              r->rows_expected > SHAPE_ROWS * columns);
    r->others_unsure = r->unsure_s > 0 && r->unsure_s < MOSTLY * r->others_s;
    r->quantum = nrg_gauge_quantum(r->options.timeline, r->options.channel->resolution);
    int rc = nrg_slice_index_make(&r->slices);
    if (!rc)
        rc = nrg_regress_learn_waits(r);
    if (!rc)
        rc = set_means(r);
    bool waits = !rc && set_waits(r);
    if (!rc)
        rc = nrg_regress_find_awake(r);
    if (!rc)
        rc = nrg_regress_find_together(r);
    if (!rc)
        rc = nrg_regress_find_pace(r);
    if (!rc)
        rc = nrg_regress_find_updates(r);
    if (!rc)
        rc = with_long_rows(r, nrg_regress_seek_course);
    if (!rc)
        rc = choose_sensor(r);
    if (!rc)
        rc = choose_long_rows(r);
    bool places = !rc && waits && choose_places(r);
    struct nrg_kernel sharp = r->kernel;
    if (!rc)
        rc = nrg_regress_choose_noise(r);
    if (!rc && r->options.together)
        rc = nrg_regress_choose_together(r);
    if (!rc)
        rc = nrg_regress_find_workers(r);
    if (!rc && waits && set_waits(r) && calls_wait(r))
        rc = nrg_regress_choose_noise(r);
    if (!rc)
        rc = nrg_regress_choose_within(r, sharp);
    if (!rc && !r->otherwise && (!r->options.calls || r->waits.used) && r->untold > 0)
        rc = doubt_calls(r);
    if (places && !r->options.calls) { /* only now: fits before have nothing that holds these
                                          columns, or need their own */
        r->options.middle_of = r->middle_of;
        nrg_kept_rows_forget(r->kept);
    }
    return rc;
}

double nrg_regress_row_per_cell(const struct nrg_regress *r)
{
    double cells = (double)(r->last_cell - r->first_cell) + 1;
    return r->rows_expected ? cells / (double)r->rows_expected : 1;
}

bool nrg_regress_cuts_calls(const struct nrg_regress *r)
{
    double rows = (double)r->rows_expected, columns = (double)r->n_columns;
    bool calls = r->waits.used && r->options.waits_w &&
                 (r->waits.finer || nrg_regress_row_per_cell(r) < CUT_ROWS);
    bool others = !r->waits.used && r->options.others_column && r->others_unsure &&
                  nrg_regress_row_per_cell(r) >= CUT_ROWS;
    return (calls || others) && rows * columns * columns < CUT_WORK && !(r->first_phi > 0);
}

double nrg_regress_unsure(const struct nrg_regress *r)
{
    double update_s = (double)r->options.channel->update_ns / 1e9;
    if (!r->others_unsure || r->waits.used || r->options.timeline->is_gauge || !(update_s > 0))
        return 0;
    double off_s = row_s(r) / fmax(nrg_regress_row_per_cell(r), 1);
    return off_s * off_s / (update_s * update_s);
}
