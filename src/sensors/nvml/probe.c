/*
 * Probe of the nvml driver: which GPUs are there, and which readings each of them has.
 *
 * Every reading is tried once. The driver's sample buffer is preferred, because its stamps are
 * the time of measuring and no sample is lost between two polls; it must hold recent samples of
 * a known type, else the plain getter is used (some boards accept the call and never fill the
 * buffer, some keep stale samples). A reading that neither gives is listed with both reasons.
 * Of the two getters of power the one of the moment is taken where it works; the other shows a mean
 * of a second on most boards.
 *
 * A device that refuses everything (Jetson: the library loads and every call is "Not Supported")
 * is one entry, not ten. With MIG, power and energy exist for the board only: repeating them per
 * instance would count them several times.
 *
 * Without a library the reason depends on whether NVIDIA hardware is there at all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/nvml/internal.h"
#include "sensors/sensor_profile.h"

#define PCI_DIR   "/sys/bus/pci/devices"
#define FRESH_US  60000000LL
#define LIMIT_W   2000.0
#define MAX_GPUS  64u
#define WHOLE_GPU " (whole board, all MIG instances)"
#define FIX_JETSON                                                                                 \
    "on a Jetson, the board's rails are measured by an INA3221: see nrg sensors -s ina3221"

struct gpu {
    const struct nrg_nvml *api;
    struct nvml_device *device;
    unsigned index;
    bool mig;
    const struct nrg_sensor_profile *profile;
    const struct nrg_nvml_metric *power, *polled; /* by which getter; beside the buffer */
    char name[64];
    int refused[NRG_NVML_READINGS][2]; /* by the sample buffer, by the getter; 0: not refused */
};

static bool nvidia_hardware(const struct nrg_root *root)
{
    struct nrg_names names;
    bool found = nrg_root_exists(root, "/proc/driver/nvidia") ||
                 nrg_root_exists(root, "/dev/nvidiactl") || nrg_root_exists(root, "/dev/dxg");
    if (found || nrg_root_list(root, PCI_DIR, &names))
        return found;
    for (size_t i = 0; !found && i < names.n; i++) {
        char path[320], vendor[16];
        snprintf(path, sizeof path, PCI_DIR "/%.255s/vendor", names.items[i]);
        found =
            !nrg_root_read_label(root, path, vendor, sizeof vendor) && !strcmp(vendor, "0x10de");
    }
    nrg_names_release(&names);
    return found;
}

static int list_missing_library(struct nrg_probe *probe, const char *why)
{
    if (nrg_nvml_library())
        return nrg_probe_unavailable(probe, "NVIDIA GPUs", "unset NRG_NVML_LIBRARY", "%s", why);
    if (!nvidia_hardware(&probe->ctx->root))
        return nrg_probe_unavailable(probe, "NVIDIA GPUs", NULL,
                                     "no NVIDIA device and no libnvidia-ml.so.1 here");
    return nrg_probe_unavailable(
        probe, "NVIDIA GPUs",
        "install the library that belongs to the driver, e.g.  sudo apt install libnvidia-ml1\n"
        "in a container:  start it with --gpus all and NVIDIA_DRIVER_CAPABILITIES=utility,compute",
        "there is NVIDIA hardware, but %s", why);
}

static int list_failed_start(struct nrg_probe *probe, int result, const char *why)
{
    static const struct {
        int result;
        const char *fix;
    } fixes[] = {
        {NVML_NO_PERMISSION, "check that you may open the devices:  ls -l /dev/nvidia*\n"
                             "usual cure:  sudo usermod -aG video \"$USER\"   (then log in again)"},
        {NVML_DRIVER_NOT_LOADED,
         "sudo modprobe nvidia\n"
         "if that fails, the module is not built for this kernel: install the driver again "
         "(dkms), and check that secure boot accepts it"},
        {NVML_LIB_RM_VERSION_MISMATCH,
         "the driver was updated while the old module is loaded: reboot, or unload it with  "
         "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia\n"
         "in a container: the image brings its own libnvidia-ml.so.1; remove it there"},
        {NVML_GPU_NOT_FOUND, "check that the GPU is on the bus:  lspci -d 10de:"},
        {NVML_GPU_IS_LOST, "the GPU fell off the bus: see  sudo dmesg | grep -i xid ; reboot"},
    };
    const char *fix = "see what  nvidia-smi  says";
    for (size_t i = 0; i < sizeof fixes / sizeof *fixes; i++)
        if (fixes[i].result == result)
            fix = fixes[i].fix;
    return nrg_probe_unavailable(probe, "NVIDIA GPUs", fix, "NVML does not start: %s (%d)", why,
                                 result);
}

