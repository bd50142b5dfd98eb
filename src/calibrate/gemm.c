/*
 * See gemm.h. The usual three levels: a block of b stays in the second-level cache, a block of a in
 * the first, and a tile of c of 6 x 16 in registers. Both blocks are packed, so that the inner loop
 * reads them in order; edges are padded with zeros and cut when they are written.
 *
 * On x86 the inner loop is compiled for AVX2 and AVX-512 as well, and chosen when it runs.
 * Each member of the team has its own part of the longer side of c, and packs for itself.
 */
#include "calibrate/gemm.h"

#include <stdbool.h>
#include <string.h>

#define TILE_ROWS  6
#define TILE_COLS  16
#define BLOCK_ROWS 96  /* of a: 96 x 256 floats are 96 KB */
#define BLOCK_COLS 240 /* of b: 256 x 240 floats are 240 KB */
#define BLOCK_K    256
#define THIN_COLS  256

typedef void tile_fn(size_t k, const float *a, const float *b, float *tile);

/* The same loop for registers of 4, 8 and 16 floats. */
#define TILE(name, attributes, lanes)                                                              \
    attributes static void name(size_t k, const float *a, const float *b, float *tile)             \
    {                                                                                              \
        typedef float vec __attribute__((vector_size(4 * (lanes)), aligned(4)));                   \
        vec sum[TILE_ROWS][TILE_COLS / (lanes)] = {0};                                             \
        for (size_t p = 0; p < k; p++)                                                             \
            for (int i = 0; i < TILE_ROWS; i++)                                                    \
                for (int j = 0; j < TILE_COLS / (lanes); j++)                                      \
                    sum[i][j] += a[p * TILE_ROWS + (size_t)i] *                                    \
                                 *(const vec *)(b + p * TILE_COLS + (size_t)(j * (lanes)));        \
        memcpy(tile, sum, sizeof sum);                                                             \
    }

TILE(tile_plain, , 4)
#if defined(__x86_64__)
TILE(tile_avx2, __attribute__((target("avx2,fma"))), 8)
TILE(tile_avx512, __attribute__((target("avx512f,avx2,fma"))), 16)
#endif

static tile_fn *choose_tile(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return tile_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return tile_avx2;
#endif
    return tile_plain;
}

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Panels of TILE_ROWS rows, column by column. */
static void pack_a(float *out, const float *a, size_t stride, size_t rows, size_t k)
{
    for (size_t r = 0; r < rows; r += TILE_ROWS) {
        size_t n = smaller_of(TILE_ROWS, rows - r);
        for (size_t p = 0; p < k; p++)
            for (size_t i = 0; i < TILE_ROWS; i++)
                *out++ = i < n ? a[(r + i) * stride + p] : 0;
    }
}

/* Panels of TILE_COLS columns, row by row. */
static void pack_b(float *out, const float *b, size_t stride, size_t k, size_t cols)
{
    for (size_t c = 0; c < cols; c += TILE_COLS) {
        size_t n = smaller_of(TILE_COLS, cols - c);
        for (size_t p = 0; p < k; p++, out += TILE_COLS) {
            memcpy(out, b + p * stride + c, n * sizeof *out);
            memset(out + n, 0, (TILE_COLS - n) * sizeof *out);
        }
    }
}

static void write_tile(float *c, size_t stride, const float *tile, size_t rows, size_t cols,
                       bool add)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            c[i * stride + j] = tile[i * TILE_COLS + j] + (add ? c[i * stride + j] : 0);
}

/* Everything of one pair of packed blocks. */
static void multiply_blocks(const float *a, const float *b, float *c, size_t stride, size_t rows,
                            size_t cols, size_t k, bool add, tile_fn *tile)
{
    float made[TILE_ROWS * TILE_COLS];
    for (size_t j = 0; j < cols; j += TILE_COLS)
        for (size_t i = 0; i < rows; i += TILE_ROWS) {
            tile(k, a + i * k, b + j * k, made);
            write_tile(c + i * stride + j, stride, made, smaller_of(TILE_ROWS, rows - i),
                       smaller_of(TILE_COLS, cols - j), add);
        }
}

/* Fewer rows than a tile: b is read once, as it lies, and packing would cost more than it saves. */
static void thin_part(const struct nrg_gemm *g, size_t col0, size_t col1)
{
    for (size_t j = col0; j < col1; j += THIN_COLS) {
        size_t cols = smaller_of(THIN_COLS, col1 - j);
        float sum[TILE_ROWS][THIN_COLS] = {0};
        for (size_t p = 0; p < g->k; p++)
            for (size_t i = 0; i < g->m; i++) {
                const float *b = g->b + p * g->n + j;
                float a = g->a[i * g->k + p];
                for (size_t c = 0; c < cols; c++)
                    sum[i][c] += a * b[c];
            }
        for (size_t i = 0; i < g->m; i++)
            memcpy(g->c + i * g->n + j, sum[i], cols * sizeof(float));
    }
}

