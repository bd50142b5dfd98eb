/*
 * The rows of the result as a tree, and how the views of it are made. Inside src/attribute.
 *
 * A view maps each place that the walk knows (a node of walk.rows) to a row. Self energies just add
 * up. The error of all that is inside a row is not the sum of the errors of its parts, which is far
 * larger: it is that of the spans through which time entered the row. A span enters all rows that
 * hold it but not the span around it.
 */
#ifndef NRG_ATTRIBUTE_VIEW_H
#define NRG_ATTRIBUTE_VIEW_H

#include "attribute/internal.h"

/* Node 0 is the top. */
struct nrg_view_node {
    const char *name, *kind, *detail;
    uint32_t parent;
    int64_t number;
    struct nrg_row_sums sums;
    uint64_t other_calls; /* backward calls of a module: shown when there are no others */
};

struct nrg_view {
    struct nrg_view_node *nodes;
    struct nrg_row_part *parts; /* [node * n_parts + part]; whole: of all that is inside */
    size_t n, cap, cap_parts;
    uint32_t *view_of;            /* per node of walk.rows */
    double *inside_ns, *inside_j; /* of a flat view, per node and [node * n_parts + part]; NULL */
};

int nrg_view_make(struct nrg_view *view, struct nrg_engine *engine);
void nrg_view_release(struct nrg_view *view);
/* Adds a node; its number or -ENOMEM. */
int64_t nrg_view_node(struct nrg_view *view, struct nrg_engine *engine, struct nrg_view_node node);
/* True when `inner` is `outer` or below it. */
bool nrg_view_holds(const struct nrg_view *view, uint32_t outer, uint32_t inner);
/* Name, kind and detail of a place. */
struct nrg_view_node nrg_view_describe(const struct nrg_engine *engine,
                                       const struct nrg_span_node *place);

/* view_module.c: fills view_of with modules by their qualified names. */
int nrg_view_modules(struct nrg_view *view, struct nrg_engine *engine);

/* attribution_rows.c: rows of the result from the view. */
int nrg_rows_make(struct nrg_engine *engine, const struct nrg_view *view);
/* Whether anything is known of a place's own energy in a part. */
bool nrg_row_known(const struct nrg_engine *engine, size_t part, const struct nrg_row_sums *sums,
                   const struct nrg_row_part *row);
/* rows_counts.c: what was counted in them. */
struct nrg_arena;
int nrg_rows_counts(struct nrg_engine *engine, const struct nrg_view *view, const size_t *row_of,
                    struct nrg_arena *arena);

#endif