/* 0 when the sample buffer is usable, else the nvml_result that says why not. */
static int try_samples(const struct gpu *gpu, const struct nrg_nvml_metric *metric)
{
    int value_type = -1, rc = NVML_FUNCTION_NOT_FOUND;
    if (metric->sample_type < 0 || !gpu->api->samples)
        return rc;
    unsigned room = nrg_nvml_sample_room(gpu->api, gpu->device, metric->sample_type), n = room;
    struct nvml_sample *samples = calloc(room, sizeof *samples);
    if (!samples)
        return NVML_MEMORY;
    rc = gpu->api->samples(gpu->device, metric->sample_type, 0, &value_type, &n, samples);
    if (!rc) {
        int64_t raw, now_us = nrg_realtime_ns() / 1000;
        rc = NVML_NO_DATA;
        for (size_t i = 0; rc && i < n && i < room; i++) {
            long long age_us = now_us - (long long)samples[i].stamp_us;
            if (age_us < FRESH_US && age_us > -FRESH_US &&
                !nrg_nvml_value(metric, value_type, samples[i].value, &raw))
                rc = 0;
        }
    }
    free(samples);
    return rc;
}

/* A file that says nothing of the board or of the call is of any. */
static bool is_profile_of(const struct gpu *gpu, const char *call)
{
    const struct nrg_sensor_profile *p = gpu->profile;
    return p && (!p->gpu[0] || !strcmp(p->gpu, gpu->name)) &&
           (!p->source[0] || !strncmp(p->source, call, strlen(call)));
}

/* What was measured on such a board, or what the table knows. */
static struct nrg_nvml_power_sensor power_sensor(const struct gpu *gpu)
{
    const struct nrg_sensor_profile *p = gpu->profile;
    if (is_profile_of(gpu, gpu->power->call)) {
        bool mean = p->window_ns > p->update_ns;
        return (struct nrg_nvml_power_sensor){p->update_ns, mean ? p->update_ns : p->window_ns,
                                              mean ? p->window_ns : 0, p->lag_ns};
    }
    unsigned architecture = (unsigned)NVML_ARCH_UNKNOWN;
    if (!gpu->api->architecture || gpu->api->architecture(gpu->device, &architecture))
        architecture = (unsigned)NVML_ARCH_UNKNOWN;
    struct nrg_nvml_power_sensor sensor = nrg_nvml_power_sensor(architecture, gpu->name);
    if (gpu->power == &nrg_nvml_metrics[NRG_NVML_INSTANT])
        sensor.mean_ns = sensor.lag_ns = 0;
    return sensor;
}

/* The getter that shows the power of the moment, where it does; nobody draws nothing. */
static void choose_power(struct gpu *gpu)
{
    int64_t raw;
    bool works =
        !nrg_nvml_get(gpu->api, &nrg_nvml_metrics[NRG_NVML_INSTANT], gpu->device, &raw) && raw > 0;
    gpu->power = &nrg_nvml_metrics[works ? NRG_NVML_INSTANT : NRG_NVML_POWER];
    gpu->polled = &nrg_nvml_metrics[works ? NRG_NVML_POLLED_INSTANT : NRG_NVML_POLLED];
}

static void describe_power(struct nrg_channel *channel, const struct gpu *gpu, bool sampled)
{
    struct nrg_nvml_power_sensor sensor = power_sensor(gpu);
    unsigned limit_mw = 0;
    if (sensor.update_ns)
        channel->update_ns = sensor.update_ns;
    channel->window_ns = sensor.mean_ns && !sampled ? sensor.mean_ns : sensor.window_ns;
    channel->lag_ns = sampled ? 0 : sensor.lag_ns;
    if (gpu->api->power_limit_mw && !gpu->api->power_limit_mw(gpu->device, &limit_mw) &&
        limit_mw < LIMIT_W * 1e3)
        channel->limit_w = limit_mw / 1e3;
}

static int add_gpu_channel(struct nrg_found *found, const struct gpu *gpu,
                           const struct nrg_nvml_metric *metric, bool sampled)
{
    char name[48];
    snprintf(name, sizeof name, "gpu-%u%s", gpu->index, metric->suffix);
    struct nrg_channel *channel = nrg_found_channel(found, name, metric->quantity, metric->kind);
    if (!channel)
        return -ENOMEM;
    bool board = metric->quantity == NRG_ENERGY || metric->quantity == NRG_POWER;
    const char *note = gpu->mig && board ? WHOLE_GPU : "";
    if (sampled)
        snprintf(channel->source, sizeof channel->source, NRG_NVML_SAMPLED "(%s)%s",
                 metric->sample_name, note);
    else
        snprintf(channel->source, sizeof channel->source, "%s%s", metric->call, note);
    channel->scale = channel->resolution = metric->scale;
    channel->update_ns = metric->update_ns;
    if (metric->quantity == NRG_ENERGY)
        channel->limit_w = LIMIT_W;
    if (metric->quantity == NRG_POWER)
        describe_power(channel, gpu, sampled);
    return 0;
}

