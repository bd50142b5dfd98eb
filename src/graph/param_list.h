/*
 * All parameters and buffers of a model in one list, from where they are known: the parameter file,
 * the model's own file, or the graph's uses of them. Tied ones (same storage and offset) and
 * doubled names point to the first. The list owns its entries; names and types are the models'.
 */
#ifndef NRG_GRAPH_PARAM_LIST_H
#define NRG_GRAPH_PARAM_LIST_H

#include "graph/reduce.h"

struct nrg_param_entry {
    const char *path;
    const struct nrg_type *type;
    int64_t numel; /* NRG_COST_UNKNOWN */
    int64_t bytes;
    bool is_buffer;
    bool trainable;  /* where the file does not say: PyTorch's default, true */
    int64_t same_as; /* index of the first of tied ones, -1: itself the first */
};

struct nrg_param_list {
    struct nrg_param_entry *entries;
    size_t n, cap;
};

/* `reduced` and `params` may be NULL. 0 or -ENOMEM. */
int nrg_param_list_make(struct nrg_param_list *list, const struct nrg_model *model,
                        const struct nrg_reduced *reduced, const struct nrg_model *params);
void nrg_param_list_release(struct nrg_param_list *list);

/*
 * For a parameter file that is a graph (executed and frozen graphs print weights): adds the
 * parameters it uses to model->params. 0 or -errno.
 */
int nrg_params_from_graph(struct nrg_model *model, struct nrg_error *err);

#endif
