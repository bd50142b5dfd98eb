/*
 * The reduced graph: only data (tensors) and the operators that compute on or move them. Everything
 * else of the model's graph is merged or dropped, and each dropped operator keeps the rule that
 * dropped it. Owns one arena; the model must outlive it (names and operators point into it). Not
 * thread-safe.
 *
 *   nrg_reduced
 *     data[]        inputs, parameters, constants, activations, joins (phi)
 *     operators[]   in order of execution; nested control flow is flat, `region` says where it is
 *     regions[]     the tree of If branches and Loop bodies, with their trip counts
 *     dropped[]     what is not here, and why
 */
#ifndef NRG_GRAPH_REDUCE_H
#define NRG_GRAPH_REDUCE_H

#include "graph/cost.h"
#include "graph/graph.h"

enum nrg_data_kind { NRG_DATA_INPUT, NRG_DATA_PARAM, NRG_DATA_CONST, NRG_DATA_ACT, NRG_DATA_PHI };

struct nrg_data {
    const char *name; /* of its value, without % */
    enum nrg_data_kind kind;
    const char *path;               /* parameters: "layer1.0.conv1.weight", else NULL */
    const struct nrg_type *type;    /* best known: printed, of --params, or inferred from its use */
    struct nrg_type *blank;         /* parameters without a type: room for one with up to 4 dims */
    bool type_inferred;             /* in no file: follows from the operator's other types */
    const struct nrg_data *storage; /* the memory it lives in: itself unless written in place */
    uint32_t id;                    /* index in data[] */
    int64_t producer;               /* index of the operator, -1: none */
    int64_t last_use;               /* index of the last operator that reads it, -1: none;
                                       INT64_MAX: it leaves the graph */
};

enum nrg_arg_kind {
    NRG_ARG_NONE, /* the None constant, an omitted optional input */
    NRG_ARG_TENSOR,
    NRG_ARG_LIST,    /* list, tuple or dict values with known members */
    NRG_ARG_CONST,   /* a number, text or list of numbers, known */
    NRG_ARG_OBJECT,  /* a module or packed parameters: `path` */
    NRG_ARG_UNKNOWN, /* a scalar or list known only at run time */
};

/* What a value of the graph is, as an operator sees it. */
struct nrg_arg {
    enum nrg_arg_kind kind;
    bool is_shape;               /* a tensor or number computed from shapes only */
    bool is_view;                /* TENSOR: part of or another order of `data` */
    bool open;                   /* LIST: may hold more than the members listed */
    const struct nrg_type *type; /* at this use: a view has its own; never NULL */
    struct nrg_data *data;       /* TENSOR (LIST: the tensor it was cut from, or NULL) */
    const struct nrg_attr *constant;
    const char *path;
    struct nrg_arg **items; /* LIST */
    size_t n_items, cap_items;
    uint32_t size;  /* LIST: itself and all below when it was made */
    bool is_member; /* LIST: stands in another one */
    bool is_nested; /* LIST: lists stand in it */
};

struct nrg_operator {
    const struct nrg_op *op; /* as read */
    const char *kind;
    const char *id;     /* first output's name, or "#<number>" */
    const char *module; /* "" root, NULL unknown */
    enum nrg_op_class class;
    const struct nrg_cost_rule *rule;
    struct nrg_arg **args; /* one per input of op */
    size_t n_args;
    struct nrg_data **outputs; /* tensors only */
    size_t n_outputs;
    struct nrg_data **inputs; /* tensors in args with lists expanded, in order, doubles kept */
    size_t n_inputs;
    uint32_t region;
    struct nrg_cost cost; /* of one execution; filled by nrg_cost_all */
    int64_t times; /* executions: 0 branch not counted, NRG_COST_UNKNOWN loop of unknown length */
};

enum nrg_region_kind { NRG_REGION_ROOT, NRG_REGION_IF, NRG_REGION_BRANCH, NRG_REGION_LOOP };

struct nrg_region {
    enum nrg_region_kind kind;
    uint32_t parent; /* own index for the root */
    int64_t trips;   /* LOOP: NRG_COST_UNKNOWN when not constant */
    int chosen;      /* BRANCH: 1 taken, 0 not, -1 decided by cost */
    const struct nrg_op *op;
};

/* Why an operator is not in the reduced graph: numbers of docs/graph.md's rules. */
enum nrg_drop_rule {
    NRG_KEPT,
    NRG_DROP_CONSTANT = 1,
    NRG_DROP_GETATTR,
    NRG_DROP_SHAPE,
    NRG_DROP_PROPERTY,
    NRG_DROP_CONTAINER,
    NRG_DROP_NO_TENSOR,
    NRG_DROP_VIEW,
    NRG_DROP_NOOP,
    NRG_DROP_CONTROL,
    NRG_DROP_CALL,
    NRG_DROP_FALLBACK,
    NRG_DROP_RULES
};

