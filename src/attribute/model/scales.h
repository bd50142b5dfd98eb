/*
 * The scales of priors and noise, by evidence: one at a time, first over whole decades, then by
 * factors, as small steps alone get stuck.
 *
 * Plain calls; 0 or -ENOMEM.
 */
#ifndef NRG_ATTRIBUTE_MODEL_SCALES_H
#define NRG_ATTRIBUTE_MODEL_SCALES_H

#include "attribute/model/design.h"

struct nrg_scales {
    double block[NRG_BLOCKS];
    double noise[NRG_NOISES];
    double noise_floor[NRG_NOISES];
};

/* Where the search begins. */
void nrg_scales_start(struct nrg_scales *scales, const struct nrg_facts *facts);
/* Prior variances of all columns, extra ones included. */
void nrg_scales_prior(const struct nrg_scales *scales, const struct nrg_facts *facts,
                      const struct nrg_design *design, double *prior);
/* The log evidence of a design. */
int nrg_scales_evidence(const struct nrg_scales *scales, const struct nrg_facts *facts,
                        const struct nrg_design *design, double others_w, bool profiled,
                        double *log_z);
/* Searches; log_z: of the best. */
int nrg_scales_search(struct nrg_scales *scales, const struct nrg_facts *facts,
                      const struct nrg_design *design, double others_w, double *log_z);

#endif
