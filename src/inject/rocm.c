/*
 * GPU work of ROCm (inject.h), by rocprofiler-sdk, which is loaded when HSA or HIP begins. It takes
 * the tables of functions that these hand over, so roctx.c passes them on, and calls back with
 * records of kernels, copies and calls of HIP on a thread of its own. A thread of ours empties its
 * buffer ten times a second and marks. Names of kernels come when their code is loaded. Its clock
 * is tied to ours by asking for both.
 *
 * GPUs are numbered by their PCI addresses, as AMD's management library has them (sensors/amd). A
 * queue of HSA is a stream. A child by fork has neither threads nor a usable GPU: it does nothing.
 */
#include "inject/rocm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inject/follow.h"
#include "inject/inject.h"
#include "inject/rocm_api.h"
#include "inject/waits.h"
#include "nrg/nrg.h"

#define BUFFER_BYTES ((size_t)4 << 20)
#define FLUSH_NS     100000000
#define MOST_AGENTS  64
#define MOST_QUEUES  128
#define MOST_KERNELS (1u << 16)
#define MOST_CALLS   2048
#define COPIES       1000 /* numbers of streams from here on are those of copies */

struct agent {
    uint64_t id, place;
};

static struct {
    struct nrg_rocm api;
    uint32_t version;
    struct nrg_rocm_id context, buffer;
    pthread_mutex_t lock; /* of all below */
    struct nrg_gpu_activity activity;
    struct agent agents[MOST_AGENTS]; /* GPUs by their place on the PCI bus */
    uint64_t queues[MOST_QUEUES];
    size_t n_agents, n_queues;
    uint32_t kernels[MOST_KERNELS]; /* names by their ids */
    uint8_t meanings[MOST_CALLS];   /* of calls of HIP */
    uint64_t n_dropped;
    pthread_t thread;
    _Atomic bool ending;
} rocm = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int gpu_of(uint32_t device)
{
    return (int)device;
}

/* n_agents: no GPU. */
static size_t find_agent(uint64_t id)
{
    size_t i = 0;
    while (i < rocm.n_agents && rocm.agents[i].id != id)
        i++;
    return i;
}

static uint32_t stream_of(uint64_t queue)
{
    size_t i = 0;
    while (i < rocm.n_queues && rocm.queues[i] != queue)
        i++;
    if (i == rocm.n_queues && i < MOST_QUEUES)
        rocm.queues[rocm.n_queues++] = queue;
    return (uint32_t)i + 1;
}

static void take_kernel(const struct nrg_rocm_kernel *k)
{
    size_t agent = find_agent(k->agent);
    uint32_t name = k->kernel < MOST_KERNELS ? rocm.kernels[k->kernel] : 0;
    nrg_activity_add(
        &rocm.activity, &(struct nrg_activity_place){(uint32_t)agent, 0, stream_of(k->queue)},
        k->start, k->end, (uint32_t)k->correlation, name ? name : nrg_inject_kernel_name(NULL));
}

static void take_copy(const struct nrg_rocm_copy *c)
{
    enum { H_TO_D = 1, D_TO_H = 2, D_TO_D = 8, P_TO_P = 10, DEVICE = 3 }; /* CUPTI's */
    size_t to = find_agent(c->to_agent), from = find_agent(c->from_agent);
    size_t agent = to < rocm.n_agents ? to : from;
    unsigned kind = c->operation == NRG_ROCM_HOST_TO_DEVICE   ? H_TO_D
                    : c->operation == NRG_ROCM_DEVICE_TO_HOST ? D_TO_H
                    : to == from                              ? D_TO_D
                                                              : P_TO_P;
    if (agent < rocm.n_agents)
        nrg_activity_add(&rocm.activity,
                         &(struct nrg_activity_place){(uint32_t)agent, 0, COPIES + c->operation},
                         c->start, c->end, (uint32_t)c->correlation,
                         nrg_inject_copy_name(kind, from < rocm.n_agents ? DEVICE : 0,
                                              to < rocm.n_agents ? DEVICE : 0));
}

static void take_call(const struct nrg_rocm_call *c)
{
    const uint64_t *at = c->rest + (rocm.version >= NRG_ROCM_ANCESTORS);
    unsigned meaning =
        c->operation >= 0 && c->operation < MOST_CALLS ? rocm.meanings[c->operation] : 0;
    nrg_activity_call(&rocm.activity, (uint32_t)at[2], at[0], at[1], (uint32_t)c->correlation,
                      meaning);
}

