/* See predict_model.h. */
#include "cli/predict_model.h"

#include <errno.h>

#include "base/mem.h"
#include "graph/reader.h"

void nrg_counted_release(struct nrg_counted *c)
{
    nrg_module_tree_release(&c->tree);
    nrg_reduced_release(&c->reduced);
    nrg_model_release(&c->model);
}

int nrg_counted_read(struct nrg_counted *c, const struct nrg_model_request *r,
                     struct nrg_error *err)
{
    const struct nrg_source source = {r->bytes, r->size, r->path};
    *c = (struct nrg_counted){0};
    int rc = r->bytes ? nrg_model_read_bytes(&source, r->format, &c->model, err)
                      : nrg_model_read(r->path, r->format, &c->model, err);
    if (rc)
        return rc;
    if (r->n_sizes)
        rc = nrg_model_resize(&c->model, r->trace, r->sizes, r->n_sizes, r->path, err);
    c->batch = nrg_model_size(&c->model, "batch");
    if (!rc && !c->model.n_graphs)
        rc = nrg_fail(err, -ENODATA, r->path, "holds parameters but no graph");
    if (!rc && (rc = nrg_reduce(&c->model, r->params, &c->reduced, err)))
        nrg_copy(err->where, sizeof err->where, r->path);
    if (!rc && (nrg_cost_all(&c->reduced, NRG_CONVENTION_NRG) ||
                nrg_module_tree_make(&c->tree, &c->model, &c->reduced, r->params)))
        rc = nrg_fail(err, -ENOMEM, r->path, "out of memory");
    if (rc)
        nrg_counted_release(c);
    return rc;
}
