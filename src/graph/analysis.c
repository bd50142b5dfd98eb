/*
 * See analysis.h. The order matters: sizes replace types, the reduction reads types, costs need the
 * reduction, tree and totals need the costs. Steps that do not know the file's name leave the place
 * of an error empty; it is filled in here.
 */
#include "graph/analysis.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "graph/param_list.h"

static int reduce_and_cost(struct nrg_analysis *a, const struct nrg_analysis_options *options,
                           struct nrg_error *err)
{
    int rc = nrg_reduce(&a->model, options->params, &a->reduced, err);
    if (rc) {
        if (err)
            nrg_copy(err->where, sizeof err->where, a->name);
        return rc;
    }
    if (nrg_cost_all(&a->reduced, a->convention))
        return nrg_fail(err, -ENOMEM, a->name, "out of memory");
    return 0;
}

/* The model has been read. */
static int analyse_model(struct nrg_analysis *a, const struct nrg_analysis_options *options,
                         struct nrg_error *err)
{
    int rc = 0;
    if (options->n_sizes)
        rc = nrg_model_resize(&a->model, options->trace, options->sizes, options->n_sizes, a->name,
                              err);
    a->convention = options->convention;
    a->has_graph = a->model.n_graphs > 0;
    if (!rc && options->want_graph && !a->has_graph)
        rc = nrg_fail(err, -ENODATA, a->name, "holds parameters but no graph");
    if (!rc && a->has_graph)
        rc = reduce_and_cost(a, options, err);
    const struct nrg_reduced *reduced = a->has_graph ? &a->reduced : NULL;
    if (!rc && (nrg_module_tree_make(&a->tree, &a->model, reduced, options->params) ||
                nrg_totals_of(&a->tree, reduced, &a->totals)))
        rc = nrg_fail(err, -ENOMEM, a->name, "out of memory");
    if (rc)
        nrg_analysis_release(a);
    return rc;
}

static void clear_analysis(struct nrg_analysis *a, const char *name)
{
    *a = (struct nrg_analysis){0};
    nrg_copy(a->name, sizeof a->name, name);
}

int nrg_analyse(struct nrg_analysis *a, const char *path,
                const struct nrg_analysis_options *options, struct nrg_error *err)
{
    clear_analysis(a, strcmp(path, "-") ? path : "stdin");
    int rc = nrg_model_read(path, options->format, &a->model, err);
    return rc ? rc : analyse_model(a, options, err);
}

int nrg_analyse_bytes(struct nrg_analysis *a, const struct nrg_source *source,
                      const struct nrg_analysis_options *options, struct nrg_error *err)
{
    clear_analysis(a, source->name);
    int rc = nrg_model_read_bytes(source, options->format, &a->model, err);
    return rc ? rc : analyse_model(a, options, err);
}

void nrg_analysis_release(struct nrg_analysis *a)
{
    nrg_module_tree_release(&a->tree);
    nrg_reduced_release(&a->reduced);
    nrg_model_release(&a->model);
}

int nrg_params_read(struct nrg_model *params, const char *path, struct nrg_error *err)
{
    *params = (struct nrg_model){0};
    int rc = nrg_model_read(path, NULL, params, err);
    if (rc || !(rc = nrg_params_from_graph(params, err)))
        return rc;
    nrg_model_release(params);
    return rc;
}
