/*
 * A prediction held against a recording: module by module what was predicted and what was measured,
 * each with its interval, and what could not be compared.
 */
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "report/attribution/report.h"
#include "report/prediction/report.h"
#include "report/table.h"
#include "report/units.h"

#define NAME_WIDTH     36
#define INTERVAL_WIDTH 23
#define NAMES_SHOWN    5

/* ---- text ---- */

/* "overlaps (not resolved)": what stands in the way of trusting the measured number. */
static void print_verdict(const struct nrg_against_row *row, FILE *out)
{
    bool any = false;
    fputs(nrg_verdict_names[row->verdict], out);
    for (size_t w = 0; w < NRG_ROW_FLAG_WORDS; w++) {
        const char *word = nrg_attribution_flag(row->flags, w);
        if (*word)
            fprintf(out, "%s%s", any ? ", " : " (", word);
        any |= *word != 0;
    }
    fputs(any ? ")\n" : "\n", out);
}

static void print_against_row(const struct nrg_against_report *r, size_t i, FILE *out)
{
    const struct nrg_against_row *row = &r->against->rows[i];
    const struct nrg_tree_node *node = &r->predicted.tree->nodes[i];
    const struct nrg_estimate *e = &r->predicted.prediction->nodes[i].estimate;
    char name[NAME_WIDTH + 1];
    int indent = node->depth > 12 ? 12 : (int)node->depth;
    snprintf(name, sizeof name, "%*s%s", 2 * indent, "",
             i ? node->local : nrg_table_base_name(r->predicted.name));
    nrg_text_pad(out, name, NAME_WIDTH);
    fprintf(out, " %10s  ", nrg_show_energy(e->energy_j).text);
    nrg_text_pad(out, nrg_show_interval(e->low_j, e->high_j).text, INTERVAL_WIDTH);
    fprintf(out, " %10s  ", nrg_show_energy(row->measured_j).text);
    nrg_text_pad(out, nrg_show_interval(row->low_j, row->high_j).text, INTERVAL_WIDTH);
    if (isnan(row->error))
        fprintf(out, " %8s  ", "-");
    else
        fprintf(out, " %+6.1f %%  ", 100 * row->error);
    print_verdict(row, out);
}

/* The name of a row of the recording, or of a node of the graph. */
static const char *module_name(const struct nrg_against_report *r, bool rows, size_t i)
{
    return rows ? r->attribution->rows[i].name : r->predicted.tree->nodes[i].name;
}

static void print_names(const struct nrg_against_report *r, const char *what, const size_t *list,
                        size_t n, bool rows, FILE *out)
{
    if (!n)
        return;
    fprintf(out, "%zu %s: ", n, what);
    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
        const char *name = module_name(r, rows, list[i]);
        fprintf(out, "%s%s", i ? ", " : "", *name ? name : "(the model)");
    }
    fputs(n > NAMES_SHOWN ? ", …\n" : "\n", out);
}

static void print_left_out(const struct nrg_against_report *r, FILE *out)
{
    const struct nrg_against *a = r->against;
    print_names(r, "modules of the graph have no span", a->only_graph, a->n_only_graph, false, out);
    print_names(r, "modules with spans are not in the graph", a->only_recording,
                a->n_only_recording, true, out);
    print_names(r, "modules with spans have no operator that costs anything in the graph",
                a->without_operators, a->n_without_operators, false, out);
    if (a->other_calls)
        fprintf(out,
                "%zu modules were called another number of times per pass than in the graph: "
                "their energy per call is compared\n",
                a->other_calls);
    if (a->backward_calls)
        fprintf(out,
                "left out: %s of %llu backward spans. A prediction is for one forward pass; "
                "forward passes of training also keep values for the backward ones\n",
                nrg_show_energy(a->backward_j).text, (unsigned long long)a->backward_calls);
}

static void print_against_head(const struct nrg_against_report *r, FILE *out)
{
    const struct nrg_prediction_report *p = &r->predicted;
    const struct nrg_attribution *a = r->attribution;
    fprintf(out, "%s on %s against %s: one forward pass\n", nrg_table_base_name(p->name),
            p->profile->device, r->recording);
    fprintf(out, "predicted from %s rows of %zu models, %g %% confidence\n", p->profile->provenance,
            p->profile->n_models, 100 * p->profile->confidence);
    fprintf(out, "recorded energy is %s, by %s; idle energy %s\n",
            nrg_provenance_name(a->provenance), nrg_method_name(a->method),
            a->idle == NRG_IDLE_APART   ? "is not in it"
            : a->idle == NRG_IDLE_SHARE ? "of the time they are open is in it"
                                        : "is not separated");
    for (size_t i = 0; i < p->prediction->n_reasons; i++)
        fprintf(out, "! %s\n", p->prediction->reasons[i]);
}

