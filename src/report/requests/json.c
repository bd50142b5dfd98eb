/* See report.h and docs/json.md. */
#include <math.h>
#include <stdlib.h>

#include "base/json/set.h"
#include "report/requests/report.h"
#include "sensors/channel.h"

static json_t *request_json(const struct nrg_llm_share *share, size_t i)
{
    const struct nrg_relayed_request *q = &share->requests.items[i];
    const struct nrg_llm_energy *e = &share->energies[i];
    json_t *o = json_object();
    nrg_json_count(o, "id", q->id);
    nrg_json_text(o, "model", q->model);
    nrg_json_text(o, "api", q->api);
    if (*q->path)
        nrg_json_text(o, "path", q->path);
    nrg_json_text(o, "outcome", q->open ? "running" : q->outcome);
    if (q->status)
        nrg_json_count(o, "status", q->status);
    json_object_set_new(o, "understood", json_boolean(q->understood));
    json_object_set_new(o, "streamed", json_boolean(nrg_llm_is_streamed(q)));
    nrg_json_count(o, "input_tokens", q->input);
    nrg_json_count(o, "cached_tokens", q->cached);
    if (!isnan(q->output_tokens))
        nrg_json_count(o, "output_tokens", (int64_t)q->output_tokens);
    if (q->output_estimated)
        json_object_set_new(o, "output_estimated", json_true());
    nrg_json_count(o, "reasoning_tokens", q->reasoning);
    NRG_JSON_REALS(o, {"begin_s", (double)(q->begin_ns - share->summary.begin_ns) * 1e-9},
                   {"first_text_s", nrg_request_first_s(q)},
                   {"s_per_output_token", nrg_request_token_s(share, q)},
                   {"duration_s", (double)(q->end_ns - q->begin_ns) * 1e-9},
                   {"energy_j", e->energy_j}, {"low_j", e->low_j}, {"high_j", e->high_j});
    return o;
}

static json_t *percentiles_json(const struct nrg_llm_share *share, const char *model)
{
    static const char *const keys[NRG_REQUEST_FIGURES] = {
        [NRG_REQUEST_ENERGY] = "energy_j",
        [NRG_REQUEST_FIRST_S] = "first_text_s",
        [NRG_REQUEST_TOKEN_S] = "s_per_output_token",
        [NRG_REQUEST_GAP_S] = "between_texts_s",
        [NRG_REQUEST_ALL_S] = "duration_s",
    };
    json_t *all = json_object();
    for (int i = 0; i < NRG_REQUEST_FIGURES; i++) {
        struct nrg_request_percentiles p =
            nrg_request_percentiles(share, model, (enum nrg_request_figure)i);
        json_t *o = json_object();
        NRG_JSON_REALS(o, {"p50", p.part[0]}, {"p90", p.part[1]}, {"p99", p.part[2]});
        json_object_set_new(all, keys[i], o);
    }
    return all;
}

/* A sum of joules over how many there are: "j_per_NAME", and its bounds, those of the sum. */
static void add_ratio(json_t *o, const char *name, double n, double value, double low, double high)
{
    char key[40];
    snprintf(key, sizeof key, "j_per_%s", name);
    if (!(n > 0))
        return;
    nrg_json_real(o, key, value / n);
    snprintf(key, sizeof key, "j_per_%s_low", name);
    nrg_json_real(o, key, low / n);
    snprintf(key, sizeof key, "j_per_%s_high", name);
    nrg_json_real(o, key, high / n);
}

static json_t *use_json(const struct nrg_request_use *use, const char *key)
{
    json_t *o = json_object();
    nrg_json_text(o, key, use->name);
    nrg_json_count(o, "requests", (int64_t)use->requests);
    nrg_json_count(o, "failed_requests", (int64_t)use->failed);
    NRG_JSON_REALS(o, {"seconds", use->seconds}, {"energy_j", use->energy_j}, {"low_j", use->low_j},
                   {"high_j", use->high_j}, {"failed_j", use->failed_j});
    add_ratio(o, "request", (double)use->requests, use->energy_j, use->low_j, use->high_j);
    return o;
}

