/*
 * Are two sets of runs different? What `nrg compare` shows, from recordings alone.
 *
 * Quantities of whole runs (energy of the machine and of the program, time, mean power, energy
 * times time, peak memory), and rows: domains, processes by command, modules, kinds of operators. A
 * row is compared where at least two runs of each side have it. p-values of rows are adjusted for
 * their number (Holm), those of quantities are not: energy is what is asked for.
 *
 * Make, release. Texts belong to the comparison. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_COMPARE_COMPARE_H
#define NRG_COMPARE_COMPARE_H

#include "base/error.h"
#include "compare/effect.h"
#include "compare/side.h"

enum nrg_compare_quantity {
    NRG_COMPARE_ENERGY, /* of the machine: the total */
    NRG_COMPARE_PROGRAM,
    NRG_COMPARE_DURATION,
    NRG_COMPARE_POWER,
    NRG_COMPARE_ENERGY_DELAY,
    NRG_COMPARE_MEMORY,
    NRG_COMPARE_QUANTITIES
};
/* "energy", "program_energy", "duration", ...: as in JSON and --fail-if. */
extern const char *const nrg_compare_names[NRG_COMPARE_QUANTITIES];

struct nrg_compare_row {
    const char *kind, *name; /* "module", "encoder.layer.3" */
    struct nrg_effect effect;
    double p_adjusted; /* NAN: not known */
};

/* A part that one side has and the other has not: named, not compared. */
struct nrg_compare_only {
    const char *kind, *name;
    int side;        /* 0: A */
    double energy_j; /* mean over the runs that have it */
};

struct nrg_comparison {
    struct nrg_compare_side sides[2];
    struct nrg_effect quantities[NRG_COMPARE_QUANTITIES];
    struct nrg_runs_needed needed;
    double detect; /* the relative difference that it is for */
    double confidence;
    struct nrg_compare_row *rows;
    size_t n_rows;
    struct nrg_compare_only *only;
    size_t n_only;
    struct nrg_compare_notes warnings, refusals;
};

struct nrg_compare_options {
    double confidence; /* 0: 0.95 */
    double detect;     /* 0: 0.01 */
};

/* Takes over the sides, which are released with the comparison also when this fails. */
int nrg_comparison_make(struct nrg_comparison *comparison, struct nrg_compare_side sides[2],
                        const struct nrg_compare_options *options, struct nrg_error *err);
void nrg_comparison_release(struct nrg_comparison *comparison);

/*
 * Fills warnings and refusals: what speaks against comparing the two sides at all. Called by
 * nrg_comparison_make.
 */
int nrg_compare_check(struct nrg_comparison *comparison);

#endif
