/*
 * See mqtt/payload.h. JSON is read by jansson, up to a limit of bytes.
 *
 * The keys of known devices are in one table, tried in order; the unit goes with the key, because
 * makers differ (Tasmota counts kWh, Shelly Wh). An array (Tasmota with several phases) is summed
 * for power; of anything else its first item is used.
 */
#include "sensors/mqtt/payload.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define MOST 1e15

static const struct known_key {
    unsigned field; /* as plan_any_json in mqtt/plan.c numbers them */
    const char *pointer;
    double factor;
} known_keys[] = {
    {0, "/ENERGY/Power", 1},
    {0, "/StatusSNS/ENERGY/Power", 1},
    {0, "/apower", 1},
    {0, "/params/switch:0/apower", 1},
    {0, "/switch:0/apower", 1},
    {0, "/params/pm1:0/apower", 1},
    {0, "/params/em:0/total_act_power", 1},
    {0, "/total_act_power", 1},
    {0, "/power", 1},
    {0, "/Power", 1},
    {1, "/ENERGY/Total", 3.6e6},
    {1, "/StatusSNS/ENERGY/Total", 3.6e6},
    {1, "/aenergy/total", 3600},
    {1, "/params/switch:0/aenergy/total", 3600},
    {1, "/switch:0/aenergy/total", 3600},
    {1, "/params/pm1:0/aenergy/total", 3600},
    {2, "/ENERGY/Voltage", 1},
    {2, "/StatusSNS/ENERGY/Voltage", 1},
    {2, "/voltage", 1},
    {2, "/params/switch:0/voltage", 1},
    {2, "/params/pm1:0/voltage", 1},
    {3, "/ENERGY/Current", 1},
    {3, "/StatusSNS/ENERGY/Current", 1},
    {3, "/current", 1},
    {3, "/params/switch:0/current", 1},
    {3, "/params/pm1:0/current", 1},
};

static const char *const known_times[] = {"/Time", "/StatusSNS/Time", "/params/ts",
                                          "/ts",   "/timestamp",      "/time"};

bool nrg_mqtt_name(const char *subscription, const char *topic, char *name, size_t size)
{
    size_t n = 0;
    const char *s = subscription, *t = topic;
    while (*s) {
        size_t s_len = strcspn(s, "/"), t_len = *s == '#' ? strlen(t) : strcspn(t, "/");
        bool wild = *s == '+' || *s == '#';
        if (!wild && (s_len != t_len || memcmp(s, t, s_len)))
            return false;
        if (wild && n + t_len + 2 > size)
            return false;
        if (wild && n)
            name[n++] = '-';
        for (size_t i = 0; wild && i < t_len; i++)
            name[n++] = t[i] == '/' ? '-' : t[i];
        s += s_len;
        t += t_len;
        if ((*s == '/') != (*t == '/'))
            return false;
        s += *s == '/';
        t += *t == '/';
    }
    name[n] = '\0';
    return !*t;
}

/* One step of a pointer: "~1" is '/', "~0" is '~' (RFC 6901). */
static const json_t *follow_token(const json_t *at, const char *token, size_t len)
{
    char key[NRG_MQTT_POINTER];
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < sizeof key; i++) {
        bool escape =
            token[i] == '~' && i + 1 < len && (token[i + 1] == '0' || token[i + 1] == '1');
        key[n++] = !escape ? token[i] : token[++i] == '0' ? '~' : '/';
    }
    key[n] = '\0';
    if (json_is_object(at))
        return json_object_get(at, key);
    size_t index = 0;
    for (size_t i = 0; i < n; i++) {
        if (key[i] < '0' || key[i] > '9' || index > 100000)
            return NULL;
        index = index * 10 + (size_t)(key[i] - '0');
    }
    return json_is_array(at) && n ? json_array_get(at, index) : NULL;
}

static const json_t *find_pointer(const json_t *doc, const char *pointer)
{
    while (doc && *pointer == '/') {
        size_t len = strcspn(++pointer, "/");
        doc = follow_token(doc, pointer, len);
        pointer += len;
    }
    return doc;
}

/* In SI units; NAN: not a number. Texts may hold one ("12.5"). */
static double json_value(const json_t *value, const struct nrg_meter_field *field, double factor)
{
    double v = NAN, sum = 0;
    if (json_is_number(value))
        v = json_number_value(value) * factor;
    else if (json_is_string(value) &&
             nrg_meter_value(json_string_value(value), json_string_length(value), false, field,
                             factor, &v))
        v = NAN;
    else if (json_is_array(value) && json_array_size(value)) {
        bool all = field->quantity == NRG_POWER;
        size_t n = all ? json_array_size(value) : 1;
        for (size_t i = 0; i < n; i++) {
            const json_t *item = json_array_get(value, i);
            sum += json_is_number(item) ? json_number_value(item) * factor : NAN;
        }
        v = sum;
    }
    return fabs(v) < MOST ? v : NAN;
}

/* For an unknown device: the first top-level key whose name tells the unit ("power1", "watts"). */
static void read_by_names(const struct nrg_mqtt_plan *plan, const json_t *doc, double *values)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)doc, key, value)
    {
        const struct nrg_meter_unit *unit = nrg_meter_unit_of_name(key, strlen(key));
        for (size_t i = 0; unit && i < plan->n_fields; i++)
            if (isnan(values[i]) && plan->fields[i].quantity == unit->quantity &&
                unit->quantity != NRG_ENERGY)
                values[i] = json_value(value, &plan->fields[i], unit->factor);
    }
}

