/*
 * One side of a comparison: its runs, read from recordings. A recording with --repeat gives several
 * runs; baselines are none, and a run that was cut off (its recorder was killed, or is at work) is
 * counted and left out: its joules are not those of the program.
 *
 * Embedded by the owner: zeroed, added to, released. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_COMPARE_SIDE_H
#define NRG_COMPARE_SIDE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "compare/effect.h"
#include "energy/summary.h"

/* Sentences for the user. */
struct nrg_compare_notes {
    char (*items)[320];
    size_t n, cap;
};
int nrg_compare_note(struct nrg_compare_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How a run was made: facts that both sides should have in common. "" where it is not known. */
enum nrg_compare_fact {
    NRG_FACT_SENSORS, /* what the total adds: "package-0 by rapl-powercap, ..." */
    NRG_FACT_HOST,
    NRG_FACT_CPU,
    NRG_FACT_KERNEL,
    NRG_FACT_GOVERNOR,
    NRG_FACT_POWER_LIMITS,
    NRG_FACT_CLOCK_LIMITS,
    NRG_FACT_GPU_DRIVER,
    NRG_FACT_RATE,
    NRG_FACT_VERSION,    /* of nrg that recorded */
    NRG_FACT_PARAMETERS, /* of the model */
    NRG_FACT_INPUT,      /* notes that say what was worked on */
    NRG_FACT_WORK,       /* what the program counted: "6000 samples" */
    NRG_FACTS
};

enum nrg_compare_clock { NRG_COMPARE_CPU, NRG_COMPARE_GPU, NRG_COMPARE_CLOCKS };

struct nrg_compare_run {
    const char *file, *command;
    bool imported;    /* from a log, which the command names then */
    int64_t begin_ns; /* wall clock; NRG_MISSING */
    int64_t clock_ns; /* the same by the recorder's clock */
    double energy_j, program_j, duration_s, peak_memory_bytes; /* NAN: not known */
    double own, low, high;            /* of the energy, see struct nrg_compare_value */
    double program_low, program_high; /* band of the program's energy, which runs have in common */
    double covered;                   /* part of the run with readings */
    double others; /* CPU time of other processes, as a part of all CPUs' time; NAN */
    double clock_hz[NRG_COMPARE_CLOCKS]; /* mean over the run; NAN: not recorded */
    double temperature_c;                /* of the hottest sensor, mean over the run; NAN */
    int exit_code;                       /* -1: none */
    enum nrg_provenance provenance;
    const char *facts[NRG_FACTS];
};

/* Energy of something below the whole, by run: only value, own, low and high are filled. */
struct nrg_compare_part {
    const char *kind, *name;
    struct nrg_compare_value *items; /* by run of the side; a value of 0: that run has none of it */
    size_t n, cap;
};

struct nrg_compare_side {
    const char *name;       /* of the side, for people; NULL: A or B. Borrowed */
    const char *by;         /* note that the sides differ in by intention; NULL: none. Borrowed */
    struct nrg_arena arena; /* texts */
    struct nrg_compare_run *runs;
    size_t n_runs, cap_runs;
    size_t n_cut, n_damaged; /* runs without an end, which are left out; damaged recordings */
    size_t n_again;          /* runs that were given before, and count once */
    struct nrg_map index;    /* "kind name" to a position in parts + 1 */
    struct nrg_compare_part *parts;
    size_t n_parts, cap_parts;
};

/* Adds the runs of a recording, with their parts: domains, processes, modules, operators. A run
 * that the side has already is not added again, whatever file it is in. */
int nrg_compare_side_add(struct nrg_compare_side *side, const char *path, struct nrg_error *err);
void nrg_compare_side_release(struct nrg_compare_side *side);

/* What people call side 0 or 1. */
const char *nrg_compare_side_name(const struct nrg_compare_side sides[2], int side);

/* That run of the side, or a copy of it; NULL: none. */
const struct nrg_compare_run *nrg_compare_side_run(const struct nrg_compare_side *side,
                                                   const struct nrg_compare_run *like);

/* The part of that name; NULL: none. */
const struct nrg_compare_part *nrg_compare_side_find(const struct nrg_compare_side *side,
                                                     const struct nrg_compare_part *like);

#endif
