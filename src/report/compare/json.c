/* A comparison as JSON, schema nrg.compare/1. See report.h and docs/json.md. */
#include <math.h>

#include "base/json/set.h"
#include "report/compare/report.h"

static const char *const verdicts[] = {
    [NRG_EFFECT_NONE] = "none", [NRG_EFFECT_LESS] = "less", [NRG_EFFECT_MORE] = "more"};

static json_t *effect_json(const struct nrg_effect *e)
{
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"ratio", e->ratio}, {"low", e->low}, {"high", e->high},
                   {"p_value", e->p_value}, {"p_rank", e->p_rank});
    if (e->verdict != NRG_EFFECT_UNKNOWN)
        nrg_json_text(o, "verdict", verdicts[e->verdict]);
    return o;
}

static json_t *side_json(const struct nrg_compare_report *r, int s)
{
    const struct nrg_compare_side *side = &r->comparison->sides[s];
    const struct nrg_effect *e = &r->comparison->quantities[NRG_COMPARE_ENERGY];
    json_t *o = json_object(), *files = json_array();
    nrg_json_text(o, "name", nrg_compare_side_name(r->comparison->sides, s));
    nrg_json_count(o, "runs", (int64_t)side->n_runs);
    NRG_JSON_REALS(o, {"energy_j", nrg_compare_mean(side, nrg_compare_energy_j)},
                   {"duration_s", nrg_compare_mean(side, nrg_compare_duration_s)},
                   {"scatter", s ? e->scatter_b : e->scatter_a});
    for (size_t i = 0; i < side->n_runs; i++)
        json_array_append_new(files, nrg_json_string(side->runs[i].file));
    if (side->n_runs) {
        nrg_json_text(o, "provenance", nrg_provenance_name(side->runs[0].provenance));
        nrg_json_text(o, "command", side->runs[0].command);
    }
    json_object_set_new(o, "files", files);
    return o;
}

static json_t *rows_json(const struct nrg_comparison *c)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct nrg_compare_row *row = &c->rows[i];
        json_t *o = json_object();
        nrg_json_text(o, "name", row->name);
        nrg_json_text(o, "kind", row->kind);
        NRG_JSON_REALS(o, {"a_j", row->effect.a}, {"b_j", row->effect.b},
                       {"ratio", row->effect.ratio}, {"low", row->effect.low},
                       {"high", row->effect.high}, {"p_value", row->effect.p_value},
                       {"p_adjusted", row->p_adjusted});
        json_array_append_new(rows, o);
    }
    return rows;
}

static json_t *only_json(const struct nrg_comparison *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_only; i++) {
        json_t *o = json_object();
        nrg_json_text(o, "name", c->only[i].name);
        nrg_json_text(o, "kind", c->only[i].kind);
        nrg_json_text(o, "side", c->only[i].side ? "b" : "a");
        NRG_JSON_REALS(o, {"energy_j", c->only[i].energy_j});
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *notes_json(const struct nrg_compare_notes *notes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < notes->n; i++)
        json_array_append_new(list, nrg_json_string(notes->items[i]));
    return list;
}

static json_t *conditions_json(const struct nrg_compare_report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_conditions; i++) {
        json_t *o = json_object();
        nrg_json_text(o, "condition", r->conditions[i]);
        nrg_json_text(o, "result", nrg_gate_words[nrg_compare_condition(r, i)]);
        json_array_append_new(list, o);
    }
    return list;
}

/* What was found, which a refused comparison has nothing of. */
static void add_findings(json_t *o, const struct nrg_comparison *c)
{
    const struct nrg_effect *e = &c->quantities[NRG_COMPARE_ENERGY];
    for (int q = 0; q < NRG_COMPARE_QUANTITIES; q++)
        if (!isnan(c->quantities[q].ratio))
            json_object_set_new(o, nrg_compare_names[q], effect_json(&c->quantities[q]));
    if (isfinite(c->needed.runs))
        nrg_json_count(o, "runs_needed", (int64_t)fmin(c->needed.runs, 1e15));
    NRG_JSON_REALS(o, {"runs_needed_low", c->needed.low}, {"runs_needed_high", c->needed.high},
                   {"runs_needed_for", c->detect}, {"runs_needed_power", NRG_RUNS_NEEDED_POWER},
                   {"confidence", c->confidence}, {"drift", e->drift}, {"freedom", e->freedom});
}

json_t *nrg_compare_json(const struct nrg_compare_report *r)
{
    const struct nrg_comparison *c = r->comparison;
    bool refused = nrg_compare_is_refused(r);
    struct nrg_str answer = {0};
    json_t *o = json_pack("{s:s}", "schema", "nrg.compare/1");
    if (!nrg_compare_answer(r, &answer))
        nrg_json_text(o, "answer", answer.text);
    nrg_str_release(&answer);
    json_object_set_new(o, "a", side_json(r, 0));
    json_object_set_new(o, "b", side_json(r, 1));
    if (!refused)
        add_findings(o, c);
    json_object_set_new(o, "rows", refused ? json_array() : rows_json(c));
    json_object_set_new(o, "only", refused ? json_array() : only_json(c));
    if (r->n_conditions)
        json_object_set_new(o, "fail_if", conditions_json(r));
    json_object_set_new(o, "warnings", notes_json(&c->warnings));
    json_object_set_new(o, "refusals", notes_json(&c->refusals));
    return o;
}
