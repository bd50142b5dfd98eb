/*
 * See profile_json.h. A file that is read is not trusted: coefficients must be finite and not
 * negative, ranges in order, and the schema says which version it is.
 */
#include "predict/profile_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/set.h"
#include "base/mem.h"
#include "predict/compat/layer_json.h"
#include "predict/kinds.h"

#define MOST_GROUPS 1000
#define MOST_NAMES  100000

static const char *const set_names[] = {"static", "all"};

/* ---- writing ---- */

static void set_range(json_t *o, const char *key, struct nrg_range range)
{
    if (range.high >= range.low)
        json_object_set_new(o, key, json_pack("[f, f]", range.low, range.high));
}

static json_t *group_json(const struct nrg_group *g)
{
    json_t *o = json_pack("{s:s, s:I}", "group", g->name, "rows", (json_int_t)g->rows);
    for (int u = 0; u < NRG_OPERATOR_UNITS; u++)
        nrg_json_real(o, nrg_operator_unit_names[u], g->joules[u]);
    set_range(o, "macs", g->range[NRG_PER_MAC]);
    set_range(o, "bytes", g->range[NRG_PER_BYTE]);
    nrg_json_real(o, "interval_ln", g->q);
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
        nrg_json_real(o, nrg_node_level_name((enum nrg_node_level)l), values[l] * unit);
    return o;
}

static json_t *module_kinds_json(const struct nrg_physical *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_module_kinds; i++) {
        json_t *groups = json_array(), *o = json_object();
        for (size_t g = 0; g < m->n; g++)
            if (m->module_kinds[i].groups & nrg_group_bit(m, &m->groups[g]))
                json_array_append_new(groups, json_string(m->groups[g].name));
        json_object_set_new(o, "groups", groups);
        nrg_json_real(o, "interval_ln", m->module_kinds[i].q);
        json_array_append_new(list, o);
    }
    return list;
}

static const char *const module_ranges[NRG_MODULE_UNITS] = {"operators", "rest_bytes",
                                                            "copied_bytes", "score_bytes"};

static json_t *modules_json(const struct nrg_physical *m)
{
    json_t *o = json_object();
    for (int u = 0; u < NRG_MODULE_UNITS; u++) {
        nrg_json_real(o, nrg_module_unit_names[u], m->module_joules[u]);
        set_range(o, module_ranges[u], m->module_range[u]);
    }
    return o;
}

static json_t *law_json(const struct nrg_physical *m)
{
    json_t *o = json_object();
    for (int t = 0; t < NRG_LAW_TERMS; t++)
        if (m->law[t] > 0)
            nrg_json_real(o, nrg_law_term_names[t], m->law[t]);
    set_range(o, "cpu_util", m->law_range[NRG_LAW_TIME_CPU]);
    set_range(o, "gpu_hz", m->law_range[NRG_LAW_TIME_GPU_HZ]);
    return o;
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
    nrg_json_real(o, "floor_j", m->floor_j);
    json_object_set_new(o, "least_j", by_level(m->least_j, 1));
    json_object_set_new(o, "modules", modules_json(m));
    json_object_set_new(o, "module_kinds", module_kinds_json(m));
    json_object_set_new(o, "stand_in_ln", by_level(m->stand_in, 1));
    json_object_set_new(o, "seam_ln", by_level(m->seam, 1));
}

json_t *nrg_profile_json(const struct nrg_profile *p)
{
    const struct nrg_physical *m = &p->physical;
    char fingerprint[20];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, p->fingerprint);
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "schema", "nrg.profile/1",
                          "device", p->device, "model",
                          p->is_layer ? "layer"
                          : p->is_llm ? "llm"
                                      : "physical",
                          "features", set_names[m->features], "counts", p->convention, "provenance",
                          p->provenance, "confidence", p->confidence);
    if (!o)
        return NULL;
    json_object_set_new(o, "trained_on",
                        json_pack("{s:o, s:o, s:f, s:I, s:s}", "sources",
                                  nrg_json_strings(p->sources, p->n_sources), "models",
                                  nrg_json_strings(p->models, p->n_models), "rows", p->rows,
                                  "distinct", (json_int_t)(p->is_llm ? p->llm.rows : m->rows),
                                  "fingerprint", fingerprint));
    if (p->is_layer)
        json_object_set_new(o, "layer", nrg_layer_json(&p->layer));
    else if (p->is_llm)
        json_object_set_new(o, "llm", nrg_llm_law_json(&p->llm));
    else
        add_physical(o, m);
    if (p->memory_bytes > 0)
        nrg_json_real(o, "memory_bytes", p->memory_bytes);
    return o;
}

