/*
 * An attribution as JSON for other programs, schema nrg.attribute/1: docs/json.md. Missing values
 * are absent, never 0. What stands before the rows is made with jansson at once, the rows one by
 * one: a layer log of 30,000 cycles has as many times its layers of them.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/memory.h"
#include "base/json/set.h"
#include "base/mem.h"
#include "report/attribution/report.h"
#include "report/attribution/tokens.h"
#include "report/attribution/waiting.h"

#define FLAGS JSON_REAL_PRECISION(12)

static json_t *domain_json(const struct nrg_attribution_domain *d)
{
    const struct nrg_recorded_channel *c = d->domain ? d->domain->channel : NULL;
    json_t *o = json_object();
    nrg_json_text(o, "name", nrg_attribution_domain_name(d));
    if (c) {
        nrg_json_text(o, "driver", c->driver);
        nrg_json_text(o, "sensor", c->sensor);
        nrg_json_text(o, "provenance", nrg_provenance_name(c->channel.provenance));
    }
    nrg_json_text(o, "method", nrg_method_name(d->method));
    nrg_json_text(o, "why", d->why);
    nrg_json_real(o, "lag_s", d->lag_s);
    nrg_json_text(o, "lag_source", d->lag_source);
    nrg_json_real(o, "idle_w", d->idle_w);
    nrg_json_text(o, "idle_source", d->idle_source);
    NRG_JSON_REALS(o, {"total_j", d->total_j}, {"idle_j", d->idle_j},
                   {"other_processes_j", d->other_processes_j},
                   {"unattributed_j", d->unattributed_j}, {"residual", d->residual},
                   {"scale_low", d->scale.low}, {"scale_high", d->scale.high});
    return o;
}

static void add_spread(json_t *o, const struct nrg_unit_spread *s)
{
    if (!s->n)
        return;
    json_t *rest = json_object(), *first = json_object();
    nrg_json_count(rest, "amount", (int64_t)s->n);
    NRG_JSON_REALS(rest, {"energy_j", s->rest_j}, {"energy_per_unit_j", s->rest_j / (double)s->n},
                   {"time_per_unit_s", s->rest_s / (double)s->n}, {"median_j", s->median_j},
                   {"quartile_low_j", s->low_j}, {"quartile_high_j", s->high_j});
    json_object_set_new(o, "steady", rest);
    nrg_json_count(first, "amount", (int64_t)s->first);
    nrg_json_text(first, "rule", s->given ? "given" : "longer than twice the median");
    if (s->first)
        NRG_JSON_REALS(first, {"energy_j", s->first_j},
                       {"energy_per_unit_j", s->first_j / (double)s->first},
                       {"time_per_unit_s", s->first_s / (double)s->first});
    json_object_set_new(o, "first", first);
    nrg_json_real(o, "median_j", s->median_j);
}

/* Whose energy was divided, and of a counter, what was counted where. */
static void add_divided(json_t *o, const struct nrg_unit_use *u)
{
    bool counter = !strcmp(u->kind, NRG_KIND_COUNTER);
    bool phase = !strcmp(u->of_kind, NRG_KIND_PHASE) || !strcmp(u->of_kind, NRG_KIND_EPOCH) ||
                 !strcmp(u->of_kind, NRG_KIND_STEP);
    json_object_set_new(o, "of", nrg_json_string(u->of));
    nrg_json_text(o, "of_kind", u->of_kind);
    if (counter)
        nrg_json_text(o, "counted", u->inside ? "inside" : "directly");
    if (counter && phase)
        nrg_json_text(o, "phase", u->of);
}

