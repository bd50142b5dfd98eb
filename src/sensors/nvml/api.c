/*
 * Loading of NVIDIA's management library: see nvml/api.h. One table says which symbols fill
 * which function, newest version first; of several the first that exists is taken. Signatures of
 * versions differ only for the running processes, whose entry size is noted.
 *
 * The path is the dynamic linker's to find; under WSL the library lies where the linker does not
 * look. Refuses libraries without init, count or handle.
 */
#include "sensors/nvml/api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
    const char *name;
    size_t offset;
};

#define AT(field) offsetof(struct nrg_nvml, field)

static const struct symbol symbols[] = {
    {"nvmlInit_v2", AT(init)},
    {"nvmlInit", AT(init)},
    {"nvmlShutdown", AT(shutdown)},
    {"nvmlErrorString", AT(error_string)},
    {"nvmlDeviceGetCount_v2", AT(count)},
    {"nvmlDeviceGetCount", AT(count)},
    {"nvmlDeviceGetHandleByIndex_v2", AT(handle)},
    {"nvmlDeviceGetHandleByIndex", AT(handle)},
    {"nvmlDeviceGetName", AT(name)},
    {"nvmlDeviceGetArchitecture", AT(architecture)},
    {"nvmlDeviceGetTotalEnergyConsumption", AT(energy_mj)},
    {"nvmlDeviceGetPowerUsage", AT(power_mw)},
    {"nvmlDeviceGetFieldValues", AT(fields)},
    {"nvmlDeviceGetEnforcedPowerLimit", AT(power_limit_mw)},
    {"nvmlDeviceGetSamples", AT(samples)},
    {"nvmlDeviceGetUtilizationRates", AT(utilization)},
    {"nvmlDeviceGetEncoderUtilization", AT(encoder)},
    {"nvmlDeviceGetDecoderUtilization", AT(decoder)},
    {"nvmlDeviceGetClockInfo", AT(clock_mhz)},
    {"nvmlDeviceGetMemoryInfo", AT(memory)},
    {"nvmlDeviceGetTemperature", AT(temperature_c)},
    {"nvmlDeviceGetMigMode", AT(mig_mode)},
    {"nvmlDeviceGetMaxMigDeviceCount", AT(mig_count)},
    {"nvmlDeviceGetMigDeviceHandleByIndex", AT(mig_handle)},
    {"nvmlDeviceGetAttributes_v2", AT(mig_attributes)},
    {"nvmlDeviceGetGpuInstanceId", AT(gpu_instance)},
    {"nvmlDeviceGetComputeInstanceId", AT(compute_instance)},
    {"nvmlGpmQueryDeviceSupport", AT(gpm_support)},
    {"nvmlGpmSampleAlloc", AT(gpm_alloc)},
    {"nvmlGpmSampleFree", AT(gpm_free)},
    {"nvmlGpmMigSampleGet", AT(gpm_mig_sample)},
    {"nvmlGpmMetricsGet", AT(gpm_metrics)},
    {"nvmlDeviceGetProcessUtilization", AT(process_utilization)},
    {"nvmlDeviceGetComputeRunningProcesses_v3", AT(processes)},
    {"nvmlDeviceGetComputeRunningProcesses_v2", AT(processes)},
    {"nvmlDeviceGetComputeRunningProcesses", AT(processes)},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", AT(mps_clients)},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v2", AT(mps_clients)},
    {"nvmlDeviceGetMPSComputeRunningProcesses", AT(mps_clients)},
};

const char *nrg_nvml_library(void)
{
    const char *path = secure_getenv("NRG_NVML_LIBRARY");
    return path && *path ? path : NULL;
}

static void *open_library(char *why, size_t size)
{
    static const char *const usual[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"};
    const char *chosen = nrg_nvml_library();
    void *library = dlopen(chosen ? chosen : usual[0], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();
        snprintf(why, size, "%s", text ? text : "cannot load libnvidia-ml.so.1");
    }
    if (!library && !chosen)
        library = dlopen(usual[1], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void resolve_symbols(struct nrg_nvml *api)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *have, *found = dlsym(api->library, symbols[i].name);
        char *slot = (char *)api + symbols[i].offset;
        memcpy(&have, slot, sizeof have);
        if (have || !found)
            continue;
        /* POSIX has function and data pointers alike; C does not, hence the copy. */
        memcpy(slot, &found, sizeof found);
        if (symbols[i].offset == AT(processes))
            api->process_bytes = strstr(symbols[i].name, "_v") ? 24 : 16;
    }
}

int nrg_nvml_load(struct nrg_nvml *api, char *why, size_t size)
{
    *api = (struct nrg_nvml){0};
    why[0] = '\0';
    api->library = open_library(why, size);
    if (!api->library)
        return -ENOENT;
    resolve_symbols(api);
    int rc = 0;
    if (!api->init || !api->count || !api->handle) {
        snprintf(why, size, "the library lacks %s",
                 !api->init    ? "nvmlInit"
                 : !api->count ? "nvmlDeviceGetCount"
                               : "nvmlDeviceGetHandleByIndex");
        rc = -ELIBBAD;
    }
    if (!rc && (rc = api->init())) {
        snprintf(why, size, "%s", nrg_nvml_text(api, rc));
        rc = rc < 0 ? NVML_UNKNOWN : rc;
    }
    if (rc) {
        dlclose(api->library);
        *api = (struct nrg_nvml){0};
    }
    return rc;
}

void nrg_nvml_unload(struct nrg_nvml *api)
{
    if (!api->library)
        return;
    if (api->shutdown)
        api->shutdown();
    dlclose(api->library);
    *api = (struct nrg_nvml){0};
}

int nrg_nvml_errno(int result)
{
    static const struct {
        int result, error;
    } table[] = {
        {NVML_SUCCESS, 0},
        {NVML_INVALID_ARGUMENT, -EINVAL},
        {NVML_NOT_SUPPORTED, -ENOTSUP},
        {NVML_FUNCTION_NOT_FOUND, -ENOTSUP},
        {NVML_NO_PERMISSION, -EACCES},
        {NVML_NOT_FOUND, -ENODATA},
        {NVML_NO_DATA, -ENODATA},
        {NVML_INSUFFICIENT_SIZE, -ENOSPC},
        {NVML_TIMEOUT, -ETIMEDOUT},
        {NVML_GPU_IS_LOST, -ENODEV},
        {NVML_GPU_NOT_FOUND, -ENODEV},
        {NVML_MEMORY, -ENOMEM},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].result == result)
            return table[i].error;
    return -EIO;
}

const char *nrg_nvml_text(const struct nrg_nvml *api, int result)
{
    if (result == NVML_FUNCTION_NOT_FOUND)
        return "not in this version of the library";
    const char *text = api->error_string ? api->error_string(result) : NULL;
    return text && *text ? text : strerror(-nrg_nvml_errno(result));
}
