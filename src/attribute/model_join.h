/*
 * Rows of an attribution joined with what the model's graph says of them: MACs, FLOPs and bytes
 * per call, so that joules become pJ per MAC and J per byte.
 *
 *   module     by its qualified name
 *   operator   by the module around it and its kind, or by its own name where the format has one
 *   layer      by its name in the engine or the summary; its type comes along
 *
 * What runs backward has no count in a graph of the forward pass and stays unknown. A module or
 * operator of which the graph does not know everything stays unknown too.
 *
 * Init by open, join, close after the last output: rows point into it.
 */
#ifndef NRG_REPORT_ATTRIBUTION_MODEL_H
#define NRG_REPORT_ATTRIBUTION_MODEL_H

#include "attribute/attribution.h"
#include "graph/module_tree.h"

struct nrg_joined_model {
    char name[256];
    struct nrg_model model;
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    bool read, has_graph;
};

/* From a file. 0 or -errno with err. */
int nrg_joined_model_open(struct nrg_joined_model *joined, const char *path, struct nrg_error *err);
/* From bytes that a recording keeps; `format` may be "". */
int nrg_joined_model_read(struct nrg_joined_model *joined, const char *name, const char *format,
                          const void *bytes, size_t size, struct nrg_error *err);
void nrg_joined_model_close(struct nrg_joined_model *joined);

struct nrg_join_result {
    size_t modules, operators, layers; /* rows that were joined */
};

/*
 * Fills macs, flops and bytes of rows that have none yet, and details of layers that have none.
 * `backward_in_modules`: rows of modules hold the energy of forward and backward together, so
 * that a count of the forward pass would mislead.
 */
struct nrg_join_result nrg_attribution_join(struct nrg_attribution *attribution,
                                            const struct nrg_joined_model *joined,
                                            bool backward_in_modules);

#endif
