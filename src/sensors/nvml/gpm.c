/*
 * See nvml/internal.h. What a MIG instance did: the share of its multiprocessors that were busy,
 * from NVML's performance monitor (GPM; Hopper and later). A value belongs to the time between two
 * samples, so each instance keeps one and takes another. Values of all instances are needed to
 * divide by: where one fails there are none.
 */
#include <stdlib.h>

#include "sensors/nvml/internal.h"

#define SHORTEST_NS (90 * NRG_NS_PER_MS) /* between samples: NVML asks for 100 ms */

static bool is_supported(const struct nrg_nvml *api, struct nvml_device *board)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_VERSION};
    return api->gpm_support && api->gpm_alloc && api->gpm_free && api->gpm_mig_sample &&
           api->gpm_metrics && !api->gpm_support(board, &support) && support.is_supported;
}

static bool has_instance(const struct nrg_nvml_activity *a, unsigned gpu_instance)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->items[i].gpu_instance == gpu_instance)
            return true;
    return false;
}

void nrg_nvml_activity_init(struct nrg_nvml_activity *a, const struct nrg_nvml *api,
                            struct nvml_device *board, const struct nrg_nvml_slices *slices)
{
    *a = (struct nrg_nvml_activity){.api = api, .board = board};
    if (!slices->n || !is_supported(api, board) || !(a->asked = calloc(1, sizeof *a->asked)))
        return;
    for (size_t i = 0; i < slices->n; i++) {
        unsigned instance = slices->items[i].gpu_instance;
        struct nrg_nvml_instance_activity *item = &a->items[a->n];
        if (has_instance(a, instance))
            continue;
        *item = (struct nrg_nvml_instance_activity){.gpu_instance = instance};
        a->n++;
        if (api->gpm_alloc(&item->samples[0]) || api->gpm_alloc(&item->samples[1])) {
            nrg_nvml_activity_release(a);
            return;
        }
    }
}

void nrg_nvml_activity_release(struct nrg_nvml_activity *a)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < 2; k++)
            if (a->items[i].samples[k])
                a->api->gpm_free(a->items[i].samples[k]);
    free(a->asked);
    *a = (struct nrg_nvml_activity){0};
}

/* The busy share between the two samples, in ppm; NRG_MISSING when the monitor can't tell. */
static int64_t busy_between(struct nrg_nvml_activity *a, struct nvml_gpm_sample *from,
                            struct nvml_gpm_sample *to)
{
    a->asked->version = NVML_GPM_METRICS_GET_VERSION;
    a->asked->n = 1;
    a->asked->from = from;
    a->asked->to = to;
    a->asked->metrics[0] = (struct nvml_gpm_metric){.id = NVML_GPM_METRIC_SM_UTIL};
    const struct nvml_gpm_metric *m = &a->asked->metrics[0];
    if (a->api->gpm_metrics(a->asked) || m->result || !(m->value >= 0 && m->value <= 100))
        return NRG_MISSING;
    return (int64_t)(m->value * 10000 + 0.5);
}

bool nrg_nvml_activity_read(struct nrg_nvml_activity *a, int64_t now_ns)
{
    if (!a->n || (a->taken_ns && now_ns - a->taken_ns < SHORTEST_NS))
        return false;
    bool before = a->taken_ns != 0, complete = before;
    unsigned next = !a->newest;
    for (size_t i = 0; i < a->n; i++) {
        struct nrg_nvml_instance_activity *item = &a->items[i];
        bool failed =
            a->api->gpm_mig_sample(a->board, item->gpu_instance, item->samples[next]) != 0;
        item->busy_ppm = failed || !before || item->failed
                             ? NRG_MISSING
                             : busy_between(a, item->samples[a->newest], item->samples[next]);
        item->failed = failed;
        complete &= item->busy_ppm != NRG_MISSING;
    }
    a->newest = next;
    a->taken_ns = now_ns;
    return complete;
}

int64_t nrg_nvml_activity_of(const struct nrg_nvml_activity *a, unsigned gpu_instance)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->items[i].gpu_instance == gpu_instance)
            return a->items[i].busy_ppm;
    return NRG_MISSING;
}
