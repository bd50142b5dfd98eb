/*
 * Energy for nrg calibrate, by what nrg run measures with: each reading is a small recording of its
 * own, in memory where there is such a place, so that totals, provenance and uncertainty are those
 * of nrg report.
 */
#ifndef NRG_CLI_CALIBRATE_METER_H
#define NRG_CLI_CALIBRATE_METER_H

#include "calibrate/calibration.h"
#include "cli/common.h"
#include "sensors/driver.h"

struct nrg_recorder_meter {
    struct nrg_cli *cli;
    struct nrg_sensor_options sensors;
    double rate_hz; /* 0: the usual */
    volatile sig_atomic_t *stop;
    char folder[64], path[96];
    char device[128];               /* the processor's name, "": not told */
    char domains[256];              /* what the total adds: "package-0, dram-0" */
    enum nrg_provenance provenance; /* the worst of all readings */
    size_t readings;
};

int nrg_recorder_meter_open(struct nrg_recorder_meter *meter, struct nrg_error *err);
void nrg_recorder_meter_close(struct nrg_recorder_meter *meter);
/* The function of struct nrg_meter; `arg` is a struct nrg_recorder_meter. */
int nrg_recorder_meter_measure(void *arg, void (*work)(void *), void *work_arg,
                               struct nrg_reading *reading, struct nrg_error *err);

#endif