/* ---- reading ---- */

/* The first error is kept in `rc`; after it, the functions below do nothing. */
struct reading {
    struct nrg_profile *profile;
    const char *name;
    struct nrg_error *err;
    int rc;
};

static void refuse_profile(struct reading *r, const char *what, const char *key)
{
    if (!r->rc)
        r->rc = nrg_fail(r->err, -EBADMSG, r->name, "%s '%s'", what, key);
}

/* A number that is not negative; absent stays as it is. */
static void get_number(struct reading *r, const json_t *o, const char *key, double *out)
{
    const json_t *value = json_object_get(o, key);
    if (value && (!json_is_number(value) || !(json_number_value(value) >= 0)))
        refuse_profile(r, "is not a profile: not a positive number:", key);
    else if (value)
        *out = json_number_value(value);
}

static void get_count(struct reading *r, const json_t *o, const char *key, size_t *out)
{
    double count = 0;
    get_number(r, o, key, &count);
    *out = count < 1e15 ? (size_t)count : 0;
}

static void get_range(struct reading *r, const json_t *o, const char *key, struct nrg_range *out)
{
    const json_t *value = json_object_get(o, key);
    *out = NRG_NO_RANGE;
    if (!value)
        return;
    double low = json_number_value(json_array_get(value, 0));
    double high = json_number_value(json_array_get(value, 1));
    if (json_array_size(value) != 2 || !json_is_number(json_array_get(value, 0)) ||
        !json_is_number(json_array_get(value, 1)) || !(low >= 0) || high < low)
        refuse_profile(r, "is not a profile: not a range:", key);
    else
        *out = (struct nrg_range){low, high};
}

/* A copy in the arena, cleaned for people; NULL after an error. */
static const char *copy_text(struct reading *r, const char *text)
{
    char clean[256];
    nrg_copy_clean(clean, sizeof clean, text, strlen(text));
    const char *copy = nrg_arena_copy(&r->profile->arena, clean, strlen(clean));
    if (!copy && !r->rc)
        r->rc = nrg_fail(r->err, -ENOMEM, r->name, "out of memory");
    return copy;
}

static void get_text(struct reading *r, const json_t *o, const char *key, const char **out)
{
    const char *text = json_string_value(json_object_get(o, key));
    if (text)
        *out = copy_text(r, text);
    else
        refuse_profile(r, "is not a profile: has no text", key);
}

static void get_names(struct reading *r, const json_t *list, const char ***out, size_t *n)
{
    size_t count = json_array_size(list);
    if (r->rc)
        return;
    if (count > MOST_NAMES) {
        r->rc = nrg_fail(r->err, -EFBIG, r->name, "names too many models");
        return;
    }
    *out = nrg_arena_array(&r->profile->arena, count + 1, sizeof **out);
    if (!*out)
        r->rc = nrg_fail(r->err, -ENOMEM, r->name, "out of memory");
    for (size_t i = 0; !r->rc && i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        (*out)[i] = copy_text(r, text ? text : "");
    }
    *n = r->rc ? 0 : count;
}

static void get_levels(struct reading *r, const json_t *o, const char *key, double unit,
                       double absent, double out[NRG_NODE_LEVELS])
{
    const json_t *levels = json_object_get(o, key);
    for (int l = 0; l < NRG_NODE_LEVELS; l++) {
        out[l] = absent;
        get_number(r, levels, nrg_node_level_name((enum nrg_node_level)l), &out[l]);
        out[l] *= unit;
    }
}

