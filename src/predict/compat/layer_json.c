/*
 * See layer_json.h. Per layer type and target, the file holds only the columns that the Lasso kept,
 * as [index, mean, deviation, coefficient] in the polynomial's order. That keeps it small.
 */
#include "predict/compat/layer_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/set.h"
#include "base/mem.h"

static const char *const target_names[NRG_LAYER_TARGETS] = {"time_s", "power_w"};

static json_t *fit_json(const struct nrg_layer_fit *fit)
{
    json_t *terms = json_array();
    for (size_t j = 0; j < fit->n; j++)
        if (fit->coefficients[j] != 0)
            json_array_append_new(terms,
                                  json_pack("[I, f, f, f]", (json_int_t)j, fit->scaler.mean[j],
                                            fit->scaler.deviation[j], fit->coefficients[j]));
    return json_pack("{s:I, s:f, s:f, s:o}", "columns", (json_int_t)fit->n, "intercept",
                     fit->intercept, "alpha", fit->alpha, "terms", terms);
}

json_t *nrg_layer_json(const struct nrg_layer_model *m)
{
    json_t *types = json_object();
    for (int t = 0; t < NRG_LAYER_TYPES; t++) {
        const enum nrg_feature *inputs;
        size_t n = nrg_layer_inputs(t, &inputs);
        if (!m->rows[t])
            continue;
        json_t *o = json_pack("{s:I}", "rows", (json_int_t)m->rows[t]), *ranges = json_object();
        for (int k = 0; k < NRG_LAYER_TARGETS; k++)
            json_object_set_new(o, target_names[k], fit_json(&m->fits[t][k]));
        for (size_t i = 0; i < n; i++)
            json_object_set_new(
                ranges, nrg_feature_names[inputs[i]],
                json_pack("[f, f]", m->range[t][inputs[i]].low, m->range[t][inputs[i]].high));
        json_object_set_new(o, "ranges", ranges);
        NRG_JSON_REALS(o, {"interval_ln", m->q[t]},
                       {"expected_error_percent", 100 * m->expected_error[t]});
        json_object_set_new(types, nrg_layer_type_names[t], o);
    }
    return json_pack("{s:s, s:o}", "layer_features", m->original ? "original" : "corrected",
                     "types", types);
}

/* ---- reading ---- */

static int refuse_layers(const char *name, struct nrg_error *err)
{
    return nrg_fail(err, -EBADMSG, name, "is not a profile of layers");
}

static bool number_at(const json_t *list, size_t i, double *out)
{
    const json_t *value = json_array_get(list, i);
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out);
}

static int parse_fit(struct nrg_layer_fit *fit, int type, const json_t *o, const char *name,
                     struct nrg_error *err)
{
    size_t columns = nrg_layer_columns(type);
    const json_t *terms = json_object_get(o, "terms"), *term;
    double numbers[4];
    size_t i;
    if (json_integer_value(json_object_get(o, "columns")) != (json_int_t)columns ||
        !json_is_number(json_object_get(o, "intercept")) || !json_is_array(terms))
        return refuse_layers(name, err);
    fit->coefficients = nrg_calloc(columns, sizeof(double));
    fit->scaler =
        (struct nrg_scaler){.mean = nrg_calloc(2 * columns, sizeof(double)), .n = columns};
    if (!fit->coefficients || !fit->scaler.mean)
        return nrg_fail(err, -ENOMEM, name, "out of memory");
    fit->scaler.deviation = fit->scaler.mean + columns;
    for (size_t j = 0; j < columns; j++)
        fit->scaler.deviation[j] = 1;
    fit->n = columns;
    fit->intercept = json_number_value(json_object_get(o, "intercept"));
    fit->alpha = json_number_value(json_object_get(o, "alpha"));
    json_array_foreach(terms, i, term)
    {
        bool fine = true;
        for (size_t k = 0; k < 4; k++)
            fine = fine && number_at(term, k, &numbers[k]);
        if (!fine || !(numbers[0] >= 0 && numbers[0] < (double)columns) || !(numbers[2] > 0))
            return refuse_layers(name, err);
        size_t j = (size_t)numbers[0];
        fit->scaler.mean[j] = numbers[1];
        fit->scaler.deviation[j] = numbers[2];
        fit->coefficients[j] = numbers[3];
    }
    return 0;
}

static int parse_type(struct nrg_layer_model *m, int type, const json_t *o, const char *name,
                      struct nrg_error *err)
{
    const enum nrg_feature *inputs;
    size_t n = nrg_layer_inputs(type, &inputs);
    const json_t *ranges = json_object_get(o, "ranges");
    json_int_t rows = json_integer_value(json_object_get(o, "rows"));
    const json_t *q = json_object_get(o, "interval_ln");
    const json_t *error = json_object_get(o, "expected_error_percent");
    int rc = rows > 0 ? 0 : refuse_layers(name, err);
    for (int k = 0; !rc && k < NRG_LAYER_TARGETS; k++)
        rc = parse_fit(&m->fits[type][k], type, json_object_get(o, target_names[k]), name, err);
    for (size_t i = 0; !rc && i < n; i++) {
        const json_t *range = json_object_get(ranges, nrg_feature_names[inputs[i]]);
        struct nrg_range *out = &m->range[type][inputs[i]];
        if (!number_at(range, 0, &out->low) || !number_at(range, 1, &out->high) ||
            out->high < out->low)
            rc = refuse_layers(name, err);
    }
    m->rows[type] = rc ? 0 : (size_t)rows;
    m->q[type] = json_is_number(q) && json_number_value(q) >= 0 ? json_number_value(q) : NAN;
    m->expected_error[type] = json_is_number(error) ? json_number_value(error) / 100 : NAN;
    return rc;
}

int nrg_layer_parse(struct nrg_layer_model *m, const json_t *doc, const char *name,
                    struct nrg_error *err)
{
    const json_t *types = json_object_get(doc, "types");
    const char *features = json_string_value(json_object_get(doc, "layer_features"));
    int rc = json_is_object(types) && features ? 0 : refuse_layers(name, err);
    *m = (struct nrg_layer_model){.original = features && !strcmp(features, "original")};
    for (int t = 0; !rc && t < NRG_LAYER_TYPES; t++) {
        const json_t *type = json_object_get(types, nrg_layer_type_names[t]);
        m->q[t] = m->expected_error[t] = NAN;
        if (type)
            rc = parse_type(m, t, type, name, err);
    }
    if (rc)
        nrg_layer_release(m);
    return rc;
}
