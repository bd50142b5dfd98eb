/*
 * Probe of the amd-smi driver: which GPUs are there, and which readings each of them has.
 *
 * The library is loaded only where the kernel's driver for AMD's compute GPUs is: without it the
 * library prints complaints of its own. Counters are read twice, a moment apart, because two kinds
 * that libraries hand out are none: the one of the second die of a module (MI250), always 0, whose
 * joules are in the first one's, and one that stands still (seen on MI100).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "sensors/amd/internal.h"
#include "sensors/files.h"

#define LIMIT_W 3000.0 /* of a module */
#define LOOK_NS (150 * NRG_NS_PER_MS)

const struct nrg_amd_metric nrg_amd_metrics[NRG_AMD_METRICS] = {
    {".util", NRG_UTILISATION, 1e-2, "load", nrg_amd_busy_percent},
    {".memory", NRG_BYTES, 1, "memory in use", nrg_amd_memory_bytes},
    {".temperature", NRG_TEMPERATURE, 1, "temperature", nrg_amd_temperature_c},
};

struct counter {
    int error;
    uint64_t count;
    double resolution_j;
};

void nrg_amd_bdf_name(uint64_t bdf, char *name, size_t size)
{
    snprintf(name, size, "%04x:%02x:%02x.%x", (unsigned)(bdf >> 32), (unsigned)(bdf >> 8 & 0xff),
             (unsigned)(bdf >> 3 & 0x1f), (unsigned)(bdf & 7));
}

static bool amd_hardware(const struct nrg_root *root)
{
    return nrg_root_exists(root, "/dev/kfd") || nrg_root_exists(root, "/sys/module/amdgpu");
}

static int list_missing_library(struct nrg_probe *probe, const char *why)
{
    if (nrg_amd_library())
        return nrg_probe_unavailable(probe, "AMD GPUs", "unset NRG_AMD_LIBRARY", "%s", why);
    return nrg_probe_unavailable(
        probe, "energy of AMD GPUs",
        "install AMD's library: amd-smi-lib of ROCm, or  sudo apt install librocm-smi64-1\n"
        "their power is shown all the same (driver hwmon)",
        "there is an AMD GPU, but %s", why);
}

static void read_counters(const struct nrg_amd *api, struct counter *counters)
{
    for (unsigned i = 0; i < api->n_gpus; i++) {
        int64_t stamp_ns;
        counters[i].error =
            nrg_amd_energy(api, i, &counters[i].count, &counters[i].resolution_j, &stamp_ns);
    }
}

/* Why the counter is none; NULL: it is one. */
static const char *refusal(const struct counter *first, const struct counter *second)
{
    if (second->error)
        return second->error == -ERANGE ? "impossible values" : strerror(-second->error);
    if (!second->count)
        return "it says 0: of a module with two dies (MI250) the other one's counter has both";
    if (!first->error && first->count == second->count)
        return "it stands still; where this was seen, a restart of the machine helped";
    return NULL;
}

static int add_energy(struct nrg_found *found, const struct nrg_amd *api, const char *name,
                      double resolution_j)
{
    struct nrg_channel *channel = nrg_found_channel(found, name, NRG_ENERGY, NRG_COUNTER);
    if (!channel)
        return -ENOMEM;
    snprintf(channel->source, sizeof channel->source, "%s", nrg_amd_energy_call(api));
    channel->scale = channel->resolution = resolution_j;
    channel->wrap = NRG_AMD_WRAP;
    channel->limit_w = LIMIT_W;
    return 0;
}

static int add_others(struct nrg_found *found, const struct nrg_amd *api, unsigned i,
                      const char *base)
{
    unsigned group = found->n_channels ? NRG_AMD_OTHER_GROUP : 0;
    for (size_t m = 0; m < NRG_AMD_METRICS; m++) {
        const struct nrg_amd_metric *metric = &nrg_amd_metrics[m];
        char name[48];
        int64_t raw;
        if (metric->get(api, i, &raw))
            continue;
        snprintf(name, sizeof name, "%.20s%s", base, metric->suffix);
        struct nrg_channel *channel = nrg_found_channel(found, name, metric->quantity, NRG_GAUGE);
        if (!channel)
            return -ENOMEM;
        snprintf(channel->source, sizeof channel->source, "%s: %s",
                 api->rocm ? "ROCm SMI" : "AMD SMI", metric->what);
        channel->scale = channel->resolution = metric->scale;
        channel->group = group;
    }
    return 0;
}

