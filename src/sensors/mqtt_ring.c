/* See mqtt_ring.h. */
#include "sensors/mqtt_ring.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct nrg_mqtt_ring {
    pthread_mutex_t lock;
    int fd;
    size_t first, n;
    uint64_t dropped;
    struct nrg_mqtt_slot slots[NRG_MQTT_RING];
};

struct nrg_mqtt_ring *nrg_mqtt_ring_new(void)
{
    struct nrg_mqtt_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return NULL;
    ring->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->fd < 0) {
        free(ring);
        return NULL;
    }
    pthread_mutex_init(&ring->lock, NULL);
    return ring;
}

void nrg_mqtt_ring_free(struct nrg_mqtt_ring *ring)
{
    if (!ring)
        return;
    close(ring->fd);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

int nrg_mqtt_ring_fd(const struct nrg_mqtt_ring *ring)
{
    return ring->fd;
}

void nrg_mqtt_ring_push(struct nrg_mqtt_ring *ring, const struct nrg_mqtt_slot *slot)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&ring->lock);
    if (ring->n < NRG_MQTT_RING)
        ring->slots[(ring->first + ring->n++) % NRG_MQTT_RING] = *slot;
    else
        ring->dropped++;
    pthread_mutex_unlock(&ring->lock);
    if (write(ring->fd, &one, sizeof one) < 0)
        return; /* its count is full: it is readable already */
}

bool nrg_mqtt_ring_pop(struct nrg_mqtt_ring *ring, struct nrg_mqtt_slot *slot)
{
    uint64_t count;
    pthread_mutex_lock(&ring->lock);
    bool any = ring->n > 0;
    if (any) {
        *slot = ring->slots[ring->first];
        ring->first = (ring->first + 1) % NRG_MQTT_RING;
        ring->n--;
    } else if (read(ring->fd, &count, sizeof count) < 0) {
        count = 0; /* nothing was written since */
    }
    pthread_mutex_unlock(&ring->lock);
    return any;
}

uint64_t nrg_mqtt_ring_dropped(struct nrg_mqtt_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    uint64_t dropped = ring->dropped;
    ring->dropped = 0;
    pthread_mutex_unlock(&ring->lock);
    return dropped;
}
