/* See estimate.h. */
#include "predict/physical/estimate.h"

#include <errno.h>
#include <math.h>

#include "predict/kinds.h"
#include "predict/physical/internal.h"

#define UNKNOWN_AWAY 1.0 /* an operator's distance when its kind is unknown */
#define FORM_AWAY    1.0 /* and when only another form of its kind was measured */
#define MOST_PARTS   4000
#define MOST_DEPTH   64

static double group_energy(const struct nrg_group *group, const double x[NRG_OPERATOR_UNITS])
{
    double e = 0;
    for (int u = 0; u < NRG_OPERATOR_UNITS; u++)
        e += group->joules[u] * x[u];
    return e;
}

bool nrg_group_other_form(const struct nrg_group *group, const char *kind)
{
    unsigned form = nrg_kind_form(kind);
    return form && group->forms && !(group->forms & form);
}

static double size_beyond(const struct nrg_group *group, const double *x)
{
    double beyond = 0;
    for (int u = 1; u < NRG_OPERATOR_UNITS; u++)
        beyond = fmax(beyond, nrg_range_beyond(group->range[u], x[u]));
    return beyond;
}

static void set_bounds(struct nrg_estimate *e, double q)
{
    double width = exp(q + e->widen);
    e->low_j = (e->energy_j - e->less_j) / width;
    e->high_j = (e->energy_j + e->more_j) * width;
}

/* Profiles of older programs have no half width for stand-ins: twice that of operators. */
static double stand_in_of(const struct nrg_physical *model, enum nrg_node_level level)
{
    double q = model->stand_in[level];
    return isnan(q) ? 2 * model->q[NRG_NODE_OPERATOR] : q;
}

static double seam_of(const struct nrg_physical *model, enum nrg_node_level level)
{
    return isnan(model->seam[level]) ? 0 : model->seam[level];
}

static double half_of(const struct nrg_physical *model, const struct nrg_group *group)
{
    return isnan(group->q) ? model->q[NRG_NODE_OPERATOR] : group->q;
}

void nrg_physical_operator(const struct nrg_physical *model, const char *kind,
                           const double x[NRG_OPERATOR_UNITS], struct nrg_estimate *out)
{
    double corner[NRG_OPERATOR_UNITS] = {1};
    bool known;
    const struct nrg_group *group = nrg_physical_group(model, kind, x[NRG_PER_MAC] > 0, &known);
    double linear = group_energy(group, x), beyond = size_beyond(group, x);
    for (int u = 1; u < NRG_OPERATOR_UNITS; u++)
        corner[u] =
            group->range[u].high >= group->range[u].low ? fmax(x[u], group->range[u].low) : x[u];
    *out = (struct nrg_estimate){.energy_j = fmax(linear, model->floor_j),
                                 .own = known ? half_of(model, group)
                                              : stand_in_of(model, NRG_NODE_OPERATOR),
                                 .unknown_kind = !known,
                                 .other_form = known && nrg_group_other_form(group, kind)};
    if (out->other_form)
        beyond = fmax(beyond, FORM_AWAY);
    out->beyond = known ? beyond : fmax(beyond, UNKNOWN_AWAY);
    out->less_j = out->energy_j - linear;
    out->more_j = fmax(0, group_energy(group, corner) - out->energy_j);
    out->stand_in_j = known ? 0 : out->energy_j;
    out->groups = nrg_group_bit(model, group);
    out->widen = half_of(model, group) * beyond;
    set_bounds(out, out->own);
}

/* Adds `count` of an operator; distances and half widths are energy-weighted sums until finish. */
void nrg_estimate_add(struct nrg_estimate *sum, const struct nrg_estimate *part, double count)
{
    sum->energy_j += count * part->energy_j;
    sum->low_j += count * part->low_j;
    sum->high_j += count * part->high_j;
    sum->less_j += count * part->less_j;
    sum->more_j += count * part->more_j;
    sum->beyond += count * part->energy_j * part->beyond;
    sum->widen += count * part->energy_j * part->widen;
    sum->own += count * part->energy_j * part->own;
    sum->groups |= part->groups;
    sum->stand_in_j += count * part->stand_in_j;
    sum->unknown_kind |= part->unknown_kind;
    sum->other_form |= part->other_form;
}

