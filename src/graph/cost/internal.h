/*
 * Private to cost/: the families of rules, the formulas behind their rows (cost.h says what each
 * must fill), and what several formulas share. Nothing here allocates, fails or keeps state.
 */
#ifndef NRG_GRAPH_COST_INTERNAL_H
#define NRG_GRAPH_COST_INTERNAL_H

#include "graph/cost.h"
#include "graph/reduce.h"

struct nrg_cost_family {
    const char *prefix; /* "onnx::" */
    const struct nrg_cost_rule *rules;
    size_t n;
};
extern const struct nrg_cost_family nrg_cost_family_aten;
extern const struct nrg_cost_family nrg_cost_family_prim;
extern const struct nrg_cost_family nrg_cost_family_quantized;
extern const struct nrg_cost_family nrg_cost_family_torchvision;
extern const struct nrg_cost_family nrg_cost_family_onnx;
extern const struct nrg_cost_family nrg_cost_family_microsoft;
extern const struct nrg_cost_family nrg_cost_family_trt;
extern const struct nrg_cost_family nrg_cost_family_layer;
/* cost/table.c: all of them, NULL-terminated. */
extern const struct nrg_cost_family *const nrg_cost_families[];

/* cost/gemm.c */
nrg_cost_fn nrg_cost_linear;
nrg_cost_fn nrg_cost_matmul; /* arg: which operand's last dim is contracted */
nrg_cost_fn nrg_cost_addbmm;
nrg_cost_fn nrg_cost_outer;
nrg_cost_fn nrg_cost_bilinear;
nrg_cost_fn nrg_cost_quantized_linear;
/* cost/einsum.c */
nrg_cost_fn nrg_cost_einsum;
/* `operands`: a list. */
void nrg_cost_einsum_of(const char *text, const struct nrg_arg *operands, struct nrg_cost *cost);
/* cost/conv.c */
nrg_cost_fn nrg_cost_convolution; /* arg: index of `transposed`; -1 never, -2 always */
nrg_cost_fn nrg_cost_conv_tbc;
nrg_cost_fn nrg_cost_quantized_conv; /* arg: 1 transposed */
/* cost/rnn.c */
nrg_cost_fn nrg_cost_rnn; /* arg: gates */
nrg_cost_fn nrg_cost_rnn_cell;
int nrg_cost_gate_flops(int gates); /* beside the products, per hidden unit and step */
/* cost/attention.c */
nrg_cost_fn nrg_cost_attention;
nrg_cost_fn nrg_cost_multi_head_attention;
nrg_cost_fn nrg_cost_encoder_layer;
/* cost/norm.c: norms and pools */
nrg_cost_fn nrg_cost_batch_norm; /* arg: index of `training`, -1 never */
nrg_cost_fn nrg_cost_norm;       /* arg: index of the weight */
nrg_cost_fn nrg_cost_rms_norm;
nrg_cost_fn nrg_cost_max_pool;
nrg_cost_fn nrg_cost_avg_pool;
nrg_cost_fn nrg_cost_adaptive_pool; /* arg: 1 average, 0 maximum */
/* cost/elements.c: element by element, reductions, memory */
nrg_cost_fn nrg_cost_elements; /* arg: FLOPs per output element */
nrg_cost_fn nrg_cost_input;    /* arg: FLOPs per element of input 0 */
nrg_cost_fn nrg_cost_add_sub;
nrg_cost_fn nrg_cost_extreme;
nrg_cost_fn nrg_cost_gelu;
nrg_cost_fn nrg_cost_dropout;
nrg_cost_fn nrg_cost_sort;
nrg_cost_fn nrg_cost_copy;
nrg_cost_fn nrg_cost_index;
nrg_cost_fn nrg_cost_index_put;
nrg_cost_fn nrg_cost_embedding_bag;
nrg_cost_fn nrg_cost_fill; /* arg: 1 writes, 0 only allocates */
nrg_cost_fn nrg_cost_opaque;

/* cost/onnx.c: operands of ONNX stand elsewhere, its numbers are attributes. */
nrg_cost_fn nrg_cost_onnx_conv; /* arg: index of the weight */
nrg_cost_fn nrg_cost_onnx_gemm; /* K by transA; matrix products with transposed operands too */
nrg_cost_fn nrg_cost_onnx_nbits;
nrg_cost_fn nrg_cost_onnx_einsum;
nrg_cost_fn nrg_cost_onnx_rnn;  /* arg: gates */
nrg_cost_fn nrg_cost_onnx_pool; /* arg: 1 average, 0 maximum */
nrg_cost_fn nrg_cost_onnx_resize;
nrg_cost_fn nrg_cost_onnx_take;
nrg_cost_fn nrg_cost_onnx_attention; /* arg: index of past keys, 0 none */
nrg_cost_fn nrg_cost_onnx_self_attention;

/* What several formulas share. */
/* Of the first output; unknown when there is none. */
const struct nrg_type *nrg_cost_output_type(const struct nrg_operator *op);
int64_t nrg_cost_output_numel(const struct nrg_operator *op);
int64_t nrg_cost_output_dim(const struct nrg_operator *op, int dim); /* negative: from the end */
/* Product of the first `n` dimensions of a type without number `without` (-1: with all). */
int64_t nrg_cost_product(const struct nrg_type *type, int n, int without);
/* Product of all dimensions of an argument but its last `but`; unknown for less than a matrix. */
int64_t nrg_cost_leading(const struct nrg_arg *arg, int but);
/* Batch times space of [N, C, space...]. */
int64_t nrg_cost_positions(const struct nrg_type *type);
/* MACs, with 2 FLOPs each added to what is there. */
void nrg_cost_set_macs(struct nrg_cost *cost, int64_t macs);
/* Sets a parameter's type when no file gives it: it follows from the operator's other operands. */
void nrg_cost_infer(const struct nrg_arg *arg, int rank, const int64_t *dims);

/* cost/convention.c: replaces the numbers by those of another counter. */
void nrg_cost_convert(struct nrg_operator *op, enum nrg_convention convention);
/* cost/torchinfo.c: the same for all operators at once, because modules decide. 0 or -ENOMEM. */
int nrg_cost_torchinfo(struct nrg_reduced *reduced);

#endif
