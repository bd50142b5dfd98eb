/*
 * Energy for nrg calibrate, measured as nrg run does: each reading is a small recording of its own,
 * in memory where possible, so that totals, provenance and uncertainty are those of nrg report.
 *
 * Embedded: open, measure, close. Errors are negative errno with err. Single-threaded.
 */
#ifndef NRG_CLI_CALIBRATE_METER_H
#define NRG_CLI_CALIBRATE_METER_H

#include "calibrate/calibration.h"
#include "cli/internal.h"
#include "sensors/driver.h"

struct nrg_recorder_meter {
    struct nrg_cli *cli;
    struct nrg_sensor_options sensors;
    char folder[64], path[96];
    char device[128];               /* the processor's name, "": not known */
    char domains[256];              /* what the total adds: "package-0, dram-0" */
    enum nrg_provenance provenance; /* the worst of all readings */
    size_t readings;
};

int nrg_recorder_meter_open(struct nrg_recorder_meter *meter, struct nrg_error *err);
void nrg_recorder_meter_close(struct nrg_recorder_meter *meter);
/* The function of struct nrg_meter; `arg` is a struct nrg_recorder_meter. */
int nrg_recorder_meter_measure(void *arg, void (*work)(void *), void *work_arg,
                               struct nrg_work_reading *reading, struct nrg_error *err);

#endif
