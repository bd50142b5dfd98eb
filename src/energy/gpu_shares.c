/*
 * GPU energy per process: between two reports of the driver, the device's energy (above its
 * baseline where one was measured) is shared out by each process's share of the device's
 * processors, against the shares of all processes on it. The energy of processes of another pid
 * namespace, and of time in which no process computed, is charged to none; when the driver names no
 * process at all, the energy stays with the device and the report says so.
 *
 * The shares of a board in MIG mode are the sizes of instances (sensors/nvml/process.c): what a
 * process may use. Beside others, the program may then have used nothing of the energy above idle,
 * or all of it while they waited; the interval says so.
 */
#include "energy/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct use {
    int64_t t_ns, gpu, pid, sm_ppm;
};

struct uses {
    struct use *items;
    size_t n, cap;
};

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct uses *uses = arg;
    int rc = nrg_reserve(&uses->items, &uses->cap, uses->n + rows->n, sizeof *uses->items);
    for (size_t i = 0; !rc && i < rows->n; i++) {
        int64_t sm = nrg_rows_column(rows, NRG_G_SM_PPM)[i];
        if (sm == NRG_MISSING || sm < 0)
            continue;
        uses->items[uses->n++] = (struct use){rows->t_ns[i], nrg_rows_column(rows, NRG_G_GPU)[i],
                                              nrg_rows_column(rows, NRG_G_PID)[i], sm};
    }
    return rc;
}

static int by_gpu_and_time(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    return x->t_ns < y->t_ns ? -1 : x->t_ns > y->t_ns;
}

static struct nrg_process_energy *find_process(struct nrg_summary *s, int64_t pid, int64_t t_ns)
{
    for (size_t i = 0; i < s->n_processes; i++) {
        const struct nrg_process_info *info = s->processes[i].info;
        if (info->pid == pid && info->first_ns <= t_ns &&
            (!info->ended || t_ns <= info->last_ns + NRG_NS_PER_S))
            return &s->processes[i];
    }
    return NULL;
}

/* Uses [from, to) were reported together and share the energy since the report before. Returns what
 * the workload got. */
static double share_out(struct nrg_summary *s, const struct uses *uses, size_t from, size_t to,
                        double energy_j)
{
    double all = 0, mine_j = 0;
    for (size_t i = from; i < to; i++)
        all += (double)uses->items[i].sm_ppm;
    for (size_t i = from; i < to && all > 0; i++) {
        struct nrg_process_energy *p = find_process(s, uses->items[i].pid, uses->items[i].t_ns);
        double part_j = energy_j * (double)uses->items[i].sm_ppm / all;
        if (!p)
            continue;
        p->gpu_j = nrg_sum_known(p->gpu_j, part_j);
        mine_j += part_j;
    }
    return mine_j;
}

struct device {
    const struct nrg_timeline *timeline;
    double idle_w;
    double scale; /* of the timeline's energy to the domain's, which has the lag corrected */
    double mine_j, mine_s; /* of the workload; the time in which it had a part */
    double least_w;        /* between two reports */
    bool by_size;          /* shares are sizes of MIG instances */
    bool divided;          /* others had a part while the workload had one */
    double reach_j;        /* above idle, of all, in that time */
    size_t named, foreign;
};

static void share_device(struct nrg_summary *s, const struct uses *uses, int64_t gpu,
                         struct device *device)
{
    int64_t last_ns = s->begin_ns;
    for (size_t i = 0; i < uses->n;) {
        size_t end = i;
        int64_t t_ns = uses->items[i].t_ns;
        while (end < uses->n && uses->items[end].gpu == uses->items[i].gpu &&
               uses->items[end].t_ns == t_ns)
            end++;
        if (uses->items[i].gpu == gpu && t_ns > last_ns && last_ns < s->end_ns) {
            int64_t stop = t_ns < s->end_ns ? t_ns : s->end_ns;
            double length_s = (double)(stop - last_ns) / 1e9;
            double energy =
                device->scale * nrg_timeline_between(device->timeline, last_ns, stop, NULL);
            double above = fmax(0, energy - device->idle_w * length_s);
            double mine = share_out(s, uses, i, end, above);
            device->mine_j += mine;
            device->mine_s += mine > 0 ? length_s : 0;
            device->reach_j += mine > 0 ? above : 0;
            device->divided |= mine > 0 && mine < above * (1 - 1e-9);
            device->least_w = fmin(device->least_w, energy / length_s);
            for (size_t k = i; k < end; k++)
                *(uses->items[k].pid > 0 ? &device->named : &device->foreign) += 1;
            last_ns = t_ns;
        }
        i = end;
    }
}

