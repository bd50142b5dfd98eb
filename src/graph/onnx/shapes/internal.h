/*
 * Inside of the shape inference: what the files of rules share. A rule computes the types of an
 * operator's outputs from the best known types of its inputs. It finds the first output prepared
 * as a copy of input 0 (with the dtype that the table names) and the others as unknown, and changes
 * what differs. Dimensions that cannot be known stay NRG_DIM_UNKNOWN, symbolic ones are passed on
 * where a dimension is copied. Everything that is allocated belongs to the model's arena; results
 * are 0 or a negative errno, with the reader's error filled.
 */
#ifndef NRG_GRAPH_ONNX_SHAPES_INTERNAL_H
#define NRG_GRAPH_ONNX_SHAPES_INTERNAL_H

#include "graph/onnx/internal.h"

struct onnx_shape {
    int rank; /* -1 unknown */
    enum nrg_dtype dtype;
    int64_t d[ONNX_MAX_RANK];
};

#define ONNX_RULE_OUTPUTS 5 /* outputs that a rule can describe; BatchNormalization has most */
#define ONNX_DONE         1 /* a rule's result: the outputs' types stay as they are now */

/* 0: the outputs get the types in `out`; ONNX_DONE; or a negative errno. */
typedef int onnx_rule_fn(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out);

/* Inputs: is it given; its shape (false: rank unknown), dtype, contents (NULL: unknown). */
bool onnx_has(const struct nrg_op *op, size_t i);
bool onnx_in(const struct nrg_op *op, size_t i, struct onnx_shape *shape);
enum nrg_dtype onnx_in_dtype(const struct nrg_op *op, size_t i);
const struct onnx_known *onnx_in_known(const struct onnx *x, const struct nrg_op *op, size_t i);
bool onnx_shape_of(const struct nrg_value *value, struct onnx_shape *shape);

bool onnx_is(const struct nrg_op *op, const char *type); /* of domain "" or any other */
/* The dtype that an attribute names by ONNX's code. */
enum nrg_dtype onnx_attr_dtype(const struct nrg_op *op, const char *name, int64_t otherwise);
/*
 * A list that is attribute `name` or (newer opsets) integer input `i`, whichever is there. Returns
 * the number of elements (0: an empty list), -1 when it is not given, -2 when it is given but not
 * known.
 */
int onnx_list(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i,
              int64_t *out, int max);
/* A list of one element as a dimension; NRG_DIM_UNKNOWN when it is not known. */
int64_t onnx_one_dim(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i);
/*
 * The same for a list of dimensions. False when the list is not known: then the rank is the length
 * of input `i`, or -1.
 */
bool onnx_list_dims(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i,
                    struct onnx_shape *shape);

/* Sets an output's type, or any value's, joined with what the file declares. */
int onnx_out(struct onnx *x, struct nrg_op *op, size_t i, const struct onnx_shape *shape);
int onnx_set_shape(struct onnx *x, struct nrg_value *value, const struct onnx_shape *shape);
/* Counts a node whose shapes contradict each other. ONNX_DONE: its outputs stay as declared. */
int onnx_contradiction(struct onnx *x, const struct nrg_op *op);

/* Arithmetic of dimensions: unknown when one side is, or when it does not fit. */
int64_t onnx_dim_mul(int64_t a, int64_t b);
int64_t onnx_dim_add(int64_t a, int64_t b);
int64_t onnx_dim_div(int64_t a, int64_t b); /* rounded down; unknown for b < 1 */
int64_t onnx_elements(const struct onnx_shape *shape);
/* The dimension of two that must be equal or 1; *bad when they cannot be. */
int64_t onnx_dim_broadcast(int64_t a, int64_t b, bool *bad);
bool onnx_broadcast(struct onnx_shape *into, const struct onnx_shape *other);
/* Negative axes count from the end; false: out of range. */
bool onnx_axis(int64_t axis, int rank, int *out);
/* All dimensions become unknown; the dtype stays. */
void onnx_unknown_dims(struct onnx_shape *shape, int rank);

/* Contents of a tensor: a dimension as an element and back. */
int64_t onnx_element(int64_t dim);
int64_t onnx_dim(int64_t element);
bool onnx_element_known(int64_t element);
/* New contents for output i, when there is such an output. */
int onnx_know_ints(struct onnx *x, const struct nrg_op *op, size_t i, const int64_t *v, size_t n);
int onnx_know_floats(struct onnx *x, const struct nrg_op *op, size_t i, const double *v, size_t n);

/* shapes/fold.c: contents of outputs that follow from contents of inputs. */
int onnx_fold(struct onnx *x, struct nrg_op *op);
typedef int onnx_fold_fn(struct onnx *x, struct nrg_op *op, int what);
/* shapes/fold_move.c */
onnx_fold_fn onnx_fold_same, onnx_fold_transpose, onnx_fold_expand, onnx_fold_concat,
    onnx_fold_gather, onnx_fold_slice, onnx_fold_split, onnx_fold_nonzero;

/*
 * shapes/undo.c: takes back what an inference of a block has set, so that it can be done again with
 * other types of the block's inputs. The notes live in the model's arena.
 */
struct onnx_undo {
    struct onnx_noted *notes; /* in the order of a walk over the block */
    size_t n, cap;
    size_t n_conflicts, n_broken;
};
int onnx_undo_begin(struct onnx *x, struct nrg_block *block, struct onnx_undo *undo);
int onnx_undo(struct onnx *x, struct nrg_block *block, struct onnx_undo *undo);

/* shapes/einsum.c: the output's shape by the equation; false when it does not fit the inputs. */
bool onnx_einsum_shape(const char *equation, const struct onnx_shape *in, size_t n,
                       struct onnx_shape *out);

/* The rules, by file; shapes/table.c says which operator uses which. */
onnx_rule_fn onnx_rule_cast, onnx_rule_broadcast, onnx_rule_matmul, onnx_rule_gemm,
    onnx_rule_matmul_nbits, onnx_rule_reduce, onnx_rule_arg, onnx_rule_topk, onnx_rule_einsum,
    onnx_rule_det; /* math */
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
