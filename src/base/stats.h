/*
 * Statistics of measurements: sorting, medians, mean and spread, quantiles of the normal
 * distribution and of Student's t.
 *
 * Nothing is allocated and nothing can fail. What has no answer is NAN, except that intervals
 * without any degree of freedom are infinite. Thread-safe.
 */
#ifndef NRG_BASE_STATS_H
#define NRG_BASE_STATS_H

#include <stddef.h>
#include <stdint.h>

/* In place, ascending; `values` may be NULL when n is 0. No value may be NAN. */
void nrg_sort(double *values, size_t n);
void nrg_sort_i64(int64_t *values, size_t n);

/* Sorts. The mean of the two in the middle when n is even; NAN for none. */
double nrg_median(double *values, size_t n);
/* The same, faster: values are in another order after it, but not sorted. */
double nrg_median_of_many(double *values, size_t n);
/* Sorts. The upper of the two in the middle when n is even; n must not be 0. */
int64_t nrg_median_i64(int64_t *values, size_t n);

/* Mean, standard deviation and the 95 % interval of the mean; NAN where n is too small. */
struct nrg_spread {
    size_t n;
    double mean, sd, low, high;
};
struct nrg_spread nrg_spread_of(const double *values, size_t n);

/* A normal variable of mean 0 and variance 1 is within this distance of 0 with that probability. */
double nrg_normal_half(double confidence);
/* The same for Student's t. `freedom` may be a fraction, and INFINITY; below 1 it counts as
 * 1. */
double nrg_student_half(double confidence, double freedom);
/* The other way round: how likely Student's t is further from 0 than |t|; of the normal one for a
 * `freedom` of INFINITY. */
double nrg_student_tails(double t, double freedom);
/* A variable of chi squared is below this with that probability, to 0.1 % for probabilities between
 * 1 and 99 %. At least one degree of freedom. */
double nrg_chi_squared(double probability, double freedom);
/* The same for 95 % and whole degrees of freedom, as printed tables have it. */
double nrg_student_half95(size_t freedom);

#endif
