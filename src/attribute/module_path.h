/*
 * Which module of a graph a row of an attribution is. Spans name modules as PyTorch does: the
 * outermost by its class, those below by their path from it, with the outermost's name in front
 * where there are several models. A graph has the paths and, mostly, the class of its root; a row
 * of another model's is not this graph's, however much the names look alike.
 */
#ifndef NRG_ATTRIBUTE_MODULE_PATH_H
#define NRG_ATTRIBUTE_MODULE_PATH_H

#include "attribute/attribution.h"

/*
 * The path in the graph of a row of kind module, "" for the model itself; NULL: it is of another
 * model. `root_class` is the class of the graph's root, "" when the graph does not tell.
 */
const char *nrg_module_path(const struct nrg_attribution *attribution,
                            const struct nrg_attribution_row *row, const char *root_class);

#endif
