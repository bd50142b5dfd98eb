/*
 * Whether the counters of an open sensor are alive (still.h): a perf event stands still for ever
 * once its CPU was off-line, though it can be read, and counts again when it is opened anew. That a
 * counter is dead is known only in time, and opening costs milliseconds, so it is asked for more
 * and more seldom. For whoever keeps sensors open: the recorder (record/sampler/feed.c), and nrgd
 * for all of its clients (daemon/reader.c).
 *
 * Embedded: init, release. 0 or -ENOMEM. One thread.
 */
#ifndef NRG_SENSORS_PULSE_H
#define NRG_SENSORS_PULSE_H

#include "sensors/driver.h"
#include "sensors/still.h"

/* Watches the counters of one sensor that can't stand still. */
struct nrg_pulse {
    struct nrg_standing *standing; /* per channel */
    int64_t retry_ns, wait_ns;
    bool opened; /* again, and it has not moved since */
};

/* 0 or -ENOMEM; release also after that. */
int nrg_pulse_init(struct nrg_pulse *pulse, const struct nrg_found *found);
void nrg_pulse_release(struct nrg_pulse *pulse);
/* A row of a group. True: a counter moves again since the sensor was opened again. */
bool nrg_pulse_row(struct nrg_pulse *pulse, const struct nrg_found *found, unsigned group,
                   int64_t t_ns, const int64_t *raw);
/* Whether a counter is dead, and it is time to open the sensor again. */
bool nrg_pulse_lacks(struct nrg_pulse *pulse, const struct nrg_found *found, int64_t now_ns);

#endif
