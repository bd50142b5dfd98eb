/*
 * A scenario: a machine whose true power is known, as a small text file. The simulate driver and
 * the RAPL emulator of the tests read it; nothing else knows the format. It is line based; '#'
 * starts a comment, indentation means nothing, a `domain` line starts a domain and the following
 * lines describe it. docs/simulate.md is the specification for users.
 *
 *   seed 42                      noise seed of the whole file (default 1), before any domain
 *   domain package-0
 *     power 50                   watts; or steps, power 0s:20 5s:80 (each lasts until the next)
 *     ramp 0s:20 10s:80          or piecewise linear; equal times make a jump
 *     burst period=100ms duty=0.3 low=10 high=90
 *     per-busy-cpu 12            plus W per busy CPU, live from /proc/stat
 *     joules-from FILE           or plus the joules that a file beside the scenario says, live
 *     kind counter|gauge         what the sensor shows: energy (default) or power
 *     update 1ms                 the shown value is that of the last multiple (default 1ms)
 *     lag 0.4s                   gauges: first-order averaging with this time constant
 *     quantum 61uJ | 40mW        shown value is rounded down to multiples (default 1uJ, 1mW)
 *     noise 1%                   standard deviation, per update, of power or increment
 *     wrap 262143.3J             counters: range;   start 262140J   counters: value at time 0
 *     limit 400                  watts that the domain can't exceed (default: unknown)
 *     parent psys | wide | covers-cpu
 *     fault TIME EIO|stuck|freeze [DURATION]   fault TIME backwards 5J   fault TIME gone
 *
 * Time 0 is the first read. Before the first and after the last point the power is that point's.
 * Refused, with the line: unknown words, a second power line, values out of range, parents that
 * are not in the file or contain themselves, more than the limits below.
 *
 * A scenario is immutable after parsing and may be shared by threads. All functions return 0 or
 * a negative errno; nrg_error.offset is the line number.
 */
#ifndef NRG_SENSORS_VIRTUAL_SCENARIO_H
#define NRG_SENSORS_VIRTUAL_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    NRG_SCENARIO_DOMAINS = 64,
    NRG_SCENARIO_POINTS = 1024, /* of one domain */
    NRG_SCENARIO_FAULTS = 64,   /* of one domain */
    NRG_SCENARIO_BYTES = 1 << 20
};

struct nrg_scenario_point {
    int64_t t_ns;
    double power_w;
};

enum nrg_scenario_shape { NRG_SHAPE_NONE, NRG_SHAPE_STEPS, NRG_SHAPE_RAMP, NRG_SHAPE_BURST };

enum nrg_scenario_fault_kind {
    NRG_FAULT_ERROR,     /* the read fails */
    NRG_FAULT_STUCK,     /* stands still, then catches up with the truth */
    NRG_FAULT_FREEZE,    /* stands still, and what a counter missed is lost */
    NRG_FAULT_BACKWARDS, /* a counter jumps back once */
    NRG_FAULT_GONE       /* the whole sensor, for good */
};

struct nrg_scenario_fault {
    enum nrg_scenario_fault_kind kind;
    int64_t start_ns;
    int64_t end_ns;  /* INT64_MAX: for ever */
    int error;       /* negative errno of NRG_FAULT_ERROR */
    double energy_j; /* of NRG_FAULT_BACKWARDS */
};

struct nrg_scenario_domain {
    char name[48];
    char parent[48];
    int line, parent_line; /* of name and parent in the file */
    bool gauge, wide, covers_cpu;
    enum nrg_scenario_shape shape;
    struct nrg_scenario_point *points; /* steps and ramps, in time order */
    size_t n_points, cap_points;
    int64_t burst_period_ns, burst_on_ns;
    double burst_low_w, burst_high_w;
    double per_busy_cpu_w; /* 0: does not follow the CPUs */
    char follows[48];      /* the file whose joules it has in addition; "": none */
    int64_t update_ns, lag_ns;
    double quantum; /* J of counters, W of gauges: the channel's scale */
    double noise;   /* standard deviation as a ratio */
    double wrap_j, start_j, limit_w;
    struct nrg_scenario_fault *faults;
    size_t n_faults, cap_faults;
};

struct nrg_scenario {
    uint64_t seed;
    struct nrg_scenario_domain *domains;
    size_t n_domains, cap_domains;
};

/*
 * Parses `len` bytes of text; `where` names them in errors. On failure nothing is left to release.
 */
int nrg_scenario_parse(struct nrg_scenario *scenario, const char *where, const char *text,
                       size_t len, struct nrg_error *err);
/* The same from a file of the real file system (the user's own, not under --root). */
int nrg_scenario_load(struct nrg_scenario *scenario, const char *path, struct nrg_error *err);
void nrg_scenario_release(struct nrg_scenario *scenario);

/* True when some domain needs /proc/stat. */
bool nrg_scenario_needs_busy_cpu(const struct nrg_scenario *scenario);

#endif