void nrg_against_text(const struct nrg_against_report *r, int depth, FILE *out)
{
    const struct nrg_against *a = r->against;
    const struct nrg_module_tree *tree = r->predicted.tree;
    print_against_head(r, out);
    fprintf(out, "\n%-*s %10s  %-*s %10s  %-*s %8s\n", NAME_WIDTH, "MODULE", "PREDICTED",
            INTERVAL_WIDTH, "INTERVAL", "MEASURED", INTERVAL_WIDTH, "INTERVAL", "ERROR");
    for (size_t i = 0; i < tree->n; i++)
        if (r->predicted.prediction->nodes[i].operators &&
            (!depth || tree->nodes[i].depth <= (uint32_t)depth))
            print_against_row(r, i, out);
    fprintf(out, "\n%zu modules compared", a->n_compared);
    if (a->n_compared)
        fprintf(out,
                ": %zu inside the predicted interval, %zu whose own interval overlaps it, %zu "
                "outside; error %.1f %% in the mean, %.1f %% in the median",
                a->verdicts[NRG_VERDICT_INSIDE], a->verdicts[NRG_VERDICT_OVERLAPS],
                a->verdicts[NRG_VERDICT_OUTSIDE], 100 * a->mean_error, 100 * a->median_error);
    fputc('\n', out);
    print_left_out(r, out);
}

/* ---- JSON ---- */

static json_t *row_json(const struct nrg_against_report *r, size_t i)
{
    const struct nrg_against_row *row = &r->against->rows[i];
    const struct nrg_tree_node *node = &r->predicted.tree->nodes[i];
    const struct nrg_estimate *e = &r->predicted.prediction->nodes[i].estimate;
    json_t *o = json_pack("{s:s, s:f, s:I}", "name", node->name, "calls", row->calls,
                          "recorded_calls", (json_int_t)row->recorded_calls);
    nrg_json_text(o, "class", node->class_name);
    NRG_JSON_REALS(o, {"predicted_j", e->energy_j}, {"predicted_low_j", e->low_j},
                   {"predicted_high_j", e->high_j}, {"measured_j", row->measured_j},
                   {"measured_low_j", row->low_j}, {"measured_high_j", row->high_j},
                   {"time_s", row->time_s}, {"error_percent", 100 * row->error});
    if (row->verdict)
        json_object_set_new(o, "verdict", json_string(nrg_verdict_names[row->verdict]));
    if (!row->recorded_calls)
        return o;
    nrg_json_text(o, "method", nrg_method_name(row->method));
    json_object_set_new(o, "flags", nrg_attribution_flags_json(row->flags));
    return o;
}

static json_t *names_json(const struct nrg_against_report *r, const size_t *list, size_t n,
                          bool rows)
{
    json_t *names = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(names, json_string(module_name(r, rows, list[i])));
    return names;
}

static json_t *summary_json(const struct nrg_against *a)
{
    json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I}", "compared", (json_int_t)a->n_compared,
                          "inside", (json_int_t)a->verdicts[NRG_VERDICT_INSIDE], "overlaps",
                          (json_int_t)a->verdicts[NRG_VERDICT_OVERLAPS], "outside",
                          (json_int_t)a->verdicts[NRG_VERDICT_OUTSIDE], "other_calls",
                          (json_int_t)a->other_calls);
    NRG_JSON_REALS(o, {"mean_error_percent", 100 * a->mean_error},
                   {"median_error_percent", 100 * a->median_error});
    return o;
}

json_t *nrg_against_json(const struct nrg_against_report *r)
{
    const struct nrg_prediction_report *p = &r->predicted;
    const struct nrg_against *a = r->against;
    json_t *modules = json_array();
    for (size_t i = 0; i < a->n; i++)
        if (p->prediction->nodes[i].operators || a->rows[i].recorded_calls)
            json_array_append_new(modules, row_json(r, i));
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:s, s:s, s:s}", "schema",
                          "nrg.prediction-against/1", "file", p->name, "recording", r->recording,
                          "device", p->profile->device, "profile", p->profile_name, "confidence",
                          p->profile->confidence, "measured_provenance",
                          nrg_provenance_name(r->attribution->provenance), "method",
                          nrg_method_name(r->attribution->method), "idle",
                          nrg_attribution_idle_word(r->attribution->idle));
    if (!o)
        return NULL;
    json_object_set_new(o, "modules", modules);
    json_object_set_new(o, "summary", summary_json(a));
    json_object_set_new(o, "only_in_graph", names_json(r, a->only_graph, a->n_only_graph, false));
    json_object_set_new(o, "only_in_recording",
                        names_json(r, a->only_recording, a->n_only_recording, true));
    json_object_set_new(o, "without_operators",
                        names_json(r, a->without_operators, a->n_without_operators, false));
    json_t *left = json_pack("{s:I}", "backward_calls", (json_int_t)a->backward_calls);
    nrg_json_real(left, "backward_j", a->backward_j);
    json_object_set_new(o, "left_out", left);
    json_object_set_new(
        o, "reasons",
        nrg_json_strings((const char *const *)p->prediction->reasons, p->prediction->n_reasons));
    return o;
}
