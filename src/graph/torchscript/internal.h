/*
 * Inside of the reader of TorchScript text: what its files share.
 *
 *   reader.c    finds the graphs amid other text, ties `with` subgraphs to their nodes
 *   find.c      where graphs and nodes begin
 *   refuse.c    texts that only look like ours (torch.fx, ONNX's printer, UTF-16)
 *   graph.c     one graph: header, lines, blocks, and what to do when the paste is cut
 *   subgraph.c  nodes that hold a graph, and the `with` graphs that follow
 *   op.c        one node line
 *   attr.c      attributes and constants (list.c: lists and tensors, string.c: strings)
 *   type.c      types (tensor.c: tensor types)
 *   scope.c     scope to module name
 *   value.c     names to values
 *   text.c      interned texts, stacks, errors
 *   lex.c       bytes, blanks, line numbers
 *
 * Two rules keep it fast. Every byte is looked at about once: nothing is split into tokens, the
 * parser moves one cursor over the mapped file. And whatever repeats in a dump (kinds, types,
 * scopes, source lines) is looked up by its bytes and parsed or copied only the first time.
 *
 * The model's arena owns what stays, struct ts what is needed only while reading. Return values: 0;
 * TS_SYNTAX for text that is not what the function reads, after which the caller may skip the line
 * and go on; or a negative errno, with `err` filled, which ends the reading. One thread per struct
 * ts.
 */
#ifndef NRG_GRAPH_TORCHSCRIPT_INTERNAL_H
#define NRG_GRAPH_TORCHSCRIPT_INTERNAL_H

#include "base/map.h"
#include "graph/reader.h"

#define TS_SYNTAX    1
#define TS_MAX_DEPTH 1000 /* nested blocks, or nested types: far above any real model */

/* Pointers that a nested construct collects; it removes what it has pushed. */
struct ts_stack {
    void **items;
    size_t n, cap;
};

struct ts_output {
    const char *name;
    size_t len;
    const struct nrg_type *type;
};

/* A node "prim::FusionGroup_0" that waits for its "with prim::FusionGroup_0 = graph(…". */
struct ts_reference {
    struct nrg_op *op;
    const char *kind; /* with its number, in the source */
    size_t len;
    struct ts_reference *same_before;
    size_t level;
};

struct ts_scope {
    const char *text, *module;
};

/* The graph being read. */
struct ts_state {
    struct nrg_graph *graph;
    bool ended;            /* "return" was read */
    bool edited;           /* someone left lines out: "…", a comment line */
    uint32_t first_line;   /* of its header */
    uint32_t last_line;    /* of its last good line */
    uint32_t n_skipped;    /* lines that are not IR, with good ones after them */
    uint32_t skipped_line; /* the first of them */
    uint32_t n_junk;       /* the same, but no good line has followed yet */
    uint32_t junk_line;
    uint32_t n_dangling;
    uint32_t dangling_line;
    const char *dangling;
    bool scoped; /* some node had a scope */
};

struct ts {
    const struct nrg_source *source;
    struct nrg_model *model;
    struct nrg_error *err;
    const char *start, *p, *end;
    const char *counted; /* lines up to here are in `line` */
    uint32_t line;
    bool braces; /* the graph is in the syntax of 1.0 and before */

    struct nrg_map texts, kinds, scopes, types, values;
    char *pool; /* room for small texts */
    size_t pool_left;

    struct ts_stack operands, ops, blocks, type_args, strings;
    struct ts_output *outputs;
    size_t n_outputs, cap_outputs;
    struct nrg_attr *attrs;
    size_t n_attrs, cap_attrs;
    int64_t *ints;
    size_t n_ints, cap_ints;
    double *floats;
    size_t n_floats, cap_floats;

