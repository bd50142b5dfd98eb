/* Totals of a whole model as a reader left it: reduced and costed on the way, nothing is kept. */
#include "graph/reduce.h"

#include "graph/cost.h"

int nrg_totals_of_model(const struct nrg_model *model, const struct nrg_model *params,
                        struct nrg_totals *totals, struct nrg_error *err)
{
    struct nrg_reduced reduced = {0};
    bool has_graph = model->n_graphs > 0;
    int rc = 0;
    if (has_graph) {
        if ((rc = nrg_reduce(model, params, &reduced, err)))
            return rc;
        rc = nrg_cost_all(&reduced, NRG_CONVENTION_NRG);
    }
    if (!rc)
        rc = nrg_totals_of(model, has_graph ? &reduced : NULL, params, totals);
    nrg_reduced_release(&reduced);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}
