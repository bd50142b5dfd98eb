/*
 * torchinfo's mult-adds. It looks at modules that have no modules inside and ran as such, at their
 * output and at the names of their own parameters:
 *   "weight" and "bias" of a convolution    elements x batch x output space
 *   "weight" and "bias" of others           elements x the output's first dimension, so a linear
 *                                           layer over a sequence counts as over one element of it
 *   other names with "weight" or "bias"     elements x the output's first two dimensions
 *   anything else                           0
 * Parameters that another module's code reads (attention reads its projection's) do not count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "graph/cost/internal.h"
#include "graph/param.h"

struct torchinfo {
    struct nrg_map parents;          /* modules with modules inside */
    const struct nrg_type **outputs; /* by operator: what its module's call ends with */
};

static size_t module_len(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

/* Every prefix of a module's path is a module that holds it. */
static int add_parents(struct torchinfo *t, const char *module, size_t len)
{
    int rc = 0;
    while (len && !rc) {
        while (len && module[len - 1] != '.')
            len--;
        len -= len ? 1 : 0;
        rc = nrg_map_number(&t->parents, module, len) >= 0
                 ? 0
                 : nrg_map_put(&t->parents, module, len, 0);
    }
    return rc;
}

static int find_parents(struct torchinfo *t, const struct nrg_reduced *g)
{
    int rc = 0;
    for (size_t i = 0; i < g->n_data && !rc; i++)
        if (g->data[i]->kind == NRG_DATA_PARAM && g->data[i]->path)
            rc = add_parents(t, g->data[i]->path, module_len(g->data[i]->path));
    for (size_t i = 0; i < g->n_modules && !rc; i++)
        rc = add_parents(t, g->modules[i].path, strlen(g->modules[i].path));
    for (size_t i = 0; i < g->model->n_modules && !rc; i++)
        rc = add_parents(t, g->model->modules[i].name, strlen(g->model->modules[i].name));
    return rc;
}

/* What a module's call ends with: the last tensor of the run of its operators, views too. */
static int find_outputs(struct torchinfo *t, const struct nrg_reduced *g)
{
    const struct nrg_type *last = NULL;
    const char *module = NULL;
    t->outputs = nrg_calloc(g->n_operators + 1, sizeof *t->outputs);
    if (!t->outputs)
        return -ENOMEM;
    for (size_t i = g->n_dropped; i-- > 0;) {
        const struct nrg_dropped *d = &g->dropped[i];
        const struct nrg_type *type =
            d->op->n_outputs ? d->op->outputs[0]->type : &nrg_type_unknown;
        if (d->rule != NRG_KEPT && d->rule != NRG_DROP_VIEW)
            continue;
        if (!d->op->module || !module || strcmp(d->op->module, module) != 0)
            last = type;
        module = d->op->module;
        if (d->kept >= 0)
            t->outputs[d->kept] = nrg_type_plain(last);
    }
    return 0;
}

/* A leaf whose own code reads the parameter. */
static bool counts(const struct torchinfo *t, const struct nrg_operator *op,
                   const struct nrg_data *param)
{
    size_t len = module_len(param->path);
    bool own = !op->module || (strlen(op->module) == len && !memcmp(op->module, param->path, len));
    return own && nrg_map_number(&t->parents, param->path, len) < 0;
}

static int64_t uses_of(const char *name, bool convolution, const struct nrg_type *out)
{
    if (nrg_type_numel(out) < 0)
        return NRG_COST_UNKNOWN;
    if (!strcmp(name, "weight") || !strcmp(name, "bias"))
        return convolution ? nrg_cost_product(out, out->rank, 1) : nrg_cost_product(out, 1, -1);
    if (strstr(name, "weight") || strstr(name, "bias"))
        return nrg_cost_product(out, out->rank < 2 ? out->rank : 2, -1);
    return 0;
}

static int64_t mult_adds(const struct torchinfo *t, const struct nrg_operator *op,
                         const struct nrg_type *out)
{
    int64_t sum = 0;
    for (size_t i = 0; i < op->n_inputs; i++) {
        const struct nrg_data *d = op->inputs[i];
        if (d->kind != NRG_DATA_PARAM || nrg_param_is_known_buffer(d->path) || !counts(t, op, d))
            continue;
        const char *dot = strrchr(d->path, '.');
        int64_t uses = uses_of(dot ? dot + 1 : d->path, !strcmp(op->rule->code, "C"), out);
        sum = nrg_cost_add(sum, nrg_cost_mul(nrg_data_numel(d), uses));
    }
    return sum;
}

int nrg_cost_torchinfo(struct nrg_reduced *g)
{
    struct torchinfo t = {0};
    int rc = find_parents(&t, g);
    if (!rc)
        rc = find_outputs(&t, g);
    for (size_t i = 0; i < g->n_operators && !rc; i++) {
        struct nrg_cost *cost = &g->operators[i].cost;
        cost->macs = cost->flops =
            mult_adds(&t, &g->operators[i], t.outputs[i] ? t.outputs[i] : &nrg_type_unknown);
    }
    nrg_map_release(&t.parents);
    free(t.outputs);
    return rc;
}
