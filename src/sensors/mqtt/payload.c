/*
 * See mqtt/payload.h. JSON is read by jansson, up to a limit of bytes.
 *
 * The keys of known devices are in one table, tried in order; the unit goes with the key, because
 * makers differ (Tasmota counts kWh, Shelly Wh). Phases (arrays of Tasmota, power_l1, power_l2 of
 * zigbee2mqtt) are added up; of voltages and temperatures the first is used. Zigbee calls the first
 * phase power, and only the others power_phase_b and power_phase_c: power is not the sum there.
 *
 * Names of keys are hints. One that says a unit (watts, load_mw) goes before one that does not, and
 * a number whose unit nothing tells is refused.
 */
#include "sensors/mqtt/payload.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#define MOST     1e15
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* At the end of a pointer: keys with these ends. Letters are phases where there is a second one. */
#define PHASES  "_l*"
#define LETTERS "_abc"
#define NAMED   "_phase_abc"
#define OTHERS  "_phase_bc" /* beside the plain key, which is the first phase */

static const struct phases {
    const char *mark;
    const char *ends[10];
} phases[] = {
    {PHASES, {"_l1", "_l2", "_l3", "_l4", "_l5", "_l6", "_l7", "_l8", "_l9"}},
    {NAMED, {"_phase_a", "_phase_b", "_phase_c"}},
    {OTHERS, {"", "_phase_b", "_phase_c"}},
    {LETTERS, {"_a", "_b", "_c"}},
};

static const struct known_key {
    unsigned field; /* as plan_any_json in mqtt/plan.c numbers them */
    const char *pointer;
    double factor;
    bool zigbee; /* of zigbee2mqtt's messages only */
} known_keys[] = {
    {0, "/ENERGY/Power", 1, false},
    {0, "/StatusSNS/ENERGY/Power", 1, false},
    {0, "/apower", 1, false},
    {0, "/params/switch:0/apower", 1, false},
    {0, "/switch:0/apower", 1, false},
    {0, "/params/pm1:0/apower", 1, false},
    {0, "/pm1:0/apower", 1, false},
    {0, "/total_act_power", 1, false},
    {0, "/params/em:0/total_act_power", 1, false},
    {0, "/em:0/total_act_power", 1, false},
    {0, "/act_power", 1, false},
    {0, "/params/em1:0/act_power", 1, false},
    {0, "/em1:0/act_power", 1, false},
    {1, "/ENERGY/Total", 3.6e6, false},
    {1, "/StatusSNS/ENERGY/Total", 3.6e6, false},
    {1, "/aenergy/total", 3600, false},
    {1, "/params/switch:0/aenergy/total", 3600, false},
    {1, "/switch:0/aenergy/total", 3600, false},
    {1, "/params/pm1:0/aenergy/total", 3600, false},
    {1, "/pm1:0/aenergy/total", 3600, false},
    {1, "/total_act_energy", 3600, false}, /* em1data */
    {1, "/params/em1data:0/total_act_energy", 3600, false},
    {1, "/em1data:0/total_act_energy", 3600, false},
    {1, "/total_act", 3600, false}, /* emdata */
    {1, "/params/emdata:0/total_act", 3600, false},
    {1, "/emdata:0/total_act", 3600, false},
    {1, "/energy", 3.6e6, true},
    {1, "/energy" PHASES, 3.6e6, true},
    {1, "/energy" NAMED, 3.6e6, true},
    {1, "/energy" LETTERS, 3.6e6, true},
    {0, "/power" OTHERS, 1, false},
    {3, "/current" OTHERS, 1, false},
    {3, "/current" LETTERS, 1, false},
    {2, "/ENERGY/Voltage", 1, false},
    {2, "/StatusSNS/ENERGY/Voltage", 1, false},
    {2, "/params/switch:0/voltage", 1, false},
    {2, "/switch:0/voltage", 1, false},
    {2, "/params/pm1:0/voltage", 1, false},
    {2, "/params/em1:0/voltage", 1, false},
    {3, "/ENERGY/Current", 1, false},
    {3, "/StatusSNS/ENERGY/Current", 1, false},
    {3, "/total_current", 1, false},
    {3, "/params/em:0/total_current", 1, false},
    {3, "/params/switch:0/current", 1, false},
    {3, "/switch:0/current", 1, false},
    {3, "/params/pm1:0/current", 1, false},
    {3, "/params/em1:0/current", 1, false},
};

/* Keys that many devices use: after names that say a unit. */
static const struct known_key usual_keys[] = {
    {0, "/power", 1, false},           {0, "/Power", 1, false},
    {0, "/power" PHASES, 1, false},    {0, "/power" NAMED, 1, false},
    {0, "/power" LETTERS, 1, false},   {2, "/voltage", 1, false},
    {2, "/voltage" PHASES, 1, false},  {2, "/voltage" NAMED, 1, false},
    {2, "/voltage" LETTERS, 1, false}, {3, "/current", 1, false},
    {3, "/current" PHASES, 1, false},  {3, "/current" NAMED, 1, false},
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
        bool all = field->quantity == NRG_POWER || field->quantity == NRG_CURRENT ||
                   field->quantity == NRG_ENERGY;
        size_t n = all ? json_array_size(value) : 1;
        for (size_t i = 0; i < n; i++) {
            const json_t *item = json_array_get(value, i);
            sum += json_is_number(item) ? json_number_value(item) * factor : NAN;
        }
        v = sum;
    }
    return fabs(v) < MOST ? v : NAN;
}

