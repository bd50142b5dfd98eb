/*
 * Matrix products and convolutions in single precision, as nrg calibrate measures them: blocked
 * for the caches, vectorised by the compiler, shared out to a team. Not the fastest there is; what
 * it reaches is printed beside what it costs.
 *
 * Matrices are dense, row by row. Buffers are the caller's. nrg_gemm_room tells how many floats of
 * room a team needs for packed blocks, 64-byte aligned.
 */
#ifndef NRG_CALIBRATE_GEMM_H
#define NRG_CALIBRATE_GEMM_H

#include <stddef.h>

#include "calibrate/team.h"

struct nrg_gemm {
    size_t m, n, k; /* c is m x n, a is m x k, b is k x n */
    const float *a, *b;
    float *c;
};

size_t nrg_gemm_room(const struct nrg_team *team);
/* c = a b. */
void nrg_gemm(struct nrg_team *team, const struct nrg_gemm *gemm, float *room);

/* A convolution of `batch` images: channels x height x width, zeros around, weights out x in x
 * kernel x kernel. */
struct nrg_conv {
    size_t batch, in, height, width, out, kernel, stride, padding;
};
size_t nrg_conv_height(const struct nrg_conv *conv); /* of the result */
size_t nrg_conv_width(const struct nrg_conv *conv);
/* Floats of the columns that one image becomes. */
size_t nrg_conv_columns(const struct nrg_conv *conv);
/* Image by image: columns, then one product. `room` as for a product. */
void nrg_conv(struct nrg_team *team, const struct nrg_conv *conv, const float *input,
              const float *weight, float *output, float *columns, float *room);

#endif
