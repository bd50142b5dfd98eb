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

#include "report/attribution/report.h"

#define FLAGS JSON_REAL_PRECISION(12)

static void set_real(json_t *o, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(o, key, json_real(value));
}

static void set_count(json_t *o, const char *key, uint64_t n)
{
    json_object_set_new(o, key, json_integer((json_int_t)n));
}

/* A text that may not be UTF-8: it is made so. */
static json_t *clean_text(const char *text)
{
    struct nrg_str copy = {0};
    size_t len = strlen(text);
    json_t *value = json_stringn(text, len);
    if (value || nrg_reserve(&copy.text, &copy.cap, len + 1, 1))
        return value;
    nrg_copy_clean(copy.text, len + 1, text, len);
    value = json_string(copy.text);
    nrg_str_release(&copy);
    return value;
}

static void set_text(json_t *o, const char *key, const char *text)
{
    if (text && text[0])
        json_object_set_new(o, key, clean_text(text));
}

static const char *domain_name(const struct nrg_attribution_domain *d)
{
    return d->domain && d->domain->channel ? d->domain->channel->channel.name : "energy";
}

static json_t *domain_json(const struct nrg_attribution_domain *d)
{
    const struct nrg_recorded_channel *c = d->domain ? d->domain->channel : NULL;
    json_t *o = json_object();
    set_text(o, "name", domain_name(d));
    if (c) {
        set_text(o, "driver", c->driver);
        set_text(o, "sensor", c->sensor);
        set_text(o, "provenance", nrg_provenance_name(c->channel.provenance));
    }
    set_text(o, "method", nrg_method_name(d->method));
    set_text(o, "why", d->why);
    set_real(o, "lag_s", d->lag_s);
    set_text(o, "lag_source", d->lag_source);
    set_real(o, "idle_w", d->idle_w);
    set_text(o, "idle_source", d->idle_source);
    set_real(o, "total_j", d->total_j);
    set_real(o, "idle_j", d->idle_j);
    set_real(o, "other_processes_j", d->other_processes_j);
    set_real(o, "unattributed_j", d->unattributed_j);
    set_real(o, "residual", d->residual);
    return o;
}

static json_t *unit_json(const struct nrg_unit_use *u)
{
    json_t *o = json_object();
    set_text(o, "name", u->name);
    set_text(o, "kind", u->kind);
    set_real(o, "amount", u->amount);
    set_real(o, "energy_j", u->energy_j);
    set_real(o, "time_s", u->time_s);
    set_real(o, "energy_per_unit_j", u->energy_j / u->amount);
    set_real(o, "low_per_unit_j", u->low_j / u->amount);
    set_real(o, "high_per_unit_j", u->high_j / u->amount);
    set_real(o, "time_per_unit_s", u->time_s / u->amount);
    return o;
}

static json_t *cycles_json(const struct nrg_cycles *c)
{
    json_t *o = json_object();
    set_count(o, "executions", c->n);
    set_count(o, "with_power", c->with_power);
    set_count(o, "left_out", c->left_out);
    set_real(o, "time_s", c->layers_s);
    set_real(o, "between_s", c->between_s);
    set_real(o, "energy_j", c->layers_j);
    set_real(o, "between_j", c->between_j);
    set_real(o, "not_layers_j", c->between_j - c->layers_j);
    set_real(o, "lag_s", c->lag_s);
    set_text(o, "lag_source", c->lag_source);
    set_real(o, "lag_corrected_j", c->layers_corrected_j);
    set_real(o, "between_lag_corrected_j", c->between_corrected_j);
    set_real(o, "not_layers_lag_corrected_j", c->between_corrected_j - c->layers_corrected_j);
    set_real(o, "idle_w", c->idle_w);
    return o;
}

static void add_lists(json_t *doc, const struct nrg_attribution_report *r)
{
    const struct nrg_attribution *a = r->attribution;
    struct nrg_unit_use units[NRG_UNIT_USES];
    size_t n = nrg_attribution_units(r, units, NRG_UNIT_USES);
    json_t *domains = json_array(), *per = json_array(), *notes = json_array();
    for (size_t i = 0; i < a->n_domains; i++)
        json_array_append_new(domains, domain_json(&a->domains[i]));
    for (size_t i = 0; i < n; i++)
        json_array_append_new(per, unit_json(&units[i]));
    for (size_t i = 0; i < a->n_notes; i++)
        json_array_append_new(notes, json_pack("{s:o, s:o}", "what", clean_text(a->notes[i].what),
                                               "why", clean_text(a->notes[i].why)));
    json_object_set_new(doc, "domains", domains);
    json_object_set_new(doc, "per", per);
    json_object_set_new(doc, "notes", notes);
}

