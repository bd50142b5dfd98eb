/*
 * Predictions: the module tree with joules, interval and share; where the joules come from, as
 * coefficient times amount; two devices side by side; and one size varied, as a table with bars.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/json/set.h"
#include "report/prediction/report.h"
#include "report/table.h"
#include "report/units.h"

#define NAME_WIDTH  40
#define CLASS_WIDTH 22
#define BAR_CELLS   30

/* ---- one device ---- */

struct table {
    const struct nrg_prediction_report *report, *other;
    FILE *out;
};

static int print_node_row(void *arg, const struct nrg_tree_row *row)
{
    const struct table *t = arg;
    const struct nrg_prediction_report *r = t->report;
    size_t i = (size_t)(row->node - r->tree->nodes);
    const struct nrg_estimate *e = &r->prediction->nodes[i].estimate;
    double all = r->prediction->nodes[0].estimate.energy_j;
    if (!r->prediction->nodes[i].operators)
        return 0;
    struct nrg_shown energy = nrg_show_energy(e->energy_j * row->times);
    struct nrg_shown interval = nrg_show_interval(e->low_j * row->times, e->high_j * row->times);
    nrg_text_pad(t->out, row->name, NAME_WIDTH);
    fprintf(t->out, "  %-*.*s  %10s   ", CLASS_WIDTH, CLASS_WIDTH, row->node->class_name,
            energy.text);
    nrg_text_pad(t->out, interval.text, 25);
    fputc(' ', t->out);
    nrg_table_bar(t->out, all > 0 ? e->energy_j * row->times / all : 0);
    fprintf(t->out, "%s\n", e->beyond > 0.05 || e->unknown_kind ? "  !" : "");
    return 0;
}

static void print_terms(const struct nrg_prediction_report *r, int n, FILE *out)
{
    const struct nrg_prediction *p = r->prediction;
    double all = p->nodes[0].estimate.energy_j;
    fprintf(out, "\nwhere it comes from\n");
    for (size_t i = 0; i < p->n_terms && i < (size_t)n; i++) {
        const struct nrg_term *t = &p->terms[i];
        fprintf(out, "  %-14s %-14s %10.3e J x %9s = %10s  %5.1f %%\n", t->group, t->unit,
                t->coefficient, nrg_show_amount(t->amount).text, nrg_show_energy(t->energy_j).text,
                all > 0 ? 100 * t->energy_j / all : 0);
    }
}

static void print_prediction_head(const struct nrg_prediction_report *r, FILE *out)
{
    const struct nrg_estimate *e = &r->prediction->nodes[0].estimate;
    const struct nrg_profile *p = r->profile;
    fprintf(out, "%s on %s: %s", nrg_table_base_name(r->name), p->device,
            nrg_show_energy(e->energy_j).text);
    if (isnan(e->low_j) || isnan(e->high_j))
        fprintf(out, ", without an interval\n");
    else
        fprintf(out, ", %s with %g %% confidence\n", nrg_show_interval(e->low_j, e->high_j).text,
                100 * p->confidence);
    fprintf(out, "estimated, from %s rows of %zu models", p->provenance, p->n_models);
    if (!p->is_layer && !isnan(p->physical.expected_error[NRG_NODE_MODEL]))
        fprintf(out, "; %.1f %% off on models that it had not seen",
                100 * p->physical.expected_error[NRG_NODE_MODEL]);
    fputc('\n', out);
    for (size_t i = 0; i < r->prediction->n_reasons; i++)
        fprintf(out, "! %s\n", r->prediction->reasons[i]);
    if (!isnan(r->runs))
        fprintf(out, "%.0f steps: %s, %s\n", r->runs, nrg_show_energy(e->energy_j * r->runs).text,
                nrg_show_interval(e->low_j * r->runs, e->high_j * r->runs).text);
}

void nrg_prediction_text(const struct nrg_prediction_report *r, int depth, int terms, FILE *out)
{
    struct table t = {.report = r, .out = out};
    print_prediction_head(r, out);
    fprintf(out, "\n%-*s  %-*s  %10s   %-25s %s\n", NAME_WIDTH, "MODULE", CLASS_WIDTH, "CLASS",
            "ENERGY", "INTERVAL", "SHARE");
    if (nrg_tree_rows(r->tree, r->name, depth, print_node_row, &t))
        fprintf(out, "(out of memory)\n");
    if (terms)
        print_terms(r, terms, out);
}

/* ---- JSON ---- */

static void set_estimate(json_t *o, const struct nrg_estimate *e)
{
    NRG_JSON_REALS(o, {"energy_j", e->energy_j}, {"low_j", e->low_j}, {"high_j", e->high_j});
    if (e->beyond > 0 || e->unknown_kind)
        json_object_set_new(o, "out_of_range", json_true());
}

