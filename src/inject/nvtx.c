/*
 * NVTX's ranges and marks as spans of the host's threads (inject.h). Every copy of NVTX in a
 * process, and each library may have its own, hands over its table once.
 *
 * libnrg's spans nest per thread; NVTX's nest per thread and domain, and those that are started and
 * ended need not nest at all. So each thread has a list of its open ranges. A range that ends below
 * others is ended together with them, and these are begun again: their times are right, they count
 * once more. Where spans of others lie above it (modules of PyTorch), or another thread ends it, it
 * ends with the next call of its own thread that allows it.
 *
 * A payload that is a number counts, under the name of the category, or of the message without one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inject/nvtx_names.h"
#include "nrg/nrg.h"

#define EXPORTED     __attribute__((visibility("default")))
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#define MOST_OPEN    512
#define MOST_ENDED   1024
#define NOT_TRACKED  (-2) /* NVTX_NO_PUSH_POP_TRACKING */
#define WIDE_BYTES   1024

struct open_range {
    const struct nrg_nvtx_domain *domain;
    uint64_t id;    /* 0: it was pushed */
    uint32_t name;  /* libnrg's */
    unsigned depth; /* of libnrg's spans, with it */
    bool over;
};

struct nvtx_thread {
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
} nvtx = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static INITIAL_EXEC __thread struct nvtx_thread *mine;

static void forget_thread(void *thread)
{
    mine = NULL;
    free(thread);
}

static void make_key(void)
{
    nvtx.usable = !pthread_key_create(&nvtx.key, forget_thread);
}

static __attribute__((noinline)) struct nvtx_thread *new_thread(void)
{
    int saved = errno;
    pthread_once(&nvtx.once, make_key);
    struct nvtx_thread *t = nvtx.usable ? calloc(1, sizeof *t) : NULL;
    if (t && pthread_setspecific(nvtx.key, t)) {
        free(t);
        t = NULL;
    }
    if (t)
        t->serial = atomic_fetch_add(&nvtx.n_threads, 1) + 1;
    mine = t;
    errno = saved;
    return t;
}

static inline struct nvtx_thread *this_thread(void)
{
    return mine ? mine : new_thread();
}

/* Takes out ranges whose spans are gone: ended by others, or left behind by fork. */
static void forget_gone(struct nvtx_thread *t, unsigned depth)
{
    while (t->n && t->open[t->n - 1].depth > depth)
        t->n--;
}

/* Closes range i now if the spans above it are all ours. */
static bool close_range(struct nvtx_thread *t, size_t i)
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

static void close_over(struct nvtx_thread *t)
{
    while (t->n && t->open[t->n - 1].over && close_range(t, t->n - 1))
        ;
}

static void end_own(struct nvtx_thread *t, size_t i)
{
    if (close_range(t, i))
        close_over(t);
    else
        t->open[i].over = true;
}

/* Ranges of this thread that another one has ended. */
static __attribute__((noinline)) void take_ended(struct nvtx_thread *t)
{
    pthread_mutex_lock(&nvtx.lock);
    size_t kept = 0, n = atomic_load(&nvtx.n_ended);
    for (size_t k = 0; k < n; k++) {
        uint64_t id = nvtx.ended[k];
        if (id >> 32 != t->serial) {
            nvtx.ended[kept++] = id;
            continue;
        }
        for (size_t i = 0; i < t->n; i++)
            t->open[i].over |= t->open[i].id == id;
    }
    atomic_store(&nvtx.n_ended, kept);
    pthread_mutex_unlock(&nvtx.lock);
}

/* What every call begins with. */
static inline void catch_up(struct nvtx_thread *t)
{
    forget_gone(t, nrg_span_depth());
    if (__builtin_expect(atomic_load_explicit(&nvtx.n_ended, memory_order_relaxed) != 0, 0))
        take_ended(t);
    if (__builtin_expect(t->n && t->open[t->n - 1].over, 0))
        close_over(t);
}

static int level_of(const struct nvtx_thread *t, const struct nrg_nvtx_domain *domain)
{
    int level = 0;
    for (size_t i = 0; i < t->n; i++)
        level += t->open[i].domain == domain && !t->open[i].id && !t->open[i].over;
    return level;
}