    struct ts_state state;
    struct ts_reference **references; /* in the order of the text */
    size_t n_references, cap_references;
    struct nrg_map waiting; /* kind with its number to the newest reference */
    size_t level;           /* of nested `with` */
    size_t family;          /* index of the graph that the `with` graphs belong to */
    bool family_scoped;
    uint32_t n_huge_dims, n_missing;
};

/* text.c */
/* A clean terminated copy in the arena; ts_intern gives equal texts one pointer. */
const char *ts_copy(struct ts *ts, const char *text, size_t len);
const char *ts_intern(struct ts *ts, const char *text, size_t len);
int ts_push(struct ts *ts, struct ts_stack *stack, void *item);
/* Pops what is above `base` into an array in the arena. */
int ts_pop_array(struct ts *ts, struct ts_stack *stack, size_t base, void *array, size_t *n);
int ts_no_memory(struct ts *ts);
int ts_too_deep(struct ts *ts);

/* value.c */
int ts_define_value(struct ts *ts, const struct ts_output *as, struct nrg_op *producer,
                    struct nrg_value *room, struct nrg_value **out);
int ts_value_list(struct ts *ts); /* "(%a, %b)" onto operands */
int ts_typed(struct ts *ts);      /* "%a : Type" onto outputs */

/* type.c; the cursor is after " : ". */
extern const struct nrg_type ts_unknown_type;
int ts_type(struct ts *ts, const struct nrg_type **out);
/* tensor.c; the cursor is after "(" of "Float(" or "Tensor(". */
int ts_tensor_options(struct ts *ts, struct nrg_type *type, bool rank_is_told);
/* -ERANGE: beyond 63 bits; -EINVAL: no number at the cursor. */
int ts_int(struct ts *ts, int64_t *out);
int ts_add_int(struct ts *ts, int64_t value);
int64_t *ts_copy_ints(struct ts *ts, const int64_t *from, size_t n);

/* attr.c; the cursor is at "[". */
int ts_attributes(struct ts *ts);
void ts_fit_constant(struct nrg_attr *attr, const struct nrg_type *type);
int ts_number(struct ts *ts, const char *at, const char *end, struct nrg_attr *attr);
int ts_list(struct ts *ts, struct nrg_attr *attr);
int ts_tensor_value(struct ts *ts, const char *at, const char *end, struct nrg_attr *attr);
int ts_string(struct ts *ts, const char **out);

/* op.c, scope.c, graph.c */
int ts_op(struct ts *ts, struct nrg_block *block, struct nrg_op **out);
int ts_scope(struct ts *ts, const char *text, size_t len, struct nrg_op *op);
/* The cursor is at "graph". */
int ts_graph(struct ts *ts, const char *name, struct nrg_graph **out);
/* Node lines without a header; the cursor is at the first. */
int ts_fragment(struct ts *ts, struct nrg_graph **out);

/* subgraph.c */
int ts_wait_for_graph(struct ts *ts, struct nrg_op *op, const char *kind, size_t len);
/* Before a graph that is not a `with` graph, and after the last. */
int ts_forget_waiting(struct ts *ts);
int ts_tie_graph(struct ts *ts, const char *kind, size_t len, struct nrg_op **owner);
int ts_set_subgraph(struct ts *ts, struct nrg_op *op, const struct nrg_graph *graph);

/* find.c */
/* The next "graph(" of ours in [from, end), or NULL. */
const char *ts_find_graph(const char *from, const char *end);
/* A node line without a header around it. */
const char *ts_find_node(const char *from, const char *end);

/* The kind in "with prim::FusionGroup_0 = " before it on its line; false: there is none. */
bool ts_with_before(const char *from, const char *graph, const char **kind, size_t *len);
/* A heading of one word on the line before: the name of a submodule. */
bool ts_heading_before(const char *from, const char *graph, const char **name, size_t *len);

/* refuse.c */
bool ts_is_fx(const char *graph, const char *end);
/* What else the text is and what to do then, or NULL. */
const char *ts_other_format(const char *text, size_t len);

#endif