static void get_group(struct reading *r, const json_t *o, struct nrg_group *g)
{
    *g = (struct nrg_group){.q = NAN};
    get_text(r, o, "group", &g->name);
    for (int u = 0; u < NRG_OPERATOR_UNITS; u++)
        get_number(r, o, nrg_operator_unit_names[u], &g->joules[u]);
    g->range[NRG_PER_CALL] = NRG_NO_RANGE;
    get_range(r, o, "macs", &g->range[NRG_PER_MAC]);
    get_range(r, o, "bytes", &g->range[NRG_PER_BYTE]);
    get_number(r, o, "interval_ln", &g->q);
    get_count(r, o, "rows", &g->rows);
    const json_t *forms = json_object_get(o, "forms");
    for (size_t i = 0; i < json_array_size(forms); i++) {
        const json_t *form = json_array_get(forms, i);
        int at = json_is_string(form)
                     ? nrg_name_find(nrg_form_names, NRG_FORMS, json_string_value(form),
                                     json_string_length(form))
                     : -1;
        g->forms |= at >= 0 ? 1u << at : 0;
    }
}

static void get_groups(struct reading *r, const json_t *o)
{
    struct nrg_physical *m = &r->profile->physical;
    const json_t *groups = json_object_get(o, "operators"), *others = json_object_get(o, "others");
    size_t n = json_array_size(groups);
    if (r->rc)
        return;
    if (n > MOST_GROUPS || json_array_size(others) != 2)
        r->rc = nrg_fail(r->err, -EBADMSG, r->name, "is not a profile: 'operators' or 'others'");
    else if (nrg_reserve(&m->groups, &m->cap, n + 2, sizeof *m->groups))
        r->rc = nrg_fail(r->err, -ENOMEM, r->name, "out of memory");
    for (size_t g = 0; !r->rc && g < n + 2; g++)
        get_group(r, g < n ? json_array_get(groups, g) : json_array_get(others, g - n),
                  &m->groups[g]);
    m->n = n;
}

static uint64_t bits_of(const struct nrg_physical *m, const json_t *names)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        for (size_t g = 0; name && g < m->n; g++)
            bits |= strcmp(m->groups[g].name, name) ? 0 : nrg_group_bit(m, &m->groups[g]);
    }
    return bits;
}

static void get_module_kinds(struct reading *r, const json_t *o)
{
    struct nrg_physical *m = &r->profile->physical;
    const json_t *list = json_object_get(o, "module_kinds");
    if (!r->rc && json_array_size(list) > MOST_GROUPS)
        refuse_profile(r, "is not a profile: too many", "module_kinds");
    for (size_t i = 0; !r->rc && i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        struct nrg_module_kind kind = {bits_of(m, json_object_get(entry, "groups")), NAN};
        get_number(r, entry, "interval_ln", &kind.q);
        if (!r->rc && !isnan(kind.q) &&
            nrg_append(&m->module_kinds, &m->n_module_kinds, &m->cap_module_kinds, &kind,
                       sizeof kind))
            r->rc = nrg_fail(r->err, -ENOMEM, r->name, "out of memory");
    }
}

static void get_modules(struct reading *r, const json_t *o)
{
    struct nrg_physical *m = &r->profile->physical;
    const json_t *modules = json_object_get(o, "modules"), *law = json_object_get(o, "law");
    get_number(r, o, "floor_j", &m->floor_j);
    for (int u = 0; u < NRG_MODULE_UNITS; u++) {
        get_number(r, modules, nrg_module_unit_names[u], &m->module_joules[u]);
        get_range(r, modules, module_ranges[u], &m->module_range[u]);
    }
    for (int t = 0; t < NRG_LAW_TERMS; t++) {
        m->law_range[t] = NRG_NO_RANGE;
        get_number(r, law, nrg_law_term_names[t], &m->law[t]);
    }
    get_range(r, law, "cpu_util", &m->law_range[NRG_LAW_TIME_CPU]);
    get_range(r, law, "gpu_hz", &m->law_range[NRG_LAW_TIME_GPU_HZ]);
}

