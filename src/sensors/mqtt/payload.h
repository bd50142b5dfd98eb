/*
 * Messages to values, as a plan (mqtt/plan.h) wants them. Pure: no network, and no clock but the
 * times it is given; this is what the fuzz target drives. No errno: a refused message has a reason.
 * One thread per plan.
 */
#ifndef NRG_SENSORS_MQTT_PAYLOAD_H
#define NRG_SENSORS_MQTT_PAYLOAD_H

#include "sensors/mqtt/plan.h"

#define NRG_MQTT_PAYLOAD 16384 /* bytes of a message; longer ones are refused */

/* What the wildcards of a subscription stand for in a topic, joined by '-': "power1". False: the
 * topic does not fit, or its name is too long. */
bool nrg_mqtt_name(const char *subscription, const char *topic, char *name, size_t size);

struct nrg_mqtt_message {
    const char *topic;
    const void *payload;
    size_t len;
    bool retained;
    int64_t arrived_ns;
};

struct nrg_mqtt_reading {
    int64_t t_ns; /* its arrival; of a retained message its own time */
    double values[NRG_METER_FIELDS];
    char why[112]; /* why it is not a reading */
    bool harmless;
};

/* True when there is at least one value; else `why` is set. */
bool nrg_mqtt_decode(struct nrg_mqtt_plan *plan, const struct nrg_mqtt_message *message,
                     struct nrg_mqtt_reading *reading);

#endif
