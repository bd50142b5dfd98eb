/*
 * An attribution over time, as its result has it (nrg_attribution.buckets): what each domain and
 * row used between edges of time. How it is made: buckets.h; how buckets become a range with an
 * interval: range.h. Plain data in the memory of the attribution.
 */
#ifndef NRG_ATTRIBUTE_TIME_BUCKETS_H
#define NRG_ATTRIBUTE_TIME_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

/* What a domain had in a bucket. */
struct nrg_time_bucket {
    double total_j, idle_j, other_processes_j;
    double covered_s;     /* with readings */
    double low_j, high_j; /* band of an estimate; NAN: it has none of its own */
};

/* What a domain's energy of a range may be off by, beside its band. */
struct nrg_range_error {
    double factor_low, factor_high; /* common to all of the run: times the energy */
    double fixed_j;                 /* of the two edges */
    double update_s;                /* of the edges, times the mean power of the range */
    double per_s_j;                 /* rounding of a gauge, per second */
    double noise_j2_per_s;          /* independent from reading to reading */
    double most_w;                  /* that time without readings may have used */
};

struct nrg_attribution_buckets {
    size_t n, n_domains;
    const int64_t *edges_ns;              /* n + 1, from the begin of the first run */
    const struct nrg_time_bucket *domain; /* [domain * n + bucket] */
    const struct nrg_range_error *errors; /* per domain */
    const double *row_j;          /* own energy, [(row * n_domains + domain) * n + bucket] */
    const double *row_s;          /* own time, [row * n + bucket] */
    const uint32_t *row_calls;    /* that ended in it, [row * n + bucket] */
    const uint32_t *row_of_place; /* per place of a walk by the same rule; UINT32_MAX: no row */
    size_t n_places;
    /* Of a flat view: with all that was inside; NULL where rows have parents. */
    const double *inside_j;
    const double *inside_s;
};

#endif
