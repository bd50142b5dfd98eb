/*
 * What cpu-time needs of a recording: the readings of each thread's CPU time as they are, and the
 * CPU time of each process cell by cell. See cputime.h.
 *
 * Memory is bounded: where threads have more than MAX_READINGS in all, those that come shortly
 * after another are left out. The intervals between them are then longer, and bounds wider, but
 * still true.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "attribute/cputime/cputime.h"
#include "base/checked.h"
#include "base/mem.h"

#define MAX_READINGS ((size_t)1 << 20)
#define FIRST_GAP_NS NRG_NS_PER_MS
#define READ_NS      10000  /* between the reading and its time stamp, at most */
#define TOGETHER_NS  200000 /* readings closer than this were made in one go */
#define FAR_NS       (5 * NRG_NS_PER_MS)
#define CLOSE_NS     (50 * NRG_NS_PER_MS) /* readings of a thread that reads its CPU time itself */

struct process {
    struct nrg_cpu_reading last;
    uint32_t group; /* UINT32_MAX: none */
    bool seen;
};

struct reader {
    struct nrg_cpu_readings *to;
    const struct nrg_engine *e;
    struct process *processes; /* by id */
    size_t n_ids;
    uint32_t unknown; /* the group of the processes without tracks; UINT32_MAX: none */
};

static int by_time(const void *a, const void *b)
{
    const struct nrg_cpu_reading *x = a, *y = b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->cpu_ns < y->cpu_ns ? -1 : x->cpu_ns > y->cpu_ns;
}

/* More CPU time than there was time, by more than the reading itself takes. */
static bool is_impossible(const struct nrg_cpu_reading *from, const struct nrg_cpu_reading *to)
{
    int64_t ns = to->t_ns - from->t_ns;
    return to->cpu_ns - from->cpu_ns > ns + ns / 100 + READ_NS;
}

/*
 * Several series may have readings of one thread. What the kernel shows of a thread that runs is up
 * to a tick old, what the thread reads itself is not. So a reading may be less than the one before,
 * or so low that the next one is impossible: it is left out.
 */
static void put_in_order(struct nrg_cpu_track *track)
{
    struct nrg_cpu_reading *rows = track->rows;
    size_t n = 0;
    if (track->n)
        qsort(rows, track->n, sizeof *rows, by_time);
    for (size_t i = 0; i < track->n; i++) {
        if (n && (rows[i].t_ns <= rows[n - 1].t_ns || rows[i].cpu_ns < rows[n - 1].cpu_ns))
            continue;
        if (n > 1 && is_impossible(&rows[n - 1], &rows[i]) &&
            !is_impossible(&rows[n - 2], &rows[i]))
            n--;
        rows[n++] = rows[i];
    }
    track->n = n;
}

/* Leaves out readings that come too shortly after another. */
static void thin_track(struct nrg_cpu_track *track, int64_t gap_ns)
{
    size_t n = 0;
    put_in_order(track);
    for (size_t i = 0; i < track->n; i++)
        if (!n || track->rows[i].t_ns - track->rows[n - 1].t_ns >= gap_ns)
            track->rows[n++] = track->rows[i];
    track->n = n;
}

static void thin_all(struct nrg_cpu_readings *to, const struct nrg_cells *c)
{
    to->gap_ns = to->gap_ns ? 2 * to->gap_ns : FIRST_GAP_NS;
    to->n_rows = 0;
    for (size_t i = 0; i < c->n_tracks + c->n_groups; i++) {
        struct nrg_cpu_track *track =
            i < c->n_tracks ? &to->tracks[i] : &to->processes[i - c->n_tracks];
        thin_track(track, to->gap_ns);
        to->n_rows += track->n;
    }
}

