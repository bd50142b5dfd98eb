/*
 * Language models: what a profile knows of them, and what one will cost. The denominator of each
 * number stands beside it: a request, a token of the prompt, a token of the output.
 */
#include <math.h>

#include "base/json/set.h"
#include "report/prediction/report.h"
#include "report/table.h"

static const char *const term_texts[NRG_LLM_TERMS] = {"starting layers",  "weights",
                                                      "experts' weights", "cache",
                                                      "products",         "products of prompts",
                                                      "sending tokens",   "unpacking experts",
                                                      "activations",      "scaling 8-bit experts",
                                                      "between GPUs"};

void nrg_llm_profile_text(const struct nrg_profile *p, const char *name, FILE *out)
{
    const struct nrg_llm_law *law = &p->llm;
    fprintf(out, "%s: %s, llm\ntrained on %zu %s rows of %zu models", name, p->device, law->rows,
            p->provenance, law->models);
    if (!isnan(law->expected_error))
        fprintf(out, "; %.1f %% off on models that were held out", 100 * law->expected_error);
    if (!isnan(law->time_error))
        fprintf(out, ", their times %.1f %%", 100 * law->time_error);
    fprintf(out, "\nstatic power of a GPU %s", nrg_show_power(law->static_w).text);
    fprintf(out, ", interval x/÷ %.3f\n\n  %-20s %12s %12s\n", exp(law->width.any), "PER", "J",
            "s");
    for (int t = 0; t < NRG_LLM_TERMS; t++)
        if (law->seen >> t & 1)
            fprintf(out, "  %-20s %12.3e %12.3e\n", nrg_llm_term_names[t], law->joules[t],
                    law->seconds[t]);
}

/* ---- one load ---- */

static void print_line(FILE *out, const char *what, struct nrg_llm_amount a,
                       struct nrg_shown (*show)(double value))
{
    if (!isnan(a.value))
        fprintf(out, "  %-34s %10s   %s\n", what, show(a.value).text,
                nrg_show_range(a.low, a.high, show).text);
}

/* What a prediction leaves out of a model for pictures or sound: its work, or all of it. */
static void part_text(const struct nrg_llm_tower *part, char *buf, size_t size)
{
    if (part->params > 0)
        snprintf(buf, size, "work of the %s part (%s parameters, counted in memory)", part->what,
                 nrg_show_amount(part->params).text);
    else
        snprintf(buf, size, "%s part: neither its parameters nor its work are counted", part->what);
}

static void print_parts(const struct nrg_llm_config *c, FILE *out)
{
    for (int i = 0; i < NRG_LLM_PARTS && c->parts[i].what[0]; i++) {
        char text[160];
        part_text(&c->parts[i], text, sizeof text);
        fprintf(out, "left out  %s\n", text);
    }
}

static const char *device_of(const struct nrg_llm_report *r)
{
    return r->gpu ? r->gpu->name : r->profile->device;
}

static void print_head(const struct nrg_llm_report *r, FILE *out)
{
    const struct nrg_llm_load *l = r->load;
    const struct nrg_llm_forecast *f = r->forecast;
    fprintf(out, "%s on %s: batch %g, prompt %g, output %g", nrg_table_base_name(r->name),
            device_of(r), l->batch, l->prompt, l->output);
    fprintf(out, ", %g GPU%s", l->gpus, l->gpus > 1 ? "s" : "");
    if (l->gpus > 1)
        fprintf(out, " (tensor parallel %g)", l->tp);
    fprintf(out, "\nestimated, from %s rows of %zu models, with %g %% confidence\n",
            r->profile->provenance, r->profile->n_models, 100 * r->profile->confidence);
    fprintf(out, "\nmodel     %s, %s parameters", r->config->family,
            nrg_show_integer((int64_t)(r->config->stored_params > 0 ? r->config->stored_params
                                                                    : f->shape.params))
                .text);
    if (r->config->experts > 0)
        fprintf(out, ", %s active; %g experts, %g per token, a step touches %.1f",
                nrg_show_amount(f->shape.active_params).text, r->config->experts,
                r->config->experts_per_token, f->work.touched_experts);
    fprintf(out, "\n");
    print_parts(r->config, out);
    fprintf(out, "memory    weights %s", nrg_show_bytes(f->work.weight_bytes).text);
    fprintf(out, " + cache %s", nrg_show_bytes(f->work.cache_bytes).text);
    fprintf(out, "%s %s on each GPU", r->load->gpus > 1 ? ", of both" : " =",
            nrg_show_bytes(f->work.gpu_bytes).text);
    if (f->fits >= 0)
        fprintf(out, ": %s %s", f->fits ? "fits into" : "DOES NOT FIT into",
                nrg_show_bytes(f->memory_bytes).text);
    fprintf(out, "\n");
    for (size_t i = 0; i < f->n_reasons; i++)
        fprintf(out, "! %s\n", f->reasons[i]);
}

