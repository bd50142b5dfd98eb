/*
 * When threads wait, and in which calls, from their CPU times. A thread's CPU time is known from
 * cell to cell; which of its calls used it is not. But calls come in other mixtures in other cells,
 * and the borders of cells cut calls at all places, so all cells together tell for each class what
 * a call uses, how much more a longer one does, and when in their calls threads wait:
 *
 *     CPU time of a cell = sum over classes (calls * mean length * busy
 *                                            + how much longer its calls were * longer
 *                                            + how much longer or shorter * bend)
 *                          + what calls that are cut have more of than their part (five places)
 *
 * The bend is there because a short call can't have waited, and a very long one has worked no
 * longer than others: with one line, long waits would be taken for work, and idle power for less.
 *
 * Classes are alike as far as the cells say: busy and longer of each are drawn to what is common to
 * all (fit.c), and how firmly is found together with them; those that are far from it, less.
 * What remains of a
 * cell's CPU time goes to its calls in proportion to how uncertain they are, those most that a
 * border cuts. Slices get their rates by that; the sum of a class stays what it was, so that only
 * the distribution over time changes.
 *
 * Energy that goes with the CPU time of a cell is a class's by how much of that it used. So what is
 * not known of `busy` is not known of its energy either: error.c.
 */
#include "attribute/regress/waits/waits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

#define FIT_GROUPS  6000 /* cells of threads that are looked at */
#define LEAST_CELLS 40   /* fewer tell nothing */
#define WAITED      0.02 /* of all spans' time: less is not known to be waiting */
#define WAITED_READ 4e-3 /* the same where threads read their CPU times themselves */
#define WORKING     0.8  /* of a place's time: it mostly works */
#define OVER        1.02 /* CPU seconds per second: more, and other threads work for this one */
#define SHAPES      NRG_WAIT_SHAPES
#define ROUNDS      3
#define FINER       0.3  /* of a cell */
#define SAME_CALL   1e-4 /* of its length */
#define LOOK_BACK   256  /* slices */
#define LEAST_MIXED 0.05 /* of what lengths vary by, that is work's, and that is waits' */
#define LEAST_OFF2  1e-4 /* of a call's CPU time, squared */

/* Whether two slices are parts of one call, which has one length. */
static bool is_same_call(const struct nrg_regress_slice *a, const struct nrg_regress_slice *b)
{
    double per_s = (double)b->calls_per_s;
    return a->column == b->column && a->end_ns == b->begin_ns &&
           fabs((double)a->calls_per_s - per_s) < SAME_CALL * per_s;
}

static double calls_of(const struct nrg_regress_slice *s)
{
    return (double)s->calls_per_s * (double)(s->end_ns - s->begin_ns) / 1e9;
}

/*
 * Which part of its call each slice begins with: readings of CPU times cut calls. As many calls are
 * open at a time as threads have spans, so the part before is not far.
 */
static int find_begins(struct nrg_wait_fit *f, size_t to)
{
    const struct nrg_regress_slice *items = f->r->slices.items;
    f->begin = nrg_arena_array(&f->memory, to + 1, sizeof *f->begin);
    if (f->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < to; i++) {
        if (!items[i].group || calls_of(&items[i]) >= NRG_WHOLE_CALL)
            continue;
        for (size_t k = i, most = i > LOOK_BACK ? i - LOOK_BACK : 0; k-- > most;) {
            if (!is_same_call(&items[k], &items[i]))
                continue;
            f->begin[i] = f->begin[k] + (float)calls_of(&items[k]);
            break;
        }
    }
    return 0;
}

