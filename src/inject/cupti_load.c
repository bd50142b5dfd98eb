/*
 * Finding CUPTI (cupti_load.h): a copy that the process has; by its name where the system looks;
 * beside the CUDA runtime that the process has, as toolkits and Python's packages lay them out; in
 * the usual folder. NRG_CUPTI_LIBRARY alone when it is set.
 */
#include "inject/cupti_load.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const versions[] = {".13",   ".12",   ".11.8", ".11.7", ".11.6", ".11.5",
                                       ".11.4", ".11.3", ".11.2", ".11.1", ".11.0", ""};
#define N_VERSIONS (sizeof versions / sizeof *versions)

/* Folder of the CUDA runtime in this process, "" when there is none. */
static int note_runtime(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    const char *slash = strrchr(name, '/');
    if (!slash || strncmp(slash + 1, "libcudart.so", 12) || slash - name >= NRG_CUPTI_PATH)
        return 0; /* a path that is cut would be another one, and what is there is loaded */
    snprintf(arg, NRG_CUPTI_PATH, "%.*s", (int)(slash - name), name);
    return 1;
}

static void *open_in(const char *folder, int flags)
{
    char path[NRG_CUPTI_PATH + 32];
    void *found = NULL;
    for (size_t i = 0; !found && i < N_VERSIONS; i++) {
        snprintf(path, sizeof path, "%s%slibcupti.so%s", folder, *folder ? "/" : "", versions[i]);
        found = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    }
    return found;
}

static void *open_beside_runtime(void)
{
    static const char *const places[] = {"", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib"};
    char runtime[NRG_CUPTI_PATH] = "", folder[NRG_CUPTI_PATH + 32];
    void *found = NULL;
    dl_iterate_phdr(note_runtime, runtime);
    for (size_t i = 0; runtime[0] && !found && i < sizeof places / sizeof *places; i++) {
        snprintf(folder, sizeof folder, "%s%s", runtime, places[i]);
        found = open_in(folder, 0);
    }
    return found;
}

static void *open_library(void)
{
    const char *given = secure_getenv("NRG_CUPTI_LIBRARY");
    if (given && *given)
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    void *found = open_in("", RTLD_NOLOAD);
    if (!found)
        found = open_beside_runtime();
    if (!found)
        found = open_in("", 0);
    return found ? found : open_in("/usr/local/cuda/extras/CUPTI/lib64", 0);
}

bool nrg_cupti_load(struct nrg_cupti *cupti, const char **lacks)
{
    void *library = open_library();
    *lacks = NULL;
    if (!library)
        return false;
#define TAKE(name, arguments)                                                                      \
    cupti->name = (int(*) arguments)(intptr_t)dlsym(library, "cupti" #name);
    NRG_CUPTI_NEEDED(TAKE)
    NRG_CUPTI_OPTIONAL(TAKE)
#undef TAKE
#define CHECK(name, arguments)                                                                     \
    if (!cupti->name)                                                                              \
        *lacks = "cupti" #name;
    NRG_CUPTI_NEEDED(CHECK)
#undef CHECK
    return !*lacks;
}
