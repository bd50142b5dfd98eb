/*
 * The nvml driver: NVIDIA GPUs through NVIDIA's management library. One sensor per GPU.
 *
 *   energy counter   mJ since the driver was loaded (Volta and later): exact over seconds, and
 *                    preferred by all later stages
 *   sample buffer    power, utilisation and clocks, measured by the driver on its own schedule
 *                    with its own stamps; each type is a group of its own
 *   polled gauges    memory, temperature, and whatever has no sample buffer: one group
 *   processes        see nvml/process.c
 *
 * Each read asks the buffer for samples newer than the last stamp seen. So a slow reader loses
 * nothing (it holds some seconds) and a fast one gets no sample twice. See nvml/time.c for its
 * clock. Calls go through the kernel driver and can block for long: the driver has a thread of its
 * own.
 *
 * Refuses: sample counts beyond the buffer, stamps that can't be placed, impossible values.
 * A GPU that falls off the bus is -ENODEV once every call says so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "sensors/drivers.h"
#include "sensors/nvml/internal.h"

#define STAMP_WIDTH_NS 1000 /* stamps are whole microseconds */

struct slot {
    const struct nrg_nvml_metric *metric;
    struct nvml_device *device; /* the board or a MIG instance */
    unsigned group;
    bool wanted, sampled;
    unsigned long long last_seen_us;
    int64_t last_t_ns;
};

struct point {
    int64_t t_ns, raw;
    unsigned long long stamp_us;
};

struct nvml {
    struct nrg_nvml api;
    struct nrg_nvml_clock clock;
    struct nrg_nvml_processes *processes;
    size_t n_slots;
    struct slot slots[NRG_NVML_CHANNELS];
    unsigned room; /* of both buffers */
    struct nvml_sample *samples;
    struct point *points;
    unsigned n_asked, n_lost; /* calls of this read */
    bool stepped;             /* the wall clock, during this read */
};

static void nvml_close(void *state)
{
    struct nvml *nvml = state;
    nrg_nvml_processes_free(nvml->processes);
    nrg_nvml_unload(&nvml->api);
    free(nvml->samples);
    free(nvml->points);
    free(nvml);
}

static bool is_metric_of(const struct nrg_nvml_metric *metric, const struct nrg_channel *channel,
                         const char *suffix, bool sampled)
{
    bool same_call = sampled ? metric->sample_type >= 0
                             : !strncmp(channel->source, metric->call, strlen(metric->call));
    return metric->quantity == channel->quantity && !strcmp(metric->suffix, suffix) && same_call;
}

/* Recognises the metric and the device of a channel by what probe wrote into it. */
static int fill_slot(struct nvml *nvml, struct slot *slot, const struct nrg_channel *channel,
                     struct nvml_device *board)
{
    unsigned gpu, instance;
    int skip = 0;
    slot->device = board;
    slot->group = channel->group;
    slot->sampled = !strncmp(channel->source, NRG_NVML_SAMPLED, strlen(NRG_NVML_SAMPLED));
    if (sscanf(channel->name, "gpu-%u.mig-%u", &gpu, &instance) == 2) {
        slot->metric = &nrg_nvml_metrics[NRG_NVML_MEMORY];
        if (!nvml->api.mig_handle)
            return NVML_FUNCTION_NOT_FOUND;
        return nvml->api.mig_handle(board, instance, &slot->device);
    }
    if (sscanf(channel->name, "gpu-%u%n", &gpu, &skip) != 1)
        return NVML_INVALID_ARGUMENT;
    for (size_t m = 0; m < NRG_NVML_METRICS; m++)
        if (is_metric_of(&nrg_nvml_metrics[m], channel, channel->name + skip, slot->sampled))
            slot->metric = &nrg_nvml_metrics[m];
    return slot->metric ? 0 : NVML_INVALID_ARGUMENT;
}

