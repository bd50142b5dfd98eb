/*
 * Energy per process. The run is cut into cells; in each cell the processors' energy above idle
 * is shared out by CPU time, against the busy time of the whole machine, so that what other
 * processes used stays with them; each CPU second times the watts of its process, where power shows
 * that they differ (process_watts.h). Idle power is the estimate's own, the baseline's, or, where
 * there is none, or the machine was busy meanwhile, and utilisation varied enough, the intercept of
 * power over busy CPUs; else it is not known and the whole energy counts as active.
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

#include "base/stats.h"
#include "energy/idle.h"
#include "energy/others.h"
#include "energy/process_watts.h"

#define MAX_CELLS     4096
#define MIN_CELL_NS   (100 * NRG_NS_PER_MS)
#define MIN_TOLD_S    0.05 /* power of a shorter cell says little */
#define LEAST_SHARE   0.05 /* quantile that stands for the least: one cell may be an outlier */
#define BASELINE_BUSY 0.05 /* of all CPUs: more than a quiet machine's own housekeeping */

struct cell {
    double cpu_j, dram_j;   /* of the domains */
    double idle_j;          /* of cpu_j */
    double busy_s;          /* CPU seconds of the whole machine */
    double process_s;       /* CPU seconds of the workload */
    double other_s;         /* and of all others */
    double memory_bytes_s;  /* memory in use * time */
    double process_bytes_s; /* of the workload */
    double share;           /* of the workload, in cpu_j above idle */
};

enum pass { COUNT_ALL, COUNT_LARGEST, SHARE_OUT };

struct last_row {
    int64_t t_ns, cpu_ns, rss_bytes;
    bool seen;
};

struct shares {
    struct nrg_summary *s;
    struct nrg_frame *frame;
    struct cell *cells;
    size_t n_cells;
    int64_t cell_ns;
    int64_t first_ns; /* length of the first cell: the others begin when CPU times were read */
    bool has_cpu, has_dram, has_busy, has_memory;
    double tick_s;                   /* resolution of the busy time */
    double idle_less_w, idle_more_w; /* that idle power may be, than what cells have of it */
    struct last_row *last;           /* per process id */
    size_t n_ids;
    size_t damaged; /* chunks of process rows that can't be read */
    double *used_s; /* per process id */
    struct nrg_process_watts watts;
    enum pass pass;
};

static int64_t cell_begin(const struct shares *sh, size_t k)
{
    return k ? sh->s->begin_ns + sh->first_ns + (int64_t)(k - 1) * sh->cell_ns : sh->s->begin_ns;
}

static size_t cell_at(const struct shares *sh, int64_t t_ns)
{
    int64_t since_ns = t_ns - sh->s->begin_ns - sh->first_ns;
    return since_ns < 0 ? 0 : 1 + (size_t)(since_ns / sh->cell_ns);
}

static int64_t cell_end(const struct shares *sh, size_t k)
{
    int64_t end = cell_begin(sh, k + 1);
    return end < sh->s->end_ns ? end : sh->s->end_ns;
}

/* 0 without a timeline. */
static double sum_in_cell(const struct shares *sh, const struct nrg_timeline *tl, size_t k)
{
    return tl ? nrg_timeline_between(tl, cell_begin(sh, k), cell_end(sh, k), NULL) : 0;
}

