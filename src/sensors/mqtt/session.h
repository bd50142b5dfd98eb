/*
 * A connection to an MQTT broker through libmosquitto, which is loaded when the first meter needs
 * it: nrg neither links with it nor needs its headers.
 *
 * The library has a thread of its own and runs the callbacks there: a message, a connection that is
 * up (again), one that was lost. It connects again by itself. Stop joins the thread and frees the
 * session; no callback comes after it. Errors are a negative errno with a reason.
 */
#ifndef NRG_SENSORS_MQTT_SESSION_H
#define NRG_SENSORS_MQTT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct nrg_mqtt_options {
    char host[256], user[128], password[256], client[64], topic[256];
    char cafile[256], cert[256], key[256];
    unsigned port;
    int qos, keepalive_s;
    bool tls, insecure; /* insecure: the broker's name is not checked */
};

struct nrg_mqtt_calls {
    void (*message)(void *arg, const char *topic, const void *payload, size_t len, bool retained,
                    int64_t arrived_ns);
    void (*connected)(void *arg);
    void (*lost)(void *arg, const char *why);
    void *arg;
};

struct nrg_mqtt_session;

/* 0 when the library is installed, or -ENOENT with err naming the package. */
int nrg_mqtt_available(struct nrg_error *err);

/* Connects and subscribes; waits for the broker's answer up to wait_ns. `calls` is copied. */
int nrg_mqtt_start(struct nrg_mqtt_session **session, const struct nrg_mqtt_options *options,
                   const struct nrg_mqtt_calls *calls, int64_t wait_ns, struct nrg_error *err);
void nrg_mqtt_stop(struct nrg_mqtt_session *session);

#endif