/* Of a module that is made of such operators, or of a model. NAN: only operators were measured. */
static double composite_half(const struct nrg_physical *model, enum nrg_node_level level,
                             const struct nrg_estimate *e)
{
    if (level == NRG_NODE_MODEL && !isnan(model->q[level]))
        return model->q[level];
    for (size_t i = 0; i < model->n_module_kinds; i++)
        if (model->module_kinds[i].groups == e->groups)
            return model->module_kinds[i].q;
    return model->q[NRG_NODE_MODULE];
}

/* Adds what goes on between operators, which widens as far as it is outside of what was seen. */
static void add_beside(const struct nrg_physical *model, const double x[NRG_MODULE_UNITS], double q,
                       struct nrg_estimate *e)
{
    for (int u = 0; u < NRG_MODULE_UNITS; u++) {
        double joules = model->module_joules[u] * x[u];
        double beyond = nrg_range_beyond(model->module_range[u], x[u]);
        e->energy_j += joules;
        e->beyond += joules * beyond;
        e->widen += joules * beyond * q;
    }
}

/*
 * Errors of operators in range partly cancel in a module's sum, and its own q includes that. Errors
 * of operators out of range all have one sign, so they widen the interval by their own distance,
 * and those of stand-ins as they did on models held out, each times its share of the energy. A
 * module smaller than all that were measured widens it, too, because the energy between operators
 * then has a larger share.
 *
 * A module uses at least what its operators use at the least. Where only operators were measured,
 * not even that is known: how far their errors cancel, what energy is used between them, and how
 * other code for the same operators compares. The interval is then as wide as its operators', and
 * reaches from half to twice that.
 */
void nrg_physical_finish(const struct nrg_physical *model, enum nrg_node_level level,
                         const double x[NRG_MODULE_UNITS], struct nrg_estimate *e)
{
    double operators_j = e->energy_j, operators_low_j = e->low_j;
    double q = composite_half(model, level, e);
    bool calibrated = !isnan(q);
    if (!calibrated) {
        q = operators_j > 0 ? e->own / operators_j : NAN;
        e->less_j += operators_j / 2;
        e->more_j += operators_j;
    }
    add_beside(model, x, q, e);
    if (e->stand_in_j > 0 && calibrated)
        e->widen += e->stand_in_j * stand_in_of(model, level);
    e->beyond = e->energy_j > 0 ? e->beyond / e->energy_j : 0;
    e->widen = e->energy_j > 0 ? e->widen / e->energy_j : 0;
    if (e->energy_j < model->least_j[level] && isfinite(model->least_j[level])) {
        double smaller = log(model->least_j[level] / e->energy_j);
        e->beyond = fmax(e->beyond, smaller);
        e->smaller = smaller * (model->q[NRG_NODE_OPERATOR] + seam_of(model, level));
        e->widen += e->smaller;
    }
    set_bounds(e, q);
    if (calibrated)
        e->low_j = fmax(e->low_j, operators_low_j);
}

/*
 * Work of its own is no less than nothing, and as much more than was counted as it was in training
 * (the seam). A whole that is smaller than all measured ones is unlike them and may have more.
 */
void nrg_estimate_within(const struct nrg_physical *model, enum nrg_node_level level,
                         struct nrg_parts *parts, struct nrg_estimate *whole)
{
    struct nrg_estimate *own = &parts->own;
    if (isnan(whole->low_j))
        return;
    if (!parts->n)
        *own = *whole;
    else if (own->energy_j > 0 || parts->beside[NRG_PER_REST_BYTE] > 0)
        nrg_physical_finish(model, NRG_NODE_MODULE, parts->beside, own);
    own->low_j = fmin(own->energy_j, fmax(own->low_j, parts->least_j));
    double more = parts->n ? exp(whole->smaller + seam_of(model, level)) : 1;
    double high_j = (parts->high_j + own->high_j) * more;
    whole->low_j = fmin(whole->energy_j, fmax(whole->low_j, parts->low_j + own->low_j));
    whole->high_j = fmax(whole->energy_j, fmin(whole->high_j, high_j));
}

