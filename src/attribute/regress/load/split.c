/* See split.h. */
#include "attribute/regress/load/split.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/fit.h"
#include "base/mem.h"

#define MOST_CLASSES 160 /* with those of threads: a second regression takes its time */
#define SAME_ROWS    0.01
#define SHARED       0.5 /* of what threads may differ by: less than that is left, by their paths */
#define HARDLY_ANY   0.01 /* of the spans' time: whether they share it then does not matter */

/* Paths of spans come first among the classes, then what threads do outside of spans. */
static bool is_divisible(const struct nrg_engine *e, const struct nrg_slice *slice)
{
    return !slice->pool && slice->class_ <= e->class_of[0] && slice->track < e->cells.n_tracks;
}

int nrg_split_find(struct nrg_class_split *s, const struct nrg_engine *e,
                   const struct nrg_slice_log *log, struct nrg_arena *memory)
{
    struct nrg_slice_reader reader;
    size_t cells = e->n_classes * e->cells.n_tracks;
    *s = (struct nrg_class_split){.n_whole = e->n_classes,
                                  .n_classes = e->n_classes,
                                  .n_tracks = e->cells.n_tracks,
                                  .rest_class = e->class_of[0]};
    if (e->cells.n_tracks < 2 || e->n_classes >= MOST_CLASSES)
        return 0;
    s->of = nrg_arena_array(memory, cells, sizeof *s->of);
    s->whole = nrg_arena_array(memory, MOST_CLASSES, sizeof *s->whole);
    bool *seen = nrg_arena_array(memory, e->n_classes, sizeof *seen);
    if (memory->failed)
        return -ENOMEM;
    memset(s->of, 0xff, cells * sizeof *s->of);
    for (size_t c = 0; c < e->n_classes; c++)
        s->whole[c] = (uint32_t)c;
    nrg_slice_reader_init(&reader, log);
    while (nrg_slice_read(&reader)) {
        const struct nrg_slice *slice = &reader.slice;
        if (!is_divisible(e, slice) ||
            s->of[slice->class_ * s->n_tracks + slice->track] != UINT32_MAX)
            continue;
        if (seen[slice->class_] && s->n_classes == MOST_CLASSES) {
            s->n_classes = s->n_whole;
            return 0;
        }
        uint32_t own = seen[slice->class_] ? (uint32_t)s->n_classes++ : slice->class_;
        seen[slice->class_] = true;
        s->of[slice->class_ * s->n_tracks + slice->track] = own;
        s->whole[own] = slice->class_;
    }
    return 0;
}

bool nrg_split_ages(struct nrg_class_split *s, const struct nrg_engine *e,
                    const struct nrg_slice_log *log, uint32_t pool)
{
    struct nrg_slice_reader reader;
    int64_t lasts_ns[NRG_GAP_AGES] = {0}, longest_ns = 0;
    bool any = false;
    *s = (struct nrg_class_split){.by_age = true,
                                  .rest_class = e->class_of[0],
                                  .n_whole = e->n_classes,
                                  .n_classes = e->n_classes};
    nrg_slice_reader_init(&reader, log);
    while (nrg_slice_read(&reader)) {
        const struct nrg_slice *slice = &reader.slice;
        bool gap = slice->class_ == e->class_of[0], aged = slice->class_ >= e->aged_class;
        if (slice->pool == pool && gap)
            longest_ns += slice->end_ns - slice->begin_ns;
        if (slice->pool == pool && aged)
            lasts_ns[slice->class_ - e->aged_class] += slice->end_ns - slice->begin_ns;
        any |= slice->pool == pool && aged;
    }
    for (size_t i = 0; i < NRG_GAP_AGES; i++)
        if (lasts_ns[i] > longest_ns) {
            longest_ns = lasts_ns[i];
            s->rest_class = e->aged_class + i;
        }
    return any;
}

/* Processes share a GPU's time by what the driver says of each, and that is no sum. */
static bool has_one_group(const struct nrg_engine *e, uint32_t pool)
{
    size_t groups = 0;
    for (size_t g = 0; g < e->cells.n_groups; g++)
        groups += e->cells.group_pool[g] == pool;
    return groups == 1;
}

bool nrg_split_overlaps(const struct nrg_engine *e, const struct nrg_slice_log *log, uint32_t pool)
{
    struct nrg_slice_reader reader;
    double open_ns = 0, less_ns = 0;
    if (!has_one_group(e, pool))
        return false;
    nrg_slice_reader_init(&reader, log);
    while (nrg_slice_read(&reader)) {
        const struct nrg_slice *slice = &reader.slice;
        double ns = (double)(slice->end_ns - slice->begin_ns);
        if (slice->pool != pool || slice->class_ >= e->class_of[0] || !(slice->rate > 0))
            continue;
        open_ns += ns;
        less_ns += ns * (1 - slice->rate);
    }
    return less_ns > HARDLY_ANY * open_ns;
}

size_t nrg_split_class(const struct nrg_class_split *s, const struct nrg_slice *slice)
{
    bool known = s && !s->by_age && slice->class_ < s->n_whole && slice->track < s->n_tracks;
    uint32_t own = known ? s->of[slice->class_ * s->n_tracks + slice->track] : UINT32_MAX;
    return own == UINT32_MAX ? slice->class_ : own;
}

/* Classes that a split has more: those of time without spans count where there was any. */
static double more_classes(const struct nrg_class_split *s, const struct nrg_regress_result *parts)
{
    double more = 0;
    if (!s->by_age)
        return (double)(s->n_classes - s->n_whole);
    for (size_t c = s->n_classes - NRG_GAP_AGES; c < s->n_classes; c++)
        more += !isnan(parts->classes[c].power_w);
    return more;
}

