/*
 * See api.h. One table says which symbols fill which function. A library is AMD SMI when it has
 * amdsmi_init, ROCm SMI when it has rsmi_init, whatever its file is called.
 *
 * Refuses: libraries with neither; resolutions, percentages and temperatures that make no sense,
 * which is how both say "not there" (all ones) when they do not refuse.
 */
#include "sensors/amd/api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SOCKETS 64

#define AT(field) offsetof(struct nrg_amd, field)

static const struct symbol {
    const char *name;
    bool rocm;
    size_t offset;
} symbols[] = {
    {"amdsmi_init", false, AT(init)},
    {"amdsmi_shut_down", false, AT(shut_down)},
    {"amdsmi_status_code_to_string", false, AT(status_string)},
    {"amdsmi_get_socket_handles", false, AT(sockets)},
    {"amdsmi_get_processor_handles", false, AT(processors)},
    {"amdsmi_get_gpu_bdf_id", false, AT(bdf)},
    {"amdsmi_get_energy_count", false, AT(energy)},
    {"amdsmi_get_gpu_activity", false, AT(activity)},
    {"amdsmi_get_gpu_memory_usage", false, AT(memory)},
    {"amdsmi_get_temp_metric", false, AT(temperature)},
    {"rsmi_init", true, AT(init)},
    {"rsmi_shut_down", true, AT(shut_down)},
    {"rsmi_status_string", true, AT(status_string)},
    {"rsmi_num_monitor_devices", true, AT(rsmi_count)},
    {"rsmi_dev_pci_id_get", true, AT(rsmi_bdf)},
    {"rsmi_dev_energy_count_get", true, AT(rsmi_energy)},
    {"rsmi_dev_busy_percent_get", true, AT(rsmi_busy)},
    {"rsmi_dev_memory_usage_get", true, AT(rsmi_memory)},
    {"rsmi_dev_temp_metric_get", true, AT(rsmi_temperature)},
};

const char *nrg_amd_library(void)
{
    const char *path = secure_getenv("NRG_AMD_LIBRARY");
    return path && *path ? path : NULL;
}

static void *open_library(char *why, size_t size)
{
    static const char *const usual[] = {"libamd_smi.so", "/opt/rocm/lib/libamd_smi.so",
                                        "librocm_smi64.so.1", "librocm_smi64.so",
                                        "/opt/rocm/lib/librocm_smi64.so"};
    const char *chosen = nrg_amd_library();
    if (chosen) {
        void *library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
        const char *text = library ? NULL : dlerror();
        if (!library)
            snprintf(why, size, "%s", text ? text : "the library does not load");
        return library;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        void *library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    snprintf(why, size, "neither libamd_smi.so nor librocm_smi64.so is here");
    return NULL;
}

static void resolve_symbols(struct nrg_amd *api)
{
    api->rocm = !dlsym(api->library, "amdsmi_init");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = symbols[i].rocm == api->rocm ? dlsym(api->library, symbols[i].name) : NULL;
        /* POSIX has function and data pointers alike; C does not, hence the copy. */
        if (found)
            memcpy((char *)api + symbols[i].offset, &found, sizeof found);
    }
}

