/*
 * Inside of the readers of PyTorch's own files: from unpickled values to modules and parameters of
 * a model (TorchScript module objects, pickled nn.Module objects, state dicts).
 *
 * Cycles, values shared 2^n times and deep nesting end in an error: at most NRG_WALK_DEPTH levels
 * and NRG_WALK_VISITS values are visited. The model's arena owns what is added; a walk owns its
 * path. Functions return 0 or a negative errno with walk->err filled. One thread per walk.
 */
#ifndef NRG_GRAPH_TORCH_INTERNAL_H
#define NRG_GRAPH_TORCH_INTERNAL_H

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
    int n_packed;                  /* tensors found in the packed parameters being visited */
    struct nrg_tensor_info tensor; /* scratch: too large for a frame of the recursion */
};

void nrg_torch_walk_release(struct nrg_torch_walk *walk);

/* script.c: a TorchScript module tree. */
int nrg_torch_walk_script(struct nrg_torch_walk *walk, struct nrg_pkl *root);
/* checkpoint.c: whatever torch.save wrote: a state dict, a dict that holds one, or a module. */
int nrg_torch_walk_checkpoint(struct nrg_torch_walk *walk, struct nrg_pkl *root);

/* walk.c, shared by the two. */
typedef int nrg_torch_visit_fn(struct nrg_torch_walk *walk, struct nrg_pkl *v,
                               enum nrg_param_role role);
/*
 * One level down to `name` (NULL: a level without a name): adds v when it is a tensor, otherwise
 * calls `other` for it.
 */
int nrg_torch_child(struct nrg_torch_walk *walk, const char *name, size_t len, struct nrg_pkl *v,
                    enum nrg_param_role role, nrg_torch_visit_fn *other);
/* Adds walk->tensor under the path. */
int nrg_torch_add(struct nrg_torch_walk *walk, enum nrg_param_role role);
int nrg_torch_add_module(struct nrg_torch_walk *walk, const char *class_name);
/* Adds all tensors in lists, tuples and dicts below v, with one role, by index or key. */
nrg_torch_visit_fn nrg_torch_walk_plain;

#endif
