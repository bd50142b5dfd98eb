/* See inject/nvtx_names.h. */
#include "inject/nvtx_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrg/nrg.h"

#define BUCKETS    1024
#define CATEGORIES 64 /* that a domain can name */

struct category {
    _Atomic uint32_t number; /* written last */
    char *name;
};

struct nrg_nvtx_domain {
    struct nrg_nvtx_domain *next;
    struct category categories[CATEGORIES];
    _Atomic uint32_t n_categories;
    char name[];
};

struct nrg_nvtx_string {
    struct nrg_nvtx_string *next;
    /* The last use: category and domain, and the number that goes with them. */
    _Atomic uint64_t last[NRG_NVTX_USES];
    const struct nrg_nvtx_domain *_Atomic last_domain[NRG_NVTX_USES];
    char text[];
};

static struct {
    pthread_mutex_t lock;
    struct nrg_nvtx_domain *domains;
    struct nrg_nvtx_string *strings[BUCKETS];
    struct nrg_nvtx_domain nameless; /* for categories of the global domain; has no name */
} texts = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct nrg_nvtx_domain *nrg_nvtx_domain(const char *name)
{
    size_t size = strlen(name) + 1;
    pthread_mutex_lock(&texts.lock);
    struct nrg_nvtx_domain *d = texts.domains;
    while (d && strcmp(d->name, name))
        d = d->next;
    if (!d && (d = calloc(1, sizeof *d + size))) {
        memcpy(d->name, name, size);
        d->next = texts.domains;
        texts.domains = d;
    }
    pthread_mutex_unlock(&texts.lock);
    return d;
}

struct nrg_nvtx_string *nrg_nvtx_string(const char *text)
{
    size_t size = strlen(text) + 1;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    pthread_mutex_lock(&texts.lock);
    struct nrg_nvtx_string **bucket = &texts.strings[(hash ^ hash >> 32) % BUCKETS], *s = *bucket;
    while (s && strcmp(s->text, text))
        s = s->next;
    if (!s && (s = calloc(1, sizeof *s + size))) {
        memcpy(s->text, text, size);
        s->next = *bucket;
        *bucket = s;
    }
    pthread_mutex_unlock(&texts.lock);
    return s;
}

void nrg_nvtx_category(struct nrg_nvtx_domain *d, uint32_t number, const char *name)
{
    d = d ? d : &texts.nameless;
    pthread_mutex_lock(&texts.lock);
    uint32_t n = atomic_load(&d->n_categories);
    bool known = !number;
    for (uint32_t i = 0; i < n; i++)
        known |= atomic_load(&d->categories[i].number) == number;
    char *copy = known || n == CATEGORIES ? NULL : strdup(name);
    if (copy) {
        d->categories[n].name = copy;
        atomic_store(&d->categories[n].number, number);
        atomic_store(&d->n_categories, n + 1);
    }
    pthread_mutex_unlock(&texts.lock);
}

/* The name of a category, NULL when it has none. */
static const char *category_name(const struct nrg_nvtx_domain *d, uint32_t number)
{
    d = d ? d : &texts.nameless;
    uint32_t n = number ? atomic_load(&d->n_categories) : 0;
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&d->categories[i].number) == number)
            return d->categories[i].name;
    return NULL;
}

static uint32_t intern(const struct nrg_nvtx_domain *d, uint32_t number, const char *text,
                       enum nrg_nvtx_use use)
{
    static const char *const kinds[NRG_NVTX_USES] = {"span", "mark", "counter"};
    const char *category = category_name(d, number), *domain = d && d->name[0] ? d->name : NULL;
    char detail[128];
    if (use == NRG_NVTX_COUNTED)
        return nrg_name_intern(category ? category : text, kinds[use], NULL);
    snprintf(detail, sizeof detail, "%s%s%s", domain ? domain : "", domain && category ? "/" : "",
             category ? category : "");
    return nrg_name_intern(text, kinds[use], detail[0] ? detail : NULL);
}

uint32_t nrg_nvtx_number(struct nrg_nvtx_cached *cache, const struct nrg_nvtx_domain *domain,
                         uint32_t category, const char *text, enum nrg_nvtx_use use)
{
    uintptr_t mixed = (uintptr_t)text ^ (uintptr_t)text >> 7 ^ (uintptr_t)domain >> 4;
    struct nrg_nvtx_cached *c = &cache[(mixed + category + use) % NRG_NVTX_CACHED];
    if (c->text == text && c->domain == domain && c->category == category && c->use == use &&
        !strcmp(c->copy, text))
        return c->number;
    uint32_t number = intern(domain, category, text, use);
    size_t size = strlen(text) + 1;
    if (size <= sizeof c->copy) {
        *c = (struct nrg_nvtx_cached){text, domain, category, use, number, ""};
        memcpy(c->copy, text, size);
    }
    return number;
}

/* Two threads that use one string in two domains at once only look it up more often. */
uint32_t nrg_nvtx_string_number(struct nrg_nvtx_string *s, const struct nrg_nvtx_domain *domain,
                                uint32_t category, enum nrg_nvtx_use use)
{
    uint64_t last = atomic_load_explicit(&s->last[use], memory_order_acquire);
    if ((uint32_t)last && last >> 32 == category &&
        atomic_load_explicit(&s->last_domain[use], memory_order_relaxed) == domain)
        return (uint32_t)last;
    uint32_t number = intern(domain, category, s->text, use);
    atomic_store_explicit(&s->last[use], 0, memory_order_release);
    atomic_store_explicit(&s->last_domain[use], domain, memory_order_relaxed);
    atomic_store_explicit(&s->last[use], (uint64_t)category << 32 | number, memory_order_release);
    return number;
}

char *nrg_nvtx_narrow(const wchar_t *wide, char *out, size_t size)
{
    size_t n = 0;
    for (; *wide && n + 5 <= size; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            c = 0xfffd;
        if (c < 0x80) {
            out[n++] = (char)c;
            continue;
        }
        int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        out[n++] = (char)((0xf0 << (3 - more) & 0xff) | c >> 6 * more);
        while (more--)
            out[n++] = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
    out[n] = '\0';
    return out;
}