static json_t *models_json(const struct nrg_llm_share *share)
{
    size_t n;
    struct nrg_request_use *uses = nrg_request_uses(share, false, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct nrg_request_use *use = &uses[i];
        json_t *o = use_json(use, "model");
        nrg_json_count(o, "input_tokens", (int64_t)use->input);
        nrg_json_count(o, "cached_tokens", (int64_t)use->cached);
        nrg_json_count(o, "output_tokens", (int64_t)use->output);
        nrg_json_count(o, "failed_output_tokens", (int64_t)use->failed_output);
        add_ratio(o, "output_token", use->output, use->made_j, use->made_low_j, use->made_high_j);
        json_object_set_new(o, "percentiles", percentiles_json(share, use->name));
        json_array_append_new(list, o);
    }
    free(uses);
    return list;
}

static json_t *not_understood_json(const struct nrg_llm_share *share)
{
    size_t n;
    struct nrg_request_use *uses = nrg_request_uses(share, true, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, use_json(&uses[i], "kind"));
    free(uses);
    return list;
}

static void add_price(json_t *law, const char *key, const struct nrg_serving_price *price)
{
    if (!price->used || price->joined || !isfinite(price->per.value))
        return;
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"value", price->per.value}, {"low", price->per.low},
                   {"high", price->per.high}, {"amount", price->amount});
    json_object_set_new(o, "resolved", json_boolean(price->resolved));
    json_object_set_new(law, key, o);
}

static void add_law(json_t *doc, const struct nrg_llm_share *share)
{
    const struct nrg_serving_fit *fit = &share->fit;
    json_t *law = json_object();
    if (fit->why) {
        nrg_json_text(law, "why_not", fit->why);
    } else {
        add_price(law, "j_per_input_token", &fit->price[NRG_SERVING_PROMPT]);
        add_price(law, "j_per_output_token", &fit->price[NRG_SERVING_OUTPUT]);
        if (fit->price[NRG_SERVING_OUTPUT].used) {
            const struct nrg_serving_value *v = &fit->output_with_time;
            json_t *price = json_object();
            NRG_JSON_REALS(price, {"value", v->value}, {"low", v->low}, {"high", v->high});
            json_object_set_new(law, "j_per_output_token_with_time", price);
        }
        add_price(law, "w_per_sequence", &fit->price[NRG_SERVING_SEQUENCE]);
        add_price(law, "w_busy", &fit->price[NRG_SERVING_BUSY]);
        add_price(law, "w_not_understood", &fit->price[NRG_SERVING_OTHER]);
        add_price(law, "idle_w", &fit->price[NRG_SERVING_IDLE]);
        NRG_JSON_REALS(law, {"scatter_w", fit->scatter_w}, {"slot_s", share->slot_s});
    }
    json_object_set_new(doc, "law", law);
}

json_t *nrg_requests_json(const struct nrg_llm_share *share)
{
    json_t *doc = json_object(), *list = json_array();
    nrg_json_text(doc, "schema", "nrg.llm/1");
    nrg_json_text(doc, "provenance", nrg_provenance_name(share->summary.total_provenance));
    nrg_json_text(doc, "method", share->fit.why ? "equal shares" : "regression");
    nrg_json_text(doc, "idle_method", share->idle_method);
    NRG_JSON_REALS(doc, {"duration_s", share->summary.duration_s}, {"total_j", share->total_j},
                   {"total_low_j", share->summary.total_low_j},
                   {"total_high_j", share->summary.total_high_j}, {"requests_j", share->requests_j},
                   {"not_understood_j", share->unknown_j}, {"idle_j", share->idle_j},
                   {"unattributed_j", share->unattributed_j}, {"idle_w", share->idle_w});
    for (size_t i = 0; i < share->requests.n; i++)
        json_array_append_new(list, request_json(share, i));
    json_object_set_new(doc, "requests", list);
    json_object_set_new(doc, "models", models_json(share));
    json_object_set_new(doc, "not_understood", not_understood_json(share));
    nrg_json_count(doc, "left_out_requests", (int64_t)share->requests.left_out);
    json_object_set_new(doc, "percentiles", percentiles_json(share, NULL));
    add_law(doc, share);
    return doc;
}