/* Counting sort of slices by group; those of group 0 are left out. */
static int sort_slices(struct nrg_wait_fit *f, size_t from, size_t to)
{
    const struct nrg_regress_slice *items = f->r->slices.items;
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t i = from; i < to; i++) {
        if (!items[i].group)
            continue;
        least = items[i].group < least ? items[i].group : least;
        most = items[i].group > most ? items[i].group : most;
    }
    f->n_groups = most ? most - least + 1 : 0;
    f->first = nrg_arena_array(&f->memory, f->n_groups + 2, sizeof *f->first);
    f->order = nrg_arena_array(&f->memory, to - from + 1, sizeof *f->order);
    if (f->memory.failed)
        return -ENOMEM;
    for (size_t i = from; i < to; i++)
        if (items[i].group)
            f->first[items[i].group - least + 2]++;
    for (size_t g = 2; g <= f->n_groups + 1; g++)
        f->first[g] += f->first[g - 1];
    for (size_t i = from; i < to; i++)
        if (items[i].group)
            f->order[f->first[items[i].group - least + 1]++] = (uint32_t)i;
    return find_begins(f, to);
}

static double busy_of_call(const struct nrg_waits *w, uint32_t place, double call_s)
{
    double mean_s = w->call_s[place], busy_s = w->busy[place] * mean_s;
    busy_s += w->longer[place] * (call_s - mean_s);
    busy_s += w->bend * (fabs(call_s - mean_s) - w->off_s[place]);
    return fmin(fmax(busy_s, NRG_LEAST_BUSY * call_s), call_s);
}

static void place_piece(struct nrg_wait_piece *p, double begin)
{
    bool whole = p->calls <= 0 || p->calls >= NRG_WHOLE_CALL;
    p->from = whole || begin >= 1 ? 0 : begin;
    p->to = whole ? 1 : fmin(p->from + p->calls, 1);
    p->call_s = p->calls > 0 && !whole ? p->length_s / p->calls : p->length_s;
}

/*
 * What is not known of a call's CPU time once its length is. Where how long calls work and how long
 * they wait have nothing to do with each other, `longer` is the part of the lengths' variance that
 * is work's, and this is what the length leaves of that: little where calls never wait, or where
 * only their waits differ.
 */
static double whole_variance(const struct nrg_waits *w, uint32_t place, double busy_s)
{
    double longer = fmin(fmax(w->longer[place], LEAST_MIXED), 1 - LEAST_MIXED);
    return longer * (1 - longer) * w->length2[place] + LEAST_OFF2 * busy_s * busy_s;
}

static void expect_piece(const struct nrg_waits *w, struct nrg_wait_piece *p)
{
    double begin[SHAPES], end[SHAPES], busy_s = busy_of_call(w, p->place, p->call_s);
    bool cut = p->from > 0 || p->to < 1;
    p->lacks_s = p->call_s - busy_s;
    p->whole2 = whole_variance(w, p->place, busy_s) * (p->to - p->from);
    p->cut2 = 0;
    p->busy_s = busy_s * (p->to - p->from);
    if (cut) {
        double lacks = p->lacks_s / p->call_s;
        p->cut2 =
            p->call_s * p->call_s * (nrg_wait_cut2(p->from, lacks) + nrg_wait_cut2(p->to, lacks));
        nrg_wait_work(p->from, lacks, begin);
        nrg_wait_work(p->to, lacks, end);
        for (size_t i = 0; i < SHAPES; i++)
            p->busy_s += w->shape[i] * p->call_s * (end[i] - begin[i]);
    }
    p->busy_s = fmin(fmax(p->busy_s, 0), p->length_s);
}

/* The pieces of a group; returns how many, and the CPU time that they had together. */
int nrg_wait_group(struct nrg_wait_fit *f, size_t g, size_t *n, double *cpu_s)
{
    size_t from = f->first[g], count = f->first[g + 1] - from;
    *n = count;
    *cpu_s = 0;
    if (nrg_reserve(&f->pieces, &f->cap_pieces, count + 1, sizeof *f->pieces))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct nrg_regress_slice *s = &f->r->slices.items[f->order[from + i]];
        struct nrg_wait_piece *p = &f->pieces[i];
        p->length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        p->calls = (double)s->calls_per_s * p->length_s;
        p->place = f->w->place_of[s->column];
        place_piece(p, (double)f->begin[f->order[from + i]]);
        expect_piece(f->w, p);
        *cpu_s += (double)s->rate * p->length_s;
    }
    return 0;
}

