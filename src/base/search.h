/*
 * Binary search for a number among numbers in ascending order. They may be members of an array of
 * structs: `first` is the first one's, `stride` the size of an item in bytes. n may be 0. Pure.
 */
#ifndef NRG_BASE_SEARCH_H
#define NRG_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* How many are less than `value`: the index of the first that is not. */
size_t nrg_count_below(const int64_t *first, size_t n, size_t stride, int64_t value);
/* How many are at most `value`: the index of the first that is greater. */
size_t nrg_count_up_to(const int64_t *first, size_t n, size_t stride, int64_t value);

#endif
