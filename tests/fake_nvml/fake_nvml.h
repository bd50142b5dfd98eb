/*
 * NVML's ABI as NVIDIA's header has it (names and layouts theirs, nothing else), for the fake
 * library only. nrg's own declarations are in src/sensors/nvml/api.h; keeping both apart lets the
 * tests find a difference.
 */
#ifndef NRG_TESTS_FAKE_NVML_H
#define NRG_TESTS_FAKE_NVML_H

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;

typedef union {
    double dVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
} nvmlValue_t;

typedef struct {
    unsigned long long timeStamp;
    nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t;

enum {
    CALL_HANDLE,
    CALL_NAME,
    CALL_ARCH,
    CALL_ENERGY,
    CALL_POWER,
    CALL_FIELDS,
    CALL_UTILIZATION,
    CALL_ENCODER,
    CALL_DECODER,
    CALL_CLOCK,
    CALL_MEMORY,
    CALL_TEMPERATURE,
    CALL_MIG_MODE,
    CALL_MIG_HANDLE,
    CALL_SHARES,
    CALL_PROCESSES,
    CALL_SAMPLES, /* and six more */
    CALLS = CALL_SAMPLES + 7
};

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char *, unsigned);
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t, unsigned *);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned *);

enum { NVML_FI_DEV_POWER_INSTANT = 186, NVML_POWER_SCOPE_GPU = 0 };

typedef struct {
    unsigned int fieldId;
    unsigned int scopeId;
    long long timestamp;
    long long latencyUsec;
    int valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t, int, nvmlFieldValue_t *);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t, unsigned *);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t *);
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t, unsigned *, unsigned *);
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t, unsigned *, unsigned *);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, int, unsigned *);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, int, unsigned *);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t *);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t, unsigned *, unsigned *);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t, unsigned *);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t, unsigned, nvmlDevice_t *);
typedef struct {
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    unsigned int gpuInstanceSliceCount;
    unsigned int computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t, nvmlDeviceAttributes_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t, unsigned *);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t, unsigned *);

enum { NVML_GPM_METRIC_SM_UTIL = 2, NVML_GPM_METRIC_MAX = 477 };

typedef struct nvmlGpmSample_st *nvmlGpmSample_t;

typedef struct {
    unsigned int version;
    unsigned int isSupportedDevice;
} nvmlGpmSupport_t;

typedef struct {
    unsigned int metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct {
        char *shortName;
        char *longName;
        char *unit;
    } metricInfo;
} nvmlGpmMetric_t;

typedef struct {
    unsigned int version;
    unsigned int numMetrics;
    nvmlGpmSample_t sample1;
    nvmlGpmSample_t sample2;
    nvmlGpmMetric_t metrics[NVML_GPM_METRIC_MAX];
} nvmlGpmMetricsGet_t;

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t, nvmlGpmSupport_t *);
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *);
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t);
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t, unsigned, nvmlGpmSample_t);
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *);

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t, int, unsigned long long, int *, unsigned *,
                                  nvmlSample_t *);
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t, nvmlProcessUtilizationSample_t *,
                                             unsigned *, unsigned long long);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned *,
                                                     nvmlProcessInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned *,
                                                        nvmlProcessInfo_v2_t *);

#endif
