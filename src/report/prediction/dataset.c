/*
 * Data sets: the summary as tables and JSON, and the set itself in our own form (docs/dataset.md),
 * CSV or JSON, so that reading it back gives the same rows.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "predict/kinds.h"
#include "report/prediction/report.h"
#include "report/style.h"

#define NAME_WIDTH  26
#define RANGE_WIDTH 23

/* ---- summary ---- */

void nrg_print_range(FILE *out, struct nrg_range range, struct nrg_shown (*show)(double value))
{
    fputs("  ", out);
    nrg_text_pad(out, nrg_show_range(range.low, range.high, show).text, RANGE_WIDTH);
}

static void print_models(const struct nrg_data_summary *s, FILE *out)
{
    fprintf(out, "\n  %-*s %9s %9s %9s %9s %7s  %-23s  %s\n", NAME_WIDTH, "model", "rows",
            "distinct", "operators", "modules", "models", "batch x sequence", "energy per call");
    for (size_t i = 0; i < s->n_models; i++) {
        const struct nrg_tally *t = &s->models[i];
        fprintf(out, "  %-*.*s %9.0f %9zu %9zu %9zu %7zu", NAME_WIDTH, NAME_WIDTH, t->name, t->rows,
                t->distinct, t->levels[0], t->levels[1], t->levels[2]);
        nrg_print_range(out, t->size, nrg_show_amount);
        nrg_print_range(out, t->energy_j, nrg_show_energy);
        fputc('\n', out);
    }
}

static void print_kinds(const struct nrg_data_summary *s, FILE *out)
{
    fprintf(out, "\n  %-*s %9s %9s  %-23s  %-23s  %-23s  %s\n", NAME_WIDTH, "operator", "rows",
            "distinct", "energy per call", "MACs", "bytes", "same size, spread: median, p90");
    for (size_t i = 0; i < s->n_kinds; i++) {
        const struct nrg_tally *t = &s->kinds[i];
        if (t->level != NRG_NODE_OPERATOR)
            continue;
        fprintf(out, "  %-*.*s %9.0f %9zu", NAME_WIDTH, NAME_WIDTH, t->name, t->rows, t->distinct);
        nrg_print_range(out, t->energy_j, nrg_show_energy);
        nrg_print_range(out, t->macs, nrg_show_amount);
        nrg_print_range(out, t->bytes, nrg_show_bytes);
        if (t->repeated)
            fprintf(out, "  %.1f %%, %.1f %%", 100 * t->spread_median, 100 * t->spread_p90);
        fputc('\n', out);
    }
}

void nrg_dataset_text_report(const struct nrg_dataset *set, const struct nrg_data_summary *s,
                             FILE *out)
{
    struct nrg_name_list devices = {0};
    nrg_dataset_list(set, offsetof(struct nrg_row, device), &devices);
    for (size_t i = 0; i < devices.n; i++)
        fprintf(out, "%s%s", i ? ", " : "", devices.names[i]);
    nrg_name_list_release(&devices);
    fprintf(out, ": %.0f rows, %zu distinct measurements, %zu models\n", s->all.rows,
            s->all.distinct, s->n_models);
    if (s->all.repeated)
        fprintf(out,
                "noise floor: %zu operator sizes were measured more than once; they lie %.2f %% "
                "apart (median), 90 %% of them within %.1f %%\n",
                s->all.repeated, 100 * s->all.spread_median, 100 * s->all.spread_p90);
    print_models(s, out);
    print_kinds(s, out);
}

static void set_range(json_t *o, const char *key, struct nrg_range range)
{
    if (range.high >= range.low)
        json_object_set_new(o, key, json_pack("[f, f]", range.low, range.high));
}

static json_t *tally_json(const struct nrg_tally *t)
{
    json_t *o =
        json_pack("{s:I, s:I}", "rows", (json_int_t)t->rows, "distinct", (json_int_t)t->distinct);
    set_range(o, "energy_j", t->energy_j);
    set_range(o, "macs", t->macs);
    set_range(o, "bytes", t->bytes);
    set_range(o, "size", t->size);
    if (t->repeated)
        json_object_set_new(o, "noise",
                            json_pack("{s:I, s:f, s:f}", "sizes", (json_int_t)t->repeated,
                                      "median_percent", 100 * t->spread_median, "p90_percent",
                                      100 * t->spread_p90));
    return o;
}