static double variance_of(const struct nrg_waits *w, const struct nrg_wait_piece *p)
{
    return w->alpha * p->whole2 + w->gamma * p->cut2;
}

/* By how much calls are longer or shorter than in the mean; calls: how many, per place. */
static void measure_lengths(struct nrg_wait_fit *f, const double *calls)
{
    struct nrg_waits *w = f->w;
    for (size_t i = 0; i < f->first[f->n_groups]; i++) {
        const struct nrg_regress_slice *s = &f->r->slices.items[f->order[i]];
        uint32_t place = w->place_of[s->column];
        if (!(s->calls_per_s > 0))
            continue;
        double part = calls_of(s) / calls[place], off_s = 1 / (double)s->calls_per_s;
        off_s -= w->call_s[place];
        w->off_s[place] += part * fabs(off_s);
        w->length2[place] += part * off_s * off_s;
    }
}

/* Classes with most time first; the rest share the last place. */
static int choose_places(struct nrg_wait_fit *f)
{
    struct nrg_regress *r = f->r;
    struct nrg_waits *w = f->w;
    double *open_s = nrg_arena_array(&f->memory, r->n_columns, sizeof *open_s);
    double *calls = nrg_arena_array(&f->memory, NRG_WAIT_PLACES, sizeof *calls), least_s = 0;
    double *sorted = nrg_arena_array(&f->memory, r->n_columns, sizeof *sorted);
    w->place_of =
        nrg_arena_array(&r->memory, NRG_REGRESS_COLUMNS(&r->options), sizeof *w->place_of);
    if (f->memory.failed || r->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < f->first[f->n_groups]; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[f->order[i]];
        open_s[s->column] += (double)(s->end_ns - s->begin_ns) / 1e9;
    }
    memcpy(sorted, open_s, r->n_columns * sizeof *sorted);
    nrg_sort(sorted, r->n_columns);
    if (r->n_columns > NRG_WAIT_PLACES)
        least_s = sorted[r->n_columns - NRG_WAIT_PLACES];
    w->n_places = 0;
    for (size_t c = NRG_COLUMN_CLASSES; c < r->n_columns; c++)
        if (open_s[c] > least_s)
            w->place_of[c] = (uint32_t)w->n_places++;
    for (size_t c = NRG_COLUMN_CLASSES; c < r->n_columns; c++)
        if (open_s[c] <= least_s)
            w->place_of[c] = (uint32_t)w->n_places;
    w->n_places += least_s > 0;
    for (size_t i = 0; i < f->first[f->n_groups]; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[f->order[i]];
        double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        w->open_s[w->place_of[s->column]] += length_s;
        calls[w->place_of[s->column]] += (double)s->calls_per_s * length_s;
    }
    for (size_t i = 0; i < w->n_places; i++)
        w->call_s[i] = calls[i] > 0 ? w->open_s[i] / calls[i] : 0;
    measure_lengths(f, calls);
    return 0;
}

/* Groups are far shorter than cells. */
static bool are_finer(const struct nrg_wait_fit *f)
{
    const struct nrg_regress *r = f->r;
    double cells = (double)(r->last_cell - r->first_cell) + 1, sum_s = 0;
    for (size_t g = 0; g < f->n_groups; g++) {
        if (f->first[g + 1] == f->first[g])
            continue;
        const struct nrg_regress_slice *from = &r->slices.items[f->order[f->first[g]]];
        const struct nrg_regress_slice *to = &r->slices.items[f->order[f->first[g + 1] - 1]];
        sum_s += (double)(to->end_ns - from->begin_ns) / 1e9;
    }
    return f->n_groups && sum_s / (double)f->n_groups < FINER * r->energy_s / cells;
}

