/* Profiles: what one knows, a line of it for lists, and two side by side. */
#include <math.h>
#include <string.h>

#include "report/prediction/report.h"

static const char *const set_names[] = {"static", "all"};

static void print_errors(const struct nrg_physical *m, FILE *out)
{
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        if (!isnan(m->expected_error[l]))
            fprintf(out, "  %-9s %5.2f %% off, interval x/÷ %.3f\n",
                    nrg_node_level_name((enum nrg_node_level)l), 100 * m->expected_error[l],
                    exp(m->q[l]));
}

static void print_group(const struct nrg_group *g, FILE *out)
{
    fprintf(out, "  %-14s %7zu  %10.3e  %10.3e  %10.3e", g->name, g->rows, g->joules[NRG_PER_CALL],
            g->joules[NRG_PER_MAC], g->joules[NRG_PER_BYTE]);
    nrg_print_range(out, g->range[NRG_PER_MAC], nrg_show_amount);
    nrg_print_range(out, g->range[NRG_PER_BYTE], nrg_show_amount);
    if (!isnan(g->q))
        fprintf(out, "  %.3f", exp(g->q));
    fputc('\n', out);
}

static void print_module_kinds(const struct nrg_physical *m, FILE *out)
{
    if (m->n_module_kinds)
        fprintf(out, "\n  modules of these operators, INTERVAL x/÷\n");
    for (size_t i = 0; i < m->n_module_kinds; i++) {
        fprintf(out, "  %.3f ", exp(m->module_kinds[i].q));
        for (size_t g = 0; g < m->n; g++)
            if (m->module_kinds[i].groups & nrg_group_bit(m, &m->groups[g]))
                fprintf(out, " %s", m->groups[g].name);
        fprintf(out, "%s\n", m->module_kinds[i].groups ? "" : " no operators");
    }
}

static void print_layers(const struct nrg_profile *p, const char *name, FILE *out)
{
    fprintf(out, "%s: %s, layer, %s features\n", name, p->device,
            p->layer.original ? "original" : "corrected");
    fprintf(out, "trained on %.0f %s rows of %zu models\n\n  %-14s %6s %10s %10s  %s\n", p->rows,
            p->provenance, p->n_models, "LAYER", "ROWS", "TIME TERMS", "WATT TERMS",
            "on held-out rows");
    for (int t = 0; t < NRG_LAYER_TYPES; t++) {
        size_t terms[NRG_LAYER_TARGETS] = {0};
        for (int k = 0; k < NRG_LAYER_TARGETS; k++)
            for (size_t j = 0; j < p->layer.fits[t][k].n; j++)
                terms[k] += p->layer.fits[t][k].coefficients[j] != 0;
        if (p->layer.rows[t])
            fprintf(out, "  %-14s %6zu %10zu %10zu  %.1f %% off, interval x/÷ %.3f\n",
                    nrg_layer_type_names[t], p->layer.rows[t], terms[NRG_LAYER_TIME],
                    terms[NRG_LAYER_POWER], 100 * p->layer.expected_error[t], exp(p->layer.q[t]));
    }
}

void nrg_profile_text(const struct nrg_profile *p, const char *name, FILE *out)
{
    const struct nrg_physical *m = &p->physical;
    if (p->is_layer || p->is_llm) {
        if (p->is_layer)
            print_layers(p, name, out);
        else
            nrg_llm_profile_text(p, name, out);
        return;
    }
    fprintf(out, "%s: %s, physical, %s features, counts of %s\n", name, p->device,
            set_names[m->features], p->convention);
    fprintf(out, "trained on %.0f %s rows (%zu distinct) of %zu models:", p->rows, p->provenance,
            m->rows, p->n_models);
    for (size_t i = 0; i < p->n_models; i++)
        fprintf(out, " %s", p->models[i]);
    fprintf(out, "\non %s that were held out, %g %% confidence%s:\n",
            m->held_out_models ? "models" : "rows", 100 * p->confidence,
            m->held_out_models ? " (also models far beyond the others'\nsizes, which nrg evaluate "
                                 "shows apart)"
                               : "");
    print_errors(m, out);
    if (m->features == NRG_SET_ALL) {
        fprintf(out, "\nenergy =");
        for (int t = 0, n = 0; t < NRG_LAW_TERMS; t++)
            if (m->law[t] > 0)
                fprintf(out, "%s %.6g x %s", n++ ? " +" : "", m->law[t], nrg_law_term_names[t]);
        fputc('\n', out);
        return;
    }
    fprintf(out, "\n  %-14s %7s  %10s  %10s  %10s  %-23s  %-23s  %s\n", "OPERATOR", "ROWS",
            "J/CALL", "J/MAC", "J/BYTE", "MACS", "BYTES", "INTERVAL x/÷");
    for (size_t g = 0; g < m->n + 2; g++)
        print_group(&m->groups[g], out);
    fprintf(out, "  the cheapest call: %.3e J\n\n  beside the operators of a module\n", m->floor_j);
    for (int u = 0; u < NRG_MODULE_UNITS; u++) {
        fprintf(out, "  %-14s %10.3e", nrg_module_unit_names[u], m->module_joules[u]);
        nrg_print_range(out, m->module_range[u], nrg_show_amount);
        fputc('\n', out);
    }
    print_module_kinds(m, out);
}

