/*
 * A CUPTI that costs next to nothing, and a program's thread that calls CUDA: what bench/gpu_trace
 * measures records with. The thread makes a call (two times by the registered clock, a record) and
 * the kernel that it launches (a record), as CUPTI does it on the program's own threads, in batches
 * every 10 ms; full buffers are handed over there, too. The same with no profiler: a buffer that is
 * written over and over, and CUPTI's own clock. The difference is what nrg costs the program.
 *
 * run(RECORDS, PER_SECOND) prints "NS NS NS": CPU time of a record with nrg and without, and that
 * of the process when all is done.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inject/cupti_api.h"

#define RECORD_BYTES 208
#define BATCHES      100 /* a second */

static struct {
    void (*request)(uint8_t **, size_t *, size_t *);
    void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t);
    uint64_t (*clock)(void);
    uint8_t *buffer;
    size_t size, filled, dropped;
    uint32_t thread;
} cupti;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t own_clock(void)
{
    return read_clock(CLOCK_REALTIME);
}

int cuptiGetVersion(uint32_t *version)
{
    *version = 130001;
    return 0;
}

int cuptiGetTimestamp(uint64_t *ns)
{
    *ns = cupti.clock();
    return 0;
}

int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t))
{
    cupti.request = request;
    cupti.complete = complete;
    return 0;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
    cupti.clock = clock;
    return 0;
}

int cuptiActivityEnable(int kind)
{
    (void)kind;
    return 0;
}

int cuptiActivityFlushPeriod(uint32_t ms)
{
    (void)ms;
    return 0;
}

int cuptiSetThreadIdType(int type)
{
    (void)type;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped = cupti.dropped;
    cupti.dropped = 0;
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + RECORD_BYTES : buffer;
    if (next + RECORD_BYTES > buffer + valid)
        return NRG_CUPTI_ERROR_MAX_LIMIT;
    *record = next;
    return 0;
}

static void hand_over(void)
{
    if (cupti.buffer && cupti.complete)
        cupti.complete(NULL, 0, cupti.buffer, cupti.size, cupti.filled);
    if (cupti.request)
        cupti.buffer = NULL;
    cupti.filled = 0;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    if (flag)
        hand_over();
    return 0;
}

static void *room(void)
{
    size_t most;
    if (cupti.buffer && cupti.filled + RECORD_BYTES > cupti.size)
        hand_over();
    if (!cupti.buffer && cupti.request)
        cupti.request(&cupti.buffer, &cupti.size, &most);
    if (!cupti.buffer) {
        cupti.dropped++;
        return NULL;
    }
    cupti.filled += RECORD_BYTES;
    return cupti.buffer + cupti.filled - RECORD_BYTES;
}

static void launch(uint32_t correlation, uint64_t *gpu_free)
{
    static const char *const names[] = {"_Z4gemmv", "_Z7softmaxv", "_Z4reluv", "_Z9layernormv"};
    uint64_t start = cupti.clock();
    uint64_t end = cupti.clock();
    struct nrg_cupti_call *call = room();
    if (call)
        *call = (struct nrg_cupti_call){.kind = NRG_CUPTI_RUNTIME,
                                        .cbid = 211,
                                        .start = start,
                                        .end = end,
                                        .thread = cupti.thread,
                                        .correlation = correlation};
    struct nrg_cupti_kernel *kernel = room();
    *gpu_free = *gpu_free > end ? *gpu_free : end;
    if (kernel)
        *kernel = (struct nrg_cupti_kernel){.kind = NRG_CUPTI_KERNEL,
                                            .start = *gpu_free,
                                            .end = *gpu_free + 500,
                                            .context = 1,
                                            .stream = 7,
                                            .correlation = correlation,
                                            .name = names[correlation % 4]};
    *gpu_free += 501;
}

/* CPU time of this thread in ns. */
static double use(long records, long per_second)
{
    long batch = per_second / BATCHES / 2;
    uint64_t gpu_free = 0, next = read_clock(CLOCK_MONOTONIC), cpu = 0;
    for (long done = 0; done < records / 2;) {
        uint64_t from = read_clock(CLOCK_THREAD_CPUTIME_ID);
        for (long i = 0; i < batch; i++)
            launch((uint32_t)++done, &gpu_free);
        cpu += read_clock(CLOCK_THREAD_CPUTIME_ID) - from;
        next += 1000000000u / BATCHES;
        struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return (double)cpu;
}

int run(long records, long per_second)
{
    static uint8_t own[1 << 20];
    memset(own, 1, sizeof own);
    cupti.thread = (uint32_t)getpid();
    cupti.clock = own_clock;
    cupti.buffer = own;
    cupti.size = sizeof own;
    double without = use(records, per_second);
    cupti.buffer = NULL;
    cupti.filled = 0;
    void *library = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
    int (*init)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (!init || init() != 1 || !cupti.request)
        return 1;
    double with = use(records, per_second);
    printf("%.1f %.1f %.0f\n", with / (double)records, without / (double)records,
           (double)read_clock(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