static json_t *unit_json(const struct nrg_unit_use *u, bool scaled)
{
    json_t *o = json_object();
    nrg_json_text(o, "name", u->name);
    nrg_json_text(o, "kind", u->kind);
    add_divided(o, u);
    NRG_JSON_REALS(
        o, {"amount", u->amount}, {"energy_j", u->energy_j}, {"low_j", u->low_j},
        {"high_j", u->high_j}, {"time_s", u->time_s},
        {"energy_per_unit_j", u->energy_j / u->amount}, {"low_per_unit_j", u->low_j / u->amount},
        {"high_per_unit_j", u->high_j / u->amount}, {"time_per_unit_s", u->time_s / u->amount});
    if (scaled)
        NRG_JSON_REALS(o, {"low_per_unit_with_scale_j", u->scaled_low_j / u->amount},
                       {"high_per_unit_with_scale_j", u->scaled_high_j / u->amount});
    if (!isnan(u->energy_j))
        nrg_json_text(o, "provenance", nrg_provenance_name(u->provenance));
    json_object_set_new(o, "flags", nrg_attribution_flags_json(u->flags));
    if (u->ranks)
        nrg_json_count(o, "ranks", (int64_t)u->ranks);
    add_spread(o, &u->spread);
    return o;
}

static json_t *cycles_json(const struct nrg_cycles *c)
{
    json_t *o = json_object();
    nrg_json_count(o, "executions", (int64_t)c->n);
    nrg_json_count(o, "with_power", (int64_t)c->with_power);
    nrg_json_count(o, "left_out", (int64_t)c->left_out);
    NRG_JSON_REALS(o, {"time_s", c->layers_s}, {"between_s", c->between_s},
                   {"energy_j", c->layers_j}, {"between_j", c->between_j},
                   {"not_layers_j", c->between_j - c->layers_j}, {"lag_s", c->lag_s});
    nrg_json_text(o, "lag_source", c->lag_source);
    NRG_JSON_REALS(o, {"lag_corrected_j", c->layers_corrected_j},
                   {"between_lag_corrected_j", c->between_corrected_j},
                   {"not_layers_lag_corrected_j", c->between_corrected_j - c->layers_corrected_j},
                   {"idle_w", c->idle_w});
    return o;
}

/* What all rows have in common: they are the truth times a factor between these. */
static void add_scale(json_t *doc, const struct nrg_attribution *a)
{
    json_t *domains = json_array();
    if (isnan(a->scale.low)) {
        json_decref(domains);
        return;
    }
    for (size_t i = 0; i < a->n_domains; i++)
        if (!isnan(a->domains[i].scale.low))
            json_array_append_new(domains,
                                  nrg_json_string(nrg_attribution_domain_name(&a->domains[i])));
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"low", a->scale.low}, {"high", a->scale.high});
    nrg_json_text(o, "why", nrg_attribution_scale_why);
    json_object_set_new(o, "domains", domains);
    json_object_set_new(doc, "scale", o);
}

static void add_lists(json_t *doc, const struct nrg_attribution_report *r)
{
    const struct nrg_attribution *a = r->attribution;
    json_t *domains = json_array(), *per = json_array(), *notes = json_array();
    for (size_t i = 0; i < a->n_domains; i++)
        json_array_append_new(domains, domain_json(&a->domains[i]));
    for (size_t i = 0; i < a->n_units; i++)
        json_array_append_new(per, unit_json(&a->units[i], !isnan(a->scale.low)));
    for (size_t i = 0; i < a->n_notes; i++)
        json_array_append_new(notes,
                              json_pack("{s:o, s:o}", "what", nrg_json_string(a->notes[i].what),
                                        "why", nrg_json_string(a->notes[i].why)));
    json_object_set_new(doc, "domains", domains);
    json_object_set_new(doc, "per", per);
    json_t *llm = nrg_tokens_json(a);
    if (llm)
        json_object_set_new(doc, "llm", llm);
    if (r->waiting && r->waiting->n)
        json_object_set_new(doc, "waiting", nrg_waiting_json(r->waiting));
    json_object_set_new(doc, "notes", notes);
}

