/*
 * The amd-smi driver: AMD GPUs through AMD's management libraries. One sensor per GPU.
 *
 *   energy counter   64 bits, in steps that the library names (15.3 uJ), with the driver's time
 *                    stamp: a library that hands out a kept value gives no second row (stamps.h)
 *   polled gauges    load, memory, temperature: one group
 *   processes        see kfd.c
 * Power is not read here: the kernel shows it itself (board/hwmon.c) and under the same name,
 * gpu-N, by the GPU's place on the bus. So counter and gauge are two ways to one GPU, and the
 * report says where they differ (energy/second.c).
 *
 * Refuses: a step that changes while we read. A GPU that every call says is not there is -ENODEV.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/amd/internal.h"
#include "sensors/drivers.h"
#include "sensors/stamps.h"

#define STAMP_WIDTH_NS 1000

struct gpu {
    struct nrg_amd api;
    unsigned index; /* the library's */
    struct nrg_kfd *kfd;
    bool has_energy, has_others;
    double resolution_j;
    struct nrg_stamps stamps;
    size_t n_others, first_other; /* channels */
    const struct nrg_amd_metric *others[NRG_AMD_METRICS];
    bool wanted[NRG_AMD_CHANNELS];
};

static void close_gpu(void *state)
{
    struct gpu *gpu = state;
    nrg_kfd_free(gpu->kfd);
    nrg_amd_unload(&gpu->api);
    free(gpu);
}

static int find_gpu(struct gpu *gpu, const char *bdf)
{
    for (gpu->index = 0; gpu->index < gpu->api.n_gpus; gpu->index++) {
        uint64_t number;
        char name[32];
        if (nrg_amd_bdf(&gpu->api, gpu->index, &number))
            continue;
        nrg_amd_bdf_name(number, name, sizeof name);
        if (!strcmp(name, bdf))
            return 0;
    }
    return -ENODEV;
}

static void take_channel(struct gpu *gpu, const struct nrg_channel *channel, size_t c, bool wanted)
{
    gpu->wanted[c] = wanted;
    if (channel->quantity == NRG_ENERGY) {
        gpu->has_energy = wanted;
        gpu->resolution_j = channel->scale;
        return;
    }
    if (!gpu->n_others)
        gpu->first_other = c;
    for (size_t m = 0; m < NRG_AMD_METRICS; m++)
        if (nrg_amd_metrics[m].quantity == channel->quantity)
            gpu->others[gpu->n_others] = &nrg_amd_metrics[m];
    gpu->n_others++;
    gpu->has_others |= wanted;
}

static int open_gpu(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                    struct nrg_error *err)
{
    char why[256];
    unsigned number = 0;
    struct gpu *gpu = nrg_calloc(1, sizeof *gpu);
    if (!gpu)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    gpu->stamps.most_delay_ns = 2 * NRG_NS_PER_S;
    int rc = nrg_amd_load(&gpu->api, why, sizeof why);
    if (!rc && (rc = find_gpu(gpu, found->locator)))
        snprintf(why, sizeof why, "the library does not list it any more");
    for (size_t c = 0; !rc && c < found->n_channels && c < NRG_AMD_CHANNELS; c++)
        take_channel(gpu, &found->channels[c], c, found->wanted[c]);
    if (!rc && sscanf(found->channels[0].name, "gpu-%u", &number) == 1)
        gpu->kfd = nrg_kfd_new(&ctx->root, found->locator, number, &rc);
    if (rc) {
        close_gpu(gpu);
        return nrg_fail(err, rc, found->sensor, "%s", rc == -ENOMEM ? "out of memory" : why);
    }
    *state = gpu;
    return 0;
}

static int read_energy(struct gpu *gpu, struct nrg_sink *sink)
{
    uint64_t count = 0;
    double resolution_j = 0;
    int64_t stamp_ns = 0, before = nrg_now_ns();
    int rc = nrg_amd_energy(&gpu->api, gpu->index, &count, &resolution_j, &stamp_ns);
    int64_t after = nrg_now_ns(), t_ns = before + (after - before) / 2, width_ns = after - before;
    if (!rc &&
        (resolution_j < gpu->resolution_j * 0.999 || resolution_j > gpu->resolution_j * 1.001))
        rc = -ERANGE;
    struct nrg_stamped rows[2] = {
        {.t_ns = t_ns, .raw = rc ? NRG_MISSING : (int64_t)(count % NRG_AMD_WRAP)}};
    size_t n = 1;
    if (!rc && stamp_ns > 0) {
        n = nrg_stamps_place(&gpu->stamps, stamp_ns, rows[0].raw, after, rows);
        width_ns = STAMP_WIDTH_NS;
    }
    for (size_t i = 0; i < n; i++)
        nrg_sink_row(sink, NRG_AMD_ENERGY_GROUP, rows[i].t_ns, width_ns, &rows[i].raw);
    nrg_sink_fault(sink, 0, rc);
    return rc;
}

/* -ENODEV: every reading says so. */
static int read_others(struct gpu *gpu, struct nrg_sink *sink, unsigned group)
{
    int64_t raw[NRG_AMD_METRICS], before = nrg_now_ns();
    int faults[NRG_AMD_METRICS] = {0};
    size_t asked = 0, gone = 0;
    for (size_t k = 0; k < gpu->n_others; k++) {
        raw[k] = NRG_MISSING;
        if (!gpu->wanted[gpu->first_other + k])
            continue;
        asked++;
        faults[k] = gpu->others[k]->get(&gpu->api, gpu->index, &raw[k]);
        gone += faults[k] == -ENODEV;
        if (faults[k])
            raw[k] = NRG_MISSING;
    }
    int64_t after = nrg_now_ns();
    nrg_sink_row(sink, group, before + (after - before) / 2, after - before, raw);
    for (size_t k = 0; k < gpu->n_others; k++)
        nrg_sink_fault(sink, (unsigned)(gpu->first_other + k), faults[k]);
    return asked && gone == asked ? -ENODEV : 0;
}

static int read_gpu(void *state, struct nrg_sink *sink)
{
    struct gpu *gpu = state;
    int energy = gpu->has_energy ? read_energy(gpu, sink) : -ENODEV;
    int others = gpu->has_others
                     ? read_others(gpu, sink, gpu->first_other ? NRG_AMD_OTHER_GROUP : 0)
                     : -ENODEV;
    if (energy == -ENODEV && others == -ENODEV && (gpu->has_energy || gpu->has_others))
        return -ENODEV;
    if (gpu->kfd)
        nrg_kfd_read(gpu->kfd, sink);
    return 0;
}

const struct nrg_driver nrg_driver_amd_smi = {
    .name = "amd-smi",
    .summary = "AMD GPUs: energy, load, memory and processes (AMD SMI or ROCm SMI)",
    .flags = NRG_MAY_BLOCK,
    .probe = nrg_amd_probe,
    .open = open_gpu,
    .read = read_gpu,
    .close = close_gpu,
};
