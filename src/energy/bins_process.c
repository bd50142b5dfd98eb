/*
 * The processes' part of bins.c: which process used how much CPU time in which bin. A process's
 * stretches come in order of time, so it is enough to remember the last bin that it has an entry
 * in: a later stretch belongs there or further on.
 */
#include "energy/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/mem.h"

int nrg_bin_processes_init(struct nrg_bin_processes *p, struct nrg_recording *recording)
{
    size_t n;
    const struct nrg_process_info *infos = nrg_recording_processes(recording, &n);
    int rc = nrg_recording_process_ids(recording, &p->n_ids);
    if (rc)
        return rc;
    p->by_id = nrg_calloc(p->n_ids, sizeof *p->by_id);
    if (!p->by_id)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!nrg_is_id(infos[i].id, p->n_ids))
            continue;
        p->by_id[infos[i].id] = (struct nrg_bin_process_state){.info = &infos[i],
                                                               .t_ns = infos[i].first_ns,
                                                               .cpu_ns = infos[i].cpu_before_ns,
                                                               .rss_bytes = NRG_MISSING,
                                                               .pss_bytes = NRG_MISSING,
                                                               .uss_bytes = NRG_MISSING,
                                                               .bin = -1};
    }
    return 0;
}

void nrg_bin_processes_release(struct nrg_bin_processes *p)
{
    free(p->by_id);
}

int nrg_bin_processes_row(struct nrg_bin_processes *p, const struct nrg_cursor_row *row,
                          struct nrg_process_stretch *stretch)
{
    int64_t id = row->cells[0];
    if (!nrg_is_id(id, p->n_ids) || !p->by_id[id].info)
        return 0;
    struct nrg_bin_process_state *s = &p->by_id[id];
    if (row->kind == NRG_PROCESS_MEMORY) {
        s->pss_bytes = row->cells[NRG_M_PSS_BYTES];
        s->uss_bytes = row->cells[NRG_M_USS_BYTES];
        return 0;
    }
    int64_t cpu_ns = row->cells[NRG_P_CPU_NS], used_ns;
    if (cpu_ns == NRG_MISSING || row->t_ns < s->t_ns ||
        __builtin_sub_overflow(cpu_ns, s->cpu_ns, &used_ns) || used_ns < 0)
        return 0;
    *stretch = (struct nrg_process_stretch){(size_t)id, s->t_ns, row->t_ns, (double)used_ns / 1e9};
    s->t_ns = row->t_ns;
    s->cpu_ns = cpu_ns;
    s->rss_bytes = row->cells[NRG_P_RSS_BYTES];
    return 1;
}

static struct nrg_bin_process *entry_of(struct nrg_bin_process_state *s, struct nrg_open_bin *bin,
                                        int64_t k)
{
    if (s->bin == k)
        return &bin->processes[s->entry];
    const struct nrg_bin_process entry = {.info = s->info};
    if (s->bin > k ||
        nrg_append(&bin->processes, &bin->n_processes, &bin->cap_processes, &entry, sizeof entry))
        return NULL;
    s->bin = k;
    s->entry = bin->n_processes - 1;
    return &bin->processes[s->entry];
}

int nrg_bin_processes_add(struct nrg_bin_processes *p, struct nrg_open_bin *bin, int64_t k,
                          const struct nrg_process_stretch *st, struct nrg_span_ns edges)
{
    struct nrg_bin_process_state *s = &p->by_id[st->id];
    int64_t begin = st->from_ns > edges.begin_ns ? st->from_ns : edges.begin_ns;
    int64_t end = st->to_ns < edges.end_ns ? st->to_ns : edges.end_ns;
    if (end < begin)
        return 0;
    struct nrg_bin_process *entry = entry_of(s, bin, k);
    if (!entry)
        return s->bin > k ? 0 : -ENOMEM;
    double length = (double)(st->to_ns - st->from_ns);
    entry->cpu_s += length > 0 ? st->cpu_s * (double)(end - begin) / length : st->cpu_s;
    entry->rss_bytes = s->rss_bytes;
    entry->pss_bytes = s->pss_bytes;
    entry->uss_bytes = s->uss_bytes;
    return 0;
}

int nrg_bin_gpu_add(struct nrg_open_bin *bin, const int64_t *cells)
{
    struct nrg_bin_gpu_process *entry = NULL;
    for (size_t i = 0; i < bin->n_gpu && !entry; i++)
        if (bin->gpu[i].gpu == cells[NRG_G_GPU] &&
            bin->gpu[i].device_pid == cells[NRG_G_DEVICE_PID])
            entry = &bin->gpu[i];
    if (!entry) {
        const struct nrg_bin_gpu_process fresh = {.pid = cells[NRG_G_PID],
                                                  .device_pid = cells[NRG_G_DEVICE_PID],
                                                  .gpu = cells[NRG_G_GPU],
                                                  .memory_bytes = NRG_MISSING};
        int rc = nrg_append(&bin->gpu, &bin->n_gpu, &bin->cap_gpu, &fresh, sizeof fresh);
        if (rc)
            return rc;
        entry = &bin->gpu[bin->n_gpu - 1];
    }
    if (cells[NRG_G_SM_PPM] != NRG_MISSING) {
        entry->share_sum += (double)cells[NRG_G_SM_PPM] / 1e6;
        entry->shares++;
    }
    if (cells[NRG_G_MEMORY_BYTES] != NRG_MISSING)
        entry->memory_bytes = cells[NRG_G_MEMORY_BYTES];
    return 0;
}
