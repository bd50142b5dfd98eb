/*
 * See prediction.h. Everything is a sum over operators, so a module's energy is that of its parts
 * and the shares of a table add up. Intervals are made per node (node_sums.h), because errors
 * cancel in sums.
 */
#include "predict/prediction.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "predict/graph_work.h"
#include "predict/internal.h"
#include "predict/node_sums.h"

#define BEYOND_SAID 0.05 /* ln: a range exceeded by less than 5 % is not reported */

/* How often operators of a group were outside of what was measured. */
struct outside {
    const char *group;
    size_t smaller, larger;
    double factor;
};

/* A kind that was not measured. */
struct unknown_kind {
    const char *kind;
    size_t count;
    bool is_rest, has_macs, other_form;
};

struct run {
    struct nrg_prediction *out;
    const struct nrg_profile *profile;
    const struct nrg_reduced *reduced;
    const struct nrg_module_tree *tree;
    struct nrg_map names;
    struct nrg_placed *placed; /* per operator */
    struct outside *outside;
    size_t n_outside, cap_outside;
    struct unknown_kind *kinds;
    size_t n_kinds, cap_kinds;
    struct nrg_error *err;
};

void nrg_prediction_release(struct nrg_prediction *p)
{
    free(p->nodes);
    free(p->operators);
    free(p->terms);
    for (size_t i = 0; i < p->n_reasons; i++)
        free(p->reasons[i]);
    free(p->reasons);
    *p = (struct nrg_prediction){0};
}

int nrg_prediction_init(struct nrg_prediction *out, const struct nrg_reduced *reduced,
                        const struct nrg_module_tree *tree)
{
    *out = (struct nrg_prediction){
        .n = tree->n,
        .n_operators = reduced->n_operators,
        .nodes = nrg_calloc(tree->n + 1, sizeof *out->nodes),
        .operators = nrg_calloc(reduced->n_operators + 1, sizeof *out->operators)};
    return out->nodes && out->operators && tree->n ? 0 : -ENOMEM;
}

int nrg_prediction_reason(struct nrg_prediction *out, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, fmt);
    int rc = vasprintf(&text, fmt, ap) < 0 ? -ENOMEM : 0;
    va_end(ap);
    if (!rc &&
        (rc = nrg_append(&out->reasons, &out->n_reasons, &out->cap_reasons, &text, sizeof text)))
        free(text);
    return rc;
}

/* ---- terms ---- */

int nrg_prediction_term(struct nrg_prediction *out, const char *group, const char *unit,
                        double coefficient, double amount)
{
    size_t i = 0;
    while (i < out->n_terms &&
           (strcmp(out->terms[i].group, group) || strcmp(out->terms[i].unit, unit)))
        i++;
    if (i == out->n_terms &&
        nrg_append(&out->terms, &out->n_terms, &out->cap_terms,
                   &(struct nrg_term){group, unit, coefficient, 0, 0}, sizeof *out->terms))
        return -ENOMEM;
    out->terms[i].amount += amount;
    out->terms[i].energy_j += coefficient * amount;
    return 0;
}

static int add_term(struct run *r, const char *group, const char *unit, double coefficient,
                    double amount)
{
    return coefficient * amount > 0 ? nrg_prediction_term(r->out, group, unit, coefficient, amount)
                                    : 0;
}

static int by_energy(const void *a, const void *b)
{
    const struct nrg_term *x = a, *y = b;
    if (x->energy_j != y->energy_j)
        return x->energy_j > y->energy_j ? -1 : 1;
    return strcmp(x->group, y->group);
}

static int add_terms(struct run *r, const struct nrg_work *w, const struct nrg_group *group,
                     bool at_floor)
{
    const struct nrg_physical *m = &r->profile->physical;
    int rc = 0;
    if (!w->is_rest && at_floor)
        rc = add_term(r, "any", "floor_j", m->floor_j, w->times);
    for (int u = 0; !rc && !w->is_rest && !at_floor && u < NRG_OPERATOR_UNITS; u++)
        rc = add_term(r, group->name, nrg_operator_unit_names[u], group->joules[u],
                      w->times * w->x[u]);
    for (int u = 0; !rc && u < NRG_MODULE_UNITS; u++)
        rc = add_term(r, "beside", nrg_module_unit_names[u], m->module_joules[u],
                      w->times * w->beside[u]);
    return rc;
}

