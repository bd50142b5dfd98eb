/*
 * The table of what NVML can tell about a GPU: see nvml/internal.h. Raw units are NVML's own (mJ,
 * mW, percent, MHz, bytes, degrees), so nothing is rounded before it is recorded.
 *
 * Update periods are those observed in the field: the energy counter moves about every 100 ms,
 * power about every 20 ms, utilisation about six times a second. Memory and temperature are
 * computed on each call and have no period.
 *
 * Power has two getters. nvmlDeviceGetPowerUsage shows a mean of one second since Ampere (but for
 * GA100); the field POWER_INSTANT shows what the sensor said last, on all architectures of drivers
 * that have it. Its scope is the GPU with its memory: the scope of a module has Grace in it, too.
 *
 * Values are checked against what a board can possibly do, because drivers are known to return
 * uninitialised structures and all-ones for "not available". Refuses those as -ERANGE.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>

#include "sensors/nvml/internal.h"

#define MAX_SAMPLES  4096u /* of one call: 64 KiB */
#define MIN_SAMPLES  128u  /* drivers answer 100 or 120 */
#define SIXTH_NS     (167 * NRG_NS_PER_MS)
#define INSTANT_CALL "nvmlDeviceGetFieldValues(NVML_FI_DEV_POWER_INSTANT)"

/* A getter: `value` of what the library's function writes to `got`; -1 when it is too large. */
#define GETTER(getter, function, type, value, ...)                                                 \
    static int getter(const struct nrg_nvml *api, struct nvml_device *device, int64_t *raw)        \
    {                                                                                              \
        type got = {0};                                                                            \
        int rc = api->function ? api->function(device, __VA_ARGS__) : NVML_FUNCTION_NOT_FOUND;     \
        unsigned long long number = value;                                                         \
        *raw = number > INT64_MAX ? -1 : (int64_t)number;                                          \
        return rc;                                                                                 \
    }

GETTER(get_energy, energy_mj, unsigned long long, got, &got)
GETTER(get_power, power_mw, unsigned, got, &got)
GETTER(get_util, utilization, struct nvml_utilization, got.gpu, &got)
GETTER(get_mem_util, utilization, struct nvml_utilization, got.memory, &got)
GETTER(get_encoder, encoder, unsigned, got, &got, &(unsigned){0})
GETTER(get_decoder, decoder, unsigned, got, &got, &(unsigned){0})
GETTER(get_sm_clock, clock_mhz, unsigned, got, NVML_CLOCK_SM, &got)
GETTER(get_mem_clock, clock_mhz, unsigned, got, NVML_CLOCK_MEM, &got)
GETTER(get_memory, memory, struct nvml_memory, got.used, &got)
GETTER(get_temperature, temperature_c, unsigned, got, NVML_TEMPERATURE_GPU, &got)

static int get_instant(const struct nrg_nvml *api, struct nvml_device *device, int64_t *raw)
{
    struct nvml_field field = {
        .id = NVML_FI_DEV_POWER_INSTANT, .scope = NVML_POWER_SCOPE_GPU, .result = NVML_NO_DATA};
    int rc = api->fields ? api->fields(device, 1, &field) : NVML_FUNCTION_NOT_FOUND;
    if (!rc)
        rc = field.result;
    return rc ? rc
              : nrg_nvml_value(&nrg_nvml_metrics[NRG_NVML_INSTANT], field.value_type, field.value,
                               raw);
}

#define SAMPLED(name) name, #name
#define NOT_SAMPLED   -1, NULL

