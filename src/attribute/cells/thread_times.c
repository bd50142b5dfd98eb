/* See thread_times.h. Readings are those that cputime/ uses. */
#include "attribute/cells/thread_times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "attribute/cputime/cputime.h"
#include "base/mem.h"
#include "base/search.h"

#define FINER      4    /* intervals per cell, in the mean: with fewer, cells do */
#define READ_OFF_S 1e-5 /* of the CPU time of an interval */
#define READ_OFF   2e-3 /* of its length */

static int make_intervals(struct nrg_thread_times *to, const struct nrg_cpu_reading *rows, size_t n)
{
    *to = (struct nrg_thread_times){.t_ns = nrg_calloc(n + 1, sizeof *to->t_ns),
                                    .cpu_s = nrg_calloc(n + 1, sizeof *to->cpu_s),
                                    .open_s = nrg_calloc(n + 1, sizeof *to->open_s),
                                    .open_rate = nrg_calloc(n + 1, sizeof *to->open_rate),
                                    .gap_rate = nrg_calloc(n + 1, sizeof *to->gap_rate)};
    if (!to->t_ns || !to->cpu_s || !to->open_s || !to->open_rate || !to->gap_rate)
        return -ENOMEM;
    to->n = n - 1;
    for (size_t i = 0; i < n; i++) {
        to->t_ns[i] = rows[i].t_ns;
        if (i + 1 < n)
            to->cpu_s[i] = (float)((double)(rows[i + 1].cpu_ns - rows[i].cpu_ns) * 1e-9);
    }
    return 0;
}

static int load_track(struct nrg_engine *e, struct nrg_cpu_readings *readings, size_t i)
{
    const struct nrg_cells *c = &e->cells;
    struct nrg_cpu_track *track = &readings->tracks[i];
    if (track->n < 2 || c->track_pool[i])
        return 0;
    double cell_ns = (double)(c->begin_ns[c->n] - c->begin_ns[0]) / (double)c->n,
           span_ns = (double)(track->rows[track->n - 1].t_ns - track->rows[0].t_ns);
    if ((double)(track->n - 1) * cell_ns > FINER * span_ns)
        return make_intervals(&e->cells.thread_times[i], track->rows, track->n);
    return 0;
}

int nrg_thread_times_load(struct nrg_engine *e)
{
    struct nrg_cpu_readings readings;
    struct nrg_cells *c = &e->cells;
    c->thread_times = nrg_arena_array(&c->memory, c->n_tracks + 1, sizeof *c->thread_times);
    if (!c->thread_times)
        return -ENOMEM;
    int rc = nrg_cpu_readings_init(&readings, e, 0);
    for (size_t i = 0; !rc && i < c->n_tracks; i++)
        rc = load_track(e, &readings, i);
    nrg_cpu_readings_release(&readings, e);
    return rc;
}

void nrg_thread_times_release(struct nrg_thread_times *tracks, size_t n)
{
    for (size_t i = 0; tracks && i < n; i++) {
        free(tracks[i].t_ns);
        free(tracks[i].cpu_s);
        free(tracks[i].open_s);
        free(tracks[i].open_rate);
        free(tracks[i].gap_rate);
        tracks[i] = (struct nrg_thread_times){0};
    }
}

void nrg_thread_times_open(struct nrg_thread_times *times, int64_t from_ns, int64_t to_ns)
{
    if (!times->n || to_ns <= times->t_ns[0] || from_ns >= times->t_ns[times->n])
        return;
    size_t begun = nrg_count_up_to(times->t_ns, times->n, sizeof *times->t_ns, from_ns);
    for (size_t i = begun ? begun - 1 : 0; i < times->n && times->t_ns[i] < to_ns; i++) {
        int64_t from = times->t_ns[i] > from_ns ? times->t_ns[i] : from_ns;
        int64_t to = times->t_ns[i + 1] < to_ns ? times->t_ns[i + 1] : to_ns;
        times->open_s[i] += to > from ? (float)((double)(to - from) * 1e-9) : 0;
    }
}

/* As far as can be told, the thread was busy while it had spans open; all of the time. */
static bool busy_inside(const struct nrg_thread_use *use)
{
    return fabs(use->cpu_s - use->open_s) < use->off_s;
}

static bool busy_throughout(const struct nrg_thread_use *use)
{
    return fabs(use->cpu_s - use->length_s) < use->off_s;
}

/*
 * Gaps that are shorter than what a reading may be off by are all counted, whatever the reading
 * said, or those with too little would be chosen (a late reading has that much too much, and the
 * next one too little). Unless the thread waited in its spans, too.
 */
