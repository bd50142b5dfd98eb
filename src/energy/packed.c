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

struct block {
    int64_t first_ns;
    double first_j;
    size_t at; /* of its bytes: gaps, if there are any, then times, then values */
    struct numbers times, values;
    bool gaps;
};

struct nrg_packing {
    bool gauge;
    double scale;
    struct block *blocks;
    size_t n_blocks, cap_blocks;
    uint8_t *bytes;
    size_t n_bytes, cap_bytes;
    /* the block that is being filled */
    size_t n; /* of its points */
    int64_t t_ns[NRG_POINT_BLOCK], raw[NRG_POINT_BLOCK];
    bool gap[NRG_POINT_BLOCK];
    double first_j, last_j; /* sums at its first and last point */
    size_t n_last;          /* points in the last block, once finished */
    struct nrg_point_view views[NRG_POINT_VIEWS];
};

int nrg_packed_init(struct nrg_packed *points, bool gauge, double scale)
{
    struct nrg_packing *p = nrg_calloc(1, sizeof *p);
    *points = (struct nrg_packed){.own = p};
    if (!p)
        return -ENOMEM;
    p->gauge = gauge;
    p->scale = scale;
    for (size_t i = 0; i < NRG_POINT_VIEWS; i++)
        p->views[i].block = SIZE_MAX;
    points->view = p->views;
    return 0;
}

void nrg_packed_release(struct nrg_packed *points)
{
    if (!points->own)
        return;
    free(points->own->blocks);
    free(points->own->bytes);
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

static void pack(struct nrg_packing *p, const int64_t *numbers, size_t n, struct numbers as)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t above = htole64((uint64_t)numbers[i] - (uint64_t)as.least);
        memcpy(p->bytes + p->n_bytes, &above, sizeof above); /* the next one overwrites the rest */
        p->n_bytes += as.bytes;
    }
}

static int seal_block(struct nrg_packing *p)
{
    struct block block = {.first_ns = p->t_ns[0], .first_j = p->first_j, .at = p->n_bytes};
    int64_t apart_ns[NRG_POINT_BLOCK];
    const int64_t *values = p->gauge ? p->raw : p->raw + 1;
    size_t n_values = p->gauge ? p->n : p->n - 1;
    for (size_t i = 1; i < p->n; i++)
        apart_ns[i - 1] = p->t_ns[i] - p->t_ns[i - 1];
    block.gaps = memchr(p->gap, true, p->n) != NULL;
    block.times = measure(apart_ns, p->n - 1);
    block.values = measure(values, n_values);
    size_t most = sizeof p->gap + 2 * sizeof(int64_t) * NRG_POINT_BLOCK + SLACK;
    if (nrg_reserve(&p->bytes, &p->cap_bytes, p->n_bytes + most, 1) ||
        nrg_append(&p->blocks, &p->n_blocks, &p->cap_blocks, &block, sizeof block))
        return -ENOMEM;
    if (block.gaps) {
        memcpy(p->bytes + p->n_bytes, p->gap, sizeof p->gap);
        p->n_bytes += sizeof p->gap;
    }
    pack(p, apart_ns, p->n - 1, block.times);
    pack(p, values, n_values, block.values);
    return 0;
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
    shrink(&p->blocks, &p->cap_blocks, p->n_blocks, sizeof *p->blocks);
    shrink(&p->bytes, &p->cap_bytes, p->n_bytes + SLACK, 1);
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

static size_t points_in(const struct nrg_packing *p, size_t block)
{
    return block + 1 < p->n_blocks ? NRG_POINT_BLOCK : p->n_last;
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
    const uint8_t *times = p->bytes + b->at + (b->gaps ? sizeof p->gap : 0);
    const uint8_t *values = times + (n - 1) * b->times.bytes;
    memset(v->gap, 0, sizeof v->gap);
    if (b->gaps)
        memcpy(v->gap, p->bytes + b->at, sizeof v->gap);
    unpack(times, n - 1, b->times, numbers);
    v->t_ns[0] = b->first_ns;
    for (size_t i = 1; i < n; i++)
        v->t_ns[i] = v->t_ns[i - 1] + numbers[i - 1];
    unpack(values, p->gauge ? n : n - 1, b->values, numbers);
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
