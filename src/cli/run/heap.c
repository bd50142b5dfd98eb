/*
 * See heap.h. What is large here (columns of a chunk, readings of a domain for the report) grows,
 * is used once and goes. glibc maps such blocks apart, so that growing moves pages instead of bytes
 * and freeing gives them back, but only until the first is freed: then it takes larger and larger
 * ones from the heap, which keeps the holes. And each thread gets a heap of its own. A fixed
 * threshold and one heap for the handful of threads take 2 MB less at the end of a minute at 1 kHz.
 */
#include "cli/run/heap.h"

#include <malloc.h>

#define LARGE_BYTES (64 * 1024)

void nrg_run_heap_keep_small(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
    mallopt(M_ARENA_MAX, 1);
#endif
}
