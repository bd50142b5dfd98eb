/*
 * See points.h. Sizes of products are squares and those of transformers, convolutions are those of
 * ResNet-50 and MobileNet; what --quick leaves out stands in the tables. Streams have two working
 * sets per cache level, at a quarter and at three fifths of it, so that neither the level below
 * nor its own edge matters; the last two are twice and four times the last cache.
 */
#include "calibrate/points.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ALIGN 64

const char *const nrg_point_families[NRG_POINT_FAMILIES] = {"gemm", "conv", "stream"};

static const char *const stream_kinds[NRG_STREAM_KINDS] = {"aten::sum", "aten::fill_",
                                                           "aten::copy_", "aten::add"};

static const struct {
    size_t m, n, k;
    bool quick;
} gemms[] = {
    {64, 64, 64, true},      {96, 96, 96, false},     {128, 128, 128, true},
    {192, 192, 192, false},  {256, 256, 256, true},   {384, 384, 384, false},
    {512, 512, 512, true},   {768, 768, 768, false},  {1024, 1024, 1024, false},
    {1, 1024, 1024, true},   {8, 1024, 4096, false},  {128, 768, 768, true},
    {128, 3072, 768, false}, {512, 768, 3072, false},
};

static const struct {
    struct nrg_conv conv; /* batch, in, height, width, out, kernel, stride, padding */
    bool quick;
} convs[] = {
    {{1, 3, 224, 224, 64, 7, 2, 3}, false}, {{1, 64, 56, 56, 64, 3, 1, 1}, true},
    {{1, 256, 56, 56, 64, 1, 1, 0}, false}, {{1, 128, 28, 28, 128, 3, 1, 1}, false},
    {{1, 512, 14, 14, 512, 1, 1, 0}, true}, {{1, 256, 14, 14, 256, 3, 1, 1}, true},
    {{1, 512, 7, 7, 512, 3, 1, 1}, false},  {{4, 128, 28, 28, 128, 3, 1, 1}, false},
    {{4, 64, 56, 56, 128, 3, 2, 1}, false},
};

static struct nrg_point *add_point(struct nrg_points *points, enum nrg_point_family family,
                                   const char *kind)
{
    if (nrg_reserve(&points->items, &points->cap, points->n + 1, sizeof *points->items))
        return NULL;
    struct nrg_point *p = &points->items[points->n++];
    *p = (struct nrg_point){.family = family, .kind = kind, .level = ""};
    return p;
}

static int add_gemms(struct nrg_points *points, bool quick)
{
    for (size_t i = 0; i < sizeof gemms / sizeof *gemms; i++) {
        if (quick && !gemms[i].quick)
            continue;
        struct nrg_point *p = add_point(points, NRG_POINT_GEMM, "aten::mm");
        if (!p)
            return -ENOMEM;
        p->m = gemms[i].m;
        p->n = gemms[i].n;
        p->k = gemms[i].k;
        snprintf(p->name, sizeof p->name, "%zu x %zu x %zu", p->m, p->n, p->k);
        p->macs = (double)p->m * (double)p->n * (double)p->k;
        p->read_bytes = 4.0 * (double)(p->m * p->k + p->k * p->n);
        p->written_bytes = 4.0 * (double)(p->m * p->n);
    }
    return 0;
}

static int add_convs(struct nrg_points *points, bool quick)
{
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        if (quick && !convs[i].quick)
            continue;
        struct nrg_point *p = add_point(points, NRG_POINT_CONV, "aten::conv2d");
        if (!p)
            return -ENOMEM;
        const struct nrg_conv *c = &convs[i].conv;
        p->conv = *c;
        snprintf(p->name, sizeof p->name, "%zux%zux%zux%zu to %zu, %zux%zu/%zu", c->batch, c->in,
                 c->height, c->width, c->out, c->kernel, c->kernel, c->stride);
        size_t weights = c->out * c->in * c->kernel * c->kernel;
        size_t places = c->batch * nrg_conv_height(c) * nrg_conv_width(c);
        p->macs = (double)places * (double)weights;
        p->read_bytes = 4.0 * (double)(c->batch * c->in * c->height * c->width + weights);
        p->written_bytes = 4.0 * (double)(places * c->out);
    }
    return 0;
}

/* ---- streams ---- */

static int add_streams_of(struct nrg_points *points, double set_bytes, const char *level,
                          const struct nrg_points_options *o)
{
    for (int kind = 0; kind < NRG_STREAM_KINDS; kind++) {
        enum nrg_stream_kind stream = (enum nrg_stream_kind)kind;
        if (o->quick && stream != NRG_STREAM_READ && stream != NRG_STREAM_COPY)
            continue;
        size_t step = ALIGN * (size_t)o->threads * nrg_stream_arrays(stream);
        size_t steps = (size_t)(set_bytes / (double)step);
        struct nrg_point *p = add_point(points, NRG_POINT_STREAM, stream_kinds[kind]);
        if (!p)
            return -ENOMEM;
        p->stream = stream;
        p->level = level;
        p->set_bytes = (steps ? steps : 1) * step;
        double array = (double)p->set_bytes / nrg_stream_arrays(stream);
        unsigned reads = nrg_stream_reads(stream);
        p->read_bytes = reads * array;
        p->written_bytes = (nrg_stream_arrays(stream) - reads) * array;
        bool small = set_bytes < 2 << 20;
        snprintf(p->name, sizeof p->name, "%s, %.0f %s", nrg_stream_names[kind],
                 (double)p->set_bytes / (small ? 1024 : 1048576), small ? "KB" : "MB");
    }
    return 0;
}

