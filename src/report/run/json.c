/* The summary as JSON for other programs: docs/json.md. Missing values are absent, never 0. */
#include "base/stats.h"
#include "record/format.h"
#include "report/run/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/set.h"
#include "report/run/serving.h"

static json_t *domain_json(const struct nrg_domain *d)
{
    const struct nrg_recorded_channel *c = d->channel;
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s}", "name", c->channel.name, "sensor", c->sensor, "driver",
                  c->driver, "provenance", nrg_provenance_name(c->channel.provenance));
    nrg_json_text(o, "parent", c->channel.parent);
    nrg_json_text(o, "source", c->channel.source);
    nrg_json_text(o, "method", d->method);
    NRG_JSON_REALS(o, {"energy_j", d->energy_j}, {"uncertainty_j", d->uncertainty_j},
                   {"low_j", d->low_j}, {"high_j", d->high_j}, {"mean_w", d->mean_w},
                   {"peak_w", d->peak_w}, {"covered", d->covered});
    if (d->second) {
        json_t *second =
            json_pack("{s:s, s:s}", "quantity", nrg_quantity_name(d->second->channel.quantity),
                      "source", d->second->channel.source);
        NRG_JSON_REALS(second, {"energy_j", d->second_j},
                       {"uncertainty_j", d->second_uncertainty_j});
        json_object_set_new(o, "second", second);
    }
    return o;
}

static json_t *total_json(const struct nrg_summary *s)
{
    json_t *o = json_pack("{s:[]}", "domains");
    if (isnan(s->total_j))
        return o;
    NRG_JSON_REALS(o, {"energy_j", s->total_j}, {"uncertainty_j", s->total_uncertainty_j},
                   {"low_j", s->total_low_j}, {"high_j", s->total_high_j},
                   {"mean_w", s->total_mean_w}, {"covered", s->total_covered},
                   {"energy_delay_js", s->total_j * s->duration_s});
    nrg_json_text(o, "provenance", nrg_provenance_name(s->total_provenance));
    if (s->measured_j > 0 && s->estimated_j > 0) {
        nrg_json_real(o, "measured_j", s->measured_j);
        nrg_json_real(o, "estimated_j", s->estimated_j);
    }
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].in_total)
            json_array_append_new(json_object_get(o, "domains"),
                                  json_string(s->domains[i].channel->channel.name));
    return o;
}

/* Of what the program used. Not known is null here, so that nobody takes its absence for 0. */
static void add_program(json_t *o, const struct nrg_summary *s)
{
    const struct nrg_program *p = &s->program;
    const struct nrg_json_real fields[] = {
        {"energy_j", p->energy_j}, {"low_j", p->low_j}, {"high_j", p->high_j}};
    json_t *program = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set_new(program, fields[i].key,
                            isnan(fields[i].value) ? json_null() : json_real(fields[i].value));
    nrg_json_text(program, "share_method", p->share_method);
    nrg_json_text(program, "why", p->why);
    json_object_set(o, "program_j", json_object_get(program, "energy_j"));
    json_object_set_new(o, "program", program);
    NRG_JSON_REALS(o, {"other_processes_j", s->other_processes_j}, {"idle_j", s->idle_j},
                   {"unattributed_j", p->unattributed_j});
}

/* The meter at the plug against the sum of the parts; absent when there is only one of them. */
static void add_wall(json_t *o, const struct nrg_summary *s)
{
    const struct nrg_wall *w = &s->wall;
    if (!w->domain)
        return;
    json_t *wall = json_pack("{s:s, s:s, s:s, s:[]}", "name", w->name, "driver",
                             w->domain->channel->driver, "provenance",
                             nrg_provenance_name(w->domain->channel->channel.provenance), "parts");
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].wall_part)
            json_array_append_new(json_object_get(wall, "parts"),
                                  json_string(s->domains[i].channel->channel.name));
    NRG_JSON_REALS(wall, {"energy_j", w->energy_j}, {"uncertainty_j", w->uncertainty_j},
                   {"mean_w", w->mean_w}, {"covered", w->covered}, {"parts_j", w->parts_j},
                   {"parts_w", w->parts_w}, {"ratio", w->ratio}, {"left_over_j", w->left_over_j},
                   {"left_over_uncertainty_j", w->left_over_uncertainty_j},
                   {"left_over_w", w->left_over_w});
    json_object_set_new(o, "wall", wall);
}

