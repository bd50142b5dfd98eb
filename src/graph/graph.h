/*
 * A model in memory: one graph type for all readers (TorchScript text and archives, torch.export,
 * ONNX, TensorRT, parameter files). What a format does not say stays unknown; nothing is guessed
 * here. Everything lives in the model's arena and is freed with it; texts are clean UTF-8 and
 * terminated. Readers fill a model, later passes (module tree, reduction, costs) read it and add
 * their own results beside it. Functions that allocate return -ENOMEM or NULL. One thread at a
 * time.
 *
 *   model
 *     graphs[]      the first is the main one; others are subgraphs, submodules or alternatives
 *       body        a block: inputs, operators in order, outputs
 *         op        kind, inputs, outputs (0..n), attributes, scope, source, nested blocks
 *         value     name, type (tensor: dtype, dims, strides, device), producer
 *     modules[]     the module tree where the file has one: qualified name, class, parameters
 *     params[]      parameters and buffers with shapes; tied ones share `storage`
 *     warnings[]    what was missing or skipped while reading (truncated paste, unknown type…)
 */
#ifndef NRG_GRAPH_GRAPH_H
#define NRG_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum nrg_dtype {
    NRG_DTYPE_UNKNOWN,
    NRG_F64,
    NRG_F32,
    NRG_F16,
    NRG_BF16,
    NRG_F8_E5M2,
    NRG_F8_E4M3FN,
    NRG_F8_E5M2FNUZ,
    NRG_F8_E4M3FNUZ,
    NRG_I64,
    NRG_I32,
    NRG_I16,
    NRG_I8,
    NRG_U64,
    NRG_U32,
    NRG_U16,
    NRG_U8,
    NRG_BOOL,
    NRG_C128,
    NRG_C64,
    NRG_C32,
    NRG_QI8,
    NRG_QU8,
    NRG_QI32,
    NRG_QU4,
    NRG_QU2,
    NRG_I4,
    NRG_U4,
    NRG_BITS,
    NRG_STRING_DTYPE,
    NRG_DTYPES
};

/* A dimension: >= 0 known, NRG_DIM_UNKNOWN, or symbolic (<= -2: symbol number -d). */
#define NRG_DIM_UNKNOWN INT64_C(-1)

enum nrg_type_kind {
    NRG_T_UNKNOWN, /* no type was printed */
    NRG_T_TENSOR,
    NRG_T_INT,
    NRG_T_FLOAT,
    NRG_T_BOOL,
    NRG_T_STRING,
    NRG_T_COMPLEX,
    NRG_T_NUMBER,
    NRG_T_NONE,
    NRG_T_DEVICE,
    NRG_T_LIST,
    NRG_T_TUPLE,
    NRG_T_OPTIONAL,
    NRG_T_DICT,
    NRG_T_UNION,
    NRG_T_FUTURE,
    NRG_T_CLASS, /* `name` is the qualified name */
    NRG_T_OTHER  /* `name` is its text */
};

struct nrg_type {
    enum nrg_type_kind kind;
    enum nrg_dtype dtype;   /* tensors */
    int rank;               /* tensors: -1 unknown */
    int requires_grad;      /* -1 unknown */
    const int64_t *dims;    /* rank of them, or NULL */
    const int64_t *strides; /* rank of them, or NULL when unknown */
    const char *device;     /* "cpu", "cuda:0", or NULL */
    const char *name;       /* class or other types; field names of tuples are not kept */
    const struct nrg_type *const *args; /* list element, tuple members, dict key and value… */
    size_t n_args;
};

struct nrg_op;
struct nrg_block;
struct nrg_graph;

struct nrg_value {
    const char *name;            /* without the % sign */
    const struct nrg_type *type; /* never NULL */
    struct nrg_op *producer;     /* NULL: input of a graph or block */
    uint32_t id;                 /* unique in its graph, dense from 0 */
};

enum nrg_attr_kind {
    NRG_A_INT,
    NRG_A_FLOAT,
    NRG_A_STRING,
    NRG_A_BOOL,
    NRG_A_NONE,
    NRG_A_INTS,
    NRG_A_FLOATS,
    NRG_A_STRINGS,
    NRG_A_TENSOR, /* `tensor` type if known; i[] holds integer elements where they are known */
    NRG_A_GRAPH,  /* `graph` */
    NRG_A_OTHER   /* `s` is the text as written */
};

struct nrg_attr {
    const char *name;
    enum nrg_attr_kind kind;
    size_t n; /* elements of a list */
    int64_t i;
    double f;
    const char *s;
    const int64_t *is;
    const double *fs;
    const char *const *ss;
    const struct nrg_type *tensor;
    const struct nrg_graph *graph;
};

