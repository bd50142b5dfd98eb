/*
 * The URI of an MQTT meter, taken apart: the broker to connect to, what is wanted of it, and the
 * keys of all meters. Reads the file of the password and nothing else. Plain data that the owner
 * wipes; errors are a negative errno with a reason; any thread.
 */
#ifndef NRG_SENSORS_MQTT_SETTINGS_H
#define NRG_SENSORS_MQTT_SETTINGS_H

#include "sensors/meter/channels.h"
#include "sensors/mqtt/plan.h"
#include "sensors/mqtt/session.h"

struct nrg_mqtt_settings {
    struct nrg_mqtt_options connection;
    struct nrg_mqtt_plan plan;
    struct nrg_meter_adjust adjust;
    int64_t period_ns, average_ns, listen_ns;
};

/* 0, or -errno with err. covers= is left to nrg_meter_channels. */
int nrg_mqtt_settings_read(struct nrg_uri *uri, struct nrg_mqtt_settings *settings,
                           struct nrg_error *err);

#endif