/* Keeps a reading, unless it comes too shortly after another. 0 or -ENOMEM. */
static int keep_reading(struct reader *r, struct nrg_cpu_track *track, struct nrg_cpu_reading row)
{
    struct nrg_cpu_readings *to = r->to;
    if (track->n && row.t_ns > track->rows[track->n - 1].t_ns &&
        row.t_ns - track->rows[track->n - 1].t_ns < to->gap_ns)
        return 0;
    if (nrg_append(&track->rows, &track->n, &track->cap, &row, sizeof row))
        return -ENOMEM;
    if (++to->n_rows > MAX_READINGS)
        thin_all(to, &r->e->cells);
    return 0;
}

static void add_process_time(struct reader *r, const struct process *p, int64_t t_ns,
                             int64_t cpu_ns)
{
    const struct nrg_cells *c = &r->e->cells;
    double used_s = (double)(cpu_ns - p->last.cpu_ns) * 1e-9;
    uint32_t group = p->group != UINT32_MAX ? p->group : r->unknown;
    nrg_cells_spread(c, p->last.t_ns, t_ns, used_s, r->to->workload_s, 1);
    if (group != UINT32_MAX)
        nrg_cells_spread(c, p->last.t_ns, t_ns, used_s, r->to->group_s + group, c->n_groups);
    r->to->any = true;
}

static int on_process_rows(void *arg, const struct nrg_rows *rows)
{
    struct reader *r = arg;
    for (size_t i = 0; i < rows->n; i++) {
        int64_t id = nrg_rows_column(rows, NRG_P_PROCESS)[i], t_ns = rows->t_ns[i];
        int64_t cpu_ns = nrg_rows_column(rows, NRG_P_CPU_NS)[i];
        int64_t threads = nrg_rows_column(rows, NRG_P_THREADS)[i];
        if (!nrg_is_id(id, r->n_ids) || !nrg_is_time(t_ns) || !nrg_is_time(cpu_ns))
            continue;
        struct process *p = &r->processes[id];
        if (p->seen && t_ns > p->last.t_ns && cpu_ns >= p->last.cpu_ns)
            add_process_time(r, p, t_ns, cpu_ns);
        if (threads != NRG_MISSING && p->group != UINT32_MAX)
            r->to->threads[p->group] = fmaxf(r->to->threads[p->group], (float)threads);
        p->last = (struct nrg_cpu_reading){t_ns, cpu_ns};
        p->seen = true;
        if (p->group != UINT32_MAX && keep_reading(r, &r->to->processes[p->group], p->last))
            return -ENOMEM;
    }
    return 0;
}

static int on_thread_rows(void *arg, const struct nrg_rows *rows)
{
    struct reader *r = arg;
    for (size_t i = 0; i < rows->n; i++) {
        struct nrg_cpu_reading row = {rows->t_ns[i], nrg_rows_column(rows, NRG_T_CPU_NS)[i]};
        const struct nrg_span_track *known =
            nrg_span_catalog_track(&r->e->catalog, nrg_rows_column(rows, NRG_T_TRACK)[i]);
        if (!known || !nrg_is_time(row.t_ns) || !nrg_is_time(row.cpu_ns))
            continue;
        size_t at = (size_t)(known - r->e->catalog.tracks);
        if (r->e->cells.track_pool[at])
            continue; /* a GPU's work is not its thread's CPU time */
        if (keep_reading(r, &r->to->tracks[at], row))
            return -ENOMEM;
    }
    return 0;
}

static void sum_track(struct reader *r, size_t at)
{
    const struct nrg_cells *c = &r->e->cells;
    const struct nrg_cpu_track *track = &r->to->tracks[at];
    size_t group = c->track_group[at];
    for (size_t i = 1; i < track->n; i++) {
        int64_t from_ns = track->rows[i - 1].t_ns, to_ns = track->rows[i].t_ns;
        double used_s = (double)(track->rows[i].cpu_ns - track->rows[i - 1].cpu_ns) * 1e-9;
        r->to->any = true;
        if (!(used_s > 0))
            continue;
        nrg_cells_spread(c, from_ns, to_ns, used_s, r->to->tracks_s + group, c->n_groups);
    }
}