static int add_metrics(struct nrg_found *found, struct gpu *gpu)
{
    int rc = 0;
    for (size_t m = 0; !rc && m < NRG_NVML_READINGS; m++) {
        const struct nrg_nvml_metric *metric = &nrg_nvml_metrics[m];
        int64_t raw;
        int *refused = gpu->refused[m];
        refused[0] = try_samples(gpu, metric);
        if (m == NRG_NVML_POWER && refused[0])
            metric = gpu->power;
        refused[1] = refused[0] ? nrg_nvml_get(gpu->api, metric, gpu->device, &raw) : 0;
        if (!refused[1])
            rc = add_gpu_channel(found, gpu, metric, !refused[0]);
    }
    return rc;
}

/* The buffer and the getter are two ways to one sensor, and may differ: energy/second.c. */
static int add_polled_power(struct nrg_found *found, const struct gpu *gpu)
{
    int64_t raw;
    if (gpu->refused[NRG_NVML_POWER][0] || nrg_nvml_get(gpu->api, gpu->polled, gpu->device, &raw))
        return 0;
    return add_gpu_channel(found, gpu, gpu->polled, false);
}

static int add_instances(struct nrg_found *found, const struct gpu *gpu)
{
    unsigned n = 0;
    if (!gpu->api->mig_count || !gpu->api->mig_handle || gpu->api->mig_count(gpu->device, &n))
        return 0;
    for (unsigned k = 0; k < n && k < NRG_NVML_MIG_MAX; k++) {
        struct nvml_device *instance;
        int64_t raw;
        char name[48];
        if (gpu->api->mig_handle(gpu->device, k, &instance) ||
            nrg_nvml_get(gpu->api, &nrg_nvml_metrics[NRG_NVML_MEMORY], instance, &raw))
            continue;
        snprintf(name, sizeof name, "gpu-%u.mig-%u.memory", gpu->index, k);
        struct nrg_channel *channel = nrg_found_channel(found, name, NRG_BYTES, NRG_GAUGE);
        if (!channel)
            return -ENOMEM;
        snprintf(channel->source, sizeof channel->source, "nvmlDeviceGetMemoryInfo (MIG %u)", k);
        snprintf(channel->parent, sizeof channel->parent, "gpu-%u.memory", gpu->index);
        channel->resolution = 1;
    }
    return 0;
}

/*
 * The counter has a group of its own: its time must not be blurred by the other calls, which can
 * take milliseconds each. Groups are numbered without holes.
 */
static void number_groups(struct nrg_found *found)
{
    unsigned next = 0, polled = UINT32_MAX;
    for (size_t c = 0; c < found->n_channels; c++) {
        struct nrg_channel *channel = &found->channels[c];
        bool alone = channel->kind != NRG_GAUGE ||
                     !strncmp(channel->source, NRG_NVML_SAMPLED, strlen(NRG_NVML_SAMPLED));
        channel->group = alone || polled == UINT32_MAX ? next++ : polled;
        if (!alone)
            polled = channel->group;
    }
}

static const char *refusal_text(const struct gpu *gpu, int result)
{
    if (result < 0)
        return "gives impossible values";
    return result == NVML_NO_DATA ? "no recent samples" : nrg_nvml_text(gpu->api, result);
}

static int list_refusals(struct nrg_probe *probe, const struct gpu *gpu)
{
    int rc = 0;
    for (size_t m = 0; !rc && m < NRG_NVML_READINGS; m++) {
        const struct nrg_nvml_metric *metric = &nrg_nvml_metrics[m];
        char what[64];
        if (!gpu->refused[m][1])
            continue;
        snprintf(what, sizeof what, "gpu-%u%s %s", gpu->index, metric->suffix,
                 nrg_quantity_name(metric->quantity));
        const char *getter = refusal_text(gpu, gpu->refused[m][1]);
        if (metric->sample_type < 0)
            rc = nrg_probe_unavailable(probe, what, NULL, "%s: %s", metric->call, getter);
        else
            rc = nrg_probe_unavailable(probe, what, NULL, NRG_NVML_SAMPLED ": %s; %s: %s",
                                       refusal_text(gpu, gpu->refused[m][0]), metric->call, getter);
    }
    if (!rc && is_profile_of(gpu, "") && !is_profile_of(gpu, gpu->power->call))
        rc = nrg_probe_unavailable(probe, "sensor profile", "nrg calibrate --gpu -o FILE",
                                   "it is of %s, and gpu-%u is read by %s", gpu->profile->source,
                                   gpu->index, gpu->power->call);
    if (!rc && gpu->mig) {
        char what[64];
        snprintf(what, sizeof what, "gpu-%u energy per MIG instance", gpu->index);
        rc = nrg_probe_unavailable(probe, what, NULL,
                                   "NVML has power and energy of the whole board only: gpu-%u",
                                   gpu->index);
    }
    return rc;
}

