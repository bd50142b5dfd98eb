/*
 * The law of language models in a profile. A file that is read is not trusted: prices must be
 * finite and not negative, ranges in order.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "predict/llm/law.h"

static json_t *prices_json(const double *prices, unsigned seen)
{
    json_t *o = json_object();
    for (int t = 0; t < NRG_LLM_TERMS; t++)
        if (seen >> t & 1)
            nrg_json_real(o, nrg_llm_term_names[t], prices[t]);
    return o;
}

static json_t *width_json(const struct nrg_llm_width *w)
{
    json_t *o = json_object(), *groups = json_object();
    for (int a = 0; a < NRG_LLM_FACTORS; a++) {
        json_t *levels = json_object();
        for (int l = 0; l < NRG_LLM_LEVELS && nrg_llm_level_names[a][l]; l++)
            if (w->models[a][l] > 0)
                json_object_set_new(
                    levels, nrg_llm_level_names[a][l],
                    json_pack("{s:f, s:f}", "times", w->times[a][l], "models", w->models[a][l]));
        json_object_set_new(groups, nrg_llm_factor_names[a], levels);
    }
    NRG_JSON_REALS(o, {"any", w->any}, {"spread", w->spread}, {"quantile", w->quantile});
    if (w->least > 0)
        nrg_json_real(o, "least", w->least);
    json_object_set_new(o, "groups", groups);
    return o;
}

json_t *nrg_llm_law_json(const struct nrg_llm_law *law)
{
    json_t *o = json_pack("{s:I, s:I, s:I}", "rows", (json_int_t)law->rows, "timed_rows",
                          (json_int_t)law->timed_rows, "models", (json_int_t)law->models);
    json_t *widths = width_json(&law->width), *limits = json_object();
    nrg_json_real(widths, "time", law->time_q);
    for (int l = 0; l < NRG_LLM_LIMITS; l++)
        if (law->limits[l].high >= law->limits[l].low)
            json_object_set_new(limits, nrg_llm_limit_names[l],
                                json_pack("[f, f]", law->limits[l].low, law->limits[l].high));
    nrg_json_real(o, "static_w", law->static_w);
    json_object_set_new(o, "joules", prices_json(law->joules, law->seen));
    if (law->timed_rows)
        json_object_set_new(o, "seconds", prices_json(law->seconds, law->seen));
    NRG_JSON_REALS(o, {"expected_error_percent", 100 * law->expected_error},
                   {"time_error_percent", 100 * law->time_error});
    if (law->carried_ln > 0)
        nrg_json_real(widths, "carried", law->carried_ln);
    if (law->recalibrated_rows) {
        json_t *r = json_pack("{s:I}", "rows", (json_int_t)law->recalibrated_rows);
        NRG_JSON_REALS(r, {"energy_factor", law->energy_factor}, {"time_factor", law->time_factor});
        json_object_set_new(o, "recalibrated", r);
    }
    json_object_set_new(o, "interval_ln", widths);
    json_object_set_new(o, "limits", limits);
    return o;
}

/* ---- reading ---- */

struct reading {
    const char *name;
    struct nrg_error *err;
    int rc;
};

static double get_number(struct reading *r, const json_t *o, const char *key, double otherwise)
{
    const json_t *value = json_object_get(o, key);
    double number = json_number_value(value);
    if (!value)
        return otherwise;
    if (!json_is_number(value) || !(number >= 0 && number < 1e300)) {
        if (!r->rc)
            r->rc = nrg_fail(r->err, -EBADMSG, r->name,
                             "is not a profile: llm: not a positive number: '%s'", key);
        return otherwise;
    }
    return number;
}