/* Where no process is known, the threads are all there is. */
static void complete_cells(struct nrg_cpu_readings *to, const struct nrg_cells *c)
{
    for (size_t k = 0; k < c->n; k++) {
        float *group_s = to->group_s + k * c->n_groups, *tracks_s = to->tracks_s + k * c->n_groups;
        bool known = to->workload_s[k] > 0;
        for (size_t g = 0; g < c->n_groups && !known; g++) {
            group_s[g] = tracks_s[g];
            to->workload_s[k] += tracks_s[g];
        }
    }
}

/* ---- threads without spans ---- */

/* The reading of a thread that was made in one go with that of its process; NULL: none was. */
static const struct nrg_cpu_reading *read_together(const struct nrg_cpu_reading *before,
                                                   const struct nrg_cpu_reading *after,
                                                   int64_t t_ns)
{
    if (after->t_ns - before->t_ns < FAR_NS) /* a line between them is as close */
        return NULL;
    if (llabs(after->t_ns - t_ns) < TOGETHER_NS)
        return after;
    return llabs(before->t_ns - t_ns) < TOGETHER_NS ? before : NULL;
}

/* CPU time of a thread up to t_ns; *at is its next reading, and moves on. *late_s: how much later
 * it was read in one go with its process; NAN: it was not. */
static double track_cpu_s(const struct nrg_cpu_track *track, size_t *at, int64_t t_ns,
                          double *late_s)
{
    *late_s = NAN;
    while (*at < track->n && track->rows[*at].t_ns < t_ns)
        (*at)++;
    if (!track->n)
        return 0;
    const struct nrg_cpu_reading *after = &track->rows[*at < track->n ? *at : track->n - 1];
    const struct nrg_cpu_reading *before = &track->rows[*at ? *at - 1 : 0];
    const struct nrg_cpu_reading *with = read_together(before, after, t_ns);
    double width_ns = (double)(after->t_ns - before->t_ns), part = 0;
    if (with) {
        *late_s = (double)(with->t_ns - t_ns) * 1e-9;
        return (double)with->cpu_ns * 1e-9;
    }
    if (width_ns > 0)
        part = fmin(fmax((double)(t_ns - before->t_ns) / width_ns, 0), 1);
    return ((double)before->cpu_ns + part * (double)(after->cpu_ns - before->cpu_ns)) * 1e-9;
}

/* Of an interval of the group, the part before t_ns; begin_ns: its own. */
static double part_before(const struct nrg_cpu_interval *row, int64_t begin_ns, int64_t t_ns)
{
    double width_ns = (double)(row->end_ns - begin_ns);
    return width_ns > 0 ? fmin(fmax((double)(t_ns - begin_ns) / width_ns, 0), 1) : 0;
}

/*
 * A thread is known from its first mark on, and says then what it has used before. That was outside
 * of spans, while its process worked: else it would be that of threads without spans, and count to
 * those that are open. `began_s`: CPU time of its process when that was first read.
 */
static void take_before(struct nrg_cpu_followers *f, const struct nrg_cpu_track *track,
                        double began_s)
{
    int64_t begin_ns = f->begin_ns, first_ns = track->n ? track->rows[0].t_ns : begin_ns;
    double used_s = track->n ? (double)track->rows[0].cpu_ns * 1e-9 - began_s : 0, all_s = 0;
    for (size_t i = 0; i < f->n && begin_ns < first_ns; begin_ns = f->rows[i++].end_ns)
        all_s += part_before(&f->rows[i], begin_ns, first_ns) * fmax((double)f->rows[i].cpu_s, 0);
    double part = all_s > 0 ? fmin(fmax(used_s / all_s, 0), 1) : 0;
    begin_ns = f->begin_ns;
    for (size_t i = 0; i < f->n && begin_ns < first_ns; begin_ns = f->rows[i++].end_ns) {
        double row_s =
            part * part_before(&f->rows[i], begin_ns, first_ns) * fmax((double)f->rows[i].cpu_s, 0);
        f->rows[i].cpu_s -= (float)row_s;
        f->rows[i].beside_s += (float)row_s;
    }
}

