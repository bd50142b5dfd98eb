/*
 * Energy per process. The run is cut into cells; in each cell the processors' energy above idle
 * is shared out by CPU time, against the busy time of the whole machine, so that what other
 * processes used stays with them; each CPU second times the watts of its process, where power shows
 * that they differ (process_watts.h). idle_power.c finds idle power; where it is not known the
 * whole energy counts as active.
 *
 * DRAM goes by resident memory against all memory in use, a GPU by share of its processors.
 *
 * Process rows are streamed three times (first how much all used per cell, then what the largest
 * used, then what that makes for each), so that memory does not grow with the length of the
 * recording.
 */
#include "energy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "energy/others.h"
#include "energy/process_watts.h"
#include "energy/recorder_use.h"
#include "energy/share_cells.h"

#define CELL_COVERED 0.98 /* less of a cell is a gap; its edges are a reading's work */

enum pass { COUNT_ALL, COUNT_LARGEST, SHARE_OUT };

struct last_row {
    int64_t t_ns, cpu_ns, rss_bytes;
    bool seen;
};

struct shares {
    struct nrg_summary *s;
    struct nrg_frame *frame;
    struct nrg_share_cells cells;
    bool has_cpu, has_dram, has_busy, has_memory;
    double tick_s;         /* resolution of the busy time */
    struct last_row *last; /* per process id */
    size_t n_ids;
    size_t damaged; /* chunks of process rows that can't be read */
    double *used_s; /* per process id */
    struct nrg_process_watts watts;
    enum pass pass;
};

/* All of the domain's energy, also what is not in its timeline: a correction of its lag. */
static void fill_domain(struct shares *sh, const struct nrg_domain *d,
                        const struct nrg_timeline *tl)
{
    bool cpu = nrg_is_cpu_domain(d);
    double all_j = tl ? nrg_timeline_between(tl, nrg_cell_begin(&sh->cells, 0),
                                             nrg_cell_end(&sh->cells, sh->cells.n - 1), NULL)
                      : 0;
    double scale = all_j > 0 && d->energy_j > 0 ? d->energy_j / all_j : 1;
    *(cpu ? &sh->has_cpu : &sh->has_dram) = true;
    for (size_t k = 0; k < sh->cells.n; k++) {
        struct nrg_share_cell *cell = &sh->cells.at[k];
        int64_t begin_ns = nrg_cell_begin(&sh->cells, k), end_ns = nrg_cell_end(&sh->cells, k),
                covered_ns = 0;
        double j = tl ? nrg_timeline_between(tl, begin_ns, end_ns, &covered_ns) : 0;
        *(cpu ? &cell->cpu_j : &cell->dram_j) += scale * j;
        cell->gap |= cpu && (double)covered_ns < CELL_COVERED * (double)(end_ns - begin_ns);
    }
}

static void fill_energy(struct shares *sh)
{
    for (size_t i = 0; i < sh->s->n_domains; i++) {
        const struct nrg_domain *d = &sh->s->domains[i];
        if (!nrg_is_cpu_domain(d) && !nrg_is_dram_domain(d))
            continue;
        size_t channel = (size_t)(d->channel - sh->frame->channels);
        fill_domain(sh, d, nrg_frame_timeline(sh->frame, channel));
        nrg_frame_drop(sh->frame, channel);
    }
}

static void fill_recorder(struct shares *sh)
{
    size_t channel = nrg_frame_find(sh->frame, "cpu.recorder", NRG_SECONDS);
    const struct nrg_timeline *own = nrg_frame_timeline(sh->frame, channel);
    sh->s->recorder_cpu_s =
        own ? nrg_timeline_between(own, sh->s->begin_ns, sh->s->end_ns, NULL) : NAN;
}