static void get_range(struct reading *r, const json_t *o, const char *key, struct nrg_range *out)
{
    const json_t *value = json_object_get(o, key);
    double low = json_number_value(json_array_get(value, 0));
    double high = json_number_value(json_array_get(value, 1));
    *out = NRG_NO_RANGE;
    if (!value)
        return;
    if (json_array_size(value) == 2 && low >= 0 && high >= low && high < 1e300)
        *out = (struct nrg_range){low, high};
    else if (!r->rc)
        r->rc =
            nrg_fail(r->err, -EBADMSG, r->name, "is not a profile: llm: not a range: '%s'", key);
}

/* Profiles of nrg 0.2 and before have a half width for each of four kinds: the widest holds. */
static struct nrg_llm_width old_width(struct reading *r, const json_t *o)
{
    static const char *const kinds[] = {"any", "dense", "experts", "quantised",
                                        "quantised_experts"};
    double half = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        half = fmax(half, get_number(r, o, kinds[k], 0));
    return nrg_llm_width_even(half > 0 ? half : 1);
}

static struct nrg_llm_width get_width(struct reading *r, const json_t *o)
{
    const json_t *groups = json_object_get(o, "groups");
    if (!json_is_object(groups))
        return old_width(r, o);
    struct nrg_llm_width w = {.spread = get_number(r, o, "spread", 1),
                              .quantile = get_number(r, o, "quantile", 1),
                              .any = get_number(r, o, "any", 1),
                              .least = get_number(r, o, "least", 0)};
    for (int a = 0; a < NRG_LLM_FACTORS; a++) {
        const json_t *levels = json_object_get(groups, nrg_llm_factor_names[a]);
        for (int l = 0; l < NRG_LLM_LEVELS; l++) {
            const char *name = nrg_llm_level_names[a][l];
            const json_t *level = name ? json_object_get(levels, name) : NULL;
            w.times[a][l] = get_number(r, level, "times", 1);
            w.models[a][l] = get_number(r, level, "models", 0);
        }
    }
    return w;
}

int nrg_llm_law_parse(struct nrg_llm_law *law, const json_t *o, const char *name,
                      struct nrg_error *err)
{
    struct reading r = {name, err, 0};
    const json_t *joules = json_object_get(o, "joules"), *seconds = json_object_get(o, "seconds");
    const json_t *widths = json_object_get(o, "interval_ln");
    *law = (struct nrg_llm_law){0};
    if (!json_is_object(joules) || !json_is_object(widths))
        return nrg_fail(err, -EBADMSG, name, "is not a profile: llm: no joules or interval_ln");
    law->rows = (size_t)fmin(get_number(&r, o, "rows", 0), 1e15);
    law->timed_rows =
        json_is_object(seconds) ? (size_t)fmin(get_number(&r, o, "timed_rows", 0), 1e15) : 0;
    law->models = (size_t)fmin(get_number(&r, o, "models", 0), 1e15);
    law->static_w = get_number(&r, o, "static_w", 0);
    for (int t = 0; t < NRG_LLM_TERMS; t++) {
        law->joules[t] = get_number(&r, joules, nrg_llm_term_names[t], 0);
        law->seconds[t] = get_number(&r, seconds, nrg_llm_term_names[t], 0);
        law->seen |= json_object_get(joules, nrg_llm_term_names[t]) ? 1u << t : 0;
    }
    const json_t *again = json_object_get(o, "recalibrated");
    law->width = get_width(&r, widths);
    law->carried_ln = get_number(&r, widths, "carried", 0);
    law->recalibrated_rows = (size_t)fmin(get_number(&r, again, "rows", 0), 1e15);
    law->energy_factor = get_number(&r, again, "energy_factor", 1);
    law->time_factor = get_number(&r, again, "time_factor", 1);
    law->time_q = get_number(&r, widths, "time", NAN);
    law->expected_error = get_number(&r, o, "expected_error_percent", NAN) / 100;
    law->time_error = get_number(&r, o, "time_error_percent", NAN) / 100;
    for (int l = 0; l < NRG_LLM_LIMITS; l++)
        get_range(&r, json_object_get(o, "limits"), nrg_llm_limit_names[l], &law->limits[l]);
    return r.rc;
}
