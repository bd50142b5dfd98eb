/* See packed.h. Differences are taken modulo 2^64: whatever a file holds, they fit. */
#include "energy/packed.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"

#define SLACK sizeof(uint64_t) /* bytes that may be read beyond the last number */

/* Numbers of a block: the least one, and how many bytes the others take above it. */
struct numbers {
    int64_t least;
    uint8_t bytes;
};

struct bytes {
    uint8_t *items;
    size_t n, cap;
};

/* Times of blocks, for all channels that have them. */
struct times {
    struct bytes bytes;
    size_t users;
};

struct block {
    int64_t first_ns;
    double first_j;
    size_t times_at; /* in `lent` or in `times` */
    size_t at;       /* in the channel's own bytes: gaps, if there are any, then values */
    int64_t least_apart_ns, least_value;
    uint8_t time_bytes, value_bytes;
    bool gaps, lent;
};

struct nrg_packing {
    bool gauge;
    double scale;
    struct block *blocks;
    size_t n_blocks, cap_blocks;
    struct bytes bytes;
    struct times *times, *lent; /* lent: NULL where it is packed like no other */
    const struct nrg_packing *like;
    /* the block that is being filled */
    size_t n; /* of its points */
    int64_t t_ns[NRG_POINT_BLOCK], raw[NRG_POINT_BLOCK];
    bool gap[NRG_POINT_BLOCK];
    double first_j, last_j; /* sums at its first and last point */
    size_t n_last;          /* points in the last block, once finished */
    struct nrg_point_view views[NRG_POINT_VIEWS];
};

static struct times *hold(struct times *times)
{
    times->users++;
    return times;
}

static void let_go(struct times *times)
{
    if (!times || --times->users)
        return;
    free(times->bytes.items);
    free(times);
}

int nrg_packed_init(struct nrg_packed *points, bool gauge, double scale,
                    const struct nrg_packed *like)
{
    struct nrg_packing *p = nrg_calloc(1, sizeof *p);
    struct times *times = nrg_calloc(1, sizeof *times);
    *points = (struct nrg_packed){.own = p};
    if (!p || !times) {
        free(p);
        free(times);
        *points = (struct nrg_packed){0};
        return -ENOMEM;
    }
    p->gauge = gauge;
    p->scale = scale;
    p->times = hold(times);
    p->like = like ? like->own : NULL;
    if (p->like)
        p->lent = hold(p->like->lent ? p->like->lent : p->like->times);
    for (size_t i = 0; i < NRG_POINT_VIEWS; i++)
        p->views[i].block = SIZE_MAX;
    points->view = p->views;
    return 0;
}

void nrg_packed_release(struct nrg_packed *points)
{
    if (!points->own)
        return;
    let_go(points->own->times);
    let_go(points->own->lent);
    free(points->own->blocks);
    free(points->own->bytes.items);
    free(points->own);
    *points = (struct nrg_packed){0};
}

/* Sums after an interval that is no gap. */
static double counter_sum(double sum_j, int64_t step, double scale)
{
    return sum_j + (double)step * scale;
}

static double gauge_sum(double sum_j, double from, double to, int64_t dt_ns)
{
    return sum_j + (to + from) / 2 * ((double)dt_ns / 1e9);
}

static double next_sum(const struct nrg_packing *p, int64_t t_ns, int64_t raw)
{
    size_t last = p->n - 1;
    if (!p->gauge)
        return counter_sum(p->last_j, raw, p->scale);
    return gauge_sum(p->last_j, (double)p->raw[last] * p->scale, (double)raw * p->scale,
                     t_ns - p->t_ns[last]);
}

static struct numbers measure(const int64_t *numbers, size_t n)
{
    struct numbers found = {n ? numbers[0] : 0, 0};
    int64_t most = found.least;
    for (size_t i = 1; i < n; i++) {
        found.least = numbers[i] < found.least ? numbers[i] : found.least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    for (uint64_t range = (uint64_t)most - (uint64_t)found.least; range; range >>= 8)
        found.bytes++;
    return found;
}

/* All blocks are full but the last one, once it is known. */
static size_t points_in(const struct nrg_packing *p, size_t block)
{
    return block + 1 < p->n_blocks || !p->n_last ? NRG_POINT_BLOCK : p->n_last;
}

/* Room for a block of numbers, and for what reading the last of them reads beyond it. */
static int make_room(struct bytes *to)
{
    return nrg_reserve(&to->items, &to->cap, to->n + sizeof(int64_t) * NRG_POINT_BLOCK + SLACK, 1);
}

static void pack(struct bytes *to, const int64_t *numbers, size_t n, struct numbers as)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t above = htole64((uint64_t)numbers[i] - (uint64_t)as.least);
        memcpy(to->items + to->n, &above, sizeof above); /* the next one overwrites the rest */
        to->n += as.bytes;
    }
}

