/*
 * See cells.h: weights and shares from the CPU times of processes and threads.
 *
 * A thread's CPU time in a cell belongs to the time in which it had a span open, as far as it
 * fits in there (a thread has one CPU); threads without spans, such as a pool of workers, follow
 * their process. Where nothing is known about a process's threads, or all were asleep, those with
 * a span open share equally.
 *
 * A GPU's work that is not the workload's is told by the driver's share per process.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/cells.h"

#define ASLEEP 1e-9f /* weight of a thread that used no CPU: only what nobody else could have */

struct last_row {
    int64_t t_ns, cpu_ns;
    bool seen;
};

struct group_sums {
    double used_s, unknown_s; /* CPU of its threads; open time of those without CPU times */
};

struct weigher {
    struct nrg_cells *c;
    const struct nrg_span_catalog *catalog;
    struct last_row *last; /* per process id, or per track */
    size_t n_ids;
    uint32_t *group_of;  /* per process id; UINT32_MAX: none */
    float *workload_s;   /* per cell */
    float *untracked_s;  /* per cell, of processes without a track */
    uint8_t *has_thread; /* per track */
    struct group_sums *sums;
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

static int on_process_rows(void *arg, const struct nrg_rows *rows)
{
    struct weigher *w = arg;
    const int64_t *ids = nrg_rows_column(rows, NRG_P_PROCESS);
    const int64_t *cpu = nrg_rows_column(rows, NRG_P_CPU_NS);
    for (size_t i = 0; i < rows->n; i++) {
        if (ids[i] < 1 || (size_t)ids[i] >= w->n_ids || cpu[i] == NRG_MISSING)
            continue;
        struct last_row *last = &w->last[ids[i]];
        uint32_t group = w->group_of[ids[i]];
        if (last->seen && rows->t_ns[i] > last->t_ns && cpu[i] >= last->cpu_ns) {
            double used_s = ((double)cpu[i] - (double)last->cpu_ns) / 1e9;
            nrg_cells_spread(w->c, last->t_ns, rows->t_ns[i], used_s, w->workload_s, 1);
            if (group == UINT32_MAX)
                nrg_cells_spread(w->c, last->t_ns, rows->t_ns[i], used_s, w->untracked_s, 1);
            else
                nrg_cells_spread(w->c, last->t_ns, rows->t_ns[i], used_s, w->c->share + group,
                                 w->c->n_groups);
            w->c->has_processes = true;
        }
        *last = (struct last_row){rows->t_ns[i], cpu[i], true};
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
        struct last_row *last = &w->last[track];
        if (last->seen && rows->t_ns[i] > last->t_ns && cpu[i] >= last->cpu_ns) {
            nrg_cells_spread(w->c, last->t_ns, rows->t_ns[i],
                             ((double)cpu[i] - (double)last->cpu_ns) / 1e9, w->c->weight + track,
                             w->c->n_tracks);
            w->has_thread[track] = 1;
        }
        *last = (struct last_row){rows->t_ns[i], cpu[i], true};
    }
    return 0;
}

static int stream(struct weigher *w, struct nrg_frame *frame, enum nrg_series_kind kind,
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

static int prepare(struct weigher *w, struct nrg_frame *frame)
{
    size_t n, max_id = w->c->n_tracks;
    const struct nrg_process_info *infos = nrg_recording_processes(frame->recording, &n);
    for (size_t i = 0; i < n; i++)
        if (infos[i].id > (int64_t)max_id && infos[i].id < INT32_MAX)
            max_id = (size_t)infos[i].id;
    if (max_id > n + w->c->n_tracks + 1000000)
        return -EBADMSG;
    w->n_ids = max_id + 1;
    w->last = calloc(w->n_ids, sizeof *w->last);
    w->group_of = malloc(w->n_ids * sizeof *w->group_of);
    w->workload_s = calloc(w->c->n + 1, sizeof *w->workload_s);
    w->untracked_s = calloc(w->c->n + 1, sizeof *w->untracked_s);
    w->has_thread = calloc(w->c->n_tracks + 1, 1);
    w->sums = calloc(w->c->n_groups + 1, sizeof *w->sums);
    if (!w->last || !w->group_of || !w->workload_s || !w->untracked_s || !w->has_thread || !w->sums)
        return -ENOMEM;
    memset(w->group_of, 0xff, w->n_ids * sizeof *w->group_of);
    for (size_t g = 0; g < w->c->n_groups; g++)
        if (w->c->group_process[g] > 0 && !w->c->group_pool[g])
            w->group_of[w->c->group_process[g]] = (uint32_t)g;
    return 0;
}

static int fill_busy(struct nrg_cells *c, struct nrg_frame *frame)
{
    size_t channel = nrg_frame_find(frame, "cpu.busy", NRG_SECONDS);
    const struct nrg_timeline *busy = nrg_frame_timeline(frame, channel);
    if (!busy)
        return 0;
    c->busy_s = calloc(c->n + 1, sizeof *c->busy_s);
    if (!c->busy_s)
        return -ENOMEM;
    for (size_t k = 0; k < c->n; k++)
        c->busy_s[k] = nrg_timeline_between(busy, c->begin_ns[k], c->begin_ns[k + 1], NULL);
    nrg_frame_drop(frame, channel);
    return 0;
}

/* Seconds of CPU become CPU per second with a span open. Needs the processes' seconds. */
static void weigh_tracks(struct weigher *w, size_t k, bool processes)
{
    struct nrg_cells *c = w->c;
    float *cpu_s = c->weight + k * c->n_tracks, *open_s = c->open_s + k * c->n_tracks;
    memset(w->sums, 0, (c->n_groups + 1) * sizeof *w->sums);
    for (size_t i = 0; i < c->n_tracks; i++) {
        struct group_sums *sums = &w->sums[c->track_group[i]];
        sums->used_s += (double)cpu_s[i];
        sums->unknown_s += w->has_thread[i] ? 0 : (double)open_s[i];
    }
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
            share[g] = w->untracked_s[k];
        share[g] /= all;
    }
}

static void finish(struct weigher *w, size_t k)
{
    struct nrg_cells *c = w->c;
    double mine = (double)w->workload_s[k];
    if (mine > 0) {
        weigh_tracks(w, k, true);
        share_by_processes(w, k);
    } else {
        share_by_tracks(w, k, 0);
        weigh_tracks(w, k, false);
    }
    if (c->has_processes && c->busy_s && c->busy_s[k] > 1e-6)
        c->other[k] = (float)fmax(0, 1 - mine / c->busy_s[k]);
    for (size_t g = 0; g < c->n_groups; g++)
        if (c->group_pool[g])
            c->share[k * c->n_groups + g] = 1; /* one group in such a pool */
}

int nrg_cells_weigh(struct nrg_cells *c, struct nrg_frame *frame,
                    const struct nrg_span_catalog *catalog)
{
    struct weigher w = {.c = c, .catalog = catalog};
    int rc = prepare(&w, frame);
    if (!rc)
        rc = fill_busy(c, frame);
    if (!rc)
        rc = stream(&w, frame, NRG_PROCESSES, NRG_P_COLUMNS, on_process_rows);
    if (!rc)
        rc = stream(&w, frame, NRG_THREADS, NRG_T_COLUMNS, on_thread_rows);
    for (size_t k = 0; !rc && k < c->n; k++)
        finish(&w, k);
    free(w.last);
    free(w.group_of);
    free(w.workload_s);
    free(w.untracked_s);
    free(w.has_thread);
    free(w.sums);
    return rc;
}
