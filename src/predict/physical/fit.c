/*
 * See physical/fit.h. Relative weighting divides each equation by its energy, so that a layer norm
 * of a millijoule counts as much as a matrix product of a joule; the answer is then the
 * coefficients with the smallest mean square of relative errors.
 */
#include "predict/physical/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/nnls.h"
#include "predict/kinds.h"
#include "predict/physical/estimate.h"
#include "predict/physical/internal.h"

const char *const nrg_operator_unit_names[NRG_OPERATOR_UNITS] = {"call_j", "mac_j", "byte_j"};
const char *const nrg_module_unit_names[NRG_MODULE_UNITS] = {"operator_j", "rest_byte_j",
                                                             "copied_byte_j", "score_byte_j"};
const char *const nrg_law_term_names[NRG_LAW_TERMS] = {"gpu_energy",      "time_w",
                                                       "time_gpu_util_w", "time_gpu_mem_util_w",
                                                       "time_gpu_hz_w",   "time_cpu_util_w"};

/* Stand-ins for kinds that were not measured: with multiply-accumulates, and without. */
enum { OTHER_COMPUTE, OTHER_MEMORY, OTHERS };

#define ANY_FORM (~0u)

void nrg_physical_release(struct nrg_physical *model)
{
    free(model->groups);
    free(model->module_kinds);
    *model = (struct nrg_physical){0};
}

/* ---- features ---- */

bool nrg_operator_row(const struct nrg_dataset *set, size_t row, double x[NRG_OPERATOR_UNITS])
{
    double written = nrg_row_feature(set, row, NRG_F_WRITTEN_BYTES);
    x[NRG_PER_CALL] = 1;
    x[NRG_PER_MAC] = nrg_row_feature(set, row, NRG_F_MACS);
    x[NRG_PER_BYTE] = nrg_row_feature(set, row, NRG_F_READ_BYTES) + (isnan(written) ? 0 : written);
    return !isnan(x[NRG_PER_MAC]) && !isnan(x[NRG_PER_BYTE]);
}

/* What a module has beside its operators' own energies. */
bool nrg_module_row(const struct nrg_dataset *set, size_t row, double x[NRG_MODULE_UNITS])
{
    const struct nrg_row *r = &set->rows[row];
    memset(x, 0, NRG_MODULE_UNITS * sizeof *x);
    for (uint32_t l = 0; l < r->n_leaves; l++) {
        struct nrg_module_part leaf = set->leaves[r->first_leaf + l];
        double copied = nrg_row_feature(set, leaf.row, NRG_F_COPIED_BYTES);
        double score = nrg_row_feature(set, leaf.row, NRG_F_SCORE_BYTES);
        x[NRG_PER_OPERATOR] += leaf.count;
        x[NRG_PER_COPIED_BYTE] += isnan(copied) ? 0 : leaf.count * copied;
        x[NRG_PER_SCORE_BYTE] += isnan(score) ? 0 : leaf.count * score;
    }
    x[NRG_PER_REST_BYTE] = nrg_row_feature(set, row, NRG_F_REST_BYTES);
    return !isnan(x[NRG_PER_REST_BYTE]);
}

/* Without the GPU's own energy, time and utilisation take its place. */
bool nrg_law_row(const struct nrg_dataset *set, size_t row, double x[NRG_LAW_TERMS])
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

/* ---- fitting ---- */

/* Each measurement once, however many nodes share it. */
static bool usable(const struct nrg_dataset *set, const bool *mask, size_t row)
{
    return (!mask || mask[row]) && set->rows[row].measurement == row;
}

/* x * coefficients = value, weighted so that its error is relative to `energy`. */
static int add_equation(struct nrg_gram *gram, size_t n, const double *x, double value,
                        double energy)
{
    double row[NRG_LAW_TERMS];
    for (size_t i = 0; i < n; i++)
        row[i] = x[i] / energy;
    int rc = nrg_gram_grow(gram, n);
    if (!rc)
        nrg_gram_add(gram, row, NULL, 0, value / energy, 1);
    return rc;
}