static json_t *nodes_json(const struct nrg_prediction_report *r)
{
    json_t *list = json_array();
    double all = r->prediction->nodes[0].estimate.energy_j;
    for (size_t i = 0; i < r->tree->n; i++) {
        const struct nrg_node_estimate *node = &r->prediction->nodes[i];
        json_t *o = json_pack("{s:s, s:I}", "name", r->tree->nodes[i].name, "operators",
                              (json_int_t)node->operators);
        nrg_json_text(o, "class", r->tree->nodes[i].class_name);
        set_estimate(o, &node->estimate);
        NRG_JSON_REALS(o, {"self_j", node->self_j}, {"self_low_j", node->self_low_j},
                       {"self_high_j", node->self_high_j});
        if (all > 0)
            nrg_json_real(o, "share", node->estimate.energy_j / all);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *operators_json(const struct nrg_prediction_report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->prediction->n_operators; i++) {
        const struct nrg_op_estimate *e = &r->prediction->operators[i];
        const struct nrg_operator *op = &r->reduced->operators[i];
        if (!e->group)
            continue;
        json_t *o = json_pack("{s:s, s:s, s:s}", "id", op->id, "kind", op->kind, "group", e->group);
        nrg_json_text(o, "module", op->module);
        set_estimate(o, &e->estimate);
        if (e->time_s > 0)
            nrg_json_real(o, "time_s", e->time_s);
        json_array_append_new(list, o);
    }
    return list;
}

json_t *nrg_prediction_json(const struct nrg_prediction_report *r)
{
    const struct nrg_prediction *p = r->prediction;
    json_t *terms = json_array();
    for (size_t i = 0; i < p->n_terms; i++)
        json_array_append_new(
            terms, json_pack("{s:s, s:s, s:f, s:f, s:f}", "group", p->terms[i].group, "unit",
                             p->terms[i].unit, "coefficient", p->terms[i].coefficient, "amount",
                             p->terms[i].amount, "energy_j", p->terms[i].energy_j));
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "schema", "nrg.prediction/1", "file",
                          r->name, "device", r->profile->device, "profile", r->profile_name,
                          "provenance", "estimated", "confidence", r->profile->confidence);
    if (!o)
        return NULL;
    set_estimate(o, &p->nodes[0].estimate);
    if (!isnan(r->runs)) {
        json_t *runs = json_pack("{s:f}", "steps", r->runs);
        NRG_JSON_REALS(runs, {"energy_j", r->runs * p->nodes[0].estimate.energy_j},
                       {"low_j", r->runs * p->nodes[0].estimate.low_j},
                       {"high_j", r->runs * p->nodes[0].estimate.high_j});
        json_object_set_new(o, "for", runs);
    }
    json_object_set_new(o, "reasons",
                        nrg_json_strings((const char *const *)p->reasons, p->n_reasons));
    json_object_set_new(o, "nodes", nodes_json(r));
    json_object_set_new(o, "operators", operators_json(r));
    json_object_set_new(o, "terms", terms);
    return o;
}

/* ---- two devices ---- */

static int print_pair(void *arg, const struct nrg_tree_row *row)
{
    const struct table *t = arg;
    size_t i = (size_t)(row->node - t->report->tree->nodes);
    const struct nrg_estimate *a = &t->report->prediction->nodes[i].estimate;
    const struct nrg_estimate *b = &t->other->prediction->nodes[i].estimate;
    if (!t->report->prediction->nodes[i].operators)
        return 0;
    nrg_text_pad(t->out, row->name, NAME_WIDTH);
    fprintf(t->out, "  %-*.*s  %14s %14s", CLASS_WIDTH, CLASS_WIDTH, row->node->class_name,
            nrg_show_energy(a->energy_j * row->times).text,
            nrg_show_energy(b->energy_j * row->times).text);
    if (a->energy_j > 0)
        fprintf(t->out, "  %6.2f", b->energy_j / a->energy_j);
    fputc('\n', t->out);
    return 0;
}

void nrg_prediction_compare_text(const struct nrg_prediction_report *a,
                                 const struct nrg_prediction_report *b, int depth, FILE *out)
{
    struct table t = {.report = a, .other = b, .out = out};
    print_prediction_head(a, out);
    print_prediction_head(b, out);
    fprintf(out, "\n%-*s  %-*s  %14.14s %14.14s  %6s\n", NAME_WIDTH, "MODULE", CLASS_WIDTH, "CLASS",
            a->profile->device, b->profile->device, "ratio");
    if (nrg_tree_rows(a->tree, a->name, depth, print_pair, &t))
        fprintf(out, "(out of memory)\n");
}

json_t *nrg_prediction_compare_json(const struct nrg_prediction_report *a,
                                    const struct nrg_prediction_report *b)
{
    return json_pack("{s:s, s:[o, o]}", "schema", "nrg.prediction-compare/1", "predictions",
                     nrg_prediction_json(a), nrg_prediction_json(b));
}

/* ---- what if ---- */

void nrg_what_if_text(const char *name, const struct nrg_what_if *rows, size_t n, FILE *out)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (!rows[i].refused)
            most = fmax(most, rows[i].estimate.energy_j);
    fprintf(out, "%8s  %10s   %-25s %12s\n", name, "ENERGY", "INTERVAL", "PER ITEM");
    for (size_t i = 0; i < n; i++) {
        const struct nrg_what_if *row = &rows[i];
        if (row->refused) {
            fprintf(out, "%8.0f  refused: %s\n", row->value, row->why);
            continue;
        }
        const struct nrg_estimate *e = &row->estimate;
        fprintf(out, "%8.0f  %10s   ", row->value, nrg_show_energy(e->energy_j).text);
        nrg_text_pad(out, nrg_show_interval(e->low_j, e->high_j).text, 25);
        fprintf(out, " %12s  ", nrg_show_energy(e->energy_j / row->items).text);
        int64_t cells =
            most > 0 ? nrg_round_within(BAR_CELLS * e->energy_j / most, 0, BAR_CELLS) : 0;
        for (int64_t c = 0; c < cells; c++)
            fputs("█", out);
        fprintf(out, "%s\n", row->why[0] ? "  !" : "");
    }
}

json_t *nrg_what_if_json(const char *name, const struct nrg_what_if *rows, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_pack("{s:s, s:f}", "size", name, "value", rows[i].value);
        if (rows[i].refused) {
            nrg_json_text(o, "refused", rows[i].why);
        } else {
            set_estimate(o, &rows[i].estimate);
            nrg_json_real(o, "energy_per_item_j", rows[i].estimate.energy_j / rows[i].items);
        }
        json_array_append_new(list, o);
    }
    return json_pack("{s:s, s:o}", "schema", "nrg.what-if/1", "rows", list);
}
