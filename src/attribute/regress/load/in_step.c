/*
 * See in_step.h. How long each class was open is wall time: who waits for another process has no
 * CPU time then. A thread that has no span open is in a class of its own, the last column.
 */
#include "attribute/regress/load/in_step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SHORT_CELL 0.5 /* of the mean one: not like the others */

enum { UNTRACKED = NRG_IN_STEP_UNTRACKED, OTHERS = NRG_IN_STEP_OTHERS, KINDS = NRG_IN_STEP_KINDS };

/* Density of a kind's CPU time changes here by so much. */
struct change {
    int64_t t_ns;
    double by[KINDS];
};

struct learner {
    const struct nrg_engine *e;
    const struct nrg_cells *c;
    struct nrg_in_step *found;
    struct nrg_arena memory;
    size_t n; /* columns: the classes of spans, and no span */
    double tracks;
    struct nrg_gram gram[KINDS];
    double *x, *next;
    double most2[KINDS], cells; /* sums, see struct nrg_when_cells */
    uint32_t *touched;          /* columns of a cell */
    uint32_t *last_column;      /* per track */
    int64_t *last_end_ns;
    struct nrg_slice *slices; /* of one cell */
    size_t n_slices, cap;
    struct change *changes;
    size_t n_changes, changes_cap;
    struct nrg_slicer *placed; /* what is written anew */
};

static bool is_span(const struct learner *b, const struct nrg_slice *slice)
{
    return !slice->pool && slice->class_ < b->e->class_of[0] && slice->track < b->c->n_tracks;
}

static int start(struct learner *b, const struct nrg_engine *e, struct nrg_in_step *found)
{
    *b = (struct learner){.e = e, .c = &e->cells, .found = found, .n = (size_t)e->class_of[0] + 1};
    size_t n_tracks = e->cells.n_tracks;
    for (size_t i = 0; i < n_tracks; i++)
        b->tracks += !e->cells.track_pool[i];
    b->x = nrg_arena_array(&b->memory, b->n, sizeof *b->x);
    found->open_s = nrg_arena_array(&found->memory, b->n, sizeof *found->open_s);
    found->work_s = nrg_arena_array(&found->memory, b->n, sizeof *found->work_s);
    b->next = nrg_arena_array(&b->memory, b->n * (b->n + 1) / 2, sizeof *b->next);
    b->touched = nrg_arena_array(&b->memory, b->n, sizeof *b->touched);
    b->last_column = nrg_arena_array(&b->memory, n_tracks + 1, sizeof *b->last_column);
    b->last_end_ns = nrg_arena_array(&b->memory, n_tracks + 1, sizeof *b->last_end_ns);
    int rc = b->memory.failed || found->memory.failed ? -ENOMEM : 0;
    for (size_t i = 0; !rc && i < n_tracks; i++)
        b->last_column[i] = (uint32_t)(b->n - 1);
    for (size_t kind = 0; !rc && kind < KINDS; kind++)
        rc = nrg_gram_grow(&b->gram[kind], b->n);
    return rc;
}

static void release(struct learner *b)
{
    for (size_t kind = 0; kind < KINDS; kind++)
        nrg_gram_release(&b->gram[kind]);
    free(b->slices);
    free(b->changes);
    nrg_arena_release(&b->memory);
}

/* Goes through the cells, with the slices of each in b->slices. */
static int each_cell(struct learner *b, const struct nrg_slice_log *log,
                     int (*take)(struct learner *b, size_t k))
{
    struct nrg_slice_reader reader;
    nrg_slice_reader_init(&reader, log);
    bool more = nrg_slice_read(&reader);
    int rc = 0;
    for (size_t k = 0; !rc && k < b->c->n; k++) {
        b->n_slices = 0;
        while (!rc && more && reader.slice.begin_ns < b->c->begin_ns[k + 1]) {
            rc = nrg_append(&b->slices, &b->n_slices, &b->cap, &reader.slice, sizeof *b->slices);
            more = nrg_slice_read(&reader);
        }
        if (!rc)
            rc = take(b, k);
    }
    return rc;
}

static void note_next(struct learner *b, const struct nrg_slice *slice)
{
    uint32_t outside = (uint32_t)(b->n - 1), *last = &b->last_column[slice->track];
    if (slice->begin_ns > b->last_end_ns[slice->track] && *last != outside) {
        b->next[nrg_packed(*last, outside)]++;
        *last = outside;
    }
    if (*last != slice->class_)
        b->next[nrg_packed(*last, slice->class_)]++;
    *last = slice->class_;
    b->last_end_ns[slice->track] = slice->end_ns;
}

/* Who is busy all through a cell can't run at times in it: the rest of its CPUs can. */
static double scatter2(double cpus)
{
    double rest = cpus - floor(cpus);
    return rest * (1 - rest);
}

