/*
 * See inject/ranges.h. libnrg's spans nest per thread; ranges nest per thread and domain, and those
 * that are started and ended need not nest at all. So each thread has a list of its open ranges. A
 * range that ends below others is ended together with them, and these are begun again: their times
 * are right, they count once more. Where spans of others lie above it (modules of PyTorch), or
 * another thread ends it, it ends with the next call of its own thread that allows it.
 */
#include "inject/ranges.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nrg/nrg.h"

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#define MOST_OPEN    512
#define MOST_ENDED   1024

struct open_range {
    const struct nrg_nvtx_domain *domain;
    uint64_t id;    /* 0: it was pushed */
    uint32_t name;  /* libnrg's */
    unsigned depth; /* of libnrg's spans, with it */
    bool over;
};

struct range_thread {
    uint64_t serial, n_started;
    size_t n;
    struct open_range open[MOST_OPEN];
    struct nrg_nvtx_cached cache[NRG_NVTX_CACHED];
};

static struct {
    pthread_once_t once;
    pthread_key_t key;
    bool usable;
    _Atomic uint64_t n_threads;
    /* Ranges that other threads than their own have ended. */
    pthread_mutex_t lock;
    _Atomic size_t n_ended;
    uint64_t ended[MOST_ENDED];
} shared = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static INITIAL_EXEC __thread struct range_thread *mine;

static void forget_thread(void *thread)
{
    mine = NULL;
    free(thread);
}

static void make_key(void)
{
    shared.usable = !pthread_key_create(&shared.key, forget_thread);
}

static __attribute__((noinline)) struct range_thread *new_thread(void)
{
    int saved = errno;
    pthread_once(&shared.once, make_key);
    struct range_thread *t = shared.usable ? calloc(1, sizeof *t) : NULL;
    if (t && pthread_setspecific(shared.key, t)) {
        free(t);
        t = NULL;
    }
    if (t)
        t->serial = atomic_fetch_add(&shared.n_threads, 1) + 1;
    mine = t;
    errno = saved;
    return t;
}

static inline struct range_thread *this_thread(void)
{
    return mine ? mine : new_thread();
}

/* Takes out ranges whose spans are gone: ended by others, or left behind by fork. */
static void forget_gone(struct range_thread *t, unsigned depth)
{
    while (t->n && t->open[t->n - 1].depth > depth)
        t->n--;
}

/* Closes range i now if the spans above it are all ours. */
static bool close_range(struct range_thread *t, size_t i)
{
    const struct open_range *top = &t->open[t->n - 1];
    size_t above = t->n - 1 - i;
    if (nrg_span_depth() != top->depth || top->depth - t->open[i].depth != above)
        return false;
    for (size_t k = 0; k <= above; k++)
        nrg_span_end();
    memmove(&t->open[i], &t->open[i + 1], above * sizeof *t->open);
    t->n--;
    for (; i < t->n; i++) {
        nrg_span_begin_name(t->open[i].name);
        t->open[i].depth = nrg_span_depth();
    }
    return true;
}

static void close_over(struct range_thread *t)
{
    while (t->n && t->open[t->n - 1].over && close_range(t, t->n - 1))
        ;
}

static void end_own(struct range_thread *t, size_t i)
{
    if (close_range(t, i))
        close_over(t);
    else
        t->open[i].over = true;
}

/* Ranges of this thread that another one has ended. */
static __attribute__((noinline)) void take_ended(struct range_thread *t)
{
    pthread_mutex_lock(&shared.lock);
    size_t kept = 0, n = atomic_load(&shared.n_ended);
    for (size_t k = 0; k < n; k++) {
        uint64_t id = shared.ended[k];
        if (id >> 32 != t->serial) {
            shared.ended[kept++] = id;
            continue;
        }
        for (size_t i = 0; i < t->n; i++)
            t->open[i].over |= t->open[i].id == id;
    }
    atomic_store(&shared.n_ended, kept);
    pthread_mutex_unlock(&shared.lock);
}

/* What every call begins with. */
static inline void catch_up(struct range_thread *t)
{
    forget_gone(t, nrg_span_depth());
    if (__builtin_expect(atomic_load_explicit(&shared.n_ended, memory_order_relaxed) != 0, 0))
        take_ended(t);
    if (__builtin_expect(t->n && t->open[t->n - 1].over, 0))
        close_over(t);
}

static int level_of(const struct range_thread *t, const struct nrg_nvtx_domain *domain)
{
    int level = 0;
    for (size_t i = 0; i < t->n; i++)
        level += t->open[i].domain == domain && !t->open[i].id && !t->open[i].over;
    return level;
}

static void open_range(struct range_thread *t, const struct nrg_nvtx_domain *domain, uint32_t name,
                       uint64_t id)
{
    nrg_span_begin_name(name);
    t->open[t->n++] =
        (struct open_range){.domain = domain, .id = id, .name = name, .depth = nrg_span_depth()};
}

