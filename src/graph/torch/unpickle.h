/*
 * PyTorch's use of pickles: which names a model file may hold, and tensors out of the calls that
 * would rebuild them. Nothing here runs code of PyTorch or of the
 * file. Values and tensors point into the pickle; nothing is allocated.
 */
#ifndef NRG_GRAPH_TORCH_UNPICKLE_H
#define NRG_GRAPH_TORCH_UNPICKLE_H

#include "graph/param.h"
#include "graph/torch/pickle.h"

/* For struct nrg_pickle: tensors, storages, dtypes, containers, TorchScript and nn classes. */
bool nrg_torch_allows(const char *global);

/* True when the value is a tensor or a parameter; then *tensor is filled. */
bool nrg_torch_tensor(const struct nrg_pkl *v, struct nrg_tensor_info *tensor);

/* Takes off what wraps a list or dict (type tags). */
const struct nrg_pkl *nrg_torch_unwrap(const struct nrg_pkl *v);

#endif
