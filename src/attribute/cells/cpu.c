/*
 * See cells.h: weights and shares from the CPU times of processes and threads.
 *
 * A thread's CPU time in a cell belongs to the time in which it had a span open, as far as it
 * fits in there (a thread has one CPU); threads without spans, such as a pool of workers, work for
 * those that have one. Where nothing is known about a process's threads, or all were asleep, those
 * with a span open share equally.
 *
 * The shares of a GPU's work come from the driver (parts_other.c).
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/cells/full.h"
#include "attribute/cells/workers.h"
#include "attribute/internal.h"
#include "base/checked.h"
#include "energy/recorder_use.h"

#define ASLEEP     1e-9f /* weight of a thread that used no CPU: it gets what no other can have */
#define WORKERS    0.02  /* of what the threads with spans used: less is not another thread's */
#define READ_OFF_S 2e-3
#define READ_OFF   0.02 /* of a cell */

struct last_row {
    int64_t t_ns, cpu_ns;
    bool seen;
};

struct group_sums {
    double used_s, unknown_s; /* CPU of its threads; open time of those without CPU times */
    double open_s, waited_s;  /* of all its threads; of that, what they did not use CPU in */
    size_t unknown;           /* threads without CPU times */
};

struct weigher {
    struct nrg_arena memory; /* of the arrays */
    struct nrg_cells *c;
    const struct nrg_span_catalog *catalog;
    struct last_row *last;  /* per process id, or per track */
    struct last_row *first; /* per track: the first reading */
    size_t n_ids;
    uint32_t *group_of;  /* per process id; UINT32_MAX: none */
    float *workload_s;   /* per cell */
    uint8_t *has_thread; /* per track */
    struct group_sums *sums;
    bool *has_workers;            /* per group: threads without spans work while its own wait */
    struct nrg_thread_gaps *gaps; /* per track */
};

void nrg_cells_spread(const struct nrg_cells *c, int64_t from_ns, int64_t to_ns, double amount,
                      float *column, size_t stride)
{
    if (!c->n || to_ns <= from_ns || to_ns <= c->begin_ns[0] || from_ns >= c->begin_ns[c->n])
        return;
    double per_ns = amount / (double)(to_ns - from_ns);
    for (size_t k = nrg_cells_find(c, from_ns); k < c->n && c->begin_ns[k] < to_ns; k++) {
        int64_t begin = c->begin_ns[k] > from_ns ? c->begin_ns[k] : from_ns;
        int64_t end = c->begin_ns[k + 1] < to_ns ? c->begin_ns[k + 1] : to_ns;
        if (end > begin)
            column[k * stride] += (float)(per_ns * (double)(end - begin));
    }
}

/* A number of each cell. */
struct column {
    float *first;
    size_t stride;
};

/* Adds the CPU seconds since the last row to the columns; false where they are not known. */
static bool spread_cpu(const struct nrg_cells *c, struct last_row *last, int64_t t_ns,
                       int64_t cpu_ns, const struct column *to, size_t n)
{
    bool known = last->seen && t_ns > last->t_ns && cpu_ns >= last->cpu_ns;
    double used_s = ((double)cpu_ns - (double)last->cpu_ns) / 1e9;
    for (size_t i = 0; known && i < n; i++)
        nrg_cells_spread(c, last->t_ns, t_ns, used_s, to[i].first, to[i].stride);
    *last = (struct last_row){t_ns, cpu_ns, true};
    return known;
}

static int on_process_rows(void *arg, const struct nrg_rows *rows)
{
    struct weigher *w = arg;
    const int64_t *ids = nrg_rows_column(rows, NRG_P_PROCESS);
    const int64_t *cpu = nrg_rows_column(rows, NRG_P_CPU_NS);
    for (size_t i = 0; i < rows->n; i++) {
        if (!nrg_is_id(ids[i], w->n_ids) || cpu[i] == NRG_MISSING)
            continue;
        uint32_t group = w->group_of[ids[i]];
        struct column to[] = {{w->workload_s, 1}, {w->c->untracked_s, 1}};
        if (group != UINT32_MAX)
            to[1] = (struct column){w->c->share + group, w->c->n_groups};
        w->c->has_processes |= spread_cpu(w->c, &w->last[ids[i]], rows->t_ns[i], cpu[i], to, 2);
    }
    return 0;
}

