/*
 * Which part of a domain's work is not the workload's, cell by cell. For the processors that comes
 * from CPU time (cells/cpu.c), for a GPU from the driver's share per process. A report of the
 * driver covers the time since the one before. A process that the recorder did not follow, or of
 * another pid namespace, counts as other. Without reports all of the device counts as the
 * workload's. Where a report leaves open which part is whose (MIG, MPS: energy/gpu_parts.h), rows
 * may be off by as much: all of them alike, as others' watts do it.
 */
#include <errno.h>

#include "attribute/internal.h"
#include "energy/gpu_parts.h"

struct reports {
    const struct nrg_engine *e;
    const struct nrg_process_info *infos;
    size_t n_infos;
    int64_t known_pid; /* the last one that was looked up, and what came of it */
    bool known_mine;
    bool instances; /* of MIG */
    struct cell_sums {
        double mine, all;
        double low, high; /* what `mine` may be */
    } * cells;
};

static bool is_mine(struct reports *r, int64_t pid)
{
    if (pid <= 0)
        return false;
    if (pid == r->known_pid)
        return r->known_mine;
    r->known_pid = pid;
    r->known_mine = false;
    for (size_t i = 0; i < r->n_infos && !r->known_mine; i++)
        r->known_mine = r->infos[i].pid == pid;
    return r->known_mine;
}

/* Adds the report of uses [from, to) to its cell. */
static void take_report(struct reports *r, const struct nrg_gpu_uses *uses, size_t from, size_t to)
{
    const struct nrg_cells *c = &r->e->cells;
    struct nrg_gpu_report report = {0};
    int64_t t_ns = uses->items[from].t_ns;
    if (t_ns < c->begin_ns[0] || t_ns > c->begin_ns[c->n])
        return;
    for (size_t i = from; i < to; i++)
        nrg_gpu_report_add(&report, &uses->items[i], is_mine(r, uses->items[i].pid));
    struct nrg_gpu_part part = nrg_gpu_report_part(&report, r->instances);
    struct cell_sums *sums = &r->cells[nrg_cells_find(c, t_ns)];
    double all = report.sm[0] + report.sm[1];
    sums->all += all;
    sums->mine += part.part * all;
    sums->low += part.low * all;
    sums->high += part.high * all;
}

/* Fills each cell from the next report. */
static void spread_reports(const struct reports *r, float *other, struct nrg_others_level *level)
{
    size_t from = 0;
    for (size_t k = 0; k < r->e->cells.n; k++) {
        const struct cell_sums *sums = &r->cells[k];
        if (sums->all <= 0)
            continue;
        /* What a joule of the workload's may be off by, either way. */
        double off = fmax(sums->high - sums->mine, sums->mine - sums->low);
        for (; from <= k; from++) {
            other[from] = (float)(1 - sums->mine / sums->all);
            level[from].doubt_part = sums->mine > 0 ? (float)(off / sums->mine) : 0;
        }
    }
}

/* Which part of that it may be off by each way; the largest where reports differ. */
static void find_doubt(const struct reports *r, struct nrg_part *part)
{
    for (size_t k = 0; k < r->e->cells.n; k++) {
        const struct cell_sums *sums = &r->cells[k];
        double more = sums->high - sums->mine, less = sums->mine - sums->low;
        double off = fmax(more, less);
        if (off <= 1e-9 * sums->all)
            continue;
        part->others_less = fmax(part->others_less, more / off);
        part->others_more = fmax(part->others_more, less / off);
    }
}

static int set_gpu_other(struct nrg_engine *e, struct nrg_part *part, int gpu,
                         const struct nrg_gpu_uses *uses)
{
    struct reports r = {.e = e};
    size_t n = e->cells.n + 1;
    float *other = nrg_arena_array(&e->memory, n, sizeof *other);
    struct nrg_others_level *level = nrg_arena_array(&e->memory, n, sizeof *level);
    r.infos = nrg_recording_processes(e->recording, &r.n_infos);
    r.instances = nrg_gpu_has_instances(&e->frame, part->channel->channel.name);
    r.cells = nrg_arena_array(&e->memory, n, sizeof *r.cells);
    if (e->memory.failed)
        return -ENOMEM;
    for (size_t i = 0, end; i < uses->n; i = end) {
        end = nrg_gpu_uses_end(uses, i);
        if (uses->items[i].gpu == gpu)
            take_report(&r, uses, i, end);
    }
    spread_reports(&r, other, level);
    find_doubt(&r, part);
    part->other = other;
    if (!(part->others_less > 0 || part->others_more > 0))
        return 0;
    part->level = level;
    return nrg_attribution_note(e->out, part->channel->channel.name,
                                "others have a part of it that the driver does not tell (MIG, "
                                "MPS): the intervals of rows hold the other divisions");
}

int nrg_parts_other(struct nrg_engine *e)
{
    struct nrg_gpu_uses uses;
    int rc = nrg_gpu_uses_read(&uses, e->recording);
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        int gpu = nrg_gpu_number(e->parts[p].channel->channel.name);
        e->parts[p].other = e->cells.other;
        if (gpu >= 0)
            rc = set_gpu_other(e, &e->parts[p], gpu, &uses);
    }
    nrg_gpu_uses_release(&uses);
    return rc;
}
