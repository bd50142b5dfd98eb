/*
 * Inside of the ONNX reader: what its files share. The flow is
 *
 *   reader.c    ModelProto: opsets, functions, the main graph; the reader's struct
 *   graph.c     GraphProto and NodeProto into blocks and operators
 *   attr.c      AttributeProto into attributes; metadata
 *   function.c  calls of model-local functions, inlined
 *   order.c     operators in the order of their data
 *   types.c     TypeProto and ValueInfoProto into types; symbolic dimensions
 *   tensor.c    TensorProto into types, parameters and small known contents
 *   names.c     names that are visible to a node
 *   params.c    which initializers are parameters
 *   roles.c     … by their names and readers
 *   scope.c     node names and metadata into module names
 *   shapes/     types of everything else, and contents of small integer tensors
 *
 * The model's arena owns everything that stays; struct onnx owns what is needed only while reading.
 * Functions return 0 or a negative errno with x->err filled. A reader runs in one thread. Field
 * numbers are those of onnx.proto.
 */
#ifndef NRG_GRAPH_ONNX_INTERNAL_H
#define NRG_GRAPH_ONNX_INTERNAL_H

#include "base/map.h"
#include "graph/onnx/protobuf.h"
#include "graph/reader.h"

#define ONNX_MAX_DEPTH 64  /* subgraphs and functions in each other; protobuf allows about 33 */
#define ONNX_MAX_RANK  32  /* of a tensor whose shape we compute with */
#define ONNX_MAX_KNOWN 512 /* elements of a tensor whose contents we follow */

/* Names (bytes in the file) to pointers, in nested scopes. */
struct onnx_entry;
struct onnx_map {
    struct nrg_map newest_of;  /* name -> its newest entry */
    struct onnx_entry *newest; /* in order of adding, for leaving a scope */
    unsigned depth, floor;     /* entries below `floor` cannot be seen (inside a function) */
};

/* Contents of a small tensor in row-major order: integers (or bools), or floats. */
struct onnx_known {
    size_t n;
    const int64_t *i;
    const double *f;
};
/* An element of `i` that is not known, or is the symbolic dimension -k: ONNX_NOT_KNOWN + k. */
#define ONNX_NOT_KNOWN (INT64_MIN / 4 * 3)
#define ONNX_SYMBOLS   (1 << 20)

struct onnx_function {
    struct nrg_pb msg;
    struct nrg_pb_field domain, name, overload;
};

struct onnx_ops { /* a growing list */
    struct nrg_op **ops;
    size_t n, cap;
};

struct onnx {
    const struct nrg_source *source;
    struct nrg_model *model;
    struct nrg_graph *graph;
    struct nrg_error *err;
    struct onnx_map values, texts, symbols, modules;
    struct onnx_function *functions;
    size_t n_functions, cap_functions;
    const struct nrg_op *call; /* of the function that is being inlined, or NULL */
    struct onnx_known **known; /* by value id */
    size_t cap_known;
    const struct nrg_type *unknown;
    struct nrg_value *absent; /* stands for an optional input that is not given */
    int64_t opset;
    unsigned depth, loop_depth, n_symbols;
    bool reordered;
    size_t n_conflicts, n_broken; /* shapes that contradict what the file declares; impossible */
    const char *first_conflict, *first_broken;
};

