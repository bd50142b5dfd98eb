/*
 * A meter against a reference that is trusted: scale, offset and delay, such that
 *
 *   reference(t - delay) = scale * meter(t) + offset
 *
 * The reference is asked for means over windows, so that a slow meter is compared with what it
 * could have seen. For every delay of a grid the line is fitted by least squares (errors are the
 * meter's); the delay with the smallest residual wins and is refined. How long the meter averages
 * is tried too.
 *
 * Nothing outlives a call. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_ENERGY_METER_FIT_H
#define NRG_ENERGY_METER_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct nrg_meter_point {
    int64_t begin_ns, end_ns; /* what it is the mean of; equal for a gauge */
    double power_w;
};

struct nrg_meter_reference {
    /* Mean power between two instants, NAN where it is not known. */
    double (*mean_w)(void *arg, int64_t begin_ns, int64_t end_ns);
    void *arg;
    int64_t first_ns, last_ns, period_ns;
};

struct nrg_meter_fit {
    double scale, scale_sd;
    double offset_w, offset_sd_w;
    double delay_s, delay_sd_s;
    double average_s;   /* the average that explains its readings best, around their times */
    double residual_w;  /* rms of what is left, in the reference's watts */
    double spread_w;    /* standard deviation of the reference: what there was to learn from */
    double correlation; /* -1..1 */
    size_t n;           /* readings that were used */
};

/* -ENODATA with err: too few readings, or a load that did not change. */
int nrg_meter_fit(const struct nrg_meter_point *points, size_t n,
                  const struct nrg_meter_reference *reference, int64_t max_delay_ns,
                  struct nrg_meter_fit *fit, struct nrg_error *err);

struct nrg_recording;

/* The channel `wall` of a recording against the parts that it contains. */
int nrg_meter_fit_recording(struct nrg_recording *recording, int64_t max_delay_ns,
                            struct nrg_meter_fit *fit, struct nrg_error *err);

#endif