void nrg_llm_text(const struct nrg_llm_report *r, FILE *out)
{
    const struct nrg_llm_forecast *f = r->forecast;
    const struct nrg_llm_estimate *e = &f->estimate;
    print_head(r, out);
    if (!f->priced)
        return;
    fprintf(out, "\n");
    print_line(out, "per request", f->request_j, nrg_show_energy);
    print_line(out, "per token of the prompt", f->input_token_j, nrg_show_energy);
    print_line(out, "per token of the output", f->output_token_j, nrg_show_energy);
    print_line(out, "a step takes", f->step_s, nrg_show_seconds);
    print_line(out, "a request takes", f->request_s, nrg_show_seconds);
    if (f->tokens_per_s > 0)
        fprintf(out, "  %.4g tokens/s, %s, %.4g output tokens/J\n", f->tokens_per_s,
                nrg_show_power(f->power_w).text, f->tokens_per_j.value);
    fprintf(out, "\n  %-20s %12s %10s\n", "WORK OF A STEP", "AMOUNT", "SHARE OF ENERGY");
    for (int t = 0; t < NRG_LLM_TERMS; t++) {
        if (!(f->work.terms[t] > 0))
            continue;
        fprintf(out, "  %-20s %12s ", term_texts[t], nrg_show_amount(f->work.terms[t]).text);
        nrg_table_bar(out, e->term_j[t] / e->energy_j);
        fputc('\n', out);
    }
    if (e->static_j > 0)
        fprintf(out, "  of all that, %.0f %% is power that GPUs draw whatever they do\n",
                100 * e->static_j / e->energy_j);
}

/* ---- JSON ---- */

static void set_amount(json_t *o, const char *key, struct nrg_llm_amount a)
{
    if (isnan(a.value))
        return;
    json_t *amount = json_object();
    NRG_JSON_REALS(amount, {"value", a.value}, {"low", a.low}, {"high", a.high});
    json_object_set_new(o, key, amount);
}

static json_t *load_json(const struct nrg_llm_load *l)
{
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"batch", l->batch}, {"prompt", l->prompt}, {"output", l->output},
                   {"gpus", l->gpus}, {"tp", l->tp});
    if (l->weights)
        nrg_json_text(o, "dtype", nrg_llm_dtype_name(l->weights));
    if (l->cache)
        nrg_json_text(o, "kv_dtype", nrg_llm_dtype_name(l->cache));
    return o;
}

static json_t *model_json(const struct nrg_llm_report *r)
{
    const struct nrg_llm_config *c = r->config;
    const struct nrg_llm_shape *s = &r->forecast->shape;
    json_t *o = json_object();
    nrg_json_text(o, "family", c->family);
    nrg_json_count(o, "params", (int64_t)s->params);
    nrg_json_count(o, "active_params", (int64_t)s->active_params);
    NRG_JSON_REALS(o, {"layers", c->layers}, {"hidden", c->hidden}, {"experts", c->experts},
                   {"experts_per_token", c->experts_per_token});
    if (c->stored_params > 0)
        nrg_json_count(o, "stored_params", (int64_t)c->stored_params);
    json_t *left_out = json_array();
    for (int i = 0; i < NRG_LLM_PARTS && c->parts[i].what[0]; i++) {
        char text[160];
        part_text(&c->parts[i], text, sizeof text);
        json_t *part = json_pack("{s:s, s:s}", "part", c->parts[i].what, "text", text);
        if (c->parts[i].params > 0)
            nrg_json_count(part, "params", (int64_t)c->parts[i].params);
        json_array_append_new(left_out, part);
    }
    if (json_array_size(left_out))
        json_object_set(o, "left_out", left_out);
    json_decref(left_out);
    return o;
}

static json_t *counts_json(const struct nrg_llm_work *w)
{
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"prompt_macs", w->prompt_macs}, {"token_macs", w->token_macs},
                   {"attention_macs", w->attention_macs}, {"touched_experts", w->touched_experts},
                   {"step_bytes", w->step_bytes}, {"cache_token_bytes", w->cache_token_bytes},
                   {"weight_bytes", w->weight_bytes}, {"cache_bytes", w->cache_bytes});
    if (w->state_bytes > 0)
        NRG_JSON_REALS(o, {"state_macs", w->state_macs}, {"state_bytes", w->state_bytes});
    return o;
}