static const json_t *find_phase(const json_t *doc, const char *pointer, const struct phases *set,
                                size_t phase)
{
    char key[NRG_MQTT_POINTER];
    snprintf(key, sizeof key, "%.*s%s", (int)(strlen(pointer) - strlen(set->mark)), pointer,
             set->ends[phase]);
    return find_pointer(doc, key);
}

static bool has_first(const json_t *doc, const char *pointer)
{
    char key[NRG_MQTT_POINTER];
    snprintf(key, sizeof key, "%.*s_phase_a", (int)(strlen(pointer) - strlen(OTHERS)), pointer);
    return find_pointer(doc, key) != NULL;
}

/* "power_l1", "power_l2" as an array; NULL: there are none. To be released. */
static json_t *phases_of(const json_t *doc, const char *pointer, const struct phases *set)
{
    bool letters = strcmp(set->mark, PHASES) != 0;
    json_t *all = NULL;
    if (letters && !find_phase(doc, pointer, set, 1))
        return NULL;
    if (!strcmp(set->mark, OTHERS) && has_first(doc, pointer))
        return NULL; /* the plain key is the sum */
    for (size_t phase = 0; set->ends[phase]; phase++) {
        const json_t *value = find_phase(doc, pointer, set, phase);
        if (!value && letters && !phase)
            return NULL; /* a sum without its first phase is none */
        if (value && !all)
            all = json_array();
        if (value)
            json_array_append(all, (json_t *)value);
    }
    return all;
}

static double read_key(const struct nrg_mqtt_plan *plan, const json_t *doc,
                       const struct known_key *key)
{
    const struct nrg_meter_field *field = &plan->fields[key->field];
    const struct phases *set = NULL;
    for (size_t i = 0; !set && i < COUNT(phases); i++)
        if (nrg_ends_with(key->pointer, phases[i].mark))
            set = &phases[i];
    if (!set)
        return json_value(find_pointer(doc, key->pointer), field, key->factor);
    json_t *values = phases_of(doc, key->pointer, set);
    double value = json_value(values, field, key->factor);
    json_decref(values);
    return value;
}

static void read_keys(const struct nrg_mqtt_plan *plan, const json_t *doc,
                      const struct known_key *keys, size_t n, double *values)
{
    bool zigbee = !strncmp(plan->topic, "zigbee2mqtt/", 12) || json_object_get(doc, "linkquality");
    for (size_t i = 0; i < n; i++)
        if (isnan(values[keys[i].field]) && (zigbee || !keys[i].zigbee))
            values[keys[i].field] = read_key(plan, doc, &keys[i]);
}

/*
 * For an unknown device: the first top-level key whose name tells the unit ("power1", "watts"). Of
 * energies only a total is meant, and only one that says its unit.
 */
static void read_by_names(const struct nrg_mqtt_plan *plan, const json_t *doc, bool guess,
                          double *values)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)doc, key, value)
    {
        const struct nrg_meter_unit *unit = guess ? nrg_meter_unit_of_name(key, strlen(key))
                                                  : nrg_meter_unit_said(key, strlen(key));
        bool total = !guess && (!strncasecmp(key, "total", 5) || !strncasecmp(key, "energy", 6));
        for (size_t i = 0; unit && i < plan->n_fields; i++)
            if (isnan(values[i]) && plan->fields[i].quantity == unit->quantity &&
                (unit->quantity != NRG_ENERGY || total))
                values[i] = json_value(value, &plan->fields[i], unit->factor);
    }
}

static bool read_known_keys(const struct nrg_mqtt_plan *plan, const json_t *doc, double *values)
{
    bool any = false;
    read_keys(plan, doc, known_keys, COUNT(known_keys), values);
    read_by_names(plan, doc, false, values);
    read_keys(plan, doc, usual_keys, COUNT(usual_keys), values);
    if (isnan(values[0]))
        read_by_names(plan, doc, true, values);
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

/* "61.5 W": nrg_meter_value has read it by that unit. */
static bool ends_in_unit(const struct nrg_mqtt_message *m)
{
    const char *text = m->payload;
    size_t len = m->len;
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return len && isalpha((unsigned char)text[len - 1]);
}

/* Home Assistant's statestream writes numbers as JSON texts: "61.5" with the quotes. */
static struct nrg_mqtt_message without_quotes(struct nrg_mqtt_message m)
{
    const char *text = m.payload;
    if (m.len > 2 && text[0] == '"' && text[m.len - 1] == '"') {
        m.payload = text + 1;
        m.len -= 2;
    }
    return m;
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
    if (plan->any_json && !isnan(v) && !ends_in_unit(m))
        return refuse_message(r, false,
                              "a number, and neither it nor the topic's name tells the unit: "
                              "unit=W (or kWh, ...) says it");
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
    const struct nrg_mqtt_message plain = without_quotes(*m);
    any = read_plain_number(plan, &plain, r, &tried);
    if (!tried)
        return read_json(plan, m, r);
    return any && m->retained ? is_fresh(plan, NULL, m, r) : any;
}