static void open_range(struct nvtx_thread *t, const struct nrg_nvtx_domain *domain, uint32_t name,
                       uint64_t id)
{
    nrg_span_begin_name(name);
    t->open[t->n++] =
        (struct open_range){.domain = domain, .id = id, .name = name, .depth = nrg_span_depth()};
}

/* Of a range, a mark or a count; 0 where there is no message. */
static uint32_t number_of(struct nvtx_thread *t, const struct nrg_nvtx_domain *domain,
                          const struct nrg_nvtx_event *e, enum nrg_nvtx_use use)
{
    char narrow[WIDE_BYTES];
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

static void count_payload(struct nvtx_thread *t, const struct nrg_nvtx_domain *domain,
                          const struct nrg_nvtx_event *e)
{
    int64_t amount;
    if (e->payload_type != NRG_NVTX_NO_PAYLOAD && is_count(e, &amount))
        nrg_count_add_name(number_of(t, domain, e, NRG_NVTX_COUNTED), amount);
}

static int domain_push(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e)
{
    struct nvtx_thread *t = this_thread();
    if (!t || !e)
        return NOT_TRACKED;
    catch_up(t);
    if (t->n == MOST_OPEN)
        return NOT_TRACKED;
    int level = level_of(t, domain);
    open_range(t, domain, number_of(t, domain, e, NRG_NVTX_RANGE), 0);
    count_payload(t, domain, e);
    return level;
}

static int domain_pop(struct nrg_nvtx_domain *domain)
{
    struct nvtx_thread *t = this_thread();
    if (!t)
        return NOT_TRACKED;
    catch_up(t);
    for (size_t i = t->n; i-- > 0;)
        if (t->open[i].domain == domain && !t->open[i].id && !t->open[i].over) {
            end_own(t, i);
            return level_of(t, domain);
        }
    return NOT_TRACKED;
}

static uint64_t domain_start(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e)
{
    struct nvtx_thread *t = this_thread();
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
    pthread_mutex_lock(&nvtx.lock);
    size_t n = atomic_load(&nvtx.n_ended);
    if (n < MOST_ENDED) {
        nvtx.ended[n] = id;
        atomic_store(&nvtx.n_ended, n + 1);
    }
    pthread_mutex_unlock(&nvtx.lock);
}

static void domain_end(struct nrg_nvtx_domain *domain, uint64_t id)
{
    struct nvtx_thread *t = this_thread();
    (void)domain;
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

static void domain_mark(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e)
{
    struct nvtx_thread *t = this_thread();
    if (!t || !e)
        return;
    nrg_mark_name(number_of(t, domain, e, NRG_NVTX_MARKED));
    count_payload(t, domain, e);
}

static struct nrg_nvtx_event ascii_event(const char *text)
{
    return (struct nrg_nvtx_event){.message_type = NRG_NVTX_ASCII, .message.ascii = text};
}

static struct nrg_nvtx_event wide_event(const wchar_t *text)
{
    return (struct nrg_nvtx_event){.message_type = NRG_NVTX_UNICODE, .message.unicode = text};
}

/* The functions of the global domain, in three forms each. */
#define FORMS(result, verb, function)                                                              \
    static result verb##_ex(const struct nrg_nvtx_event *e)                                        \
    {                                                                                              \
        return function(NULL, e);                                                                  \
    }                                                                                              \
    static result verb##_a(const char *text)                                                       \
    {                                                                                              \
        struct nrg_nvtx_event e = ascii_event(text);                                               \
        return function(NULL, &e);                                                                 \
    }                                                                                              \
    static result verb##_w(const wchar_t *text)                                                    \
    {                                                                                              \
        struct nrg_nvtx_event e = wide_event(text);                                                \
        return function(NULL, &e);                                                                 \
    }
FORMS(void, mark, domain_mark)
FORMS(int, push, domain_push)
FORMS(uint64_t, start, domain_start)
#undef FORMS

static int pop(void)
{
    return domain_pop(NULL);
}

static void end(uint64_t id)
{
    domain_end(NULL, id);
}

static void domain_category_a(struct nrg_nvtx_domain *domain, uint32_t category, const char *name)
{
    if (name)
        nrg_nvtx_category(domain, category, name);
}

static void domain_category_w(struct nrg_nvtx_domain *domain, uint32_t category,
                              const wchar_t *name)
{
    char narrow[WIDE_BYTES];
    if (name)
        nrg_nvtx_category(domain, category, nrg_nvtx_narrow(name, narrow, sizeof narrow));
}

static void category_a(uint32_t category, const char *name)
{
    domain_category_a(NULL, category, name);
}

static void category_w(uint32_t category, const wchar_t *name)
{
    domain_category_w(NULL, category, name);
}

static void *string_a(struct nrg_nvtx_domain *domain, const char *text)
{
    (void)domain;
    return text ? nrg_nvtx_string(text) : NULL;
}

static void *string_w(struct nrg_nvtx_domain *domain, const wchar_t *text)
{
    char narrow[WIDE_BYTES];
    return text ? string_a(domain, nrg_nvtx_narrow(text, narrow, sizeof narrow)) : NULL;
}

static void *domain_a(const char *name)
{
    return name ? nrg_nvtx_domain(name) : NULL;
}

static void *domain_w(const wchar_t *name)
{
    char narrow[WIDE_BYTES];
    return name ? nrg_nvtx_domain(nrg_nvtx_narrow(name, narrow, sizeof narrow)) : NULL;
}

struct hook {
    unsigned place;
    nrg_nvtx_function function;
};

#define HOOK(place, function)                                                                      \
    {                                                                                              \
        place, (nrg_nvtx_function)(function)                                                       \
    }

static const struct hook core[] = {
    HOOK(NRG_NVTX_MARK_EX, mark_ex),
    HOOK(NRG_NVTX_MARK_A, mark_a),
    HOOK(NRG_NVTX_MARK_W, mark_w),
    HOOK(NRG_NVTX_START_EX, start_ex),
    HOOK(NRG_NVTX_START_A, start_a),
    HOOK(NRG_NVTX_START_W, start_w),
    HOOK(NRG_NVTX_END, end),
    HOOK(NRG_NVTX_PUSH_EX, push_ex),
    HOOK(NRG_NVTX_PUSH_A, push_a),
    HOOK(NRG_NVTX_PUSH_W, push_w),
    HOOK(NRG_NVTX_POP, pop),
    HOOK(NRG_NVTX_CATEGORY_A, category_a),
    HOOK(NRG_NVTX_CATEGORY_W, category_w),
    {0},
};

static const struct hook core2[] = {
    HOOK(NRG_NVTX2_MARK, domain_mark),
    HOOK(NRG_NVTX2_START, domain_start),
    HOOK(NRG_NVTX2_END, domain_end),
    HOOK(NRG_NVTX2_PUSH, domain_push),
    HOOK(NRG_NVTX2_POP, domain_pop),
    HOOK(NRG_NVTX2_CATEGORY_A, domain_category_a),
    HOOK(NRG_NVTX2_CATEGORY_W, domain_category_w),
    HOOK(NRG_NVTX2_STRING_A, string_a),
    HOOK(NRG_NVTX2_STRING_W, string_w),
    HOOK(NRG_NVTX2_DOMAIN_A, domain_a),
    HOOK(NRG_NVTX2_DOMAIN_W, domain_w),
    {0},
};

static void set_hooks(const struct nrg_nvtx_callbacks *callbacks, int module,
                      const struct hook *hooks)
{
    nrg_nvtx_function **table = NULL;
    unsigned length = 0;
    if (!callbacks->function_table(module, &table, &length) || !table)
        return;
    for (; hooks->function; hooks++)
        if (hooks->place < length && table[hooks->place])
            *table[hooks->place] = hooks->function;
}

/* Called by each NVTX in the process. 0: there is nobody to tell, so it stays switched off. */
EXPORTED int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));
EXPORTED int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
    const struct nrg_nvtx_callbacks *callbacks =
        nrg_recording_active() && export_table ? export_table(NRG_NVTX_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    set_hooks(callbacks, NRG_NVTX_CORE, core);
    set_hooks(callbacks, NRG_NVTX_CORE2, core2);
    return 1;
}
