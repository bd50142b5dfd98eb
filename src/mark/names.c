/* See span_names.h. Open addressing; the texts themselves stay in the shared memory. */
#include "record/span_names.h"

#include <stdlib.h>
#include <string.h>

#include "record/format.h"

#define FIRST_CAP 256

struct parts {
    const char *part[3]; /* kind, detail, text */
    uint32_t bytes[3];
    bool cut;
    uint64_t hash;
};

void nrg_ring_names_release(struct nrg_ring_names *names)
{
    free(names->numbers);
    *names = (struct nrg_ring_names){0};
}

static struct nrg_ring_name *entry_at(struct nrg_ring_header *segment, uint32_t number)
{
    char *area = (char *)segment + NRG_RING_NAMES_AT;
    return (struct nrg_ring_name *)(area + (size_t)number * NRG_RING_NAME_UNIT);
}

/* At most `max` bytes, without half a character at the end. */
static uint32_t length_within(const char *text, uint32_t max)
{
    size_t n = strnlen(text, (size_t)max + 1);
    if (n <= max)
        return (uint32_t)n;
    n = max;
    for (unsigned i = 0; i < 3 && n && ((unsigned char)text[n] & 0xc0) == 0x80; i++)
        n--;
    return (uint32_t)n;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static struct parts take_apart(const char *text, const char *kind, const char *detail)
{
    static const uint32_t max[3] = {sizeof((struct nrg_span_name *)0)->kind - 1,
                                    sizeof((struct nrg_span_name *)0)->detail - 1,
                                    NRG_SPAN_NAME_MAX};
    struct parts p = {.part = {kind, detail ? detail : "", text},
                      .hash = UINT64_C(0xcbf29ce484222325)};
    for (int i = 0; i < 3; i++) {
        p.bytes[i] = length_within(p.part[i], max[i]);
        p.hash = hash_bytes(p.hash, p.part[i], p.bytes[i]);
    }
    p.cut = text[p.bytes[2]] != '\0';
    return p;
}

static const char *text_of(const struct nrg_ring_name *e)
{
    return e->bytes + e->kind_bytes + 1 + e->detail_bytes + 1;
}

static bool is_equal(const struct nrg_ring_name *e, const struct parts *p)
{
    return e->kind_bytes == p->bytes[0] && e->detail_bytes == p->bytes[1] &&
           e->text_bytes == p->bytes[2] && !memcmp(e->bytes, p->part[0], p->bytes[0]) &&
           !memcmp(e->bytes + p->bytes[0] + 1, p->part[1], p->bytes[1]) &&
           !memcmp(text_of(e), p->part[2], p->bytes[2]);
}

static uint64_t hash_of(const struct nrg_ring_name *e)
{
    uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), e->bytes, e->kind_bytes);
    hash = hash_bytes(hash, e->bytes + e->kind_bytes + 1, e->detail_bytes);
    /* A scribbled length must not lead outside. */
    return hash_bytes(hash, text_of(e),
                      e->text_bytes < NRG_SPAN_NAME_MAX ? e->text_bytes : NRG_SPAN_NAME_MAX);
}

/* Where the number of these texts is, or belongs. */
static uint32_t *find(const struct nrg_ring_names *names, struct nrg_ring_header *segment,
                      const struct parts *p)
{
    size_t at = (size_t)p->hash & (names->cap - 1);
    while (names->numbers[at] && !is_equal(entry_at(segment, names->numbers[at]), p))
        at = (at + 1) & (names->cap - 1);
    return &names->numbers[at];
}

static bool grow(struct nrg_ring_names *names, struct nrg_ring_header *segment)
{
    size_t cap = names->cap ? names->cap * 2 : FIRST_CAP;
    uint32_t *numbers = calloc(cap, sizeof *numbers);
    if (!numbers)
        return false;
    for (size_t i = 0; i < names->cap; i++) {
        if (!names->numbers[i])
            continue;
        size_t at = (size_t)hash_of(entry_at(segment, names->numbers[i])) & (cap - 1);
        while (numbers[at])
            at = (at + 1) & (cap - 1);
        numbers[at] = names->numbers[i];
    }
    free(names->numbers);
    names->numbers = numbers;
    names->cap = cap;
    return true;
}

/* Room in the shared memory, taken from all processes at once; 0: there is none. */
static uint32_t take_room(struct nrg_ring_header *segment, size_t bytes)
{
    uint32_t units = (uint32_t)((bytes + NRG_RING_NAME_UNIT - 1) / NRG_RING_NAME_UNIT);
    uint32_t used = atomic_load_explicit(&segment->names_used, memory_order_relaxed);
    do {
        if (!used || used > NRG_RING_NAMES_BYTES / NRG_RING_NAME_UNIT ||
            units > NRG_RING_NAMES_BYTES / NRG_RING_NAME_UNIT - used)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&segment->names_used, &used, used + units,
                                                    memory_order_relaxed, memory_order_relaxed));
    return used;
}

static uint32_t append(struct nrg_ring_header *segment, const struct parts *p)
{
    size_t size = sizeof(struct nrg_ring_name) + p->bytes[0] + p->bytes[1] + p->bytes[2] + 3;
    uint32_t number = take_room(segment, size);
    if (!number)
        return 0;
    struct nrg_ring_name *e = entry_at(segment, number);
    char *to = e->bytes;
    e->text_bytes = p->bytes[2];
    e->kind_bytes = (uint8_t)p->bytes[0];
    e->detail_bytes = (uint8_t)p->bytes[1];
    e->cut = p->cut;
    for (int i = 0; i < 3; i++) {
        memcpy(to, p->part[i], p->bytes[i]);
        to[p->bytes[i]] = '\0';
        to += p->bytes[i] + 1;
    }
    atomic_store_explicit(&e->number, number, memory_order_release);
    return number;
}

uint32_t nrg_ring_names_number(struct nrg_ring_names *names, struct nrg_ring_header *segment,
                               const char *text, const char *kind, const char *detail,
                               struct nrg_known_name *known)
{
    struct parts p = take_apart(text, kind, detail);
    if (2 * (names->n + 1) > names->cap && !grow(names, segment))
        return 0;
    uint32_t *place = find(names, segment, &p);
    if (!*place) {
        *place = append(segment, &p);
        names->n += *place != 0;
    }
    if (!*place)
        return 0;
    *known = (struct nrg_known_name){
        .text = text_of(entry_at(segment, *place)),
        .bytes = p.bytes[2],
        .number = *place,
        .cut = p.cut,
    };
    return *place;
}
