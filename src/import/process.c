/*
 * Processes of an imported log (internal.h). A record states what each process used in the interval
 * that ends at its date. The recording needs what it has used since it began, so the steps are
 * added up. A process that was not in the previous record gets a row at the beginning of the
 * interval, so that its first step belongs to that interval. In the first record of a segment the
 * trapezoid has no reading at the beginning of the interval, so that step is left out.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/internal.h"

static struct nrg_process_info *find_process(struct nrg_import_processes *p, int32_t pid)
{
    const struct nrg_map_entry *entry = nrg_map_at_id(&p->by_pid, (uint64_t)pid);
    size_t at = entry ? (size_t)(entry - p->by_pid.entries) : 0;
    if (entry && at < p->n)
        return &p->infos[at];
    if (!entry || nrg_reserve(&p->infos, &p->cap, p->n + 1, sizeof *p->infos))
        return NULL;
    struct nrg_process_info *info = &p->infos[p->n++];
    *info = (struct nrg_process_info){.id = (int64_t)p->n, .pid = pid, .uid = -1, .ended = 1};
    snprintf(info->name, sizeof info->name, "process %d", pid);
    return info;
}

static int add_process_sample(struct nrg_rows *rows, int64_t t_ns,
                              const struct nrg_process_info *info, int64_t bytes)
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
        rc = add_process_sample(&p->rows[NRG_IMPORT_CPU], im->begin_ns, info, pss_bytes);
    if (im->begin_ns < im->t_ns && cpu_s > 0 && cpu_s < 1e9)
        info->cpu_ns += (int64_t)llround(cpu_s * 1e9);
    info->last_ns = im->t_ns;
    if (pss_bytes > info->peak_rss_bytes)
        info->peak_rss_bytes = pss_bytes;
    if (!rc)
        rc = add_process_sample(&p->rows[NRG_IMPORT_CPU], im->t_ns, info, pss_bytes);
    const int64_t memory[NRG_M_COLUMNS] = {info->id, pss_bytes, uss_bytes, NRG_MISSING,
                                           NRG_MISSING};
    if (!rc && pss_bytes != NRG_MISSING)
        rc = nrg_rows_add(&p->rows[NRG_IMPORT_MEMORY], im->t_ns, 0, memory);
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
        pid,          gpu,
        pid,          share >= 0 && share <= 1000 ? (int64_t)llround(share * 1e6) : NRG_MISSING,
        memory_bytes, NRG_MISSING};
    return im->writing ? nrg_rows_add(&p->rows[NRG_IMPORT_GPU], im->t_ns, 0, row) : 0;
}

int nrg_import_processes_open(struct nrg_import *im)
{
    static const size_t columns[] = {NRG_P_COLUMNS, NRG_M_COLUMNS, NRG_G_COLUMNS};
    static const enum nrg_series_kind kinds[] = {NRG_PROCESSES, NRG_PROCESS_MEMORY,
                                                 NRG_GPU_PROCESSES};
    struct nrg_import_processes *p = &im->processes;
    int rc = 0;
    for (size_t i = 0; !rc && i < NRG_IMPORT_TABLES; i++) {
        nrg_rows_init(&p->rows[i], columns[i]);
        if (im->store && (i == NRG_IMPORT_GPU ? p->any_gpu : p->any))
            p->series[i] = nrg_store_series(im->store, kinds[i]);
        rc = p->series[i] < 0 ? p->series[i] : 0;
    }
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
    int rc = 0;
    for (size_t i = 0; !rc && i < NRG_IMPORT_TABLES; i++) {
        if (im->store && p->series[i] > 0)
            rc = nrg_store_rows(im->store, p->series[i], &p->rows[i]);
        p->rows[i].n = 0;
    }
    return !rc && last ? write_infos(im) : rc;
}

void nrg_import_processes_release(struct nrg_import *im)
{
    struct nrg_import_processes *p = &im->processes;
    free(p->infos);
    nrg_map_release(&p->by_pid);
    for (size_t i = 0; i < NRG_IMPORT_TABLES; i++)
        nrg_rows_release(&p->rows[i]);
}