static int on_thread_rows(void *arg, const struct nrg_rows *rows)
{
    struct weigher *w = arg;
    const int64_t *ids = nrg_rows_column(rows, NRG_T_TRACK);
    const int64_t *cpu = nrg_rows_column(rows, NRG_T_CPU_NS);
    for (size_t i = 0; i < rows->n; i++) {
        const struct nrg_span_track *known = nrg_span_catalog_track(w->catalog, ids[i]);
        if (!known || cpu[i] == NRG_MISSING)
            continue;
        size_t track = (size_t)(known - w->catalog->tracks);
        if (!w->first[track].seen)
            w->first[track] = (struct last_row){rows->t_ns[i], cpu[i], true};
        if (w->c->thread_times[track].n)
            continue; /* it has its own readings */
        const struct column to = {w->c->weight + track, w->c->n_tracks};
        w->has_thread[track] |= spread_cpu(w->c, &w->last[track], rows->t_ns[i], cpu[i], &to, 1);
    }
    return 0;
}

/* CPU seconds of threads that read them themselves. */
static void spread_own(struct weigher *w)
{
    const struct nrg_cells *c = w->c;
    for (size_t track = 0; track < c->n_tracks; track++) {
        const struct nrg_thread_times *times = &c->thread_times[track];
        for (size_t i = 0; i < times->n; i++)
            nrg_cells_spread(c, times->t_ns[i], times->t_ns[i + 1], (double)times->cpu_s[i],
                             c->weight + track, c->n_tracks);
        w->has_thread[track] |= times->n > 0;
    }
}

/* What processes used in each cell beyond their threads with spans; NULL: no memory. */
static float *beyond_threads(struct weigher *w)
{
    const struct nrg_cells *c = w->c;
    float *beyond_s = nrg_arena_array(&w->memory, c->n * c->n_groups + 1, sizeof *beyond_s);
    for (size_t i = 0; beyond_s && i < c->n * c->n_groups; i++)
        beyond_s[i] = c->share[i];
    for (size_t i = 0; beyond_s && i < c->n * c->n_tracks; i++)
        beyond_s[i / c->n_tracks * c->n_groups + c->track_group[i % c->n_tracks]] -= c->weight[i];
    return beyond_s;
}

/*
 * A thread is known from its first mark on, and says then what it has used before: a program that
 * loads its libraries has worked for seconds by then. That was while its process did, the last of
 * it last, and the thread has one CPU.
 */
static int spread_before(struct weigher *w)
{
    const struct nrg_cells *c = w->c;
    float *beyond_s = beyond_threads(w);
    for (size_t track = 0; beyond_s && track < c->n_tracks; track++) {
        const struct last_row *first = &w->first[track];
        float left_s = (float)((double)first->cpu_ns * 1e-9);
        if (!w->has_thread[track] || c->track_pool[track])
            continue;
        for (size_t k = nrg_cells_find(c, first->t_ns) + 1; k-- > 0 && left_s > 0;) {
            float *rest_s = &beyond_s[k * c->n_groups + c->track_group[track]];
            int64_t to_ns = first->t_ns < c->begin_ns[k + 1] ? first->t_ns : c->begin_ns[k + 1];
            float most_s = (float)((double)(to_ns - c->begin_ns[k]) * 1e-9);
            float used_s = fmaxf(0, fminf(fminf(*rest_s, most_s), left_s));
            c->weight[k * c->n_tracks + track] += used_s;
            *rest_s -= used_s;
            left_s -= used_s;
        }
    }
    return beyond_s ? 0 : -ENOMEM;
}

/* Intervals of threads for which no others work have rates of their own. */
static void settle_own(const struct weigher *w)
{
    const struct nrg_cells *c = w->c;
    for (size_t track = 0; track < c->n_tracks; track++) {
        struct nrg_thread_times *times = &c->thread_times[track];
        if (w->has_workers[c->track_group[track]])
            times->n = 0;
        nrg_thread_times_settle(times);
    }
}

static int read_rows(struct weigher *w, struct nrg_frame *frame, enum nrg_series_kind kind,
                     size_t columns, int (*each)(void *, const struct nrg_rows *))
{
    int series[16], rc = 0;
    size_t n = nrg_recording_series_of(frame->recording, kind, series, 16);
    for (size_t i = 0; !rc && i < n && i < 16; i++) {
        if (nrg_recording_columns(frame->recording, series[i], NULL) != columns)
            continue;
        memset(w->last, 0, w->n_ids * sizeof *w->last);
        rc = nrg_recording_read_series(frame->recording, series[i], each, w, NULL);
    }
    return rc;
}