#define ROOM_A (BLOCK_ROWS * BLOCK_K)
#define ROOM_B (BLOCK_COLS * BLOCK_K)

/* The part of c from row0, col0 on. */
static void multiply_part(const struct nrg_gemm *g, size_t row0, size_t row1, size_t col0,
                          size_t col1, float *room, tile_fn *tile)
{
    float *packed_a = room, *packed_b = room + ROOM_A;
    for (size_t j = col0; j < col1; j += BLOCK_COLS)
        for (size_t p = 0; p < g->k; p += BLOCK_K) {
            size_t cols = smaller_of(BLOCK_COLS, col1 - j), k = smaller_of(BLOCK_K, g->k - p);
            pack_b(packed_b, g->b + p * g->n + j, g->n, k, cols);
            for (size_t i = row0; i < row1; i += BLOCK_ROWS) {
                size_t rows = smaller_of(BLOCK_ROWS, row1 - i);
                pack_a(packed_a, g->a + i * g->k + p, g->k, rows, k);
                multiply_blocks(packed_a, packed_b, g->c + i * g->n + j, g->n, rows, cols, k, p > 0,
                                tile);
            }
        }
}

struct job {
    const struct nrg_gemm *gemm;
    float *room;
    tile_fn *tile;
};

static void gemm_member(void *arg, unsigned at, unsigned n)
{
    const struct job *job = arg;
    const struct nrg_gemm *g = job->gemm;
    size_t begin, end;
    float *room = job->room + at * (size_t)(ROOM_A + ROOM_B);
    bool thin = g->m < TILE_ROWS, by_rows = !thin && g->m >= g->n;
    nrg_team_part(by_rows ? g->m : g->n, by_rows ? TILE_ROWS : TILE_COLS, at, n, &begin, &end);
    if (thin)
        thin_part(g, begin, end);
    else if (by_rows)
        multiply_part(g, begin, end, 0, g->n, room, job->tile);
    else
        multiply_part(g, 0, g->m, begin, end, room, job->tile);
}

size_t nrg_gemm_room(const struct nrg_team *team)
{
    return nrg_team_size(team) * (size_t)(ROOM_A + ROOM_B);
}

void nrg_gemm(struct nrg_team *team, const struct nrg_gemm *gemm, float *room)
{
    struct job job = {gemm, room, choose_tile()};
    nrg_team_run(team, gemm_member, &job);
}

/* ---- convolutions ---- */

size_t nrg_conv_height(const struct nrg_conv *c)
{
    return (c->height + 2 * c->padding - c->kernel) / c->stride + 1;
}

size_t nrg_conv_width(const struct nrg_conv *c)
{
    return (c->width + 2 * c->padding - c->kernel) / c->stride + 1;
}

size_t nrg_conv_columns(const struct nrg_conv *c)
{
    return c->in * c->kernel * c->kernel * nrg_conv_height(c) * nrg_conv_width(c);
}

struct columns {
    const struct nrg_conv *conv;
    const float *image;
    float *out;
};

/* One row of the columns: a channel, and a place in the kernel, over all places of the image. */
static void column_row(const struct columns *job, size_t row)
{
    const struct nrg_conv *c = job->conv;
    size_t x0 = row % c->kernel, y0 = row / c->kernel % c->kernel, high = nrg_conv_height(c);
    size_t wide = nrg_conv_width(c);
    const float *channel = job->image + row / c->kernel / c->kernel * c->height * c->width;
    float *out = job->out + row * high * wide;
    for (size_t y = 0; y < high; y++)
        for (size_t x = 0; x < wide; x++) {
            size_t from_y = y * c->stride + y0, from_x = x * c->stride + x0;
            bool inside = from_y >= c->padding && from_x >= c->padding &&
                          from_y - c->padding < c->height && from_x - c->padding < c->width;
            *out++ = inside ? channel[(from_y - c->padding) * c->width + from_x - c->padding] : 0;
        }
}

static void columns_member(void *arg, unsigned at, unsigned n)
{
    const struct columns *job = arg;
    size_t begin, end;
    nrg_team_part(job->conv->in * job->conv->kernel * job->conv->kernel, 1, at, n, &begin, &end);
    for (size_t row = begin; row < end; row++)
        column_row(job, row);
}

void nrg_conv(struct nrg_team *team, const struct nrg_conv *c, const float *input,
              const float *weight, float *output, float *columns, float *room)
{
    size_t places = nrg_conv_height(c) * nrg_conv_width(c);
    for (size_t i = 0; i < c->batch; i++) {
        struct columns job = {c, input + i * c->in * c->height * c->width, columns};
        nrg_team_run(team, columns_member, &job);
        const struct nrg_gemm gemm = {.m = c->out,
                                      .n = places,
                                      .k = c->in * c->kernel * c->kernel,
                                      .a = weight,
                                      .b = columns,
                                      .c = output + i * c->out * places};
        nrg_gemm(team, &gemm, room);
    }
}