static int add_streams(struct nrg_points *points, const struct nrg_caches *caches,
                       const struct nrg_points_options *o)
{
    static const char *const names[] = {"", "L1", "L2", "L3", "L4"};
    double below = 0, last = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < caches->n; i++) {
        double share = nrg_cache_share(&caches->levels[i], o->threads) * o->threads;
        /* A set that largely fits into the level below would not measure this one. */
        if (!o->quick && 0.25 * share > 1.5 * below)
            rc = add_streams_of(points, 0.25 * share, names[caches->levels[i].level], o);
        if (!rc && 0.6 * share > 1.2 * below)
            rc = add_streams_of(points, 0.6 * share, names[caches->levels[i].level], o);
        below = last = share;
    }
    double most = (double)o->memory_bytes;
    points->memory_short = most < 2 * last;
    if (!rc && !o->quick && 2 * last <= most)
        rc = add_streams_of(points, 2 * last, "memory", o);
    if (!rc && 2 * last <= most)
        rc = add_streams_of(points, 4 * last < most ? 4 * last : most, "memory", o);
    return rc;
}

int nrg_points_make(struct nrg_points *points, const struct nrg_caches *caches,
                    const struct nrg_points_options *o)
{
    static const struct nrg_caches usual = {
        .levels = {{1, 32 << 10, 1}, {2, 512 << 10, 1}, {3, 32 << 20, 64}}, .n = 3};
    *points = (struct nrg_points){.caches_assumed = !caches->n};
    int rc = o->families[NRG_POINT_GEMM] ? add_gemms(points, o->quick) : 0;
    if (!rc && o->families[NRG_POINT_CONV])
        rc = add_convs(points, o->quick);
    if (!rc && o->families[NRG_POINT_STREAM])
        rc = add_streams(points, caches->n ? caches : &usual, o);
    if (rc)
        nrg_points_release(points);
    return rc;
}

void nrg_points_release(struct nrg_points *points)
{
    free(points->items);
    *points = (struct nrg_points){0};
}

/* ---- workloads ---- */

/* Small numbers of both signs: no denormals, no infinities, however often they are multiplied. */
static void fill_values(float *values, size_t n)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) / (float)(1u << 24) - 0.5f;
    }
}

/* Floats of each buffer: a, b, c, columns, room. */
static void buffer_sizes(const struct nrg_point *p, const struct nrg_team *team, size_t out[5])
{
    size_t array = p->set_bytes / sizeof(float);
    memset(out, 0, 5 * sizeof *out);
    switch (p->family) {
    case NRG_POINT_GEMM:
        out[0] = p->m * p->k;
        out[1] = p->k * p->n;
        out[2] = p->m * p->n;
        break;
    case NRG_POINT_CONV:
        out[0] = p->conv.batch * p->conv.in * p->conv.height * p->conv.width;
        out[1] = p->conv.out * p->conv.in * p->conv.kernel * p->conv.kernel;
        out[2] = p->conv.batch * p->conv.out * nrg_conv_height(&p->conv) * nrg_conv_width(&p->conv);
        out[3] = nrg_conv_columns(&p->conv);
        break;
    default:
        for (unsigned i = 0; i < nrg_stream_arrays(p->stream); i++)
            out[i] = array / nrg_stream_arrays(p->stream);
    }
    out[4] = p->family == NRG_POINT_STREAM ? 0 : nrg_gemm_room(team);
}

int nrg_workload_open(struct nrg_workload *w, const struct nrg_point *point, struct nrg_team *team,
                      struct nrg_error *err)
{
    size_t n[5], total = 0;
    float **buffers[5] = {&w->a, &w->b, &w->c, &w->columns, &w->room};
    *w = (struct nrg_workload){.point = point, .team = team};
    buffer_sizes(point, team, n);
    for (int i = 0; i < 5; i++) {
        n[i] = (n[i] + ALIGN - 1) / ALIGN * ALIGN;
        total += n[i];
    }
    w->memory = aligned_alloc(4096, (total * sizeof(float) + 4095) / 4096 * 4096);
    if (!w->memory)
        return nrg_fail(err, -ENOMEM, point->name, "no memory for %zu MB", total >> 18);
    fill_values(w->memory, total);
    float *at = w->memory;
    for (int i = 0; i < 5; i++) {
        *buffers[i] = n[i] ? at : NULL;
        at += n[i];
    }
    return 0;
}

void nrg_workload_run(struct nrg_workload *w, unsigned calls)
{
    const struct nrg_point *p = w->point;
    const struct nrg_gemm gemm = {.m = p->m, .n = p->n, .k = p->k, .a = w->a, .b = w->b, .c = w->c};
    struct nrg_stream stream = {
        .kind = p->stream, .passes = calls, .a = w->a, .b = w->b, .c = w->c};
    stream.floats = p->set_bytes / sizeof(float) / nrg_stream_arrays(p->stream);
    if (p->family == NRG_POINT_STREAM)
        nrg_stream(w->team, &stream);
    for (unsigned i = 0; p->family == NRG_POINT_GEMM && i < calls; i++)
        nrg_gemm(w->team, &gemm, w->room);
    for (unsigned i = 0; p->family == NRG_POINT_CONV && i < calls; i++)
        nrg_conv(w->team, &p->conv, w->a, w->b, w->c, w->columns, w->room);
}

void nrg_workload_close(struct nrg_workload *w)
{
    free(w->memory);
    *w = (struct nrg_workload){0};
}
