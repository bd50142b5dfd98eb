/*
 * Profiles as files. What is read is checked as anything from outside: coefficients are finite and
 * not negative, ranges are in order, and a profile of another version is refused by its schema.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "predict/kinds.h"
#include "predict/profile.h"

#define MOST_GROUPS 1000
#define MOST_NAMES  100000

static const char *const set_names[] = {"static", "all"};

/* ---- writing ---- */

static void set_number(json_t *o, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(o, key, json_real(value));
}

static void set_range(json_t *o, const char *key, struct nrg_range range)
{
    if (range.high >= range.low)
        json_object_set_new(o, key, json_pack("[f, f]", range.low, range.high));
}

static json_t *group_json(const struct nrg_group *g)
{
    json_t *o = json_pack("{s:s, s:I}", "group", g->name, "rows", (json_int_t)g->rows);
    for (int u = 0; u < NRG_OPERATOR_UNITS; u++)
        set_number(o, nrg_operator_unit_names[u], g->joules[u]);
    set_range(o, "macs", g->range[NRG_PER_MAC]);
    set_range(o, "bytes", g->range[NRG_PER_BYTE]);
    set_number(o, "interval_ln", g->q);
    if (g->forms && g->forms < 1u << NRG_FORMS) {
        json_t *forms = json_array();
        for (int i = 0; i < NRG_FORMS; i++)
            if (g->forms & 1u << i)
                json_array_append_new(forms, json_string(nrg_form_names[i]));
        json_object_set_new(o, "forms", forms);
    }
    return o;
}

static json_t *by_level(const double values[NRG_NODE_LEVELS], double unit)
{
    json_t *o = json_object();
    for (int l = 0; l < NRG_NODE_LEVELS; l++)
        set_number(o, nrg_node_level_name((enum nrg_node_level)l), values[l] * unit);
    return o;
}

static const char *const module_ranges[NRG_MODULE_UNITS] = {"operators", "rest_bytes",
                                                            "copied_bytes", "score_bytes"};

static json_t *modules_json(const struct nrg_physical *m)
{
    json_t *o = json_object();
    for (int u = 0; u < NRG_MODULE_UNITS; u++) {
        set_number(o, nrg_module_unit_names[u], m->module_joules[u]);
        set_range(o, module_ranges[u], m->module_range[u]);
    }
    return o;
}

static json_t *law_json(const struct nrg_physical *m)
{
    json_t *o = json_object();
    for (int t = 0; t < NRG_LAW_TERMS; t++)
        if (m->law[t] > 0)
            set_number(o, nrg_law_term_names[t], m->law[t]);
    set_range(o, "cpu_util", m->law_range[NRG_LAW_TIME_CPU]);
    set_range(o, "gpu_hz", m->law_range[NRG_LAW_TIME_GPU_HZ]);
    return o;
}

static json_t *names_json(const char *const *names, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(names[i]));
    return list;
}

static void add_physical(json_t *o, const struct nrg_physical *m)
{
    json_t *groups = json_array(), *others = json_array();
    json_object_set_new(o, "held_out", json_string(m->held_out_models ? "models" : "rows"));
    json_object_set_new(o, "expected_error_percent", by_level(m->expected_error, 100));
    json_object_set_new(o, "interval_ln", by_level(m->q, 1));
    for (size_t g = 0; g < m->n + 2; g++)
        json_array_append_new(g < m->n ? groups : others, group_json(&m->groups[g]));
    json_object_set_new(o, "operators", groups);
    json_object_set_new(o, "others", others);
    if (m->features == NRG_SET_ALL) {
        json_object_set_new(o, "law", law_json(m));
        return;
    }
    set_number(o, "floor_j", m->floor_j);
    json_object_set_new(o, "least_j", by_level(m->least_j, 1));
    json_object_set_new(o, "modules", modules_json(m));
}

json_t *nrg_profile_json(const struct nrg_profile *p)
{
    const struct nrg_physical *m = &p->physical;
    char fingerprint[20];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, p->fingerprint);
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "schema", "nrg.profile/1",
                          "device", p->device, "model", p->is_layer ? "layer" : "physical",
                          "features", set_names[m->features], "counts", p->convention, "provenance",
                          p->provenance, "confidence", p->confidence);
    if (!o)
        return NULL;
    json_object_set_new(o, "trained_on",
                        json_pack("{s:o, s:o, s:f, s:I, s:s}", "sources",
                                  names_json(p->sources, p->n_sources), "models",
                                  names_json(p->models, p->n_models), "rows", p->rows, "distinct",
                                  (json_int_t)m->rows, "fingerprint", fingerprint));
    if (p->is_layer) {
        json_object_set_new(o, "layer", nrg_layer_json(&p->layer));
        return o;
    }
    add_physical(o, m);
    return o;
}
/* ---- reading ---- */

struct reading {
    struct nrg_profile *profile;
    const char *name;
    struct nrg_error *err;
};

static int wrong(struct reading *r, const char *what, const char *key)
{
    return nrg_fail(r->err, -EBADMSG, r->name, "%s '%s'", what, key);
}