static void fill_machine(struct shares *sh)
{
    size_t channel = nrg_frame_find(sh->frame, "cpu.busy", NRG_SECONDS);
    const struct nrg_timeline *busy = nrg_frame_timeline(sh->frame, channel);
    const struct nrg_timeline *memory =
        nrg_frame_timeline(sh->frame, nrg_frame_find(sh->frame, "memory.used", NRG_BYTES));
    sh->has_busy = busy != NULL;
    sh->tick_s = busy ? sh->frame->channels[channel].channel.resolution : 0;
    sh->has_memory = memory != NULL;
    for (size_t k = 0; k < sh->cells.n; k++) {
        sh->cells.at[k].busy_s = nrg_cell_sum(&sh->cells, busy, k);
        sh->cells.at[k].memory_bytes_s = nrg_cell_sum(&sh->cells, memory, k);
    }
}

/* Adds one stretch of one process to its cells, or its energy in the second pass. */
static void add_stretch(struct shares *sh, struct nrg_process_energy *p, int64_t from_ns,
                        int64_t to_ns, double cpu_s, double rss_bytes)
{
    double length = (double)(to_ns - from_ns);
    int64_t begin = from_ns > sh->s->begin_ns ? from_ns : sh->s->begin_ns;
    int64_t end = to_ns < sh->s->end_ns ? to_ns : sh->s->end_ns;
    for (int64_t at = begin; at < end;) {
        size_t k = nrg_cell_at(&sh->cells, at);
        if (k >= sh->cells.n)
            return;
        int64_t stop = nrg_cell_end(&sh->cells, k) < end ? nrg_cell_end(&sh->cells, k) : end;
        if (stop <= at)
            return;
        struct nrg_share_cell *c = &sh->cells.at[k];
        double part = (double)(stop - at), cpu = cpu_s * part / length;
        double bytes_s = rss_bytes * part / 1e9;
        size_t id = (size_t)(p - sh->s->processes);
        if (sh->pass == COUNT_ALL) {
            c->process_s += cpu;
            c->process_bytes_s += bytes_s;
            sh->used_s[id] += cpu;
        } else if (sh->pass == COUNT_LARGEST) {
            sh->watts.cpu_s[k][sh->watts.slot_of[id]] += cpu;
        } else {
            double busy = nrg_process_watts_sum(&sh->watts, k),
                   memory = fmax(c->memory_bytes_s, c->process_bytes_s);
            double active = c->cpu_j - (sh->s->split == NRG_SPLIT_ACTIVE ? c->idle_j : 0);
            double share = busy > 0 ? cpu * sh->watts.watts[sh->watts.slot_of[id]] / busy : 0;
            p->cpu_time_s += cpu;
            p->cpu_j += active * share;
            c->share += share;
            p->dram_j += memory > 0 ? c->dram_j * bytes_s / memory : 0;
        }
        at = stop;
    }
}

static int on_process_rows(void *arg, const struct nrg_rows *rows)
{
    struct shares *sh = arg;
    const int64_t *ids = nrg_rows_column(rows, NRG_P_PROCESS);
    const int64_t *cpu = nrg_rows_column(rows, NRG_P_CPU_NS);
    const int64_t *rss = nrg_rows_column(rows, NRG_P_RSS_BYTES);
    for (size_t i = 0; i < rows->n; i++) {
        if (!nrg_is_id(ids[i], sh->n_ids) || cpu[i] == NRG_MISSING)
            continue;
        struct last_row *last = &sh->last[ids[i]];
        struct nrg_process_energy *p = &sh->s->processes[ids[i]];
        if (last->seen && rows->t_ns[i] > last->t_ns && cpu[i] >= last->cpu_ns)
            add_stretch(sh, p, last->t_ns, rows->t_ns[i],
                        ((double)cpu[i] - (double)last->cpu_ns) / 1e9,
                        last->rss_bytes == NRG_MISSING ? 0 : (double)last->rss_bytes);
        *last = (struct last_row){rows->t_ns[i], cpu[i], rss[i], true};
        if (rss[i] != NRG_MISSING && rss[i] > p->peak_rss_bytes)
            p->peak_rss_bytes = rss[i];
    }
    return 0;
}

