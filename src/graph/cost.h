/*
 * What an operator costs: multiply-accumulates, floating-point operations, ideal memory traffic.
 * One table of rules (kind -> class, formula) per family of formats; cost/table.c joins them.
 * Adding an operator is one row; adding a family is one file with a sorted array of rows, its
 * declaration in cost/internal.h and one line in cost/table.c's list of families.
 *
 * Numbers are exact or NRG_COST_UNKNOWN; a product beyond 63 bits is unknown too. FLOPs are
 * 2 x MACs plus what is not multiply-accumulate (docs/graph.md has every formula). Bytes count
 * each operand once, as if caches were perfect. Functions keep no state and cannot fail.
 */
#ifndef NRG_GRAPH_COST_H
#define NRG_GRAPH_COST_H

#include "graph/graph.h"

#define NRG_COST_UNKNOWN INT64_C(-1)

struct nrg_cost {
    int64_t macs;
    int64_t flops;
    int64_t read_bytes;
    int64_t written_bytes;
    int64_t params; /* elements of the parameters it reads */
};

/* What an operator is to the reduction. */
enum nrg_op_class {
    NRG_CLASS_COMPUTE,   /* kept: does arithmetic */
    NRG_CLASS_MOVE,      /* kept: moves or fills memory, no arithmetic */
    NRG_CLASS_VIEW,      /* its output is its first input seen differently */
    NRG_CLASS_ACCESS,    /* reads a property: size, dtype, item... */
    NRG_CLASS_CONTAINER, /* packs or unpacks lists, tuples, dicts */
    NRG_CLASS_CONSTANT,
    NRG_CLASS_CONTROL, /* If, Loop, calls, subgraphs */
    NRG_CLASS_NOOP,    /* its output is its first input */
    NRG_CLASSES
};

/* What the reduction must do beyond the class. */
enum nrg_op_flag {
    NRG_OP_IN_PLACE = 1,      /* writes into its first input */
    NRG_OP_MAYBE_VIEW = 2,    /* a view where strides allow (reshape, flatten), else a copy */
    NRG_OP_MAYBE_NOOP = 4,    /* no-op by its arguments: to, contiguous, dropout */
    NRG_OP_SHAPE_SOURCE = 8,  /* its output is a shape (prim::NumToTensor, onnx::Shape) */
    NRG_OP_GETS_PARAM = 16,   /* prim::GetAttr and the like: attr "name" extends a path */
    NRG_OP_OPAQUE = 32,       /* what it computes is unknown */
    NRG_OP_NOT_RECORDED = 64, /* the table has no row for it */
};

enum nrg_convention {
    NRG_CONVENTION_NRG,       /* all of docs/graph.md */
    NRG_CONVENTION_TORCH,     /* torch.utils.flop_counter: 2 x MACs of mm, conv, attention */
    NRG_CONVENTION_FVCORE,    /* 1 MAC = 1 flop, norms and some pools */
    NRG_CONVENTION_TORCHINFO, /* mult-adds of parameters, bias counted */
    NRG_CONVENTION_IRENE,     /* IrEne's FLOPs and bytes; all bytes stand in read_bytes */
};

struct nrg_operator; /* reduce.h */
struct nrg_cost_rule;

/*
 * Fills macs and flops (2 x macs included) and changes the bytes when they are not "all tensors
 * in, all tensors out", which is what they hold before. Everything starts as follows: macs 0,
 * flops 0, bytes by the operands' sizes, params counted.
 */
typedef void nrg_cost_fn(const struct nrg_operator *op, struct nrg_cost *cost);

struct nrg_cost_rule {
    const char *kind; /* "aten::linear"; tables are sorted by it (strcmp) */
    enum nrg_op_class class;
    unsigned flags;    /* NRG_OP_* */
    nrg_cost_fn *cost; /* NULL: no arithmetic, bytes by operands */
    int arg;           /* the formula's own number: FLOPs per element, index of an operand... */
    const char *code;  /* "G", "C", "E1"...: the row of docs/graph.md's table */
};

/*
 * The rule for a kind. Never NULL: kinds ending in one '_' are the in-place form of the kind
 * without it, and an unknown kind is opaque compute. `scratch` holds a rule that is made up so.
 */
const struct nrg_cost_rule *nrg_cost_rule_find(const char *kind, struct nrg_cost_rule *scratch);

const char *nrg_op_class_name(enum nrg_op_class class);
/* "nrg", "torch", "fvcore", "torchinfo" or "irene". */
const char *nrg_convention_name(enum nrg_convention convention);

/* For bsearch over rows that are sorted by their first member, a kind. */
int nrg_kind_order(const void *kind, const void *row);

/* Arithmetic that never wraps: unknown stays unknown, overflow becomes unknown. */
int64_t nrg_cost_mul(int64_t a, int64_t b);
int64_t nrg_cost_add(int64_t a, int64_t b);
/* For sums and multiples of what is known: stops at INT64_MAX / 4 instead of wrapping. */
int64_t nrg_cost_sum_of(int64_t a, int64_t b);
int64_t nrg_cost_times(int64_t n, int64_t times);

#endif
