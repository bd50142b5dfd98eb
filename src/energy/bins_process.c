/*
 * See bins_process.h. A process's stretches come in order of time, so it is enough to remember
 * the last bin that it is in: a later stretch belongs there or further on.
 */
#include "energy/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

int nrg_bin_processes_init(struct nrg_bin_processes *p, struct nrg_recording *recording)
{
    size_t n, max_id = 0;
    const struct nrg_process_info *infos = nrg_recording_processes(recording, &n);
    for (size_t i = 0; i < n; i++)
        if (infos[i].id > 0 && infos[i].id < INT32_MAX && (size_t)infos[i].id > max_id)
            max_id = (size_t)infos[i].id;
    if (max_id > n + 1000000)
        return -EBADMSG;
    p->n_ids = max_id + 1;
    p->by_id = calloc(p->n_ids, sizeof *p->by_id);
    if (!p->by_id)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (infos[i].id < 1 || (size_t)infos[i].id >= p->n_ids)
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
    if (id < 1 || (size_t)id >= p->n_ids || !p->by_id[id].info)
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
    s->seen = true;
    return 1;
}

static struct nrg_bin_process *entry_of(struct nrg_bin_process_state *s, struct nrg_open_bin *bin,
                                        int64_t k)
{
    if (s->bin == k)
        return &bin->processes[s->entry];
    if (s->bin > k || nrg_reserve(&bin->processes, &bin->cap_processes, bin->n_processes + 1,
                                  sizeof *bin->processes))
        return NULL;
    s->bin = k;
    s->entry = bin->n_processes;
    bin->processes[bin->n_processes] = (struct nrg_bin_process){.info = s->info};
    return &bin->processes[bin->n_processes++];
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
        int rc = nrg_reserve(&bin->gpu, &bin->cap_gpu, bin->n_gpu + 1, sizeof *bin->gpu);
        if (rc)
            return rc;
        entry = &bin->gpu[bin->n_gpu++];
        *entry = (struct nrg_bin_gpu_process){.pid = cells[NRG_G_PID],
                                              .device_pid = cells[NRG_G_DEVICE_PID],
                                              .gpu = cells[NRG_G_GPU],
                                              .memory_bytes = NRG_MISSING};
    }
    if (cells[NRG_G_SM_PPM] != NRG_MISSING) {
        entry->share_sum += (double)cells[NRG_G_SM_PPM] / 1e6;
        entry->shares++;
    }
    if (cells[NRG_G_MEMORY_BYTES] != NRG_MISSING)
        entry->memory_bytes = cells[NRG_G_MEMORY_BYTES];
    return 0;
}