/* ---- reasons ---- */

static int note_kind(struct run *r, const struct nrg_work *w, bool other_form)
{
    size_t i = 0;
    while (i < r->n_kinds && strcmp(r->kinds[i].kind, w->kind))
        i++;
    struct unknown_kind unknown = {w->kind, 0, w->is_rest, w->x[NRG_PER_MAC] > 0, other_form};
    if (i == r->n_kinds &&
        nrg_append(&r->kinds, &r->n_kinds, &r->cap_kinds, &unknown, sizeof unknown))
        return -ENOMEM;
    r->kinds[i].count++;
    return 0;
}

static int note_outside(struct run *r, const struct nrg_work *w, const struct nrg_group *group)
{
    double most = 0;
    bool larger = false;
    for (int u = 1; u < NRG_OPERATOR_UNITS; u++) {
        double beyond = nrg_range_beyond(group->range[u], w->x[u]);
        if (beyond <= most)
            continue;
        most = beyond;
        larger = w->x[u] > group->range[u].high;
    }
    if (most < BEYOND_SAID)
        return 0;
    size_t i = 0;
    while (i < r->n_outside && strcmp(r->outside[i].group, group->name))
        i++;
    if (i == r->n_outside &&
        nrg_append(&r->outside, &r->n_outside, &r->cap_outside,
                   &(struct outside){.group = group->name}, sizeof *r->outside))
        return -ENOMEM;
    r->outside[i].smaller += !larger;
    r->outside[i].larger += larger;
    r->outside[i].factor = fmax(r->outside[i].factor, exp(most));
    return 0;
}

static int add_reasons(struct run *r)
{
    const struct nrg_physical *m = &r->profile->physical;
    const struct nrg_estimate *all = &r->out->nodes[0].estimate;
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n_kinds; i++)
        if (!r->kinds[i].is_rest)
            rc = nrg_prediction_reason(r->out,
                                       "%zu operators %s: none was measured on %s, taken as %s",
                                       r->kinds[i].count, r->kinds[i].kind, r->profile->device,
                                       r->kinds[i].other_form ? "another form of the same"
                                       : r->kinds[i].has_macs ? "the mean of others that multiply"
                                                              : "others of the same traffic");
    if (!rc && isnan(r->out->nodes[0].estimate.low_j))
        rc = nrg_prediction_reason(r->out, "too few rows were measured on %s to tell an interval",
                                   r->profile->device);
    else if (!rc && !nrg_physical_has_modules(m))
        rc = nrg_prediction_reason(
            r->out,
            "operators alone were measured on %s: what goes on between them, and other "
            "code for the same operators, is not in the sum; the interval reaches from "
            "half to twice it and more",
            r->profile->device);
    for (size_t i = 0; !rc && i < r->n_outside; i++) {
        const struct outside *o = &r->outside[i];
        const char *how = o->smaller && o->larger ? "smaller or larger"
                          : o->larger             ? "larger"
                                                  : "smaller";
        rc = nrg_prediction_reason(
            r->out,
            "%zu operators of %s are %s than any that was measured, by up to a factor "
            "of %.3g",
            o->smaller + o->larger, o->group, how, o->factor);
    }
    if (!rc && isfinite(m->least_j[NRG_NODE_MODEL]) &&
        all->energy_j < m->least_j[NRG_NODE_MODEL] / exp(BEYOND_SAID))
        rc = nrg_prediction_reason(
            r->out, "the model is smaller than any that was measured, by a factor of %.3g",
            m->least_j[NRG_NODE_MODEL] / all->energy_j);
    return rc;
}

/* ---- sums ---- */