/* Called by rocprofiler, on a thread of its own. */
static void take_records(struct nrg_rocm_id context, struct nrg_rocm_id buffer,
                         struct nrg_rocm_header **headers, size_t n, void *data, uint64_t dropped)
{
    (void)context;
    (void)buffer;
    (void)data;
    pthread_mutex_lock(&rocm.lock);
    rocm.n_dropped += dropped;
    for (size_t i = 0; headers && i < n; i++) {
        const struct nrg_rocm_header *h = headers[i];
        if (!h || h->category != NRG_ROCM_TRACING || !h->payload)
            continue;
        rocm.activity.n_records++;
        if (h->kind == NRG_ROCM_KERNEL)
            take_kernel(h->payload);
        else if (h->kind == NRG_ROCM_COPY)
            take_copy(h->payload);
        else if (h->kind == NRG_ROCM_HIP_CALL)
            take_call(h->payload);
    }
    pthread_mutex_unlock(&rocm.lock);
}

/* Called on the thread that loads code: a kernel has got a number. */
static void on_code(struct nrg_rocm_callback record, uint64_t *user, void *data)
{
    struct nrg_rocm_event event;
    char name[1024];
    (void)user;
    (void)data;
    memcpy(&event, record.rest + (rocm.version >= NRG_ROCM_ANCESTORS), sizeof event);
    const struct nrg_rocm_symbol *symbol = event.payload;
    if (event.kind != NRG_ROCM_CODE || event.operation != NRG_ROCM_KERNEL_NAME ||
        event.phase != NRG_ROCM_LOADED || !symbol || !symbol->name ||
        symbol->kernel >= MOST_KERNELS)
        return;
    size_t len = strnlen(symbol->name, sizeof name - 1);
    memcpy(name, symbol->name, len);
    len -= len > 3 && !memcmp(name + len - 3, ".kd", 3) ? 3 : 0; /* of the descriptor */
    name[len] = '\0';
    uint32_t number = nrg_inject_new_kernel_name(name);
    pthread_mutex_lock(&rocm.lock);
    rocm.kernels[symbol->kernel] = number;
    pthread_mutex_unlock(&rocm.lock);
}

static void tie_clocks(void)
{
    uint64_t theirs, before = nrg_inject_now_ns();
    if (rocm.api.get_timestamp(&theirs) != NRG_ROCM_OK)
        return;
    uint64_t after = nrg_inject_now_ns();
    rocm.activity.offset_ns = (int64_t)(before + (after - before) / 2) - (int64_t)theirs;
}

static void mark_until(int64_t before_ns)
{
    pthread_mutex_lock(&rocm.lock);
    tie_clocks();
    nrg_follow_mark(&rocm.activity, before_ns);
    pthread_mutex_unlock(&rocm.lock);
}

static void *follow(void *arg)
{
    const struct timespec rest = {0, FLUSH_NS};
    (void)arg;
    while (!atomic_load(&rocm.ending)) {
        nanosleep(&rest, NULL);
        rocm.api.flush_buffer(rocm.buffer);
        mark_until((int64_t)nrg_inject_now_ns() - NRG_ACTIVITY_HOLD_NS);
    }
    rocm.api.flush_buffer(rocm.buffer);
    mark_until(INT64_MAX);
    nrg_follow_say(&rocm.activity, rocm.n_dropped, "rocprofiler-sdk");
    return NULL;
}

static void end_trace(void)
{
    if (!atomic_exchange(&nrg_inject_tracing, 0))
        return;
    atomic_store(&rocm.ending, true);
    nrg_follow_join(rocm.thread);
}

static void end_at_finalize(void *data)
{
    (void)data;
    end_trace();
}

static void end_in_child(void)
{
    atomic_store(&nrg_inject_tracing, 0);
}