static json_t *process_json(const struct nrg_process_energy *p)
{
    json_t *o = json_pack("{s:s, s:{}}", "command",
                          p->info->command[0] ? p->info->command : p->info->name, "energy_j");
    json_t *energy = json_object_get(o, "energy_j");
    if (p->info->pid > 0)
        json_object_set_new(o, "pid", json_integer(p->info->pid));
    if (p->info->parent_pid > 0)
        json_object_set_new(o, "parent_pid", json_integer(p->info->parent_pid));
    nrg_json_text(o, "name", p->info->name);
    nrg_json_text(o, "container", p->info->container);
    nrg_json_text(o, "unit", p->info->unit);
    nrg_json_real(o, "cpu_time_s", p->cpu_time_s);
    nrg_json_count(o, "peak_rss_bytes", p->peak_rss_bytes);
    nrg_json_count(o, "peak_pss_bytes", p->peak_pss_bytes);
    if (p->still_running)
        json_object_set_new(o, "still_running", json_true());
    NRG_JSON_REALS(energy, {"cpu", p->cpu_j}, {"dram", p->dram_j}, {"gpu", p->gpu_j});
    return o;
}

/* Containers are the sums of their processes. */
static void add_containers(json_t *o, const struct nrg_summary *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_processes; i++) {
        const char *name = s->processes[i].info->container;
        struct nrg_container_use use = nrg_container_use(s, i);
        if (!use.processes)
            continue;
        json_t *c = json_pack("{s:s, s:I}", "name", name, "processes", (json_int_t)use.processes);
        NRG_JSON_REALS(c, {"cpu_time_s", use.cpu_time_s}, {"cpu_energy_j", use.cpu_j});
        json_array_append_new(list, c);
    }
    if (json_array_size(list))
        json_object_set(o, "containers", list);
    json_decref(list);
}

static void fill_run(json_t *o, const struct nrg_report *r, const struct nrg_summary *s)
{
    json_t *domains = json_array(), *processes = json_array(), *missing = json_array();
    nrg_json_real(o, "duration_s", s->duration_s);
    add_program(o, s);
    for (size_t i = 0; i < s->n_domains; i++)
        json_array_append_new(domains, domain_json(&s->domains[i]));
    json_object_set_new(o, "domains", domains);
    json_object_set_new(o, "total", total_json(s));
    if (s->widest)
        json_object_set_new(o, "check",
                            json_pack("{s:s, s:f}", "name", s->widest->channel->channel.name,
                                      "energy_j", s->widest->energy_j));
    add_wall(o, s);
    for (size_t i = 0; i < s->n_processes; i++)
        json_array_append_new(processes, process_json(&s->processes[i]));
    json_object_set_new(o, "processes", processes);
    add_containers(o, s);
    json_object_set_new(o, "split",
                        json_string(s->split == NRG_SPLIT_ACTIVE ? "active" : "busy-time"));
    nrg_json_real(o, "idle_w", s->idle_w);
    nrg_json_text(o, "idle_method", s->idle_method);
    NRG_JSON_REALS(o, {"cpu_domain_j", s->cpu_domain_j}, {"cpu_utilisation", s->cpu_utilisation},
                   {"cpu_time_s", s->cpu_time_s}, {"recorder_cpu_s", s->recorder_cpu_s},
                   {"peak_memory_bytes", s->peak_memory_bytes});
    if (r->options.carbon_g_per_kwh > 0 && !isnan(s->total_j)) {
        nrg_json_real(o, "carbon_intensity_g_per_kwh", r->options.carbon_g_per_kwh);
        nrg_json_real(o, "carbon_g", s->total_j / 3.6e6 * r->options.carbon_g_per_kwh);
    }
    if (r->options.price_per_kwh > 0 && !isnan(s->total_j)) {
        nrg_json_real(o, "price_per_kwh", r->options.price_per_kwh);
        nrg_json_real(o, "cost", s->total_j / 3.6e6 * r->options.price_per_kwh);
    }
    for (size_t i = 0; i < s->n_missing; i++)
        json_array_append_new(missing,
                              json_pack("{s:o, s:o}", "what", nrg_json_string(s->missing[i].what),
                                        "why", nrg_json_string(s->missing[i].why)));
    json_object_set_new(o, "missing", missing);
    nrg_json_count(o, "exit_code", s->exit_code);
}