/* ---- rows ---- */

static int predict_operator(const struct nrg_physical *model, const struct nrg_dataset *set,
                            size_t row, struct nrg_estimate *out)
{
    double x[NRG_OPERATOR_UNITS];
    if (!nrg_operator_row(set, row, x))
        return -ENODATA;
    nrg_physical_operator(model, set->rows[row].kind, x, out);
    return 0;
}

static int add_leaves(const struct nrg_physical *model, const struct nrg_dataset *set,
                      const struct nrg_row *row, double count, struct nrg_estimate *sum)
{
    for (uint32_t l = 0; l < row->n_leaves; l++) {
        struct nrg_module_part leaf = set->leaves[row->first_leaf + l];
        struct nrg_estimate part;
        int rc = predict_operator(model, set, leaf.row, &part);
        if (rc)
            return rc;
        nrg_estimate_add(sum, &part, count * leaf.count);
    }
    return 0;
}

/* A module of one operator is that operator under another name. */
static bool is_composite(const struct nrg_dataset *set, const struct nrg_row *row)
{
    return row->level != NRG_NODE_OPERATOR &&
           (row->n_leaves > 1 || (row->n_leaves && set->leaves[row->first_leaf].count > 1));
}

/* Rows are walked down to their operators; a file may nest them as deep and often as it likes. */
struct walk {
    const struct nrg_physical *model;
    const struct nrg_dataset *set;
    size_t parts, depth;
};

static int predict_module(struct walk *w, size_t row, struct nrg_estimate *out);

static void take_beside(struct nrg_parts *parts, const double x[NRG_MODULE_UNITS], double count)
{
    for (int u = 0; u < NRG_MODULE_UNITS; u++)
        parts->beside[u] = fmax(0, parts->beside[u] - count * x[u]);
    parts->n++;
}

static int add_composite(struct walk *w, struct nrg_module_part part, struct nrg_parts *parts)
{
    double x[NRG_MODULE_UNITS];
    struct nrg_estimate e = {0};
    if (w->depth >= MOST_DEPTH || !nrg_module_row(w->set, part.row, x))
        return -ENODATA;
    w->depth++;
    int rc = predict_module(w, part.row, &e);
    w->depth--;
    if (rc)
        return rc;
    take_beside(parts, x, part.count);
    parts->low_j += part.count * e.low_j;
    parts->high_j += part.count * e.high_j;
    return 0;
}

static int add_part(struct walk *w, struct nrg_module_part part, struct nrg_parts *parts)
{
    const struct nrg_row *r = &w->set->rows[part.row];
    struct nrg_estimate e;
    if (w->parts++ >= MOST_PARTS)
        return -ENODATA;
    if (is_composite(w->set, r))
        return add_composite(w, part, parts);
    if (r->level != NRG_NODE_OPERATOR)
        return add_leaves(w->model, w->set, r, part.count, &parts->own);
    int rc = predict_operator(w->model, w->set, part.row, &e);
    if (!rc)
        nrg_estimate_add(&parts->own, &e, part.count);
    return rc;
}

static int predict_module(struct walk *w, size_t row, struct nrg_estimate *out)
{
    const struct nrg_physical *model = w->model;
    const struct nrg_row *r = &w->set->rows[row];
    struct nrg_parts parts = {0};
    if (!nrg_module_row(w->set, row, parts.beside))
        return -ENODATA;
    int rc = add_leaves(model, w->set, r, 1, out);
    if (rc)
        return rc;
    double rest_j = model->module_joules[NRG_PER_REST_BYTE] * parts.beside[NRG_PER_REST_BYTE];
    if (!r->n_leaves && out->energy_j + rest_j < model->floor_j) {
        out->energy_j = model->floor_j; /* a module without operators costs at least a call */
        out->less_j = model->floor_j;
    }
    nrg_physical_finish(model, r->level, parts.beside, out);
    for (uint32_t p = 0; !rc && p < r->n_parts; p++)
        rc = add_part(w, w->set->parts[r->first_part + p], &parts);
    if (!rc) /* parts that lack features say nothing of the whole */
        nrg_estimate_within(model, r->level, &parts, out);
    return 0;
}

