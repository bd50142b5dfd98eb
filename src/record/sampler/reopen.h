/*
 * A sensor that left (module unloaded, device unplugged or reset) and may come back, perhaps under
 * another number: its driver is asked again for what there is, and the sensor of the same name with
 * the same channels is opened. What the user named with an argument looks after itself.
 *
 * The same for a sensor whose counters are dead though they are read (sensors/still.h): a perf
 * event stands still for ever once its CPU was off-line. That it is dead is known only in time, and
 * asking a driver costs milliseconds, so it is asked more and more seldom.
 *
 * Errors: a negative errno. Threads: the caller's, which is the one that reads the sensor.
 */
#ifndef NRG_RECORD_SAMPLER_REOPEN_H
#define NRG_RECORD_SAMPLER_REOPEN_H

#include "sensors/driver.h"
#include "sensors/still.h"

bool nrg_can_reopen(const struct nrg_found *found);

/*
 * `lost` as it was found first. On success *state is open, and *probe must be kept for as long as
 * it is (nrg_probe_release). -ENODEV: it is not back.
 */
int nrg_reopen(const struct nrg_context *ctx, const struct nrg_found *lost, struct nrg_probe *probe,
               void **state);

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
