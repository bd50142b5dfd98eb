/* See fake_roctx.h: a profiler that is in the program, and says which tables it gets. */
#include <stdio.h>

#include "fake_roctx.h"

int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
                              uint64_t n_tables);
int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
                              uint64_t n_tables)
{
    (void)instance;
    (void)tables;
    fprintf(stderr, "rocprofiler has %s %llu %llu\n", name, (unsigned long long)version,
            (unsigned long long)n_tables);
    return 0;
}
