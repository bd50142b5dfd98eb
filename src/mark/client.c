/*
 * See span_client.h, and nrg.h for the contract with programs. Depends on nothing but libc: it
 * runs inside other people's programs.
 *
 * What makes it cheap: one load tells that nobody listens; a thread's place in its ring is in its
 * own memory, the recorder's tail is only looked at when the ring seems full; names given as text
 * are found by their address and then compared, because the text behind an address may change.
 *
 * A begin is written only if its end and those of all open spans will have room too. So ends are
 * never dropped, dropped spans are dropped whole, and nesting holds whatever the recorder does.
 *
 * The process state below is the one mutable global of the library: a marked program has nothing
 * to hand in with each call.
 */
#include "record/span_client.h"

#include <errno.h>
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

#include "record/span_names.h"
#include "record/span_place.h"

#define MAX_DEPTH     1024 /* deeper spans are not recorded */
#define CACHED        64
#define RETRY_A_SLOT  1024 /* spans between two looks for a free one */
#define LIKELY(x)     __builtin_expect(!!(x), 1)
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define NEVER_INLINED __attribute__((noinline, cold))
#define RELAXED(x)    atomic_load_explicit(&(x), memory_order_relaxed)
#define INITIAL_EXEC  __attribute__((tls_model("initial-exec")))

struct cached_name {
    const char *given; /* address of the text in the program */
    const char *kind;
    struct nrg_known_name name;
};

struct thread_spans {
    struct nrg_ring_record *ring; /* NULL: no slot was free */
    struct nrg_ring_slot *slot;
    uint64_t head, tail; /* tail as it was seen last */
    uint32_t generation, clock;
    unsigned depth;                   /* spans open */
    unsigned recorded;                /* of these, written to the ring */
    unsigned slotless;                /* spans since the last look for a slot */
    uint64_t written[MAX_DEPTH / 64]; /* bit per depth: the begin is in the ring */
    struct nrg_ring_header *segment;
    struct cached_name cache[CACHED];
};

