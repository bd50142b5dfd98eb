/*
 * See fake_roctx.h: a librocprofiler-sdk that calls tools back as the real one's documents say. Its
 * declarations are its own, so that a mistake in nrg's shows. FAKE_ROCPROFILER has words:
 *
 *   version=N   10000 major + 100 minor (default 10201; before 10000 correlation ids of calls and
 *               callbacks have two numbers instead of three)
 *   locked      another tool was first        refuse    kernels can't be traced
 *   drop        two records of each buffer are dropped and said
 *
 * Its clock is CLOCK_MONOTONIC plus 1000 s. There are a CPU (agent 7) and two GPUs: agent 9 at PCI
 * address 0000:83, agent 8 at 0000:03. fake_hip_* are what a program of HIP calls.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake_roctx.h"

enum { SHIFT_S = 1000, MOST = 4096, HIP_LAUNCH = 3, HIP_SYNC = 4, HIP_COPY = 5 };

typedef struct {
    uint64_t handle;
} id_t_;

typedef struct {
    uint32_t category, kind;
    void *payload;
} header_t;

typedef struct { /* of work on the GPU: correlation ids have two numbers in all versions */
    uint64_t size;
    uint32_t kind, operation;
    uint64_t internal, external, thread, start, end;
    uint64_t more[12]; /* a kernel: size, agent, queue, kernel, …; a copy: to, from, bytes, … */
} work_t;

typedef struct {
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    uint64_t more[6]; /* internal, external, [ancestor,] start, end, thread */
} call_t;

typedef struct {
    uint64_t size, id;
    uint32_t type, cores, simds, banks, caches, links, core_base, simd_base, waves, lds, gds, gws;
    uint32_t front, xcc, cus, arrays, shaders, per_engine, per_array, per_cu, slots, target;
    uint16_t vendor, device;
    uint32_t location, domain;
    char rest[400];
} agent_t;

typedef struct {
    uint64_t context, thread, internal, external, ancestor;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
} new_event_t;

typedef struct {
    uint64_t context, thread, internal, external;
    uint32_t kind;
    int32_t operation;
    uint32_t phase;
    void *payload;
} old_event_t;

typedef void take_t(id_t_, id_t_, header_t **, size_t, void *, uint64_t);

static struct {
    pthread_mutex_t lock;
    unsigned version, kinds;
    bool configured, started, code;
    take_t *take;
    void *on_code;
    header_t headers[MOST];
    size_t n;
    uint64_t correlation;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .version = 10201};

static bool is_told(const char *word)
{
    const char *words = getenv("FAKE_ROCPROFILER");
    return words && strstr(words, word);
}

int rocprofiler_get_timestamp(uint64_t *ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *ns = (uint64_t)(t.tv_sec + SHIFT_S) * 1000000000u + (uint64_t)t.tv_nsec;
    return 0;
}

typedef struct {
    size_t size;
    int (*initialize)(void (*)(void), void *);
    void (*finalize)(void *);
    void *data;
} tool_t;

int rocprofiler_force_configure(tool_t *(*configure)(uint32_t, const char *, uint32_t, void *))
{
    uint64_t client[4] = {32, 0, 1, 0};
    const char *version = getenv("FAKE_ROCPROFILER");
    version = version ? strstr(version, "version=") : NULL;
    if (version)
        fake.version = (unsigned)strtoul(version + 8, NULL, 10);
    if (is_told("locked") || fake.configured)
        return 16;
    fake.configured = true;
    tool_t *tool = configure(fake.version, "fake", 0, client);
    if (tool && tool->size == sizeof *tool)
        tool->initialize(NULL, tool->data);
    return 0;
}

int rocprofiler_create_context(id_t_ *context)
{
    context->handle = 41;
    return 0;
}

int rocprofiler_start_context(id_t_ context)
{
    fake.started = context.handle == 41;
    return fake.started ? 0 : 2;
}