/* A number that is not negative; absent stays as it is. */
static int get_number(struct reading *r, const json_t *o, const char *key, double *out)
{
    const json_t *value = json_object_get(o, key);
    if (!value)
        return 0;
    if (!json_is_number(value) || !(json_number_value(value) >= 0))
        return wrong(r, "is not a profile: not a positive number:", key);
    *out = json_number_value(value);
    return 0;
}

static int get_range(struct reading *r, const json_t *o, const char *key, struct nrg_range *out)
{
    const json_t *value = json_object_get(o, key);
    *out = (struct nrg_range){INFINITY, -INFINITY};
    if (!value)
        return 0;
    double low = json_number_value(json_array_get(value, 0));
    double high = json_number_value(json_array_get(value, 1));
    if (json_array_size(value) != 2 || !json_is_number(json_array_get(value, 0)) ||
        !json_is_number(json_array_get(value, 1)) || !(low >= 0) || high < low)
        return wrong(r, "is not a profile: not a range:", key);
    *out = (struct nrg_range){low, high};
    return 0;
}

static int get_text(struct reading *r, const json_t *o, const char *key, const char **out)
{
    const char *text = json_string_value(json_object_get(o, key));
    if (!text)
        return wrong(r, "is not a profile: has no text", key);
    char clean[256];
    nrg_copy_clean(clean, sizeof clean, text, strlen(text));
    *out = nrg_arena_copy(&r->profile->arena, clean, strlen(clean));
    return *out ? 0 : nrg_fail(r->err, -ENOMEM, r->name, "out of memory");
}

static int get_names(struct reading *r, const json_t *list, const char ***out, size_t *n)
{
    size_t count = json_array_size(list);
    if (count > MOST_NAMES)
        return nrg_fail(r->err, -EFBIG, r->name, "names too many models");
    *out = nrg_arena_array(&r->profile->arena, count + 1, sizeof **out);
    for (size_t i = 0; *out && i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        char clean[256];
        nrg_copy_clean(clean, sizeof clean, text ? text : "", text ? strlen(text) : 0);
        if (!((*out)[i] = nrg_arena_copy(&r->profile->arena, clean, strlen(clean))))
            *out = NULL;
    }
    *n = *out ? count : 0;
    return *out ? 0 : nrg_fail(r->err, -ENOMEM, r->name, "out of memory");
}

static int get_levels(struct reading *r, const json_t *o, const char *key, double unit,
                      double absent, double out[NRG_NODE_LEVELS])
{
    const json_t *levels = json_object_get(o, key);
    int rc = 0;
    for (int l = 0; !rc && l < NRG_NODE_LEVELS; l++) {
        out[l] = absent;
        rc = get_number(r, levels, nrg_node_level_name((enum nrg_node_level)l), &out[l]);
        out[l] *= unit;
    }
    return rc;
}

static int get_group(struct reading *r, const json_t *o, struct nrg_group *g)
{
    double rows = 0;
    *g = (struct nrg_group){.q = NAN};
    int rc = get_text(r, o, "group", &g->name);
    for (int u = 0; !rc && u < NRG_OPERATOR_UNITS; u++)
        rc = get_number(r, o, nrg_operator_unit_names[u], &g->joules[u]);
    g->range[NRG_PER_CALL] = (struct nrg_range){INFINITY, -INFINITY};
    if (!rc)
        rc = get_range(r, o, "macs", &g->range[NRG_PER_MAC]);
    if (!rc)
        rc = get_range(r, o, "bytes", &g->range[NRG_PER_BYTE]);
    if (!rc)
        rc = get_number(r, o, "interval_ln", &g->q);
    if (!rc)
        rc = get_number(r, o, "rows", &rows);
    g->rows = rows < 1e15 ? (size_t)rows : 0;
    const json_t *forms = json_object_get(o, "forms");
    for (size_t i = 0; i < json_array_size(forms); i++)
        for (int f = 0; f < NRG_FORMS; f++)
            if (json_is_string(json_array_get(forms, i)) &&
                !strcmp(json_string_value(json_array_get(forms, i)), nrg_form_names[f]))
                g->forms |= 1u << f;
    return rc;
}

static int get_groups(struct reading *r, const json_t *o)
{
    struct nrg_physical *m = &r->profile->physical;
    const json_t *groups = json_object_get(o, "operators"), *others = json_object_get(o, "others");
    size_t n = json_array_size(groups);
    int rc = 0;
    if (n > MOST_GROUPS || json_array_size(others) != 2)
        return nrg_fail(r->err, -EBADMSG, r->name, "is not a profile: 'operators' or 'others'");
    if (nrg_reserve(&m->groups, &m->cap, n + 2, sizeof *m->groups))
        return nrg_fail(r->err, -ENOMEM, r->name, "out of memory");
    for (size_t g = 0; !rc && g < n + 2; g++)
        rc = get_group(r, g < n ? json_array_get(groups, g) : json_array_get(others, g - n),
                       &m->groups[g]);
    m->n = n;
    return rc;
}