/* Coefficients that are not negative; all 0 where there are no equations. */
static int solve_equations(struct nrg_gram *gram, size_t n, double *coefficients)
{
    int rc = nrg_gram_grow(gram, n);
    if (!rc)
        rc = nrg_gram_nonnegative(gram, NULL, 0, 0, 0, coefficients);
    nrg_gram_release(gram);
    return rc;
}

static const struct nrg_group *group_at(const struct nrg_physical *model, const char *name)
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
    return nrg_reserve(&model->groups, &model->cap, model->n + OTHERS, sizeof *model->groups);
}

static void group_clear(struct nrg_group *group, const char *name)
{
    *group = (struct nrg_group){.name = name, .q = NAN};
    for (int u = 0; u < NRG_OPERATOR_UNITS; u++)
        group->range[u] = NRG_NO_RANGE;
}

static int fit_operators(struct nrg_physical *model, const struct nrg_dataset *set,
                         const bool *mask)
{
    struct nrg_gram *all = nrg_calloc(model->n + OTHERS, sizeof *all);
    double x[NRG_OPERATOR_UNITS];
    int rc = all ? 0 : -ENOMEM;
    for (size_t g = 0; g < model->n + OTHERS; g++)
        group_clear(&model->groups[g], g < model->n                    ? model->groups[g].name
                                       : g == model->n + OTHER_COMPUTE ? "other compute"
                                                                       : "other memory");
    for (size_t i = 0; !rc && i < set->n; i++) {
        if (set->rows[i].level != NRG_NODE_OPERATOR || !usable(set, mask, i))
            continue;
        if (!nrg_operator_row(set, i, x)) {
            model->unused_rows++;
            continue;
        }
        size_t g = (size_t)(group_at(model, nrg_kind_group(set->rows[i].kind)) - model->groups);
        size_t other = model->n + (x[NRG_PER_MAC] > 0 ? OTHER_COMPUTE : OTHER_MEMORY);
        for (int u = 1; u < NRG_OPERATOR_UNITS; u++) {
            nrg_range_extend(&model->groups[g].range[u], x[u]);
            nrg_range_extend(&model->groups[other].range[u], x[u]);
        }
        unsigned form = nrg_kind_form(set->rows[i].kind);
        model->groups[g].forms |= form ? form : ANY_FORM;
        double energy = set->rows[i].energy_j;
        model->floor_j = model->rows ? fmin(model->floor_j, energy) : energy;
        rc = add_equation(&all[g], NRG_OPERATOR_UNITS, x, energy, energy);
        if (!rc)
            rc = add_equation(&all[other], NRG_OPERATOR_UNITS, x, energy, energy);
        model->rows++;
    }
    for (size_t g = 0; all && g < model->n + OTHERS; g++) {
        model->groups[g].rows = all[g].rows;
        int failed = solve_equations(&all[g], NRG_OPERATOR_UNITS, model->groups[g].joules);
        rc = rc ? rc : failed;
    }
    free(all);
    return rc;
}

const struct nrg_group *nrg_physical_group(const struct nrg_physical *model, const char *kind,
                                           bool has_macs, bool *known)
{
    const struct nrg_group *found = group_at(model, nrg_kind_group(kind));
    const struct nrg_group *other = &model->groups[model->n];
    *known = found && found->rows;
    if (*known)
        return found;
    if (!has_macs && other[OTHER_MEMORY].rows)
        return &other[OTHER_MEMORY];
    return other[OTHER_COMPUTE].rows ? &other[OTHER_COMPUTE] : &other[OTHER_MEMORY];
}

