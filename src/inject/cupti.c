/*
 * CUPTI's activity records (inject.h). CUPTI asks for buffers and gives them back full, on threads
 * of its own or the program's; both only take from and add to a list here. A thread of ours reads
 * them, so the program's threads pay for nothing but CUPTI itself. At the end of the process CUPTI
 * is asked for what it has left.
 *
 * Buffers are bounded: when 64 of them wait, CUPTI gets none, drops records and counts them. A
 * child by fork has neither the thread nor a usable CUDA: it does nothing here.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "inject/activity.h"
#include "inject/cupti_load.h"
#include "inject/follow.h"
#include "inject/inject.h"
#include "nrg/nrg.h"

#define EXPORTED     __attribute__((visibility("default")))
#define BUFFER_BYTES (1u << 20)
#define BUFFER_ALIGN 8
#define MOST_BUFFERS 64
#define FLUSH_MS     100

struct buffer {
    struct buffer *next;
    size_t valid;
    _Alignas(BUFFER_ALIGN) uint8_t bytes[BUFFER_BYTES];
};

static struct {
    struct nrg_cupti cupti;
    struct nrg_gpu_activity activity;
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct buffer *free, *full, **full_end;
    size_t n_buffers;
    uint64_t n_dropped;
    pthread_t thread;
    bool ending;
} trace = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .ready = PTHREAD_COND_INITIALIZER, .full_end = &trace.full};

static _Atomic bool begun;

static struct buffer *buffer_of(uint8_t *bytes)
{
    return (struct buffer *)(bytes - offsetof(struct buffer, bytes));
}

static void request_buffer(uint8_t **bytes, size_t *size, size_t *most_records)
{
    pthread_mutex_lock(&trace.lock);
    struct buffer *b = trace.free;
    if (b)
        trace.free = b->next;
    else if (trace.n_buffers < MOST_BUFFERS && (b = malloc(sizeof *b)))
        trace.n_buffers++;
    pthread_mutex_unlock(&trace.lock);
    *bytes = b ? b->bytes : NULL;
    *size = b ? BUFFER_BYTES : 0;
    *most_records = 0; /* as many as fit */
}

/* Records that CUPTI had no buffer for, since it was last asked. */
static size_t newly_dropped(void *context, uint32_t stream)
{
    size_t dropped = 0;
    int rc = trace.cupti.ActivityGetNumDroppedRecords(context, stream, &dropped);
    return rc == NRG_CUPTI_OK ? dropped : 0;
}

static void take_buffer(void *context, uint32_t stream, uint8_t *bytes, size_t size, size_t valid)
{
    (void)size;
    if (!bytes)
        return;
    struct buffer *b = buffer_of(bytes);
    b->next = NULL;
    b->valid = valid < BUFFER_BYTES ? valid : BUFFER_BYTES;
    size_t dropped = newly_dropped(context, stream);
    pthread_mutex_lock(&trace.lock);
    trace.n_dropped += dropped;
    *trace.full_end = b;
    trace.full_end = &b->next;
    pthread_cond_signal(&trace.ready);
    pthread_mutex_unlock(&trace.lock);
}

static void read_buffer(struct buffer *b)
{
    void *record = NULL;
    while (b->valid &&
           trace.cupti.ActivityGetNextRecord(b->bytes, b->valid, &record) == NRG_CUPTI_OK)
        nrg_activity_take(&trace.activity, record);
}

/* The buffers that wait, all of them. */
static struct buffer *wait_for_buffers(bool *ending)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += FLUSH_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&trace.lock);
    if (!trace.full && !trace.ending)
        pthread_cond_timedwait(&trace.ready, &trace.lock, &until);
    struct buffer *list = trace.full;
    trace.full = NULL;
    trace.full_end = &trace.full;
    *ending = trace.ending;
    pthread_mutex_unlock(&trace.lock);
    return list;
}

static void give_back(struct buffer *b)
{
    pthread_mutex_lock(&trace.lock);
    b->next = trace.free;
    trace.free = b;
    pthread_mutex_unlock(&trace.lock);
}

/* CUPTI's own clock, where it did not take ours. */
static void tie_clocks(void)
{
    uint64_t theirs;
    if (trace.cupti.ActivityRegisterTimestampCallback)
        return;
    uint64_t before = nrg_inject_now_ns();
    if (trace.cupti.GetTimestamp(&theirs) != NRG_CUPTI_OK)
        return;
    uint64_t after = nrg_inject_now_ns();
    trace.activity.offset_ns = (int64_t)(before + (after - before) / 2) - (int64_t)theirs;
}