/* How long each class is open in cell k; returns their sum. */
static double fill_columns(struct learner *b, size_t k)
{
    double spans_s = 0;
    memset(b->x, 0, b->n * sizeof *b->x);
    for (size_t i = 0; i < b->n_slices; i++) {
        const struct nrg_slice *slice = &b->slices[i];
        if (!is_span(b, slice))
            continue;
        note_next(b, slice);
        double s = (double)(slice->end_ns - slice->begin_ns) * 1e-9;
        b->x[slice->class_] += s;
        b->found->work_s[slice->class_] += b->c->outside[k] ? 0 : s * slice->rate;
        spans_s += s;
    }
    return spans_s;
}

static int add_cell(struct learner *b, size_t k)
{
    const struct nrg_cells *c = b->c;
    double spans_s = fill_columns(b, k), length_s = nrg_cells_length_s(c, k);
    double mean_s = (double)(c->begin_ns[c->n] - c->begin_ns[0]) * 1e-9 / (double)c->n;
    double cpu_s[KINDS] = {(double)c->untracked_s[k], c->other_s ? c->other_s[k] : 0};
    size_t n_touched = 0;
    if (c->outside[k] || length_s < SHORT_CELL * mean_s)
        return 0;
    b->x[b->n - 1] = fmax(b->tracks * length_s - spans_s, 0);
    nrg_add_scaled(b->found->open_s, b->x, 1, b->n);
    for (size_t i = 0; i < b->n; i++)
        if (b->x[i] > 0)
            b->touched[n_touched++] = (uint32_t)i;
    for (size_t kind = 0; kind < KINDS; kind++) {
        nrg_gram_add(&b->gram[kind], b->x, b->touched, n_touched, cpu_s[kind], 1);
        b->most2[kind] += scatter2(cpu_s[kind] / length_s);
    }
    b->cells++;
    return 0;
}

static int learn(struct learner *b, const struct nrg_slice_log *log)
{
    int rc = each_cell(b, log, add_cell);
    for (size_t kind = 0; !rc && kind < KINDS; kind++) {
        struct nrg_when_cells cells = {&b->gram[kind], b->found->open_s, b->next,
                                       b->most2[kind] / b->cells};
        rc = nrg_when_fit(&b->found->when[kind], &cells, &b->found->memory);
    }
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return x->t_ns < y->t_ns ? -1 : x->t_ns > y->t_ns;
}

static int add_change(struct learner *b, int64_t t_ns, const double *by, double sign)
{
    struct change change = {.t_ns = t_ns};
    for (size_t kind = 0; kind < KINDS; kind++)
        change.by[kind] = sign * by[kind];
    return nrg_append(&b->changes, &b->n_changes, &b->changes_cap, &change, sizeof change);
}

/* Where in the cell something else is open, in order of time. */
static int find_changes(struct learner *b)
{
    int rc = 0;
    b->n_changes = 0;
    for (size_t i = 0; !rc && i < b->n_slices; i++) {
        const struct nrg_slice *slice = &b->slices[i];
        double by[KINDS] = {0};
        bool any = false;
        for (size_t kind = 0; is_span(b, slice) && kind < KINDS; kind++) {
            const struct nrg_when *when = &b->found->when[kind];
            by[kind] = when->differs ? when->rate[slice->class_] - when->rate[b->n - 1] : 0;
            any |= by[kind] != 0;
        }
        if (any)
            rc = add_change(b, slice->begin_ns, by, 1);
        if (any && !rc)
            rc = add_change(b, slice->end_ns, by, -1);
    }
    if (b->n_changes)
        qsort(b->changes, b->n_changes, sizeof *b->changes, by_time);
    return rc;
}

/* Stretches of a slice with one density each, from the slice's begin on. */
struct stretches {
    const struct learner *b;
    size_t kind, next;
    double density;
    int64_t begin_ns, end_ns, until_ns;
};

static struct stretches stretches_of(const struct learner *b, size_t kind,
                                     const struct nrg_slice *slice)
{
    return (struct stretches){.b = b,
                              .kind = kind,
                              .density = b->tracks * b->found->when[kind].rate[b->n - 1],
                              .end_ns = slice->begin_ns,
                              .until_ns = slice->end_ns};
}

static bool next_stretch(struct stretches *s, double *density)
{
    const struct learner *b = s->b;
    s->begin_ns = s->end_ns;
    if (s->begin_ns >= s->until_ns)
        return false;
    for (; s->next < b->n_changes && b->changes[s->next].t_ns <= s->begin_ns; s->next++)
        s->density += b->changes[s->next].by[s->kind];
    double after = s->density;
    s->end_ns = s->until_ns;
    for (size_t i = s->next; i < b->n_changes && b->changes[i].t_ns < s->until_ns; i++) {
        after += b->changes[i].by[s->kind];
        bool last = i + 1 == b->n_changes || b->changes[i + 1].t_ns > b->changes[i].t_ns;
        if (last && fabs(after - s->density) > 1e-9) {
            s->end_ns = b->changes[i].t_ns;
            break;
        }
    }
    *density = fmax(s->density, 0);
    return true;
}