static struct {
    /* 0: no recorder; another number for each, so that threads notice a new one. */
    _Atomic uint32_t generation;
    struct nrg_ring_header *_Atomic segment; /* once set, it stays mapped for good */
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

static inline uint64_t read_clock(const struct thread_spans *t)
{
#if defined(__x86_64__)
    if (LIKELY(t->clock == NRG_RING_TSC))
        return __rdtsc();
#endif
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
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

static inline void put(struct thread_spans *t, uint64_t clock, uint32_t op, uint32_t name)
{
    t->ring[t->head++ & (NRG_RING_RECORDS - 1)] = (struct nrg_ring_record){clock, op, name};
}

static inline void publish(struct thread_spans *t)
{
    atomic_store_explicit(&t->slot->head, t->head, memory_order_release);
}

static inline void put_event(struct thread_spans *t, uint32_t op, uint32_t name)
{
    put(t, read_clock(t), op, name);
    publish(t);
}

static inline void put_with_value(struct thread_spans *t, uint64_t clock, uint32_t op,
                                  uint32_t name, int64_t value, uint32_t track)
{
    put(t, clock, op | NRG_RING_HAS_VALUE, name);
    put(t, (uint64_t)value, NRG_RING_VALUE, track);
    publish(t);
}

static NEVER_INLINED void count_dropped(struct thread_spans *t)
{
    if (t->slot)
        atomic_fetch_add_explicit(&t->slot->dropped, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&t->segment->unplaced, 1, memory_order_relaxed);
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts))
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void put_cpu_time(struct thread_spans *t)
{
    if (has_room(t, 2 + t->recorded))
        put_with_value(t, read_clock(t), NRG_RING_CPU, 0, (int64_t)thread_cpu_ns(), 0);
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

static NEVER_INLINED struct thread_spans *join(void)
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

static inline struct thread_spans *here(void)
{
    uint32_t generation = atomic_load_explicit(&client.generation, memory_order_acquire);
    if (!generation)
        return NULL;
    struct thread_spans *t = mine;
    return LIKELY(t && t->generation == generation) ? t : join();
}

static inline bool listening(const struct thread_spans *t)
{
    return RELAXED(t->segment->listening) != 0;
}

/* Looks for a slot again now and then, between spans: those of threads that have ended come free.
 */
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

static inline void begin(struct thread_spans *t, uint32_t name, bool numbered, int64_t number)
{
    if (UNLIKELY(!t->ring))
        try_slot_again(t);
    unsigned level = t->depth++;
    if (UNLIKELY(level >= MAX_DEPTH)) {
        count_dropped(t);
        return;
    }
    uint64_t bit = UINT64_C(1) << level % 64;
    t->written[level / 64] &= ~bit;
    if (UNLIKELY(!name || !listening(t)))
        return;
    if (UNLIKELY(!has_room(t, t->recorded + 3u))) {
        count_dropped(t);
        return;
    }
    t->written[level / 64] |= bit;
    t->recorded++;
    if (numbered)
        put_with_value(t, read_clock(t), NRG_RING_BEGIN, name, number, 0);
    else
        put_event(t, NRG_RING_BEGIN, name);
}

static inline void end(struct thread_spans *t)
{
    if (UNLIKELY(!t->depth))
        return;
    unsigned level = --t->depth;
    if (UNLIKELY(level >= MAX_DEPTH || !(t->written[level / 64] >> level % 64 & 1)))
        return;
    t->recorded--;
    put_event(t, NRG_RING_END, 0);
}

static uint32_t intern(const char *text, const char *kind, const char *detail,
                       struct nrg_known_name *known)
{
    int saved = errno;
    uint32_t number = 0;
    pthread_mutex_lock(&client.lock);
    if (RELAXED(client.generation))
        number = nrg_ring_names_number(&client.names, RELAXED(client.segment), text, kind, detail,
                                       known);
    pthread_mutex_unlock(&client.lock);
    errno = saved;
    return number;
}

static inline bool is_cached(const struct cached_name *c, const char *text, const char *kind)
{
    return c->given == text && c->kind == kind && !strncmp(text, c->name.text, c->name.bytes) &&
           (c->name.cut || !text[c->name.bytes]);
}

/* `kind` is a literal of this file: its address tells it. */
static inline uint32_t number_of(struct thread_spans *t, const char *text, const char *kind)
{
    if (UNLIKELY(!text))
        return 0;
    struct cached_name *c = &t->cache[((uintptr_t)text ^ (uintptr_t)text >> 6) % CACHED];
    if (LIKELY(is_cached(c, text, kind)))
        return c->name.number;
    struct nrg_known_name known;
    uint32_t number = intern(text, kind, NULL, &known);
    if (number)
        *c = (struct cached_name){text, kind, known};
    return number;
}

static const char span_kind[] = "span", mark_kind[] = "mark", count_kind[] = "counter";

int nrg_recording_active(void)
{
    if (!atomic_load_explicit(&client.generation, memory_order_acquire))
        return 0;
    return RELAXED(RELAXED(client.segment)->listening) != 0;
}

uint32_t nrg_name(const char *text, const char *kind, const char *detail)
{
    struct nrg_known_name known;
    return text && RELAXED(client.generation)
               ? intern(text, kind ? kind : span_kind, detail, &known)
               : 0;
}

void nrg_span_begin(const char *name)
{
    struct thread_spans *t = here();
    if (t)
        begin(t, number_of(t, name, span_kind), false, 0);
}

void nrg_span_begin_name(uint32_t name)
{
    struct thread_spans *t = here();
    if (t)
        begin(t, name, false, 0);
}

void nrg_span_begin_numbered(uint32_t name, int64_t number)
{
    struct thread_spans *t = here();
    if (t)
        begin(t, name, true, number);
}

void nrg_span_end(void)
{
    struct thread_spans *t = here();
    if (t)
        end(t);
}

unsigned nrg_span_depth(void)
{
    struct thread_spans *t = here();
    return t ? t->depth : 0;
}

void nrg_span_unwind(unsigned depth)
{
    struct thread_spans *t = here();
    while (t && t->depth > depth)
        end(t);
}

/* Of marks, counts and past spans: what has no end to wait for. */
static inline bool may_put(struct thread_spans *t, uint32_t name)
{
    if (!name || !listening(t))
        return false;
    if (LIKELY(has_room(t, t->recorded + 2u)))
        return true;
    count_dropped(t);
    return false;
}

void nrg_span_past(uint32_t name, const char *track, const char *domain, int64_t begin_ns,
                   int64_t end_ns)
{
    struct thread_spans *t = here();
    struct nrg_known_name known;
    const char *place = track ? track : domain;
    if (!t || !may_put(t, name))
        return;
    uint32_t number = place ? intern(place, NRG_RING_TRACK_KIND, domain, &known) : 0;
    if (place && !number)
        count_dropped(t);
    else
        put_with_value(t, (uint64_t)begin_ns, NRG_RING_PAST, name, end_ns, number);
}

void nrg_mark(const char *name)
{
    struct thread_spans *t = here();
    uint32_t number = t ? number_of(t, name, mark_kind) : 0;
    if (number && may_put(t, number))
        put_event(t, NRG_RING_MARK, number);
}

void nrg_mark_name(uint32_t name)
{
    struct thread_spans *t = here();
    if (t && may_put(t, name))
        put_event(t, NRG_RING_MARK, name);
}

void nrg_count(const char *name, int64_t amount)
{
    struct thread_spans *t = here();
    uint32_t number = t ? number_of(t, name, count_kind) : 0;
    if (number && may_put(t, number))
        put_with_value(t, read_clock(t), NRG_RING_COUNT, number, amount, 0);
}

void nrg_count_name(uint32_t name, int64_t amount)
{
    struct thread_spans *t = here();
    if (t && may_put(t, name))
        put_with_value(t, read_clock(t), NRG_RING_COUNT, name, amount, 0);
}

/* The thread's clean-up. What it left open is over: it can't be working on it any more. */
static void on_thread_end(void *arg)
{
    struct thread_spans *t = arg;
    mine = NULL;
    mine_ended = true;
    if (t->slot) {
        while (t->depth)
            end(t);
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

/* The ring and the open spans are the parent's; names go on being good. */
static void after_fork_in_child(void)
{
    nrg_place_init(&client.place);
    if (mine) {
        mine->slot = NULL;
        mine->ring = NULL;
        mine->generation = 0;
    }
    pthread_mutex_unlock(&client.lock);
}

/* Once per process, before the first segment. Caller holds the lock. */
static int prepare(void)
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

int nrg_span_client_attach(struct nrg_ring_header *segment)
{
    pthread_mutex_lock(&client.lock);
    int rc = nrg_recording_active() ? -EBUSY : prepare();
    if (!rc) {
        if (RELAXED(client.segment) != segment)
            nrg_ring_names_release(&client.names);
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

int nrg_span_client_open(const char *variable)
{
    struct nrg_ring_header *segment = NULL;
    int rc = nrg_place_open(variable, &segment);
    return rc ? rc : nrg_span_client_attach(segment);
}

/* Before main where the program is linked with us, at import where it is Python. */
__attribute__((constructor)) static void attach_at_load(void)
{
    int saved = errno;
    const char *variable = secure_getenv(NRG_RING_VARIABLE);
    if (variable)
        nrg_span_client_open(variable);
    errno = saved;
}
