/* See search.h. */
#include "base/search.h"

size_t nrg_count_below(const int64_t *first, size_t n, size_t stride, int64_t value)
{
    const char *base = (const char *)first;
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (*(const int64_t *)(const void *)(base + middle * stride) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t nrg_count_up_to(const int64_t *first, size_t n, size_t stride, int64_t value)
{
    return value == INT64_MAX ? n : nrg_count_below(first, n, stride, value + 1);
}
