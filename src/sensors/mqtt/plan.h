/*
 * What is wanted of an MQTT topic. Plain data, nothing to release; errors are -EINVAL with a
 * reason; one thread.
 *
 * A topic is one of these:
 *   a number        the last level tells what it is (emon/emonpi/power1, shellies/x/relay/0/power)
 *   any JSON        Tasmota, Shelly (second generation), zigbee2mqtt: known keys are tried
 *   given           value=/json/pointer, or fields=name:unit=/pointer,...
 *   several         + and # in the topic: what they stand for names the field
 *
 * The values of one message are one reading; fields of different topics are in different readings.
 */
#ifndef NRG_SENSORS_MQTT_PLAN_H
#define NRG_SENSORS_MQTT_PLAN_H

#include "sensors/meter/spec.h"
#include "sensors/meter/time.h"

#define NRG_MQTT_POINTER 96

struct nrg_mqtt_plan {
    char topic[256]; /* to subscribe to */
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    double factors[NRG_METER_FIELDS];
    char pointers[NRG_METER_FIELDS][NRG_MQTT_POINTER]; /* "": by topic, or the known keys */
    size_t n_fields;
    char time_pointer[NRG_MQTT_POINTER]; /* "": the known keys */
    bool any_json;                       /* known keys of known devices */
    bool wildcards;                      /* fields by what + and # stand for */
    struct nrg_meter_times times;
    int64_t fresh_ns; /* a retained message counts up to this age */
};

/*
 * Reads fields=, value=, unit=, time= and fresh= for a topic. A topic with wildcards and without
 * fields= gives a plan without fields: see nrg_mqtt_plan_learn. 0, or -EINVAL with err.
 */
int nrg_mqtt_plan_init(struct nrg_mqtt_plan *plan, struct nrg_uri *uri, const char *topic,
                       struct nrg_error *err);

/* Adds a field for a topic that was heard, when its name tells a unit. True: it is new. */
bool nrg_mqtt_plan_learn(struct nrg_mqtt_plan *plan, const char *topic);

/* The fields as text for fields=. Returns buf. */
const char *nrg_mqtt_plan_text(const struct nrg_mqtt_plan *plan, char *buf, size_t size);

#endif
