/*
 * The files of /sys/cray/pm_counters as text: which domain a file's name means, and the one line
 * that it holds, "VALUE UNIT STAMP us". No device here (driver.c). Pure functions; any thread.
 */
#ifndef NRG_SENSORS_CRAY_COUNTER_H
#define NRG_SENSORS_CRAY_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nrg_cray_domain { NRG_CRAY_NODE, NRG_CRAY_CPU, NRG_CRAY_MEMORY, NRG_CRAY_ACCEL };

struct nrg_cray_file {
    enum nrg_cray_domain domain;
    int number;  /* of accel0_energy; -1: the name has none */
    bool energy; /* J; else power, W */
};

/* "energy", "cpu_power", "accel0_energy" and so on; false for all other files of the folder. */
bool nrg_cray_file(const char *name, struct nrg_cray_file *file);

/*
 * The line of such a file. -EPROTO: it has another form or unit; -ERANGE: no value that such a
 * counter has. stamp_us is NRG_MISSING where the line has no stamp.
 */
int nrg_cray_parse(const char *text, size_t len, bool energy, int64_t *value, int64_t *stamp_us);

/* The number that freshness, generation or raw_scan_hz begins with; NRG_MISSING: none. */
int64_t nrg_cray_count(const char *text, size_t len);

#endif