/* Time that places which mostly work are open, and that they work. */
static int sum_working(struct nrg_wait_fit *f, double *open_s, double *busy_s)
{
    struct nrg_arena memory = {0};
    double *open = nrg_arena_array(&memory, f->r->n_columns, sizeof *open);
    double *busy = nrg_arena_array(&memory, f->r->n_columns, sizeof *busy);
    for (size_t i = 0; !memory.failed && i < f->first[f->n_groups]; i++) {
        const struct nrg_regress_slice *s = &f->r->slices.items[f->order[i]];
        double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        open[s->column] += length_s;
        busy[s->column] += (double)s->rate * length_s;
    }
    *open_s = *busy_s = 0;
    for (size_t i = 0; !memory.failed && i < f->r->n_columns; i++) {
        *open_s += busy[i] > WORKING * open[i] ? open[i] : 0;
        *busy_s += busy[i] > WORKING * open[i] ? busy[i] : 0;
    }
    int rc = memory.failed ? -ENOMEM : 0;
    nrg_arena_release(&memory);
    return rc;
}

/* Whether threads wait in their spans, and nobody else works for them. Where they read their CPU
 * times themselves, less is enough, in spans that mostly work: those that wait are known as that.
 */
static int waits_at_all(struct nrg_wait_fit *f, double *rate, bool *wait)
{
    double open_s = 0, busy_s = 0, working_s, works_s;
    int rc = sum_working(f, &working_s, &works_s);
    *wait = false;
    for (size_t i = 0; i < f->first[f->n_groups]; i++) {
        const struct nrg_regress_slice *s = &f->r->slices.items[f->order[i]];
        double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        if ((double)s->rate > OVER)
            return rc;
        open_s += length_s;
        busy_s += (double)s->rate * length_s;
    }
    *rate = open_s > 0 ? busy_s / open_s : 1;
    bool often = are_finer(f) && works_s < (1 - WAITED_READ) * working_s;
    *wait = *rate > NRG_LEAST_BUSY && (*rate < 1 - WAITED || often);
    return rc;
}

static int make_room(struct nrg_wait_fit *f)
{
    struct nrg_arena *m = &f->memory;
    size_t n = NRG_WAIT_COLUMNS, cells = n * (n + 1) / 2;
    f->x = nrg_arena_array(m, n, sizeof *f->x);
    f->unit = nrg_arena_array(m, n, sizeof *f->unit);
    f->beta = nrg_arena_array(m, n, sizeof *f->beta);
    f->scatter = nrg_arena_array(m, NRG_WAIT_PLACES, sizeof *f->scatter);
    f->factor = nrg_arena_array(m, cells, sizeof *f->factor);
    f->inverse = nrg_arena_array(m, cells, sizeof *f->inverse);
    m = &f->r->memory;
    f->w->busy = nrg_arena_array(m, NRG_WAIT_PLACES, sizeof *f->w->busy);
    f->w->longer = nrg_arena_array(m, NRG_WAIT_PLACES, sizeof *f->w->longer);
    f->w->open_s = nrg_arena_array(m, NRG_WAIT_PLACES, sizeof *f->w->open_s);
    f->w->call_s = nrg_arena_array(m, NRG_WAIT_PLACES, sizeof *f->w->call_s);
    f->w->off_s = nrg_arena_array(m, NRG_WAIT_PLACES, sizeof *f->w->off_s);
    f->w->length2 = nrg_arena_array(m, NRG_WAIT_PLACES, sizeof *f->w->length2);
    f->w->error2 =
        nrg_arena_array(m, NRG_WAIT_PLACES * (NRG_WAIT_PLACES + 1) / 2, sizeof *f->w->error2);
    f->w->scale = nrg_arena_array(m, NRG_REGRESS_COLUMNS(&f->r->options), sizeof *f->w->scale);
    return f->memory.failed || m->failed ? -ENOMEM : 0;
}

/* Gives the CPU time of a group to its pieces. */
static void divide_group(struct nrg_wait_fit *f, size_t n, double cpu_s)
{
    for (int round = 0; round < ROUNDS; round++) {
        double left_s = cpu_s, sum = 0;
        for (size_t i = 0; i < n; i++) {
            left_s -= f->pieces[i].busy_s;
            sum += variance_of(f->w, &f->pieces[i]);
        }
        for (size_t i = 0; sum > 0 && i < n; i++) {
            struct nrg_wait_piece *p = &f->pieces[i];
            p->busy_s += left_s * variance_of(f->w, p) / sum;
            p->busy_s = fmin(fmax(p->busy_s, 0), p->length_s);
        }
    }
}

