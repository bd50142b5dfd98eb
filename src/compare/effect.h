/*
 * By what factor B differs from A: a ratio with an interval and a p-value, from runs of both.
 *
 * The logarithm of each run's value is taken to be its side's level, plus a drift of the machine
 * that is linear in time, plus scatter that may differ between the sides. Least squares, with
 * variances and degrees of freedom that need no equal scatter (HC2, Bell and McCaffrey; of two
 * samples without a drift that is Welch's test). The drift is fitted whenever there are three runs
 * of each side, whatever it turns out to be: a term that is chosen by the data it is tested on
 * would make intervals too narrow. Where all runs of A were before those of B the interval gets
 * wide by that, as it must: nothing tells a drift from a difference then.
 *
 * The sensors' own uncertainty: what is independent from run to run is part of the scatter, so the
 * interval is never narrower than it; what is common to the runs (the band of an estimate) cancels
 * in the ratio but for a rest that is added.
 *
 * Pure: nothing is allocated beyond the call. 0 or -ENOMEM. Thread-safe.
 */
#ifndef NRG_COMPARE_EFFECT_H
#define NRG_COMPARE_EFFECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One run's value of one quantity. */
struct nrg_compare_value {
    double value;     /* more than 0, else it is left out */
    double own;       /* relative: it may be off by so much either way, independent of others; 0 */
    double low, high; /* relative band common to all runs: 0.8 and 1.3; 1 and 1: none */
    int64_t t_ns;     /* when the run began; NRG_MISSING */
};

struct nrg_sample {
    const struct nrg_compare_value *items;
    size_t n;
};

/* Unknown: there is no interval. None: there is one, and it holds 1. */
enum nrg_effect_verdict { NRG_EFFECT_UNKNOWN, NRG_EFFECT_NONE, NRG_EFFECT_LESS, NRG_EFFECT_MORE };

struct nrg_effect {
    size_t n_a, n_b;  /* values that could be used */
    double a, b;      /* geometric means, the drift taken out */
    double ratio;     /* B over A; NAN: one side has no value */
    double low, high; /* NAN: fewer than two runs of a side */
    double p_value;   /* that so large a difference comes by chance; NAN likewise */
    double p_rank;    /* the same by ranks alone (Mann and Whitney) */
    double freedom;
    double scatter_a, scatter_b; /* relative standard deviation of runs, the drift taken out, and
                                    of few runs no less than the sensors' own */
    double seen_a, seen_b;       /* the same as the runs show it, whatever the sensors' own is */
    double drift;  /* relative change from the first run to the last; NAN: not fitted */
    double design; /* variance by fitting the drift, relative to that without; 1 */
    bool skewed;   /* scatter is far from normal: ranks are the better witness */
    enum nrg_effect_verdict verdict;
};

int nrg_effect_find(struct nrg_effect *effect, struct nrg_sample a, struct nrg_sample b,
                    double confidence);

/* Two-sided, exact for up to 20 values a side without ties, else normal with ties counted. */
int nrg_rank_test(const double *a, size_t n_a, const double *b, size_t n_b, double *p_value);

/*
 * Runs of each side, in turn, that would show a relative difference in 4 of 5 tries at that
 * confidence, from the scatter that was seen, which is itself uncertain: low and high hold the
 * number at 95 %. NAN without a scatter.
 */
struct nrg_runs_needed {
    double runs, low, high;
};
#define NRG_RUNS_NEEDED_POWER 0.8
struct nrg_runs_needed nrg_runs_needed(const struct nrg_effect *effect, double difference,
                                       double confidence);

#endif
