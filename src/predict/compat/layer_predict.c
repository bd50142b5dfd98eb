/*
 * Prediction by the layer model: convolutions, pools and dense layers of an engine info or a model
 * summary, each by its own run time and power. The other layers have no model and are left out of
 * the sum. A reason says how many, because in small networks they use a good part of the energy.
 */
#include <errno.h>
#include <math.h>

#include "predict/graph_work.h"
#include "predict/internal.h"

static void add_estimate(struct nrg_estimate *sum, const struct nrg_estimate *e, double times)
{
    sum->energy_j += times * e->energy_j;
    sum->low_j += times * e->low_j;
    sum->high_j += times * e->high_j;
    sum->beyond = fmax(sum->beyond, e->beyond);
}

static void add_to_tree(struct nrg_prediction *out, const struct nrg_module_tree *tree, size_t node,
                        const struct nrg_estimate *e, double times)
{
    out->nodes[node].self_j += times * e->energy_j;
    out->nodes[node].self_low_j += times * e->low_j;
    out->nodes[node].self_high_j += times * e->high_j;
    for (;; node = tree->nodes[node].parent) {
        add_estimate(&out->nodes[node].estimate, e, times);
        out->nodes[node].operators++;
        if (!node)
            return;
    }
}

static int add_reasons(struct nrg_prediction *out, size_t left_out, const char *first,
                       size_t beyond)
{
    int rc = 0;
    if (left_out)
        rc = nrg_prediction_reason(out,
                                   "%zu of %zu layers are of types without a model (first %s): "
                                   "they are not in the sum",
                                   left_out, out->n_operators, first);
    if (!rc && beyond)
        rc = nrg_prediction_reason(out, "%zu layers have sizes outside of those that were measured",
                                   beyond);
    return rc;
}

int nrg_predict_layers(struct nrg_prediction *out, const struct nrg_layer_model *model,
                       const struct nrg_reduced *reduced, const struct nrg_module_tree *tree,
                       struct nrg_error *err)
{
    size_t left_out = 0, beyond = 0;
    const char *first = NULL;
    struct nrg_map names = {0};
    int rc = nrg_prediction_init(out, reduced, tree);
    if (!rc)
        rc = nrg_module_tree_index(tree, &names);
    for (size_t i = 0; !rc && i < reduced->n_operators; i++) {
        const struct nrg_operator *op = &reduced->operators[i];
        struct nrg_layer_estimate e;
        double f[NRG_FEATURES], times = (double)op->times;
        for (int k = 0; k < NRG_FEATURES; k++)
            f[k] = NAN;
        int type = nrg_layer_of(op->op, model->original, f);
        if (type < 0 || op->times < 1 || nrg_layer_predict(model, type, f, &e)) {
            first = left_out++ ? first : op->kind;
            continue;
        }
        beyond += e.energy.beyond > 0;
        out->operators[i].estimate = e.energy;
        out->operators[i].group = nrg_layer_type_names[type];
        out->operators[i].time_s = e.time_s;
        add_to_tree(out, tree, nrg_work_node(&names, op), &e.energy, times);
        rc = nrg_prediction_term(out, nrg_layer_type_names[type], "layer_j", e.energy.energy_j,
                                 times);
    }
    nrg_map_release(&names);
    if (!rc && !out->nodes[0].operators)
        return nrg_fail(err, -ENODATA, NULL,
                        "no layer of it is a convolution, pool or dense layer that the profile "
                        "knows: it predicts TensorRT engine infos and model summaries");
    for (size_t i = 0; i < out->n_terms; i++) /* the mean of a type's layers */
        out->terms[i].coefficient = out->terms[i].energy_j / out->terms[i].amount;
    if (!rc)
        rc = add_reasons(out, left_out, first, beyond);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}