static int on_memory_rows(void *arg, const struct nrg_rows *rows)
{
    struct shares *sh = arg;
    const int64_t *ids = nrg_rows_column(rows, NRG_M_PROCESS);
    const int64_t *pss = nrg_rows_column(rows, NRG_M_PSS_BYTES);
    for (size_t i = 0; i < rows->n; i++)
        if (nrg_is_id(ids[i], sh->n_ids) && pss[i] != NRG_MISSING &&
            pss[i] > sh->s->processes[ids[i]].peak_pss_bytes)
            sh->s->processes[ids[i]].peak_pss_bytes = pss[i];
    return 0;
}

static int read_rows(struct shares *sh, enum nrg_series_kind kind,
                     int (*each)(void *, const struct nrg_rows *))
{
    return nrg_recording_read_kind(sh->frame->recording, kind, 0, each, sh, &sh->damaged);
}

/* Processes are indexed by id while rows are streamed, and packed afterwards. */
static int prepare_processes(struct shares *sh)
{
    size_t n;
    const struct nrg_process_info *infos = nrg_recording_processes(sh->frame->recording, &n);
    int rc = nrg_recording_process_ids(sh->frame->recording, &sh->n_ids);
    if (rc)
        return rc;
    sh->last = nrg_calloc(sh->n_ids, sizeof *sh->last);
    sh->used_s = nrg_calloc(sh->n_ids, sizeof *sh->used_s);
    sh->s->processes = nrg_calloc(sh->n_ids, sizeof *sh->s->processes);
    if (!sh->last || !sh->used_s || !sh->s->processes)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (nrg_is_id(infos[i].id, sh->n_ids))
            sh->s->processes[infos[i].id].info = &infos[i];
    return 0;
}

static int by_cpu_time(const void *a, const void *b)
{
    const struct nrg_process_energy *x = a, *y = b;
    return x->cpu_time_s < y->cpu_time_s ? 1 : x->cpu_time_s > y->cpu_time_s ? -1 : 0;
}

static void pack_processes(struct shares *sh)
{
    struct nrg_summary *s = sh->s;
    size_t n = 0;
    for (size_t i = 0; i < sh->n_ids; i++) {
        struct nrg_process_energy p = s->processes[i];
        if (!p.info || p.info->first_ns > s->end_ns ||
            (p.info->last_ns < s->begin_ns && p.info->pid > 0))
            continue;
        p.still_running = !p.info->ended && p.info->pid > 0;
        if (p.info->peak_rss_bytes > p.peak_rss_bytes)
            p.peak_rss_bytes = p.info->peak_rss_bytes;
        p.peak_rss_bytes = p.peak_rss_bytes ? p.peak_rss_bytes : NRG_MISSING;
        p.peak_pss_bytes = p.peak_pss_bytes ? p.peak_pss_bytes : NRG_MISSING;
        p.gpu_j = NAN; /* see gpu_shares.c */
        if (!sh->has_cpu || s->processes_elsewhere ||
            (!sh->has_busy && s->split == NRG_SPLIT_ACTIVE))
            p.cpu_j = NAN;
        if (!sh->has_dram || !sh->has_memory || s->processes_elsewhere)
            p.dram_j = NAN;
        s->cpu_time_s += p.cpu_time_s;
        s->processes[n++] = p;
    }
    s->n_processes = n;
    if (n)
        qsort(s->processes, n, sizeof *s->processes, by_cpu_time);
}

