/*
 * What all readers of parameters share: checks of shapes, clean names, bytes, the guess which
 * tensors are buffers where a format does not say it, and a module tree from dotted names. All of
 * it lives in the model's arena. Functions return 0 or -errno with err.
 */
#ifndef NRG_GRAPH_PARAM_H
#define NRG_GRAPH_PARAM_H

#include "graph/graph.h"

#define NRG_MAX_RANK 64

/* A tensor as a file describes it. Dims and strides are copied. */
struct nrg_tensor_info {
    enum nrg_dtype dtype;
    int rank;
    int64_t dims[NRG_MAX_RANK], strides[NRG_MAX_RANK];
    bool has_strides, is_parameter;
    int requires_grad;   /* -1 unknown */
    const char *device;  /* NULL unknown; copied */
    const char *storage; /* copied; NULL unknown */
    size_t storage_len;
    int64_t storage_offset;
    int64_t storage_numel; /* -1 unknown */
    int64_t bytes;         /* -1: from dtype and dims */
};

enum nrg_param_role {
    NRG_ROLE_GUESS, /* by well-known buffer names */
    NRG_ROLE_PARAM,
    NRG_ROLE_BUFFER,
    NRG_ROLE_EXTRA
};

/* A clean, terminated copy in the model's arena (bad UTF-8 becomes '?'). */
const char *nrg_model_text(struct nrg_model *model, const char *text, size_t len);

/*
 * Adds a parameter. -EOVERFLOW when its elements or bytes do not fit 63 bits, -EINVAL for
 * negative dims; `where` is the file for the message.
 */
int nrg_param_add(struct nrg_model *model, const char *where, const char *name, size_t name_len,
                  const struct nrg_tensor_info *tensor, enum nrg_param_role role,
                  struct nrg_error *err);

/* The type of a tensor in the arena, with strides and device; NULL when out of memory. */
const struct nrg_type *nrg_tensor_type(struct nrg_arena *arena,
                                       const struct nrg_tensor_info *tensor);

/* running_mean, attn_mask and the like: what the well-known modules register as buffers. */
bool nrg_param_is_known_buffer(const char *name);

/* Adds every prefix of the parameters' dotted names as a module, in order, if it is not there. */
int nrg_param_modules(struct nrg_model *model);
/* The end of a reader of parameters alone: there must be some, and modules follow from them. */
int nrg_param_finish(struct nrg_model *model, const char *where, struct nrg_error *err);

#endif
