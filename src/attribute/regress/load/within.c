/*
 * When in their calls classes use energy. A row ends inside of a call, and what that has used by
 * then is its part of the time only if it draws the same all along. Few do: a framework dispatches
 * before the kernel runs, workers of a pool end one after the other, caches fill. What a call uses
 * earlier or later than evenly is then taken for its neighbours' in the row, with the same sign
 * every time. So the classes with most time have columns that say by how much (rows.h). Of a whole
 * call each is 0, and a class's energy stays its power * its time.
 *
 * Two sets of shapes are tried. Where energy comes with calls and not just with their time, it is
 * likely spent when they begin: at once, or within 0.1 ms, and as much in long calls as in short
 * ones. Else it is more at one end than at the other, in proportion to the calls. In both it may
 * change slowly. They stay where they explain more than their number does by chance. How far
 * classes differ in a shape is found from all together, and each is drawn to their mean as far as
 * that says.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>

#define TRIAL    16000 /* rows */
#define WORK     1e8   /* multiplications of a trial, at most */
#define ROWS     6     /* per column, to tell them */
#define GAIN     2.5   /* of the likelihood, per column: twice its logarithm */
#define CHANCE   1.25  /* the same that columns explain of nothing, at most */
#define NEARLY   0.1   /* of what columns explain: sets that differ by less are alike */
#define HALF     0.5   /* how nearly sets are alike, for the simpler one to count */
#define ANYWHERE 0.58  /* deviation of what may be anything from -1 to 1 */
#define ALIKE    0.001 /* the same of classes that are alike */
#define TURNS    16
#define WORKS    0.99 /* of a class's time, where threads wait */
#define SETTLED  0.03 /* of how far classes differ: less is no change */
#define ROUGH    0.1  /* of what shapes of calls change (found on simulated machines) */

/* Up to the part u of a call; `first` is the part that dispatch lasts, 0: it has none. */
static void used_at(double u, double first, double out[NRG_WITHIN_SHAPES])
{
    bool inside = u > 0 && u < 1;
    double edge = first > 0 ? fmin(u / first, 1) - u : -u;
    out[NRG_WITHIN_BEGIN] = inside ? 1 - u : 0;
    out[NRG_WITHIN_EDGE] = inside ? edge : 0;
    out[NRG_WITHIN_SLOPE] = inside ? 4 * u * (1 - u) : 0;
    out[NRG_WITHIN_TURN] = inside ? 10 * u * (1 - u) * (1 - 2 * u) : 0;
}

/* The integral of that from 0 to u. */
static void used_before(double u, double first, double out[NRG_WITHIN_SHAPES])
{
    u = fmin(fmax(u, 0), 1);
    double half = u * u / 2, in_first = u < first ? half / first : u - first / 2;
    out[NRG_WITHIN_BEGIN] = u - half;
    out[NRG_WITHIN_EDGE] = first > 0 ? in_first - half : -half;
    out[NRG_WITHIN_SLOPE] = 4 * (half - u * u * u / 3);
    out[NRG_WITHIN_TURN] = 5 * u * u * (1 - u) * (1 - u);
}

void nrg_within_used(const struct nrg_regress_slice *s, bool calls, int64_t t_ns, int64_t width_ns,
                     double out[NRG_WITHIN_SHAPES])
{
    double length_ns = (double)(s->end_ns - s->begin_ns);
    double first = calls ? fmin(NRG_WITHIN_FIRST_S * 1e9 / length_ns, 1) : 0;
    double u = (double)(t_ns - s->begin_ns) / length_ns, width = (double)width_ns / length_ns;
    double before[NRG_WITHIN_SHAPES];
    if (!width_ns) {
        used_at(u, first, out);
        return;
    }
    used_before(u, first, out);
    used_before(u - width, first, before);
    for (size_t i = 0; i < NRG_WITHIN_SHAPES; i++)
        out[i] = (out[i] - before[i]) / width;
}

bool nrg_regress_is_within(const struct nrg_regress *r, size_t column)
{
    return column >= r->first_within && column < r->end_within;
}