static void get_origin(struct reading *r, const json_t *o)
{
    struct nrg_profile *p = r->profile;
    const json_t *from = json_object_get(o, "trained_on");
    const char *text = json_string_value(json_object_get(from, "fingerprint"));
    get_names(r, json_object_get(from, "sources"), &p->sources, &p->n_sources);
    get_names(r, json_object_get(from, "models"), &p->models, &p->n_models);
    get_number(r, from, "rows", &p->rows);
    get_count(r, from, "distinct", &p->physical.rows);
    if (text && sscanf(text, "%16" SCNx64, &p->fingerprint) != 1)
        refuse_profile(r, "is not a profile: not a fingerprint:", text);
}

static void get_physical(struct reading *r, const json_t *o)
{
    struct nrg_physical *m = &r->profile->physical;
    const char *held = json_string_value(json_object_get(o, "held_out"));
    get_levels(r, o, "expected_error_percent", 0.01, NAN, m->expected_error);
    get_levels(r, o, "interval_ln", 1, NAN, m->q);
    get_levels(r, o, "least_j", 1, INFINITY, m->least_j);
    get_levels(r, o, "stand_in_ln", 1, NAN, m->stand_in);
    get_levels(r, o, "seam_ln", 1, NAN, m->seam);
    get_groups(r, o);
    get_module_kinds(r, o);
    get_modules(r, o);
    m->held_out_models = held && !strcmp(held, "models");
}

static int get_profile(struct reading *r, const json_t *o)
{
    struct nrg_profile *p = r->profile;
    const char *features = "", *model = "";
    get_text(r, o, "device", &p->device);
    get_text(r, o, "model", &model);
    p->is_layer = !r->rc && !strcmp(model, "layer");
    p->is_llm = !r->rc && !strcmp(model, "llm");
    if (!r->rc && !p->is_layer && !p->is_llm && strcmp(model, "physical"))
        refuse_profile(r, "is of a model that this nrg does not know:", model);
    get_text(r, o, "features", &features);
    int set = r->rc ? -1 : nrg_name_find(set_names, 2, features, strlen(features));
    if (set < 0)
        refuse_profile(r, "has unknown features", features);
    get_text(r, o, "counts", &p->convention);
    get_text(r, o, "provenance", &p->provenance);
    get_number(r, o, "confidence", &p->confidence);
    get_origin(r, o);
    if (!r->rc && p->is_layer)
        return nrg_layer_parse(&p->layer, json_object_get(o, "layer"), r->name, r->err);
    get_number(r, o, "memory_bytes", &p->memory_bytes);
    if (!r->rc && p->is_llm)
        return nrg_llm_law_parse(&p->llm, json_object_get(o, "llm"), r->name, r->err);
    p->physical.features = set > 0 ? NRG_SET_ALL : NRG_SET_STATIC;
    if (!r->rc)
        get_physical(r, o);
    return r->rc;
}

/* Takes the document over; NULL with why: it could not be loaded. */
static int from_json(struct nrg_profile *profile, json_t *doc, const json_error_t *why,
                     const char *name, struct nrg_error *err)
{
    struct reading r = {profile, name, err, 0};
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    *profile = (struct nrg_profile){0};
    if (!doc)
        return nrg_fail_at(err, why->line < 0 ? -EIO : -EBADMSG, name, why->line, "%s", why->text);
    int rc =
        !schema || strcmp(schema, "nrg.profile/1")
            ? nrg_fail(err, -EBADMSG, name, "is not a profile: its schema is not nrg.profile/1")
            : get_profile(&r, doc);
    json_decref(doc);
    if (rc)
        nrg_profile_release(profile);
    return rc;
}

int nrg_profile_parse(struct nrg_profile *profile, const char *text, size_t size, const char *name,
                      struct nrg_error *err)
{
    json_error_t why;
    json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    return from_json(profile, doc, &why, name, err);
}

int nrg_profile_read(struct nrg_profile *profile, const char *path, struct nrg_error *err)
{
    json_error_t why;
    json_t *doc = nrg_json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    return from_json(profile, doc, &why, path, err);
}