static int by_place(const void *x, const void *y)
{
    const struct agent *a = x, *b = y;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int take_agents(int version, const void **agents, size_t n, void *data)
{
    (void)version;
    (void)data;
    for (size_t i = 0; i < n && rocm.n_agents < MOST_AGENTS; i++) {
        const struct nrg_rocm_agent *a = agents[i];
        if (a->size >= sizeof *a && a->type == NRG_ROCM_GPU)
            rocm.agents[rocm.n_agents++] =
                (struct agent){a->id, (uint64_t)a->domain << 32 | a->location};
    }
    qsort(rocm.agents, rocm.n_agents, sizeof *rocm.agents, by_place);
    return 0;
}

static int take_operation(int kind, int32_t operation, void *data)
{
    const char *name = NULL;
    (void)data;
    if (operation >= 0 && operation < MOST_CALLS &&
        !rocm.api.query_buffer_tracing_kind_operation_name(kind, operation, &name, NULL) && name)
        rocm.meanings[operation] = (uint8_t)nrg_inject_hip_meaning(name);
    return 0;
}

/* 0, or the status of what was refused. */
static int configure_services(void)
{
    static const int kinds[] = {NRG_ROCM_HIP_CALL, NRG_ROCM_COPY, NRG_ROCM_KERNEL};
    struct nrg_rocm *r = &rocm.api;
    int rc = r->create_context(&rocm.context);
    if (!rc)
        rc = r->create_buffer(rocm.context, BUFFER_BYTES, BUFFER_BYTES / 2, NRG_ROCM_DISCARD,
                              take_records, NULL, &rocm.buffer);
    for (size_t i = 0; !rc && i < sizeof kinds / sizeof *kinds; i++)
        rc = r->configure_buffer_tracing_service(rocm.context, kinds[i], NULL, 0, rocm.buffer);
    if (!rc)
        rc = r->configure_callback_tracing_service(rocm.context, NRG_ROCM_CODE, NULL, 0, on_code,
                                                   NULL);
    return rc ? rc : r->start_context(rocm.context);
}

/* Called by rocprofiler once it takes us for a tool. -1: it forgets us. */
static int initialize(void (*finalize)(void), void *data)
{
    (void)finalize;
    (void)data;
    if (nrg_activity_init(&rocm.activity, gpu_of))
        return -1;
    nrg_track_intern(NULL, "gpu-0"); /* from now on the recorder keeps what threads have open */
    rocm.api.query_available_agents(NRG_ROCM_AGENTS_V0, take_agents, sizeof(struct nrg_rocm_agent),
                                    NULL);
    rocm.api.iterate_buffer_tracing_kind_operations(NRG_ROCM_HIP_CALL, take_operation, NULL);
    tie_clocks();
    int rc = configure_services();
    if (rc)
        nrg_inject_say("GPU trace: rocprofiler-sdk refused (status %d): the GPU's kernels are not "
                       "seen",
                       rc);
    if (rc || !nrg_follow_start(&rocm.thread, follow)) {
        nrg_activity_release(&rocm.activity);
        return -1;
    }
    atomic_store(&nrg_inject_tracing, 1);
    pthread_atfork(NULL, NULL, end_in_child);
    atexit(end_trace);
    nrg_inject_say("GPU trace: by rocprofiler-sdk %u.%u.%u", rocm.version / 10000,
                   rocm.version / 100 % 100, rocm.version % 100);
    return 0;
}

static struct nrg_rocm_tool *configure(uint32_t version, const char *text, uint32_t priority,
                                       void *client)
{
    static struct nrg_rocm_tool tool = {sizeof tool, initialize, end_at_finalize, NULL};
    (void)text;
    (void)priority;
    (void)client;
    rocm.version = version;
    if (version >= NRG_ROCM_OLDEST)
        return &tool;
    nrg_inject_say("GPU trace: this rocprofiler-sdk is too old (before 0.6): the GPU's kernels are "
                   "not seen");
    return NULL;
}

static void *open_library(void)
{
    static const char *const names[] = {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0",
                                        "librocprofiler-sdk.so",
                                        "/opt/rocm/lib/librocprofiler-sdk.so"};
    const char *chosen = secure_getenv("NRG_ROCPROFILER_LIBRARY");
    void *library = chosen && *chosen ? dlopen(chosen, RTLD_LAZY | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !library && !chosen && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    return library;
}

/* The first function that the library does not have; NULL: it has all. */
static const char *load_functions(void *library)
{
#define LOAD(name, arguments)                                                                      \
    if (!(rocm.api.name = (int(*) arguments)(intptr_t)dlsym(library, "rocprofiler_" #name)))       \
        return #name;
    NRG_ROCM_FUNCTIONS(LOAD)
#undef LOAD
    return NULL;
}

static void *begin_trace(void)
{
    void *library = open_library();
    if (!library) {
        nrg_inject_say("GPU trace: librocprofiler-sdk.so was not found (ROCm 6.4 and later have "
                       "it): the GPU's kernels are not seen");
        return NULL;
    }
    const char *lacks = load_functions(library);
    if (lacks) {
        nrg_inject_say("GPU trace: this rocprofiler-sdk is too old, it has no %s: the GPU's "
                       "kernels are not seen",
                       lacks);
        return library;
    }
    int rc = rocm.api.force_configure(configure);
    if (rc)
        nrg_inject_say("GPU trace: rocprofiler-sdk refused (status %d%s): the GPU's kernels are "
                       "not seen",
                       rc, rc == NRG_ROCM_LOCKED ? ", another profiler was first" : "");
    return library;
}

void *nrg_rocm_begin(void)
{
    static void *library;
    static _Atomic bool begun;
    if (!atomic_exchange(&begun, true))
        library = begin_trace();
    return library;
}