/* Takes the CPU time of a thread off the group's intervals. */
static void take_track(struct nrg_cpu_followers *f, const struct nrg_cpu_track *track)
{
    size_t at = 0;
    double late_s, last_s = track_cpu_s(track, &at, f->begin_ns, &late_s);
    for (size_t i = 0; i < f->n; i++) {
        struct nrg_cpu_interval *row = &f->rows[i];
        double now_s = track_cpu_s(track, &at, row->end_ns, &late_s), used_s = now_s - last_s;
        last_s = now_s;
        row->cpu_s -= (float)used_s;
        row->beside_s += (float)used_s;
        row->beside += used_s > 0 ? 1 : 0;
        row->late_s += isnan(late_s) ? 0 : (float)late_s;
        row->read += isnan(late_s) ? 0 : 1;
    }
}

/* Intervals between the readings of its process; where there is none, cells. */
static int start_followers(struct nrg_cpu_readings *to, const struct nrg_cells *c, size_t g)
{
    struct nrg_cpu_followers *f = &to->followers[g];
    struct nrg_cpu_track *process = &to->processes[g];
    put_in_order(process);
    bool read = process->n > 1;
    size_t n = read ? process->n - 1 : c->n;
    f->rows = nrg_arena_array(&to->memory, n + 1, sizeof *f->rows);
    if (!f->rows)
        return -ENOMEM;
    f->n = n;
    f->begin_ns = read ? process->rows[0].t_ns : c->begin_ns[0];
    for (size_t i = 0; i < n; i++) {
        const struct nrg_cpu_reading *begin = read ? &process->rows[i] : NULL;
        f->rows[i].end_ns = read ? begin[1].t_ns : c->begin_ns[i + 1];
        f->rows[i].cpu_s = read ? (float)((double)(begin[1].cpu_ns - begin->cpu_ns) * 1e-9)
                                : to->group_s[i * c->n_groups + g];
    }
    return 0;
}

static int make_followers(struct nrg_cpu_readings *to, const struct nrg_cells *c)
{
    int rc = 0;
    for (size_t g = 0; !rc && g < c->n_groups; g++)
        rc = start_followers(to, c, g);
    for (size_t i = 0; !rc && i < c->n_tracks; i++) {
        size_t g = c->track_group[i];
        if (c->track_pool[i])
            continue;
        take_track(&to->followers[g], &to->tracks[i]);
        if (to->processes[g].n > 1)
            take_before(&to->followers[g], &to->tracks[i],
                        (double)to->processes[g].rows[0].cpu_ns * 1e-9);
    }
    return rc;
}

/*
 * What the kernel shows of a thread that runs is up to a tick old. But a thread can't use more than
 * the time: by a reading it has used at least what it has at the next one, less the time between.
 * Of a thread that runs on until it reads its CPU time itself, that is all that was missing.
 */
static void catch_up(struct nrg_cpu_track *track)
{
    struct nrg_cpu_reading *rows = track->rows;
    for (size_t i = track->n; i-- > 1;) {
        int64_t least_ns = rows[i].cpu_ns - (rows[i].t_ns - rows[i - 1].t_ns);
        if (rows[i - 1].cpu_ns < least_ns)
            rows[i - 1].cpu_ns = least_ns;
    }
}

/*
 * Between readings that a thread made itself, one of the recorder, which is up to a tick old, gives
 * what is before it too little and what is after it too much: it is left out. It came with a
 * reading of the process; the few of the thread's own that did so by chance are no loss.
 */
