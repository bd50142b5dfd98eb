/*
 * How a power sensor looks at its device, from a recording of a load that is known: spans called
 * `on` say when it ran, everything else is `off`. A reading is taken to be
 *
 *   off + (on - off) * part of [update - delay - window, update - delay] that was on
 *
 * Window and delay are searched for the smallest residual. The load must change at irregular times,
 * from a few ms to more than an update apart, else several windows explain it.
 *
 * Nothing outlives a call. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_ENERGY_SENSOR_FIT_H
#define NRG_ENERGY_SENSOR_FIT_H

#include "base/error.h"
#include "record/read/recording.h"

struct nrg_sensor_fit {
    double update_s;
    double window_s, window_low_s, window_high_s; /* of a mean; may be longer than an update */
    double delay_s, delay_sd_s; /* from the end of the window until the value shows */
    double off_w, on_w;
    double explained; /* part of the readings' variance, 0..1 */
    size_t updates;   /* that were seen */
};

/* Of a gauge of power. -ENODATA with err: it can't be told, and why. */
int nrg_sensor_fit(struct nrg_recording *recording, const struct nrg_recorded_channel *channel,
                   struct nrg_sensor_fit *fit, struct nrg_error *err);

#endif