static int list_refused_gpu(struct nrg_probe *probe, const struct gpu *gpu)
{
    char what[96];
    bool unsupported = true;
    for (size_t m = 0; m < NRG_NVML_READINGS; m++)
        unsupported &= nrg_nvml_errno(gpu->refused[m][1]) == -ENOTSUP;
    snprintf(what, sizeof what, "GPU %u (%s)", gpu->index, gpu->name);
    if (unsupported)
        return nrg_probe_unavailable(probe, what, FIX_JETSON,
                                     "NVML is there, but every reading is Not Supported");
    return nrg_probe_unavailable(probe, what, "see what  nvidia-smi -q  says",
                                 "NVML is there, but no reading works (%s: %s)",
                                 nrg_nvml_metrics[1].call, refusal_text(gpu, gpu->refused[1][1]));
}

/* Lists, once per GPU, that its energy can't be split among processes, and why. */
static int check_processes(struct nrg_probe *probe, const struct gpu *gpu)
{
    int rc;
    char what[64];
    struct nrg_nvml_processes *p =
        nrg_nvml_processes_new(gpu->api, gpu->device, gpu->index, &probe->ctx->root, &rc);
    snprintf(what, sizeof what, "gpu-%u use per process", gpu->index);
    if (!p && !rc)
        rc = nrg_probe_unavailable(probe, what, NULL,
                                   "nvmlDeviceGetProcessUtilization and "
                                   "nvmlDeviceGetComputeRunningProcesses: Not Supported");
    else if (p && nrg_nvml_pid_view(&probe->ctx->root) == NRG_NVML_PIDS_FOREIGN)
        rc = nrg_probe_unavailable(probe, what,
                                   "start the container with --pid=host, or run nrg on the host",
                                   "NVML gives process ids of the host, and this container's "
                                   "/proc does not show them: the GPU's energy stays whole");
    nrg_nvml_processes_free(p);
    return rc;
}

static int probe_gpu(struct nrg_probe *probe, const struct nrg_nvml *api, unsigned index)
{
    char sensor[64], name[96] = "";
    struct gpu gpu = {.api = api,
                      .index = index,
                      .name = "unknown",
                      .profile = probe->options ? probe->options->profile : NULL};
    int rc = api->handle(index, &gpu.device);
    snprintf(sensor, sizeof sensor, "GPU %u", index);
    if (rc)
        return nrg_probe_unavailable(probe, sensor, "see what  nvidia-smi -L  says", "%s (%d)",
                                     nrg_nvml_text(api, rc), rc);
    if (api->name && !api->name(gpu.device, name, sizeof name - 1))
        nrg_copy_clean(gpu.name, sizeof gpu.name, name, strnlen(name, sizeof name - 1));
    gpu.mig = nrg_nvml_mig_enabled(api, gpu.device);
    snprintf(sensor, sizeof sensor, "GPU %u (%.50s)", index, gpu.name);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return -ENOMEM;
    snprintf(found->locator, sizeof found->locator, "%u", index);
    choose_power(&gpu);
    rc = add_metrics(found, &gpu);
    if (!rc)
        rc = add_polled_power(found, &gpu);
    if (!rc && gpu.mig)
        rc = add_instances(found, &gpu);
    if (rc)
        return rc;
    if (!found->n_channels) {
        probe->n_found--;
        return list_refused_gpu(probe, &gpu);
    }
    number_groups(found);
    rc = list_refusals(probe, &gpu);
    return rc ? rc : check_processes(probe, &gpu);
}

int nrg_nvml_probe(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_nvml api;
    char why[256];
    unsigned count = 0;
    if (!nrg_root_is_live(&probe->ctx->root) && !nrg_nvml_library()) {
        bool asked = probe->options && probe->options->only;
        return asked ? nrg_probe_unavailable(probe, "NVIDIA GPUs", NULL,
                                             "NVML only speaks of this machine, not of %s",
                                             probe->ctx->root.path)
                     : 0;
    }
    int rc = nrg_nvml_load(&api, why, sizeof why);
    if (rc)
        return rc < 0 ? list_missing_library(probe, why) : list_failed_start(probe, rc, why);
    int result = api.count(&count);
    if (result || !count)
        rc = nrg_probe_unavailable(probe, "NVIDIA GPUs", "see what  nvidia-smi -L  says",
                                   "NVML finds no GPU%s%s", result ? ": " : "",
                                   result ? nrg_nvml_text(&api, result) : "");
    for (unsigned i = 0; !rc && !result && i < count && i < MAX_GPUS; i++)
        rc = probe_gpu(probe, &api, i);
    nrg_nvml_unload(&api);
    return rc;
}
