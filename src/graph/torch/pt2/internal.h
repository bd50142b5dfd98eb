/*
 * Inside of the torch.export reader. The program is JSON (schema 8.x): a graph
 * of nodes whose arguments are one-key unions ("as_tensor", "as_ints"…), and a table of every
 * tensor's dtype, sizes and strides. From it a graph is built that looks like TorchScript's:
 * constants and lists are operators of their own, parameters are prim::GetAttr operators.
 *
 *   reader.c  the archive's two layouts, parameters, modules
 *   graph.c   nodes and blocks
 *   calls.c   calls of subgraphs: branches, loops, inlined wrappers
 *   args.c    arguments to values, constants and lists
 *   types.c   dtypes, tensor types, symbolic sizes
 *
 * The model's arena owns the graph; struct nrg_pt2 and the scopes own what is needed only while
 * reading. Results are 0 or a negative errno with pt2->err filled; NULL: out of memory. One thread.
 */
#ifndef NRG_GRAPH_TORCH_PT2_INTERNAL_H
#define NRG_GRAPH_TORCH_PT2_INTERNAL_H

#include <jansson.h>

#include "base/map.h"
#include "graph/graph.h"
#include "graph/param.h"

#define NRG_PT2_DEPTH  64
#define NRG_PT2_GRAPHS 8 /* in one node's arguments */

struct nrg_pt2 {
    struct nrg_model *model;
    const char *where;
    struct nrg_error *err;
    struct nrg_map symbols;  /* expression -> index in model->symbols */
    struct nrg_map modules;  /* name -> index in model->modules */
    struct nrg_map storages; /* parameter -> index in model's scratch list */
    const char **storage_names;
    size_t n_storages, cap_storages;
    const json_t *specs; /* signature.input_specs of the program being read */
    struct nrg_graph *graph;
    struct nrg_map used; /* names of the graph's values */
    int depth;           /* of nested graphs */
};

/* A block's operators, gathered until its end. */
struct nrg_pt2_ops {
    struct nrg_op **items;
    size_t n, cap;
};

/* Names of one (sub)graph, and the block that its operators go to. */
struct nrg_pt2_scope {
    struct nrg_pt2 *pt2;
    const json_t *tensors; /* tensor_values */
    struct nrg_block *block;
    struct nrg_pt2_ops *ops; /* shared by scopes that are inlined into one block */
    struct nrg_map names;
    struct nrg_value **values; /* by number in names */
    size_t n_values, cap_values;
    const char *module; /* of the operator being read, and of its constants */
    const char *caller; /* module of the operator that calls this subgraph, or NULL */
};

struct nrg_pt2_list {
    struct nrg_value **items;
    size_t n, cap;
};

int nrg_pt2_no_memory(struct nrg_pt2 *pt2);
const char *nrg_pt2_text(struct nrg_pt2 *pt2, const char *text);

/* types.c */
bool nrg_pt2_tensor(struct nrg_pt2 *pt2, const json_t *meta, struct nrg_tensor_info *tensor);
/* Never NULL unless out of memory: unknown tensors get a type of unknown rank. */
const struct nrg_type *nrg_pt2_tensor_type(struct nrg_pt2 *pt2, const json_t *meta);
const struct nrg_type *nrg_pt2_simple_type(struct nrg_pt2 *pt2, enum nrg_type_kind kind,
                                           enum nrg_type_kind element);

/* graph.c */
struct nrg_value *nrg_pt2_value(struct nrg_pt2_scope *scope, const char *name,
                                const struct nrg_type *type);
/* A value that the file does not name: "<prefix>.<number>". */
struct nrg_value *nrg_pt2_numbered(struct nrg_pt2_scope *scope, const char *prefix,
                                   const struct nrg_type *type);
int nrg_pt2_bind(struct nrg_pt2_scope *scope, const char *name, struct nrg_value *value);
/* An operator at the end of the block; inputs and outputs are copied. NULL: out of memory. */
struct nrg_op *nrg_pt2_op(struct nrg_pt2_scope *scope, const char *kind, struct nrg_value **inputs,
                          size_t n_inputs, struct nrg_value **outputs, size_t n_outputs);
/* Gives an operator its one attribute; false: out of memory, or no operator. */
bool nrg_pt2_set_attr(struct nrg_pt2 *pt2, struct nrg_op *op, const struct nrg_attr *attr);
int nrg_pt2_graph(struct nrg_pt2 *pt2, const json_t *graph, const char *name);
/* The nodes of a graph, then the values of its results. */
int nrg_pt2_body(struct nrg_pt2_scope *scope, const json_t *graph, struct nrg_pt2_list *results);

struct nrg_value **nrg_pt2_copy(struct nrg_pt2 *pt2, struct nrg_value **values, size_t n);
/* Subgraphs have names of their own: where two meet in one graph, the second gets a number. */
const char *nrg_pt2_unique(struct nrg_pt2 *pt2, const char *name);
/* A value with the type that the graph's tables give, bound to its name. NULL: out of memory. */
struct nrg_value *nrg_pt2_output(struct nrg_pt2_scope *scope, const char *name, bool is_tensor);
/* Copies operators and outputs to the block. */
int nrg_pt2_finish_block(struct nrg_pt2 *pt2, struct nrg_block *block,
                         const struct nrg_pt2_ops *ops, const struct nrg_pt2_list *outputs);
void nrg_pt2_scope_release(struct nrg_pt2_scope *scope);

/* calls.c: the subgraphs among a node's arguments (at most NRG_PT2_GRAPHS), and their call. */
size_t nrg_pt2_subgraphs(const json_t *inputs, const json_t **graphs);
int nrg_pt2_call(struct nrg_pt2_scope *scope, const json_t *node, const char *target,
                 const json_t **graphs, size_t n_graphs, struct nrg_op **made);

/* args.c */
/* Adds the value of an argument: looked up, or made as a constant or list. */
int nrg_pt2_argument(struct nrg_pt2_scope *scope, const json_t *arg, struct nrg_pt2_list *list);
/* All values named in an argument, lists flattened; constants are skipped. */
int nrg_pt2_operands(struct nrg_pt2_scope *scope, const json_t *arg, struct nrg_pt2_list *list);
int nrg_pt2_push(struct nrg_pt2_scope *scope, struct nrg_pt2_list *list, struct nrg_value *value);
/* The name in {"as_tensor": {"name": …}}, {"as_sym_int": {"as_name": …}}…; NULL: a constant. */
const char *nrg_pt2_arg_name(const json_t *arg);

/* reader.c: the qualified module of a node's nn_module_stack, noting the modules on the way. */
int nrg_pt2_module(struct nrg_pt2 *pt2, const char *stack, const char **module);
/* The parameter behind a placeholder; NULL when it is an input of the user. */
int nrg_pt2_parameter(struct nrg_pt2 *pt2, const json_t *spec, const json_t *tensors,
                      const char **placeholder, const char **path);

#endif