static void sum_up(struct shares *sh)
{
    struct nrg_summary *s = sh->s;
    double cpu = 0, idle = 0, mine = 0, busy = 0, peak_bytes = 0;
    for (size_t k = 0; k < sh->cells.n; k++) {
        const struct nrg_share_cell *c = &sh->cells.at[k];
        double dt = nrg_cell_s(&sh->cells, k);
        cpu += c->cpu_j;
        idle += c->idle_j;
        busy += c->busy_s;
        if (dt > 0)
            peak_bytes = fmax(peak_bytes, c->process_bytes_s / dt);
    }
    for (size_t i = 0; i < s->n_processes; i++)
        mine = nrg_sum_known(mine, s->processes[i].cpu_j);
    bool active = s->split == NRG_SPLIT_ACTIVE;
    s->cpu_domain_j = sh->has_cpu ? cpu : NAN;
    s->idle_j = sh->has_cpu && s->idle_method && active ? idle : NAN;
    s->idle_w = s->idle_method ? idle / s->duration_s : NAN;
    s->other_processes_j = sh->has_cpu && sh->has_busy && !s->processes_elsewhere
                               ? fmax(0, cpu - (isnan(s->idle_j) ? 0 : idle) - mine)
                               : NAN;
    int64_t cpus = 0;
    nrg_recording_integer(sh->frame->recording, "cpus", &cpus);
    s->cpu_utilisation =
        sh->has_busy && cpus > 0 ? fmin(1, busy / s->duration_s / (double)cpus) : NAN;
    /* A peak may be shorter than a cell: the sum is at least the largest of one process. */
    for (size_t i = 0; i < s->n_processes; i++)
        if (s->processes[i].peak_rss_bytes != NRG_MISSING)
            peak_bytes = fmax(peak_bytes, (double)s->processes[i].peak_rss_bytes);
    s->peak_memory_bytes = peak_bytes > 0 ? rint(peak_bytes) : NAN;
    if (sh->has_cpu && !s->idle_method && active)
        nrg_summary_missing(s, "idle power",
                            "not known, so all energy counts as active: "
                            "--baseline 5s measures it first");
    if (s->processes_elsewhere)
        nrg_summary_missing(s, "energy per process",
                            "the sensors are those of a captured machine (--root), the processes "
                            "are not");
    else if (sh->has_cpu && !sh->has_busy)
        nrg_summary_missing(s, "energy per process", "busy time of the machine was not recorded");
}

/* After the first pass: what the machine was busy with besides the workload. */
static int fill_others(struct shares *sh)
{
    if (!sh->has_busy)
        return 0;
    double *sums = nrg_calloc(4 * sh->cells.n + 1, sizeof *sums);
    if (!sums)
        return -ENOMEM;
    struct nrg_recorder_use recorder = nrg_recorder_use_find(sh->frame);
    double *mine_s = sums + sh->cells.n, *other_s = mine_s + sh->cells.n;
    double *recorder_s = other_s + sh->cells.n;
    for (size_t k = 0; k < sh->cells.n; k++) {
        sums[k] = sh->cells.at[k].busy_s;
        mine_s[k] = sh->cells.at[k].process_s;
        recorder_s[k] = nrg_recorder_use_s(&recorder, nrg_cell_begin(&sh->cells, k),
                                           nrg_cell_end(&sh->cells, k));
    }
    nrg_others_spread(sums, mine_s, recorder_s, sh->cells.n, sh->tick_s, other_s);
    for (size_t k = 0; k < sh->cells.n; k++)
        sh->cells.at[k].other_s = other_s[k];
    free(sums);
    return 0;
}

/* After the second pass: watts per CPU second, where idle power is known. */
static int fit_watts(struct shares *sh)
{
    double *active_j = nrg_calloc(2 * sh->cells.n + 1, sizeof *active_j);
    if (!active_j)
        return -ENOMEM;
    double *length_s = active_j + sh->cells.n;
    for (size_t k = 0; k < sh->cells.n; k++) {
        sh->watts.cpu_s[k][NRG_WATTS_OTHERS] = sh->cells.at[k].other_s;
        active_j[k] = sh->cells.at[k].gap ? NAN : sh->cells.at[k].cpu_j - sh->cells.at[k].idle_j;
        length_s[k] = nrg_cell_s(&sh->cells, k);
    }
    bool known = sh->has_cpu && sh->s->idle_method && sh->s->split == NRG_SPLIT_ACTIVE &&
                 strcmp(sh->s->idle_method, "estimate") != 0;
    int rc = known ? nrg_process_watts_fit(&sh->watts, active_j, length_s) : 0;
    free(active_j);
    return rc;
}