static int get_modules(struct reading *r, const json_t *o)
{
    struct nrg_physical *m = &r->profile->physical;
    const json_t *modules = json_object_get(o, "modules"), *law = json_object_get(o, "law");
    int rc = get_number(r, o, "floor_j", &m->floor_j);
    for (int u = 0; !rc && u < NRG_MODULE_UNITS; u++) {
        rc = get_number(r, modules, nrg_module_unit_names[u], &m->module_joules[u]);
        if (!rc)
            rc = get_range(r, modules, module_ranges[u], &m->module_range[u]);
    }
    for (int t = 0; !rc && t < NRG_LAW_TERMS; t++) {
        m->law_range[t] = (struct nrg_range){INFINITY, -INFINITY};
        rc = get_number(r, law, nrg_law_term_names[t], &m->law[t]);
    }
    if (!rc)
        rc = get_range(r, law, "cpu_util", &m->law_range[NRG_LAW_TIME_CPU]);
    if (!rc)
        rc = get_range(r, law, "gpu_hz", &m->law_range[NRG_LAW_TIME_GPU_HZ]);
    return rc;
}

static int get_origin(struct reading *r, const json_t *o)
{
    struct nrg_profile *p = r->profile;
    const json_t *from = json_object_get(o, "trained_on");
    const char *text = json_string_value(json_object_get(from, "fingerprint"));
    double distinct = 0;
    int rc = get_names(r, json_object_get(from, "sources"), &p->sources, &p->n_sources);
    if (!rc)
        rc = get_names(r, json_object_get(from, "models"), &p->models, &p->n_models);
    if (!rc)
        rc = get_number(r, from, "rows", &p->rows);
    if (!rc)
        rc = get_number(r, from, "distinct", &distinct);
    p->physical.rows = distinct < 1e15 ? (size_t)distinct : 0;
    if (text && sscanf(text, "%16" SCNx64, &p->fingerprint) != 1)
        rc = wrong(r, "is not a profile: not a fingerprint:", text);
    return rc;
}

static int get_all(struct reading *r, const json_t *o)
{
    struct nrg_profile *p = r->profile;
    const char *features = NULL, *model = NULL;
    int rc = get_text(r, o, "device", &p->device);
    if (!rc)
        rc = get_text(r, o, "model", &model);
    p->is_layer = model && !strcmp(model, "layer");
    if (!rc && !p->is_layer && strcmp(model, "physical"))
        rc = wrong(r, "is of a model that this nrg does not know:", model);
    if (!rc)
        rc = get_text(r, o, "features", &features);
    if (!rc && strcmp(features, "static") && strcmp(features, "all"))
        rc = wrong(r, "has unknown features", features);
    if (!rc)
        rc = get_text(r, o, "counts", &p->convention);
    if (!rc)
        rc = get_text(r, o, "provenance", &p->provenance);
    if (!rc)
        rc = get_number(r, o, "confidence", &p->confidence);
    if (!rc)
        rc = get_origin(r, o);
    if (rc || p->is_layer)
        return rc ? rc : nrg_layer_parse(&p->layer, json_object_get(o, "layer"), r->name, r->err);
    if (!rc)
        rc = get_levels(r, o, "expected_error_percent", 0.01, NAN, p->physical.expected_error);
    if (!rc)
        rc = get_levels(r, o, "interval_ln", 1, NAN, p->physical.q);
    if (!rc)
        rc = get_levels(r, o, "least_j", 1, INFINITY, p->physical.least_j);
    if (!rc)
        rc = get_groups(r, o);
    if (!rc)
        rc = get_modules(r, o);
    const char *held = json_string_value(json_object_get(o, "held_out"));
    p->physical.held_out_models = held && !strcmp(held, "models");
    p->physical.features = features && !strcmp(features, "all") ? NRG_SET_ALL : NRG_SET_STATIC;
    return rc;
}

static int from_json(struct nrg_profile *profile, json_t *doc, const char *name,
                     struct nrg_error *err)
{
    struct reading r = {profile, name, err};
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    int rc = !schema || strcmp(schema, "nrg.profile/1")
                 ? nrg_fail(err, -EBADMSG, name, "is no profile: its schema is not nrg.profile/1")
                 : get_all(&r, doc);
    json_decref(doc);
    if (rc)
        nrg_profile_release(profile);
    return rc;
}

int nrg_profile_parse(struct nrg_profile *profile, const char *text, size_t size, const char *name,
                      struct nrg_error *err)
{
    json_error_t why;
    *profile = (struct nrg_profile){0};
    json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    return doc ? from_json(profile, doc, name, err)
               : nrg_fail_at(err, -EBADMSG, name, why.line, "%s", why.text);
}

int nrg_profile_read(struct nrg_profile *profile, const char *path, struct nrg_error *err)
{
    json_error_t why;
    *profile = (struct nrg_profile){0};
    json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (doc)
        return from_json(profile, doc, path, err);
    if (why.line < 0)
        return nrg_fail(err, -EIO, path, "%s", why.text);
    return nrg_fail_at(err, -EBADMSG, path, why.line, "%s", why.text);
}