/* Whether the calls of a column work all along: those that wait have power of their own then. */
static bool works_all_along(const struct nrg_regress *r, size_t column)
{
    double scale = r->waits.used ? r->waits.scale[column] : 1;
    return !r->waits.used || r->mean_rate[column] * (scale > 0 ? scale : 1) > WORKS;
}

/* Of the classes that have calls and no such columns yet, the one with most time; 0: none. */
static size_t next_class(const struct nrg_regress *r, const double *open_s)
{
    size_t best = 0;
    for (size_t i = NRG_COLUMN_CLASSES; i < r->first_within; i++) {
        bool gap = r->options.has_gaps && r->class_of[i] == r->options.gap_class;
        bool can =
            !r->is_calls[i] && !gap && r->calls_column_of[r->class_of[i]] && works_all_along(r, i);
        if (can && !r->within_of[i] && open_s[i] > (best ? open_s[best] : 0))
            best = i;
    }
    return best;
}

/* How many classes can have columns: as many as there are rows to tell. */
static size_t count_classes(const struct nrg_regress *r)
{
    size_t told = r->rows_expected / ROWS, others = r->n_columns - NRG_COLUMN_CLASSES;
    size_t most = told > others ? (told - others) / NRG_WITHIN_SHAPES : 0;
    return most < NRG_WITHIN_CLASSES ? most : NRG_WITHIN_CLASSES;
}

static void add_columns(struct nrg_regress *r, size_t of)
{
    for (size_t k = 0; k < NRG_WITHIN_SHAPES; k++) {
        r->class_of[r->n_columns] = r->class_of[of];
        r->is_calls[r->n_columns] = true;
        r->mean_rate[r->n_columns++] = 1;
    }
}

/* Rows end most often in the classes that have most of the time: these have columns of their own.
 * All others share the last ones. */
static void assign_columns(struct nrg_regress *r, const double *open_s)
{
    size_t column, most = count_classes(r), n = 0, last = 0;
    r->first_within = r->n_columns;
    while (most && (column = next_class(r, open_s))) {
        if (n++ < most) {
            last = r->n_columns;
            add_columns(r, column);
        }
        r->within_of[column] = (uint32_t)last;
    }
    r->end_within = r->n_columns;
}

static int make_columns(struct nrg_regress *r)
{
    struct nrg_arena memory = {0};
    double *open_s = nrg_arena_array(&memory, r->n_columns, sizeof *open_s);
    for (size_t i = 0; open_s && i < r->slices.n; i++) {
        const struct nrg_regress_slice *slice = &r->slices.items[i];
        open_s[slice->column] += (double)(slice->end_ns - slice->begin_ns) / 1e9;
    }
    if (open_s)
        assign_columns(r, open_s);
    nrg_arena_release(&memory);
    return open_s ? 0 : -ENOMEM;
}

static void forget_columns(struct nrg_regress *r)
{
    for (size_t i = r->first_within; i < r->end_within; i++)
        r->is_calls[i] = false;
    r->n_columns = r->first_within;
    r->first_within = r->end_within = 0;
    r->options.within_of = NULL;
}

/* The power at the end of the last row. */
struct row_end {
    int64_t t_ns;
    double power_w;
};

struct row_ends {
    const struct nrg_regress *r;
    struct row_end *last;
};

static double power_of(const struct nrg_regress *r, const struct nrg_regress_slice *s)
{
    return s->column < r->n_prior ? r->prior[s->column] * (double)s->rate : 0;
}

static double power_at(const struct nrg_regress *r, const struct nrg_walker *w, int64_t t_ns)
{
    double power_w = 0;
    for (size_t i = 0; i < w->n_open; i++)
        if (w->open[i].begin_ns <= t_ns && w->open[i].end_ns > t_ns)
            power_w += power_of(r, &w->open[i]);
    return power_w;
}