static void *follow(void *arg)
{
    bool ending = false;
    (void)arg;
    while (!ending) {
        if (!trace.cupti.ActivityFlushPeriod)
            trace.cupti.ActivityFlushAll(0);
        struct buffer *next, *b = wait_for_buffers(&ending);
        tie_clocks();
        for (; b; b = next) {
            next = b->next;
            read_buffer(b);
            give_back(b);
        }
        nrg_follow_mark(&trace.activity,
                        ending ? INT64_MAX : (int64_t)nrg_inject_now_ns() - NRG_ACTIVITY_HOLD_NS);
    }
    nrg_follow_say(&trace.activity, trace.n_dropped, "CUPTI");
    return NULL;
}

static void end_trace(void)
{
    if (!atomic_exchange(&nrg_inject_tracing, 0))
        return;
    trace.cupti.ActivityFlushAll(NRG_CUPTI_FLUSH_FORCED);
    size_t dropped = newly_dropped(NULL, 0); /* after the last buffer there was none to say it */
    pthread_mutex_lock(&trace.lock);
    trace.n_dropped += dropped;
    trace.ending = true;
    pthread_cond_signal(&trace.ready);
    pthread_mutex_unlock(&trace.lock);
    nrg_follow_join(trace.thread);
}

static void end_in_child(void)
{
    atomic_store(&nrg_inject_tracing, 0);
}

/* They say more about calls that wait, which are known without; not of calls that only ask. */
static void enable_syncs(void)
{
    if (trace.cupti.ActivityEnableAllSyncRecords)
        trace.cupti.ActivityEnableAllSyncRecords(0);
    trace.cupti.ActivityEnable(NRG_CUPTI_SYNC);
}

/* The first kind that CUPTI refuses, or 0. */
static int enable_kinds(int *code)
{
    static const int kinds[] = {NRG_CUPTI_RUNTIME, NRG_CUPTI_DRIVER,  NRG_CUPTI_KERNEL,
                                NRG_CUPTI_MEMCPY,  NRG_CUPTI_MEMCPY2, NRG_CUPTI_MEMSET};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((*code = trace.cupti.ActivityEnable(kinds[i])) != NRG_CUPTI_OK)
            return kinds[i];
    return 0;
}

static bool begin_activity(void)
{
    struct nrg_cupti *c = &trace.cupti;
    int code = 0, kind = 0;
    if (c->SetThreadIdType)
        c->SetThreadIdType(NRG_CUPTI_THREAD_ID_SYSTEM);
    if (c->ActivityRegisterTimestampCallback &&
        c->ActivityRegisterTimestampCallback(nrg_inject_now_ns) != NRG_CUPTI_OK)
        c->ActivityRegisterTimestampCallback = NULL;
    code = c->ActivityRegisterCallbacks(request_buffer, take_buffer);
    if (!code)
        kind = enable_kinds(&code);
    if (code) {
        nrg_inject_say("GPU trace: CUPTI refused (%s %d, error %d): another profiler may be using "
                       "it, or it needs a permission; the GPU's kernels are not seen",
                       kind ? "records of kind" : "callbacks,", kind, code);
        return false;
    }
    enable_syncs();
    if (c->ActivityFlushPeriod && c->ActivityFlushPeriod(FLUSH_MS) != NRG_CUPTI_OK)
        c->ActivityFlushPeriod = NULL;
    return true;
}

/* The order: the thread comes last, so that whatever fails before it leaves nothing running. */
static void begin_trace(void)
{
    const char *lacks;
    uint32_t version = 0;
    if (!nrg_cupti_load(&trace.cupti, &lacks)) {
        nrg_inject_say(lacks ? "GPU trace: this CUPTI is too old, it has no %s: the GPU's kernels "
                               "are not seen"
                             : "GPU trace: CUPTI was not found%s (it is part of the CUDA toolkit, "
                               "and of the Python package nvidia-cuda-cupti): the GPU's kernels "
                               "are not seen",
                       lacks ? lacks : "");
        return;
    }
    trace.cupti.GetVersion(&version);
    if (nrg_activity_init(&trace.activity, nrg_inject_gpu))
        return;
    nrg_track_intern(NULL, "gpu-0"); /* from now on the recorder keeps what threads have open */
    tie_clocks();
    if (!begin_activity() || !nrg_follow_start(&trace.thread, follow)) {
        nrg_activity_release(&trace.activity);
        return;
    }
    atomic_store(&nrg_inject_tracing, 1);
    pthread_atfork(NULL, NULL, end_in_child);
    atexit(end_trace);
    nrg_inject_say("GPU trace: by CUPTI %u", version);
}

/* Called by the CUDA driver when it is initialised. 1: all is well, as far as it is concerned. */
EXPORTED int InitializeInjection(void);
EXPORTED int InitializeInjection(void)
{
    int saved = errno;
    if (!atomic_exchange(&begun, true) && nrg_recording_active())
        begin_trace();
    errno = saved;
    return 1;
}
