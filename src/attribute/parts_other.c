/*
 * Which part of a domain's work is not the workload's, cell by cell. For the processors that comes
 * from CPU time (cells_cpu.c), for a GPU from the driver's share per process. A report of the
 * driver covers the time since the one before. A process that the recorder did not follow, or of
 * another pid namespace, counts as other. Without reports all of the device counts as the
 * workload's.
 */
#include <errno.h>

#include "attribute/internal.h"

struct reports {
    const struct nrg_engine *e;
    const struct nrg_process_info *infos;
    size_t n_infos;
    int64_t gpu;
    int64_t known_pid; /* the last one that was looked up, and what came of it */
    bool known_mine;
    double *mine, *all; /* per cell */
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

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct reports *r = arg;
    const struct nrg_cells *c = &r->e->cells;
    for (size_t i = 0; i < rows->n; i++) {
        int64_t sm_ppm = nrg_rows_column(rows, NRG_G_SM_PPM)[i], t_ns = rows->t_ns[i];
        if (nrg_rows_column(rows, NRG_G_GPU)[i] != r->gpu || sm_ppm == NRG_MISSING || sm_ppm < 0 ||
            t_ns < c->begin_ns[0] || t_ns > c->begin_ns[c->n])
            continue;
        size_t k = nrg_cells_find(c, t_ns);
        r->all[k] += (double)sm_ppm;
        if (is_mine(r, nrg_rows_column(rows, NRG_G_PID)[i]))
            r->mine[k] += (double)sm_ppm;
    }
    return 0;
}

/* Fills each cell from the next report. */
static void spread_reports(const struct reports *r, float *other)
{
    size_t from = 0;
    for (size_t k = 0; k < r->e->cells.n; k++) {
        if (r->all[k] <= 0)
            continue;
        for (; from <= k; from++)
            other[from] = (float)(1 - r->mine[k] / r->all[k]);
    }
}

static int set_gpu_other(struct nrg_engine *e, struct nrg_part *part, int gpu)
{
    struct reports r = {.e = e, .gpu = gpu};
    float *other = nrg_arena_array(&e->memory, e->cells.n + 1, sizeof *other);
    r.infos = nrg_recording_processes(e->recording, &r.n_infos);
    r.mine = nrg_arena_array(&e->memory, e->cells.n + 1, sizeof *r.mine);
    r.all = nrg_arena_array(&e->memory, e->cells.n + 1, sizeof *r.all);
    if (e->memory.failed)
        return -ENOMEM;
    int rc = nrg_recording_read_kind(e->recording, NRG_GPU_PROCESSES, 0, on_rows, &r, NULL);
    if (!rc)
        spread_reports(&r, other);
    part->other = other;
    return rc;
}

int nrg_parts_other(struct nrg_engine *e)
{
    int rc = 0;
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        int gpu = nrg_gpu_number(e->parts[p].channel->channel.name);
        e->parts[p].other = e->cells.other;
        if (gpu >= 0)
            rc = set_gpu_other(e, &e->parts[p], gpu);
    }
    return rc;
}
