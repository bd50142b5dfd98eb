/*
 * What the page says once of a recording: the report as `nrg report --json` has it, and what the
 * attribution says of its domains. With --redact, redact.c takes out of it what may name people or
 * places.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "report/attribution/report.h"
#include "report/page/internal.h"

static json_t *domain_json(const struct nrg_attribution *a, size_t i)
{
    const struct nrg_attribution_domain *d = &a->domains[i];
    const struct nrg_range_error *e = &a->buckets->errors[i];
    json_t *o = json_object(), *error = json_object();
    nrg_json_text(o, "name", nrg_attribution_domain_name(d));
    nrg_json_text(o, "provenance", nrg_provenance_name(d->domain->channel->channel.provenance));
    nrg_json_text(o, "method", nrg_method_name(d->method));
    nrg_json_text(o, "why", d->why);
    nrg_json_text(o, "idle_source", d->idle_source);
    NRG_JSON_REALS(o, {"idle_w", d->idle_w}, {"total_j", d->total_j}, {"idle_j", d->idle_j},
                   {"other_processes_j", d->other_processes_j},
                   {"unattributed_j", d->unattributed_j}, {"scale_low", d->scale.low},
                   {"scale_high", d->scale.high});
    NRG_JSON_REALS(error, {"factor_low", e->factor_low}, {"factor_high", e->factor_high},
                   {"fixed_j", e->fixed_j}, {"update_s", e->update_s}, {"per_s_j", e->per_s_j},
                   {"noise_j2_per_s", e->noise_j2_per_s}, {"most_w", e->most_w});
    json_object_set_new(o, "error", error);
    return o;
}

static json_t *units_json(const struct nrg_attribution *a)
{
    json_t *units = json_array();
    for (size_t i = 0; i < a->n_units; i++) {
        const struct nrg_unit_use *u = &a->units[i];
        json_t *o = json_object();
        json_object_set_new(o, "name", nrg_json_string(u->name));
        nrg_json_text(o, "kind", u->kind);
        json_object_set_new(o, "of", nrg_json_string(u->of));
        nrg_json_text(o, "of_kind", u->of_kind);
        if (!isnan(u->energy_j))
            nrg_json_text(o, "provenance", nrg_provenance_name(u->provenance));
        json_object_set_new(o, "flags", nrg_attribution_flags_json(u->flags));
        NRG_JSON_REALS(o, {"amount", u->amount}, {"energy_j", u->energy_j}, {"low_j", u->low_j},
                       {"high_j", u->high_j}, {"time_s", u->time_s});
        if (!isnan(a->scale.low))
            NRG_JSON_REALS(o, {"low_with_scale_j", u->scaled_low_j},
                           {"high_with_scale_j", u->scaled_high_j});
        json_array_append_new(units, o);
    }
    return units;
}

/* What a note is about may be a file: then with its name alone, where names are left out. */
static json_t *note_json(const struct nrg_missing *note, bool redacted)
{
    const char *slash = redacted ? strrchr(note->what, '/') : NULL;
    return json_pack("{s:o, s:o}", "what", nrg_json_string(slash ? slash + 1 : note->what), "why",
                     nrg_json_string(note->why));
}

static json_t *attribution_json(const struct nrg_attribution *a, bool redacted)
{
    json_t *o = json_object(), *domains = json_array(), *notes = json_array();
    nrg_json_text(o, "method", nrg_method_name(a->method));
    nrg_json_text(o, "provenance", nrg_provenance_name(a->provenance));
    NRG_JSON_REALS(o, {"total_j", a->total_j}, {"total_low_j", a->total_low_j},
                   {"total_high_j", a->total_high_j}, {"idle_j", a->idle_j},
                   {"other_processes_j", a->other_processes_j},
                   {"unattributed_j", a->unattributed_j}, {"scale_low", a->scale.low},
                   {"scale_high", a->scale.high});
    nrg_json_count(o, "spans", (int64_t)a->spans);
    for (size_t i = 0; i < a->n_domains; i++)
        json_array_append_new(domains, domain_json(a, i));
    for (size_t i = 0; i < a->n_notes; i++)
        json_array_append_new(notes, note_json(&a->notes[i], redacted));
    json_object_set_new(o, "domains", domains);
    json_object_set_new(o, "notes", notes);
    json_object_set_new(o, "per", units_json(a));
    return o;
}

static json_t *price_json(const struct nrg_machine_price *price)
{
    json_t *o = json_object();
    nrg_json_text(o, "device", price->device);
    nrg_json_text(o, "provenance", price->provenance);
    nrg_json_text(o, "source", price->source);
    NRG_JSON_REALS(o, {"j_per_mac", price->j_per_mac}, {"j_per_byte", price->j_per_byte});
    return o;
}

/* What is known beside the recording; without paths where names are left out. */
static void add_others(struct nrg_page_data *d)
{
    const struct nrg_page_run *run = d->run;
    if (run->price)
        json_object_set_new(d->head, "machine", price_json(run->price));
    if (run->prediction)
        json_object_set(d->head, "prediction", run->prediction);
    if (run->comparison)
        json_object_set(d->head, "comparison", run->comparison);
    if (run->redact)
        nrg_page_redact_others(run->prediction, run->comparison);
}

int nrg_page_head(struct nrg_page_data *d)
{
    const struct nrg_page_run *run = d->run;
    const struct nrg_attribution_buckets *b = run->attribution->buckets;
    json_t *report = nrg_report_json(run->report);
    int64_t began_ns =
        nrg_recording_realtime_ns(run->recording, run->attribution->summary.begin_ns);
    if (run->redact)
        nrg_page_redact_report(report, &run->report->runs[0]);
    nrg_json_text(d->head, "schema", "nrg.page/1");
    nrg_json_text(d->head, "nrg_version", NRG_VERSION);
    json_object_set_new(d->head, "redacted", json_boolean(run->redact));
    json_object_set_new(d->head, "report", report);
    json_object_set_new(d->head, "attribution", attribution_json(run->attribution, run->redact));
    add_others(d);
    if (began_ns > 0)
        nrg_json_real(d->head, "began_s", (double)began_ns * 1e-9);
    json_object_set_new(d->head, "buckets",
                        json_pack("{s:I, s:I, s:I}", "n", (json_int_t)b->n, "width_ns",
                                  (json_int_t)(b->n > 1 ? b->edges_ns[1] : b->edges_ns[b->n]),
                                  "duration_ns", (json_int_t)b->edges_ns[b->n]));
    return report ? 0 : -ENOMEM;
}