static void leave_out_late(struct nrg_cpu_track *track, const struct nrg_cpu_track *process)
{
    struct nrg_cpu_reading *rows = track->rows;
    size_t n = track->n ? 1 : 0, at = 0;
    for (size_t i = 1; i < track->n; i++) {
        while (at < process->n && process->rows[at].t_ns < rows[i].t_ns - TOGETHER_NS)
            at++;
        bool together = at < process->n && process->rows[at].t_ns < rows[i].t_ns + TOGETHER_NS;
        if (!together || i + 1 == track->n || rows[i + 1].t_ns - rows[n - 1].t_ns > CLOSE_NS)
            rows[n++] = rows[i];
    }
    track->n = n;
}

static int prepare_reader(struct reader *r, struct nrg_arena *memory)
{
    const struct nrg_cells *c = &r->e->cells;
    struct nrg_cpu_readings *to = r->to;
    int rc = nrg_recording_process_ids(r->e->recording, &r->n_ids);
    if (rc)
        return rc;
    r->processes = nrg_arena_array(memory, r->n_ids + 1, sizeof *r->processes);
    to->tracks = nrg_arena_array(&to->memory, c->n_tracks + 1, sizeof *to->tracks);
    to->group_s = nrg_arena_array(&to->memory, c->n * c->n_groups + 1, sizeof *to->group_s);
    to->tracks_s = nrg_arena_array(&to->memory, c->n * c->n_groups + 1, sizeof *to->tracks_s);
    to->processes = nrg_arena_array(&to->memory, c->n_groups + 1, sizeof *to->processes);
    to->followers = nrg_arena_array(&to->memory, c->n_groups + 1, sizeof *to->followers);
    to->workload_s = nrg_arena_array(&to->memory, c->n + 1, sizeof *to->workload_s);
    to->threads = nrg_arena_array(&to->memory, c->n_groups + 1, sizeof *to->threads);
    if (memory->failed || to->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_ids; i++)
        r->processes[i].group = UINT32_MAX;
    r->unknown = UINT32_MAX;
    for (size_t g = 0; g < c->n_groups; g++) {
        if (c->group_pool[g])
            continue;
        if (!c->group_process[g])
            r->unknown = (uint32_t)g;
        else if (nrg_is_id(c->group_process[g], r->n_ids))
            r->processes[c->group_process[g]].group = (uint32_t)g;
    }
    return 0;
}

int nrg_cpu_readings_init(struct nrg_cpu_readings *to, struct nrg_engine *e, int64_t gap_ns)
{
    struct nrg_arena memory = {0};
    struct reader r = {.to = to, .e = e};
    *to = (struct nrg_cpu_readings){.gap_ns = gap_ns};
    int rc = prepare_reader(&r, &memory);
    if (!rc)
        rc = nrg_recording_read_kind(e->recording, NRG_PROCESSES, NRG_P_COLUMNS, on_process_rows,
                                     &r, NULL);
    if (!rc)
        rc = nrg_recording_read_kind(e->recording, NRG_THREADS, NRG_T_COLUMNS, on_thread_rows, &r,
                                     NULL);
    for (size_t i = 0; !rc && i < e->cells.n_tracks; i++) {
        put_in_order(&to->tracks[i]);
        sum_track(&r, i);
    }
    if (!rc)
        complete_cells(to, &e->cells);
    if (!rc)
        rc = make_followers(to, &e->cells);
    for (size_t i = 0; !rc && i < e->cells.n_tracks; i++) {
        if (e->cells.track_pool[i])
            continue;
        catch_up(&to->tracks[i]); /* not before: processes are late by as much */
        leave_out_late(&to->tracks[i], &to->processes[e->cells.track_group[i]]);
    }
    nrg_arena_release(&memory);
    if (rc)
        nrg_cpu_readings_release(to, e);
    return rc;
}

void nrg_cpu_readings_release(struct nrg_cpu_readings *to, const struct nrg_engine *e)
{
    for (size_t i = 0; to->tracks && i < e->cells.n_tracks; i++)
        free(to->tracks[i].rows);
    for (size_t g = 0; to->processes && g < e->cells.n_groups; g++)
        free(to->processes[g].rows);
    nrg_arena_release(&to->memory);
    *to = (struct nrg_cpu_readings){0};
}