/* Energy of operators: measured, or predicted for those outside of the mask. */
static double operators_energy(const struct nrg_physical *model, const struct nrg_dataset *set,
                               const bool *mask, const struct nrg_row *row)
{
    double sum = 0, x[NRG_OPERATOR_UNITS];
    struct nrg_estimate e;
    for (uint32_t l = 0; l < row->n_leaves; l++) {
        struct nrg_module_part leaf = set->leaves[row->first_leaf + l];
        const struct nrg_row *op = &set->rows[leaf.row];
        if (!mask || mask[leaf.row]) {
            sum += leaf.count * op->energy_j;
        } else if (nrg_operator_row(set, leaf.row, x)) {
            nrg_physical_operator(model, op->kind, x, &e);
            sum += leaf.count * e.energy_j;
        }
    }
    return sum;
}

static int fit_modules(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask)
{
    struct nrg_gram all = {0};
    double x[NRG_MODULE_UNITS];
    int rc = 0;
    for (int u = 0; u < NRG_MODULE_UNITS; u++)
        model->module_range[u] = NRG_NO_RANGE;
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        model->least_j[l] = INFINITY;
    for (size_t i = 0; !rc && i < set->n; i++) {
        const struct nrg_row *row = &set->rows[i];
        if (row->level == NRG_NODE_OPERATOR || !usable(set, mask, i))
            continue;
        if (!nrg_module_row(set, i, x)) {
            model->unused_rows++;
            continue;
        }
        for (int u = 0; u < NRG_MODULE_UNITS; u++)
            nrg_range_extend(&model->module_range[u], x[u]);
        double rest_j = row->energy_j - operators_energy(model, set, mask, row);
        model->least_j[row->level] = fmin(model->least_j[row->level], row->energy_j);
        rc = add_equation(&all, NRG_MODULE_UNITS, x, rest_j, row->energy_j);
        model->rows++;
    }
    int failed = solve_equations(&all, NRG_MODULE_UNITS, model->module_joules);
    return rc ? rc : failed;
}

static int fit_law(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask)
{
    static const enum nrg_feature watched[NRG_LAW_TERMS] = {NRG_F_GPU_ENERGY_J, NRG_F_TIME_S,
                                                            NRG_F_GPU_UTIL,     NRG_F_GPU_MEM_UTIL,
                                                            NRG_F_GPU_HZ,       NRG_F_CPU_UTIL};
    struct nrg_gram all = {0};
    double x[NRG_LAW_TERMS];
    int rc = 0;
    for (int t = 0; t < NRG_LAW_TERMS; t++)
        model->law_range[t] = NRG_NO_RANGE;
    for (size_t i = 0; !rc && i < set->n; i++) {
        if (!usable(set, mask, i))
            continue;
        if (!nrg_law_row(set, i, x)) {
            model->unused_rows++;
            continue;
        }
        for (int t = 0; t < NRG_LAW_TERMS; t++)
            nrg_range_extend(&model->law_range[t], nrg_row_feature(set, i, watched[t]));
        rc = add_equation(&all, NRG_LAW_TERMS, x, set->rows[i].energy_j, set->rows[i].energy_j);
        model->rows++;
    }
    int failed = solve_equations(&all, NRG_LAW_TERMS, model->law);
    return rc ? rc : failed;
}

int nrg_physical_fit(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask,
                     enum nrg_feature_set features, struct nrg_error *err)
{
    *model = (struct nrg_physical){.features = features};
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        model->q[l] = model->stand_in[l] = model->seam[l] = model->expected_error[l] = NAN;
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

uint64_t nrg_group_bit(const struct nrg_physical *model, const struct nrg_group *group)
{
    size_t at = (size_t)(group - model->groups);
    return at < model->n ? UINT64_C(1) << (at < 63 ? at : 63) : 0;
}

bool nrg_physical_has_modules(const struct nrg_physical *model)
{
    struct nrg_range operators = model->module_range[NRG_PER_OPERATOR];
    return operators.high >= operators.low;
}