static int prepare_weigher(struct weigher *w, struct nrg_frame *frame)
{
    int rc = nrg_recording_process_ids(frame->recording, &w->n_ids);
    if (rc)
        return rc;
    if (w->n_ids <= w->c->n_tracks)
        w->n_ids = w->c->n_tracks + 1;
    w->last = nrg_arena_array(&w->memory, w->n_ids, sizeof *w->last);
    w->first = nrg_arena_array(&w->memory, w->c->n_tracks + 1, sizeof *w->first);
    w->group_of = nrg_arena_array(&w->memory, w->n_ids, sizeof *w->group_of);
    w->workload_s = nrg_arena_array(&w->memory, w->c->n + 1, sizeof *w->workload_s);
    w->has_thread = nrg_arena_array(&w->memory, w->c->n_tracks + 1, 1);
    w->sums = nrg_arena_array(&w->memory, w->c->n_groups + 1, sizeof *w->sums);
    w->has_workers = nrg_arena_array(&w->memory, w->c->n_groups + 1, sizeof *w->has_workers);
    w->gaps = nrg_arena_array(&w->memory, w->c->n_tracks + 1, sizeof *w->gaps);
    if (w->memory.failed)
        return -ENOMEM;
    memset(w->group_of, 0xff, w->n_ids * sizeof *w->group_of);
    for (size_t g = 0; g < w->c->n_groups; g++)
        if (nrg_is_id(w->c->group_process[g], w->n_ids) && !w->c->group_pool[g])
            w->group_of[w->c->group_process[g]] = (uint32_t)g;
    return 0;
}

static int fill_busy(struct nrg_cells *c, struct nrg_frame *frame, struct nrg_others_clock *clock)
{
    size_t channel = nrg_frame_find(frame, "cpu.busy", NRG_SECONDS);
    const struct nrg_timeline *busy = nrg_frame_timeline(frame, channel);
    if (!busy)
        return 0;
    const struct nrg_channel *said = &frame->channels[channel].channel;
    *clock = (struct nrg_others_clock){said->resolution, (double)said->update_ns * 1e-9};
    c->busy_s = nrg_arena_array(&c->memory, c->n + 1, sizeof *c->busy_s);
    if (!c->busy_s)
        return -ENOMEM;
    for (size_t k = 0; k < c->n; k++)
        c->busy_s[k] = nrg_timeline_between(busy, c->begin_ns[k], c->begin_ns[k + 1], NULL);
    nrg_frame_drop(frame, channel);
    return 0;
}

/* What a group's threads used, and how long they were open, in a cell. */
static void sum_groups(const struct weigher *w, size_t k)
{
    const struct nrg_cells *c = w->c;
    const float *cpu_s = c->weight + k * c->n_tracks, *open_s = c->open_s + k * c->n_tracks;
    memset(w->sums, 0, (c->n_groups + 1) * sizeof *w->sums);
    for (size_t i = 0; i < c->n_tracks; i++) {
        struct group_sums *sums = &w->sums[c->track_group[i]];
        sums->used_s += (double)cpu_s[i];
        sums->open_s += (double)open_s[i];
        sums->waited_s += fmax(0, (double)open_s[i] - (double)cpu_s[i]);
        sums->unknown_s += w->has_thread[i] ? 0 : (double)open_s[i];
        sums->unknown += !w->has_thread[i];
    }
}

/*
 * CPU seconds of a track in a cell. What its process's other threads use, a pool of workers, is for
 * the threads that have spans and belongs to the power of what these do: it is no time of its own,
 * but it fills the time in which they wait inside of their spans.
 */
static double track_cpu_s(const struct weigher *w, size_t k, size_t track)
{
    const struct nrg_cells *c = w->c;
    const struct group_sums *sums = &w->sums[c->track_group[track]];
    double own_s = (double)c->weight[k * c->n_tracks + track];
    double open_s = (double)c->open_s[k * c->n_tracks + track];
    double process_s = (double)c->share[k * c->n_groups + c->track_group[track]];
    double extra_s = process_s - sums->used_s;
    if (!w->has_thread[track] && extra_s > 0 && sums->unknown_s > 0)
        return extra_s * open_s / sums->unknown_s;
    if (!w->has_thread[track]) /* no span is open: it worked outside */
        return extra_s > 0 && !(sums->used_s > 0) ? extra_s / (double)sums->unknown : 0;
    if (sums->unknown_s > 0 || !w->has_workers[c->track_group[track]] || extra_s <= 0)
        return own_s;
    double filled = sums->waited_s > 0 ? fmin(extra_s / sums->waited_s, 1) : 0;
    return own_s + filled * fmax(0, open_s - own_s);
}