void nrg_profile_line(const struct nrg_profile *p, const char *name, FILE *out)
{
    fprintf(out, "%-30s %-16s %-8s %-7s %7.0f rows %4zu models", name, p->device,
            p->is_layer ? "layer"
            : p->is_llm ? "llm"
                        : "physical",
            p->is_layer || p->is_llm ? "" : set_names[p->physical.features], p->rows, p->n_models);
    if (p->is_llm && !isnan(p->llm.expected_error))
        fprintf(out, "  %5.2f %% off on unseen models", 100 * p->llm.expected_error);
    else if (!p->is_layer && !p->is_llm && !isnan(p->physical.expected_error[NRG_NODE_MODEL]))
        fprintf(out, "  %5.2f %% off on unseen models",
                100 * p->physical.expected_error[NRG_NODE_MODEL]);
    fputc('\n', out);
}

/* ---- two ---- */

static const struct nrg_group *same_group(const struct nrg_profile *p, const char *name)
{
    for (size_t g = 0; g < p->physical.n; g++)
        if (!strcmp(p->physical.groups[g].name, name))
            return &p->physical.groups[g];
    return NULL;
}

static void print_pair(FILE *out, const char *group, const char *unit, double a, double b)
{
    fprintf(out, "  %-14s %-14s %12.3e %12.3e", group, unit, a, b);
    if (a > 0)
        fprintf(out, "  %6.2f", b / a);
    fputc('\n', out);
}

void nrg_profile_compare_text(const struct nrg_profile *a, const struct nrg_profile *b, FILE *out)
{
    fprintf(out, "  %-14s %-14s %12.12s %12.12s  %6s\n", "", "", a->device, b->device, "ratio");
    for (int t = 0; t < NRG_LLM_TERMS && a->is_llm && b->is_llm; t++)
        print_pair(out, nrg_llm_term_names[t], "J", a->llm.joules[t], b->llm.joules[t]);
    for (size_t g = 0; g < a->physical.n; g++) {
        const struct nrg_group *x = &a->physical.groups[g], *y = same_group(b, x->name);
        for (int u = 0; y && u < NRG_OPERATOR_UNITS; u++)
            if (x->joules[u] > 0 || y->joules[u] > 0)
                print_pair(out, x->name, nrg_operator_unit_names[u], x->joules[u], y->joules[u]);
        if (!y)
            fprintf(out, "  %-14s only measured on %s\n", x->name, a->device);
    }
    for (size_t g = 0; g < b->physical.n; g++)
        if (!same_group(a, b->physical.groups[g].name))
            fprintf(out, "  %-14s only measured on %s\n", b->physical.groups[g].name, b->device);
    for (int u = 0; u < NRG_MODULE_UNITS && !(a->is_llm && b->is_llm); u++)
        print_pair(out, "beside", nrg_module_unit_names[u], a->physical.module_joules[u],
                   b->physical.module_joules[u]);
}

json_t *nrg_profile_compare_json(const struct nrg_profile *a, const struct nrg_profile *b)
{
    return json_pack("{s:s, s:[o, o]}", "schema", "nrg.profile-compare/1", "profiles",
                     nrg_profile_json(a), nrg_profile_json(b));
}
