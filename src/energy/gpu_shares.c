/*
 * GPU energy per process: between two reports of the driver, the device's energy (above its
 * baseline where one was measured) is shared out by each process's share of the device's
 * processors, against the shares of all processes on it. The energy of processes of another pid
 * namespace, and of time in which no process computed, is charged to none; when the driver names no
 * process at all, the energy stays with the device and the report says so.
 * What part is the workload's, and may be, where the driver does not tell all: gpu_parts.h.
 */
#include "energy/internal.h"

#include "energy/gpu_parts.h"

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

/* Uses [from, to) were reported together and share the energy since the report before. */
static void share_out(struct nrg_summary *s, const struct nrg_gpu_uses *uses, size_t from,
                      size_t to, double energy_j, struct nrg_gpu_report *report)
{
    double all = 0;
    for (size_t i = from; i < to; i++)
        all += (double)uses->items[i].sm_ppm;
    for (size_t i = from; i < to; i++) {
        const struct nrg_gpu_use *u = &uses->items[i];
        struct nrg_process_energy *p = find_process(s, u->pid, u->t_ns);
        nrg_gpu_report_add(report, u, p != NULL);
        if (p && all > 0)
            p->gpu_j = nrg_sum_known(p->gpu_j, energy_j * (double)u->sm_ppm / all);
    }
}

struct device {
    const struct nrg_timeline *timeline;
    double idle_w, idle_doubt_w; /* idle_w NAN: not known */
    double scale; /* of the timeline's energy to the domain's, which has the lag corrected */
    double mine_j, mine_s; /* of the workload; the time in which it had a part */
    double least_w;        /* between two reports */
    bool instances;        /* of MIG */
    unsigned doubts;       /* bits of enum nrg_gpu_doubt */
    double low_j, high_j;  /* of the workload, by other divisions */
    size_t named, foreign;
};

/* Shares out what the device used above idle until a report, over length_s. */
static void take_report(struct nrg_summary *s, const struct nrg_gpu_uses *uses, size_t from,
                        size_t to, double above_j, double length_s, struct device *device)
{
    struct nrg_gpu_report report = {0};
    share_out(s, uses, from, to, above_j, &report);
    struct nrg_gpu_part mine = nrg_gpu_report_part(&report, device->instances);
    device->mine_j += mine.part * above_j;
    device->mine_s += mine.part * above_j > 0 ? length_s : 0;
    device->low_j += mine.low * above_j;
    device->high_j += mine.high * above_j;
    device->doubts |= above_j > 0 ? 1u << mine.doubt : 0;
    for (size_t i = from; i < to; i++)
        *(uses->items[i].pid > 0 ? &device->named : &device->foreign) += 1;
}

static void share_device(struct nrg_summary *s, const struct nrg_gpu_uses *uses, int64_t gpu,
                         struct device *device)
{
    int64_t last_ns = s->begin_ns;
    for (size_t i = 0; i < uses->n;) {
        size_t end = nrg_gpu_uses_end(uses, i);
        int64_t t_ns = uses->items[i].t_ns;
        if (uses->items[i].gpu == gpu && t_ns > last_ns && last_ns < s->end_ns) {
            int64_t stop = t_ns < s->end_ns ? t_ns : s->end_ns;
            double length_s = (double)(stop - last_ns) / 1e9;
            double energy =
                device->scale * nrg_timeline_between(device->timeline, last_ns, stop, NULL);
            double idle_j = isnan(device->idle_w) ? 0 : device->idle_w * length_s;
            take_report(s, uses, i, end, fmax(0, energy - idle_j), length_s, device);
            device->least_w = fmin(device->least_w, energy / length_s);
            last_ns = t_ns;
        }
        i = end;
    }
}

static void prepare_device(struct device *device, const struct nrg_domain *domain,
                           struct nrg_summary *s, struct nrg_frame *frame)
{
    size_t channel = (size_t)(domain->channel - frame->channels);
    *device =
        (struct device){.timeline = nrg_frame_timeline(frame, channel),
                        .instances = nrg_gpu_has_instances(frame, domain->channel->channel.name),
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

static void note_doubts(struct nrg_summary *s, const char *gpu, unsigned doubts)
{
    static const char *const why[] = {
        [NRG_GPU_BY_SIZE] = "divided by the sizes of its MIG instances, not by what they did: "
                            "the interval holds every other division",
        [NRG_GPU_BY_ACTIVITY] = "divided by how busy its MIG instances were; the interval reaches "
                                "to the division by their sizes",
        [NRG_GPU_BY_CLIENT] = "divided among the clients of its MPS server by how long each "
                              "computed, as far as that is told, and what it may use: the interval "
                              "holds every other division of what they did at the same time",
    };
    for (size_t i = NRG_GPU_BY_SIZE; i < sizeof why / sizeof *why; i++)
        if (doubts & 1u << i)
            nrg_summary_missing(s, gpu, "%s", why[i]);
}

int nrg_gpu_shares_make(struct nrg_summary *s, struct nrg_frame *frame)
{
    struct nrg_gpu_uses uses;
    int rc = nrg_gpu_uses_read(&uses, frame->recording);
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
        note_doubts(s, name, device.doubts);
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
    nrg_gpu_uses_release(&uses);
    return rc;
}
