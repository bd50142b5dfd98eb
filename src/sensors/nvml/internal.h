/*
 * What the files of the nvml driver share: the table of readings (metric.c), how the power sensor
 * looks at the GPU (power_sensor.c), the conversion of time stamps (time.c), the processes on a GPU
 * (process.c) and the probe (probe.c).
 *
 * Ownership: nrg_nvml_processes is the caller's. Errors: negative errno, or an enum nvml_result
 * where it says so. Threads: one at a time per GPU, as in driver.h.
 */
#ifndef NRG_SENSORS_NVML_INTERNAL_H
#define NRG_SENSORS_NVML_INTERNAL_H

#include "base/clock.h"
#include "sensors/driver.h"
#include "sensors/nvml/api.h"

/* --- readings --- */

/* One kind of reading. It comes from the driver's sample buffer or from a plain getter. */
struct nrg_nvml_metric {
    const char *suffix; /* of gpu-N */
    enum nrg_quantity quantity;
    enum nrg_kind kind;
    double scale;
    int64_t update_ns;
    int64_t max_raw;         /* larger values are refused: drivers return garbage at times */
    int sample_type;         /* enum nvml_sampling_type, -1: has none */
    const char *sample_name; /* NVML's name of it */
    const char *call;        /* the getter's name */
    int (*get)(const struct nrg_nvml *, struct nvml_device *, int64_t *raw); /* nvml_result */
};

enum {
    NRG_NVML_POWER = 1,
    NRG_NVML_MEMORY = 8,
    NRG_NVML_READINGS = 10,
    NRG_NVML_POLLED = NRG_NVML_READINGS, /* the getter's power, beside that of the buffer */
    NRG_NVML_INSTANT,                    /* in place of POWER and POLLED where NVML has it */
    NRG_NVML_POLLED_INSTANT,
    NRG_NVML_METRICS,
    NRG_NVML_MIG_MAX = 16,
    NRG_NVML_CHANNELS = 32
};

/* The board's, in channel order. Of a MIG instance only the memory is read. */
extern const struct nrg_nvml_metric nrg_nvml_metrics[NRG_NVML_METRICS];

/* How a channel's `source` begins when it comes from the sample buffer. */
#define NRG_NVML_SAMPLED "nvmlDeviceGetSamples"

/* A sample's value as raw number; -EPROTO: unknown type, -ERANGE: an impossible value. */
int nrg_nvml_value(const struct nrg_nvml_metric *metric, int value_type, union nvml_value value,
                   int64_t *raw);
/* The getter with the same checks. 0, -ERANGE, or an enum nvml_result (positive). */
int nrg_nvml_get(const struct nrg_nvml *api, const struct nrg_nvml_metric *metric,
                 struct nvml_device *device, int64_t *raw);
/* Samples that one call can return, as the library says, within bounds that are sane. */
unsigned nrg_nvml_sample_room(const struct nrg_nvml *api, struct nvml_device *device, int type);
bool nrg_nvml_mig_enabled(const struct nrg_nvml *api, struct nvml_device *device);

/* --- the power sensor --- */

/* As in struct nrg_channel; 0: not known. */
struct nrg_nvml_power_sensor {
    int64_t update_ns, window_ns;
    int64_t mean_ns, lag_ns; /* of nvmlDeviceGetPowerUsage: of how long it shows the mean, or how
                                late that makes it; samples of the buffer are not averaged, and
                                neither is the power of the moment */
};

/* By NVML's number of the architecture (NVML_ARCH_UNKNOWN) and the board's name. */
struct nrg_nvml_power_sensor nrg_nvml_power_sensor(unsigned architecture, const char *name);

/* --- time --- */

/* Wall clock minus monotonic now, and before the last step of the wall clock. */
struct nrg_nvml_clock {
    int64_t now_ns; /* monotonic, of the newest pair */
    int64_t offset_ns;
    int64_t old_offset_ns; /* equal to offset_ns until a step was seen */
    bool started, has_old;
};