/*
 * CPU time in a cell of a thread itself: it is read some ms apart from the borders of cells. Where
 * no thread's was, the process's is that of its threads with spans, if these can have used it all;
 * else others worked as well, and 0 is returned.
 */
static struct nrg_thread_use own_use(const struct weigher *w, size_t k, size_t track)
{
    const struct nrg_cells *c = w->c;
    size_t at = k * c->n_tracks + track;
    double length_s = nrg_cells_length_s(c, k), off_s = READ_OFF_S + READ_OFF * length_s;
    double cpu_s = (double)c->weight[at];
    if (!w->has_thread[track]) {
        cpu_s = track_cpu_s(w, k, track);
        cpu_s = cpu_s < length_s + off_s ? cpu_s : 0;
    }
    return (struct nrg_thread_use){.cpu_s = cpu_s,
                                   .open_s = fmin((double)c->open_s[at], length_s),
                                   .length_s = length_s,
                                   .off_s = off_s};
}

/* How long a cell is before a thread's first span, or after its last one. */
static double before_s(const struct nrg_cells *c, size_t k, size_t track)
{
    return fmax(0, (double)(c->first_ns[track] - c->begin_ns[k]) * 1e-9);
}

static double after_s(const struct nrg_cells *c, size_t k, size_t track)
{
    return fmax(0, (double)(c->begin_ns[k + 1] - c->last_ns[track]) * 1e-9);
}

/*
 * The same of the time from a thread's first span to its last one, of a cell that has both such and
 * other time: what a thread does before and after (it starts, loads, waits for others to end) is
 * not what it does between spans. Of CPU time that can be either's, spans and their gaps have what
 * they can hold.
 */
static struct nrg_thread_use use_among_spans(const struct weigher *w, size_t k, size_t track)
{
    struct nrg_thread_use use = own_use(w, k, track);
    double edges_s = before_s(w->c, k, track) + after_s(w->c, k, track);
    if (use.open_s <= 0 || edges_s <= 0)
        return use;
    use.length_s = fmax(use.open_s, use.length_s - edges_s);
    use.cpu_s = fmin(use.cpu_s, use.length_s);
    return use;
}

static void find_gaps(const struct weigher *w)
{
    const struct nrg_cells *c = w->c;
    for (size_t k = 0; k < c->n; k++) {
        sum_groups(w, k);
        for (size_t i = 0; i < c->n_tracks && !c->outside[k]; i++) {
            struct nrg_thread_use use = use_among_spans(w, k, i);
            nrg_thread_gaps_add(&w->gaps[i], &use);
        }
    }
}

/* What is left for the time before a thread's first span and after its last one, of a cell that
 * has spans. */
static void set_edges(struct nrg_cells *c, size_t k, size_t track, double left_s)
{
    double before = before_s(c, k, track), after = after_s(c, k, track), all = before + after;
    float rate = all > 0 ? (float)fmin(fmax(0, left_s) / all, 1) : 0;
    if (before > 0)
        c->before_rate[track] = rate;
    if (after > 0)
        c->after_rate[track] = rate;
}

/* A thread's CPU time belongs to its spans, as far as it fits in there; the rest to the gaps. It
 * has one CPU, whoever works for it. */
static void set_rates(struct weigher *w, size_t k)
{
    struct nrg_cells *c = w->c;
    for (size_t i = 0; i < c->n_tracks; i++) {
        size_t at = k * c->n_tracks + i;
        struct nrg_thread_use use = use_among_spans(w, k, i);
        double cpu_s = track_cpu_s(w, k, i), gap_s = use.length_s - use.open_s;
        double inside_s = cpu_s, outside_s = 0;
        if (c->track_pool[i])
            continue;
        if (use.open_s <= 0)
            outside_s = cpu_s;
        else if (use.cpu_s > 0) {
            double most = fmax(1, cpu_s / use.cpu_s);
            nrg_thread_divide(&use, &w->gaps[i], &inside_s, &outside_s);
            set_edges(c, k, i, own_use(w, k, i).cpu_s - inside_s - outside_s);
            inside_s *= most;
            outside_s *= most;
        }
        c->open_rate[at] = use.open_s > 0 ? fminf((float)(inside_s / use.open_s), 1) : 0;
        c->gap_rate[at] = gap_s > 0 ? fminf((float)(outside_s / gap_s), 1) : 0;
    }
}

