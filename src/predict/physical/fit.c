/*
 * See physical.h. Relative weighting divides each equation by its energy, so that a layer norm of
 * a millijoule counts as much as a matrix product of a joule; the answer is then the coefficients
 * with the smallest mean square of relative errors.
 */
#include "predict/physical/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linalg.h"
#include "base/mem.h"
#include "predict/kinds.h"

const char *const nrg_operator_unit_names[NRG_OPERATOR_UNITS] = {"call_j", "mac_j", "byte_j"};
const char *const nrg_module_unit_names[NRG_MODULE_UNITS] = {"operator_j", "rest_byte_j",
                                                             "copied_byte_j", "score_byte_j"};
const char *const nrg_law_term_names[NRG_LAW_TERMS] = {"gpu_energy",      "time_w",
                                                       "time_gpu_util_w", "time_gpu_mem_util_w",
                                                       "time_gpu_hz_w",   "time_cpu_util_w"};

/* Stand-ins for kinds that nobody measured: those with multiply-accumulates, and the others. */
enum { OTHER_COMPUTE, OTHER_MEMORY, OTHERS };

#define WIDEN_UNKNOWN 1.0 /* an operator's distance when its kind is a stand-in's */
#define WIDEN_FORM    0.5 /* and when only another form of its kind was measured */
#define ANY_FORM      (~0u)

void nrg_physical_release(struct nrg_physical *model)
{
    free(model->groups);
    *model = (struct nrg_physical){0};
}

/* ---- features ---- */

static bool operator_row(const struct nrg_dataset *set, size_t row, double x[NRG_OPERATOR_UNITS])
{
    double written = nrg_row_feature(set, row, NRG_F_WRITTEN_BYTES);
    x[NRG_PER_CALL] = 1;
    x[NRG_PER_MAC] = nrg_row_feature(set, row, NRG_F_MACS);
    x[NRG_PER_BYTE] = nrg_row_feature(set, row, NRG_F_READ_BYTES) + (isnan(written) ? 0 : written);
    return !isnan(x[NRG_PER_MAC]) && !isnan(x[NRG_PER_BYTE]);
}

/* What a module has beside its operators' own energies. */
static bool module_row(const struct nrg_dataset *set, size_t row, double x[NRG_MODULE_UNITS])
{
    const struct nrg_row *r = &set->rows[row];
    memset(x, 0, NRG_MODULE_UNITS * sizeof *x);
    for (uint32_t l = 0; l < r->n_leaves; l++) {
        struct nrg_part leaf = set->leaves[r->first_leaf + l];
        double copied = nrg_row_feature(set, leaf.row, NRG_F_COPIED_BYTES);
        double score = nrg_row_feature(set, leaf.row, NRG_F_SCORE_BYTES);
        x[NRG_PER_OPERATOR] += leaf.count;
        x[NRG_PER_COPIED_BYTE] += isnan(copied) ? 0 : leaf.count * copied;
        x[NRG_PER_SCORE_BYTE] += isnan(score) ? 0 : leaf.count * score;
    }
    x[NRG_PER_REST_BYTE] = nrg_row_feature(set, row, NRG_F_REST_BYTES);
    return !isnan(x[NRG_PER_REST_BYTE]);
}

/* Without the GPU's own energy, time and what keeps the GPU busy stand in for it. */
static bool law_row(const struct nrg_dataset *set, size_t row, double x[NRG_LAW_TERMS])
{
    double time = nrg_row_feature(set, row, NRG_F_TIME_S);
    double gpu = nrg_row_feature(set, row, NRG_F_GPU_ENERGY_J);
    static const enum nrg_feature factors[] = {NRG_F_GPU_UTIL, NRG_F_GPU_MEM_UTIL, NRG_F_GPU_HZ,
                                               NRG_F_CPU_UTIL};
    memset(x, 0, NRG_LAW_TERMS * sizeof *x);
    x[NRG_LAW_TIME] = time;
    if (set->columns[NRG_F_GPU_ENERGY_J]) {
        x[NRG_LAW_GPU_ENERGY] = gpu;
        return !isnan(time) && !isnan(gpu);
    }
    for (int i = 0; i < 4; i++) {
        double factor = nrg_row_feature(set, row, factors[i]);
        x[NRG_LAW_TIME_GPU + i] = isnan(factor) ? 0 : time * factor;
    }
    return !isnan(time);
}

/* ---- ranges ---- */

static const struct nrg_range nowhere = {INFINITY, -INFINITY};

