/*
 * From the library's thread to the one that reads sensors: messages, already decoded there, in a
 * ring of fixed size. A full ring drops and counts; neither side ever waits for the other longer
 * than a copy takes. The descriptor is readable when there is something.
 */
#ifndef NRG_SENSORS_MQTT_RING_H
#define NRG_SENSORS_MQTT_RING_H

#include "sensors/mqtt/plan.h"

#define NRG_MQTT_RING  256
#define NRG_MQTT_SHOWN 200 /* bytes of a message, for people */

struct nrg_mqtt_slot {
    enum { NRG_MQTT_READING, NRG_MQTT_REFUSED, NRG_MQTT_LOST, NRG_MQTT_UP } kind;
    int64_t arrived_ns;
    size_t bytes;
    struct nrg_mqtt_reading reading;
    char text[NRG_MQTT_SHOWN]; /* "topic payload", or why a connection was lost */
};

struct nrg_mqtt_ring;

struct nrg_mqtt_ring *nrg_mqtt_ring_new(void); /* NULL: out of memory or descriptors */
void nrg_mqtt_ring_free(struct nrg_mqtt_ring *ring);
int nrg_mqtt_ring_fd(const struct nrg_mqtt_ring *ring);
void nrg_mqtt_ring_push(struct nrg_mqtt_ring *ring, const struct nrg_mqtt_slot *slot);
/* False: empty, and the descriptor waits again. */
bool nrg_mqtt_ring_pop(struct nrg_mqtt_ring *ring, struct nrg_mqtt_slot *slot);
/* How many were dropped since it was asked last. */
uint64_t nrg_mqtt_ring_dropped(struct nrg_mqtt_ring *ring);

#endif
