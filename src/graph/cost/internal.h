/* The formulas behind the rows of the rule tables; see cost.h for what each must fill. */
#ifndef NRG_GRAPH_COST_RULES_H
#define NRG_GRAPH_COST_RULES_H

#include "graph/cost.h"
#include "graph/reduce.h"

/* cost_gemm.c */
nrg_cost_fn nrg_cost_linear;
nrg_cost_fn nrg_cost_matmul; /* arg: which operand's last dim is contracted */
nrg_cost_fn nrg_cost_addbmm;
nrg_cost_fn nrg_cost_outer;
nrg_cost_fn nrg_cost_bilinear;
nrg_cost_fn nrg_cost_quantized_linear;
/* cost_einsum.c */
nrg_cost_fn nrg_cost_einsum;
/* `operands`: a list. */
void nrg_cost_einsum_of(const char *text, const struct nrg_arg *operands, struct nrg_cost *cost);
/* cost_conv.c */
nrg_cost_fn nrg_cost_convolution; /* arg: index of `transposed`; -1 never, -2 always */
nrg_cost_fn nrg_cost_conv_tbc;
nrg_cost_fn nrg_cost_quantized_conv; /* arg: 1 transposed */
/* cost_rnn.c */
nrg_cost_fn nrg_cost_rnn; /* arg: gates */
nrg_cost_fn nrg_cost_rnn_cell;
/* cost_attention.c */
nrg_cost_fn nrg_cost_attention;
nrg_cost_fn nrg_cost_multi_head_attention;
nrg_cost_fn nrg_cost_encoder_layer;
/* cost_norm.c: norms and pools */
nrg_cost_fn nrg_cost_batch_norm; /* arg: index of `training`, -1 never */
nrg_cost_fn nrg_cost_norm;       /* arg: index of the weight */
nrg_cost_fn nrg_cost_rms_norm;
nrg_cost_fn nrg_cost_max_pool;
nrg_cost_fn nrg_cost_avg_pool;
nrg_cost_fn nrg_cost_adaptive_pool; /* arg: 1 average, 0 maximum */
/* cost_elements.c: element by element, reductions, memory */
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
nrg_cost_fn nrg_cost_embedding;
nrg_cost_fn nrg_cost_embedding_bag;
nrg_cost_fn nrg_cost_fill; /* arg: 1 writes, 0 only allocates */
nrg_cost_fn nrg_cost_opaque;

/* cost_onnx.c: operands of ONNX stand elsewhere, its numbers are attributes. */
nrg_cost_fn nrg_cost_onnx_conv; /* arg: index of the weight */
nrg_cost_fn nrg_cost_onnx_gemm; /* transA tells K; matrix products with transposed operands too */
nrg_cost_fn nrg_cost_onnx_nbits;
nrg_cost_fn nrg_cost_onnx_einsum;
nrg_cost_fn nrg_cost_onnx_rnn;  /* arg: gates */
nrg_cost_fn nrg_cost_onnx_pool; /* arg: 1 average, 0 maximum */
nrg_cost_fn nrg_cost_onnx_resize;
nrg_cost_fn nrg_cost_onnx_take;
nrg_cost_fn nrg_cost_onnx_attention; /* arg: index of past keys, 0 none */
nrg_cost_fn nrg_cost_onnx_self_attention;

/* What several formulas share. */
int64_t nrg_cost_output_numel(const struct nrg_operator *op); /* of the first output */
/* MACs, with 2 FLOPs each added to what is there. */
void nrg_cost_set_macs(struct nrg_cost *cost, int64_t macs);
/* Sets a parameter's type when no file told it: it follows from the operator's other operands. */
void nrg_cost_infer(const struct nrg_arg *arg, int rank, const int64_t *dims);

/* cost_convention.c: replaces the numbers by those of another counter. */
void nrg_cost_convert(struct nrg_operator *op, enum nrg_convention convention);

/* For the test: neighbours that are out of order in all tables. */
size_t nrg_cost_rules_unsorted(void);

#endif