/* Of the runs in which it is known; absent when it is in none. */
static void add_spread(json_t *repeat, const char *key, const struct nrg_report *r,
                       double (*value)(const struct nrg_summary *), const char *unit)
{
    struct nrg_spread spread = nrg_report_spread(r, value);
    const struct nrg_json_real fields[] = {
        {"mean", spread.mean}, {"sd", spread.sd}, {"low95", spread.low}, {"high95", spread.high}};
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%s", fields[i].key, unit);
        nrg_json_real(o, name, fields[i].value);
    }
    if (json_object_size(o))
        json_object_set(repeat, key, o);
    json_decref(o);
}

static void add_repeats(json_t *doc, const struct nrg_report *r)
{
    json_t *runs = json_array(), *repeat = json_pack("{s:I}", "n", (json_int_t)r->n_runs);
    for (size_t i = 0; i < r->n_runs; i++) {
        const struct nrg_summary *s = &r->runs[i];
        json_t *o = json_object();
        NRG_JSON_REALS(o, {"duration_s", s->duration_s}, {"energy_j", s->program.energy_j});
        add_program(o, s);
        json_object_set_new(o, "total", total_json(s));
        nrg_json_count(o, "exit_code", s->exit_code);
        json_array_append_new(runs, o);
    }
    add_spread(repeat, "energy", r, nrg_report_program_j, "j");
    add_spread(repeat, "machine_energy", r, nrg_report_machine_j, "j");
    add_spread(repeat, "duration", r, nrg_report_duration_s, "s");
    json_object_set_new(doc, "runs", runs);
    json_object_set_new(doc, "repeat", repeat);
}

static void add_meta(void *arg, const char *key, const char *value)
{
    json_object_set_new(arg, key, json_string(value));
}

/* Counts of the model that the recording carries. */
static void add_model(json_t *doc, const struct nrg_model_counts *counts)
{
    json_t *o = json_object();
    nrg_json_count(o, "params", counts->params);
    nrg_json_count(o, "macs", counts->macs);
    if (json_object_size(o))
        json_object_set(doc, "model", o);
    json_decref(o);
}

/* What the programs marked, where that was counted. */
static void add_spans(json_t *doc, const struct nrg_recording *recording)
{
    int64_t spans, dropped = 0, n;
    if (nrg_recording_integer(recording, "spans", &spans))
        return;
    nrg_recording_integer(recording, "spans_dropped", &dropped);
    json_t *reasons = json_object();
    for (size_t i = 0; i < NRG_SPAN_DROPS; i++)
        if (!nrg_recording_integer(recording, nrg_span_drop_names[i].meta, &n) && n > 0)
            json_object_set_new(reasons, nrg_span_drop_names[i].json, json_integer(n));
    json_t *o = json_pack("{s:I, s:I}", "count", (json_int_t)spans, "dropped", (json_int_t)dropped);
    if (json_object_size(reasons))
        json_object_set(o, "dropped_by", reasons);
    json_decref(reasons);
    if (!nrg_recording_integer(recording, "spans_refused", &n) && n > 0)
        json_object_set_new(o, "refused_programs", json_integer(n));
    json_object_set_new(doc, "spans", o);
}

json_t *nrg_report_json(const struct nrg_report *r)
{
    json_t *doc = json_pack("{s:s}", "schema", "nrg.report/1");
    json_t *meta = json_object();
    nrg_recording_each_text(r->recording, add_meta, meta);
    nrg_json_text(doc, "command", nrg_recording_text(r->recording, "command_line"));
    nrg_json_text(doc, "recording", nrg_recording_path(r->recording));
    fill_run(doc, r, &r->runs[0]);
    if (r->n_runs > 1)
        add_repeats(doc, r);
    add_model(doc, &r->model);
    add_spans(doc, r->recording);
    json_t *llm = nrg_serving_json(&r->serving);
    if (llm)
        json_object_set_new(doc, "llm", llm);
    json_object_set_new(doc, "metadata", meta);
    return doc;
}