int rocprofiler_create_buffer(id_t_ context, size_t size, size_t watermark, int policy,
                              take_t *take, void *data, id_t_ *buffer)
{
    (void)data;
    fake.take = take;
    buffer->handle = 42;
    return context.handle == 41 && size >= watermark && policy == 1 ? 0 : 1;
}

int rocprofiler_configure_buffer_tracing_service(id_t_ context, int kind, const int32_t *operations,
                                                 size_t n, id_t_ buffer)
{
    (void)operations;
    (void)n;
    if (is_told("refuse") && kind == 11)
        return 28;
    fake.kinds |= 1u << kind;
    return context.handle == 41 && buffer.handle == 42 ? 0 : 1;
}

int rocprofiler_configure_callback_tracing_service(id_t_ context, int kind,
                                                   const int32_t *operations, size_t n,
                                                   void *on_code, void *data)
{
    (void)operations;
    (void)n;
    (void)data;
    fake.on_code = on_code;
    fake.code = kind == 10;
    return context.handle == 41 ? 0 : 1;
}

int rocprofiler_query_available_agents(int version, int (*each)(int, const void **, size_t, void *),
                                       size_t size, void *data)
{
    static agent_t agents[3] = {
        {.size = sizeof *agents, .id = 7, .type = 1},
        {.size = sizeof *agents, .id = 9, .type = 2, .location = 0x8300},
        {.size = sizeof *agents, .id = 8, .type = 2, .location = 0x0300},
    };
    const void *list[] = {&agents[0], &agents[1], &agents[2]};
    return version == 1 && size <= sizeof *agents ? each(version, list, 3, data) : 17;
}

int rocprofiler_iterate_buffer_tracing_kind_operations(int kind, int (*each)(int, int32_t, void *),
                                                       void *data)
{
    for (int32_t i = 0; kind == 5 && i < 8; i++)
        each(kind, i, data);
    return 0;
}

int rocprofiler_query_buffer_tracing_kind_operation_name(int kind, int32_t operation,
                                                         const char **name, uint64_t *len)
{
    static const char *const names[8] = {"hipInit",
                                         "hipMalloc",
                                         "hipFree",
                                         "hipLaunchKernel",
                                         "hipDeviceSynchronize",
                                         "hipMemcpyAsync",
                                         "hipEventQuery",
                                         "hipEventRecord"};
    (void)kind;
    *name = names[operation];
    if (len)
        *len = strlen(*name);
    return 0;
}

struct batch {
    header_t *list[MOST], copies[MOST];
    size_t n;
    uint64_t dropped;
};

static void *deliver(void *arg)
{
    struct batch *b = arg;
    fake.take((id_t_){41}, (id_t_){42}, b->list, b->n, NULL, b->dropped);
    return NULL;
}

/* Hands all records over, on a thread of its own, and waits. */
int rocprofiler_flush_buffer(id_t_ buffer)
{
    struct batch *b = calloc(1, sizeof *b);
    pthread_t thread;
    pthread_mutex_lock(&fake.lock);
    b->n = buffer.handle == 42 ? fake.n : 0;
    memcpy(b->copies, fake.headers, b->n * sizeof *b->copies);
    fake.n = 0;
    pthread_mutex_unlock(&fake.lock);
    for (size_t i = 0; i < b->n; i++)
        b->list[i] = &b->copies[i];
    if (is_told("drop") && b->n > 2) {
        b->n -= 2;
        b->dropped = 2;
    }
    if (b->n && !pthread_create(&thread, NULL, deliver, b))
        pthread_join(thread, NULL);
    for (size_t i = 0; i < b->n; i++)
        free(b->copies[i].payload);
    free(b);
    return 0;
}

static void add(uint32_t kind, const void *record, size_t size)
{
    void *kept = malloc(size);
    memcpy(kept, record, size);
    pthread_mutex_lock(&fake.lock);
    bool taken = fake.started && fake.kinds & 1u << kind && fake.n < MOST;
    if (taken)
        fake.headers[fake.n++] = (header_t){1, kind, kept};
    pthread_mutex_unlock(&fake.lock);
    if (!taken)
        free(kept);
}