/* Mean density of a kind in the cell. */
static double mean_of(const struct learner *b, size_t kind, uint32_t class_)
{
    double sum = 0, length = 0, density;
    for (size_t i = 0; i < b->n_slices; i++) {
        const struct nrg_slice *slice = &b->slices[i];
        if (slice->class_ != class_)
            continue;
        length += (double)(slice->end_ns - slice->begin_ns);
        for (struct stretches s = stretches_of(b, kind, slice); next_stretch(&s, &density);)
            sum += density * (double)(s.end_ns - s.begin_ns);
    }
    return length > 0 ? sum / length : 0;
}

static int place(const struct learner *b, size_t kind, const struct nrg_slice *slice, double mean,
                 struct nrg_slicer *to)
{
    double density;
    int rc = 0;
    for (struct stretches s = stretches_of(b, kind, slice); !rc && next_stretch(&s, &density);) {
        struct nrg_slice piece = *slice;
        piece.begin_ns = s.begin_ns;
        piece.end_ns = s.end_ns;
        piece.rate += density - mean;
        rc = nrg_slicer_add(to, &piece);
    }
    return rc;
}

static int place_cell(struct learner *b, size_t k)
{
    uint32_t classes[KINDS] = {(uint32_t)b->e->untracked_class, (uint32_t)b->e->other_class};
    double mean[KINDS] = {0};
    bool moves[KINDS] = {b->found->when[UNTRACKED].differs,
                         b->found->when[OTHERS].differs && !b->c->full[k]};
    int rc = find_changes(b);
    for (size_t kind = 0; !rc && kind < KINDS; kind++)
        mean[kind] = moves[kind] ? mean_of(b, kind, classes[kind]) : 0;
    for (size_t i = 0; !rc && i < b->n_slices; i++) {
        const struct nrg_slice *slice = &b->slices[i];
        size_t kind = 0;
        while (kind < KINDS && slice->class_ != classes[kind])
            kind++;
        rc = kind < KINDS && moves[kind] ? place(b, kind, slice, mean[kind], b->placed)
                                         : nrg_slicer_add(b->placed, slice);
    }
    return rc ? rc : nrg_slicer_flush(b->placed, b->c->begin_ns[k + 1], true);
}

int nrg_in_step_place(struct nrg_in_step *found, const struct nrg_engine *e,
                      struct nrg_slicer *slicer)
{
    struct learner b;
    struct nrg_slicer placed = {.gap_class = slicer->gap_class, .apart_class = slicer->apart_class};
    *found = (struct nrg_in_step){0};
    if (!e->cells.has_rates || !e->class_of[0])
        return 0;
    int rc = start(&b, e, found);
    if (!rc)
        rc = learn(&b, &slicer->log);
    if (!rc && (found->when[UNTRACKED].differs || found->when[OTHERS].differs)) {
        b.placed = &placed;
        rc = each_cell(&b, &slicer->log, place_cell);
        if (!rc) {
            nrg_slicer_release(slicer);
            *slicer = placed;
            placed = (struct nrg_slicer){0};
        }
        nrg_slicer_release(&placed);
    }
    release(&b);
    return rc;
}

/* CPUs of a kind that may be beside one CPU of class c, times the same of class d. */
static double unsure2(const struct nrg_in_step *b, const struct nrg_when *when, size_t c, size_t d)
{
    if (!(b->work_s[c] > 0) || !(b->work_s[d] > 0) || !(b->open_s[c] > 0) || !(b->open_s[d] > 0))
        return 0;
    return when->covariance[nrg_packed(when->part[c], when->part[d])] * b->open_s[c] /
           b->work_s[c] * b->open_s[d] / b->work_s[d];
}

static void widen_class(const struct nrg_regress_result *r, double before_w2, double now_w2,
                        struct nrg_regress_class *c)
{
    double more_w = r->t * (sqrt(fmax(now_w2, 0)) - sqrt(fmax(before_w2, 0)));
    c->low_w = fmax(c->low_w - more_w, 0);
    c->high_w += more_w;
    c->unresolved = !(c->high_w - c->low_w <= c->power_w);
}

void nrg_in_step_widen(const struct nrg_in_step *b, const struct nrg_engine *e,
                       struct nrg_regress_result *r)
{
    size_t n = e->n_classes, of[KINDS] = {e->untracked_class, e->other_class};
    for (size_t kind = 0; kind < KINDS; kind++) {
        const struct nrg_when *when = &b->when[kind];
        double w = r->classes[of[kind]].power_w;
        if (!when->rate || !(w > 0) || (kind == OTHERS && !when->differs))
            continue;
        for (size_t c = 0; c < e->class_of[0]; c++) {
            double before_w2 = r->covariance[c * n + c];
            for (size_t d = 0; d < e->class_of[0]; d++)
                r->covariance[c * n + d] += w * w * unsure2(b, when, c, d);
            if (!isnan(r->classes[c].power_w))
                widen_class(r, before_w2, r->covariance[c * n + c], &r->classes[c]);
        }
    }
}

void nrg_in_step_release(struct nrg_in_step *b)
{
    nrg_arena_release(&b->memory);
    *b = (struct nrg_in_step){0};
}
