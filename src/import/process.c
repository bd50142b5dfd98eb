/*
 * Processes of an imported file: import_format.h. A record says what each process used in the
 * interval that ends at its date; the recording wants what it used since it began, so the steps
 * are added up. A process that was not in the record before gets a row at the beginning of the
 * interval, so that its first step belongs to that interval. In the first record of a segment
 * the trapezoid has no reading at the beginning of the interval, and the step is left out with it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/internal.h"

static struct nrg_process_info *find_process(struct nrg_import_processes *p, int32_t pid)
{
    size_t at = (size_t)pid, cap = p->cap_by_pid;
    if (at >= cap) {
        if (nrg_reserve(&p->by_pid, &p->cap_by_pid, at + 1, sizeof *p->by_pid))
            return NULL;
        memset(p->by_pid + cap, 0, (p->cap_by_pid - cap) * sizeof *p->by_pid);
    }
    if (p->by_pid[at])
        return &p->infos[p->by_pid[at] - 1];
    if (nrg_reserve(&p->infos, &p->cap, p->n + 1, sizeof *p->infos))
        return NULL;
    struct nrg_process_info *info = &p->infos[p->n++];
    *info = (struct nrg_process_info){.id = (int64_t)p->n, .pid = pid, .uid = -1, .ended = 1};
    snprintf(info->name, sizeof info->name, "process %d", pid);
    p->by_pid[at] = (int32_t)p->n;
    return info;
}

static int add_row(struct nrg_rows *rows, int64_t t_ns, const struct nrg_process_info *info,
                   int64_t bytes)
{
    const int64_t row[NRG_P_COLUMNS] = {info->id, info->cpu_ns, bytes, NRG_MISSING};
    return nrg_rows_add(rows, t_ns, 0, row);
}

int nrg_import_process(struct nrg_import *im, int64_t pid, double cpu_s, int64_t pss_bytes,
                       int64_t uss_bytes)
{
    struct nrg_import_processes *p = &im->processes;
    if (pid < 1 || pid > NRG_IMPORT_MAX_PID)
        return -ERANGE;
    p->any = true;
    if (!im->writing)
        return 0;
    struct nrg_process_info *info = find_process(p, (int32_t)pid);
    if (!info)
        return -ENOMEM;
    int rc = 0;
    bool known = info->last_ns == im->last_ns && info->first_ns;
    if (!info->first_ns)
        info->first_ns = im->begin_ns;
    if ((!known || im->first_of_segment) && im->begin_ns < im->t_ns)
        rc = add_row(&p->rows, im->begin_ns, info, pss_bytes);
    if (im->begin_ns < im->t_ns && cpu_s > 0 && cpu_s < 1e9)
        info->cpu_ns += (int64_t)llround(cpu_s * 1e9);
    info->last_ns = im->t_ns;
    if (pss_bytes > info->peak_rss_bytes)
        info->peak_rss_bytes = pss_bytes;
    if (!rc)
        rc = add_row(&p->rows, im->t_ns, info, pss_bytes);
    const int64_t memory[NRG_M_COLUMNS] = {info->id, pss_bytes, uss_bytes, NRG_MISSING,
                                           NRG_MISSING};
    if (!rc && pss_bytes != NRG_MISSING)
        rc = nrg_rows_add(&p->memory_rows, im->t_ns, 0, memory);
    return rc;
}

int nrg_import_gpu_process(struct nrg_import *im, int64_t pid, int64_t gpu, double share,
                           int64_t memory_bytes)
{
    struct nrg_import_processes *p = &im->processes;
    if (pid < 1 || pid > NRG_IMPORT_MAX_PID || gpu < 0 || gpu > 4095)
        return -ERANGE;
    p->any_gpu = true;
    const int64_t row[NRG_G_COLUMNS] = {
        pid, gpu, pid, share >= 0 && share <= 1000 ? (int64_t)llround(share * 1e6) : NRG_MISSING,
        memory_bytes};
    return im->writing ? nrg_rows_add(&p->gpu_rows, im->t_ns, 0, row) : 0;
}

int nrg_import_processes_open(struct nrg_import *im)
{
    struct nrg_import_processes *p = &im->processes;
    nrg_rows_init(&p->rows, NRG_P_COLUMNS);
    nrg_rows_init(&p->memory_rows, NRG_M_COLUMNS);
    nrg_rows_init(&p->gpu_rows, NRG_G_COLUMNS);
    if (im->store && p->any) {
        p->series = nrg_store_series(im->store, NRG_PROCESSES);
        p->memory_series = nrg_store_series(im->store, NRG_PROCESS_MEMORY);
    }
    if (im->store && p->any_gpu)
        p->gpu_series = nrg_store_series(im->store, NRG_GPU_PROCESSES);
    return p->series < 0          ? p->series
           : p->memory_series < 0 ? p->memory_series
           : p->gpu_series < 0    ? p->gpu_series
                                  : 0;
}

static int give(struct nrg_import *im, int series, struct nrg_rows *rows)
{
    int rc = im->store && series > 0 ? nrg_store_rows(im->store, series, rows) : 0;
    rows->n = 0;
    return rc;
}

static int write_infos(struct nrg_import *im)
{
    struct nrg_import_processes *p = &im->processes;
    int rc = 0;
    im->result.processes = p->n;
    for (size_t i = 0; !rc && im->store && i < p->n; i++) {
        rc = nrg_store_process(im->store, &p->infos[i]);
        if (!rc && i % 256 == 255) /* the store looks through what is pending */
            rc = nrg_store_commit(im->store);
    }
    if (rc || !im->store || !p->shares_only)
        return rc;
    struct nrg_event event = {
        .t_ns = im->result.begin_ns,
        .kind = "processes",
        .source = "CPU time per process",
        .detail = "the file has shares of the machine's busy time only: CPU time is share times "
                  "interval, as if one CPU had been busy all the time"};
    return nrg_store_event(im->store, &event);
}

int nrg_import_processes_flush(struct nrg_import *im, bool last)
{
    struct nrg_import_processes *p = &im->processes;
    int rc = give(im, p->series, &p->rows);
    if (!rc)
        rc = give(im, p->memory_series, &p->memory_rows);
    if (!rc)
        rc = give(im, p->gpu_series, &p->gpu_rows);
    return !rc && last ? write_infos(im) : rc;
}

void nrg_import_processes_release(struct nrg_import *im)
{
    struct nrg_import_processes *p = &im->processes;
    free(p->infos);
    free(p->by_pid);
    nrg_rows_release(&p->rows);
    nrg_rows_release(&p->memory_rows);
    nrg_rows_release(&p->gpu_rows);
}