static json_t *head_json(const struct nrg_attribution_report *r)
{
    static const char *const idle_words[] = {"apart", "share", "none"};
    const struct nrg_attribution *a = r->attribution;
    json_t *doc = json_pack("{s:s}", "schema", "nrg.attribute/1");
    if (r->recording) {
        set_text(doc, "recording", nrg_recording_path(r->recording));
        set_text(doc, "command", nrg_recording_text(r->recording, "command_line"));
    }
    set_real(doc, "duration_s", a->duration_s);
    set_text(doc, "method", nrg_method_name(a->method));
    set_text(doc, "provenance", nrg_provenance_name(a->provenance));
    set_text(doc, "idle", idle_words[a->idle]);
    set_real(doc, "confidence", r->confidence);
    set_real(doc, "total_j", a->total_j);
    set_real(doc, "total_uncertainty_j", a->total_uncertainty_j);
    set_real(doc, "total_low_j", a->total_low_j);
    set_real(doc, "total_high_j", a->total_high_j);
    set_real(doc, "unattributed_j", a->unattributed_j);
    set_real(doc, "idle_j", a->idle_j);
    set_real(doc, "other_processes_j", a->other_processes_j);
    set_count(doc, "spans", a->spans);
    set_count(doc, "dropped", a->dropped);
    set_count(doc, "unclosed", a->unclosed);
    set_count(doc, "unmatched_ends", a->unmatched_ends);
    set_count(doc, "cut", a->cut);
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
        set_real(domains, domain_name(&a->domains[d]), row->domain_j[d]);
    if (json_object_size(domains))
        json_object_set(o, "domains", domains);
    json_decref(domains);
}

static void add_counts(json_t *o, const struct nrg_attribution_row *row)
{
    json_t *counts = json_object();
    for (size_t k = 0; k < row->n_counts; k++) {
        json_t *name = clean_text(row->counts[k].name);
        set_real(counts, name ? json_string_value(name) : "", row->counts[k].amount);
        json_decref(name);
    }
    if (row->n_counts)
        json_object_set(o, "counts", counts);
    json_decref(counts);
}

static void add_flags(json_t *o, const struct nrg_attribution *a,
                      const struct nrg_attribution_row *row)
{
    json_t *flags = json_array();
    for (size_t w = 0; w < NRG_ROW_FLAG_WORDS; w++) {
        const char *word = nrg_attribution_flag(row->flags, w);
        if (word[0])
            json_array_append_new(flags, json_string(word));
    }
    json_object_set_new(o, "flags", flags);
    if (row->flags & NRG_ROW_MERGED && row->merged_with < a->n_rows)
        set_count(o, "merged_with", row->merged_with);
}

static void add_cycle(json_t *o, const struct nrg_cycles *cycles, size_t i)
{
    const struct nrg_execution *c = nrg_cycle_of_row(cycles, i);
    if (!c)
        return;
    json_object_set_new(o, "cycle", json_integer(c->cycle));
    set_real(o, "power_w", c->power_w);
    set_real(o, "power_above_idle_w", c->power_above_idle_w);
    set_real(o, "run_time_s", c->run_time_s);
    set_real(o, "energy_lag_corrected_j", c->lag_corrected_j);
}

static json_t *row_json(const struct nrg_attribution_report *r, size_t i)
{
    const struct nrg_attribution *a = r->attribution;
    const struct nrg_attribution_row *row = &a->rows[i];
    json_t *o = json_object();
    set_count(o, "id", i);
    json_object_set_new(o, "name", clean_text(row->name));
    set_text(o, "kind", row->kind);
    set_text(o, "detail", row->detail);
    if (row->parent < a->n_rows)
        set_count(o, "parent", row->parent);
    if (row->number != NRG_MISSING)
        json_object_set_new(o, "number", json_integer(row->number));
    if (r->cycles)
        add_cycle(o, r->cycles, i);
    set_count(o, "calls", row->calls);
    set_real(o, "time_s", row->time_s);
    set_real(o, "self_time_s", row->self_time_s);
    set_real(o, "energy_j", row->energy_j);
    set_real(o, "energy_self_j", row->energy_self_j);
    set_real(o, "low_j", row->low_j);
    set_real(o, "high_j", row->high_j);
    set_real(o, "self_low_j", row->self_low_j);
    set_real(o, "self_high_j", row->self_high_j);
    if (row->calls)
        set_real(o, "energy_per_call_j", row->energy_j / (double)row->calls);
    set_real(o, "share", row->energy_j / a->total_j);
    set_text(o, "method", nrg_method_name(row->method));
    add_flags(o, a, row);
    set_real(o, "updates_per_call", row->updates_per_call);
    add_domains(o, a, row);
    add_counts(o, row);
    set_real(o, "macs", row->macs);
    set_real(o, "flops", row->flops);
    set_real(o, "read_bytes", row->read_bytes);
    set_real(o, "written_bytes", row->written_bytes);
    set_real(o, "pj_per_mac", nrg_row_pj_per_mac(row));
    set_real(o, "j_per_byte", nrg_row_j_per_byte(row));
    return o;
}

static int dump(json_t *value, FILE *out)
{
    int rc = value ? json_dumpf(value, out, FLAGS) : -1;
    json_decref(value);
    return rc ? -EIO : 0;
}

/* Everything but the rows, without the closing brace. */
static int dump_head(json_t *head, FILE *out)
{
    char *text = head ? json_dumps(head, JSON_INDENT(2) | FLAGS) : NULL;
    size_t len = text ? strlen(text) : 0;
    json_decref(head);
    if (!text)
        return -ENOMEM;
    len -= len > 0; /* the brace, and the line end before it */
    while (len && text[len - 1] == '\n')
        len--;
    fwrite(text, 1, len, out);
    free(text);
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
        rc = dump(row_json(r, i), out);
    }
    fputs("\n  ]\n}\n", out);
    return rc;
}