static int fill_slots(struct nvml *nvml, const struct nrg_found *found, struct nvml_device *board,
                      struct nrg_error *err)
{
    struct nrg_clock_pair pair = nrg_clock_pair_now(0);
    nrg_nvml_clock_update(&nvml->clock, pair);
    if (found->n_channels > NRG_NVML_CHANNELS)
        return nrg_fail(err, -E2BIG, found->sensor, "too many channels");
    for (size_t c = 0; c < found->n_channels; c++) {
        struct slot *slot = &nvml->slots[nvml->n_slots++];
        int rc = fill_slot(nvml, slot, &found->channels[c], board);
        if (rc)
            return nrg_fail(err, nrg_nvml_errno(rc), found->channels[c].name, "%s",
                            nrg_nvml_text(&nvml->api, rc));
        slot->wanted = found->wanted[c];
        slot->last_seen_us = (unsigned long long)pair.real_ns / 1000;
        slot->last_t_ns = pair.mono_ns;
        if (slot->sampled) {
            unsigned room = nrg_nvml_sample_room(&nvml->api, board, slot->metric->sample_type);
            nvml->room = room > nvml->room ? room : nvml->room;
        }
    }
    return 0;
}

static int open_board(struct nvml *nvml, const struct nrg_context *ctx,
                      const struct nrg_found *found, struct nrg_error *err)
{
    char why[256];
    uint64_t index;
    struct nvml_device *board;
    int rc = nrg_nvml_load(&nvml->api, why, sizeof why);
    if (rc)
        return nrg_fail(err, rc < 0 ? rc : nrg_nvml_errno(rc), found->sensor, "NVML: %s", why);
    if (nrg_parse_u64(found->locator, strlen(found->locator), &index) || index > UINT32_MAX)
        return nrg_fail(err, -EINVAL, found->sensor, "bad locator '%s'", found->locator);
    if ((rc = nvml->api.handle((unsigned)index, &board)))
        return nrg_fail(err, nrg_nvml_errno(rc), found->sensor, "NVML: %s",
                        nrg_nvml_text(&nvml->api, rc));
    if ((rc = fill_slots(nvml, found, board, err)))
        return rc;
    nvml->samples = calloc(nvml->room + 1, sizeof *nvml->samples);
    nvml->points = calloc(nvml->room + 1, sizeof *nvml->points);
    nvml->processes = nrg_nvml_processes_new(&nvml->api, board, (unsigned)index, &ctx->root, &rc);
    if (rc || !nvml->samples || !nvml->points)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    return 0;
}

static int nvml_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err)
{
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    int rc = open_board(nvml, ctx, found, err);
    if (rc)
        nvml_close(nvml);
    else
        *state = nvml;
    return rc;
}

/* After a step stamps may have gone back: ask for all samples, place_samples drops known ones. */
static void take_pair(struct nvml *nvml)
{
    if (!nrg_nvml_clock_update(&nvml->clock, nrg_clock_pair_now(0)))
        return;
    nvml->stepped = true;
    for (size_t c = 0; c < nvml->n_slots; c++)
        nvml->slots[c].last_seen_us = 0;
}

/* Counts calls and those that say the GPU is lost; returns the errno for the channel. */
static int count_result(struct nvml *nvml, int result)
{
    nvml->n_asked++;
    nvml->n_lost += result == NVML_GPU_IS_LOST;
    return result < 0 ? result : nrg_nvml_errno(result);
}

/* One row of a group of plain getters, which starts at slot `first`. */
static void read_group(struct nvml *nvml, size_t first, struct nrg_sink *sink)
{
    int64_t raw[NRG_NVML_CHANNELS];
    int faults[NRG_NVML_CHANNELS] = {0};
    unsigned group = nvml->slots[first].group;
    size_t n = 0, n_wanted = 0;
    int64_t before = nrg_now_ns();
    for (size_t c = first; c < nvml->n_slots; c++) {
        struct slot *slot = &nvml->slots[c];
        if (slot->group != group)
            continue;
        raw[n] = NRG_MISSING;
        if (slot->wanted) {
            n_wanted++;
            faults[c] =
                count_result(nvml, nrg_nvml_get(&nvml->api, slot->metric, slot->device, &raw[n]));
        }
        n++;
    }
    int64_t after = nrg_now_ns();
    if (n_wanted)
        nrg_sink_row(sink, group, before + (after - before) / 2, after - before, raw);
    for (size_t c = first; c < nvml->n_slots; c++)
        nrg_sink_fault(sink, (unsigned)c, faults[c]);
}

