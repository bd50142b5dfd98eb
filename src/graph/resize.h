/*
 * A model at another size: the batch, the sequence length, or any symbolic dimension set to a
 * number. Which dimensions depend on a size follows in one of two ways:
 *
 *   symbols      the file's own (torch.export, ONNX, symbolic TorchScript): "s0", "2*s0"
 *   two traces   of the same model at different sizes: a dimension that differs between them is
 *                c x batch^i x sequence^j, or linear in the one size that differs
 *
 * Everything else is refused, with the reason: a trace at one size does not show which of its
 * numbers are sizes. Types of values are replaced in place; reduce and count afterwards. Not
 * thread-safe.
 */
#ifndef NRG_GRAPH_RESIZE_H
#define NRG_GRAPH_RESIZE_H

#include "graph/graph.h"

struct nrg_size {
    const char *name; /* "batch", "seq", or a symbol's own name */
    int64_t value;
};

/*
 * `other`: a second trace, or NULL. 0, or -errno with err; the model is then not to be used.
 * `where` names the file for messages.
 */
int nrg_model_resize(struct nrg_model *model, const struct nrg_model *other,
                     const struct nrg_size *sizes, size_t n, const char *where,
                     struct nrg_error *err);

/* The size that the model has now: "batch" or "seq" of its first input; -1 unknown. */
int64_t nrg_model_size(const struct nrg_model *model, const char *name);

#endif
