/* See fake_roctx.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_roctx.h"

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
                                           uint32_t version, void **tables, uint64_t n_tables,
                                           uint64_t *id)
{
    const char *path = getenv("ROCPROFILER_REGISTER_LIBRARY");
    (void)import;
    *id = 0;
    if (!path || !*path)
        return 1;
    void *library = dlopen(path, RTLD_GLOBAL | RTLD_LAZY);
    int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) =
        library ? (int (*)(const char *, uint64_t, uint64_t, void **, uint64_t))(intptr_t)dlsym(
                      library, "rocprofiler_set_api_table")
                : NULL;
    if (!set) {
        fprintf(stderr, "rocprofiler_set_api_table not found. Tried to dlopen %s\n", path);
        abort();
    }
    return set(name, version, 0, tables, n_tables) ? 2 : 0;
}