static void extend(struct nrg_range *range, double value)
{
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

double nrg_range_beyond(struct nrg_range range, double value)
{
    if (range.high < range.low || (value >= range.low && value <= range.high))
        return 0;
    if (value > range.high)
        return range.high > 0 ? log(value / range.high) : 1;
    return value > 0 ? log(range.low / value) : range.low > 0 ? 1 : 0;
}

/* ---- fitting ---- */

/* Each measurement once, however many nodes share it. */
static bool usable(const struct nrg_dataset *set, const bool *mask, size_t row)
{
    return (!mask || mask[row]) && set->rows[row].measurement == row;
}

struct equations {
    double gram[NRG_LAW_TERMS * NRG_LAW_TERMS], rhs[NRG_LAW_TERMS];
    size_t rows;
};

/* x * coefficients = value, in relative errors of `energy`. */
static void add_equation(struct equations *e, size_t n, const double *x, double value,
                         double energy)
{
    double row[NRG_LAW_TERMS];
    for (size_t i = 0; i < n; i++)
        row[i] = x[i] / energy;
    nrg_normal_add(e->gram, e->rhs, n, row, value / energy, 1);
    e->rows++;
}

static struct nrg_group *group_at(struct nrg_physical *model, const char *name)
{
    for (size_t i = 0; i < model->n; i++)
        if (!strcmp(model->groups[i].name, name))
            return &model->groups[i];
    return NULL;
}

static int find_groups(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask)
{
    for (size_t i = 0; i < set->n; i++) {
        const char *name = nrg_kind_group(set->rows[i].kind);
        if (set->rows[i].level != NRG_NODE_OPERATOR || !usable(set, mask, i) ||
            group_at(model, name))
            continue;
        if (nrg_reserve(&model->groups, &model->cap, model->n + 1 + OTHERS, sizeof *model->groups))
            return -ENOMEM;
        model->groups[model->n++] = (struct nrg_group){.name = name};
    }
    return model->groups || !nrg_reserve(&model->groups, &model->cap, OTHERS, sizeof *model->groups)
               ? 0
               : -ENOMEM;
}

static void group_clear(struct nrg_group *group, const char *name)
{
    *group = (struct nrg_group){.name = name, .q = NAN};
    for (int u = 0; u < NRG_OPERATOR_UNITS; u++)
        group->range[u] = nowhere;
}

static int fit_operators(struct nrg_physical *model, const struct nrg_dataset *set,
                         const bool *mask)
{
    struct equations *all = calloc(model->n + OTHERS, sizeof *all);
    double x[NRG_OPERATOR_UNITS];
    int rc = all ? 0 : -ENOMEM;
    for (size_t g = 0; g < model->n + OTHERS; g++)
        group_clear(&model->groups[g], g < model->n                    ? model->groups[g].name
                                       : g == model->n + OTHER_COMPUTE ? "other compute"
                                                                       : "other memory");
    for (size_t i = 0; !rc && i < set->n; i++) {
        if (set->rows[i].level != NRG_NODE_OPERATOR || !usable(set, mask, i))
            continue;
        if (!operator_row(set, i, x)) {
            model->unused_rows++;
            continue;
        }
        size_t g = (size_t)(group_at(model, nrg_kind_group(set->rows[i].kind)) - model->groups);
        size_t other = model->n + (x[NRG_PER_MAC] > 0 ? OTHER_COMPUTE : OTHER_MEMORY);
        for (int u = 1; u < NRG_OPERATOR_UNITS; u++) {
            extend(&model->groups[g].range[u], x[u]);
            extend(&model->groups[other].range[u], x[u]);
        }
        unsigned form = nrg_kind_form(set->rows[i].kind);
        model->groups[g].forms |= form ? form : ANY_FORM;
        double energy = set->rows[i].energy_j;
        model->floor_j = model->rows ? fmin(model->floor_j, energy) : energy;
        add_equation(&all[g], NRG_OPERATOR_UNITS, x, energy, energy);
        add_equation(&all[other], NRG_OPERATOR_UNITS, x, energy, energy);
        model->rows++;
    }
    for (size_t g = 0; !rc && g < model->n + OTHERS; g++) {
        model->groups[g].rows = all[g].rows;
        rc = nrg_nnls(all[g].gram, all[g].rhs, NRG_OPERATOR_UNITS, model->groups[g].joules);
    }
    free(all);
    return rc;
}

const struct nrg_group *nrg_physical_group(const struct nrg_physical *model, const char *kind,
                                           bool has_macs, bool *known)
{
    const char *name = nrg_kind_group(kind);
    for (size_t i = 0; i < model->n; i++) {
        if (!strcmp(model->groups[i].name, name) && model->groups[i].rows) {
            *known = true;
            return &model->groups[i];
        }
    }
    *known = false;
    const struct nrg_group *other = &model->groups[model->n];
    if (!has_macs && other[OTHER_MEMORY].rows)
        return &other[OTHER_MEMORY];
    return other[OTHER_COMPUTE].rows ? &other[OTHER_COMPUTE] : &other[OTHER_MEMORY];
}

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

static double operator_beyond(const struct nrg_group *group, const char *kind, bool known,
                              const double *x)
{
    double beyond = !known ? WIDEN_UNKNOWN : nrg_group_other_form(group, kind) ? WIDEN_FORM : 0;
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

void nrg_physical_operator(const struct nrg_physical *model, const char *kind,
                           const double x[NRG_OPERATOR_UNITS], struct nrg_estimate *out)
{
    double corner[NRG_OPERATOR_UNITS] = {1};
    bool known;
    const struct nrg_group *group = nrg_physical_group(model, kind, x[NRG_PER_MAC] > 0, &known);
    double linear = group_energy(group, x);
    for (int u = 1; u < NRG_OPERATOR_UNITS; u++)
        corner[u] =
            group->range[u].high >= group->range[u].low ? fmax(x[u], group->range[u].low) : x[u];
    *out = (struct nrg_estimate){.energy_j = fmax(linear, model->floor_j),
                                 .beyond = operator_beyond(group, kind, known, x),
                                 .unknown_kind = !known};
    out->less_j = out->energy_j - linear;
    out->more_j = fmax(0, group_energy(group, corner) - out->energy_j);
    double q = isnan(group->q) ? model->q[NRG_NODE_OPERATOR] : group->q;
    out->own = q;
    out->widen = q * out->beyond;
    set_bounds(out, q);
}

/* Operators as they were measured; those that are outside of the mask as predicted. */
static double operators_energy(const struct nrg_physical *model, const struct nrg_dataset *set,
                               const bool *mask, const struct nrg_row *row)
{
    double sum = 0, x[NRG_OPERATOR_UNITS];
    struct nrg_estimate e;
    for (uint32_t l = 0; l < row->n_leaves; l++) {
        struct nrg_part leaf = set->leaves[row->first_leaf + l];
        const struct nrg_row *op = &set->rows[leaf.row];
        if (!mask || mask[leaf.row]) {
            sum += leaf.count * op->energy_j;
        } else if (operator_row(set, leaf.row, x)) {
            nrg_physical_operator(model, op->kind, x, &e);
            sum += leaf.count * e.energy_j;
        }
    }
    return sum;
}

static int fit_modules(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask)
{
    struct equations all = {0};
    double x[NRG_MODULE_UNITS];
    for (int u = 0; u < NRG_MODULE_UNITS; u++)
        model->module_range[u] = nowhere;
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        model->least_j[l] = INFINITY;
    for (size_t i = 0; i < set->n; i++) {
        const struct nrg_row *row = &set->rows[i];
        if (row->level == NRG_NODE_OPERATOR || !usable(set, mask, i))
            continue;
        if (!module_row(set, i, x)) {
            model->unused_rows++;
            continue;
        }
        for (int u = 0; u < NRG_MODULE_UNITS; u++)
            extend(&model->module_range[u], x[u]);
        double rest_j = row->energy_j - operators_energy(model, set, mask, row);
        model->least_j[row->level] = fmin(model->least_j[row->level], row->energy_j);
        add_equation(&all, NRG_MODULE_UNITS, x, rest_j, row->energy_j);
        model->rows++;
    }
    return nrg_nnls(all.gram, all.rhs, NRG_MODULE_UNITS, model->module_joules);
}

static int fit_law(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask)
{
    static const enum nrg_feature watched[NRG_LAW_TERMS] = {NRG_F_GPU_ENERGY_J, NRG_F_TIME_S,
                                                            NRG_F_GPU_UTIL,     NRG_F_GPU_MEM_UTIL,
                                                            NRG_F_GPU_HZ,       NRG_F_CPU_UTIL};
    struct equations all = {0};
    double x[NRG_LAW_TERMS];
    for (int t = 0; t < NRG_LAW_TERMS; t++)
        model->law_range[t] = nowhere;
    for (size_t i = 0; i < set->n; i++) {
        if (!usable(set, mask, i))
            continue;
        if (!law_row(set, i, x)) {
            model->unused_rows++;
            continue;
        }
        for (int t = 0; t < NRG_LAW_TERMS; t++) {
            double value = nrg_row_feature(set, i, watched[t]);
            if (!isnan(value))
                extend(&model->law_range[t], value);
        }
        add_equation(&all, NRG_LAW_TERMS, x, set->rows[i].energy_j, set->rows[i].energy_j);
        model->rows++;
    }
    return nrg_nnls(all.gram, all.rhs, NRG_LAW_TERMS, model->law);
}

int nrg_physical_fit(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask,
                     enum nrg_feature_set features, struct nrg_error *err)
{
    *model = (struct nrg_physical){.features = features};
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        model->q[l] = model->expected_error[l] = NAN;
    int rc = find_groups(model, set, mask);
    if (!rc)
        rc = fit_operators(model, set, mask);
    if (features == NRG_SET_ALL) {
        model->rows = model->unused_rows = 0;
        if (!rc)
            rc = fit_law(model, set, mask);
    } else if (!rc) {
        rc = fit_modules(model, set, mask);
    }
    if (rc)
        nrg_fail(err, rc, NULL, "out of memory");
    else if (!model->rows)
        rc = nrg_fail(err, -ENODATA, NULL,
                      features == NRG_SET_ALL
                          ? "no row has time and what else --features all needs"
                          : "no row has the static features that are needed: MACs and bytes of "
                            "operators, rest bytes of modules");
    if (rc)
        nrg_physical_release(model);
    return rc;
}

/* ---- predicting ---- */

bool nrg_physical_has_modules(const struct nrg_physical *model)
{
    struct nrg_range operators = model->module_range[NRG_PER_OPERATOR];
    return operators.high >= operators.low;
}

static int predict_operator(const struct nrg_physical *model, const struct nrg_dataset *set,
                            size_t row, struct nrg_estimate *out)
{
    double x[NRG_OPERATOR_UNITS];
    if (!operator_row(set, row, x))
        return -ENODATA;
    nrg_physical_operator(model, set->rows[row].kind, x, out);
    return 0;
}

/* Adds `count` of a part; beyond and widen are sums of energy-weighted ones until the end. */
void nrg_estimate_add(struct nrg_estimate *sum, const struct nrg_estimate *part, double count)
{
    sum->energy_j += count * part->energy_j;
    sum->less_j += count * part->less_j;
    sum->more_j += count * part->more_j;
    sum->beyond += count * part->energy_j * part->beyond;
    sum->widen += count * part->energy_j * part->widen;
    sum->own += count * part->energy_j * part->own;
    sum->unknown_kind |= part->unknown_kind;
}

/*
 * Errors of operators that were in range cancel in a module's sum, which is what its own q tells;
 * those of operators out of range all go one way, so they widen it by their own measure. So does
 * being smaller than all that was seen: what goes on between operators then weighs more.
 *
 * Where operators alone were measured, nothing tells how far their errors cancel, nor what goes on
 * between them, nor how other code for the same operators compares: the interval is as wide as
 * its operators', and reaches from half to twice that.
 */
void nrg_physical_finish(const struct nrg_physical *model, enum nrg_node_level level,
                         const double x[NRG_MODULE_UNITS], struct nrg_estimate *e)
{
    double beyond = 0, operators_j = e->energy_j, q = model->q[level];
    if (isnan(q)) {
        q = operators_j > 0 ? e->own / operators_j : NAN;
        e->less_j += operators_j / 2;
        e->more_j += operators_j;
    }
    for (int u = 0; u < NRG_MODULE_UNITS; u++) {
        e->energy_j += model->module_joules[u] * x[u];
        beyond = fmax(beyond, nrg_range_beyond(model->module_range[u], x[u]));
    }
    e->beyond = fmax(beyond, operators_j > 0 ? e->beyond / operators_j : 0);
    e->widen = (operators_j > 0 ? e->widen / operators_j : 0) + q * beyond;
    if (e->energy_j < model->least_j[level] && isfinite(model->least_j[level])) {
        double smaller = log(model->least_j[level] / e->energy_j);
        e->beyond = fmax(e->beyond, smaller);
        e->widen += model->q[NRG_NODE_OPERATOR] * smaller;
    }
    set_bounds(e, q);
}

static int predict_module(const struct nrg_physical *model, const struct nrg_dataset *set,
                          size_t row, struct nrg_estimate *out)
{
    const struct nrg_row *r = &set->rows[row];
    double x[NRG_MODULE_UNITS];
    if (!module_row(set, row, x))
        return -ENODATA;
    for (uint32_t l = 0; l < r->n_leaves; l++) {
        struct nrg_part leaf = set->leaves[r->first_leaf + l];
        struct nrg_estimate part;
        int rc = predict_operator(model, set, leaf.row, &part);
        if (rc)
            return rc;
        nrg_estimate_add(out, &part, leaf.count);
    }
    if (!r->n_leaves &&
        out->energy_j + model->module_joules[NRG_PER_REST_BYTE] * x[NRG_PER_REST_BYTE] <
            model->floor_j) {
        out->energy_j = model->floor_j; /* an operator that nobody calls one */
        out->less_j = model->floor_j;
    }
    nrg_physical_finish(model, r->level, x, out);
    return 0;
}

/*
 * The power beside the GPU is that of processors as busy as they were in training. Busier ones may
 * draw up to in proportion, idler ones less.
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

/* One law for all kinds, but not all are as right: a small one's own errors count where larger. */
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
    if (!law_row(set, row, x))
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
    return set->rows[row].level == NRG_NODE_OPERATOR ? predict_operator(model, set, row, out)
                                                     : predict_module(model, set, row, out);
}