/* What a window is later by, it has of the power at its end, and lacks of that at its begin. */
static void shift_window(struct nrg_rowgen *gen, const struct nrg_regress *r)
{
    const struct nrg_walker *first = gen->short_box ? &gen->head : &gen->tail;
    nrg_rowgen_set(gen, NRG_COLUMN_SHIFT,
                   power_at(r, &gen->head, gen->seen.to_ns - gen->near_ns) -
                       power_at(r, first, gen->seen.to_ns - gen->far_ns));
}

/* A column: all readings are a little late. Of calls that draw the same all along, it is a part of
 * what the others would say. */
static void shift_row(struct nrg_rowgen *gen, const void *of)
{
    const struct row_ends *ends = of;
    struct row_end end = {.t_ns = gen->seen.to_ns}, begin = *ends->last;
    if (gen->kernel.kind == NRG_KERNEL_BOX) {
        shift_window(gen, ends->r);
        return;
    }
    for (size_t i = 0; i < gen->head.n_open; i++)
        end.power_w += power_of(ends->r, &gen->head.open[i]);
    if (begin.t_ns == gen->seen.from_ns)
        nrg_rowgen_set(gen, NRG_COLUMN_SHIFT, end.power_w - begin.power_w);
    *ends->last = end;
}

/* What is left without such columns (0) and with them (1). */
struct trial {
    double rest[2], rows;
};

/*
 * Rows have columns of calls if they had them so far, even where these are left out of the fit:
 * rows that are off what the last fit expects weigh less, and without its columns all would be. A
 * set that is not tried on the rows of the other seemed to leave a tenth of what it does.
 */
static int try_columns(struct nrg_regress *r, struct nrg_kernel kernel, bool calls,
                       struct trial *trial)
{
    const struct nrg_left_out out[] = {{.calls = !calls, .within = true}, {.calls = !calls}};
    struct row_end last = {0};
    const struct row_ends ends = {r, &last};
    double columns = (double)r->n_columns;
    const struct nrg_pass pass = {.kernel = kernel,
                                  .n_columns = r->n_columns,
                                  .max_rows = (size_t)fmin(TRIAL, 2 * WORK / (columns * columns)),
                                  .phi = r->noise.phi,
                                  .theta = r->noise.theta,
                                  .cut = r->noise.cut,
                                  .weigh = true,
                                  .bend = shift_row,
                                  .of = &ends};
    bool was = r->options.calls;
    r->options.calls = calls || was;
    r->options.within_evenly = !calls;
    int rc = nrg_regress_rest_without(r, &pass, out, 2, trial->rest, &trial->rows);
    r->options.within_evenly = false;
    r->options.calls = was;
    return rc;
}

/* Twice the log of a likelihood, as if there were as many rows as in the run. */
static double log_likelihood(const struct nrg_regress *r, const struct trial *trial, bool within)
{
    double columns = (double)(r->n_columns - NRG_COLUMN_CLASSES);
    double spare = fmax(trial->rows - columns, 0),
           all = fmax((double)r->rows_expected, trial->rows);
    return -spare * all / trial->rows * log(fmax(trial->rest[within], 1e-300));
}

/* A counter's readings are energies, a gauge's are powers. */
static double mean_watts(const struct nrg_regress *r)
{
    double over = r->options.timeline->is_gauge ? (double)r->rows_expected : r->energy_s;
    return over > 0 ? r->energy_j / over : 0;
}

/* How much columns explain, each of them; calls: of which set; how nearly the other set explains as
 * much, 0 to 1; and how much of what they change may still be wrong. */
struct gain {
    double per_column, alike, rough;
    bool calls;
};

/*
 * Windows of a gauge meet the same moments of a program's steps again and again. What shapes leave
 * is then the same every time, as what they explain was, and moves powers as that did: by as much
 * less as it is smaller. What rounding leaves does not count.
 */
static double find_rough(const struct nrg_regress *r, const struct trial *trial)
{
    double columns = (double)(r->n_columns - NRG_COLUMN_CLASSES), mean_w = mean_watts(r),
           without = columns - (double)(r->end_within - r->first_within);
    double variance = r->noise.floor2 + r->noise.slope2 * mean_w * mean_w,
           rounding = r->quantum * r->quantum / 12 / variance;
    double before = trial->rest[0] / fmax(trial->rows - without, 1) - rounding,
           after = trial->rest[1] / fmax(trial->rows - columns, 1) - rounding;
    if (!r->options.timeline->is_gauge || !(before > 0))
        return ROUGH;
    return fmax(sqrt(fmin(fmax(after, 0) / before, 1)), ROUGH);
}

