/*
 * The reduction at work, private to reduce/. A frame is one execution of a graph's body: the main
 * graph, or a callee in the place of the call. Facts say for each value of the frame's graph what
 * it is.
 *
 * What is made lives in the arena of the result. Errors stick in `rc` and stop the walk, so that
 * the rules themselves stay readable; functions that make something return NULL then. One thread.
 */
#ifndef NRG_GRAPH_REDUCE_INTERNAL_H
#define NRG_GRAPH_REDUCE_INTERNAL_H

#include "base/map.h"
#include "graph/reduce.h"

struct nrg_call_frame {
    const struct nrg_graph *graph;
    struct nrg_arg **facts; /* by value id */
    const char *path;       /* module that runs, "" the root */
    const struct nrg_call_frame *caller;
    unsigned depth;
};

struct nrg_reducer {
    struct nrg_reduced *out;
    const struct nrg_model *model;
    const struct nrg_model *params; /* may be NULL */
    struct nrg_map told;            /* path -> struct nrg_param of the model or `params` */
    struct nrg_map used;            /* path -> struct nrg_data already made */
    struct nrg_map seen;            /* path -> index + 1 of out->modules */
    struct nrg_arg *none;
    const struct nrg_graph **called; /* callees of the model, in the order of model->graphs */
    uint32_t region;
    size_t visited;
    unsigned depth; /* of nested blocks and calls */
    unsigned call_warnings;
    int rc;
};

/* reduce/walk.c: the walk. */
void nrg_reducer_block(struct nrg_reducer *r, struct nrg_call_frame *f,
                       const struct nrg_block *block);

/* Arguments of an operator: its inputs, and in texts before 1.0 ATen's attributes behind them. */
size_t nrg_reducer_n_args(const struct nrg_op *op);

/* reduce/make.c: facts, and what the reduced graph is made of. */
/* Zeroed memory of the result, and a terminated copy of a text in it. */
void *nrg_reducer_alloc(struct nrg_reducer *r, size_t n, size_t size);
const char *nrg_reducer_copy(struct nrg_reducer *r, const char *text, size_t len);
struct nrg_arg *nrg_reducer_fact(struct nrg_reducer *r, struct nrg_call_frame *f,
                                 const struct nrg_value *value);
void nrg_reducer_set(struct nrg_call_frame *f, const struct nrg_value *value, struct nrg_arg *arg);
struct nrg_arg *nrg_reducer_arg(struct nrg_reducer *r, enum nrg_arg_kind kind,
                                const struct nrg_type *type);
struct nrg_data *nrg_reducer_data(struct nrg_reducer *r, enum nrg_data_kind kind, const char *name,
                                  const struct nrg_type *type);
struct nrg_arg *nrg_reducer_tensor(struct nrg_reducer *r, struct nrg_data *data,
                                   const struct nrg_type *type);
/* An argument of the shape of `type`: a tensor, or an open list cut from one tensor. */
struct nrg_arg *nrg_reducer_result(struct nrg_reducer *r, struct nrg_data *data,
                                   const struct nrg_type *type);
/* The argument, or for a tensor a copy with `type` where that says more. */
struct nrg_arg *nrg_reducer_typed(struct nrg_reducer *r, struct nrg_arg *arg,
                                  const struct nrg_type *type);
void nrg_reducer_drop(struct nrg_reducer *r, const struct nrg_op *op, enum nrg_drop_rule rule,
                      const struct nrg_data *data);
void nrg_reducer_keep(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                      const struct nrg_cost_rule *rule, struct nrg_arg **args);
void nrg_reducer_warn(struct nrg_reducer *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
struct nrg_arg *nrg_reducer_int(struct nrg_reducer *r, int64_t number, const struct nrg_type *type);

/* Does this output of such an operator hold a tensor? Its type says so, else the class. */
bool nrg_reducer_carries_tensor(const struct nrg_value *value, const struct nrg_cost_rule *rule,
                                bool tensor_in);

/* reduce/params.c: attributes, parameters, modules. */
void nrg_reduce_getattr(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                        struct nrg_arg **args);
/* Without printed types an attribute shows only by its use whether it is a tensor. */
void nrg_reduce_settle(struct nrg_reducer *r, struct nrg_arg *arg);
/* The data of a parameter: one per path. */
struct nrg_data *nrg_reducer_param(struct nrg_reducer *r, const char *path, const char *name,
                                   const struct nrg_type *type);
void nrg_reducer_saw_module(struct nrg_reducer *r, const char *path, const struct nrg_type *type,
                            bool called);

/*
 * reduce/weights.c: the paths of inputs that are weights, by value id (NULL: data). NULL when there
 * are none.
 */
const char **nrg_reduce_weights(struct nrg_reducer *r, const struct nrg_graph *graph);

/* reduce/view.c: does this move memory? */
bool nrg_reduce_is_noop(const struct nrg_op *op, const struct nrg_cost_rule *rule,
                        struct nrg_arg *const *args);
/* False only when shapes and strides are known and no strides of the result exist. */
bool nrg_reduce_viewable(const struct nrg_type *in, const struct nrg_type *out);

/* reduce/container.c: lists, tuples, dicts; constants and their arithmetic. */
void nrg_reduce_container(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                          struct nrg_arg **args);
/* An attribute of an object that the graph itself made. */
struct nrg_arg *nrg_reduce_attribute(struct nrg_reducer *r, const struct nrg_op *op,
                                     struct nrg_arg *object);
void nrg_reduce_constant(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op);
/* The known result of a property (size, len, is None...), or an unknown argument. */
struct nrg_arg *nrg_reduce_property(struct nrg_reducer *r, const struct nrg_op *op,
                                    struct nrg_arg *const *args, const struct nrg_type *type);

/* reduce/control.c: If, Loop, calls, subgraphs. */
void nrg_reduce_control(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                        const struct nrg_cost_rule *rule, struct nrg_arg **args);

/* reduce/args.c */
bool nrg_arg_has_tensor(const struct nrg_arg *arg);
/* The type that says more; `a` when equal. */
const struct nrg_type *nrg_type_better(const struct nrg_type *a, const struct nrg_type *b);

#endif
