/*
 * What a machine charges above idle for a multiply-accumulate and for a byte of memory traffic: the
 * line that operators are held against. At best, from the JSON of `nrg calibrate`; or from a
 * profile of `nrg train`, as fitted: then operators lie on both sides of it.
 *
 *   energy of a MAC at an intensity of I MACs per byte = j_per_mac + j_per_byte / I
 *
 * Plain data, nothing is owned. 0, or -errno with err. Thread-safe.
 */
#ifndef NRG_PREDICT_MACHINE_PRICE_H
#define NRG_PREDICT_MACHINE_PRICE_H

#include "predict/profile.h"

struct nrg_machine_price {
    char device[128];
    char provenance[16];          /* "measured", "estimated" */
    char source[24];              /* "nrg calibrate", "profile" */
    double j_per_mac, j_per_byte; /* NAN: not known */
    bool is_fitted;
};

/* A calibration's document, schema nrg.calibration/1. */
int nrg_machine_price_read(struct nrg_machine_price *price, const char *path,
                           struct nrg_error *err);
struct nrg_machine_price nrg_machine_price_of(const struct nrg_profile *profile);
/* True when the file says that it is a calibration. */
bool nrg_is_calibration(const char *path);

#endif
