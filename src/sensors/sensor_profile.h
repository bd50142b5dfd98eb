/*
 * How the power sensor of a GPU was found to sample: the file that `nrg calibrate --gpu -o` writes
 * and `--sensor-profile` reads. It replaces what the nvml driver's table says of boards of that
 * name.
 *
 *   {"schema": "nrg.sensor/1", "gpu": "NVIDIA A100-SXM4-40GB", "source": "nvmlDeviceGetPowerUsage",
 *    "update_s": 0.1, "window_s": 0.025, "lag_s": 0}
 *
 * A window that is longer than an update is a running mean. Samples of the driver's buffer are
 * described by it, too, but for that mean.
 *
 * Plain data. 0, or -errno with err for a file that is not one, or can't be true.
 */
#ifndef NRG_SENSORS_SENSOR_PROFILE_H
#define NRG_SENSORS_SENSOR_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NRG_SENSOR_PROFILE_SCHEMA "nrg.sensor/1"

struct nrg_sensor_profile {
    char gpu[64];                         /* "": all boards */
    char source[128];                     /* the call that it is of; "": any */
    int64_t update_ns, window_ns, lag_ns; /* as in struct nrg_channel */
};

int nrg_sensor_profile_parse(struct nrg_sensor_profile *profile, const char *where,
                             const char *text, size_t len, struct nrg_error *err);
int nrg_sensor_profile_read(struct nrg_sensor_profile *profile, const char *path,
                            struct nrg_error *err);

#endif