static int read_again(struct shares *sh, enum pass pass)
{
    sh->pass = pass;
    memset(sh->last, 0, sh->n_ids * sizeof *sh->last);
    return read_rows(sh, NRG_PROCESSES, on_process_rows);
}

/* Cells that begin when CPU times were read need no interpolation of them. */
struct first_rows {
    const struct nrg_summary *s;
    int64_t since_ns; /* of the run's begin */
};

static int on_first_rows(void *arg, const struct nrg_rows *rows)
{
    struct first_rows *first = arg;
    for (size_t i = 0; i < rows->n; i++) {
        first->since_ns = rows->t_ns[i] - first->s->begin_ns;
        if (first->since_ns >= NRG_LEAST_CELL_NS / 4 && rows->t_ns[i] < first->s->end_ns)
            return 1;
    }
    first->since_ns = 0;
    return 0;
}

static int cut_cells(struct shares *sh)
{
    struct first_rows first = {.s = sh->s};
    int rc = nrg_recording_read_kind(sh->frame->recording, NRG_PROCESSES, 0, on_first_rows, &first,
                                     NULL); /* what is damaged is counted when all are read */
    return rc < 0 ? rc
                  : nrg_share_cells_cut(&sh->cells, sh->s->begin_ns, sh->s->end_ns, first.since_ns);
}

/* After the last pass: what the workload may have used. */
static int bound_program(struct shares *sh)
{
    bool active = sh->s->split == NRG_SPLIT_ACTIVE;
    struct nrg_cpu_cell *cells = nrg_calloc(sh->cells.n + 1, sizeof *cells);
    if (!cells)
        return -ENOMEM;
    for (size_t k = 0; k < sh->cells.n; k++) {
        const struct nrg_share_cell *c = &sh->cells.at[k];
        double dt = nrg_cell_s(&sh->cells, k);
        double idle_j = active ? c->idle_j : 0;
        cells[k] = (struct nrg_cpu_cell){.cpu_j = c->cpu_j, .idle_j = idle_j, .share = c->share};
        cells[k].idle_least_j = active ? fmax(0, idle_j - sh->s->idle_found.less_w * dt) : 0;
        cells[k].idle_most_j = active ? fmin(c->cpu_j, idle_j + sh->s->idle_found.more_w * dt) : 0;
    }
    nrg_program_cpu(sh->s, cells, sh->cells.n, sh->watts.told_apart);
    free(cells);
    return 0;
}

int nrg_shares_make(struct nrg_summary *s, struct nrg_frame *frame)
{
    struct shares sh = {.s = s, .frame = frame};
    s->processes_elsewhere = nrg_recording_text(frame->recording, NRG_META_PROCESS_MACHINE) != NULL;
    int rc = cut_cells(&sh);
    if (!rc)
        rc = prepare_processes(&sh);
    if (!rc) {
        fill_energy(&sh);
        fill_machine(&sh);
        fill_recorder(&sh);
        nrg_idle_fill(s, frame, &sh.cells, sh.has_busy);
        rc = read_rows(&sh, NRG_PROCESSES, on_process_rows);
    }
    if (sh.damaged)
        nrg_summary_missing(s, "processes", "%zu damaged chunks of the recording are left out",
                            sh.damaged);
    if (!rc)
        rc = fill_others(&sh);
    if (!rc)
        rc = nrg_process_watts_init(&sh.watts, sh.used_s, sh.n_ids, sh.cells.n);
    if (!rc)
        rc = read_again(&sh, COUNT_LARGEST);
    if (!rc)
        rc = fit_watts(&sh);
    if (!rc)
        rc = read_again(&sh, SHARE_OUT);
    if (!rc)
        rc = read_rows(&sh, NRG_PROCESS_MEMORY, on_memory_rows);
    if (!rc) {
        pack_processes(&sh);
        sum_up(&sh);
        rc = bound_program(&sh);
    }
    free(sh.cells.at);
    free(sh.last);
    free(sh.used_s);
    nrg_process_watts_release(&sh.watts);
    return rc;
}
