/*
 * Inside of the shape inference: what the files of rules share. A rule gets an operator whose
 * inputs have their best known types and sets the types of its outputs by onnx_out; it returns 0
 * (also when it learned nothing) or -ENOMEM. Dimensions that cannot be known stay NRG_DIM_UNKNOWN,
 * symbolic ones are handed on where a dimension is copied. A node whose shapes contradict each
 * other is counted by onnx_contradiction and its outputs stay unknown.
 */
#ifndef NRG_GRAPH_ONNX_SHAPES_H
#define NRG_GRAPH_ONNX_SHAPES_H

#include "graph/onnx/internal.h"

struct onnx_shape {
    int rank; /* -1 unknown */
    int64_t d[ONNX_MAX_RANK];
};

typedef int onnx_rule_fn(struct onnx *x, struct nrg_op *op, int arg);
struct onnx_rule {
    const char *kind;
    onnx_rule_fn *infer;
    int arg;
};

/* Inputs: is it given; its shape (false: rank unknown), dtype, contents (NULL: unknown). */
bool onnx_has(const struct nrg_op *op, size_t i);
bool onnx_in(const struct nrg_op *op, size_t i, struct onnx_shape *shape);
enum nrg_dtype onnx_in_dtype(const struct nrg_op *op, size_t i);
const struct onnx_known *onnx_in_known(const struct onnx *x, const struct nrg_op *op, size_t i);

/* Attributes, with a default. */
int64_t onnx_int(const struct nrg_op *op, const char *name, int64_t otherwise);
const char *onnx_str(const struct nrg_op *op, const char *name, const char *otherwise);
bool onnx_is(const struct nrg_op *op, const char *type); /* of domain "" or any other */
/*
 * A list that is attribute `name` or (newer opsets) integer input `i`, whichever is there. How
 * many, 0 too when it is empty; -1 not given; -2 given but not known.
 */
int onnx_list(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i,
              int64_t *out, int max);

/* Sets an output's type, joined with what the file declares. */
int onnx_out(struct onnx *x, struct nrg_op *op, size_t i, enum nrg_dtype dtype,
             const struct onnx_shape *shape);
int onnx_contradiction(struct onnx *x, const struct nrg_op *op);

/* Arithmetic of dimensions: unknown when one side is, or when it does not fit. */
int64_t onnx_dim_mul(int64_t a, int64_t b);
int64_t onnx_dim_add(int64_t a, int64_t b);
/* The dimension of two that must be equal or 1; *bad when they cannot be. */
int64_t onnx_dim_broadcast(int64_t a, int64_t b, bool *bad);
bool onnx_broadcast(struct onnx_shape *into, const struct onnx_shape *other);
/* Negative axes count from the end; false: out of range. */
bool onnx_axis(int64_t axis, int rank, int *out);
struct onnx_shape onnx_unknown_dims(int rank);

/* Contents of a tensor: a dimension as an element and back. */
int64_t onnx_element(int64_t dim);
int64_t onnx_dim(int64_t element);
bool onnx_element_known(int64_t element);
/* New contents for output i; ints or floats, NULL: out of memory. */
int onnx_know_ints(struct onnx *x, const struct nrg_op *op, size_t i, const int64_t *v, size_t n);
int onnx_know_floats(struct onnx *x, const struct nrg_op *op, size_t i, const double *v, size_t n);

/* onnx_fold.c: contents of outputs that follow from contents of inputs. */
int onnx_fold(struct onnx *x, struct nrg_op *op);
/* onnx_fold_move.c */
onnx_rule_fn onnx_fold_same, onnx_fold_transpose, onnx_fold_expand, onnx_fold_concat,
    onnx_fold_gather, onnx_fold_slice, onnx_fold_split, onnx_fold_nonzero;

/* onnx_einsum.c: the output's shape, and what it multiplies: the product of all extents. */
bool onnx_einsum_shape(const char *equation, const struct onnx_shape *in, size_t n,
                       struct onnx_shape *out, int64_t *product);

/* The rules, by file; the table of who uses which is in onnx_rules.c. */
onnx_rule_fn onnx_rule_same, onnx_rule_cast, onnx_rule_broadcast, onnx_rule_compare,
    onnx_rule_where, onnx_rule_matmul, onnx_rule_gemm, onnx_rule_matmul_nbits, onnx_rule_reduce,
    onnx_rule_arg, onnx_rule_topk, onnx_rule_einsum, onnx_rule_predicate, onnx_rule_det; /* math */
onnx_rule_fn onnx_rule_conv, onnx_rule_conv_transpose, onnx_rule_pool, onnx_rule_global_pool,
    onnx_rule_resize, onnx_rule_depth, onnx_rule_roi, onnx_rule_grid_sample, onnx_rule_unpool,
    onnx_rule_col2im; /* conv */
onnx_rule_fn onnx_rule_reshape, onnx_rule_flatten, onnx_rule_transpose, onnx_rule_squeeze,
    onnx_rule_unsqueeze, onnx_rule_expand, onnx_rule_tile, onnx_rule_pad; /* layout */
onnx_rule_fn onnx_rule_concat, onnx_rule_split, onnx_rule_slice, onnx_rule_gather,
    onnx_rule_gather_nd, onnx_rule_gather_elements, onnx_rule_nonzero, onnx_rule_compress,
    onnx_rule_crop; /* pick */
onnx_rule_fn onnx_rule_constant, onnx_rule_shape, onnx_rule_size, onnx_rule_constant_of_shape,
    onnx_rule_range, onnx_rule_one_hot, onnx_rule_random, onnx_rule_random_like, onnx_rule_quantize,
    onnx_rule_dequantize, onnx_rule_dynamic_quantize, onnx_rule_qlinear, onnx_rule_unique,
    onnx_rule_nms, onnx_rule_window, onnx_rule_multinomial; /* make */
onnx_rule_fn onnx_rule_norm, onnx_rule_batch_norm, onnx_rule_dropout, onnx_rule_rnn,
    onnx_rule_attention, onnx_rule_ms_attention, onnx_rule_ms_mha, onnx_rule_embed_norm; /* nn */
onnx_rule_fn onnx_rule_if, onnx_rule_loop, onnx_rule_scan, onnx_rule_sequence,
    onnx_rule_at; /* control */

#endif