/* Of a range, a mark or a count; 0 where there is no message. */
static uint32_t number_of(struct range_thread *t, const struct nrg_nvtx_domain *domain,
                          const struct nrg_nvtx_event *e, enum nrg_nvtx_use use)
{
    char narrow[NRG_NVTX_WIDE_BYTES];
    if (e->message_type == NRG_NVTX_REGISTERED && e->message.registered)
        return nrg_nvtx_string_number((struct nrg_nvtx_string *)(uintptr_t)e->message.registered,
                                      domain, e->category, use);
    if (e->message_type == NRG_NVTX_ASCII && e->message.ascii)
        return nrg_nvtx_number(t->cache, domain, e->category, e->message.ascii, use);
    if (e->message_type == NRG_NVTX_UNICODE && e->message.unicode)
        return nrg_nvtx_number(t->cache, domain, e->category,
                               nrg_nvtx_narrow(e->message.unicode, narrow, sizeof narrow), use);
    return nrg_nvtx_number(t->cache, domain, e->category, "(no message)", use);
}

static bool is_count(const struct nrg_nvtx_event *e, int64_t *amount)
{
    double d = e->payload_type == NRG_NVTX_FLOAT ? (double)e->payload.f : e->payload.d;
    switch (e->payload_type) {
    case NRG_NVTX_U64:
        *amount = (int64_t)e->payload.u64;
        return e->payload.u64 <= INT64_MAX;
    case NRG_NVTX_I64:
        *amount = e->payload.i64;
        return true;
    case NRG_NVTX_U32:
        *amount = e->payload.u32;
        return true;
    case NRG_NVTX_I32:
        *amount = e->payload.i32;
        return true;
    case NRG_NVTX_DOUBLE:
    case NRG_NVTX_FLOAT:
        if (!(d > -0x1p53 && d < 0x1p53))
            return false;
        *amount = (int64_t)(d < 0 ? d - 0.5 : d + 0.5);
        return true;
    default:
        return false;
    }
}

static void count_payload(struct range_thread *t, const struct nrg_nvtx_domain *domain,
                          const struct nrg_nvtx_event *e)
{
    int64_t amount;
    if (e->payload_type != NRG_NVTX_NO_PAYLOAD && is_count(e, &amount))
        nrg_count_add_name(number_of(t, domain, e, NRG_NVTX_COUNTED), amount);
}

int nrg_range_push(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e)
{
    struct range_thread *t = this_thread();
    if (!t || !e)
        return NRG_RANGE_NOT_TRACKED;
    catch_up(t);
    if (t->n == MOST_OPEN)
        return NRG_RANGE_NOT_TRACKED;
    int level = level_of(t, domain);
    open_range(t, domain, number_of(t, domain, e, NRG_NVTX_RANGE), 0);
    count_payload(t, domain, e);
    return level;
}

int nrg_range_pop(struct nrg_nvtx_domain *domain)
{
    struct range_thread *t = this_thread();
    if (!t)
        return NRG_RANGE_NOT_TRACKED;
    catch_up(t);
    for (size_t i = t->n; i-- > 0;)
        if (t->open[i].domain == domain && !t->open[i].id && !t->open[i].over) {
            end_own(t, i);
            return level_of(t, domain);
        }
    return NRG_RANGE_NOT_TRACKED;
}

uint64_t nrg_range_start(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e)
{
    struct range_thread *t = this_thread();
    if (!t || !e)
        return 0;
    catch_up(t);
    if (t->n == MOST_OPEN)
        return 0;
    uint64_t id = t->serial << 32 | (++t->n_started & UINT32_MAX);
    open_range(t, domain, number_of(t, domain, e, NRG_NVTX_RANGE), id);
    count_payload(t, domain, e);
    return id;
}

static void end_elsewhere(uint64_t id)
{
    pthread_mutex_lock(&shared.lock);
    size_t n = atomic_load(&shared.n_ended);
    if (n < MOST_ENDED) {
        shared.ended[n] = id;
        atomic_store(&shared.n_ended, n + 1);
    }
    pthread_mutex_unlock(&shared.lock);
}

void nrg_range_end(uint64_t id)
{
    struct range_thread *t = this_thread();
    if (!t || !id)
        return;
    catch_up(t);
    if (id >> 32 != t->serial) {
        end_elsewhere(id);
        return;
    }
    for (size_t i = t->n; i-- > 0;)
        if (t->open[i].id == id && !t->open[i].over) {
            end_own(t, i);
            return;
        }
}

void nrg_range_mark(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e)
{
    struct range_thread *t = this_thread();
    if (!t || !e)
        return;
    nrg_mark_name(number_of(t, domain, e, NRG_NVTX_MARKED));
    count_payload(t, domain, e);
}