/* Seconds of CPU become CPU per second with a span open. Needs the processes' seconds. */
static void weigh_tracks(struct weigher *w, size_t k, bool processes)
{
    struct nrg_cells *c = w->c;
    float *cpu_s = c->weight + k * c->n_tracks, *open_s = c->open_s + k * c->n_tracks;
    for (size_t i = 0; i < c->n_tracks; i++) {
        size_t group = c->track_group[i];
        const struct group_sums *sums = &w->sums[group];
        double rest_s = processes ? (double)c->share[k * c->n_groups + group] - sums->used_s : 0;
        if (c->track_pool[i] || sums->used_s <= 0)
            cpu_s[i] = 1;
        else if (w->has_thread[i])
            cpu_s[i] /= fmaxf(open_s[i], 1e-9f);
        else
            cpu_s[i] = rest_s > 0 ? (float)(rest_s / fmax(sums->unknown_s, 1e-9)) : 0;
        cpu_s[i] = fmaxf(fminf(cpu_s[i], 1), ASLEEP);
    }
}

/* Without CPU times of processes: by the CPU time of their threads, or the time they are open. */
static void share_by_tracks(struct weigher *w, size_t k, size_t pool)
{
    struct nrg_cells *c = w->c;
    const float *cpu_s = c->weight + k * c->n_tracks, *open_s = c->open_s + k * c->n_tracks;
    float *share = c->share + k * c->n_groups;
    double all_cpu = 0, all_open = 0;
    for (size_t i = 0; i < c->n_tracks; i++)
        if (c->track_pool[i] == pool) {
            all_cpu += (double)cpu_s[i];
            all_open += (double)open_s[i];
        }
    for (size_t g = 0; g < c->n_groups; g++)
        if (c->group_pool[g] == pool)
            share[g] = 0;
    for (size_t i = 0; i < c->n_tracks; i++)
        if (c->track_pool[i] == pool && (all_cpu > 0 || all_open > 0))
            share[c->track_group[i]] += all_cpu > 0 ? (float)((double)cpu_s[i] / all_cpu)
                                                    : (float)((double)open_s[i] / all_open);
}

static void share_by_processes(struct weigher *w, size_t k)
{
    struct nrg_cells *c = w->c;
    float *share = c->share + k * c->n_groups, all = w->workload_s[k];
    for (size_t g = 0; g < c->n_groups; g++) {
        if (c->group_pool[g])
            continue;
        if (!c->group_process[g])
            share[g] = c->untracked_s[k];
        share[g] /= all;
    }
}

static void weigh_cell(struct weigher *w, size_t k)
{
    struct nrg_cells *c = w->c;
    double mine = (double)w->workload_s[k];
    sum_groups(w, k);
    set_rates(w, k);
    if (mine > 0) {
        weigh_tracks(w, k, true);
        share_by_processes(w, k);
    } else {
        share_by_tracks(w, k, 0);
        weigh_tracks(w, k, false);
    }
    if (c->other_s && c->other_s[k] > 0)
        c->other[k] = (float)(c->other_s[k] / (c->other_s[k] + mine));
    for (size_t g = 0; g < c->n_groups; g++)
        if (c->group_pool[g])
            c->share[k * c->n_groups + g] = 1; /* one group in such a pool */
}

static void sum_unplaced(const struct weigher *w)
{
    struct nrg_cells *c = w->c;
    for (size_t i = 0; i < c->n_tracks; i++)
        c->unplaced_s += c->thread_times[i].n ? 0 : nrg_thread_gaps_unplaced(&w->gaps[i]);
}

struct workers {
    double used_s, extra_s, filled_s;
    double beside_s; /* of extra_s, what was in runs while a thread of known CPU time had a span */
    struct nrg_workers beside;
};

/*
 * In one cell, times that are read some ms apart look like another thread's work; over all not.
 * Where workers wait with the thread that they work for, they fill nothing: they are a part of its
 * power, as if they never waited, and its own CPU time says when.
 */
