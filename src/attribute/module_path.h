/*
 * What a row of an attribution is, and which module of a graph it is. Spans name modules as PyTorch
 * does: the outermost by its class, those below by their path from it, with the outermost's name in
 * front where there are several models. A graph has the paths and, mostly, the class of its root; a
 * row of another model does not belong to this graph, even if the names are alike. Pure.
 */
#ifndef NRG_ATTRIBUTE_MODULE_PATH_H
#define NRG_ATTRIBUTE_MODULE_PATH_H

#include "attribute/attribution.h"

bool nrg_row_is(const struct nrg_attribution_row *row, const char *kind);
/* The row that it is in; NULL at the top. */
const struct nrg_attribution_row *nrg_row_above(const struct nrg_attribution *attribution,
                                                const struct nrg_attribution_row *row);
/* Somewhere in a backward pass, itself not counted. */
bool nrg_row_below_backward(const struct nrg_attribution *attribution,
                            const struct nrg_attribution_row *row);

/*
 * The path in the graph of a row of kind module, "" for the model itself; NULL: it is of another
 * model. `root_class` is the class of the graph's root, "" when the graph does not tell.
 */
const char *nrg_module_path(const struct nrg_attribution *attribution,
                            const struct nrg_attribution_row *row, const char *root_class);

#endif
