/*
 * Which part of a domain's work is not the workload's, cell by cell. Of the processors that is told
 * by CPU time (cells_cpu.c); of a GPU by the driver's share per process. A report of the driver
 * covers the time since the one before; a process that the recorder did not follow, or of another
 * pid namespace, is somebody else's. Without reports the device is taken to be ours.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

/* From the report backwards to the one before. */
static void spread(const struct reports *r, float *other)
{
    size_t from = 0;
    for (size_t k = 0; k < r->e->cells.n; k++) {
        if (r->all[k] <= 0)
            continue;
        for (; from <= k; from++)
            other[from] = (float)(1 - r->mine[k] / r->all[k]);
    }
}

static int gpu_other(struct nrg_engine *e, struct nrg_part *part, int gpu)
{
    struct reports r = {.e = e, .gpu = gpu};
    int series[16], rc = 0;
    size_t n = nrg_recording_series_of(e->recording, NRG_GPU_PROCESSES, series, 16);
    r.infos = nrg_recording_processes(e->recording, &r.n_infos);
    r.mine = calloc(e->cells.n + 1, sizeof *r.mine);
    r.all = calloc(e->cells.n + 1, sizeof *r.all);
    if (!r.mine || !r.all)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < n && i < 16; i++)
        if (nrg_recording_columns(e->recording, series[i], NULL) == NRG_G_COLUMNS)
            rc = nrg_recording_read_series(e->recording, series[i], on_rows, &r, NULL);
    if (!rc)
        spread(&r, part->other);
    free(r.mine);
    free(r.all);
    return rc;
}

int nrg_parts_other(struct nrg_engine *e)
{
    const struct nrg_cells *c = &e->cells;
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        int gpu, used = 0;
        const char *name = part->channel->channel.name;
        part->other = calloc(c->n + 1, sizeof *part->other);
        if (!part->other)
            return -ENOMEM;
        bool is_gpu = sscanf(name, "gpu-%d%n", &gpu, &used) == 1 && !name[used];
        int rc = is_gpu ? gpu_other(e, part, gpu) : 0;
        if (rc)
            return rc;
        for (size_t k = 0; !is_gpu && k < c->n; k++)
            part->other[k] = c->other[k];
    }
    return 0;
}
