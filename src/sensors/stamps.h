/*
 * From the time stamps that a device puts on its readings to CLOCK_MONOTONIC, where nobody says how
 * far the device's clock is off: a management controller has its own, often without NTP.
 *
 * A reading can be seen only after it was made. So of all distances between the time of seeing and
 * the stamp the smallest is the best estimate of how far the clocks are apart: it is too large by
 * the shortest time that a reading took to us, never too small. Distances between stamps are then
 * the device's own, and no reading lies in the future. The first reading may be old when it is
 * seen, so it waits for the second, which is seen when it is new.
 *
 * Drift is followed: the estimate may grow by DRIFT_PPM. A stamp that goes back, or a distance that
 * no delay explains, means that the device's clock was set: the estimate begins anew.
 *
 * Plain data, the caller's; nothing fails; one thread.
 */
#ifndef NRG_SENSORS_STAMPS_H
#define NRG_SENSORS_STAMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nrg_stamped {
    int64_t stamp_ns; /* the device's */
    int64_t t_ns;     /* ours */
    int64_t raw;
};

struct nrg_stamps {
    int64_t
        most_delay_ns; /* from measuring to seeing, set by the caller; more: the clock was set */
    size_t n;          /* new readings so far, 2: that or more */
    struct nrg_stamped last;
    int64_t seen_ns;   /* of the last call */
    int64_t offset_ns; /* ours minus the device's */
};

/*
 * Takes a reading with this stamp that was seen at seen_ns. How many readings have got their times
 * by it, oldest first in out: 0 for one that was seen already and for the first, 2 at the second.
 */
size_t nrg_stamps_place(struct nrg_stamps *stamps, int64_t stamp_ns, int64_t raw, int64_t seen_ns,
                        struct nrg_stamped out[2]);

#endif