static json_t *terms_json(const struct nrg_llm_forecast *f)
{
    json_t *list = json_array();
    for (int t = 0; t < NRG_LLM_TERMS; t++) {
        json_t *o = json_pack("{s:s}", "term", nrg_llm_term_names[t]);
        NRG_JSON_REALS(o, {"step_amount", f->work.terms[t]},
                       {"token_energy_j", f->estimate.term_j[t]});
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *costs_json(const struct nrg_llm_forecast *f)
{
    json_t *o = json_object();
    set_amount(o, "j_per_input_token", f->input_token_j);
    set_amount(o, "j_per_output_token", f->output_token_j);
    set_amount(o, "j_per_request", f->request_j);
    set_amount(o, "tokens_per_joule", f->tokens_per_j);
    NRG_JSON_REALS(o, {"static_share", f->estimate.static_j / f->estimate.energy_j});
    return o;
}

/* Whether it fits, and what would. */
static void set_fits(json_t *o, const struct nrg_llm_forecast *f)
{
    const struct nrg_llm_fit *fit = &f->fit;
    if (f->fits < 0)
        return;
    json_object_set_new(o, "fits", json_boolean(f->fits));
    if (f->fits)
        return;
    json_t *smallest = json_object();
    if (fit->gpus > 0)
        NRG_JSON_REALS(smallest, {"gpus", fit->gpus}, {"tp", fit->tp});
    if (fit->batch > 0)
        nrg_json_real(smallest, "batch", fit->batch);
    if (fit->prompt > 0)
        nrg_json_real(smallest, "prompt", fit->prompt);
    json_object_set_new(o, "smallest_that_fits", smallest);
}

json_t *nrg_llm_json(const struct nrg_llm_report *r)
{
    const struct nrg_llm_forecast *f = r->forecast;
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "schema", "nrg.llm-prediction/1",
                          "file", r->name, "device", device_of(r), "profile", r->profile_name,
                          "provenance", "estimated", "confidence", r->profile->confidence);
    if (r->gpu)
        nrg_json_text(o, "carried_from", r->profile->device);
    json_t *memory = json_object(), *time = json_object(), *reasons = json_array();
    json_object_set_new(o, "load", load_json(r->load));
    json_object_set_new(o, "model", model_json(r));
    json_object_set_new(o, "counts", counts_json(&f->work));
    if (f->priced) {
        json_object_set_new(o, "llm", costs_json(f));
        json_object_set_new(o, "terms", terms_json(f));
    }
    set_amount(time, "step_s", f->step_s);
    set_amount(time, "request_s", f->request_s);
    NRG_JSON_REALS(time, {"tokens_per_s", f->tokens_per_s}, {"power_w", f->power_w});
    json_object_set_new(o, "time", time);
    NRG_JSON_REALS(memory, {"gpu_bytes", f->work.gpu_bytes}, {"available_bytes", f->memory_bytes});
    set_fits(memory, f);
    json_object_set_new(o, "memory", memory);
    for (size_t i = 0; i < f->n_reasons; i++)
        json_array_append_new(reasons, json_string(f->reasons[i]));
    json_object_set_new(o, "reasons", reasons);
    return o;
}

/* ---- a table over loads ---- */

void nrg_llm_what_if_text(const struct nrg_llm_what_if *rows, size_t n, FILE *out)
{
    fprintf(out, "%8s %8s %8s  %12s   %-23s %12s %10s  %s\n", "BATCH", "PROMPT", "OUTPUT",
            "PER REQUEST", "INTERVAL", "OUTPUT TOKEN", "TOKENS/S", "MEMORY");
    for (size_t i = 0; i < n; i++) {
        const struct nrg_llm_forecast *f = &rows[i].forecast;
        const struct nrg_llm_load *l = &rows[i].load;
        bool made = f->priced && l->output > 0;
        fprintf(out, "%8g %8g %8g  %12s   ", l->batch, l->prompt, l->output,
                f->priced ? nrg_show_energy(f->request_j.value).text : "-");
        nrg_text_pad(
            out, f->priced ? nrg_show_interval(f->request_j.low, f->request_j.high).text : "-", 23);
        fprintf(out, " %12s ", made ? nrg_show_energy(f->output_token_j.value).text : "-");
        if (f->tokens_per_s > 0)
            fprintf(out, "%10.4g", f->tokens_per_s);
        else
            fprintf(out, "%10s", "-");
        fprintf(out, "  %s%s%s\n", nrg_show_bytes(f->work.gpu_bytes).text,
                f->fits == 0 ? ", does not fit" : "", f->n_reasons ? "  !" : "");
    }
}

json_t *nrg_llm_what_if_json(const struct nrg_llm_what_if *rows, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct nrg_llm_forecast *f = &rows[i].forecast;
        json_t *o = load_json(&rows[i].load);
        if (f->priced)
            json_object_set_new(o, "llm", costs_json(f));
        NRG_JSON_REALS(o, {"tokens_per_s", f->tokens_per_s}, {"gpu_bytes", f->work.gpu_bytes});
        set_fits(o, f);
        json_array_append_new(list, o);
    }
    return json_pack("{s:s, s:o}", "schema", "nrg.llm-what-if/1", "rows", list);
}
