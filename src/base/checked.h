/*
 * Numbers of files on their way to becoming an index, a size, a count or a time. A file can hold
 * any number, and C leaves undefined what an index too far, a sum too large or a double too large
 * for an integer does. These are the ways that are defined for all of them. Pure.
 */
#ifndef NRG_BASE_CHECKED_H
#define NRG_BASE_CHECKED_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Doubles below are integers that fit; 2^63 itself does not. */
#define NRG_I64_LIMIT 9223372036854775808.0

/* True when `number` is an index of an array of n items. */
static inline bool nrg_is_index(int64_t number, size_t n)
{
    return number >= 0 && (uint64_t)number < n;
}

/* The same for numbers that count from 1, in an array whose item 0 is not used. */
static inline bool nrg_is_id(int64_t number, size_t n)
{
    return number > 0 && (uint64_t)number < n;
}

/* The nearest integer, or the end of the range that is nearer; 0 for NAN. */
static inline int64_t nrg_round_i64(double value)
{
    if (!(value > -NRG_I64_LIMIT))
        return isnan(value) ? 0 : INT64_MIN;
    return value < NRG_I64_LIMIT ? (int64_t)llround(value) : INT64_MAX;
}

/* The nearest integer within [low, high]; low for NAN. */
static inline int64_t nrg_round_within(double value, int64_t low, int64_t high)
{
    if (!(value > (double)low))
        return low;
    return value < (double)high ? (int64_t)llround(value) : high;
}

/* Whole items of `value`, at most `most`; 0 for what is negative or NAN. */
static inline size_t nrg_floor_size(double value, size_t most)
{
    if (!(value > 0))
        return 0;
    return value < (double)most ? (size_t)value : most;
}

/* The sum, or the end of the range that it goes beyond. */
static inline int64_t nrg_add_i64(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

#endif