/* Rates of slices, as they are; `sums`: of each column before and after, or NULL. */
static int divide_groups(struct nrg_wait_fit *f, double *before_s, double *after_s)
{
    int rc = 0;
    for (size_t g = 0; !rc && g < f->n_groups; g++) {
        size_t n;
        double cpu_s;
        rc = nrg_wait_group(f, g, &n, &cpu_s);
        if (rc)
            break;
        divide_group(f, n, cpu_s);
        for (size_t i = 0; i < n; i++) {
            struct nrg_regress_slice *s = &f->r->slices.items[f->order[f->first[g] + i]];
            const struct nrg_wait_piece *p = &f->pieces[i];
            before_s[s->column] += (double)s->rate * p->length_s;
            after_s[s->column] += p->busy_s;
            s->rate = (float)(p->busy_s / p->length_s);
        }
    }
    return rc;
}

static void scale_slices(struct nrg_wait_fit *f)
{
    for (size_t i = 0; i < f->first[f->n_groups]; i++) {
        struct nrg_regress_slice *s = &f->r->slices.items[f->order[i]];
        double scale = f->w->scale[s->column];
        s->rate = scale > 0 ? (float)((double)s->rate / scale) : s->rate;
    }
}

static int settle(struct nrg_wait_fit *f, bool set_scale)
{
    struct nrg_regress *r = f->r;
    double *before_s = nrg_arena_array(&f->memory, r->n_columns, sizeof *before_s);
    double *after_s = nrg_arena_array(&f->memory, r->n_columns, sizeof *after_s);
    int rc = f->memory.failed ? -ENOMEM : divide_groups(f, before_s, after_s);
    for (size_t i = 0; !rc && i < r->n_columns; i++)
        if (set_scale || !(f->w->scale[i] > 0))
            f->w->scale[i] = before_s[i] > 0 && after_s[i] > 0 ? after_s[i] / before_s[i] : 0;
    if (!rc)
        scale_slices(f);
    return rc;
}

static void release_fit(struct nrg_wait_fit *f)
{
    free(f->pieces);
    nrg_gram_release(&f->gram);
    nrg_arena_release(&f->memory);
}

/* Slices of cells that are complete. */
static size_t complete_slices(const struct nrg_regress *r)
{
    bool all = r->ready_ns == INT64_MAX || !r->last_cell;
    return all ? r->slices.n : (size_t)(r->cell_slice - r->slices.dropped);
}

int nrg_regress_learn_waits(struct nrg_regress *r)
{
    struct nrg_waits *w = &r->waits;
    struct nrg_wait_fit f = {.r = r, .w = w, .stride = 1};
    double rate = 1;
    size_t n = complete_slices(r);
    bool wait = false;
    int rc = sort_slices(&f, 0, n);
    if (!rc && f.n_groups >= LEAST_CELLS)
        rc = waits_at_all(&f, &rate, &wait);
    if (!rc && wait) {
        f.stride = f.n_groups / FIT_GROUPS + 1;
        rc = make_room(&f);
        if (!rc)
            rc = choose_places(&f);
        if (!rc)
            rc = nrg_wait_learn(&f, rate);
        if (!rc)
            rc = settle(&f, true);
        w->used = !rc;
        w->finer = are_finer(&f);
        r->options.waits_scale = w->used ? w->scale : NULL;
        r->options.waits_shape = w->shape;
        w->settled = r->slices.dropped + n;
    }
    release_fit(&f);
    return rc;
}

int nrg_regress_settle_waits(struct nrg_regress *r)
{
    struct nrg_waits *w = &r->waits;
    size_t n = complete_slices(r), from = (size_t)(w->settled - r->slices.dropped);
    if (!w->used || n <= from)
        return 0;
    struct nrg_wait_fit f = {.r = r, .w = w, .stride = 1};
    int rc = sort_slices(&f, from, n);
    if (!rc)
        rc = settle(&f, false);
    w->settled = r->slices.dropped + n;
    release_fit(&f);
    return rc;
}