static json_t *head_json(const struct nrg_attribution_report *r)
{
    const struct nrg_attribution *a = r->attribution;
    json_t *doc = json_pack("{s:s}", "schema", "nrg.attribute/1");
    if (r->recording) {
        nrg_json_text(doc, "recording", nrg_recording_path(r->recording));
        nrg_json_text(doc, "command", nrg_recording_text(r->recording, "command_line"));
    }
    NRG_JSON_REALS(doc, {"duration_s", a->duration_s}, {"from_s", a->from_s}, {"to_s", a->to_s});
    nrg_json_text(doc, "method", nrg_method_name(a->method));
    nrg_json_text(doc, "provenance", nrg_provenance_name(a->provenance));
    nrg_json_text(doc, "idle", nrg_attribution_idle_word(a->idle));
    NRG_JSON_REALS(doc, {"confidence", r->confidence}, {"total_j", a->total_j},
                   {"total_uncertainty_j", a->total_uncertainty_j}, {"total_low_j", a->total_low_j},
                   {"total_high_j", a->total_high_j}, {"unattributed_j", a->unattributed_j},
                   {"idle_j", a->idle_j}, {"other_processes_j", a->other_processes_j});
    add_scale(doc, a);
    nrg_json_count(doc, "spans", (int64_t)a->spans);
    nrg_json_count(doc, "dropped", (int64_t)a->dropped);
    nrg_json_count(doc, "unclosed", (int64_t)a->unclosed);
    nrg_json_count(doc, "unmatched_ends", (int64_t)a->unmatched_ends);
    nrg_json_count(doc, "cut", (int64_t)a->cut);
    add_lists(doc, r);
    if (r->cycles)
        json_object_set_new(doc, "layers", cycles_json(r->cycles));
    return doc;
}

/* ---- rows ---- */

static void add_domains(json_t *o, const struct nrg_attribution *a,
                        const struct nrg_attribution_row *row)
{
    json_t *domains = json_object();
    for (size_t d = 0; row->domain_j && d < a->n_domains; d++)
        nrg_json_real(domains, nrg_attribution_domain_name(&a->domains[d]), row->domain_j[d]);
    if (json_object_size(domains))
        json_object_set(o, "domains", domains);
    json_decref(domains);
}

static void add_counts(json_t *o, const struct nrg_attribution_row *row)
{
    json_t *counts = json_object();
    for (size_t k = 0; k < row->n_counts; k++) {
        json_t *name = nrg_json_string(row->counts[k].name);
        nrg_json_real(counts, name ? json_string_value(name) : "", row->counts[k].amount);
        json_decref(name);
    }
    if (row->n_counts)
        json_object_set(o, "counts", counts);
    json_decref(counts);
}

static void add_flags(json_t *o, const struct nrg_attribution *a,
                      const struct nrg_attribution_row *row)
{
    json_object_set_new(o, "flags", nrg_attribution_flags_json(row->flags));
    if (row->flags & NRG_ROW_MERGED && row->merged_with < a->n_rows)
        nrg_json_count(o, "merged_with", (int64_t)row->merged_with);
}

static void add_remedy(json_t *o, const struct nrg_remedy *remedy)
{
    json_t *by = json_pack("{s:s}", "how", nrg_remedy_name(remedy->how));
    nrg_json_real(by, "times", remedy->times);
    json_object_set_new(o, "resolved_by", by);
}

static void add_cycle(json_t *o, const struct nrg_cycles *cycles, size_t i)
{
    const struct nrg_execution *c = nrg_cycle_of_row(cycles, i);
    if (!c)
        return;
    nrg_json_count(o, "cycle", c->cycle);
    NRG_JSON_REALS(o, {"power_w", c->power_w}, {"power_above_idle_w", c->power_above_idle_w},
                   {"run_time_s", c->run_time_s}, {"energy_lag_corrected_j", c->lag_corrected_j});
}

/*
 * Modules of the first model have their names without the model's, those of others with it. So rows
 * also have the name with the model's, and the last part alone.
 */
static void add_module_names(json_t *o, const struct nrg_attribution_row *row)
{
    size_t len = row->root ? strlen(row->root) : 0;
    const char *dot = strrchr(row->name, '.');
    char *full = NULL;
    if (!len)
        return;
    bool whole = !strncmp(row->name, row->root, len) && (!row->name[len] || row->name[len] == '.');
    if (asprintf(&full, "%s%s%s", whole ? "" : row->root, whole ? "" : ".", row->name) < 0) {
        nrg_memory_lacked();
        return;
    }
    nrg_json_text(o, "full_name", full);
    nrg_json_text(o, "short_name", dot && dot[1] ? dot + 1 : row->name);
    free(full);
}