static int check_processes(struct nrg_probe *probe, const char *bdf, unsigned number)
{
    int rc;
    char what[64];
    struct nrg_kfd *kfd = nrg_kfd_new(&probe->ctx->root, bdf, number, &rc);
    snprintf(what, sizeof what, "gpu-%u use per process", number);
    if (!kfd && !rc)
        rc = nrg_probe_unavailable(probe, what, NULL,
                                   "/sys/class/kfd/kfd does not show this GPU's processes");
    nrg_kfd_free(kfd);
    return rc;
}

static int add_gpu(struct nrg_probe *probe, const struct nrg_amd *api, unsigned i,
                   const struct counter *first, const struct counter *second)
{
    uint64_t number;
    unsigned gpu = nrg_next_gpu(probe);
    char bdf[32], sensor[64], name[24], what[96];
    int rc = nrg_amd_bdf(api, i, &number);
    if (rc)
        return nrg_probe_unavailable(probe, "AMD GPUs", NULL, "GPU %u has no PCI address: %s", i,
                                     strerror(-rc));
    nrg_amd_bdf_name(number, bdf, sizeof bdf);
    snprintf(sensor, sizeof sensor, "GPU %u (AMD %s)", gpu, bdf);
    snprintf(name, sizeof name, "gpu-%u", gpu);
    size_t at = probe->n_found;
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return -ENOMEM;
    snprintf(found->locator, sizeof found->locator, "%s", bdf);
    const char *why = refusal(first, second);
    rc = why ? 0 : add_energy(found, api, name, second->resolution_j);
    if (!rc)
        rc = add_others(found, api, i, name);
    if (rc)
        return rc;
    if (!probe->found[at].n_channels)
        probe->n_found--; /* it owns nothing yet */
    else
        rc = check_processes(probe, bdf, gpu);
    snprintf(what, sizeof what, "%s (AMD %s) energy", name, bdf);
    if (!rc && why)
        rc = nrg_probe_unavailable(probe, what, NULL, "%s: %s", nrg_amd_energy_call(api), why);
    return rc;
}

static int add_gpus(struct nrg_probe *probe, const struct nrg_amd *api)
{
    struct counter first[NRG_AMD_MOST_GPUS] = {0}, second[NRG_AMD_MOST_GPUS] = {0};
    struct timespec moment = {.tv_nsec = LOOK_NS};
    int rc = 0;
    if (!api->n_gpus)
        return nrg_probe_unavailable(probe, "AMD GPUs", "see what  amd-smi list  says",
                                     "the library finds no GPU");
    read_counters(api, first);
    nanosleep(&moment, NULL);
    read_counters(api, second);
    for (unsigned i = 0; !rc && i < api->n_gpus; i++)
        rc = add_gpu(probe, api, i, &first[i], &second[i]);
    return rc;
}

int nrg_amd_probe(struct nrg_probe *probe, struct nrg_error *err)
{
    const struct nrg_root *root = &probe->ctx->root;
    struct nrg_amd api;
    char why[256];
    (void)err;
    if (!nrg_amd_library() && (!nrg_root_is_live(root) || !amd_hardware(root)))
        return 0; /* nothing that anybody would miss */
    int rc = nrg_amd_load(&api, why, sizeof why);
    if (rc == -ENOENT || rc == -ELIBBAD)
        return list_missing_library(probe, why);
    if (rc)
        return nrg_probe_unavailable(
            probe, "AMD GPUs",
            "check that you may open the devices:  ls -l /dev/kfd /dev/dri\n"
            "usual cure:  sudo usermod -aG render,video \"$USER\"   (then "
            "log in again)",
            "%s", why);
    rc = add_gpus(probe, &api);
    nrg_amd_unload(&api);
    return rc;
}