/* reader.c */
int onnx_broken(struct onnx *x, const struct nrg_pb *msg);
int onnx_no_memory(struct onnx *x);
int onnx_fail(struct onnx *x, const void *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A clean, terminated copy of a text field; NULL: out of memory. */
const char *onnx_text(struct onnx *x, const struct nrg_pb_field *field);
/* The same with one copy for all equal texts. */
const char *onnx_shared(struct onnx *x, const struct nrg_pb_field *field);
/* The last text field of that number; an empty one when there is none. */
struct nrg_pb_field onnx_text_field(struct nrg_pb msg, uint32_t number);
bool onnx_is_default_domain(const struct nrg_pb_field *domain);
bool onnx_text_is(const struct nrg_pb_field *field, const char *text);

/* names.c */
int onnx_map_add(struct onnx *x, struct onnx_map *map, const void *key, size_t len, void *to);
void *onnx_map_get(const struct onnx_map *map, const void *key, size_t len);
/* Only in the innermost scope. */
void *onnx_map_here(const struct onnx_map *map, const void *key, size_t len);
void onnx_map_enter(struct onnx_map *map);
void onnx_map_leave(struct onnx_map *map);
void onnx_map_release(struct onnx_map *map);

/* types.c */
enum nrg_dtype onnx_dtype(uint64_t code);
/* ValueInfoProto: name and type (x->unknown when it has none). */
int onnx_value_info(struct onnx *x, struct nrg_pb msg, struct nrg_pb_field *name,
                    const struct nrg_type **type);

/* tensor.c */
struct onnx_tensor {
    struct nrg_pb_field name;
    const struct nrg_type *type;
    struct onnx_known *known; /* NULL: too big or not numbers */
    int64_t bytes;            /* as stored, -1 unknown */
};
int onnx_tensor(struct onnx *x, struct nrg_pb msg, struct onnx_tensor *out);
int onnx_sparse_tensor(struct onnx *x, struct nrg_pb msg, struct onnx_tensor *out);

/* attr.c: attributes of a node; subgraphs among them become blocks, then_branch first. */
int onnx_attributes(struct onnx *x, struct nrg_pb node, struct nrg_op *op);
/* A value of metadata_props (field `number` of the message) by key; false: none. */
bool onnx_metadata(struct nrg_pb msg, uint32_t number, const char *key, struct nrg_pb_field *out);

/* graph.c */
int onnx_graph(struct onnx *x, struct nrg_pb msg, struct nrg_op *owner, struct nrg_block **out);
int onnx_nodes(struct onnx *x, struct nrg_pb msg, uint32_t number, struct nrg_block *block,
               struct onnx_ops *ops);
/* Values; NULL after an error, which is in x->err. onnx_new_named also makes the name visible. */
struct nrg_value *onnx_new_value(struct onnx *x, const char *name, const struct nrg_type *type);
struct nrg_value *onnx_new_named(struct onnx *x, const struct nrg_pb_field *name,
                                 const struct nrg_type *type);
/* Calls `visit` for the operators of a block and of the blocks inside, until it fails. */
int onnx_each_op(struct nrg_block *block, int (*visit)(void *arg, struct nrg_op *op), void *arg);
int onnx_set_known(struct onnx *x, const struct nrg_value *value, struct onnx_known *known);
struct onnx_known *onnx_get_known(const struct onnx *x, const struct nrg_value *value);
int onnx_add_op(struct onnx *x, struct onnx_ops *list, struct nrg_op *op);

/* function.c */
int onnx_add_function(struct onnx *x, struct nrg_pb msg);
const struct onnx_function *onnx_find_function(const struct onnx *x, struct nrg_pb node);
/* `call` has its inputs, outputs, attributes; the body's operators go to the list. */
int onnx_expand(struct onnx *x, const struct onnx_function *function, struct nrg_op *call,
                struct nrg_block *block, struct onnx_ops *ops);

/* The name of a node for messages: its own, or its first output's. */
const char *onnx_op_name(const struct nrg_op *op);

/* order.c: sorts a block's operators by their data; an error when they form a cycle. */
int onnx_order(struct onnx *x, struct nrg_block *block);

/* scope.c */
int onnx_scopes(struct onnx *x, struct nrg_pb node, struct nrg_op *op);
int onnx_scopes_finish(struct onnx *x);

/* params.c: which initializers are parameters, which share one tensor through Identity. */
int onnx_params(struct onnx *x);
/* roles.c: is_buffer of all of them; `numbers` has each by its name, from 1. */
int onnx_roles(struct onnx *x, struct onnx_map *numbers);
/* A name that an exporter gave to a tensor that is no attribute of a module. */
bool onnx_made_up_name(const char *name);
/* After the modules are known. */
int onnx_params_place(struct onnx *x);

/* shapes/table.c: types of all values of a block, in order. */
int onnx_shapes(struct onnx *x, struct nrg_block *block);

#endif