double nrg_split_gain(const struct nrg_regress_result *than, const struct nrg_regress_result *r)
{
    double rows = (double)than->intervals;
    if (fabs((double)r->intervals - rows) > SAME_ROWS * rows || !(r->residual > 0))
        return -INFINITY;
    return 2 * rows * log(than->residual / r->residual);
}

/* Schwarz's criterion: mostly threads do the same, and then as many more columns cost certainty. */
bool nrg_split_earns(const struct nrg_class_split *s, const struct nrg_regress_result *whole,
                     const struct nrg_regress_result *parts)
{
    bool spans = s->by_age;
    for (size_t c = s->n_whole; !spans && c < s->n_classes; c++)
        spans = s->whole[c] < s->rest_class;
    return spans &&
           nrg_split_gain(whole, parts) > log((double)whole->intervals) * more_classes(s, parts);
}

/* What is not known of which threads draw more, all classes end to end. */
static double alike_j(const struct nrg_regress_result *r, size_t n)
{
    double sum_j = 0;
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < NRG_ALIKE && !isnan(r->classes[c].power_w); i++)
            sum_j += fabs(r->classes[c].drift_w[NRG_DOUBT_ALIKE + i]) * r->classes[c].time_s;
    return sum_j;
}

bool nrg_split_tells_less(const struct nrg_class_split *s, const struct nrg_regress_result *parts,
                          const struct nrg_regress_result *joined)
{
    double left_j = alike_j(joined, s->n_whole);
    return left_j > 0 && left_j > SHARED * alike_j(parts, s->n_classes);
}

/* Part of its path's time that each class has, in *parts. */
static void find_shares(const struct nrg_class_split *s, const struct nrg_regress_result *r,
                        double *parts)
{
    for (size_t c = 0; c < s->n_classes; c++) {
        double sum_s = 0;
        for (size_t d = 0; d < s->n_classes; d++)
            if (s->whole[d] == s->whole[c] && !isnan(r->classes[d].power_w))
                sum_s += r->classes[d].time_s;
        bool known = !isnan(r->classes[c].power_w);
        parts[c] = !known ? 0 : sum_s > 0 ? r->classes[c].time_s / sum_s : 1;
    }
}

/* Adds a class to its path's. Of its interval, what its scatter does not explain adds up. */
static void add_class(const struct nrg_regress_result *r, size_t n, size_t c, double part,
                      struct nrg_regress_class *to)
{
    const struct nrg_regress_class *from = &r->classes[c];
    double scatter_w = r->t * sqrt(fmax(r->covariance[c * n + c], 0));
    if (isnan(from->power_w))
        return;
    if (isnan(to->power_w))
        *to = (struct nrg_regress_class){.group = to->group};
    to->power_w += part * from->power_w;
    to->free_w += part * from->free_w;
    to->low_w += part * fmax(from->power_w - from->low_w - scatter_w, 0);
    to->high_w += part * fmax(from->high_w - from->power_w - scatter_w, 0);
    to->time_s += from->time_s;
    for (size_t i = 0; i < NRG_DOUBTS; i++)
        to->drift_w[i] += part * from->drift_w[i];
}

static void add_covariance(const struct nrg_class_split *s, const struct nrg_regress_result *r,
                           const double *parts, struct nrg_regress_result *to)
{
    for (size_t a = 0; a < s->n_classes; a++) {
        for (size_t b = 0; b < s->n_classes; b++)
            to->covariance[s->whole[a] * s->n_whole + s->whole[b]] +=
                parts[a] * parts[b] * r->covariance[a * s->n_classes + b];
        if (r->idle_covariance)
            to->idle_covariance[s->whole[a]] += parts[a] * r->idle_covariance[a];
    }
}

/* Once all classes of a path are in it. */
static void set_interval(const struct nrg_regress_result *r, double variance,
                         struct nrg_regress_class *c)
{
    double scatter_w = r->t * sqrt(fmax(variance, 0));
    c->low_w = fmax(c->power_w - c->low_w - scatter_w, 0);
    c->high_w += c->power_w + scatter_w;
    c->unresolved = !(c->high_w - c->low_w <= c->power_w);
}

int nrg_split_join(const struct nrg_class_split *s, const struct nrg_regress_result *r,
                   struct nrg_regress_result *to)
{
    size_t n = s->n_whole;
    double *parts = nrg_calloc(s->n_classes + 1, sizeof *parts);
    *to = *r;
    to->classes = nrg_calloc(n + 1, sizeof *to->classes);
    to->covariance = nrg_calloc(n * n + 1, sizeof *to->covariance);
    to->idle_covariance =
        r->idle_covariance ? nrg_calloc(n + 1, sizeof *to->idle_covariance) : NULL;
    bool failed =
        !parts || !to->classes || !to->covariance || (r->idle_covariance && !to->idle_covariance);
    if (failed) {
        nrg_regress_result_release(to);
        free(parts);
        return -ENOMEM;
    }
    find_shares(s, r, parts);
    for (size_t c = 0; c < n; c++)
        to->classes[c] = (struct nrg_regress_class){
            .power_w = NAN, .low_w = NAN, .high_w = NAN, .group = s->whole[r->classes[c].group]};
    for (size_t c = 0; c < s->n_classes; c++)
        add_class(r, s->n_classes, c, parts[c], &to->classes[s->whole[c]]);
    add_covariance(s, r, parts, to);
    for (size_t c = 0; c < n; c++)
        if (!isnan(to->classes[c].power_w))
            set_interval(r, to->covariance[c * n + c], &to->classes[c]);
    free(parts);
    return 0;
}
