/*
 * A libnvidia-ml.so.1 for tests: GPUs as a text file says, with known true power. Point
 * NRG_NVML_LIBRARY to this library and NRG_FAKE_NVML to the script; without a script there is
 * one GPU of constant 100 W. It declares NVML's ABI by itself, so that a mistake in ours shows.
 *
 * The script is read when the number of initialisations goes from 0 to 1; that moment is time 0
 * of everything below. One statement per line, # begins a comment.
 *
 *   zero NS                 time 0 by CLOCK_MONOTONIC
 *   init CODE               nvmlInit fails with that code
 *   gpus N                  what nvmlDeviceGetCount says (default: the GPUs that follow)
 *   gpu NAME                begins a GPU; all lines below belong to it:
 *   arch N                  architecture (7 = Ampere); default 5
 *   power W [S W]...        watts, changing to W at S seconds; default 100
 *   power-mean MS           nvmlDeviceGetPowerUsage is the mean of the past MS; default 0
 *   power-period MS         how often it moves; default 0: always
 *   instant TYPE [W]        the field POWER_INSTANT is there, of that type (see value-type), and is
 *                           the power, or always W
 *   energy J                counter at time 0; it then follows the power; default 1000
 *   energy-period MS        how often the counter moves; default 100, 0: always exact
 *   util|mem-util|enc|dec P   percent        sm-clock|mem-clock MHZ
 *   memory BYTES            temperature C
 *   fail CALL CODE [MS]     from MS on. CALL is one of: handle name arch energy power fields
 * samples samples.0 .. samples.6 utilization encoder decoder clock memory temperature mig-mode
 * mig-handle process-utilization processes, or all (but handle and name) lost N "GPU is lost" from
 * call N+1 on, counted from time 0 lost-after MS           the same from that time on period TYPE
 * MS          distance of buffered samples; default 20 for power, 167 for others sample TYPE MS
 * VALUE    this sample in place of generated ones; may be repeated; it can be seen from MS after
 * time 0 on, and carries that stamp value-type TYPE N       0 double, 1 unsigned (default), 2
 * ulong, 3 ulonglong, 4 slonglong claim TYPE N            lie: always say N samples ignore-last
 * always give the whole buffer, whatever was seen process PID BYTES SM [I]   BYTES may be na; SM
 * percent, or - for none; I: its GPU instance mps-client PID BYTES SM the same for a client of MPS,
 * which is in a list of its own garbage N               N uninitialised entries after the
 * processes' shares entry-bytes N           16, 24 or 32: size of a running process; default 24 mig
 * BYTES [SMS [BUSY]]  a MIG instance with that memory used and so many multiprocessors, and what
 * the performance monitor says of them, percent (none: has none); enables MIG, and with it shares
 * per process are not supported. GPU instances are numbered from 1, each has compute instance 0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_nvml/fake_state.h"

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static double elapsed_ms(void)
{
    return (double)(clock_ns(CLOCK_MONOTONIC) - fake.mono_ns) / 1e6;
}

static double power_w(const struct gpu *gpu, double t_ms)
{
    double w = gpu->steps[0].w;
    for (size_t i = 1; i < gpu->n_steps; i++)
        if (t_ms >= gpu->steps[i].at_s * 1e3)
            w = gpu->steps[i].w;
    return w;
}

/* The moment up to t_ms at which something that moves every period_ms (0: always) moved last. */
static double moved_ms(double t_ms, double period_ms)
{
    return period_ms > 0 ? (double)(int64_t)(t_ms / period_ms) * period_ms : t_ms;
}

static double energy_j(const struct gpu *gpu, double t_ms)
{
    double j = t_ms < 0 ? gpu->steps[0].w * t_ms / 1e3 : 0;
    for (size_t i = 0; i < gpu->n_steps; i++) {
        double from = gpu->steps[i].at_s * 1e3, to = t_ms;
        if (i + 1 < gpu->n_steps && gpu->steps[i + 1].at_s * 1e3 < to)
            to = gpu->steps[i + 1].at_s * 1e3;
        if (to > from)
            j += gpu->steps[i].w * (to - from) / 1e3;
    }
    return j;
}