static int add_operator(struct run *r, size_t i)
{
    const struct nrg_physical *m = &r->profile->physical;
    const struct nrg_operator *op = &r->reduced->operators[i];
    struct nrg_op_estimate *made = &r->out->operators[i];
    struct nrg_estimate e = {0};
    struct nrg_work w;
    bool known;
    if (!nrg_work_of(r->reduced, op, m, r->profile->convention, &w) || !op->times)
        return 0;
    const struct nrg_group *group = nrg_physical_group(m, w.kind, w.x[NRG_PER_MAC] > 0, &known);
    if (!w.is_rest)
        nrg_physical_operator(m, w.kind, w.x, &e);
    r->placed[i] = (struct nrg_placed){w, e, nrg_work_node(&r->names, op)};
    double beside_j = 0;
    for (int u = 0; u < NRG_MODULE_UNITS; u++)
        beside_j += m->module_joules[u] * w.beside[u];
    made->group = w.is_rest ? "rest" : group->name;
    made->estimate = e;
    made->estimate.energy_j = w.times * (e.energy_j + beside_j);
    made->estimate.low_j = w.times * (e.low_j + beside_j);
    made->estimate.high_j = w.times * (e.high_j + beside_j);
    int rc = add_terms(r, &w, group, e.less_j > 0);
    bool other_form = w.is_known && nrg_group_other_form(group, w.kind);
    if (!rc && (!w.is_known || other_form))
        rc = note_kind(r, &w, other_form);
    if (!rc && !w.is_rest)
        rc = note_outside(r, &w, group);
    return rc;
}

/* ---- refusing ---- */

static int refuse_unknown(struct run *r)
{
    const struct nrg_operator *first = NULL;
    struct nrg_work w;
    size_t n = 0;
    for (size_t i = 0; i < r->reduced->n_operators; i++) {
        const struct nrg_operator *op = &r->reduced->operators[i];
        if (nrg_work_of(r->reduced, op, &r->profile->physical, r->profile->convention, &w))
            continue;
        first = n++ ? first : op;
    }
    if (!n)
        return 0;
    return nrg_fail(r->err, -ENODATA, NULL,
                    "the cost of %zu of %zu operators is unknown (first %%%s, %s): a prediction "
                    "would leave them out. Shapes of weights come with --params; sizes of symbolic "
                    "dimensions with --batch, --seq or --dim",
                    n, r->reduced->n_operators, first->id, first->kind);
}

static int sum_up(struct run *r)
{
    int rc = nrg_prediction_init(r->out, r->reduced, r->tree);
    r->placed = nrg_calloc(r->reduced->n_operators + 1, sizeof *r->placed);
    if (!rc)
        rc = r->placed ? nrg_module_tree_index(r->tree, &r->names) : -ENOMEM;
    for (size_t i = 0; !rc && i < r->reduced->n_operators; i++)
        rc = add_operator(r, i);
    if (!rc)
        rc = nrg_sum_nodes(r->out, &r->profile->physical, r->tree, r->placed);
    if (!rc && r->out->n_terms)
        qsort(r->out->terms, r->out->n_terms, sizeof *r->out->terms, by_energy);
    return rc ? rc : add_reasons(r);
}

static int predict_physical(struct run *r)
{
    if (r->profile->physical.features == NRG_SET_ALL)
        return nrg_fail(r->err, -ENODATA, NULL,
                        "the profile was made with --features all: it rebuilds a meter from time "
                        "and GPU energy of a run, and can't predict before one");
    int rc = refuse_unknown(r);
    if (!rc && (rc = sum_up(r)))
        nrg_fail(r->err, rc, NULL, "out of memory");
    return rc;
}

int nrg_predict(struct nrg_prediction *out, const struct nrg_profile *profile,
                const struct nrg_reduced *reduced, const struct nrg_module_tree *tree,
                struct nrg_error *err)
{
    struct run r = {.out = out, .profile = profile, .reduced = reduced, .tree = tree, .err = err};
    *out = (struct nrg_prediction){0};
    if (profile->is_llm)
        return nrg_fail(
            err, -EINVAL, NULL,
            "the profile is of language models on servers: nrg predict --llm config.json");
    int rc = profile->is_layer ? nrg_predict_layers(out, &profile->layer, reduced, tree, err)
                               : predict_physical(&r);
    nrg_map_release(&r.names);
    free(r.placed);
    free(r.outside);
    free(r.kinds);
    if (rc)
        nrg_prediction_release(out);
    return rc;
}