static bool has_instances(const struct nrg_frame *frame, const char *gpu)
{
    size_t len = strlen(gpu);
    for (size_t i = 0; i < frame->n; i++) {
        const char *name = frame->channels[i].channel.name;
        if (!strncmp(name, gpu, len) && !strncmp(name + len, ".mig-", 5))
            return true;
    }
    return false;
}

static void prepare_device(struct device *device, const struct nrg_domain *domain,
                           const struct nrg_summary *s, struct nrg_frame *frame)
{
    size_t channel = (size_t)(domain->channel - frame->channels);
    double idle_w = nrg_frame_baseline_rate(frame, channel);
    *device = (struct device){.timeline = nrg_frame_timeline(frame, channel),
                              .by_size = has_instances(frame, domain->channel->channel.name),
                              .idle_w = isnan(idle_w) ? 0 : idle_w,
                              .least_w = INFINITY};
    double seen_j = nrg_timeline_between(device->timeline, s->begin_ns, s->end_ns, NULL);
    device->scale = seen_j > 0 && domain->energy_j > 0 ? domain->energy_j / seen_j : 1;
}

/* What the workload may have used: by idle power, and by what no process is named for. */
static void bound_device(struct nrg_domain *domain, const struct device *device,
                         struct nrg_frame *frame)
{
    size_t channel = (size_t)(domain->channel - frame->channels);
    bool known = !isnan(nrg_frame_baseline_rate(frame, channel));
    double doubt_j = nrg_frame_baseline_doubt(frame, channel) * device->mine_s;
    double idle_j = known ? doubt_j : device->least_w * device->mine_s;
    domain->program.shared = device->named > 0;
    domain->program.energy_j = device->mine_j;
    domain->program.least_j = device->mine_s > 0 ? fmax(0, device->mine_j - idle_j) : 0;
    domain->program.most_j =
        device->foreign ? domain->energy_j : device->mine_j + (known ? doubt_j : 0);
    if (device->by_size && device->divided) {
        domain->program.least_j = 0;
        domain->program.most_j =
            fmax(domain->program.most_j, device->reach_j + (known ? doubt_j : 0));
    }
}

int nrg_gpu_shares_make(struct nrg_summary *s, struct nrg_frame *frame)
{
    struct uses uses = {0};
    int rc = nrg_recording_read_kind(frame->recording, NRG_GPU_PROCESSES, 0, on_rows, &uses, NULL);
    if (!rc && uses.n)
        qsort(uses.items, uses.n, sizeof *uses.items, by_gpu_and_time);
    for (size_t d = 0; !rc && d < s->n_domains; d++) {
        struct nrg_domain *domain = &s->domains[d];
        const char *name = domain->channel->channel.name;
        int gpu = nrg_gpu_number(name);
        struct device device;
        if (gpu < 0)
            continue;
        prepare_device(&device, domain, s, frame);
        share_device(s, &uses, gpu, &device);
        bound_device(domain, &device, frame);
        if (device.by_size && device.divided)
            nrg_summary_missing(s, name,
                                "divided by the sizes of its MIG instances, not by what they did: "
                                "the interval holds every other division");
        if (device.foreign)
            nrg_summary_missing(s, name,
                                "also used by processes of another pid namespace, or behind an "
                                "MPS server: their part is in the device's energy, but in no "
                                "process");
        else if (!device.named)
            nrg_summary_missing(s, name,
                                "the driver names no process that uses it: the energy is "
                                "the whole device's");
    }
    free(uses.items);
    return rc;
}