/* Converts stamps and sorts by time; the buffer is nearly in order already. */
static size_t place_samples(struct nvml *nvml, const struct slot *slot, int value_type, size_t n,
                            int *fault)
{
    size_t placed = 0;
    for (size_t i = 0; i < n; i++) {
        const struct nvml_sample *sample = &nvml->samples[i];
        struct point point = {.stamp_us = sample->stamp_us};
        if (sample->stamp_us <= slot->last_seen_us ||
            !nrg_nvml_place(&nvml->clock, sample->stamp_us, slot->last_t_ns, &point.t_ns))
            continue;
        int rc = nrg_nvml_value(slot->metric, value_type, sample->value, &point.raw);
        *fault = rc ? rc : *fault;
        size_t at = placed++;
        for (; at > 0 && nvml->points[at - 1].t_ns > point.t_ns; at--)
            nvml->points[at] = nvml->points[at - 1];
        nvml->points[at] = point;
    }
    return placed;
}

static void read_samples(struct nvml *nvml, size_t c, struct nrg_sink *sink)
{
    struct slot *slot = &nvml->slots[c];
    int value_type = -1;
    unsigned n = nvml->room;
    int result = nvml->api.samples
                     ? nvml->api.samples(slot->device, slot->metric->sample_type,
                                         slot->last_seen_us, &value_type, &n, nvml->samples)
                     : NVML_FUNCTION_NOT_FOUND;
    int fault = count_result(nvml, result);
    if (result || n > nvml->room)
        n = result ? 0 : nvml->room;
    /* The pair must be younger than the samples, else the newest would lie in the future. */
    if (n)
        take_pair(nvml);
    size_t placed = place_samples(nvml, slot, value_type, n, &fault);
    for (size_t i = 0; i < placed; i++) {
        const struct point *point = &nvml->points[i];
        nrg_sink_row(sink, slot->group, point->t_ns, STAMP_WIDTH_NS, &point->raw);
        slot->last_t_ns = point->t_ns;
        slot->last_seen_us = point->stamp_us;
    }
    if (fault != -ENODATA) /* that there is no new sample yet is not a fault */
        nrg_sink_fault(sink, (unsigned)c, fault);
}

static int nvml_read(void *state, struct nrg_sink *sink)
{
    struct nvml *nvml = state;
    unsigned done = 0;
    nvml->n_asked = nvml->n_lost = 0;
    nvml->stepped = false;
    take_pair(nvml);
    for (size_t c = 0; c < nvml->n_slots; c++) {
        const struct slot *slot = &nvml->slots[c];
        if (slot->sampled && slot->wanted)
            read_samples(nvml, c, sink);
        if (slot->sampled || done & 1u << slot->group)
            continue;
        done |= 1u << slot->group;
        read_group(nvml, c, sink);
    }
    if (nvml->n_asked && nvml->n_lost == nvml->n_asked)
        return -ENODEV;
    if (nvml->processes)
        nrg_nvml_processes_read(nvml->processes, &nvml->clock, nvml->stepped, sink);
    return 0;
}

const struct nrg_driver nrg_driver_nvml = {
    .name = "nvml",
    .summary = "NVIDIA GPUs: energy, power, utilisation, clocks, memory and processes (NVML)",
    .flags = NRG_MAY_BLOCK,
    .probe = nrg_nvml_probe,
    .open = nvml_open,
    .read = nvml_read,
    .close = nvml_close,
};
