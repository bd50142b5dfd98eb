/*
 * The layers of a layer log over all cycles, as the earlier Jetson tool's statistics have them:
 * the one that took the longest in all comes first. Names belong to the attribution.
 *
 * Make, release. 0 or -ENOMEM; release in any case. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_LAYER_MEANS_H
#define NRG_ATTRIBUTE_LAYER_MEANS_H

#include "attribute/cycles/window.h"

struct nrg_layer_mean {
    const char *name, *type;
    size_t runs, with_power;                  /* executions; of them with a reading of power */
    double power_w, above_idle_w, run_time_s; /* means; NAN: no reading */
    double energy_j;                          /* of all executions */
};

struct nrg_layer_means {
    struct nrg_layer_mean *items;
    size_t n, cap;
};

int nrg_layer_means_make(struct nrg_layer_means *means, const struct nrg_cycles *cycles,
                         const struct nrg_attribution *attribution);
void nrg_layer_means_release(struct nrg_layer_means *means);

#endif
