/*
 * See mark/client.h, and nrg.h for the contract with programs. Depends on nothing but libc: it
 * runs inside other people's programs.
 *
 * What makes it cheap: one load tells whether a recorder listens; a thread keeps its position in
 * the ring buffer in its own memory and reads the recorder's tail only when the ring seems full;
 * names given as text are found by their address and then compared, because the text there may
 * change.
 *
 * CPU time is worth having at the edges of spans: it tells work from waiting. Its clock costs up to
 * 40 times a read of the TSC (a system call, and on a virtual machine 770 ns). So it is read at the
 * first edge after every 2 ms or so, and where a numbered span (a step) begins, outside of the
 * span. Every edge then has a reading at most that long before it, spans that last longer have one
 * at both, and a program of short spans pays less than half a permille.
 *
 * A begin is written only if its end and those of all open spans will have room too. So ends are
 * never dropped, dropped spans are dropped whole, and nesting holds whatever the recorder does.
 *
 * The process state below is the one mutable global of the library: a marked program has nothing
 * to hand in with each call.
 */
#include "mark/client.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <nrg/nrg.h>

#include "mark/internal.h"

#define MAX_DEPTH        1024 /* deeper spans are not recorded */
#define CACHED           64
#define LAUNCHED_RECORDS 3u                /* of a launched span */
#define RETRY_A_SLOT     1024              /* spans between two looks for a free one */
#define CPU_GAP          UINT64_C(4000000) /* of ns, or of a TSC at 2 to 4 GHz */
#define CPU_STEP_GAP     (CPU_GAP / 16)
#define LIKELY(x)        __builtin_expect(!!(x), 1)
#define UNLIKELY(x)      __builtin_expect(!!(x), 0)
#define NEVER_INLINED    __attribute__((noinline, cold))
#define RELAXED(x)       atomic_load_explicit(&(x), memory_order_relaxed)
#define INITIAL_EXEC     __attribute__((tls_model("initial-exec")))

struct cached_name {
    const char *given; /* address of the text in the program */
    const char *kind;
    struct nrg_known_name name;
};

struct thread_spans {
    struct nrg_ring_record *ring; /* NULL: no slot was free */
    struct nrg_ring_slot *slot;
    uint64_t head, tail; /* tail as it was seen last */
    uint64_t cpu_clock;  /* when the CPU time was read last */
    uint32_t generation, clock;
    unsigned depth;                   /* spans open */
    unsigned recorded;                /* of these, written to the ring */
    unsigned slotless;                /* spans since the last look for a slot */
    uint64_t written[MAX_DEPTH / 64]; /* bit per depth: the begin is in the ring */
    uint64_t unnamed[MAX_DEPTH / 64]; /* of those that are not: for want of a name */
    struct nrg_ring_header *segment;
    struct cached_name cache[CACHED];
};

