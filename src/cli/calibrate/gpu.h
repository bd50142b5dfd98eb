/*
 * nrg calibrate --gpu: how the power sensor of a GPU samples, by a load of known times. Records
 * `nrg run` of that load, or takes a recording, and asks energy/sensor_fit.h. Returns exit codes.
 */
#ifndef NRG_CLI_CALIBRATE_GPU_H
#define NRG_CLI_CALIBRATE_GPU_H

#include "cli/internal.h"

struct nrg_gpu_calibration {
    const char *from;   /* a recording; NULL: record */
    const char *output; /* the profile; NULL: none */
    const char *json;
    char **command; /* the load; NULL-terminated, empty: nrg's own */
};

int nrg_calibrate_gpu(struct nrg_cli *cli, const struct nrg_gpu_calibration *options);

#endif