static bool read_known_keys(const struct nrg_mqtt_plan *plan, const json_t *doc, double *values)
{
    bool any = false;
    for (size_t i = 0; i < sizeof known_keys / sizeof *known_keys; i++) {
        const struct known_key *k = &known_keys[i];
        if (isnan(values[k->field]))
            values[k->field] =
                json_value(find_pointer(doc, k->pointer), &plan->fields[k->field], k->factor);
    }
    if (isnan(values[0]))
        read_by_names(plan, doc, values);
    for (size_t i = 0; i < plan->n_fields; i++)
        any |= !isnan(values[i]);
    return any;
}

static bool read_pointers(const struct nrg_mqtt_plan *plan, const json_t *doc, double *values)
{
    bool any = false;
    for (size_t i = 0; i < plan->n_fields; i++) {
        if (plan->pointers[i][0])
            values[i] = json_value(find_pointer(doc, plan->pointers[i]), &plan->fields[i],
                                   plan->factors[i]);
        any |= !isnan(values[i]);
    }
    return any;
}

static bool refuse_message(struct nrg_mqtt_reading *r, bool harmless, const char *why)
{
    nrg_copy(r->why, sizeof r->why, why);
    r->harmless = harmless;
    return false;
}

static bool is_object(const struct nrg_mqtt_message *m)
{
    char first = *(const char *)m->payload;
    return first == '{' || first == '[';
}

/* A plain number: the value of the topic's field. `tried` is false when it must be JSON. */
static bool read_plain_number(const struct nrg_mqtt_plan *plan, const struct nrg_mqtt_message *m,
                              struct nrg_mqtt_reading *r, bool *tried)
{
    char name[32];
    size_t i = 0;
    double v;
    *tried = true;
    if (plan->wildcards && plan->n_fields && !plan->pointers[0][0]) {
        if (!nrg_mqtt_name(plan->topic, m->topic, name, sizeof name))
            return refuse_message(r, true, "another topic");
        while (i < plan->n_fields && strcmp(plan->fields[i].name, name))
            i++;
        if (i == plan->n_fields) {
            snprintf(r->why, sizeof r->why, "fields= does not name '%s'", name);
            r->harmless = true;
            return false;
        }
    } else if (!plan->n_fields) {
        return refuse_message(r, true, "no field is wanted of it: fields= names some");
    } else if ((plan->n_fields > 1 && !plan->any_json) || (plan->pointers[0][0] && is_object(m))) {
        *tried = false;
        return false;
    }
    if (nrg_meter_value(m->payload, m->len, false, &plan->fields[i], plan->factors[i], &v)) {
        *tried = false;
        return false;
    }
    r->values[i] = v;
    return isnan(v) ? refuse_message(r, true, "has no value") : true;
}

/* A retained message may be of any age: it counts only when its own time says that it is new. */
static bool is_fresh(struct nrg_mqtt_plan *plan, const json_t *doc,
                     const struct nrg_mqtt_message *m, struct nrg_mqtt_reading *r)
{
    const json_t *time = plan->time_pointer[0] ? find_pointer(doc, plan->time_pointer) : NULL;
    char text[64] = "";
    int64_t t_ns;
    for (size_t i = 0; !plan->time_pointer[0] && !time && i < 6; i++)
        time = find_pointer(doc, known_times[i]);
    if (json_is_string(time))
        nrg_copy(text, sizeof text, json_string_value(time));
    else if (json_is_number(time))
        snprintf(text, sizeof text, "%.6f", json_number_value(time));
    if (!text[0] || nrg_meter_time(&plan->times, text, strlen(text), m->arrived_ns, &t_ns))
        return refuse_message(r, true, "retained by the broker: nobody knows how old it is");
    int64_t age_ns = m->arrived_ns - t_ns;
    if (age_ns > plan->fresh_ns || age_ns < -plan->fresh_ns) {
        snprintf(r->why, sizeof r->why, "retained by the broker: %.0f s old by its own time",
                 (double)age_ns / 1e9);
        r->harmless = true;
        return false;
    }
    r->t_ns = t_ns < m->arrived_ns ? t_ns : m->arrived_ns;
    return true;
}

static bool read_json(struct nrg_mqtt_plan *plan, const struct nrg_mqtt_message *m,
                      struct nrg_mqtt_reading *r)
{
    json_error_t error;
    json_t *doc = json_loadb(m->payload, m->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!doc) {
        snprintf(r->why, sizeof r->why, "neither a number nor JSON: %.60s", error.text);
        return false;
    }
    bool any = plan->any_json ? read_known_keys(plan, doc, r->values)
                              : read_pointers(plan, doc, r->values);
    if (!any)
        refuse_message(r, true, "has no value that is wanted");
    else if (m->retained)
        any = is_fresh(plan, doc, m, r);
    json_decref(doc);
    return any;
}

bool nrg_mqtt_decode(struct nrg_mqtt_plan *plan, const struct nrg_mqtt_message *m,
                     struct nrg_mqtt_reading *r)
{
    bool tried, any;
    r->t_ns = m->arrived_ns;
    r->why[0] = '\0';
    r->harmless = false;
    for (size_t i = 0; i < NRG_METER_FIELDS; i++)
        r->values[i] = NAN;
    if (!m->len)
        return refuse_message(r, true, "empty");
    if (m->len > NRG_MQTT_PAYLOAD)
        return refuse_message(r, false, "longer than any reading of a meter");
    any = read_plain_number(plan, m, r, &tried);
    if (!tried)
        return read_json(plan, m, r);
    return any && m->retained ? is_fresh(plan, NULL, m, r) : any;
}