static int find_gain(struct nrg_regress *r, struct nrg_kernel kernel, struct gain *gain)
{
    struct trial now, other;
    bool has_calls = r->options.calls;
    double calls = 0, columns = (double)(r->end_within - r->first_within);
    for (size_t i = NRG_COLUMN_CLASSES; i < r->first_within; i++)
        calls += nrg_regress_is_of_calls(r, i);
    r->options.within_of = r->within_of;
    int rc = try_columns(r, kernel, has_calls, &now);
    if (rc)
        return rc;
    double without = log_likelihood(r, &now, false), with = log_likelihood(r, &now, true);
    *gain = (struct gain){.per_column = (with - without) / columns, .calls = has_calls};
    if (gain->per_column < CHANCE)
        return 0;
    rc = try_columns(r, kernel, !has_calls, &other);
    if (rc)
        return rc;
    double cost = (has_calls ? -GAIN : GAIN) * calls;
    double other_with = log_likelihood(r, &other, true) - cost;
    without = fmax(without, log_likelihood(r, &other, false) - cost);
    gain->calls = has_calls != (other_with > with);
    gain->per_column = (fmax(with, other_with) - without) / columns;
    gain->rough = find_rough(r, gain->calls == has_calls ? &now : &other);
    gain->alike = fmax(1 - fabs(with - other_with) / (NEARLY * gain->per_column * columns), 0);
    gain->calls &= gain->alike < HALF; /* both explain as much: time does, then */
    return 0;
}

/* How long a call is, in the mean over time. */
static double call_length_s(const struct nrg_regress *r)
{
    double sum_s = 0, square = 0;
    for (size_t i = 0; i < r->slices.n; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[i];
        double length_s = s->calls_column ? (double)(s->end_ns - s->begin_ns) / 1e9 : 0;
        sum_s += length_s;
        square += length_s * length_s;
    }
    return sum_s > 0 ? square / sum_s : 0;
}

/*
 * A gauge that shows a mean over calls. What it shows of a moment is that of calls at any of their
 * moments, by chance, which is no error that is the same every time. Rows that are explained
 * better than any power is known have nothing to tell.
 */
static bool gauge_can_tell(const struct nrg_regress *r)
{
    double mean_w = mean_watts(r), least_w = NRG_REGRESS_LEAST_ERROR * mean_w;
    bool box = r->kernel.kind == NRG_KERNEL_BOX;
    double row_s = r->rows_expected ? r->energy_s / (double)r->rows_expected : 0,
           seen_s = box ? nrg_kernel_memory_s(&r->kernel) : row_s;
    return r->kernel.kind != NRG_KERNEL_EXP && seen_s > call_length_s(r) &&
           r->noise.floor2 + r->noise.slope2 * mean_w * mean_w > least_w * least_w;
}

static bool can_tell(const struct nrg_regress *r)
{
    bool told =
        r->options.timeline->is_gauge ? gauge_can_tell(r) : r->kernel.kind == NRG_KERNEL_LEVEL;
    return told && r->prior && r->options.within_w > 0;
}

/* The powers by columns that are not taken count as far as these speak for themselves. */
static int doubt_plain(struct nrg_regress *r, const struct gain *gain)
{
    double untold = fmax((gain->per_column - CHANCE) / (GAIN - CHANCE), 0);
    bool was = r->options.calls;
    int rc = 0;
    if (untold > (was ? 0 : r->untold)) {
        r->untold = untold;
        r->options.calls = gain->calls;
        rc = nrg_regress_try_otherwise(r);
        r->options.calls = was;
    }
    forget_columns(r);
    return rc;
}

/* What was learnt without the columns is learnt anew. Powers may be those by the other set as far
 * as it explains as much, and are a little of those without any. */
