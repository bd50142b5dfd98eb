/*
 * See mark/internal.h. Open addressing in a table of its own instead of base/map.h: the texts stay
 * where the names stand, in shared memory that another process may overwrite, so what is read there
 * is bounded before use and compared without a copy. And this file is part of the measured program,
 * which loads libc only.
 */
#include "mark/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP       256
#define FIRST_OWN_BYTES 4096
#define NAMES_UNITS     (NRG_RING_NAMES_BYTES / NRG_RING_NAME_UNIT)

struct parts {
    const char *part[3]; /* kind, detail, text */
    uint32_t bytes[3];
    bool cut;
    uint64_t hash;
};

static char *area_of(const struct nrg_ring_names *names)
{
    return names->segment ? (char *)names->segment + NRG_RING_NAMES_AT : names->own;
}

static _Atomic uint32_t *used_of(struct nrg_ring_names *names)
{
    return names->segment ? &names->segment->names_used : &names->own_used;
}

static struct nrg_ring_name *entry_at(const struct nrg_ring_names *names, uint32_t number)
{
    return (struct nrg_ring_name *)(area_of(names) + (size_t)number * NRG_RING_NAME_UNIT);
}

int nrg_ring_names_move(struct nrg_ring_names *names, struct nrg_ring_header *segment)
{
    uint32_t used = atomic_load_explicit(used_of(names), memory_order_relaxed);
    if (names->segment == segment)
        return 0;
    if (names->n && atomic_load_explicit(&segment->names_used, memory_order_relaxed) != 1)
        return -EBUSY;
    if (names->n) {
        used = used > NAMES_UNITS ? NAMES_UNITS : used;
        memcpy((char *)segment + NRG_RING_NAMES_AT, area_of(names),
               (size_t)used * NRG_RING_NAME_UNIT);
        atomic_store_explicit(&segment->names_used, used, memory_order_relaxed);
    }
    free(names->own);
    names->own = NULL;
    names->own_bytes = 0;
    names->segment = segment;
    return 0;
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
    static const uint32_t max[3] = {NRG_SPAN_KIND_MAX, NRG_SPAN_DETAIL_MAX, NRG_SPAN_NAME_MAX};
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
    /* An overwritten length must not lead outside. */
    return hash_bytes(hash, text_of(e),
                      e->text_bytes < NRG_SPAN_NAME_MAX ? e->text_bytes : NRG_SPAN_NAME_MAX);
}

/* Where the number of these texts is, or belongs. */
static uint32_t *find_number(const struct nrg_ring_names *names, const struct parts *p)
{
    size_t at = (size_t)p->hash & (names->cap - 1);
    while (names->numbers[at] && !is_equal(entry_at(names, names->numbers[at]), p))
        at = (at + 1) & (names->cap - 1);
    return &names->numbers[at];
}

static bool grow_table(struct nrg_ring_names *names)
{
    size_t cap = names->cap ? names->cap * 2 : FIRST_CAP;
    uint32_t *numbers = calloc(cap, sizeof *numbers);
    if (!numbers)
        return false;
    for (size_t i = 0; i < names->cap; i++) {
        if (!names->numbers[i])
            continue;
        size_t at = (size_t)hash_of(entry_at(names, names->numbers[i])) & (cap - 1);
        while (numbers[at])
            at = (at + 1) & (cap - 1);
        numbers[at] = names->numbers[i];
    }
    free(names->numbers);
    names->numbers = numbers;
    names->cap = cap;
    return true;
}

/* Makes the process's own memory hold this many units. */
static bool grow_own(struct nrg_ring_names *names, uint32_t units)
{
    size_t want = (size_t)units * NRG_RING_NAME_UNIT;
    size_t bytes = names->own_bytes ? names->own_bytes : FIRST_OWN_BYTES;
    while (bytes < want)
        bytes *= 2;
    if (bytes == names->own_bytes)
        return true;
    char *own = realloc(names->own, bytes);
    if (!own)
        return false;
    names->own = own;
    names->own_bytes = bytes;
    return true;
}

/* Reserves room among the names, which several processes may do at once; 0: there is none. */
static uint32_t take_room(struct nrg_ring_names *names, size_t bytes)
{
    uint32_t units = (uint32_t)((bytes + NRG_RING_NAME_UNIT - 1) / NRG_RING_NAME_UNIT);
    _Atomic uint32_t *used_units = used_of(names);
    uint32_t used = atomic_load_explicit(used_units, memory_order_relaxed);
    do {
        if (!used || used > NAMES_UNITS || units > NAMES_UNITS - used ||
            (!names->segment && !grow_own(names, used + units)))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(used_units, &used, used + units,
                                                    memory_order_relaxed, memory_order_relaxed));
    return used;
}

static uint32_t append_name(struct nrg_ring_names *names, const struct parts *p)
{
    size_t size = sizeof(struct nrg_ring_name) + p->bytes[0] + p->bytes[1] + p->bytes[2] + 3;
    uint32_t number = take_room(names, size);
    if (!number)
        return 0;
    struct nrg_ring_name *e = entry_at(names, number);
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

uint32_t nrg_ring_names_number(struct nrg_ring_names *names, const char *text, const char *kind,
                               const char *detail, struct nrg_known_name *known)
{
    struct parts p = take_apart(text, kind, detail);
    if (!names->n && !names->segment)
        names->own_used = 1; /* 0 is not a valid number */
    if (2 * (names->n + 1) > names->cap && !grow_table(names))
        return 0;
    uint32_t *place = find_number(names, &p);
    if (!*place) {
        *place = append_name(names, &p);
        names->n += *place != 0;
    }
    if (!*place)
        return 0;
    *known = (struct nrg_known_name){
        .text = text_of(entry_at(names, *place)),
        .bytes = p.bytes[2],
        .number = *place,
        .cut = p.cut,
    };
    return *place;
}