static struct {
    /* 0: no recorder. Each recorder gets a new number, so that threads notice it. */
    _Atomic uint32_t generation;
    struct nrg_ring_header *_Atomic segment; /* once set, it stays mapped */
    uint32_t last_generation;
    pthread_mutex_t lock; /* names, and changes of all others */
    struct nrg_ring_names names;
    struct nrg_place place; /* this process, as slots describe it */
    pthread_key_t key;
    bool prepared;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Small, because a library that is loaded late must find room for it. */
static INITIAL_EXEC __thread struct thread_spans *mine;
static INITIAL_EXEC __thread bool mine_ended; /* the thread is past its own clean-up */

/* Apart, as is add_name: what has a structure on the stack pays for a canary. */
static __attribute__((noinline)) uint64_t read_monotonic_clock(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t read_clock(const struct thread_spans *t)
{
#if defined(__x86_64__)
    if (LIKELY(t->clock == NRG_RING_TSC))
        return __rdtsc();
#endif
    return read_monotonic_clock();
}

static inline bool has_room(struct thread_spans *t, uint64_t records)
{
    if (UNLIKELY(!t->ring))
        return false;
    if (LIKELY(t->head + records - t->tail <= NRG_RING_RECORDS))
        return true;
    t->tail = atomic_load_explicit(&t->slot->tail, memory_order_acquire);
    return t->head + records - t->tail <= NRG_RING_RECORDS;
}

static inline void put_record(struct thread_spans *t, uint64_t clock, uint32_t op, uint32_t name)
{
    t->ring[t->head++ & (NRG_RING_RECORDS - 1)] = (struct nrg_ring_record){clock, op, name};
}

static inline void publish_head(struct thread_spans *t)
{
    atomic_store_explicit(&t->slot->head, t->head, memory_order_release);
}

static inline void put_event(struct thread_spans *t, uint32_t op, uint32_t name)
{
    put_record(t, read_clock(t), op, name);
    publish_head(t);
}

static inline void put_with_value(struct thread_spans *t, uint64_t clock, uint32_t op,
                                  uint32_t name, int64_t value, uint32_t track)
{
    put_record(t, clock, op | NRG_RING_HAS_VALUE, name);
    put_record(t, (uint64_t)value, NRG_RING_VALUE, track);
    publish_head(t);
}

static NEVER_INLINED void count_dropped(struct thread_spans *t)
{
    if (t->slot)
        atomic_fetch_add_explicit(&t->slot->dropped, 1, memory_order_release);
    else
        atomic_fetch_add_explicit(&t->segment->unplaced, 1, memory_order_relaxed);
}

/* First the reason: a recorder that sees the count must not take it for want of room. */
static NEVER_INLINED void count_too_deep(struct thread_spans *t)
{
    if (!RELAXED(t->segment->listening))
        return;
    if (t->slot)
        atomic_fetch_add_explicit(&t->slot->too_deep, 1, memory_order_release);
    count_dropped(t);
}

/* The number of a name is 0 when there was no room for it among the names. */
static NEVER_INLINED void count_nameless(struct thread_spans *t)
{
    if (!RELAXED(t->segment->listening))
        return;
    if (t->slot)
        atomic_fetch_add_explicit(&t->slot->nameless, 1, memory_order_release);
    count_dropped(t);
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts))
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static NEVER_INLINED void put_cpu_time(struct thread_spans *t)
{
    t->cpu_clock = read_clock(t);
    if (has_room(t, 2 + t->recorded))
        put_with_value(t, t->cpu_clock, NRG_RING_CPU, 0, (int64_t)thread_cpu_ns(), 0);
}

static inline bool is_cpu_due(const struct thread_spans *t, uint64_t clock, uint64_t gap)
{
    return UNLIKELY(clock - t->cpu_clock >= gap);
}

static void look_for_slot(struct thread_spans *t)
{
    t->slotless = 0;
    t->slot = nrg_place_claim(&client.place, t->segment);
    if (!t->slot)
        return;
    size_t number = (size_t)(t->slot - nrg_place_slots(t->segment));
    t->ring = (struct nrg_ring_record *)((char *)t->segment + NRG_RING_RINGS_AT +
                                         number * NRG_RING_RING_BYTES);
    t->head = t->tail = atomic_load_explicit(&t->slot->tail, memory_order_acquire);
    put_cpu_time(t);
    nrg_place_announce(t->segment, t->slot);
}

/* A new recorder, or the first call of this thread, or of this process after fork. */
static void join_recorder(struct thread_spans *t, uint32_t generation)
{
    struct nrg_ring_header *segment = RELAXED(client.segment);
    if (t->segment != segment) {
        memset(t, 0, sizeof *t);
        t->segment = segment;
        t->clock = segment->clock;
    }
    t->generation = generation;
    t->depth = t->recorded = 0;
    if (!t->slot)
        look_for_slot(t);
}

static NEVER_INLINED struct thread_spans *join_thread(void)
{
    int saved = errno, cancel;
    struct thread_spans *t = mine;
    if (mine_ended)
        return NULL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (!t && (t = calloc(1, sizeof *t))) {
        if (pthread_setspecific(client.key, t)) {
            free(t);
            t = NULL;
        }
        mine = t;
    }
    pthread_mutex_lock(&client.lock);
    uint32_t generation = RELAXED(client.generation);
    if (t && generation)
        join_recorder(t, generation);
    pthread_mutex_unlock(&client.lock);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    return generation ? t : NULL;
}

static inline struct thread_spans *current_thread(void)
{
    uint32_t generation = atomic_load_explicit(&client.generation, memory_order_acquire);
    if (!generation)
        return NULL;
    struct thread_spans *t = mine;
    return LIKELY(t && t->generation == generation) ? t : join_thread();
}

static inline bool is_listening(const struct thread_spans *t)
{
    return RELAXED(t->segment->listening) != 0;
}

/* Looks for a slot again now and then, between spans: threads that end free theirs. */
static NEVER_INLINED void try_slot_again(struct thread_spans *t)
{
    int saved = errno;
    if (t->depth == 0 && ++t->slotless >= RETRY_A_SLOT) {
        pthread_mutex_lock(&client.lock);
        look_for_slot(t);
        pthread_mutex_unlock(&client.lock);
    }
    errno = saved;
}

static inline void begin_span(struct thread_spans *t, uint32_t name, bool numbered, int64_t number)
{
    if (UNLIKELY(!t->ring))
        try_slot_again(t);
    unsigned level = t->depth++;
    if (UNLIKELY(level >= MAX_DEPTH)) {
        count_too_deep(t);
        return;
    }
    uint64_t bit = UINT64_C(1) << level % 64;
    t->written[level / 64] &= ~bit;
    if (UNLIKELY(!name)) {
        t->unnamed[level / 64] |= bit;
        count_nameless(t);
        return;
    }
    if (UNLIKELY(!is_listening(t))) {
        t->unnamed[level / 64] &= ~bit;
        return;
    }
    uint64_t clock = read_clock(t);
    if (is_cpu_due(t, clock, numbered ? CPU_STEP_GAP : CPU_GAP)) {
        put_cpu_time(t);
        clock = read_clock(t);
    }
    if (UNLIKELY(!has_room(t, t->recorded + 3u))) {
        t->unnamed[level / 64] &= ~bit;
        count_dropped(t);
        return;
    }
    t->written[level / 64] |= bit;
    t->recorded++;
    if (numbered) {
        put_with_value(t, clock, NRG_RING_BEGIN, name, number, 0);
        return;
    }
    put_record(t, clock, NRG_RING_BEGIN, name);
    publish_head(t);
}

static inline bool is_written(const struct thread_spans *t, unsigned level)
{
    return level < MAX_DEPTH && t->written[level / 64] >> level % 64 & 1;
}

static inline void end_span(struct thread_spans *t)
{
    if (UNLIKELY(!t->depth))
        return;
    unsigned level = --t->depth;
    if (UNLIKELY(!is_written(t, level)))
        return;
    t->recorded--;
    uint64_t clock = read_clock(t);
    put_record(t, clock, NRG_RING_END, 0);
    publish_head(t);
    if (is_cpu_due(t, clock, CPU_GAP))
        put_cpu_time(t);
}

/* Runs when a thread ends, and ends the spans that it left open. */
static void on_thread_end(void *arg)
{
    struct thread_spans *t = arg;
    mine = NULL;
    mine_ended = true;
    if (t->slot) {
        while (t->depth)
            end_span(t);
        put_cpu_time(t);
        atomic_store_explicit(&t->slot->phase, NRG_RING_CLOSED, memory_order_release);
    }
    free(t);
}

static void before_fork(void)
{
    pthread_mutex_lock(&client.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&client.lock);
}

/* The ring and the open spans are the parent's; names stay valid. */
static void after_fork_in_child(void)
{
    client.place = (struct nrg_place){0};
    if (mine) {
        mine->slot = NULL;
        mine->ring = NULL;
        mine->generation = 0;
    }
    pthread_mutex_unlock(&client.lock);
}

/* Once per process, before the first name or segment. Caller holds the lock. */
static int prepare_process(void)
{
    if (client.prepared)
        return 0;
    int rc = pthread_key_create(&client.key, on_thread_end);
    if (!rc) {
        rc = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        if (rc)
            pthread_key_delete(client.key);
    }
    client.prepared = !rc;
    return -rc;
}

static uint32_t intern_name(const char *text, const char *kind, const char *detail,
                            struct nrg_known_name *known)
{
    int saved = errno;
    pthread_mutex_lock(&client.lock);
    uint32_t number =
        prepare_process() ? 0 : nrg_ring_names_number(&client.names, text, kind, detail, known);
    pthread_mutex_unlock(&client.lock);
    errno = saved;
    return number;
}

static inline bool is_cached(const struct cached_name *c, const char *text, const char *kind)
{
    return c->given == text && c->kind == kind && !strncmp(text, c->name.text, c->name.bytes) &&
           (c->name.cut || !text[c->name.bytes]);
}

static NEVER_INLINED uint32_t add_name(struct cached_name *c, const char *text, const char *kind)
{
    struct nrg_known_name known;
    uint32_t number = intern_name(text, kind, NULL, &known);
    if (number)
        *c = (struct cached_name){text, kind, known};
    return number;
}

/* `kind` is a literal of this file, so addresses can be compared. */
static inline uint32_t number_of(struct thread_spans *t, const char *text, const char *kind)
{
    if (UNLIKELY(!text))
        return 0;
    struct cached_name *c = &t->cache[((uintptr_t)text ^ (uintptr_t)text >> 6) % CACHED];
    if (LIKELY(is_cached(c, text, kind)))
        return c->name.number;
    return add_name(c, text, kind);
}

static const char span_kind[] = "span", mark_kind[] = "mark", count_kind[] = "counter";

int nrg_recording_active(void)
{
    if (!atomic_load_explicit(&client.generation, memory_order_acquire))
        return 0;
    return RELAXED(RELAXED(client.segment)->listening) != 0;
}

uint32_t nrg_name_intern(const char *text, const char *kind, const char *detail)
{
    struct nrg_known_name known;
    return text ? intern_name(text, kind ? kind : span_kind, detail, &known) : 0;
}

void nrg_span_begin(const char *name)
{
    struct thread_spans *t = current_thread();
    if (t)
        begin_span(t, number_of(t, name, span_kind), false, 0);
}

void nrg_span_begin_name(uint32_t name)
{
    struct thread_spans *t = current_thread();
    if (t)
        begin_span(t, name, false, 0);
}

void nrg_span_begin_numbered(uint32_t name, int64_t number)
{
    struct thread_spans *t = current_thread();
    if (t)
        begin_span(t, name, true, number);
}

void nrg_span_end(void)
{
    struct thread_spans *t = current_thread();
    if (t)
        end_span(t);
}

unsigned nrg_span_depth(void)
{
    struct thread_spans *t = current_thread();
    return t ? t->depth : 0;
}

void nrg_span_unwind(unsigned depth)
{
    struct thread_spans *t = current_thread();
    while (t && t->depth > depth)
        end_span(t);
}

/* For marks, counts and past spans, which have no end that would need room. */
static inline bool may_put_records(struct thread_spans *t, uint32_t name, unsigned records)
{
    if (UNLIKELY(!name)) {
        count_nameless(t);
        return false;
    }
    if (!is_listening(t))
        return false;
    if (LIKELY(has_room(t, t->recorded + records)))
        return true;
    count_dropped(t);
    return false;
}

static inline bool may_put(struct thread_spans *t, uint32_t name)
{
    return may_put_records(t, name, 2);
}

/* What is counted in a span that was dropped is missing for the same reason. */
static NEVER_INLINED void count_as_its_span(struct thread_spans *t)
{
    unsigned level = t->depth - 1;
    if (level >= MAX_DEPTH)
        count_too_deep(t);
    else if (t->unnamed[level / 64] >> level % 64 & 1)
        count_nameless(t);
    else if (is_listening(t))
        count_dropped(t);
}

/* A count belongs to the innermost span. Where that was dropped, the span around it must not have
 * it: both are missing together. */
static inline bool may_count(struct thread_spans *t, uint32_t name)
{
    if (LIKELY(!name || !t->depth || is_written(t, t->depth - 1)))
        return may_put(t, name);
    count_as_its_span(t);
    return false;
}

static uint32_t track_number(const char *track, const char *domain)
{
    struct nrg_known_name known;
    const char *place = track ? track : domain;
    return place ? intern_name(place, NRG_RING_TRACK_KIND, domain, &known) : 0;
}

uint32_t nrg_track_intern(const char *track, const char *domain)
{
    struct nrg_ring_header *segment = RELAXED(client.segment);
    if (segment)
        atomic_store_explicit(&segment->launches, 1, memory_order_relaxed);
    return track_number(track, domain);
}

void nrg_span_past(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                   int64_t end_ns)
{
    struct thread_spans *t = current_thread();
    if (!t || !may_put(t, name))
        return;
    uint32_t number = track_number(track, domain);
    if ((track || domain) && !number)
        count_nameless(t);
    else
        put_with_value(t, (uint64_t)begin_ns, NRG_RING_PAST, name, end_ns, number);
}

void nrg_span_past_launched(uint32_t name, uint32_t track, int64_t begin_ns, int64_t end_ns,
                            int32_t tid, int64_t launch_ns)
{
    struct thread_spans *t = current_thread();
    if (!t || !may_put_records(t, track ? name : 0, LAUNCHED_RECORDS))
        return;
    put_record(t, (uint64_t)launch_ns, NRG_RING_LAUNCH, (uint32_t)tid);
    put_with_value(t, (uint64_t)begin_ns, NRG_RING_PAST, name, end_ns, track);
}

unsigned nrg_span_room(void)
{
    struct thread_spans *t = current_thread();
    if (!t || !is_listening(t))
        return UINT_MAX;
    if (!t->ring)
        return 0;
    t->tail = atomic_load_explicit(&t->slot->tail, memory_order_acquire);
    uint64_t taken = t->head + t->recorded - t->tail;
    return taken < NRG_RING_RECORDS ? (unsigned)((NRG_RING_RECORDS - taken) / LAUNCHED_RECORDS) : 0;
}

void nrg_mark(const char *name)
{
    struct thread_spans *t = current_thread();
    uint32_t number = t ? number_of(t, name, mark_kind) : 0;
    if (t && may_put(t, number))
        put_event(t, NRG_RING_MARK, number);
}

void nrg_mark_name(uint32_t name)
{
    struct thread_spans *t = current_thread();
    if (t && may_put(t, name))
        put_event(t, NRG_RING_MARK, name);
}

void nrg_count_add(const char *name, int64_t amount)
{
    struct thread_spans *t = current_thread();
    uint32_t number = t ? number_of(t, name, count_kind) : 0;
    if (t && may_count(t, number))
        put_with_value(t, read_clock(t), NRG_RING_COUNT, number, amount, 0);
}

void nrg_count_add_name(uint32_t name, int64_t amount)
{
    struct thread_spans *t = current_thread();
    if (t && may_count(t, name))
        put_with_value(t, read_clock(t), NRG_RING_COUNT, name, amount, 0);
}

int nrg_span_client_attach(struct nrg_ring_header *segment)
{
    pthread_mutex_lock(&client.lock);
    int rc = nrg_recording_active() ? -EBUSY : prepare_process();
    if (!rc)
        rc = nrg_ring_names_move(&client.names, segment);
    if (!rc) {
        atomic_store_explicit(&client.segment, segment, memory_order_relaxed);
        atomic_store_explicit(&client.generation, ++client.last_generation, memory_order_release);
    }
    pthread_mutex_unlock(&client.lock);
    return rc;
}

void nrg_span_client_detach(void)
{
    pthread_mutex_lock(&client.lock);
    atomic_store_explicit(&client.generation, 0, memory_order_release);
    pthread_mutex_unlock(&client.lock);
}

/* Nobody else can: the recorder is older than what it would have to know. */
static void say_refused(void)
{
    static const char text[] = "nrg: the recorder is of another version of nrg than this program's "
                               "libnrg: its spans are not recorded\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
}

/* Before main where the program is linked with us, at import where it is Python. */
__attribute__((constructor)) static void attach_at_load(void)
{
    int saved = errno;
    const char *variable = secure_getenv(NRG_RING_VARIABLE);
    struct nrg_ring_header *segment = NULL;
    int rc = variable ? nrg_place_open(variable, &segment) : -ENOENT;
    if (!rc)
        nrg_span_client_attach(segment);
    else if (rc == -EPROTONOSUPPORT)
        say_refused();
    errno = saved;
}
