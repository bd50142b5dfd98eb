/* See mqtt/plan.h. Without keys, the topic's name or a table of known devices tells the units. */
#include "sensors/mqtt/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/mqtt/payload.h"

#define FRESH_NS (10 * NRG_NS_PER_S)

/* Numbers whose unit only the maker knows, by the beginning and the end of the topic. */
static const struct {
    const char *begin, *end, *unit;
} known_topics[] = {
    {"shellies/", "/energy", "Wmin"}, /* first generation: relays count watt-minutes */
    {"shellies/", "/total", "Wh"},    /* its meters watt-hours */
    {"shellies/", "/power", "W"},
    {"zigbee2mqtt/", "/energy", "kWh"}, /* attributes as topics of their own */
};

static const char *last_level(const char *topic)
{
    const char *slash = strrchr(topic, '/');
    return slash ? slash + 1 : topic;
}

/* The level that names the value: ESPHome and Home Assistant publish sensor/NAME/state. */
static void telling_level(const char *topic, char *name, size_t size)
{
    const char *last = last_level(topic), *from = last;
    size_t len = strlen(last);
    if (!strcmp(last, "state") && last - topic > 1) {
        for (from = last - 1; from > topic && from[-1] != '/';)
            from--;
        len = (size_t)(last - 1 - from);
    }
    snprintf(name, size, "%.*s", (int)len, from);
}

/* "plug_power" means power, but "apparent_power" and "reactive_power" are no watts. */
static const struct nrg_meter_unit *unit_of_last_word(const char *name)
{
    const char *last = strrchr(name, '_');
    if (!last || strcasestr(name, "apparent") || strcasestr(name, "reactive"))
        return NULL;
    return nrg_meter_unit_of_name(last + 1, strlen(last + 1));
}

static const struct nrg_meter_unit *unit_of_topic(const char *topic)
{
    char name[sizeof((struct nrg_mqtt_plan *)NULL)->topic]; /* whole: its end tells the unit */
    for (size_t i = 0; i < sizeof known_topics / sizeof *known_topics; i++)
        if (!strncmp(topic, known_topics[i].begin, strlen(known_topics[i].begin)) &&
            nrg_ends_with(topic, known_topics[i].end))
            return nrg_meter_unit_find(known_topics[i].unit, strlen(known_topics[i].unit));
    telling_level(topic, name, sizeof name);
    const struct nrg_meter_unit *unit = nrg_meter_unit_of_name(name, strlen(name));
    return unit || !nrg_ends_with(topic, "/state") ? unit : unit_of_last_word(name);
}

static void set_field(struct nrg_mqtt_plan *plan, size_t i, const char *name,
                      const struct nrg_meter_unit *unit)
{
    plan->fields[i] = nrg_meter_unit_field(unit, name);
    plan->factors[i] = unit->factor;
}

static void add_field(struct nrg_mqtt_plan *plan, const char *name, const char *unit)
{
    set_field(plan, plan->n_fields++, name, nrg_meter_unit_find(unit, strlen(unit)));
}

/*
 * The energy has the power's name, because it is the same thing, counted. Tasmota counts Wh, others
 * show thousandths of them.
 */
static void plan_any_json(struct nrg_mqtt_plan *plan)
{
    plan->any_json = true;
    add_field(plan, "power", "W");
    add_field(plan, "power", "kWh");
    const char *last = last_level(plan->topic);
    if (strcmp(last, "SENSOR") != 0 && strncmp(last, "STATUS", 6) != 0)
        plan->fields[1].resolution = 3.6;
    add_field(plan, "voltage", "V");
    add_field(plan, "current", "A");
}

static int set_pointer(struct nrg_mqtt_plan *plan, size_t i, const char *text, size_t len,
                       const char *key, struct nrg_error *err)
{
    if (!len || *text != '/' || len >= sizeof plan->pointers[i])
        return nrg_fail(err, -EINVAL, key, "a JSON pointer begins with '/', such as /ENERGY/Power");
    memcpy(plan->pointers[i], text, len);
    plan->pointers[i][len] = '\0';
    return 0;
}

/* "name:unit[:kind][=/pointer]" */
static int add_given_field(struct nrg_mqtt_plan *plan, const char *all, const char *text,
                           size_t len, struct nrg_error *err)
{
    const char *pointer = memchr(text, '=', len);
    size_t i = plan->n_fields, spec = pointer ? (size_t)(pointer - text) : len;
    if (i == NRG_METER_FIELDS)
        return nrg_fail(err, -EINVAL, "fields=", "more than %d fields", NRG_METER_FIELDS);
    int rc =
        nrg_meter_spec_field(text, spec, all, "fields=", &plan->fields[i], &plan->factors[i], err);
    for (size_t k = 0; !rc && k < i; k++)
        if (!strcmp(plan->fields[k].name, plan->fields[i].name) &&
            plan->fields[k].quantity == plan->fields[i].quantity)
            rc = nrg_fail(err, -EINVAL, "fields=", "'%s' is given twice", plan->fields[i].name);
    if (!rc && pointer)
        rc = set_pointer(plan, i, pointer + 1, len - spec - 1, "fields=", err);
    if (!rc && !pointer && !plan->wildcards) {
        plan->pointers[i][0] = '/';
        nrg_copy(plan->pointers[i] + 1, sizeof plan->pointers[i] - 1, plan->fields[i].name);
    }
    plan->n_fields += !rc;
    return rc;
}

