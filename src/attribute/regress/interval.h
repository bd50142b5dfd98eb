/*
 * The interval of a power that is not negative, from a figure with a normal error: far from 0 on
 * both sides of it, close to 0 those powers of which such a figure is to be expected.
 *
 * Plain data; nothing can fail.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_INTERVAL_H
#define NRG_ATTRIBUTE_REGRESS_INTERVAL_H

struct nrg_power_interval {
    double low, high;
};

/* Around `center`, which may be negative, half as wide as `half`; `value`, the figure that is
 * shown, is inside, and nothing beyond `most` unless that is 0. */
struct nrg_power_interval nrg_power_interval_make(double confidence, double value, double center,
                                                  double half, double most);

#endif
