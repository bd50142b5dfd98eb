/* See slice_log.h. A slice is a byte of flags, and after it what these say, in their order. */
#include "attribute/regress/rows/slice_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    FOLLOWS = 1,    /* begins where the slice before ends; else: how much later than it begins */
    OTHER_RATE = 2, /* else that of the slice before; so are pool, cell and group */
    OTHER_POOL = 4,
    OTHER_GROUP = 8, /* or cell */
    ONE_CALL = 16,
    PART_OF_CALL = 32, /* else none */
    OTHER_TRACK = 64,
};

#define MOST_BYTES 64 /* of a slice */

static uint8_t *put_number(uint8_t *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

static uint64_t take_number(struct nrg_slice_reader *r)
{
    uint64_t number = 0;
    unsigned shift = 0;
    for (; *r->next & 0x80; shift += 7)
        number |= (uint64_t)(*r->next++ & 0x7f) << shift;
    return number | (uint64_t)*r->next++ << shift;
}

static uint8_t *put_bytes(uint8_t *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    return to + n;
}

static void take_bytes(struct nrg_slice_reader *r, void *to, size_t n)
{
    memcpy(to, r->next, n);
    r->next += n;
}

static unsigned flags_of(const struct nrg_slice *s, const struct nrg_slice *last)
{
    bool same_rate = !memcmp(&s->rate, &last->rate, sizeof s->rate);
    return (s->begin_ns == last->end_ns ? FOLLOWS : 0u) | (same_rate ? 0u : OTHER_RATE) |
           (s->pool == last->pool ? 0u : OTHER_POOL) |
           (s->track == last->track ? 0u : OTHER_TRACK) |
           (s->group == last->group && s->cell == last->cell ? 0u : OTHER_GROUP) |
           (s->calls == 1   ? ONE_CALL
            : s->calls != 0 ? PART_OF_CALL
                            : 0u);
}

int nrg_slice_log_add(struct nrg_slice_log *log, const struct nrg_slice *s)
{
    if (nrg_reserve(&log->bytes, &log->cap, log->n + MOST_BYTES, 1))
        return -ENOMEM;
    unsigned flags = flags_of(s, &log->last);
    uint8_t *to = log->bytes + log->n;
    *to++ = (uint8_t)flags;
    if (!(flags & FOLLOWS))
        to = put_number(to, (uint64_t)s->begin_ns - (uint64_t)log->last.begin_ns);
    to = put_number(to, (uint64_t)s->end_ns - (uint64_t)s->begin_ns);
    to = put_number(to, s->class_);
    if (flags & OTHER_RATE)
        to = put_bytes(to, &s->rate, sizeof s->rate);
    if (flags & OTHER_POOL)
        to = put_number(to, s->pool);
    if (flags & OTHER_GROUP)
        to = put_number(put_number(to, s->cell), s->group);
    if (flags & OTHER_TRACK)
        to = put_number(to, s->track);
    if (flags & PART_OF_CALL)
        to = put_bytes(to, &s->calls, sizeof s->calls);
    log->n = (size_t)(to - log->bytes);
    log->last = *s;
    return 0;
}

void nrg_slice_log_release(struct nrg_slice_log *log)
{
    free(log->bytes);
    *log = (struct nrg_slice_log){0};
}

void nrg_slice_reader_init(struct nrg_slice_reader *r, const struct nrg_slice_log *log)
{
    *r = (struct nrg_slice_reader){.next = log->bytes};
    if (log->bytes)
        r->end = log->bytes + log->n;
}

bool nrg_slice_read(struct nrg_slice_reader *r)
{
    struct nrg_slice *s = &r->slice;
    if (r->next == r->end)
        return false;
    unsigned flags = *r->next++;
    s->begin_ns = flags & FOLLOWS ? s->end_ns : (int64_t)((uint64_t)s->begin_ns + take_number(r));
    s->end_ns = (int64_t)((uint64_t)s->begin_ns + take_number(r));
    s->class_ = (uint32_t)take_number(r);
    if (flags & OTHER_RATE)
        take_bytes(r, &s->rate, sizeof s->rate);
    if (flags & OTHER_POOL)
        s->pool = (uint32_t)take_number(r);
    if (flags & OTHER_GROUP) {
        s->cell = (uint32_t)take_number(r);
        s->group = (uint32_t)take_number(r);
    }
    if (flags & OTHER_TRACK)
        s->track = (uint32_t)take_number(r);
    s->calls = flags & ONE_CALL ? 1.0f : 0;
    if (flags & PART_OF_CALL)
        take_bytes(r, &s->calls, sizeof s->calls);
    return true;
}
