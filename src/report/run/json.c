/* The summary as JSON for other programs: docs/json.md. Missing values are absent, never 0. */
#include "report/run/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void set_real(json_t *o, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(o, key, json_real(value));
}

static void set_text(json_t *o, const char *key, const char *text)
{
    if (text && text[0])
        json_object_set_new(o, key, json_string(text));
}

static json_t *domain_json(const struct nrg_domain *d)
{
    const struct nrg_recorded_channel *c = d->channel;
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s}", "name", c->channel.name, "sensor", c->sensor, "driver",
                  c->driver, "provenance", nrg_provenance_name(c->channel.provenance));
    set_text(o, "parent", c->channel.parent);
    set_text(o, "source", c->channel.source);
    set_text(o, "method", d->method);
    set_real(o, "energy_j", d->energy_j);
    set_real(o, "uncertainty_j", d->uncertainty_j);
    set_real(o, "low_j", d->low_j);
    set_real(o, "high_j", d->high_j);
    set_real(o, "mean_w", d->mean_w);
    set_real(o, "peak_w", d->peak_w);
    set_real(o, "covered", d->covered);
    return o;
}

static json_t *total_json(const struct nrg_summary *s)
{
    json_t *o = json_pack("{s:[]}", "domains");
    if (isnan(s->total_j))
        return o;
    set_real(o, "energy_j", s->total_j);
    set_real(o, "uncertainty_j", s->total_uncertainty_j);
    set_real(o, "low_j", s->total_low_j);
    set_real(o, "high_j", s->total_high_j);
    set_real(o, "mean_w", s->total_j / s->duration_s);
    set_real(o, "energy_delay_js", s->total_j * s->duration_s);
    set_text(o, "provenance", nrg_provenance_name(s->total_provenance));
    if (s->measured_j > 0 && s->estimated_j > 0) {
        set_real(o, "measured_j", s->measured_j);
        set_real(o, "estimated_j", s->estimated_j);
    }
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].in_total)
            json_array_append_new(json_object_get(o, "domains"),
                                  json_string(s->domains[i].channel->channel.name));
    return o;
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
    set_real(wall, "energy_j", w->energy_j);
    set_real(wall, "uncertainty_j", w->uncertainty_j);
    set_real(wall, "mean_w", w->mean_w);
    set_real(wall, "covered", w->covered);
    set_real(wall, "parts_j", w->parts_j);
    set_real(wall, "parts_w", w->parts_w);
    set_real(wall, "ratio", w->ratio);
    set_real(wall, "left_over_j", w->left_over_j);
    set_real(wall, "left_over_uncertainty_j", w->left_over_uncertainty_j);
    set_real(wall, "left_over_w", w->left_over_w);
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
    set_text(o, "name", p->info->name);
    set_text(o, "container", p->info->container);
    set_text(o, "unit", p->info->unit);
    set_real(o, "cpu_time_s", p->cpu_time_s);
    if (p->peak_rss_bytes != NRG_MISSING)
        json_object_set_new(o, "peak_rss_bytes", json_integer(p->peak_rss_bytes));
    if (p->peak_pss_bytes != NRG_MISSING)
        json_object_set_new(o, "peak_pss_bytes", json_integer(p->peak_pss_bytes));
    if (p->still_running)
        json_object_set_new(o, "still_running", json_true());
    set_real(energy, "cpu", p->cpu_j);
    set_real(energy, "dram", p->dram_j);
    set_real(energy, "gpu", p->gpu_j);
    return o;
}

/* Containers are the sums of their processes. */
static void add_containers(json_t *o, const struct nrg_summary *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_processes; i++) {
        const char *name = s->processes[i].info->container;
        bool known = !name[0];
        for (size_t k = 0; k < i && !known; k++)
            known = !strcmp(s->processes[k].info->container, name);
        if (known)
            continue;
        struct nrg_container_use use = nrg_container_use(s, name);
        json_t *c = json_pack("{s:s, s:I}", "name", name, "processes", (json_int_t)use.processes);
        set_real(c, "cpu_time_s", use.cpu_time_s);
        set_real(c, "cpu_energy_j", use.cpu_j);
        json_array_append_new(list, c);
    }
    if (json_array_size(list))
        json_object_set(o, "containers", list);
    json_decref(list);
}

