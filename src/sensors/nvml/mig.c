/*
 * See nvml/internal.h. A board in MIG mode has no shares per process: NVML refuses the call. What
 * it does tell is how many multiprocessors each instance has, and which process is in which
 * instance.
 */
#include "sensors/nvml/internal.h"

static bool read_slice(const struct nrg_nvml *api, struct nvml_device *instance,
                       struct nrg_nvml_slices *slices)
{
    struct nvml_attributes attributes = {0};
    unsigned gpu, compute = 0;
    if (api->gpu_instance(instance, &gpu) || api->mig_attributes(instance, &attributes) ||
        !attributes.multiprocessors || attributes.multiprocessors > 100000)
        return false;
    if (api->compute_instance && api->compute_instance(instance, &compute))
        compute = 0;
    slices->items[slices->n].gpu_instance = gpu;
    slices->items[slices->n].compute_instance = compute;
    slices->items[slices->n++].processors = attributes.multiprocessors;
    slices->processors += attributes.multiprocessors;
    return true;
}

void nrg_nvml_slices_read(const struct nrg_nvml *api, struct nvml_device *board,
                          struct nrg_nvml_slices *slices)
{
    unsigned count = 0;
    *slices = (struct nrg_nvml_slices){0};
    if (!nrg_nvml_mig_enabled(api, board) || !api->mig_count || !api->mig_handle ||
        !api->gpu_instance || !api->mig_attributes || api->mig_count(board, &count))
        return;
    for (unsigned k = 0; k < count && k < NRG_NVML_MIG_MAX; k++) {
        struct nvml_device *instance;
        if (api->mig_handle(board, k, &instance))
            continue; /* numbers have holes */
        if (!read_slice(api, instance, slices)) {
            *slices = (struct nrg_nvml_slices){0}; /* half a table would divide wrongly */
            return;
        }
    }
}

int64_t nrg_nvml_slice_ppm(const struct nrg_nvml_slices *slices, unsigned gpu_instance,
                           unsigned compute_instance)
{
    for (size_t i = 0; i < slices->n; i++)
        if (slices->items[i].gpu_instance == gpu_instance &&
            slices->items[i].compute_instance == compute_instance)
            return (int64_t)slices->items[i].processors * 1000000 / slices->processors;
    return NRG_MISSING;
}
