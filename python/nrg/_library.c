/*
 * Finding libnrg: NRG_LIBRARY alone when it is set; else a copy that the process has already; else
 * beside this module (a wheel), in the build tree, in the place where the same `meson install` put
 * it, and where the system looks. RTLD_LOCAL: a Python program must not find its own symbols
 * replaced by ours.
 *
 * A library of another version, or that lacks a function, is passed over, and the reason says what
 * to do. Nothing fails here: the program that marks spans must run on machines without nrg.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_nrg.h"

#define LIBRARY "libnrg.so.0"

static const char *no_text(void)
{
    return "";
}

static int inactive(void)
{
    return 0;
}

static uint32_t no_name(const char *text, const char *kind, const char *detail)
{
    return 0;
}

static void no_begin(uint32_t name)
{
}

static void no_number(uint32_t name, int64_t number)
{
}

static void no_end(void)
{
}

static unsigned no_depth(void)
{
    return 0;
}

static void no_unwind(unsigned depth)
{
}

static void no_past(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                    int64_t end_ns)
{
}

/* The recorder's calls are not made without a library: nrg_py.loaded is asked first. */
struct nrg_py_library nrg_py = {
    .version = no_text,
    .recording_active = inactive,
    .name_intern = no_name,
    .span_begin_name = no_begin,
    .span_begin_numbered = no_number,
    .span_end = no_end,
    .span_depth = no_depth,
    .span_unwind = no_unwind,
    .span_past = no_past,
    .mark_name = no_begin,
    .count_add_name = no_number,
    .recorder_reason = no_text,
};

/* The name of the first function that it lacks, or NULL: all of them were taken. */
static const char *take(struct nrg_py_library *to, void *handle)
{
#define TAKE(result, name, arguments)                                                              \
    to->name = (result(*) arguments)(intptr_t)dlsym(handle, "nrg_" #name);                         \
    if (!to->name)                                                                                 \
        return "nrg_" #name;
    NRG_PY_FUNCTIONS(TAKE)
#undef TAKE
    return NULL;
}

static void note_place(const char *path, struct nrg_py_library *to)
{
    Dl_info info;
    if (dladdr((void *)(intptr_t)to->version, &info) && info.dli_fname)
        path = info.dli_fname;
    snprintf(to->path, sizeof to->path, "%s", path);
}

/* NULL, or what is wrong with a library whose functions were taken or not, in buf. */
static const char *unfit(const struct nrg_py_library *found, const char *path, const char *lacks,
                         char *buf, size_t size)
{
    if (lacks)
        snprintf(buf, size, "%.3800s has no %s: it is of another version than this package", path,
                 lacks);
    else if (strcmp(found->version(), NRG_VERSION) != 0)
        snprintf(buf, size,
                 "%.3800s is of nrg %.32s, this package of " NRG_VERSION
                 ": install both from one wheel or package",
                 path, found->version());
    else
        return NULL;
    return buf;
}

static int try_one(const char *path, int flags)
{
    struct nrg_py_library found = nrg_py;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (!handle) {
        const char *why = dlerror();
        if (!nrg_py.lacking) /* says more than that the next place has none */
            snprintf(nrg_py.reason, sizeof nrg_py.reason, "%s", why ? why : path);
        return 0;
    }
    const char *lacks = take(&found, handle);
    if (unfit(&found, path, lacks, nrg_py.reason, sizeof nrg_py.reason)) {
        nrg_py.lacking = 1;
        dlclose(handle);
        return 0;
    }
    note_place(path, &found);
    found.loaded = 1;
    found.reason[0] = '\0';
    nrg_py = found;
    return 1;
}

/* Places relative to this module; the last one comes from meson's directories. */
static int try_beside(void)
{
    static const char *const places[] = {"", "../../src/", NRG_PY_LIBRARY_PLACE "/"};
    char path[sizeof nrg_py.path];
    Dl_info info;
    if (!dladdr(&nrg_py, &info) || !info.dli_fname)
        return 0;
    const char *slash = strrchr(info.dli_fname, '/');
    int folder = slash ? (int)(slash - info.dli_fname) : 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, sizeof path, "%.*s%s%s" LIBRARY, folder, info.dli_fname,
                         slash ? "/" : "./", places[i]);
        if (n < (int)sizeof path && try_one(path, 0))
            return 1;
    }
    return 0;
}

void nrg_py_load(void)
{
    const char *given = secure_getenv("NRG_LIBRARY");
    if (nrg_py.loaded)
        return;
    if (given && *given) {
        try_one(given, 0);
        return;
    }
    if (!try_one(LIBRARY, RTLD_NOLOAD) && !try_beside())
        try_one(LIBRARY, 0);
}
