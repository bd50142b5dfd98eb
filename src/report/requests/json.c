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
    nrg_json_text(o, "outcome", q->open ? "running" : q->outcome);
    nrg_json_count(o, "input_tokens", q->input);
    nrg_json_count(o, "cached_tokens", q->cached);
    if (!isnan(q->output_tokens))
        nrg_json_count(o, "output_tokens", (int64_t)q->output_tokens);
    if (q->output_estimated)
        json_object_set_new(o, "output_estimated", json_true());
    nrg_json_count(o, "reasoning_tokens", q->reasoning);
    NRG_JSON_REALS(o, {"begin_s", (double)(q->begin_ns - share->summary.begin_ns) * 1e-9},
                   {"first_text_s", nrg_request_first_s(q)},
                   {"duration_s", (double)(q->end_ns - q->begin_ns) * 1e-9},
                   {"energy_j", e->energy_j}, {"low_j", e->low_j}, {"high_j", e->high_j});
    return o;
}

static json_t *models_json(const struct nrg_llm_share *share)
{
    size_t n;
    struct nrg_model_use *uses = nrg_model_uses(share, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        nrg_json_text(o, "model", uses[i].model);
        nrg_json_count(o, "requests", (int64_t)uses[i].requests);
        nrg_json_count(o, "input_tokens", (int64_t)uses[i].input);
        nrg_json_count(o, "cached_tokens", (int64_t)uses[i].cached);
        nrg_json_count(o, "output_tokens", (int64_t)uses[i].output);
        NRG_JSON_REALS(
            o, {"energy_j", uses[i].energy_j}, {"low_j", uses[i].low_j}, {"high_j", uses[i].high_j},
            {"j_per_request", uses[i].energy_j / (double)uses[i].requests},
            {"j_per_output_token", uses[i].output > 0 ? uses[i].energy_j / uses[i].output : NAN});
        json_array_append_new(list, o);
    }
    free(uses);
    return list;
}

static void add_percentiles(json_t *doc, const struct nrg_llm_share *share)
{
    static const struct {
        const char *key;
        enum nrg_request_figure figure;
    } figures[] = {{"energy_j", NRG_REQUEST_ENERGY},
                   {"first_text_s", NRG_REQUEST_FIRST_S},
                   {"duration_s", NRG_REQUEST_ALL_S}};
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        json_t *o = json_object();
        NRG_JSON_REALS(o, {"p50", nrg_request_percentile(share, figures[i].figure, 0.5)},
                       {"p90", nrg_request_percentile(share, figures[i].figure, 0.9)},
                       {"p99", nrg_request_percentile(share, figures[i].figure, 0.99)});
        json_object_set_new(all, figures[i].key, o);
    }
    json_object_set_new(doc, "percentiles", all);
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
                   {"idle_j", share->idle_j}, {"unattributed_j", share->unattributed_j},
                   {"idle_w", share->idle_w});
    for (size_t i = 0; i < share->requests.n; i++)
        json_array_append_new(list, request_json(share, i));
    json_object_set_new(doc, "requests", list);
    json_object_set_new(doc, "models", models_json(share));
    add_percentiles(doc, share);
    add_law(doc, share);
    return doc;
}