const struct nrg_nvml_metric nrg_nvml_metrics[NRG_NVML_METRICS] = {
    {"", NRG_ENERGY, NRG_COUNTER, 1e-3, 100 * NRG_NS_PER_MS, INT64_MAX, NOT_SAMPLED,
     "nvmlDeviceGetTotalEnergyConsumption", get_energy},
    {"", NRG_POWER, NRG_GAUGE, 1e-3, 20 * NRG_NS_PER_MS, 10000000,
     SAMPLED(NVML_TOTAL_POWER_SAMPLES), "nvmlDeviceGetPowerUsage", get_power},
    {".util", NRG_UTILISATION, NRG_GAUGE, 1e-2, SIXTH_NS, 100,
     SAMPLED(NVML_GPU_UTILIZATION_SAMPLES), "nvmlDeviceGetUtilizationRates", get_util},
    {".mem-util", NRG_UTILISATION, NRG_GAUGE, 1e-2, SIXTH_NS, 100,
     SAMPLED(NVML_MEMORY_UTILIZATION_SAMPLES), "nvmlDeviceGetUtilizationRates", get_mem_util},
    {".enc", NRG_UTILISATION, NRG_GAUGE, 1e-2, SIXTH_NS, 100, SAMPLED(NVML_ENC_UTILIZATION_SAMPLES),
     "nvmlDeviceGetEncoderUtilization", get_encoder},
    {".dec", NRG_UTILISATION, NRG_GAUGE, 1e-2, SIXTH_NS, 100, SAMPLED(NVML_DEC_UTILIZATION_SAMPLES),
     "nvmlDeviceGetDecoderUtilization", get_decoder},
    {".sm-clock", NRG_CLOCK, NRG_GAUGE, 1e6, SIXTH_NS, 100000, SAMPLED(NVML_PROCESSOR_CLK_SAMPLES),
     "nvmlDeviceGetClockInfo", get_sm_clock},
    {".mem-clock", NRG_CLOCK, NRG_GAUGE, 1e6, SIXTH_NS, 100000, SAMPLED(NVML_MEMORY_CLK_SAMPLES),
     "nvmlDeviceGetClockInfo", get_mem_clock},
    [NRG_NVML_MEMORY] = {".memory", NRG_BYTES, NRG_GAUGE, 1, 0, INT64_MAX, NOT_SAMPLED,
                         "nvmlDeviceGetMemoryInfo", get_memory},
    {".temperature", NRG_TEMPERATURE, NRG_GAUGE, 1, 0, 1000, NOT_SAMPLED,
     "nvmlDeviceGetTemperature", get_temperature},
    [NRG_NVML_POLLED] = {NRG_POLLED_SUFFIX, NRG_POWER, NRG_GAUGE, 1e-3, 20 * NRG_NS_PER_MS,
                         10000000, NOT_SAMPLED, "nvmlDeviceGetPowerUsage", get_power},
    [NRG_NVML_INSTANT] = {"", NRG_POWER, NRG_GAUGE, 1e-3, 20 * NRG_NS_PER_MS, 10000000, NOT_SAMPLED,
                          INSTANT_CALL, get_instant},
    [NRG_NVML_POLLED_INSTANT] = {NRG_POLLED_SUFFIX, NRG_POWER, NRG_GAUGE, 1e-3, 20 * NRG_NS_PER_MS,
                                 10000000, NOT_SAMPLED, INSTANT_CALL, get_instant},
};

int nrg_nvml_value(const struct nrg_nvml_metric *metric, int value_type, union nvml_value value,
                   int64_t *raw)
{
    *raw = -1;
    switch (value_type) {
    case NVML_VALUE_DOUBLE:
        if (value.as_double >= 0 && value.as_double < 9e18)
            *raw = llround(value.as_double);
        break;
    case NVML_VALUE_UINT:
        *raw = value.as_uint;
        break;
    case NVML_VALUE_ULONG:
        *raw = value.as_ulong > LONG_MAX ? -1 : (int64_t)value.as_ulong;
        break;
    case NVML_VALUE_ULONG_LONG:
        *raw = value.as_ull > INT64_MAX ? -1 : (int64_t)value.as_ull;
        break;
    case NVML_VALUE_LONG_LONG:
        *raw = value.as_ll;
        break;
    case NVML_VALUE_INT:
        *raw = value.as_int;
        break;
    default:
        *raw = NRG_MISSING;
        return -EPROTO;
    }
    if (*raw >= 0 && *raw <= metric->max_raw)
        return 0;
    *raw = NRG_MISSING;
    return -ERANGE;
}

int nrg_nvml_get(const struct nrg_nvml *api, const struct nrg_nvml_metric *metric,
                 struct nvml_device *device, int64_t *raw)
{
    int rc = metric->get(api, device, raw);
    if (!rc && (*raw < 0 || *raw > metric->max_raw))
        rc = -ERANGE;
    if (rc)
        *raw = NRG_MISSING;
    return rc < 0 && rc != -ERANGE ? NVML_UNKNOWN : rc;
}

unsigned nrg_nvml_sample_room(const struct nrg_nvml *api, struct nvml_device *device, int type)
{
    int value_type = 0;
    unsigned count = 0;
    if (!api->samples || api->samples(device, type, 0, &value_type, &count, NULL))
        count = 0;
    return count < MIN_SAMPLES ? MIN_SAMPLES : count > MAX_SAMPLES ? MAX_SAMPLES : count;
}

bool nrg_nvml_mig_enabled(const struct nrg_nvml *api, struct nvml_device *device)
{
    unsigned current = 0, pending = 0;
    return api->mig_mode && !api->mig_mode(device, &current, &pending) && current == 1;
}