static double usage_w(const struct gpu *gpu)
{
    double t_ms = moved_ms(elapsed_ms(), gpu->power_period_ms), mean_ms = gpu->power_mean_ms;
    if (!(mean_ms > 0))
        return power_w(gpu, t_ms);
    return (energy_j(gpu, t_ms) - energy_j(gpu, t_ms - mean_ms)) / mean_ms * 1e3;
}

static nvmlReturn_t enter(nvmlDevice_t device, int call)
{
    struct gpu *gpu = device->gpu;
    long n = atomic_fetch_add(&gpu->calls, 1);
    if ((gpu->lost >= 0 && n >= gpu->lost) ||
        (gpu->lost_after_ms >= 0 && elapsed_ms() >= gpu->lost_after_ms))
        return 15;
    return elapsed_ms() >= gpu->fail_after_ms[call] ? gpu->fail[call] : 0;
}

nvmlReturn_t nvmlInit_v2(void)
{
    pthread_mutex_lock(&fake.lock);
    if (!fake.users) {
        fake_load();
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        fake.mono_ns = fake.zero_ns ? fake.zero_ns : now_ns;
        fake.real_ns = clock_ns(CLOCK_REALTIME) - now_ns + fake.mono_ns;
    }
    int rc = fake.init;
    fake.users += !rc;
    pthread_mutex_unlock(&fake.lock);
    return rc;
}

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&fake.lock);
    int rc = fake.users ? 0 : 1;
    fake.users -= !rc;
    pthread_mutex_unlock(&fake.lock);
    return rc;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case 3:
        return "Not Supported";
    case 4:
        return "Insufficient Permissions";
    case 9:
        return "Driver Not Loaded";
    case 15:
        return "GPU is lost";
    case 18:
        return "Driver/library version mismatch";
    default:
        return "Unknown Error";
    }
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = fake.claimed_gpus ? fake.claimed_gpus : (unsigned)fake.n_gpus;
    return fake.users ? 0 : 1;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    if (index >= fake.n_gpus)
        return 2;
    *device = &fake.gpus[index].board;
    return fake.gpus[index].fail[CALL_HANDLE];
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    snprintf(name, length, "%s", device->gpu->name);
    return device->gpu->fail[CALL_NAME];
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *arch)
{
    *arch = device->gpu->arch;
    return enter(device, CALL_ARCH);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *mj)
{
    const struct gpu *gpu = device->gpu;
    double j = energy_j(gpu, moved_ms(elapsed_ms(), gpu->energy_period_ms));
    *mj = (unsigned long long)((gpu->energy_j + j) * 1e3);
    return enter(device, CALL_ENERGY);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *mw)
{
    *mw = (unsigned)(usage_w(device->gpu) * 1e3);
    return enter(device, CALL_POWER);
}

static nvmlValue_t typed_value(int value_type, double value)
{
    nvmlValue_t v;
    memset(&v, 0xEE, sizeof v); /* reading the wrong member shows */
    if (value_type == 0)
        v.dVal = value;
    else if (value_type == 1)
        v.uiVal = (unsigned)value;
    else if (value_type == 2)
        v.ulVal = (unsigned long)value;
    else if (value_type == 3)
        v.ullVal = (unsigned long long)value;
    else
        v.sllVal = (long long)value;
    return v;
}

/* One field of one scope; the others are not supported, as a driver says of those it does not know.
 */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    const struct gpu *gpu = device->gpu;
    nvmlReturn_t rc = enter(device, CALL_FIELDS);
    for (int i = 0; !rc && i < count; i++) {
        nvmlFieldValue_t *v = &values[i];
        bool known = v->fieldId == NVML_FI_DEV_POWER_INSTANT && v->scopeId == NVML_POWER_SCOPE_GPU;
        v->nvmlReturn = known && gpu->has_instant ? 0 : 3;
        v->valueType = gpu->instant_type;
        v->value =
            typed_value(v->valueType, gpu->instant_w >= 0 ? gpu->instant_w * 1e3
                                                          : power_w(gpu, elapsed_ms()) * 1e3);
    }
    return rc;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *mw)
{
    *mw = (unsigned)(device->gpu->limit_w * 1e3);
    return device->gpu->limit_w > 0 ? 0 : 3;
}

