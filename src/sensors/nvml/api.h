/*
 * Our own declarations of the part of NVIDIA's management library (NVML) that nrg uses, and the
 * table of its functions, filled by dlopen. So nrg builds and runs without NVIDIA's software.
 *
 * Layouts and numbers are the library's ABI, stable since its first release with one exception:
 * the entries of nvmlDeviceGetComputeRunningProcesses and its sister for MPS (16 bytes at first, 24
 * in _v2 and _v3, 32 in _v3 of drivers 535.43 to 535.86): see nvml/process.c.
 *
 * Every function pointer may be NULL except init, count and handle, because old libraries lack
 * some. The library counts its initialisations, so each user loads and unloads on its own.
 */
#ifndef NRG_SENSORS_NVML_API_H
#define NRG_SENSORS_NVML_API_H

#include <stddef.h>

enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
    NVML_MEMORY = 20,
    NVML_NO_DATA = 21,
    NVML_GPU_NOT_FOUND = 28,
    NVML_UNKNOWN = 999
};

enum nvml_sampling_type {
    NVML_TOTAL_POWER_SAMPLES = 0,
    NVML_GPU_UTILIZATION_SAMPLES = 1,
    NVML_MEMORY_UTILIZATION_SAMPLES = 2,
    NVML_ENC_UTILIZATION_SAMPLES = 3,
    NVML_DEC_UTILIZATION_SAMPLES = 4,
    NVML_PROCESSOR_CLK_SAMPLES = 5,
    NVML_MEMORY_CLK_SAMPLES = 6,
    NVML_SAMPLING_TYPES = 7
};

enum nvml_value_type {
    NVML_VALUE_DOUBLE = 0,
    NVML_VALUE_UINT = 1,
    NVML_VALUE_ULONG = 2,
    NVML_VALUE_ULONG_LONG = 3,
    NVML_VALUE_LONG_LONG = 4,
    NVML_VALUE_INT = 5
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_ARCH_AMPERE = 7, NVML_ARCH_ADA = 8, NVML_ARCH_HOPPER = 9, NVML_ARCH_UNKNOWN = -1 };

#define NVML_VALUE_NOT_AVAILABLE (~0ULL)

struct nvml_device; /* opaque */

union nvml_value {
    double as_double;
    int as_int;
    unsigned as_uint;
    unsigned long as_ulong;
    unsigned long long as_ull;
    long long as_ll;
};

struct nvml_sample {
    unsigned long long stamp_us; /* wall clock */
    union nvml_value value;
};

/* "Fields" of a GPU; what a scope means depends on the field. */
enum { NVML_FI_DEV_POWER_INSTANT = 186, NVML_POWER_SCOPE_GPU = 0 };

struct nvml_field {
    unsigned id, scope;             /* asked for */
    long long stamp_us, latency_us; /* wall clock */
    int value_type, result;         /* result: enum nvml_result of this field */
    union nvml_value value;
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

struct nvml_attributes { /* of a MIG instance */
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    unsigned gpu_slices, compute_slices;
    unsigned long long memory_mb;
};

struct nvml_process_utilization {
    unsigned pid;
    unsigned long long stamp_us;
    unsigned sm, memory, encoder, decoder; /* percent */
};

/*
 * The performance monitor, GPM. The number of metrics that fit has grown from version to version of
 * NVML (98 to 477); the library touches as many as it is asked for.
 */
enum {
    NVML_GPM_SUPPORT_VERSION = 1,
    NVML_GPM_METRICS_GET_VERSION = 1,
    NVML_GPM_METRIC_SM_UTIL = 2, /* multiprocessors that were busy, percent */
    NVML_GPM_METRIC_MAX = 477
};

struct nvml_gpm_sample; /* opaque */

struct nvml_gpm_support {
    unsigned version, is_supported;
};

struct nvml_gpm_metric {
    unsigned id;
    int result;
    double value;
    const char *short_name, *long_name, *unit;
};

struct nvml_gpm_metrics {
    unsigned version, n;
    struct nvml_gpm_sample *from, *to;
    struct nvml_gpm_metric metrics[NVML_GPM_METRIC_MAX];
};

struct nrg_nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*count)(unsigned *);
    int (*handle)(unsigned, struct nvml_device **);
    int (*name)(struct nvml_device *, char *, unsigned);
    int (*architecture)(struct nvml_device *, unsigned *);
    int (*energy_mj)(struct nvml_device *, unsigned long long *);
    int (*power_mw)(struct nvml_device *, unsigned *);
    int (*fields)(struct nvml_device *, int n, struct nvml_field *);
    int (*power_limit_mw)(struct nvml_device *, unsigned *);
    int (*samples)(struct nvml_device *, int type, unsigned long long last_seen_us, int *value_type,
                   unsigned *count, struct nvml_sample *);
    int (*utilization)(struct nvml_device *, struct nvml_utilization *);
    int (*encoder)(struct nvml_device *, unsigned *percent, unsigned *period_us);
    int (*decoder)(struct nvml_device *, unsigned *percent, unsigned *period_us);
    int (*clock_mhz)(struct nvml_device *, int type, unsigned *);
    int (*memory)(struct nvml_device *, struct nvml_memory *);
    int (*temperature_c)(struct nvml_device *, int sensor, unsigned *);
    int (*mig_mode)(struct nvml_device *, unsigned *current, unsigned *pending);
    int (*mig_count)(struct nvml_device *, unsigned *);
    int (*mig_handle)(struct nvml_device *, unsigned, struct nvml_device **);
    int (*mig_attributes)(struct nvml_device *, struct nvml_attributes *);
    int (*gpu_instance)(struct nvml_device *, unsigned *);
    int (*compute_instance)(struct nvml_device *, unsigned *);
    int (*gpm_support)(struct nvml_device *, struct nvml_gpm_support *);
    int (*gpm_alloc)(struct nvml_gpm_sample **);
    int (*gpm_free)(struct nvml_gpm_sample *);
    int (*gpm_mig_sample)(struct nvml_device *board, unsigned gpu_instance,
                          struct nvml_gpm_sample *);
    int (*gpm_metrics)(struct nvml_gpm_metrics *);
    int (*process_utilization)(struct nvml_device *, struct nvml_process_utilization *,
                               unsigned *count, unsigned long long last_seen_us);
    int (*processes)(struct nvml_device *, unsigned *count, void *entries);
    int (*mps_clients)(struct nvml_device *, unsigned *count, void *entries);
    size_t process_bytes; /* size of an entry of both by their version */
};

/*
 * Loads the library ($NRG_NVML_LIBRARY, or libnvidia-ml.so.1) and initialises it.
 * 0; a negative errno with a sentence in `why` when there is no usable library; or the positive
 * enum nvml_result of its initialisation. On failure nothing stays loaded.
 */
int nrg_nvml_load(struct nrg_nvml *api, char *why, size_t size);
void nrg_nvml_unload(struct nrg_nvml *api);

/* The user's choice of a library, NULL for none. */
const char *nrg_nvml_library(void);

/* Negative errno for a failed call. */
int nrg_nvml_errno(int result);
/* The library's own words, or ours when it has none. Never NULL. */
const char *nrg_nvml_text(const struct nrg_nvml *api, int result);

#endif