static int to_errno(bool rocm, int result)
{
    static const struct {
        int amd, rocm, error;
    } table[] = {
        {AMDSMI_NOT_SUPPORTED, RSMI_NOT_SUPPORTED, -ENOTSUP},
        {AMDSMI_NOT_YET_IMPLEMENTED, RSMI_NOT_YET_IMPLEMENTED, -ENOTSUP},
        {AMDSMI_INVAL, RSMI_INVALID_ARGS, -EINVAL},
        {AMDSMI_NO_PERM, RSMI_PERMISSION, -EACCES},
        {AMDSMI_BUSY, RSMI_BUSY, -EBUSY},
        {AMDSMI_NOT_FOUND, RSMI_NOT_FOUND, -ENODEV},
        {AMDSMI_NO_DATA, RSMI_NO_DATA, -ENODATA},
        {AMDSMI_OUT_OF_RESOURCES, RSMI_OUT_OF_RESOURCES, -ENOMEM},
        {AMDSMI_DRIVER_NOT_LOADED, RSMI_FILE_ERROR, -ENODEV},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (result == (rocm ? table[i].rocm : table[i].amd))
            return table[i].error;
    return result ? -EIO : 0;
}

static int list_amd(struct nrg_amd *api)
{
    void *sockets[MOST_SOCKETS];
    uint32_t n_sockets = MOST_SOCKETS;
    if (!api->sockets || !api->processors || !api->bdf)
        return -ELIBBAD;
    int rc = to_errno(false, api->sockets(&n_sockets, sockets));
    for (uint32_t s = 0; !rc && s < n_sockets && s < MOST_SOCKETS; s++) {
        uint32_t room = NRG_AMD_MOST_GPUS - api->n_gpus, n = room;
        /* A socket without GPUs (a processor's) is none of ours. */
        if (!api->processors(sockets[s], &n, api->handles + api->n_gpus))
            api->n_gpus += n < room ? n : room;
    }
    return rc;
}

static int list_rocm(struct nrg_amd *api)
{
    uint32_t n = 0;
    if (!api->rsmi_count || !api->rsmi_bdf)
        return -ELIBBAD;
    int rc = to_errno(true, api->rsmi_count(&n));
    api->n_gpus = n < NRG_AMD_MOST_GPUS ? n : NRG_AMD_MOST_GPUS;
    return rc;
}

static int start(struct nrg_amd *api, char *why, size_t size)
{
    const char *text = NULL;
    int result = api->init(api->rocm ? 0 : AMDSMI_INIT_GPUS);
    if (result) {
        if (!api->status_string || api->status_string(result, &text) || !text)
            text = "no reason given";
        snprintf(why, size, "the library does not start: %s (%d)", text, result);
        return to_errno(api->rocm, result);
    }
    int rc = api->rocm ? list_rocm(api) : list_amd(api);
    if (rc)
        snprintf(why, size, "the library lists no GPUs: %s", strerror(-rc));
    return rc;
}

int nrg_amd_load(struct nrg_amd *api, char *why, size_t size)
{
    *api = (struct nrg_amd){0};
    why[0] = '\0';
    api->library = open_library(why, size);
    if (!api->library)
        return -ENOENT;
    resolve_symbols(api);
    int rc = -ELIBBAD;
    if (!api->init)
        snprintf(why, size, "the library is neither AMD SMI nor ROCm SMI");
    else
        rc = start(api, why, size);
    if (rc) {
        dlclose(api->library);
        *api = (struct nrg_amd){0};
    }
    return rc;
}

void nrg_amd_unload(struct nrg_amd *api)
{
    if (!api->library)
        return;
    if (api->shut_down)
        api->shut_down();
    dlclose(api->library);
    *api = (struct nrg_amd){0};
}

/* The call of the library that is loaded, or "not supported". */
#define CALL(api, i, amd, rsmi, ...)                                                               \
    to_errno((api)->rocm, (api)->rocm                                                              \
                              ? ((api)->rsmi ? (api)->rsmi(i, __VA_ARGS__) : RSMI_NOT_SUPPORTED)   \
                              : ((api)->amd ? (api)->amd((api)->handles[i], __VA_ARGS__)           \
                                            : AMDSMI_NOT_SUPPORTED))

int nrg_amd_bdf(const struct nrg_amd *api, unsigned i, uint64_t *bdf)
{
    return CALL(api, i, bdf, rsmi_bdf, bdf);
}

int nrg_amd_energy(const struct nrg_amd *api, unsigned i, uint64_t *count, double *resolution_j,
                   int64_t *stamp_ns)
{
    float resolution_uj = 0;
    uint64_t stamp = 0;
    int rc = CALL(api, i, energy, rsmi_energy, count, &resolution_uj, &stamp);
    if (rc)
        return rc;
    if (!(resolution_uj > 0.001f && resolution_uj < 1e6f) || *count == UINT64_MAX)
        return -ERANGE;
    *resolution_j = (double)resolution_uj * 1e-6;
    *stamp_ns = stamp < INT64_MAX / 2 ? (int64_t)stamp : 0;
    return 0;
}

int nrg_amd_busy_percent(const struct nrg_amd *api, unsigned i, int64_t *percent)
{
    struct nrg_amdsmi_activity activity = {.gfx = UINT32_MAX};
    uint32_t busy = UINT32_MAX;
    int rc;
    if (api->rocm) {
        rc = api->rsmi_busy ? to_errno(true, api->rsmi_busy(i, &busy)) : -ENOTSUP;
    } else {
        rc = api->activity ? to_errno(false, api->activity(api->handles[i], &activity)) : -ENOTSUP;
        busy = activity.gfx;
    }
    *percent = busy;
    return rc ? rc : busy > 100 ? -ERANGE : 0;
}

int nrg_amd_memory_bytes(const struct nrg_amd *api, unsigned i, int64_t *bytes)
{
    uint64_t used = 0;
    int rc = CALL(api, i, memory, rsmi_memory, AMDSMI_VRAM, &used);
    *bytes = (int64_t)used;
    return rc ? rc : used > INT64_MAX / 2 ? -ERANGE : 0;
}

/* AMD SMI says degrees, ROCm SMI thousandths. Boards without an edge sensor have a junction. */
int nrg_amd_temperature_c(const struct nrg_amd *api, unsigned i, int64_t *celsius)
{
    int rc = -ENOTSUP;
    for (uint32_t place = AMDSMI_EDGE; rc && place <= AMDSMI_JUNCTION; place++) {
        int64_t value = 0;
        if (api->rocm)
            rc = api->rsmi_temperature
                     ? to_errno(true, api->rsmi_temperature(i, place, AMDSMI_TEMP_CURRENT, &value))
                     : -ENOTSUP;
        else
            rc = api->temperature ? to_errno(false, api->temperature(api->handles[i], (int)place,
                                                                     AMDSMI_TEMP_CURRENT, &value))
                                  : -ENOTSUP;
        *celsius = api->rocm ? value / 1000 : value;
        if (!rc && (*celsius < 1 || *celsius > 200))
            rc = -ERANGE;
    }
    return rc;
}

const char *nrg_amd_energy_call(const struct nrg_amd *api)
{
    return api->rocm ? "rsmi_dev_energy_count_get" : "amdsmi_get_energy_count";
}
