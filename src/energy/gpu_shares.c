/*
 * GPU energy per process: between two reports of the driver, the device's energy (above its
 * baseline where one was measured) is shared out by each process's share of the device's
 * processors, against the shares of all processes on it. The energy of processes of another pid
 * namespace, and of time in which no process computed, is charged to none; when the driver names no
 * process at all, the energy stays with the device and the report says so.
 *
 * The shares of a board in MIG mode are the sizes of instances (sensors/nvml/process.c): what a
 * process may use. Beside others, the program may then have used nothing of the energy above idle,
 * or all of it while they waited; the interval says so. Where it is known how busy instances were,
 * the share is size times that. Joules per busy processor differ with what it does, and part of the
 * power follows the size, so the interval reaches from one division to the other.
 *
 * On a board without MIG a size is that of a client of an MPS server: what all clients did
 * together. Beside clients of others the program may have used nothing of that, or all.
 */
#include "energy/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct use {
    int64_t t_ns, gpu, pid, sm_ppm;
    int64_t size_ppm; /* as in struct nrg_gpu_process */
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
        int64_t size = rows->n_columns > NRG_G_SIZE_PPM ? nrg_rows_column(rows, NRG_G_SIZE_PPM)[i]
                                                        : NRG_MISSING;
        uses->items[uses->n++] =
            (struct use){rows->t_ns[i], nrg_rows_column(rows, NRG_G_GPU)[i],
                         nrg_rows_column(rows, NRG_G_PID)[i], sm, size < 0 ? NRG_MISSING : size};
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

/* The workload's part by the sizes of instances; NAN when one of them is not known. */
static double part_by_size(struct nrg_summary *s, const struct uses *uses, size_t from, size_t to)
{
    double all = 0, mine = 0;
    for (size_t i = from; i < to; i++) {
        const struct use *u = &uses->items[i];
        if (u->size_ppm == NRG_MISSING)
            return NAN;
        all += (double)u->size_ppm;
        mine += find_process(s, u->pid, u->t_ns) ? (double)u->size_ppm : 0;
    }
    return all > 0 ? mine / all : NAN;
}

struct doubt {
    double less, more; /* parts of the energy */
};

/* By which the workload's part may be wrong, because its clients of MPS are beside others'. */
static struct doubt doubt_by_clients(struct nrg_summary *s, const struct uses *uses, size_t from,
                                     size_t to)
{
    double all = 0, mine = 0, together = 0;
    bool others = false;
    for (size_t i = from; i < to; i++) {
        const struct use *u = &uses->items[i];
        all += (double)u->sm_ppm;
        if (u->size_ppm == NRG_MISSING)
            continue;
        bool is_mine = find_process(s, u->pid, u->t_ns) != NULL;
        mine += is_mine ? (double)u->sm_ppm : 0;
        others |= !is_mine;
        together = fmax(together, (double)u->size_ppm);
    }
    if (!others || mine <= 0)
        return (struct doubt){0};
    return (struct doubt){mine / all, fmax(0, together - mine) / all};
}

struct device {
    const struct nrg_timeline *timeline;
    double idle_w, idle_doubt_w; /* idle_w NAN: not known */
    double scale; /* of the timeline's energy to the domain's, which has the lag corrected */
    double mine_j, mine_s; /* of the workload; the time in which it had a part */
    double least_w;        /* between two reports */
    bool instances;        /* of MIG: shares are their sizes, or what they did */
    bool divided;          /* by sizes, and others had a part while the workload had one */
    bool measured;         /* shares are what MIG instances did, beside others */
    bool clients;          /* of MPS, beside those of others */
    double low_j, high_j;  /* of the workload, by other divisions */
    size_t named, foreign;
};

/* Takes a report by which the workload has mine_j of `above` joules; by_size: the part of them that
 * it has by the sizes of instances, clients: what may be wrong by those of MPS. */
static void widen_by_report(struct device *device, double mine_j, double above, double by_size,
                            struct doubt clients)
{
    bool divided = mine_j > 0 && mine_j < above * (1 - 1e-9);
    double low_j = mine_j, high_j = mine_j;
    if (!device->instances) {
        low_j -= clients.less * above;
        high_j += clients.more * above;
        device->clients |= clients.less > 0;
    } else if (!isnan(by_size)) {
        low_j = fmin(mine_j, by_size * above);
        high_j = fmax(mine_j, by_size * above);
        device->measured |= by_size > 0 && by_size < 1;
    } else if (divided) {
        low_j = 0;
        high_j = above;
        device->divided = true;
    }
    device->low_j += low_j;
    device->high_j += high_j;
}

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
            double idle_j = isnan(device->idle_w) ? 0 : device->idle_w * length_s;
            double above = fmax(0, energy - idle_j);
            double mine = share_out(s, uses, i, end, above);
            device->mine_j += mine;
            device->mine_s += mine > 0 ? length_s : 0;
            widen_by_report(device, mine, above, part_by_size(s, uses, i, end),
                            doubt_by_clients(s, uses, i, end));
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
                           struct nrg_summary *s, struct nrg_frame *frame)
{
    size_t channel = (size_t)(domain->channel - frame->channels);
    *device = (struct device){.timeline = nrg_frame_timeline(frame, channel),
                              .instances = has_instances(frame, domain->channel->channel.name),
                              .least_w = INFINITY};
    device->idle_w = nrg_domain_idle_w(s, frame, domain, &device->idle_doubt_w);
    double seen_j = nrg_timeline_between(device->timeline, s->begin_ns, s->end_ns, NULL);
    device->scale = seen_j > 0 && domain->energy_j > 0 ? domain->energy_j / seen_j : 1;
}

/* What the workload may have used: by idle power, and by what no process is named for. */
static void bound_device(struct nrg_domain *domain, const struct device *device)
{
    bool known = !isnan(device->idle_w);
    double doubt_j = device->idle_doubt_w * device->mine_s;
    double idle_j = known ? doubt_j : device->least_w * device->mine_s;
    domain->program.shared = device->named > 0;
    domain->program.energy_j = device->mine_j;
    domain->program.least_j = device->mine_s > 0 ? fmax(0, device->low_j - idle_j) : 0;
    domain->program.most_j =
        device->foreign ? domain->energy_j : device->high_j + (known ? doubt_j : 0);
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
        bound_device(domain, &device);
        if (device.divided)
            nrg_summary_missing(s, name,
                                "divided by the sizes of its MIG instances, not by what they did: "
                                "the interval holds every other division");
        if (device.measured)
            nrg_summary_missing(s, name,
                                "divided by how busy its MIG instances were; the interval reaches "
                                "to the division by their sizes");
        if (device.clients)
            nrg_summary_missing(s, name,
                                "divided among the clients of its MPS server by what they may use, "
                                "not by what they did: the interval holds every other division");
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