int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
                              uint64_t n_tables)
{
    (void)instance;
    (void)tables;
    (void)n_tables;
    fprintf(stderr, "rocprofiler has %s %llu\n", name, (unsigned long long)version);
    return 0;
}

static void add_call(int32_t operation, uint64_t correlation, uint64_t start, uint64_t end)
{
    call_t call = {.size = 64, .kind = 5, .operation = operation, .more = {correlation}};
    uint64_t thread = (uint64_t)syscall(SYS_gettid);
    size_t at = fake.version >= 10000 ? 3 : 2;
    call.size = fake.version >= 10000 ? 64 : 56;
    call.more[at] = start;
    call.more[at + 1] = end;
    call.more[at + 2] = thread;
    add(5, &call, sizeof call);
}

/* As when a module with a kernel is loaded; the text does not stay. */
void fake_hip_load(uint64_t kernel, const char *text)
{
    char name[256];
    struct {
        uint64_t size, kernel, object;
        const char *name;
    } symbol = {32, kernel, 1, name};
    snprintf(name, sizeof name, "%s.kd", text);
    if (fake.code && fake.version >= 10000)
        ((void (*)(new_event_t, uint64_t *, void *))(intptr_t)fake.on_code)(
            (new_event_t){41, 1, 0, 0, 0, 10, 2, 1, &symbol}, &symbol.object, NULL);
    else if (fake.code)
        ((void (*)(old_event_t, uint64_t *, void *))(intptr_t)fake.on_code)(
            (old_event_t){41, 1, 0, 0, 10, 2, 1, &symbol}, &symbol.object, NULL);
    memset(name, '?', sizeof name);
}

static uint64_t launch(int32_t operation, uint64_t *start)
{
    uint64_t end;
    rocprofiler_get_timestamp(start);
    usleep(100);
    rocprofiler_get_timestamp(&end);
    uint64_t correlation = ++fake.correlation;
    add_call(operation, correlation, *start, end);
    return correlation;
}

/* Prints when it ran, in CLOCK_MONOTONIC. */
static void print_work(const char *what, const work_t *w)
{
    uint64_t shift = SHIFT_S * UINT64_C(1000000000);
    printf("%s %llu %llu\n", what, (unsigned long long)(w->start - shift),
           (unsigned long long)(w->end - shift));
}

void fake_hip_launch(uint64_t agent, uint64_t kernel, uint64_t late_us, uint64_t us)
{
    uint64_t start, correlation = launch(HIP_LAUNCH, &start);
    work_t w = {176, 11, 2, correlation, 0, (uint64_t)syscall(SYS_gettid), 0, 0, {0}};
    w.start = start + late_us * 1000;
    w.end = w.start + us * 1000;
    w.more[0] = 64;
    w.more[1] = agent;
    w.more[2] = 500 + agent;
    w.more[3] = kernel;
    add(11, &w, sizeof w);
    print_work("kernel", &w);
}

void fake_hip_copy(uint64_t to, uint64_t from, uint64_t us)
{
    uint64_t start, correlation = launch(HIP_COPY, &start);
    work_t w = {96, 10, 0, correlation, 0, (uint64_t)syscall(SYS_gettid), 0, 0, {0}};
    w.operation = from == 7 ? 2 : to == 7 ? 3 : 4;
    w.start = start + 200000;
    w.end = w.start + us * 1000;
    w.more[0] = to;
    w.more[1] = from;
    add(10, &w, sizeof w);
    print_work("copy", &w);
}

void fake_hip_synchronize(uint64_t us)
{
    uint64_t start, end;
    rocprofiler_get_timestamp(&start);
    usleep((useconds_t)us);
    rocprofiler_get_timestamp(&end);
    add_call(HIP_SYNC, ++fake.correlation, start, end);
}
