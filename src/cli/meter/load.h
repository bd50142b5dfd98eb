/* A load with a random pattern, for calibration: see meter/load.c. Owns nothing after it returns;
 * blocks the calling thread. */
#ifndef NRG_CLI_METER_LOAD_H
#define NRG_CLI_METER_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes all CPUs busy and idle in turns, in phases of least_ns to three times as long, for total_ns
 * or until stopped() is true. 0, or -errno when no thread could be started.
 */
int nrg_meter_load(int64_t total_ns, int64_t least_ns, unsigned seed, bool (*stopped)(void));

#endif
