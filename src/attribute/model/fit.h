/*
 * The one model of a domain's readings, fitted: the sensor's theta, the scales, and the posterior
 * of all columns with its covariance, from which every interval is made.
 *
 * Fit, look, release. 0, -ENOMEM, or -ENODATA where there are too few readings. One thread at a
 * time.
 */
#ifndef NRG_ATTRIBUTE_MODEL_FIT_H
#define NRG_ATTRIBUTE_MODEL_FIT_H

#include "attribute/model/scales.h"

struct nrg_model_fit {
    struct nrg_sensor sensor;
    struct nrg_scales scales;
    double log_z;
    size_t k, n_extra; /* columns of blocks, and of theta */
    size_t first[NRG_BLOCKS + 1];
    double *mean;       /* k + n_extra */
    double *covariance; /* packed: of the rows' noise and the priors */
    double *data2;      /* packed: G, of which the rows' noise makes C G C */
    double *scores;     /* C u of each block of time: [block * (k + n_extra) + column] */
    size_t n_scores;
    double residual; /* rms of what is not explained, over that of the rows */
    size_t rows;
    struct nrg_arena memory;
};

int nrg_model_fit_make(struct nrg_model_fit *fit, const struct nrg_facts *facts);
void nrg_model_fit_release(struct nrg_model_fit *fit);

/* Of a sum of columns, l: its mean, and its variance with what blocks of time say of it. */
double nrg_model_fit_mean(const struct nrg_model_fit *fit, const double *l);
double nrg_model_fit_variance(const struct nrg_model_fit *fit, const double *l);

#endif