/* All of the domain's energy, also what is not in its timeline: a correction of its lag. */
static void fill_domain(struct shares *sh, const struct nrg_domain *d,
                        const struct nrg_timeline *tl)
{
    bool cpu = nrg_is_cpu_domain(d);
    double all_j =
        tl ? nrg_timeline_between(tl, cell_begin(sh, 0), cell_end(sh, sh->n_cells - 1), NULL) : 0;
    double scale = all_j > 0 && d->energy_j > 0 ? d->energy_j / all_j : 1;
    *(cpu ? &sh->has_cpu : &sh->has_dram) = true;
    for (size_t k = 0; k < sh->n_cells; k++)
        *(cpu ? &sh->cells[k].cpu_j : &sh->cells[k].dram_j) += scale * sum_in_cell(sh, tl, k);
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

static void fill_machine(struct shares *sh)
{
    size_t channel = nrg_frame_find(sh->frame, "cpu.busy", NRG_SECONDS);
    const struct nrg_timeline *busy = nrg_frame_timeline(sh->frame, channel);
    const struct nrg_timeline *memory =
        nrg_frame_timeline(sh->frame, nrg_frame_find(sh->frame, "memory.used", NRG_BYTES));
    sh->has_busy = busy != NULL;
    sh->tick_s = busy ? sh->frame->channels[channel].channel.resolution : 0;
    sh->has_memory = memory != NULL;
    for (size_t k = 0; k < sh->n_cells; k++) {
        sh->cells[k].busy_s = sum_in_cell(sh, busy, k);
        sh->cells[k].memory_bytes_s = sum_in_cell(sh, memory, k);
    }
}

/* Mean power of the processors' domains during the baseline run, NAN without one. */
static double baseline_w(const struct shares *sh, double *doubt_w)
{
    double sum = 0;
    *doubt_w = 0;
    for (size_t d = 0; d < sh->s->n_domains; d++) {
        const struct nrg_domain *domain = &sh->s->domains[d];
        size_t channel = (size_t)(domain->channel - sh->frame->channels);
        if (!nrg_is_cpu_domain(domain))
            continue;
        sum += nrg_frame_baseline_rate(sh->frame, channel);
        *doubt_w += nrg_frame_baseline_doubt(sh->frame, channel);
    }
    return sum > 0 ? sum : NAN;
}

/* What idle power is at most: the least power of a cell, but for outliers. */
static double least_power_w(const struct shares *sh)
{
    size_t n = 0;
    double least_w = 0, *w = calloc(sh->n_cells + 1, sizeof *w);
    for (size_t k = 0; w && k < sh->n_cells; k++) {
        double dt = (double)(cell_end(sh, k) - cell_begin(sh, k)) / 1e9;
        if (dt >= MIN_TOLD_S)
            w[n++] = sh->cells[k].cpu_j / dt;
    }
    if (n) {
        nrg_sort(w, n);
        least_w = fmax(0, w[(size_t)((double)n * LEAST_SHARE)]);
    }
    free(w);
    return least_w;
}

static double regressed_idle_w(const struct shares *sh, double *doubt_w)
{
    struct nrg_idle_fit fit;
    nrg_idle_init(&fit);
    for (size_t k = 0; k < sh->n_cells; k++) {
        double dt = (double)(cell_end(sh, k) - cell_begin(sh, k)) / 1e9;
        if (dt >= MIN_TOLD_S)
            nrg_idle_add(&fit, sh->cells[k].busy_s / dt, sh->cells[k].cpu_j / dt);
    }
    *doubt_w = 2 * nrg_idle_error(&fit);
    return nrg_idle_solve(&fit);
}

/* How much of the machine was busy during the baseline; 0 where that is not known, or little. */
static double baseline_busy(const struct shares *sh)
{
    int64_t cpus = 0;
    double busy_cpus =
        nrg_frame_baseline_rate(sh->frame, nrg_frame_find(sh->frame, "cpu.busy", NRG_SECONDS));
    nrg_recording_integer(sh->frame->recording, "cpus", &cpus);
    return cpus > 0 && busy_cpus > BASELINE_BUSY * (double)cpus ? busy_cpus / (double)cpus : 0;
}

/*
 * Idle power by the baseline, or by how power follows the load, and which it was; how far it may be
 * off. A baseline that was taken on a busy machine charges the others' work to idle: then idle may
 * be anything below it.
 */
static double measured_idle_w(struct shares *sh)
{
    double baseline_doubt_w, line_doubt_w = 0;
    double idle_w = baseline_w(sh, &baseline_doubt_w), busy = isnan(idle_w) ? 0 : baseline_busy(sh);
    bool wants_line = sh->has_busy && (isnan(idle_w) || busy > 0);
    double line_w = wants_line ? regressed_idle_w(sh, &line_doubt_w) : NAN;
    bool lower = line_w < idle_w, by_line = isnan(idle_w) || lower;
    if (busy > 0)
        nrg_summary_missing(sh->s, "idle power",
                            lower ? "the machine was %.0f %% busy during the baseline, so idle is "
                                    "taken from how power follows the load"
                                  : "the machine was %.0f %% busy during the baseline: idle is "
                                    "overstated and the command's energy understated",
                            100 * busy);
    sh->s->idle_method = !by_line ? "baseline" : isnan(line_w) ? NULL : "regression";
    if (!sh->s->idle_method) {
        sh->idle_more_w = least_power_w(sh);
        return NAN;
    }
    sh->idle_more_w = by_line ? line_doubt_w : baseline_doubt_w;
    sh->idle_less_w = !by_line && busy > 0 ? idle_w : sh->idle_more_w;
    return by_line ? line_w : idle_w;
}

/* How idle power that is recorded as energy was found: an import names that as its source
 * (import/aipm.c). */
static const char *recorded_method(const struct nrg_channel *c)
{
    static const char *const methods[] = {"baseline", "regression"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(c->source, methods[i]))
            return methods[i];
    return "estimate";
}

static bool cpus_are_estimated(const struct shares *sh)
{
    for (size_t d = 0; d < sh->s->n_domains; d++) {
        const struct nrg_domain *domain = &sh->s->domains[d];
        if (nrg_is_cpu_domain(domain) && domain->channel->channel.provenance == NRG_ESTIMATED)
            return true;
    }
    return false;
}

/*
 * Idle energy that the recording has; NULL. An import's has the drift of what it was found by. An
 * estimate's own has its band, and goes with estimated processors only: there no baseline knows
 * better, as it would be the same model, with what else ran meanwhile.
 */
static const struct nrg_timeline *recorded_idle(struct shares *sh)
{
    size_t channel = nrg_frame_find(sh->frame, NRG_IDLE_CHANNEL, NRG_ENERGY);
    const struct nrg_timeline *tl = nrg_frame_timeline(sh->frame, channel);
    const char *method = tl ? recorded_method(&sh->frame->channels[channel].channel) : NULL;
    bool estimate = tl && !strcmp(method, "estimate");
    if (!tl || (estimate && !cpus_are_estimated(sh)))
        return NULL;
    sh->s->idle_method = method;
    if (!estimate)
        sh->idle_less_w = sh->idle_more_w =
            NRG_IDLE_DRIFT * nrg_timeline_between(tl, sh->s->begin_ns, sh->s->end_ns, NULL) /
            sh->s->duration_s;
    return tl;
}

/* Idle energy of each cell, never more than the cell has. */
static void fill_idle(struct shares *sh)
{
    const struct nrg_timeline *recorded = recorded_idle(sh);
    double idle_w = recorded ? NAN : measured_idle_w(sh);
    for (size_t k = 0; sh->s->idle_method && k < sh->n_cells; k++) {
        double j = recorded ? sum_in_cell(sh, recorded, k)
                            : idle_w * (double)(cell_end(sh, k) - cell_begin(sh, k)) / 1e9;
        sh->cells[k].idle_j = fmin(j, sh->cells[k].cpu_j);
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
        size_t k = cell_at(sh, at);
        if (k >= sh->n_cells)
            return;
        int64_t stop = cell_end(sh, k) < end ? cell_end(sh, k) : end;
        if (stop <= at)
            return;
        struct cell *c = &sh->cells[k];
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
        if (ids[i] < 1 || (size_t)ids[i] >= sh->n_ids || cpu[i] == NRG_MISSING)
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
        if (ids[i] >= 1 && (size_t)ids[i] < sh->n_ids && pss[i] != NRG_MISSING &&
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
    sh->last = calloc(sh->n_ids, sizeof *sh->last);
    sh->used_s = calloc(sh->n_ids, sizeof *sh->used_s);
    sh->s->processes = calloc(sh->n_ids, sizeof *sh->s->processes);
    if (!sh->last || !sh->used_s || !sh->s->processes)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (infos[i].id > 0 && (size_t)infos[i].id < sh->n_ids)
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
    for (size_t k = 0; k < sh->n_cells; k++) {
        const struct cell *c = &sh->cells[k];
        double dt = (double)(cell_end(sh, k) - cell_begin(sh, k)) / 1e9;
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
    double *sums = calloc(3 * sh->n_cells + 1, sizeof *sums);
    if (!sums)
        return -ENOMEM;
    double *mine_s = sums + sh->n_cells, *other_s = mine_s + sh->n_cells;
    for (size_t k = 0; k < sh->n_cells; k++) {
        sums[k] = sh->cells[k].busy_s;
        mine_s[k] = sh->cells[k].process_s;
    }
    nrg_others_spread(sums, mine_s, sh->n_cells, sh->tick_s, other_s);
    for (size_t k = 0; k < sh->n_cells; k++)
        sh->cells[k].other_s = other_s[k];
    free(sums);
    return 0;
}

/* After the second pass: watts per CPU second, where idle power is known. */
static int fit_watts(struct shares *sh)
{
    double *active_j = calloc(2 * sh->n_cells + 1, sizeof *active_j);
    if (!active_j)
        return -ENOMEM;
    double *length_s = active_j + sh->n_cells;
    for (size_t k = 0; k < sh->n_cells; k++) {
        sh->watts.cpu_s[k][NRG_WATTS_OTHERS] = sh->cells[k].other_s;
        active_j[k] = sh->cells[k].cpu_j - sh->cells[k].idle_j;
        length_s[k] = (double)(cell_end(sh, k) - cell_begin(sh, k)) / 1e9;
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

static int on_first_rows(void *arg, const struct nrg_rows *rows)
{
    struct shares *sh = arg;
    for (size_t i = 0; i < rows->n; i++) {
        int64_t since_ns = rows->t_ns[i] - sh->s->begin_ns;
        if (since_ns >= MIN_CELL_NS / 4 && rows->t_ns[i] < sh->s->end_ns) {
            sh->first_ns = since_ns % sh->cell_ns;
            return 1;
        }
    }
    return 0;
}

/* Cells that begin when CPU times were read need no interpolation of them. */
static int cut_cells(struct shares *sh)
{
    int64_t duration = sh->s->end_ns - sh->s->begin_ns;
    sh->cell_ns = duration / MAX_CELLS > MIN_CELL_NS ? duration / MAX_CELLS + 1 : MIN_CELL_NS;
    int rc = read_rows(sh, NRG_PROCESSES, on_first_rows);
    sh->damaged = 0; /* counted when all are read */
    sh->n_cells = (size_t)((duration - sh->first_ns + sh->cell_ns - 1) / sh->cell_ns) + 1;
    sh->cells = calloc(sh->n_cells + 1, sizeof *sh->cells);
    return rc < 0 ? rc : sh->cells ? 0 : -ENOMEM;
}

/* After the last pass: what the workload may have used. */
static int bound_program(struct shares *sh)
{
    bool active = sh->s->split == NRG_SPLIT_ACTIVE;
    struct nrg_cpu_cell *cells = calloc(sh->n_cells + 1, sizeof *cells);
    if (!cells)
        return -ENOMEM;
    for (size_t k = 0; k < sh->n_cells; k++) {
        const struct cell *c = &sh->cells[k];
        double dt = (double)(cell_end(sh, k) - cell_begin(sh, k)) / 1e9;
        double idle_j = active ? c->idle_j : 0;
        cells[k] = (struct nrg_cpu_cell){.cpu_j = c->cpu_j, .idle_j = idle_j, .share = c->share};
        cells[k].idle_least_j = active ? fmax(0, idle_j - sh->idle_less_w * dt) : 0;
        cells[k].idle_most_j = active ? fmin(c->cpu_j, idle_j + sh->idle_more_w * dt) : 0;
    }
    nrg_program_cpu(sh->s, cells, sh->n_cells, sh->watts.told_apart);
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
        fill_idle(&sh);
        rc = read_rows(&sh, NRG_PROCESSES, on_process_rows);
    }
    if (sh.damaged)
        nrg_summary_missing(s, "processes", "%zu damaged chunks of the recording are left out",
                            sh.damaged);
    if (!rc)
        rc = fill_others(&sh);
    if (!rc)
        rc = nrg_process_watts_init(&sh.watts, sh.used_s, sh.n_ids, sh.n_cells);
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
    free(sh.cells);
    free(sh.last);
    free(sh.used_s);
    nrg_process_watts_release(&sh.watts);
    return rc;
}
