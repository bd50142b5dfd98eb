/* The drivers' structs, one line each; only registry.c and the drivers include this. */
#ifndef NRG_SENSORS_DRIVERS_H
#define NRG_SENSORS_DRIVERS_H

#include "sensors/driver.h"

extern const struct nrg_driver nrg_driver_amd_smi;
extern const struct nrg_driver nrg_driver_cray;
extern const struct nrg_driver nrg_driver_dcmi;
extern const struct nrg_driver nrg_driver_emonpi;
extern const struct nrg_driver nrg_driver_omegawatt;
extern const struct nrg_driver nrg_driver_waveform;
extern const struct nrg_driver nrg_driver_waveform_exec;
extern const struct nrg_driver nrg_driver_estimate;
extern const struct nrg_driver nrg_driver_exec;
extern const struct nrg_driver nrg_driver_file;
extern const struct nrg_driver nrg_driver_hwmon;
extern const struct nrg_driver nrg_driver_ina3221;
extern const struct nrg_driver nrg_driver_lines;
extern const struct nrg_driver nrg_driver_machine;
extern const struct nrg_driver nrg_driver_mqtt;
extern const struct nrg_driver nrg_driver_mqtts;
extern const struct nrg_driver nrg_driver_nrgd;
extern const struct nrg_driver nrg_driver_nvml;
extern const struct nrg_driver nrg_driver_process;
extern const struct nrg_driver nrg_driver_llm;
extern const struct nrg_driver nrg_driver_rapl_msr;
extern const struct nrg_driver nrg_driver_rapl_perf;
extern const struct nrg_driver nrg_driver_rapl_powercap;
extern const struct nrg_driver nrg_driver_redfish;
extern const struct nrg_driver nrg_driver_replay;
extern const struct nrg_driver nrg_driver_rpict;
extern const struct nrg_driver nrg_driver_simulate;

#endif
