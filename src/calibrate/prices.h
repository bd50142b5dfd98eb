/*
 * Prices above idle from a calibration: of a multiply-accumulate, and of a byte from each level.
 * Results point into the calibration. Nothing fails; any thread.
 */
#ifndef NRG_CALIBRATE_PRICES_H
#define NRG_CALIBRATE_PRICES_H

#include "calibrate/calibration.h"

enum { NRG_MEMORY_LEVELS = 5 };

/* Of all streams of a level: mean of joules per byte, and the larger of spread and error. */
struct nrg_level_price {
    const char *level; /* "L1".. "memory" */
    size_t n;          /* streams; 0: none, and the rest has no meaning */
    double j_per_byte, uncertainty, gb_per_s;
};

struct nrg_level_price nrg_level_price(const struct nrg_calibration *calibration, size_t level);
/* NULL: no point multiplies with a known energy above idle. */
const struct nrg_point_result *nrg_cheapest_mac(const struct nrg_calibration *calibration);
double nrg_point_bytes(const struct nrg_point *point); /* read and written in a call */

#endif
