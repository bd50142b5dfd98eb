/* See report/attribution/tokens.h. */
#include "report/attribution/tokens.h"

#include <math.h>

#include "base/json/set.h"

/* `what` is what the joules are divided by. */
static void add_ratio(json_t *llm, const char *key, const struct nrg_unit_use *u, const char *what,
                      bool scaled)
{
    if (!u || isnan(u->energy_j))
        return;
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"value", u->energy_j / u->amount}, {"low", u->low_j / u->amount},
                   {"high", u->high_j / u->amount}, {"amount", u->amount});
    if (scaled)
        NRG_JSON_REALS(o, {"low_with_scale", u->scaled_low_j / u->amount},
                       {"high_with_scale", u->scaled_high_j / u->amount});
    nrg_json_text(o, "per", what);
    json_object_set_new(llm, key, o);
}

static void add_tokens_per_joule(json_t *llm, const struct nrg_unit_use *u, bool scaled)
{
    if (!u || !(u->energy_j > 0))
        return;
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"value", u->amount / u->energy_j},
                   {"low", u->high_j > 0 ? u->amount / u->high_j : NAN},
                   {"high", u->low_j > 0 ? u->amount / u->low_j : NAN}, {"amount", u->amount});
    if (scaled)
        NRG_JSON_REALS(
            o, {"low_with_scale", u->scaled_high_j > 0 ? u->amount / u->scaled_high_j : NAN},
            {"high_with_scale", u->scaled_low_j > 0 ? u->amount / u->scaled_low_j : NAN});
    nrg_json_text(o, "per", "generated tokens, over all joules of generate()");
    json_object_set_new(llm, "tokens_per_joule", o);
}

/*
 * Rows, idle and others add up to what was measured, so idle energy is as uncertain as the rows,
 * for the whole run: its power is the same while no span is open.
 */
static void add_idle_share(json_t *llm, const struct nrg_attribution *a)
{
    double below_j = 0, above_j = 0, open_s = 0;
    if (!(a->total_j > 0) || !(a->idle_j > 0))
        return;
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct nrg_attribution_row *r = &a->rows[i];
        if (r->parent != SIZE_MAX)
            continue;
        below_j += fmax(r->high_j - r->energy_j, 0);
        above_j += fmax(r->energy_j - r->low_j, 0);
        open_s += r->time_s;
    }
    double longer = open_s > 0 ? fmax(a->duration_s / open_s, 1) : 1;
    json_t *o = json_object();
    NRG_JSON_REALS(o, {"value", a->idle_j / a->total_j},
                   {"low", fmax(a->idle_j - longer * below_j, 0) / a->total_j},
                   {"high", fmin((a->idle_j + longer * above_j) / a->total_j, 1)});
    nrg_json_text(o, "per", "all joules of the machine");
    json_object_set_new(llm, "idle_share", o);
}

json_t *nrg_tokens_json(const struct nrg_attribution *a)
{
    const struct nrg_unit_use *requests =
        nrg_attribution_counted(a, NRG_UNIT_REQUESTS, NRG_GENERATE, NRG_KIND_SPAN);
    const struct nrg_unit_use *made =
        nrg_attribution_counted(a, NRG_UNIT_GENERATED, NRG_GENERATE, NRG_KIND_SPAN);
    bool scaled = !isnan(a->scale.low);
    if (!requests || !made)
        return NULL;
    json_t *llm = json_object();
    add_ratio(llm, "j_per_input_token",
              nrg_attribution_counted(a, NRG_UNIT_INPUT, NRG_PREFILL, NRG_KIND_PHASE),
              "tokens of prompts, without padding; joules of the prefill", scaled);
    add_ratio(llm, "j_per_output_token",
              nrg_attribution_counted(a, NRG_UNIT_OUTPUT, NRG_DECODE, NRG_KIND_PHASE),
              "generated tokens after the first of each sequence; joules of the decode", scaled);
    add_ratio(llm, "j_per_request", requests, "sequences; all joules of generate()", scaled);
    add_tokens_per_joule(llm, made, scaled);
    add_idle_share(llm, a);
    return llm;
}