static nvmlReturn_t get_value(nvmlDevice_t device, int call, int value, unsigned *out)
{
    *out = (unsigned)device->gpu->values[value];
    return enter(device, call);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *use)
{
    use->memory = (unsigned)device->gpu->values[1];
    return get_value(device, CALL_UTILIZATION, 0, &use->gpu);
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *p, unsigned *us)
{
    *us = 167000;
    return get_value(device, CALL_ENCODER, 2, p);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *p, unsigned *us)
{
    *us = 167000;
    return get_value(device, CALL_DECODER, 3, p);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned *mhz)
{
    if (type != 1 && type != 2) /* NVML_CLOCK_SM, NVML_CLOCK_MEM */
        return 2;
    return get_value(device, CALL_CLOCK, type == 1 ? 4 : 5, mhz);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius)
{
    return sensor ? 2 : get_value(device, CALL_TEMPERATURE, VALUE_TEMPERATURE, celsius);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    memory->used = device->used_bytes;
    memory->total = 80ULL << 30;
    memory->free = memory->total - memory->used;
    return enter(device, CALL_MEMORY);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    *current = *pending = device->gpu->n_mig > 0;
    return enter(device, CALL_MIG_MODE);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    *count = device->gpu->n_mig ? 7 : 0;
    return enter(device, CALL_MIG_MODE);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t *mig)
{
    if (index >= device->gpu->n_mig)
        return 6;
    *mig = &device->gpu->mig[index];
    return enter(device, CALL_MIG_HANDLE);
}

static unsigned mig_number(nvmlDevice_t device)
{
    return device == &device->gpu->board ? 0 : (unsigned)(device - device->gpu->mig) + 1;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    memset(attributes, 0xEE, sizeof *attributes);
    attributes->multiprocessorCount = device->processors;
    return mig_number(device) && device->processors ? 0 : 3;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id)
{
    *id = mig_number(device);
    return *id ? 0 : 2;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id)
{
    *id = 0;
    return mig_number(device) ? 0 : 2;
}

/* --- the performance monitor --- */

struct nvmlGpmSample_st {
    nvmlDevice_t instance; /* NULL: never filled */
    double t_ms;
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    if (support->version != 1)
        return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
    support->isSupportedDevice = 0;
    for (size_t i = 0; i < device->gpu->n_mig; i++)
        support->isSupportedDevice |= device->gpu->mig[i].busy >= 0;
    return 0;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    *sample = calloc(1, sizeof **sample);
    return *sample ? 0 : 20;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    free(sample);
    return 0;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned instance, nvmlGpmSample_t sample)
{
    if (mig_number(device) || !instance || instance > device->gpu->n_mig)
        return 2; /* the board's handle is asked for, and an instance that there is */
    sample->instance = &device->gpu->mig[instance - 1];
    sample->t_ms = elapsed_ms();
    return sample->instance->busy >= 0 ? 0 : 3;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    const struct nvmlGpmSample_st *from = get->sample1, *to = get->sample2;
    if (get->version != 1)
        return 25;
    if (!from->instance || from->instance != to->instance || to->t_ms - from->t_ms < 80)
        return 2;
    for (unsigned i = 0; i < get->numMetrics; i++) {
        nvmlGpmMetric_t *m = &get->metrics[i];
        m->nvmlReturn = m->metricId == NVML_GPM_METRIC_SM_UTIL ? 0 : 3;
        m->value = to->instance->busy;
    }
    return 0;
}

/* --- the sample buffer --- */

