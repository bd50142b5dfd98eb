/*
 * A simulated sensor on one domain of a scenario: what the device would show at a given time. It
 * adds to the truth (scenario_truth.h) what real sensors add: update period, lag, quantum, noise,
 * wrap and faults. The simulate driver and the RAPL emulator of the tests use it.
 *
 *   truth --latch--> [lag] --> [noise] --> [faults] --> [quantum] --> [wrap] --> raw
 *
 * Times are scenario time in ns (0: first read) and must not go backwards. The scenario must
 * outlive the meter. No allocation; one thread per meter.
 */
#ifndef NRG_SENSORS_VIRTUAL_SIM_METER_H
#define NRG_SENSORS_VIRTUAL_SIM_METER_H

#include "sensors/virtual/scenario.h"

struct nrg_sim_meter {
    const struct nrg_scenario_domain *domain;
    uint64_t seed;
    int64_t t_ns;        /* of the last read, -1 before the first */
    int64_t latch_ns;    /* time of the update that the state below belongs to */
    double live;         /* what the power follows, at t_ns */
    double latched_live; /* and at latch_ns */
    double adjust_j;     /* what noise, freezes and jumps added to the counter */
    double lagged_w, lagged_live_w;
    double shown; /* J or W, before rounding */
};

/* `live`: what the domain's power follows, so far (any origin): joules of its file where it has
 * one, else busy CPU seconds; 0 when it needs neither. */
void nrg_sim_meter_init(struct nrg_sim_meter *meter, const struct nrg_scenario *scenario,
                        size_t domain, double live);

/* The raw value (times domain->quantum is J or W), or the -errno of a fault in force. */
int nrg_sim_meter_read(struct nrg_sim_meter *meter, int64_t t_ns, double live, int64_t *raw);

/* Range of the raw value, 0: it does not wrap. */
uint64_t nrg_sim_meter_wrap(const struct nrg_scenario_domain *domain);

/* True when a `gone` fault of any domain is in force: the whole sensor is. */
bool nrg_scenario_gone(const struct nrg_scenario *scenario, int64_t t_ns);

/* Standard normal number `index` of a seed's sequence; random access, so that a value does not
 * depend on how often the sensor was read. */
double nrg_sim_gauss(uint64_t seed, uint64_t index);

/*
 * Busy CPU seconds of the machine since boot from an open /proc/stat: all but idle, iowait and
 * steal. 0 or -errno.
 */
int nrg_sim_busy_cpu_s(int fd, double *busy_s);

#endif