/* The block of that number of the channel that this one is packed like, if it has these times. */
static const struct block *same_times(const struct nrg_packing *p, const struct block *block,
                                      const uint8_t *times, size_t n_bytes)
{
    const struct nrg_packing *like = p->like;
    if (!like || like->n_blocks <= p->n_blocks)
        return NULL;
    const struct block *other = &like->blocks[p->n_blocks];
    size_t n = points_in(like, p->n_blocks);
    bool same = n == p->n && other->first_ns == block->first_ns &&
                other->least_apart_ns == block->least_apart_ns &&
                other->time_bytes == block->time_bytes && (other->lent || !like->lent);
    return same && !memcmp(p->lent->bytes.items + other->times_at, times, n_bytes) ? other : NULL;
}

/* Packs them where they would be, and takes them back when they are there already. */
static int pack_times(struct nrg_packing *p, struct block *block)
{
    struct bytes *to = &p->times->bytes;
    int64_t apart_ns[NRG_POINT_BLOCK] = {0}; /* a block of one point has none */
    size_t n = p->n - 1, at = to->n;
    for (size_t i = 0; i < n; i++)
        apart_ns[i] = p->t_ns[i + 1] - p->t_ns[i];
    struct numbers as = measure(apart_ns, n);
    if (make_room(to))
        return -ENOMEM;
    pack(to, apart_ns, n, as);
    block->least_apart_ns = as.least;
    block->time_bytes = as.bytes;
    const struct block *same = same_times(p, block, to->items + at, to->n - at);
    block->lent = same != NULL;
    block->times_at = same ? same->times_at : at;
    to->n = same ? at : to->n;
    return 0;
}

static int pack_values(struct nrg_packing *p, struct block *block)
{
    const int64_t *values = p->gauge ? p->raw : p->raw + 1;
    size_t n = p->gauge ? p->n : p->n - 1;
    struct numbers as = measure(values, n);
    block->at = p->bytes.n;
    block->least_value = as.least;
    block->value_bytes = as.bytes;
    block->gaps = memchr(p->gap, true, p->n) != NULL;
    if (make_room(&p->bytes))
        return -ENOMEM;
    if (block->gaps) {
        memcpy(p->bytes.items + p->bytes.n, p->gap, sizeof p->gap);
        p->bytes.n += sizeof p->gap;
        if (make_room(&p->bytes))
            return -ENOMEM;
    }
    pack(&p->bytes, values, n, as);
    return 0;
}

static int seal_block(struct nrg_packing *p)
{
    struct block block = {.first_ns = p->t_ns[0], .first_j = p->first_j};
    int rc = pack_times(p, &block);
    rc = rc ? rc : pack_values(p, &block);
    return rc ? rc : nrg_append(&p->blocks, &p->n_blocks, &p->cap_blocks, &block, sizeof block);
}

int nrg_packed_add(struct nrg_packed *points, int64_t t_ns, int64_t raw, bool gap)
{
    struct nrg_packing *p = points->own;
    size_t n = p->n;
    double sum_j = n && !gap ? next_sum(p, t_ns, raw) : p->last_j;
    if (n)
        p->gap[n - 1] = gap;
    if (n == NRG_POINT_BLOCK) {
        int rc = seal_block(p);
        if (rc)
            return rc;
        n = 0;
    }
    if (!n)
        p->first_j = sum_j;
    p->t_ns[n] = t_ns;
    p->raw[n] = raw;
    p->gap[n] = false;
    p->n = n + 1;
    p->last_j = sum_j;
    return 0;
}

/* What the arrays had for growing is given back; keeping it would do no harm. */
static void shrink(void *items, size_t *cap, size_t n, size_t size)
{
    void *old, *new;
    memcpy(&old, items, sizeof old);
    if (n < *cap && (new = realloc(old, n * size))) {
        memcpy(items, &new, sizeof new);
        *cap = n;
    }
}