/* Sample i of the buffer, oldest first; false past its end. */
static bool buffered(const struct gpu *gpu, int type, int64_t i, double *at_ms, double *value)
{
    if (gpu->n_samples[type]) {
        if (i >= (int64_t)gpu->n_samples[type])
            return false;
        *at_ms = gpu->samples[type][i].at_ms;
        *value = gpu->samples[type][i].value;
        return true;
    }
    int64_t newest = (int64_t)(elapsed_ms() / gpu->period_ms[type]);
    *at_ms = (double)(newest - (DEPTH - 1) + i) * gpu->period_ms[type];
    *value = type ? gpu->values[type - 1] : power_w(gpu, *at_ms) * 1e3;
    return i < DEPTH;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long last_us,
                                  int *value_type, unsigned *count, nvmlSample_t *samples)
{
    if (type < 0 || type >= TYPES)
        return 2;
    const struct gpu *gpu = device->gpu;
    unsigned room = *count, n = 0;
    double at_ms, value, now_ms = elapsed_ms();
    nvmlReturn_t rc = enter(device, CALL_SAMPLES + type);
    *count = gpu->claim[type] ? gpu->claim[type] : DEPTH;
    if (rc || !samples)
        return rc;
    for (int64_t i = 0; n < room && buffered(gpu, type, i, &at_ms, &value); i++) {
        int64_t stamp_us = fake.real_ns / 1000 + (int64_t)(at_ms * 1e3);
        if (at_ms > now_ms || (!gpu->ignore_last && stamp_us <= (int64_t)last_us))
            continue;
        samples[n++] =
            (nvmlSample_t){(unsigned long long)stamp_us, typed_value(gpu->value_type[type], value)};
    }
    *value_type = gpu->value_type[type];
    if (!gpu->claim[type])
        *count = n;
    return n ? 0 : 6;
}

/* --- processes --- */

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *shares,
                                             unsigned *count, unsigned long long last_us)
{
    const struct gpu *gpu = device->gpu;
    unsigned long long now_us = (unsigned long long)clock_ns(CLOCK_REALTIME) / 1000;
    unsigned room = *count, n = 0;
    nvmlReturn_t rc = enter(device, CALL_SHARES);
    if (gpu->n_mig)
        return 3; /* NVML_ERROR_NOT_SUPPORTED, as documented for MIG */
    *count = 100;
    if (rc || !shares)
        return rc ? rc : 7;
    if (room < 100)
        return 7; /* as the library does, whatever it would write */
    for (size_t i = 0; i < gpu->n_processes; i++)
        if (gpu->processes[i].sm >= 0 && now_us > last_us)
            shares[n++] = (nvmlProcessUtilizationSample_t){
                gpu->processes[i].pid, now_us, (unsigned)gpu->processes[i].sm, 1, 0, 0};
    for (unsigned i = 0; i < gpu->garbage && n < room; i++)
        shares[n++] =
            (nvmlProcessUtilizationSample_t){i % 2 ? 7777 : 0, ~0ULL - 5, 4000000, 9, 9, 9};
    *count = n;
    return n ? 0 : 6;
}

static bool is_listed(const struct gpu *gpu, size_t i, bool clients)
{
    return gpu->processes[i].client == clients;
}

static nvmlReturn_t list_processes(nvmlDevice_t device, unsigned *count, void *infos,
                                   unsigned entry_bytes, bool clients)
{
    const struct gpu *gpu = device->gpu;
    unsigned room = *count, n = 0;
    nvmlReturn_t rc = enter(device, CALL_PROCESSES);
    for (size_t i = 0; i < gpu->n_processes; i++)
        n += is_listed(gpu, i, clients);
    *count = n;
    if (rc || !n)
        return rc;
    if (!infos || room < n)
        return 7;
    for (size_t i = 0, at = 0; i < gpu->n_processes; i++) {
        struct {
            nvmlProcessInfo_v2_t v2;
            unsigned long long protected_bytes;
        } entry = {{gpu->processes[i].pid, gpu->processes[i].bytes, gpu->processes[i].instance,
                    gpu->processes[i].instance == ~0u ? ~0u : 0},
                   0};
        if (is_listed(gpu, i, clients))
            memcpy((char *)infos + at++ * entry_bytes, &entry, entry_bytes);
    }
    return 0;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_v2_t *infos)
{
    return list_processes(device, count, infos, device->gpu->entry_bytes, false);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                        nvmlProcessInfo_v2_t *infos)
{
    return list_processes(device, count, infos, device->gpu->entry_bytes, true);
}