static void fill_run(json_t *o, const struct nrg_report *r, const struct nrg_summary *s)
{
    json_t *domains = json_array(), *processes = json_array(), *missing = json_array();
    set_real(o, "duration_s", s->duration_s);
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
    set_real(o, "idle_j", s->idle_j);
    set_real(o, "idle_w", s->idle_w);
    set_text(o, "idle_method", s->idle_method);
    set_real(o, "other_processes_j", s->other_processes_j);
    set_real(o, "cpu_domain_j", s->cpu_domain_j);
    set_real(o, "cpu_utilisation", s->cpu_utilisation);
    set_real(o, "cpu_time_s", s->cpu_time_s);
    set_real(o, "peak_memory_bytes", s->peak_memory_bytes);
    if (r->options.carbon_g_per_kwh > 0 && !isnan(s->total_j)) {
        set_real(o, "carbon_intensity_g_per_kwh", r->options.carbon_g_per_kwh);
        set_real(o, "carbon_g", s->total_j / 3.6e6 * r->options.carbon_g_per_kwh);
    }
    for (size_t i = 0; i < s->n_missing; i++)
        json_array_append_new(
            missing, json_pack("{s:s, s:s}", "what", s->missing[i].what, "why", s->missing[i].why));
    json_object_set_new(o, "missing", missing);
    if (s->exit_code >= 0)
        json_object_set_new(o, "exit_code", json_integer(s->exit_code));
}

static json_t *spread_json(const double *values, size_t n, const char *unit)
{
    struct nrg_spread spread = nrg_spread_of(values, n);
    const struct {
        const char *key;
        double value;
    } fields[] = {
        {"mean", spread.mean}, {"sd", spread.sd}, {"low95", spread.low}, {"high95", spread.high}};
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_%s", fields[i].key, unit);
        set_real(o, key, fields[i].value);
    }
    return o;
}

static void add_repeats(json_t *doc, const struct nrg_report *r)
{
    json_t *runs = json_array();
    double *energy = calloc(r->n_runs + 1, sizeof *energy);
    double *duration = calloc(r->n_runs + 1, sizeof *duration);
    for (size_t i = 0; energy && duration && i < r->n_runs; i++) {
        json_t *o = json_object();
        energy[i] = r->runs[i].total_j;
        duration[i] = r->runs[i].duration_s;
        set_real(o, "duration_s", duration[i]);
        set_real(o, "energy_j", energy[i]);
        if (r->runs[i].exit_code >= 0)
            json_object_set_new(o, "exit_code", json_integer(r->runs[i].exit_code));
        json_array_append_new(runs, o);
    }
    json_object_set_new(doc, "runs", runs);
    if (energy && duration)
        json_object_set_new(doc, "repeat",
                            json_pack("{s:I, s:o, s:o}", "n", (json_int_t)r->n_runs, "energy",
                                      spread_json(energy, r->n_runs, "j"), "duration",
                                      spread_json(duration, r->n_runs, "s")));
    free(energy);
    free(duration);
}

static void add_meta(void *arg, const char *key, const char *value)
{
    json_object_set_new(arg, key, json_string(value));
}

/* Counts of the model that the recording carries. */
static void add_model(json_t *doc, const struct nrg_model_counts *counts)
{
    json_t *o = json_object();
    if (counts->params != NRG_MISSING)
        json_object_set_new(o, "params", json_integer(counts->params));
    if (counts->macs != NRG_MISSING)
        json_object_set_new(o, "macs", json_integer(counts->macs));
    if (json_object_size(o))
        json_object_set(doc, "model", o);
    json_decref(o);
}

/* What the programs marked, where that was counted. */
static void add_spans(json_t *doc, const struct nrg_recording *recording)
{
    int64_t spans, dropped = 0;
    if (nrg_recording_integer(recording, "spans", &spans))
        return;
    nrg_recording_integer(recording, "spans_dropped", &dropped);
    json_object_set_new(
        doc, "spans",
        json_pack("{s:I, s:I}", "count", (json_int_t)spans, "dropped", (json_int_t)dropped));
}

json_t *nrg_report_json(const struct nrg_report *r)
{
    json_t *doc = json_pack("{s:s}", "schema", "nrg.report/1");
    json_t *meta = json_object();
    nrg_recording_each_text(r->recording, add_meta, meta);
    set_text(doc, "command", nrg_recording_text(r->recording, "command_line"));
    set_text(doc, "recording", nrg_recording_path(r->recording));
    fill_run(doc, r, &r->runs[0]);
    if (r->n_runs > 1)
        add_repeats(doc, r);
    add_model(doc, &r->model);
    add_spans(doc, r->recording);
    json_object_set_new(doc, "metadata", meta);
    return doc;
}
