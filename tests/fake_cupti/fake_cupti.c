/* See fake_cupti.h. Declared against inject/cupti_api.h, which a test compares with NVIDIA's own.
 */
#include "fake_cupti.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inject/cupti_api.h"

#define KINDS        64
#define RECORD_BYTES 208

struct record {
    int64_t complete_ns; /* CLOCK_MONOTONIC */
    union {
        uint32_t kind;
        struct nrg_cupti_kernel kernel;
        struct nrg_cupti_copy copy;
        struct nrg_cupti_fill fill;
        struct nrg_cupti_call call;
        struct nrg_cupti_sync sync;
        uint8_t bytes[RECORD_BYTES];
    };
};

static struct {
    pthread_mutex_t lock;
    void (*request)(uint8_t **, size_t *, size_t *);
    void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t);
    uint64_t (*clock)(void);
    bool enabled[KINDS], system_threads, running;
    struct record *records;
    size_t n, cap, dropped, n_buffers, n_kernels;
    uint32_t period_ms;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_odd(const char *word)
{
    const char *words = getenv("FAKE_CUPTI");
    return words && strstr(words, word);
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* From CLOCK_MONOTONIC to the clock of the records. */
static uint64_t to_record_time(int64_t t_ns)
{
    int64_t now = read_clock(CLOCK_MONOTONIC);
    int64_t theirs = fake.clock ? (int64_t)fake.clock() : read_clock(CLOCK_REALTIME);
    return (uint64_t)(t_ns + (fake.clock ? 0 : theirs - now));
}

int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
    *version = is_odd("old") ? 12 : 130001;
    return 0;
}

int cuptiGetTimestamp(uint64_t *ns);
int cuptiGetTimestamp(uint64_t *ns)
{
    *ns = to_record_time(read_clock(CLOCK_MONOTONIC));
    return 0;
}

int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t))
{
    fake.request = request;
    fake.complete = complete;
    return 0;
}

int cuptiActivityEnable(int kind);
int cuptiActivityEnable(int kind)
{
    if (is_odd("taken"))
        return 39; /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    if (kind < 0 || kind >= KINDS || (kind == NRG_CUPTI_SYNC && is_odd("old")))
        return 1;
    fake.enabled[kind] = true;
    return 0;
}

int cuptiSetThreadIdType(int type);
int cuptiSetThreadIdType(int type)
{
    fake.system_threads = type == 1;
    return 0;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void));
int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
    if (is_odd("old"))
        return 2; /* not supported */
    fake.clock = clock;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    pthread_mutex_lock(&fake.lock);
    *dropped = fake.dropped;
    fake.dropped = 0;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + RECORD_BYTES : buffer;
    if (next + RECORD_BYTES > buffer + valid)
        return NRG_CUPTI_ERROR_MAX_LIMIT;
    *record = next;
    return 0;
}

static int by_end(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    return x->complete_ns > y->complete_ns ? -1 : x->complete_ns < y->complete_ns;
}

/* Takes the complete records out; the caller owns them. */
static struct record *take_complete(bool all, size_t *n)
{
    int64_t now = read_clock(CLOCK_MONOTONIC);
    size_t kept = 0;
    *n = 0;
    pthread_mutex_lock(&fake.lock);
    struct record *taken = malloc((fake.n + 1) * sizeof *taken);
    for (size_t i = 0; i < fake.n; i++)
        if (all || fake.records[i].complete_ns <= now)
            taken[(*n)++] = fake.records[i];
        else
            fake.records[kept++] = fake.records[i];
    fake.n = kept;
    pthread_mutex_unlock(&fake.lock);
    if (is_odd("late"))
        qsort(taken, *n, sizeof *taken, by_end);
    return taken;
}

/* One at a time: a forced flush ends when nothing is on its way any more. */
static void hand_over(bool all)
{
    static pthread_mutex_t flushing = PTHREAD_MUTEX_INITIALIZER;
    size_t n, at = 0;
    pthread_mutex_lock(&flushing);
    struct record *taken = take_complete(all, &n);
    while (at < n) {
        uint8_t *buffer = NULL;
        size_t size = 0, most = 0, filled = 0;
        bool refused = (is_odd("lossy") && fake.n_buffers++ % 3 == 1) || (is_odd("unended") && all);
        if (!refused)
            fake.request(&buffer, &size, &most);
        for (; at < n && filled + RECORD_BYTES <= size; at++) {
            memcpy(buffer + filled, taken[at].bytes, RECORD_BYTES);
            filled += RECORD_BYTES;
        }
        if (!buffer) {
            pthread_mutex_lock(&fake.lock);
            fake.dropped += n - at;
            pthread_mutex_unlock(&fake.lock);
            at = n;
        }
        if (buffer)
            fake.complete(NULL, 0, buffer, size, filled);
    }
    free(taken);
    pthread_mutex_unlock(&flushing);
}