struct nrg_op {
    const char *kind;  /* "aten::linear", "onnx::Conv", "prim::If", "trt::CaskConvolution" */
    const char *label; /* the node's own name where the format has one (ONNX, TensorRT), or NULL */
    struct nrg_value **inputs;
    size_t n_inputs;
    struct nrg_value **outputs;
    size_t n_outputs;
    const struct nrg_attr *attrs;
    size_t n_attrs;
    const char *scope;  /* as written, or NULL */
    const char *module; /* qualified module name from the scope, "" for the root, NULL unknown */
    const char *source; /* "file:line:col", or NULL */
    struct nrg_block **blocks;
    size_t n_blocks;
    struct nrg_block *parent; /* the block it stands in */
    uint32_t id;              /* unique in its graph, in order of appearance from 0 */
    uint32_t line;            /* in the file, 0: unknown */
};

struct nrg_block {
    struct nrg_value **inputs;
    size_t n_inputs;
    struct nrg_op **ops;
    size_t n_ops;
    struct nrg_value **outputs;
    size_t n_outputs;
    struct nrg_op *owner; /* NULL: the graph's body */
};

struct nrg_graph {
    const char *name; /* subgraph or submodule name, "" for the main graph */
    struct nrg_block *body;
    size_t n_values, n_ops; /* in all blocks */
    bool complete;          /* false: the text ended before the graph did */
    uint32_t line;          /* where it begins in the file, 0: unknown */
};

struct nrg_param {
    const char *name; /* "layer1.0.conv1.weight" */
    const struct nrg_type *type;
    bool is_buffer;      /* running_mean and the like: not a parameter */
    bool is_extra;       /* neither for PyTorch (packed int8 weights, plain tensor attributes):
                            is_buffer is true as well, so that parameters stay exact */
    int trainable;       /* 1, 0, -1 unknown */
    const char *storage; /* equal texts and offsets: the same memory (tied weights); NULL unknown */
    int64_t storage_offset; /* in elements: slices of one storage differ here */
    int64_t bytes;          /* as stored, -1 unknown (quantised formats) */
};

struct nrg_module {
    const char *name;       /* qualified, "" for the root */
    const char *class_name; /* without mangling; "" unknown */
};

/* A symbolic dimension: what it is called, and the size it had when the model was exported. */
struct nrg_symbol {
    int64_t dim;      /* as it stands in dims: <= -2 */
    const char *name; /* "s0", "2*s0" */
    int64_t example;  /* -1 unknown */
};

struct nrg_model {
    struct nrg_arena arena;
    const char *format; /* the reader's name */
    struct nrg_graph **graphs;
    size_t n_graphs, cap_graphs;
    struct nrg_module *modules;
    size_t n_modules, cap_modules;
    struct nrg_param *params;
    size_t n_params, cap_params;
    struct nrg_symbol *symbols;
    size_t n_symbols, cap_symbols;
    const char **warnings;
    size_t n_warnings, cap_warnings;
    const char *producer; /* "PyTorch 1.13", NULL unknown */
};

/* A model starts as all zero. */
void nrg_model_release(struct nrg_model *model);

/* Growing lists of a model; 0 or -ENOMEM. */
int nrg_model_add_graph(struct nrg_model *model, struct nrg_graph *graph);
int nrg_model_add_module(struct nrg_model *model, const char *name, const char *class_name);
int nrg_model_add_param(struct nrg_model *model, const struct nrg_param *param);
int nrg_model_add_symbol(struct nrg_model *model, const struct nrg_symbol *symbol);
int nrg_model_warn(struct nrg_model *model, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

const struct nrg_attr *nrg_op_attr(const struct nrg_op *op, const char *name);
/* An integer or text attribute; `otherwise` when there is none of that kind. */
int64_t nrg_op_int(const struct nrg_op *op, const char *name, int64_t otherwise);
const char *nrg_op_text(const struct nrg_op *op, const char *name, const char *otherwise);

const char *nrg_dtype_name(enum nrg_dtype dtype); /* "float32" */
/* "Float", "float32", "F32", "torch.float32"… of all formats; NRG_DTYPE_UNKNOWN otherwise. */
enum nrg_dtype nrg_dtype_from_name(const char *name, size_t len);
/* Bits of one element; 0 unknown. */
unsigned nrg_dtype_bits(enum nrg_dtype dtype);
bool nrg_dtype_is_whole(enum nrg_dtype dtype); /* integers of 8 bits and more, and bool */

/* Elements of a tensor type: -1 when unknown, -2 when the product overflows 63 bits. */
int64_t nrg_type_numel(const struct nrg_type *type);
/* True when the type is or contains a tensor (list, tuple, optional, dict, future, union). */
bool nrg_type_has_tensor(const struct nrg_type *type);

/* The tensor inside an optional, or the type itself. */
const struct nrg_type *nrg_type_plain(const struct nrg_type *type);
/* No kind, no rank, no element type. */
extern const struct nrg_type nrg_type_unknown;

/* A tensor type of known dims in the arena. NULL when out of memory. */
const struct nrg_type *nrg_type_tensor(struct nrg_arena *arena, enum nrg_dtype dtype, int rank,
                                       const int64_t *dims);

#endif
