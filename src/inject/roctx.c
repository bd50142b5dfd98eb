/*
 * Ranges and marks of ROCm's roctx (inject.h). librocprofiler-register.so, through which HSA, HIP
 * and roctx hand their tables of functions to a profiler, loads the library that
 * ROCPROFILER_REGISTER_LIBRARY names and calls its rocprofiler_set_api_table for each of them. The
 * table of roctx gets our functions; those of others are for rocprofiler-sdk (rocm.c). The older
 * libroctx64.so hands over nothing: it is looked for when another table comes, which is when HIP
 * begins.
 *
 * rocprofiler itself would have got the tables without us. Where the program has a tool of it (a
 * visible rocprofiler_configure, which is its own rule, or the library itself) they are passed on,
 * so that such a program profiles itself as before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "inject/ranges.h"
#include "inject/rocm.h"
#include "inject/roctx_api.h"
#include "nrg/nrg.h"

#define EXPORTED  __attribute__((visibility("default")))
#define MOST_IDS  1024
#define NOT_OPEN  (-1) /* roctx's word for a pop without a push */
#define SET_TABLE "rocprofiler_set_api_table"

typedef int set_table_function(const char *name, uint64_t version, uint64_t instance, void **tables,
                               uint64_t n_tables);

/* Which of our ranges are which of libroctx64's, which gives them their numbers. */
static struct {
    pthread_mutex_t lock;
    uint64_t theirs[MOST_IDS], ours[MOST_IDS];
} ids = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Apart from NVTX's: a program may use both. */
static struct nrg_nvtx_domain *domain;
static struct nrg_roctx_table *hooked;

static void mark(const char *message)
{
    struct nrg_nvtx_event e = nrg_nvtx_ascii(message);
    nrg_range_mark(domain, &e);
}

static int push(const char *message)
{
    struct nrg_nvtx_event e = nrg_nvtx_ascii(message);
    int level = nrg_range_push(domain, &e);
    return level < 0 ? NOT_OPEN : level;
}

static int pop(void)
{
    int level = nrg_range_pop(domain);
    return level < 0 ? NOT_OPEN : level;
}

static uint64_t start(const char *message)
{
    struct nrg_nvtx_event e = nrg_nvtx_ascii(message);
    return nrg_range_start(domain, &e);
}

static void keep_id(uint64_t theirs, uint64_t ours)
{
    pthread_mutex_lock(&ids.lock);
    size_t i = 0;
    while (i < MOST_IDS && ids.ours[i])
        i++;
    if (i < MOST_IDS) {
        ids.theirs[i] = theirs;
        ids.ours[i] = ours;
    }
    pthread_mutex_unlock(&ids.lock);
    if (i == MOST_IDS)
        nrg_range_end(ours); /* its end could not be told */
}

static uint64_t take_id(uint64_t theirs)
{
    uint64_t ours = 0;
    pthread_mutex_lock(&ids.lock);
    for (size_t i = 0; !ours && i < MOST_IDS; i++)
        if (ids.ours[i] && ids.theirs[i] == theirs) {
            ours = ids.ours[i];
            ids.ours[i] = 0;
        }
    pthread_mutex_unlock(&ids.lock);
    return ours;
}

static int on_call(uint32_t in_domain, uint32_t call, void *arg)
{
    const struct nrg_roctx_data *data = arg;
    if (in_domain != NRG_ROCTX_DOMAIN || !data)
        return 0;
    switch (call) {
    case NRG_ROCTX_MARK:
        mark(data->message);
        break;
    case NRG_ROCTX_PUSH:
        push(data->message);
        break;
    case NRG_ROCTX_POP:
        pop();
        break;
    case NRG_ROCTX_START:
        keep_id(data->id, start(data->message));
        break;
    case NRG_ROCTX_STOP:
        nrg_range_end(take_id(data->id));
        break;
    default:
        break;
    }
    return 0;
}

/* libroctx64.so, if the process has it: a profiler of its own stays. */
static void hook_old_roctx(void)
{
    static const char *const names[] = {"libroctx64.so.4", "libroctx64.so.1", "libroctx64.so"};
    void (*set)(nrg_roctx_callback *) = NULL;
    for (size_t i = 0; !set && i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
        if (library)
            set = (void (*)(nrg_roctx_callback *))(intptr_t)dlsym(library,
                                                                  "roctxRegisterTracerCallback");
    }
    if (set)
        set(on_call);
}

/* Once: when it comes again, another profiler has put its functions over ours. */
static void hook_table(struct nrg_roctx_table *table)
{
    if (!table || table->size < sizeof *table || table == hooked)
        return;
    hooked = table;
    table->mark = mark;
    table->push = push;
    table->pop = pop;
    table->start = start;
    table->stop = nrg_range_end;
}

/* What takes the table in our place: `library`, or what rocprofiler-register would have called
 * without us; NULL: nothing. */
static set_table_function *find_rocprofiler(void *library)
{
    static const char *const names[] = {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0",
                                        "librocprofiler-sdk.so"};
    int flags = RTLD_LAZY | RTLD_GLOBAL;
    if (!dlsym(RTLD_DEFAULT, "rocprofiler_configure"))
        flags |= RTLD_NOLOAD;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], flags);
    return library ? (set_table_function *)(intptr_t)dlsym(library, SET_TABLE) : NULL;
}

/* Called by rocprofiler-register for each library of ROCm that has begun. 0: all is well. */
EXPORTED set_table_function rocprofiler_set_api_table;
EXPORTED int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance,
                                       void **tables, uint64_t n_tables)
{
    int saved = errno, rc = 0;
    void *library = NULL;
    bool is_roctx = name && !strcmp(name, "roctx");
    if (nrg_recording_active()) {
        domain = nrg_nvtx_domain("roctx");
        if (is_roctx && tables && n_tables)
            hook_table(tables[0]);
        else if (!is_roctx)
            hook_old_roctx();
        library = is_roctx ? NULL : nrg_rocm_begin();
    }
    set_table_function *rocprofiler = find_rocprofiler(library);
    if (rocprofiler)
        rc = rocprofiler(name, version, instance, tables, n_tables);
    errno = saved;
    return rc;
}
