/*
 * Prediction by the layer model: convolutions, pools and dense layers of an engine info or a model
 * summary, each by its own run time and power. The other layers have no model and are left out of
 * the sum; how many there are is said, because on small layers they are a good part of the energy.
 */
#include "predict/predict_layer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int reason(struct nrg_prediction *out, char *text)
{
    if (text &&
        !nrg_reserve(&out->reasons, &out->cap_reasons, out->n_reasons + 1, sizeof *out->reasons)) {
        out->reasons[out->n_reasons++] = text;
        return 0;
    }
    free(text);
    return -ENOMEM;
}

static void add(struct nrg_estimate *sum, const struct nrg_estimate *e, double times)
{
    sum->energy_j += times * e->energy_j;
    sum->low_j += times * e->low_j;
    sum->high_j += times * e->high_j;
    sum->beyond = fmax(sum->beyond, e->beyond);
}

static size_t node_of(const struct nrg_module_tree *tree, const char *module)
{
    for (size_t i = 1; module && i < tree->n; i++)
        if (!strcmp(tree->nodes[i].name, module))
            return i;
    return 0;
}

static void add_to_tree(struct nrg_prediction *out, const struct nrg_module_tree *tree, size_t node,
                        const struct nrg_estimate *e, double times)
{
    out->nodes[node].self_j += times * e->energy_j;
    for (;; node = tree->nodes[node].parent) {
        add(&out->nodes[node].estimate, e, times);
        out->nodes[node].operators++;
        if (!node)
            return;
    }
}

static int add_term(struct nrg_prediction *out, const char *type, double energy_j, double times)
{
    size_t i = 0;
    while (i < out->n_terms && strcmp(out->terms[i].group, type))
        i++;
    if (i == out->n_terms) {
        if (nrg_reserve(&out->terms, &out->cap_terms, i + 1, sizeof *out->terms))
            return -ENOMEM;
        out->terms[out->n_terms++] = (struct nrg_term){.group = type, .unit = "layer_j"};
    }
    out->terms[i].amount += times;
    out->terms[i].energy_j += times * energy_j;
    out->terms[i].coefficient = out->terms[i].energy_j / out->terms[i].amount;
    return 0;
}

static int say(struct nrg_prediction *out, const struct nrg_reduced *reduced, size_t left_out,
               const char *first, size_t beyond)
{
    char *text = NULL;
    int rc = 0;
    if (left_out && asprintf(&text,
                             "%zu of %zu layers are of types without a model (first %s): they are "
                             "not in the sum",
                             left_out, reduced->n_operators, first) >= 0)
        rc = reason(out, text);
    text = NULL;
    if (!rc && beyond &&
        asprintf(&text, "%zu layers have sizes outside of those that were measured", beyond) >= 0)
        rc = reason(out, text);
    return rc;
}

int nrg_predict_layers(struct nrg_prediction *out, const struct nrg_layer_model *model,
                       const struct nrg_reduced *reduced, const struct nrg_module_tree *tree,
                       struct nrg_error *err)
{
    size_t left_out = 0, beyond = 0;
    const char *first = NULL;
    int rc = 0;
    out->n = tree->n;
    out->n_operators = reduced->n_operators;
    out->nodes = calloc(tree->n + 1, sizeof *out->nodes);
    out->operators = calloc(reduced->n_operators + 1, sizeof *out->operators);
    if (!out->nodes || !out->operators || !tree->n)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
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
        add_to_tree(out, tree, node_of(tree, op->module), &e.energy, times);
        rc = add_term(out, nrg_layer_type_names[type], e.energy.energy_j, times);
    }
    if (!rc && !out->nodes[0].operators)
        return nrg_fail(err, -ENODATA, NULL,
                        "no layer of it is a convolution, pool or dense layer that the profile "
                        "knows: it predicts TensorRT engine infos and model summaries");
    if (!rc)
        rc = say(out, reduced, left_out, first, beyond);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}