/* True when the wall clock was stepped since the last call (not by the first). */
bool nrg_nvml_clock_update(struct nrg_nvml_clock *clock, struct nrg_clock_pair pair);
/* Wall clock µs to monotonic ns; false when no offset places it between after_ns and now. */
bool nrg_nvml_place(const struct nrg_nvml_clock *clock, unsigned long long stamp_us,
                    int64_t after_ns, int64_t *t_ns);

/* --- MIG --- */

/* The instances of a board and how many of its processors each has. */
struct nrg_nvml_slices {
    size_t n; /* 0: no MIG, or nothing is known of it */
    struct {
        unsigned gpu_instance, compute_instance, processors;
    } items[NRG_NVML_MIG_MAX];
    unsigned processors; /* of all */
};

void nrg_nvml_slices_read(const struct nrg_nvml *api, struct nvml_device *board,
                          struct nrg_nvml_slices *slices);
/* The part of the processors that an instance has, in ppm; NRG_MISSING when it is not known. */
int64_t nrg_nvml_slice_ppm(const struct nrg_nvml_slices *slices, unsigned gpu_instance,
                           unsigned compute_instance);

/* What an instance did between the last two samples (gpm.c). */
struct nrg_nvml_instance_activity {
    unsigned gpu_instance;
    struct nvml_gpm_sample *samples[2];
    bool failed;      /* the newest sample */
    int64_t busy_ppm; /* of its processors */
};

struct nrg_nvml_activity {
    const struct nrg_nvml *api;
    struct nvml_device *board;
    struct nvml_gpm_metrics *asked;
    struct nrg_nvml_instance_activity items[NRG_NVML_MIG_MAX];
    size_t n; /* 0: the board has no performance monitor */
    unsigned newest;
    int64_t taken_ns; /* the newest samples; 0: none yet */
};

void nrg_nvml_activity_init(struct nrg_nvml_activity *activity, const struct nrg_nvml *api,
                            struct nvml_device *board, const struct nrg_nvml_slices *slices);
void nrg_nvml_activity_release(struct nrg_nvml_activity *activity);
/* Takes samples; true when all instances have a value for the time since the last ones. */
bool nrg_nvml_activity_read(struct nrg_nvml_activity *activity, int64_t now_ns);
int64_t nrg_nvml_activity_of(const struct nrg_nvml_activity *activity, unsigned gpu_instance);

/* --- MPS --- */

/* A server of CUDA's MPS computes for its clients. */
bool nrg_nvml_is_mps_server(const struct nrg_root *root, unsigned pid);
/* The part of the processors that a client may use by its environment, at most 1: all, or unknown.
 */
double nrg_nvml_mps_limit(const struct nrg_root *root, int32_t pid);

/* --- processes --- */

struct nrg_nvml_processes;

/* What NVML's pids mean here. */
enum nrg_nvml_pids {
    NRG_NVML_PIDS_OURS,   /* we are in the initial namespace */
    NRG_NVML_PIDS_OUTER,  /* in another one, but /proc shows the outer ids */
    NRG_NVML_PIDS_FOREIGN /* in another one, and /proc does not show the outer ids */
};

enum nrg_nvml_pids nrg_nvml_pid_view(const struct nrg_root *root);

/* NULL with *rc 0 when the device has no information on processes. root must outlive it. */
struct nrg_nvml_processes *nrg_nvml_processes_new(const struct nrg_nvml *api,
                                                  struct nvml_device *device, unsigned gpu,
                                                  const struct nrg_root *root, int *rc);
void nrg_nvml_processes_free(struct nrg_nvml_processes *p);
/* Emits one gpu_process per process, at most every 100 ms. `stepped`: of the wall clock. */
void nrg_nvml_processes_read(struct nrg_nvml_processes *p, const struct nrg_nvml_clock *clock,
                             bool stepped, struct nrg_sink *sink);

/* --- probe --- */

int nrg_nvml_probe(struct nrg_probe *probe, struct nrg_error *err);

#endif