static int find_workers(struct weigher *w)
{
    struct nrg_cells *c = w->c;
    struct workers *all = nrg_arena_array(&w->memory, c->n_groups + 1, sizeof *all);
    for (size_t k = 0; all && k < c->n; k++) {
        sum_groups(w, k);
        c->workload_s += c->outside[k] ? 0 : (double)w->workload_s[k];
        for (size_t g = 0; g < c->n_groups; g++) {
            double extra_s = (double)c->share[k * c->n_groups + g] - w->sums[g].used_s;
            all[g].used_s += w->sums[g].used_s;
            all[g].extra_s += extra_s;
            all[g].filled_s += fmin(fmax(extra_s, 0), w->sums[g].waited_s);
            if (!c->outside[k] && w->sums[g].open_s > 0 && !(w->sums[g].unknown_s > 0))
                all[g].beside_s += extra_s;
            nrg_workers_add(&all[g].beside, w->sums[g].open_s, w->sums[g].waited_s, extra_s);
        }
    }
    for (size_t g = 0; all && g < c->n_groups; g++) {
        bool own = !nrg_workers_wait_too(&all[g].beside);
        w->has_workers[g] = own && fmin(all[g].extra_s, all[g].filled_s) > WORKERS * all[g].used_s;
        if (own && c->group_process[g] && !c->group_pool[g])
            c->spanless_s += fmax(0, all[g].beside_s);
    }
    return all ? 0 : -ENOMEM;
}

/* Between runs nothing is asked of others, but the sum goes on. */
static int find_others(const struct weigher *w, struct nrg_frame *frame,
                       const struct nrg_others_clock *clock)
{
    struct nrg_cells *c = w->c;
    if (!c->has_processes || !c->busy_s)
        return 0;
    struct nrg_recorder_use recorder = nrg_recorder_use_find(frame);
    double *mine_s = nrg_arena_array(&c->memory, c->n + 1, sizeof *mine_s);
    double *recorder_s = nrg_arena_array(&c->memory, c->n + 1, sizeof *recorder_s);
    c->other_s = nrg_arena_array(&c->memory, c->n + 1, sizeof *c->other_s);
    double *busy_s = nrg_arena_array(&c->memory, c->n + 1, sizeof *busy_s);
    c->full = nrg_arena_array(&c->memory, c->n + 1, sizeof *c->full);
    if (c->memory.failed)
        return -ENOMEM;
    nrg_cells_find_full(c, frame, clock, busy_s, c->other_s);
    for (size_t k = 0; k < c->n; k++) {
        mine_s[k] = c->outside[k] ? busy_s[k] : (double)w->workload_s[k];
        recorder_s[k] =
            c->outside[k] ? 0 : nrg_recorder_use_s(&recorder, c->begin_ns[k], c->begin_ns[k + 1]);
        c->own_s += recorder_s[k];
    }
    nrg_others_spread(busy_s, mine_s, recorder_s, c->n, clock->tick_s, c->other_s);
    nrg_others_fit_profile(&c->other_profile, c->other_s, c->begin_ns, c->n, clock);
    return 0;
}

int nrg_cells_weigh(struct nrg_cells *c, struct nrg_frame *frame,
                    const struct nrg_span_catalog *catalog)
{
    struct weigher w = {.c = c, .catalog = catalog};
    int rc = prepare_weigher(&w, frame);
    struct nrg_others_clock clock = {0};
    if (!rc)
        rc = fill_busy(c, frame, &clock);
    if (!rc)
        rc = read_rows(&w, frame, NRG_PROCESSES, NRG_P_COLUMNS, on_process_rows);
    if (!rc)
        rc = read_rows(&w, frame, NRG_THREADS, NRG_T_COLUMNS, on_thread_rows);
    if (!rc) {
        spread_own(&w);
        rc = spread_before(&w);
    }
    if (!rc)
        rc = find_others(&w, frame, &clock);
    if (!rc)
        rc = find_workers(&w);
    if (!rc) {
        find_gaps(&w);
        settle_own(&w);
    }
    c->has_rates = c->has_processes;
    for (size_t i = 0; !rc && i < c->n_tracks; i++)
        c->has_rates |= w.has_thread[i];
    c->one_thread = !rc && c->n_tracks == 1 && w.has_thread[0];
    for (size_t k = 0; !rc && k < c->n; k++)
        weigh_cell(&w, k);
    if (!rc)
        sum_unplaced(&w);
    nrg_arena_release(&w.memory);
    return rc;
}