json_t *nrg_dataset_summary_json(const struct nrg_dataset *set, const struct nrg_data_summary *s)
{
    json_t *o = tally_json(&s->all), *models = json_object(), *kinds = json_object();
    json_t *notes = json_array();
    for (size_t i = 0; i < s->n_models; i++) {
        json_t *model = tally_json(&s->models[i]);
        for (int l = 0; l < NRG_NODE_LEVELS; l++)
            json_object_set_new(model, nrg_node_level_name((enum nrg_node_level)l),
                                json_integer((json_int_t)s->models[i].levels[l]));
        json_object_set_new(models, s->models[i].name, model);
    }
    for (size_t i = 0; i < s->n_kinds; i++) {
        if (s->kinds[i].level != NRG_NODE_OPERATOR)
            continue;
        json_t *kind = tally_json(&s->kinds[i]);
        json_object_set_new(kind, "group", json_string(nrg_kind_group(s->kinds[i].name)));
        json_object_set_new(kinds, s->kinds[i].name, kind);
    }
    for (size_t i = 0; i < set->n_notes; i++)
        json_array_append_new(notes, json_pack("{s:s, s:s, s:I}", "where", set->notes[i].where,
                                               "text", set->notes[i].text, "count",
                                               (json_int_t)set->notes[i].count));
    json_object_set_new(o, "schema", json_string("nrg.dataset-summary/1"));
    json_object_set_new(o, "device", json_string(set->rows[0].device));
    json_object_set_new(o, "models", models);
    json_object_set_new(o, "kinds", kinds);
    json_object_set_new(o, "notes", notes);
    return o;
}

/* ---- our own form ---- */

/* The shortest text that reads back as the same number. */
static void print_number(FILE *out, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, out);
}

static void print_dataset_row(const struct nrg_dataset *set, size_t i, FILE *out)
{
    const struct nrg_row *r = &set->rows[i];
    const char *texts[] = {r->device, r->model, r->node, r->kind};
    fprintf(out, "%zu,", i + 1);
    for (int t = 0; t < 4; t++) {
        nrg_csv_cell(out, texts[t]);
        fputc(',', out);
    }
    fprintf(out, "%s,", nrg_node_level_name(r->level));
    for (uint32_t p = 0; p < r->n_parts; p++) {
        struct nrg_module_part part = set->parts[r->first_part + p];
        fprintf(out, "%s%" PRIu32, p ? " " : "", part.row + 1);
        if (part.count > 1)
            fprintf(out, ":%" PRIu32, part.count);
    }
    for (int f = 0; f < NRG_FEATURES; f++) {
        if (!set->columns[f])
            continue;
        fputc(',', out);
        if (!isnan(set->columns[f][i]))
            print_number(out, set->columns[f][i]);
    }
    fputc(',', out);
    print_number(out, r->energy_j);
    fputc(',', out);
    if (!isnan(r->repeats))
        print_number(out, r->repeats);
    fprintf(out, ",%" PRIu64 ",%s,%s\n", r->multiplicity, set->convention, r->provenance);
}

void nrg_dataset_write_csv(const struct nrg_dataset *set, FILE *out)
{
    fputs("id,device,model,node,kind,level,parts", out);
    for (int f = 0; f < NRG_FEATURES; f++)
        if (set->columns[f])
            fprintf(out, ",%s", nrg_feature_names[f]);
    fputs(",energy_j,repeats,multiplicity,counts,provenance\n", out);
    for (size_t i = 0; i < set->n; i++)
        print_dataset_row(set, i, out);
}

static json_t *row_json(const struct nrg_dataset *set, size_t i)
{
    const struct nrg_row *r = &set->rows[i];
    char id[24];
    snprintf(id, sizeof id, "%zu", i + 1);
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:I, s:s}", "id", id, "device",
                          r->device, "model", r->model, "node", r->node, "kind", r->kind, "level",
                          nrg_node_level_name(r->level), "energy_j", r->energy_j, "multiplicity",
                          (json_int_t)r->multiplicity, "provenance", r->provenance);
    for (int f = 0; f < NRG_FEATURES; f++)
        if (set->columns[f] && !isnan(set->columns[f][i]))
            json_object_set_new(o, nrg_feature_names[f], json_real(set->columns[f][i]));
    if (!isnan(r->repeats))
        json_object_set_new(o, "repeats", json_real(r->repeats));
    json_t *parts = r->n_parts ? json_array() : NULL;
    for (uint32_t p = 0; p < r->n_parts; p++) {
        struct nrg_module_part part = set->parts[r->first_part + p];
        snprintf(id, sizeof id, "%" PRIu32, part.row + 1);
        json_array_append_new(parts,
                              json_pack("{s:s, s:I}", "id", id, "count", (json_int_t)part.count));
    }
    if (parts)
        json_object_set_new(o, "parts", parts);
    return o;
}

json_t *nrg_dataset_json(const struct nrg_dataset *set)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < set->n; i++)
        json_array_append_new(rows, row_json(set, i));
    return json_pack("{s:s, s:s, s:o}", "schema", "nrg.dataset/1", "counts", set->convention,
                     "rows", rows);
}