struct nrg_dropped {
    const struct nrg_op *op;
    enum nrg_drop_rule rule;
    const struct nrg_data *data; /* what its output is merged into, or NULL */
    int64_t kept;                /* NRG_KEPT: index of the operator */
};

/* A module that the graph names: by its attributes, or by calling it. */
struct nrg_seen_module {
    const char *path;
    const char *class_name; /* last part, without mangling; "" unknown */
    size_t calls;           /* by prim::CallMethod; 0: the graph is inlined */
};

/* What leaves the graph: a tensor, or a view of one. */
struct nrg_output {
    const char *name;            /* of the value that is returned; in a tuple that of `data` */
    const struct nrg_type *type; /* as it leaves: after the last view */
    const struct nrg_data *data; /* the memory behind it; NULL: a shape, which is none */
};

struct nrg_reduced {
    struct nrg_arena arena;
    const struct nrg_model *model;
    struct nrg_data **data;
    size_t n_data, cap_data;
    struct nrg_operator *operators;
    size_t n_operators, cap_operators;
    struct nrg_region *regions;
    size_t n_regions, cap_regions;
    struct nrg_dropped *dropped; /* one per operator of the graph, in order */
    size_t n_dropped, cap_dropped;
    struct nrg_data **inputs; /* the graph's boundary */
    struct nrg_output *outputs;
    size_t n_inputs, n_outputs, cap_outputs;
    struct nrg_seen_module *modules;
    size_t n_modules, cap_modules;
    const char **warnings;
    size_t n_warnings, cap_warnings;
};

/*
 * Reduces the model's main graph. `params`: a second model whose params[] give the shapes of
 * parameters by path, or NULL. Returns 0 or -errno with err; -ENODATA when the model has no graph.
 */
int nrg_reduce(const struct nrg_model *model, const struct nrg_model *params,
               struct nrg_reduced *out, struct nrg_error *err);
void nrg_reduced_release(struct nrg_reduced *reduced);

/* One sentence: what the rule is. */
const char *nrg_drop_rule_text(enum nrg_drop_rule rule);
const char *nrg_data_kind_name(enum nrg_data_kind kind);

/* Arguments by position; beyond the end they are NONE. */
const struct nrg_arg *nrg_arg_at(const struct nrg_operator *op, size_t i);
bool nrg_arg_int(const struct nrg_arg *arg, int64_t *out);
/* Numbers of a constant list (or one number as a list of one); how many, -1 unknown. */
int nrg_arg_ints(const struct nrg_arg *arg, int64_t *out, int max);
const char *nrg_arg_text(const struct nrg_arg *arg); /* a constant string, or NULL */
/* Elements and bytes of a tensor, or of all tensors of a list; NRG_COST_UNKNOWN, 0 for NONE. */
int64_t nrg_arg_numel(const struct nrg_arg *arg);
int64_t nrg_arg_bytes(const struct nrg_arg *arg);
/* The type at this use, or that of the memory behind it where more is known of that. */
const struct nrg_type *nrg_arg_type(const struct nrg_arg *arg);
int nrg_arg_rank(const struct nrg_arg *arg);             /* -1 unknown */
int64_t nrg_arg_dim(const struct nrg_arg *arg, int dim); /* negative: from the end */
int64_t nrg_data_numel(const struct nrg_data *data);
/* Gives a parameter whose type no file has the one that follows from its use; rank <= 4. */
void nrg_data_infer(struct nrg_data *data, enum nrg_dtype dtype, int rank, const int64_t *dims);
int64_t nrg_data_bytes(const struct nrg_data *data);
int64_t nrg_type_bytes(const struct nrg_type *type);

/* Costs of all operators, with the executions of loops and branches. 0 or -ENOMEM. */
int nrg_cost_all(struct nrg_reduced *reduced, enum nrg_convention convention);
/* What IrEne's counter makes of one execution, whatever convention the costs are in but torchinfo.
 */
void nrg_cost_irene(const struct nrg_operator *op, int64_t *flops, int64_t *bytes);
/* True when it runs and its arithmetic, or how often it runs, is unknown. */
bool nrg_operator_unknown(const struct nrg_operator *op);
/* Adds what is known of an operator, times its executions. */
void nrg_cost_sum(struct nrg_cost *sum, const struct nrg_operator *op);

#endif
