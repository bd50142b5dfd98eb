/*
 * From unpickled values to modules and parameters: TorchScript module objects, pickled nn.Module
 * objects, and state dicts. Cycles, values shared 2^n times and deep nesting end in an error:
 * at most NRG_WALK_DEPTH levels and NRG_WALK_VISITS values are visited.
 */
#ifndef NRG_GRAPH_TORCH_WALK_H
#define NRG_GRAPH_TORCH_WALK_H

#include "base/mem.h"
#include "graph/torch/code.h"
#include "graph/torch/unpickle.h"

#define NRG_WALK_DEPTH  1000
#define NRG_WALK_VISITS 4000000

struct nrg_torch_walk {
    struct nrg_model *model;
    const char *where;
    struct nrg_error *err;
    struct nrg_torch_code *code; /* NULL: no class declarations */
    const struct nrg_zip *zip;   /* NULL: storages are not checked */
    struct nrg_str path;         /* of the value that is visited */
    int depth;
    size_t visits, n_tensors;
    size_t n_bad_storages;
    struct nrg_tensor_info tensor; /* scratch: too large for a frame of the recursion */
};

void nrg_torch_walk_release(struct nrg_torch_walk *walk);

/* A TorchScript module tree. */
int nrg_torch_walk_script(struct nrg_torch_walk *walk, struct nrg_pkl *root);
/* Whatever torch.save wrote: a state dict, a dict that holds one, or a module. */
int nrg_torch_walk_checkpoint(struct nrg_torch_walk *walk, struct nrg_pkl *root);

/* Shared by the two. enter: one level down to `name`; leave: back to what enter returned. */
int nrg_torch_enter(struct nrg_torch_walk *walk, const char *name, size_t len, size_t *before);
void nrg_torch_leave(struct nrg_torch_walk *walk, size_t before);
/* Adds walk->tensor under the path. */
int nrg_torch_add(struct nrg_torch_walk *walk, enum nrg_param_role role);
int nrg_torch_add_module(struct nrg_torch_walk *walk, const char *class_name);
/* Adds all tensors in lists, tuples and dicts below v, with one role, by index or key. */
int nrg_torch_walk_plain(struct nrg_torch_walk *walk, const struct nrg_pkl *v,
                         enum nrg_param_role role);

#endif