void nrg_thread_gaps_add(struct nrg_thread_gaps *gaps, const struct nrg_thread_use *use)
{
    double gap_s = use->length_s - use->open_s;
    bool untold = gap_s < use->off_s, slept = busy_inside(use) && !busy_throughout(use);
    if (use->open_s <= 0 || use->cpu_s < use->open_s - 2 * use->off_s || (!untold && !slept))
        return;
    gaps->between_s += use->cpu_s - use->open_s;
    gaps->open_s += use->open_s;
    if (!untold) {
        gaps->slept_s += use->open_s;
        return;
    }
    gaps->gap_s += gap_s;
    gaps->off_s = fmax(gaps->off_s, use->off_s);
}

/* Where it slept, there is as much of it per second of spans as elsewhere: an interval's own
 * reading says less than its error. */
double nrg_thread_gaps_unplaced(const struct nrg_thread_gaps *gaps)
{
    return gaps->open_s > 0 ? fmax(0, gaps->between_s) * gaps->slept_s / gaps->open_s : 0;
}

/* What one reading has too much the next one lacks, so the sum is off by no more than one. */
static double gap_rate(const struct nrg_thread_gaps *gaps)
{
    double cpu_s = gaps->between_s - nrg_thread_gaps_unplaced(gaps);
    double waited_s = gaps->gap_s - cpu_s;
    if (fmin(cpu_s, waited_s) < gaps->off_s)
        return cpu_s > waited_s;
    return cpu_s / gaps->gap_s;
}

/* A thread waits outside of its spans rather than inside, as far as that goes. */
void nrg_thread_divide(const struct nrg_thread_use *use, const struct nrg_thread_gaps *gaps,
                       double *inside_s, double *outside_s)
{
    bool inside = busy_inside(use), throughout = busy_throughout(use);
    double gap_s = use->length_s - use->open_s;
    *inside_s = inside || throughout ? use->open_s : fmin(use->cpu_s, use->open_s);
    if (inside && throughout && !(gaps->gap_s > 0)) /* nothing says more than this one */
        *outside_s = use->cpu_s - use->open_s > gap_s / 2 ? gap_s : 0;
    else if (inside)
        *outside_s = throughout ? gap_rate(gaps) * gap_s : 0;
    else
        *outside_s = throughout ? gap_s : use->cpu_s - *inside_s;
}

static struct nrg_thread_use use_of(const struct nrg_thread_times *times, size_t i)
{
    double length_s = (double)(times->t_ns[i + 1] - times->t_ns[i]) * 1e-9;
    return (struct nrg_thread_use){.cpu_s = (double)times->cpu_s[i],
                                   .open_s = fmin((double)times->open_s[i], length_s),
                                   .length_s = length_s,
                                   .off_s = READ_OFF_S + READ_OFF * length_s};
}

void nrg_thread_times_settle(struct nrg_thread_times *times)
{
    struct nrg_thread_gaps gaps = {0};
    for (size_t i = 0; i < times->n; i++) {
        struct nrg_thread_use use = use_of(times, i);
        nrg_thread_gaps_add(&gaps, &use);
    }
    for (size_t i = 0; i < times->n; i++) {
        struct nrg_thread_use use = use_of(times, i);
        double inside_s, outside_s, gap_s = use.length_s - use.open_s;
        nrg_thread_divide(&use, &gaps, &inside_s, &outside_s);
        times->open_rate[i] = use.open_s > 0 ? (float)(inside_s / use.open_s) : 0;
        times->gap_rate[i] = gap_s > 0 ? (float)(outside_s / gap_s) : 0;
    }
}

struct nrg_thread_rate nrg_thread_times_at(const struct nrg_thread_times *times, size_t *at,
                                           int64_t t_ns)
{
    if (!times->n || t_ns >= times->t_ns[times->n])
        return (struct nrg_thread_rate){INT64_MAX, SIZE_MAX};
    if (t_ns < times->t_ns[0])
        return (struct nrg_thread_rate){times->t_ns[0], SIZE_MAX};
    if (t_ns < times->t_ns[*at]) {
        size_t begun = nrg_count_up_to(times->t_ns, times->n, sizeof *times->t_ns, t_ns);
        *at = begun - 1;
    }
    while (times->t_ns[*at + 1] <= t_ns)
        ++*at;
    return (struct nrg_thread_rate){times->t_ns[*at + 1], *at};
}