int nrg_packed_finish(struct nrg_packed *points)
{
    struct nrg_packing *p = points->own;
    int rc = p->n ? seal_block(p) : 0;
    if (rc || !p->n)
        return rc;
    p->n_last = p->n;
    p->like = NULL;
    shrink(&p->blocks, &p->cap_blocks, p->n_blocks, sizeof *p->blocks);
    shrink(&p->bytes.items, &p->bytes.cap, p->bytes.n + SLACK, 1);
    shrink(&p->times->bytes.items, &p->times->bytes.cap, p->times->bytes.n + SLACK, 1);
    return 0;
}

static inline void unpack_wide(const uint8_t *bytes, size_t n, int64_t least, size_t wide,
                               int64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t above;
        memcpy(&above, bytes + i * wide, sizeof above);
        above = le64toh(above) & (UINT64_MAX >> (64 - 8 * wide));
        out[i] = (int64_t)((uint64_t)least + above);
    }
}

/* Widths that are common have a loop of their own. */
static void unpack(const uint8_t *bytes, size_t n, struct numbers as, int64_t *out)
{
    if (as.bytes == 2)
        unpack_wide(bytes, n, as.least, 2, out);
    else if (as.bytes == 3)
        unpack_wide(bytes, n, as.least, 3, out);
    else if (as.bytes)
        unpack_wide(bytes, n, as.least, as.bytes, out);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = as.least;
}

/* Sums of a counter, which moved by `raw` between points. */
static void sum_counter(struct nrg_point_view *v, const int64_t *raw, double scale, size_t n)
{
    double sum_j = v->sum_j[0];
    for (size_t i = 1; i < n; i++) {
        if (!v->gap[i - 1])
            sum_j = counter_sum(sum_j, raw[i - 1], scale);
        v->sum_j[i] = sum_j;
    }
}

static void sum_gauge(struct nrg_point_view *v, const int64_t *raw, double scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v->gauge[i] = (double)raw[i] * scale;
    for (size_t i = 1; i < n; i++)
        v->sum_j[i] = v->gap[i - 1] ? v->sum_j[i - 1]
                                    : gauge_sum(v->sum_j[i - 1], v->gauge[i - 1], v->gauge[i],
                                                v->t_ns[i] - v->t_ns[i - 1]);
}

static void fill_view(const struct nrg_packing *p, const struct block *b, size_t n,
                      struct nrg_point_view *v)
{
    int64_t numbers[NRG_POINT_BLOCK];
    const uint8_t *times = (b->lent ? p->lent : p->times)->bytes.items + b->times_at;
    const uint8_t *values = p->bytes.items + b->at + (b->gaps ? sizeof p->gap : 0);
    memset(v->gap, 0, sizeof v->gap);
    if (b->gaps)
        memcpy(v->gap, p->bytes.items + b->at, sizeof v->gap);
    unpack(times, n - 1, (struct numbers){b->least_apart_ns, b->time_bytes}, numbers);
    v->t_ns[0] = b->first_ns;
    for (size_t i = 1; i < n; i++)
        v->t_ns[i] = v->t_ns[i - 1] + numbers[i - 1];
    unpack(values, p->gauge ? n : n - 1, (struct numbers){b->least_value, b->value_bytes}, numbers);
    v->sum_j[0] = b->first_j;
    if (p->gauge)
        sum_gauge(v, numbers, p->scale, n);
    else
        sum_counter(v, numbers, p->scale, n);
}

const struct nrg_point_view *nrg_packed_unpack(struct nrg_packed *points, size_t block)
{
    struct nrg_packing *p = points->own;
    struct nrg_point_view *v = &p->views[block % NRG_POINT_VIEWS];
    if (v->block != block)
        fill_view(p, &p->blocks[block], points_in(p, block), v);
    v->block = block;
    points->view = v;
    return v;
}

size_t nrg_packed_up_to(struct nrg_packed *points, int64_t t_ns)
{
    const struct nrg_packing *p = points->own;
    size_t begun =
        p->n_blocks ? nrg_count_up_to(&p->blocks[0].first_ns, p->n_blocks, sizeof *p->blocks, t_ns)
                    : 0;
    if (!begun)
        return 0;
    const struct nrg_point_view *v = nrg_packed_unpack(points, begun - 1);
    return (begun - 1) * NRG_POINT_BLOCK +
           nrg_count_up_to(v->t_ns, points_in(p, begun - 1), sizeof *v->t_ns, t_ns);
}