static int take_columns(struct nrg_regress *r, struct nrg_kernel kernel, const struct gain *gain)
{
    int rc = 0;
    r->kernel = kernel;
    r->untold = gain->alike;
    r->rough = gain->rough;
    if (gain->alike > 0) {
        r->options.calls = !gain->calls;
        rc = nrg_regress_try_otherwise(r);
    }
    r->plain = r->prior;
    r->n_plain = r->n_prior;
    r->options.calls = gain->calls;
    r->prior = NULL;
    return rc ? rc : nrg_regress_choose_noise(r);
}

int nrg_regress_choose_within(struct nrg_regress *r, struct nrg_kernel kernel)
{
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w;
    struct gain gain = {0};
    r->options.within_w = mean_watts(r) - idle_w;
    if (!can_tell(r))
        return 0;
    int rc = make_columns(r);
    if (!rc && r->end_within > r->first_within)
        rc = find_gain(r, kernel, &gain);
    if (!rc && gain.per_column > GAIN)
        return take_columns(r, kernel, &gain);
    return rc ? rc : doubt_plain(r, &gain);
}

static bool has_shape(const struct nrg_solver *s, size_t column, size_t shape)
{
    return nrg_regress_is_within(s->r, column) &&
           (column - s->r->first_within) % NRG_WITHIN_SHAPES == shape &&
           s->sum.a[nrg_packed(column, column)] > 0;
}

/* What is expected of a shape, as a normal distribution. */
struct expected {
    double mean, off;
};

/* From the last solution, what is not known of each class included. */
static struct expected find_expected(const struct nrg_solver *s, size_t shape)
{
    double n = 0, sum = 0, square = 0;
    for (size_t p = s->n_bound; p < s->m; p++) {
        double value = s->free_beta[p] * s->scale[p];
        if (!has_shape(s, s->index[p], shape))
            continue;
        n++;
        sum += value;
        square +=
            value * value + s->left * s->inverse[nrg_packed(p, p)] * s->scale[p] * s->scale[p];
    }
    if (n < 2)
        return (struct expected){0, ANYWHERE};
    double mean = sum / n, off = sqrt(fmax(square / n - mean * mean, 0));
    return (struct expected){mean, fmin(fmax(off, ALIKE), ANYWHERE)};
}

/* Adds what is expected to the sum, in place of what was. */
static void expect(struct nrg_solver *s, size_t shape, struct expected now, struct expected was)
{
    double w = 1 / (now.off * now.off), w0 = isfinite(was.off) ? 1 / (was.off * was.off) : 0;
    for (size_t i = s->r->first_within; i < s->r->end_within && i < s->sum.n; i++) {
        if (!has_shape(s, i, shape))
            continue;
        s->sum.a[nrg_packed(i, i)] += w - w0;
        s->sum.b[i] += w * now.mean - w0 * was.mean;
        s->sum.yy += w * now.mean * now.mean - w0 * was.mean * was.mean;
    }
}

void nrg_solver_expect_within(struct nrg_solver *s)
{
    for (size_t k = 0; k < NRG_WITHIN_SHAPES; k++)
        expect(s, k, (struct expected){0, ANYWHERE}, (struct expected){0, INFINITY});
}

int nrg_solver_join_within(struct nrg_solver *s, bool fit_idle)
{
    struct expected was[NRG_WITHIN_SHAPES];
    int rc = 0;
    for (size_t k = 0; k < NRG_WITHIN_SHAPES; k++)
        was[k] = (struct expected){0, ANYWHERE};
    bool settled = !s->r->first_within;
    for (int turn = 0; !rc && !settled && turn < TURNS; turn++) {
        settled = true;
        for (size_t k = 0; k < NRG_WITHIN_SHAPES; k++) {
            struct expected now = find_expected(s, k);
            settled &= fabs(now.off - was[k].off) < SETTLED * was[k].off;
            expect(s, k, now, was[k]);
            was[k] = now;
        }
        rc = nrg_solver_solve(s, fit_idle);
    }
    return rc;
}