static int plan_fields(struct nrg_mqtt_plan *plan, const char *text, struct nrg_error *err)
{
    int rc = 0;
    size_t len;
    for (const char *rest = text, *at; !rc && (at = nrg_next_item(&rest, &len));)
        rc = add_given_field(plan, text, at, len, err);
    return rc;
}

/* value=/pointer: its last part is the name and, without unit=, must tell the unit. */
static int plan_value(struct nrg_mqtt_plan *plan, const char *pointer, const char *unit_text,
                      struct nrg_error *err)
{
    int rc = pointer ? set_pointer(plan, 0, pointer, strlen(pointer), "value=", err) : 0;
    if (rc)
        return rc;
    char name[NRG_MQTT_POINTER];
    telling_level(pointer ? pointer : plan->topic, name, sizeof name);
    const struct nrg_meter_unit *unit = unit_text
                                            ? nrg_meter_unit_find(unit_text, strlen(unit_text))
                                        : pointer ? nrg_meter_unit_of_name(name, strlen(name))
                                                  : unit_of_topic(plan->topic);
    if (unit_text && !unit)
        return nrg_fail(err, -EINVAL, "unit=", "'%.20s' is not a known unit: " NRG_METER_UNITS,
                        unit_text);
    if (!unit)
        return nrg_fail(
            err, -EINVAL,
            "value=", "the name '%.40s' tells no unit: unit= says it (" NRG_METER_UNITS ")", name);
    set_field(plan, plan->n_fields++, name, unit);
    return 0;
}

static int check_topic(struct nrg_mqtt_plan *plan, const char *topic, struct nrg_error *err)
{
    size_t len = strlen(topic);
    if (!len || len >= sizeof plan->topic)
        return nrg_fail(err, -EINVAL, "mqtt", "a topic has 1 to %zu bytes, after the host's '/'",
                        sizeof plan->topic - 1);
    nrg_copy(plan->topic, sizeof plan->topic, topic);
    for (const char *p = topic; (p = strpbrk(p, "+#")); p++) {
        bool alone = (p == topic || p[-1] == '/') && (!p[1] || p[1] == '/');
        if (!alone || (*p == '#' && p[1]))
            return nrg_fail(err, -EINVAL, topic,
                            "+ stands for one whole level of a topic, # for the rest of it");
        plan->wildcards = true;
    }
    return 0;
}

/* time= and fresh= */
static int read_times(struct nrg_mqtt_plan *plan, struct nrg_uri *uri, struct nrg_error *err)
{
    static const struct nrg_uri_key keys[] = {
        NRG_URI_COPY("time", struct nrg_mqtt_plan, time_pointer),
        NRG_URI_DURATION("fresh", struct nrg_mqtt_plan, fresh_ns),
        {0},
    };
    int rc = nrg_uri_read(uri, keys, plan, err);
    if (!rc && plan->time_pointer[0] && plan->time_pointer[0] != '/')
        rc = nrg_fail(err, -EINVAL, "time=", "wants a JSON pointer to the time, such as /Time");
    return rc;
}

int nrg_mqtt_plan_init(struct nrg_mqtt_plan *plan, struct nrg_uri *uri, const char *topic,
                       struct nrg_error *err)
{
    const char *fields = nrg_uri_text(uri, "fields"), *value = nrg_uri_text(uri, "value");
    const char *unit = nrg_uri_text(uri, "unit");
    memset(plan, 0, sizeof *plan);
    plan->fresh_ns = FRESH_NS;
    nrg_meter_times_init(&plan->times);
    int rc = check_topic(plan, topic, err);
    if (!rc)
        rc = read_times(plan, uri, err);
    if (!rc && fields && (value || unit))
        rc = nrg_fail(err, -EINVAL, uri->text, "fields= and value= exclude each other");
    if (rc)
        return rc;
    if (fields)
        return plan_fields(plan, fields, err);
    if (value || unit)
        return plan_value(plan, value, unit, err);
    if (plan->wildcards)
        return 0;
    if (unit_of_topic(plan->topic))
        return plan_value(plan, NULL, NULL, err);
    plan_any_json(plan);
    return 0;
}

bool nrg_mqtt_plan_learn(struct nrg_mqtt_plan *plan, const char *topic)
{
    char name[32];
    const struct nrg_meter_unit *unit = unit_of_topic(topic);
    if (!unit || plan->n_fields == NRG_METER_FIELDS ||
        !nrg_mqtt_name(plan->topic, topic, name, sizeof name))
        return false;
    for (size_t i = 0; i < plan->n_fields; i++)
        if (!strcmp(plan->fields[i].name, name))
            return false;
    set_field(plan, plan->n_fields++, name, unit);
    return true;
}

const char *nrg_mqtt_plan_text(const struct nrg_mqtt_plan *plan, char *buf, size_t size)
{
    size_t len = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < plan->n_fields; i++) {
        const struct nrg_meter_unit *unit =
            nrg_meter_unit_of(plan->fields[i].quantity, plan->factors[i]);
        int n = snprintf(buf + len, size - len, "%s%s:%s", i ? "," : "", plan->fields[i].name,
                         unit ? unit->name : "W");
        if (n < 0 || (size_t)n >= size - len) {
            buf[len] = '\0'; /* the rest has no room */
            break;
        }
        len += (size_t)n;
    }
    return buf;
}