static json_t *row_json(const struct nrg_attribution_report *r, size_t i)
{
    const struct nrg_attribution *a = r->attribution;
    const struct nrg_attribution_row *row = &a->rows[i];
    json_t *o = json_object();
    nrg_json_count(o, "id", (int64_t)i);
    json_object_set_new(o, "name", nrg_json_string(row->name));
    nrg_json_text(o, "kind", row->kind);
    add_module_names(o, row);
    nrg_json_text(o, "detail", row->detail);
    if (row->parent < a->n_rows)
        nrg_json_count(o, "parent", (int64_t)row->parent);
    if (row->number != NRG_MISSING)
        json_object_set_new(o, "number", json_integer(row->number));
    if (r->cycles)
        add_cycle(o, r->cycles, i);
    nrg_json_count(o, "calls", (int64_t)row->calls);
    NRG_JSON_REALS(o, {"time_s", row->time_s}, {"self_time_s", row->self_time_s},
                   {"energy_j", row->energy_j}, {"energy_self_j", row->energy_self_j},
                   {"low_j", row->low_j}, {"high_j", row->high_j}, {"self_low_j", row->self_low_j},
                   {"self_high_j", row->self_high_j});
    if (!isnan(a->scale.low))
        NRG_JSON_REALS(o, {"low_with_scale_j", row->scaled_low_j},
                       {"high_with_scale_j", row->scaled_high_j},
                       {"self_low_with_scale_j", row->self_scaled_low_j},
                       {"self_high_with_scale_j", row->self_scaled_high_j});
    if (!isnan(row->energy_j))
        nrg_json_text(o, "provenance", nrg_provenance_name(row->provenance));
    if (row->calls)
        nrg_json_real(o, "energy_per_call_j", row->energy_j / (double)row->calls);
    nrg_json_real(o, "share", row->energy_j / a->total_j);
    nrg_json_text(o, "method", nrg_method_name(row->method));
    add_flags(o, a, row);
    if (row->flags & NRG_ROW_UNRESOLVED)
        add_remedy(o, &row->remedy);
    nrg_json_real(o, "updates_per_call", row->updates_per_call);
    add_domains(o, a, row);
    add_counts(o, row);
    NRG_JSON_REALS(o, {"macs", row->macs}, {"flops", row->flops}, {"read_bytes", row->read_bytes},
                   {"written_bytes", row->written_bytes}, {"pj_per_mac", nrg_row_pj_per_mac(row)},
                   {"j_per_byte", nrg_row_j_per_byte(row)});
    return o;
}

/* Everything but the rows, without the closing brace. */
static int dump_head(json_t *head, FILE *out)
{
    head = nrg_json_whole(head);
    char *text = head ? json_dumps(head, JSON_INDENT(2) | FLAGS) : NULL;
    size_t len = text ? strlen(text) : 0;
    json_decref(head);
    if (!text)
        return -ENOMEM;
    len -= len > 0; /* the brace, and the line end before it */
    while (len && text[len - 1] == '\n')
        len--;
    fwrite(text, 1, len, out);
    nrg_json_free(text);
    return 0;
}

int nrg_attribution_json(const struct nrg_attribution_report *r, FILE *out)
{
    const struct nrg_attribution *a = r->attribution;
    bool first = true;
    int rc = dump_head(head_json(r), out);
    fputs(",\n  \"rows\": [", out);
    for (size_t i = 0; !rc && i < a->n_rows; i++) {
        if (nrg_row_left_out(r, i))
            continue;
        fputs(first ? "\n    " : ",\n    ", out);
        first = false;
        json_t *row = nrg_json_whole(row_json(r, i));
        rc = !row ? -ENOMEM : json_dumpf(row, out, FLAGS) ? -EIO : 0;
        json_decref(row);
    }
    fputs("\n  ]\n}\n", out);
    return rc;
}