int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityFlushAll(uint32_t flag)
{
    hand_over(flag != 0);
    return 0;
}

static void *flush_now_and_then(void *arg)
{
    (void)arg;
    for (;;) {
        usleep(fake.period_ms * 1000);
        hand_over(false);
    }
    return NULL;
}

int cuptiActivityFlushPeriod(uint32_t ms);
int cuptiActivityFlushPeriod(uint32_t ms)
{
    pthread_t thread;
    if (is_odd("old"))
        return 2;
    fake.period_ms = ms;
    if (!fake.running && ms)
        fake.running = !pthread_create(&thread, NULL, flush_now_and_then, NULL);
    return 0;
}

static void add_record(const struct record *record)
{
    if (!fake.request || !fake.enabled[record->kind])
        return;
    pthread_mutex_lock(&fake.lock);
    if (fake.n == fake.cap) {
        fake.cap = fake.cap ? fake.cap * 2 : 1024;
        fake.records = realloc(fake.records, fake.cap * sizeof *fake.records);
    }
    fake.records[fake.n++] = *record;
    pthread_mutex_unlock(&fake.lock);
}

static void add_call(uint32_t kind, uint32_t cbid, uint32_t correlation, int64_t start_ns,
                     int64_t end_ns)
{
    struct record r = {.complete_ns = end_ns};
    r.call = (struct nrg_cupti_call){.kind = kind,
                                     .cbid = cbid,
                                     .start = to_record_time(start_ns),
                                     .end = to_record_time(end_ns),
                                     .process = (uint32_t)getpid(),
                                     .thread = fake.system_threads ? (uint32_t)gettid()
                                                                   : (uint32_t)pthread_self(),
                                     .correlation = correlation};
    add_record(&r);
}

/* As CUPTI has it: inside of the call, and of the context that it is for. */
static void add_sync(uint32_t type, uint32_t correlation, uint32_t context, int64_t start_ns,
                     int64_t end_ns)
{
    struct record r = {.complete_ns = end_ns};
    r.sync = (struct nrg_cupti_sync){.kind = NRG_CUPTI_SYNC,
                                     .type = type,
                                     .start = to_record_time(start_ns),
                                     .end = to_record_time(end_ns),
                                     .correlation = correlation,
                                     .context = context,
                                     .stream = UINT32_MAX};
    add_record(&r);
}

fake_cupti_call_function fake_cupti_call;
void fake_cupti_call(enum fake_call call, uint32_t correlation, uint32_t context, int64_t start_ns,
                     int64_t end_ns)
{
    static const struct {
        uint32_t cbid, sync;
    } known[] = {[FAKE_LAUNCHES] = {211, 0},
                 [FAKE_WAITS] = {131, 3},
                 [FAKE_COPIES] = {31, 4},
                 [FAKE_ASKS] = {138, 1},
                 [FAKE_TELLS_GPU] = {147, 2}};
    if (call == FAKE_WAITS)
        add_call(NRG_CUPTI_DRIVER, 126, correlation, start_ns + 500, end_ns - 500);
    if (known[call].sync)
        add_sync(known[call].sync, correlation, context, start_ns + 700, end_ns - 700);
    add_call(NRG_CUPTI_RUNTIME, known[call].cbid, correlation, start_ns, end_ns);
}

fake_cupti_work_function fake_cupti_work;
void fake_cupti_work(const struct fake_kernel *w)
{
    struct record r = {.complete_ns = w->end_ns};
    bool timeless = is_odd("timeless") && fake.n_kernels++ % 10 == 9;
    uint64_t start = timeless ? 0 : to_record_time(w->start_ns);
    uint64_t end = timeless ? 0 : to_record_time(w->end_ns);
    if (w->kind == NRG_CUPTI_KERNEL)
        r.kernel = (struct nrg_cupti_kernel){.kind = w->kind,
                                             .start = start,
                                             .end = end,
                                             .device = w->device,
                                             .context = w->context,
                                             .stream = w->stream,
                                             .correlation = w->correlation,
                                             .name = w->name};
    else if (w->kind == NRG_CUPTI_MEMCPY)
        r.copy = (struct nrg_cupti_copy){.kind = w->kind,
                                         .copy_kind = 1,
                                         .from = 1,
                                         .to = 3,
                                         .start = start,
                                         .end = end,
                                         .device = w->device,
                                         .context = w->context,
                                         .stream = w->stream,
                                         .correlation = w->correlation};
    else
        r.fill = (struct nrg_cupti_fill){.kind = w->kind,
                                         .start = start,
                                         .end = end,
                                         .device = w->device,
                                         .context = w->context,
                                         .stream = w->stream,
                                         .correlation = w->correlation};
    add_record(&r);
}