double nrg_physical_seam(const struct nrg_physical *model, const struct nrg_dataset *set,
                         size_t row)
{
    const struct nrg_row *r = &set->rows[row];
    struct nrg_parts parts = {0};
    double sum_j = 0, x[NRG_MODULE_UNITS];
    if (!nrg_module_row(set, row, parts.beside))
        return NAN;
    for (uint32_t p = 0; p < r->n_parts; p++) {
        struct nrg_module_part part = set->parts[r->first_part + p];
        sum_j += part.count * set->rows[part.row].energy_j;
        if (is_composite(set, &set->rows[part.row]) && nrg_module_row(set, part.row, x))
            take_beside(&parts, x, part.count);
    }
    for (int u = 0; u < NRG_MODULE_UNITS; u++)
        sum_j += model->module_joules[u] * parts.beside[u];
    return parts.n ? log(r->energy_j / sum_j) : NAN;
}

/*
 * The power beside the GPU is that of processors as busy as in training. Busier processors may draw
 * more, at most in proportion; idler ones draw less.
 */
static void allow_for_processors(const struct nrg_physical *model, double cpu_util, double time_s,
                                 struct nrg_estimate *e)
{
    struct nrg_range seen = model->law_range[NRG_LAW_TIME_CPU];
    double beside_j = model->law[NRG_LAW_TIME] * time_s;
    if (isnan(cpu_util) || seen.high < seen.low)
        return;
    e->beyond = fmax(e->beyond, nrg_range_beyond(seen, cpu_util));
    if (cpu_util > seen.high && seen.high > 0)
        e->more_j += beside_j * (cpu_util / seen.high - 1);
    if (cpu_util < seen.low)
        e->less_j += beside_j * (1 - cpu_util / seen.low);
}

/* One law for all kinds, but kinds differ in error: the wider of the two intervals counts. */
static double law_width(const struct nrg_physical *model, const struct nrg_row *row)
{
    double q = model->q[row->level];
    bool known;
    if (row->level != NRG_NODE_OPERATOR || !model->groups)
        return q;
    const struct nrg_group *group = nrg_physical_group(model, row->kind, true, &known);
    return known && group->q > q ? group->q : q;
}

static int predict_law(const struct nrg_physical *model, const struct nrg_dataset *set, size_t row,
                       struct nrg_estimate *out)
{
    double x[NRG_LAW_TERMS], q = law_width(model, &set->rows[row]);
    double gpu_hz = nrg_row_feature(set, row, NRG_F_GPU_HZ);
    if (!nrg_law_row(set, row, x))
        return -ENODATA;
    for (int t = 0; t < NRG_LAW_TERMS; t++)
        out->energy_j += model->law[t] * x[t];
    if (!isnan(gpu_hz))
        out->beyond = nrg_range_beyond(model->law_range[NRG_LAW_TIME_GPU_HZ], gpu_hz);
    out->widen = q * out->beyond;
    allow_for_processors(model, nrg_row_feature(set, row, NRG_F_CPU_UTIL), x[NRG_LAW_TIME], out);
    set_bounds(out, q);
    return 0;
}

int nrg_physical_row(const struct nrg_physical *model, const struct nrg_dataset *set, size_t row,
                     struct nrg_estimate *out)
{
    *out = (struct nrg_estimate){0};
    if (model->features == NRG_SET_ALL)
        return predict_law(model, set, row, out);
    if (set->rows[row].level == NRG_NODE_OPERATOR)
        return predict_operator(model, set, row, out);
    return predict_module(&(struct walk){.model = model, .set = set}, row, out);
}
