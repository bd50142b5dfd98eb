/*
 * Intervals of the physical model. Every model of the mask is held out in turn, and the relative
 * errors on it are collected. Where there is one model only, rows are held out instead.
 *
 * Ownership: the caller releases the fit. Errors: 0, or -errno with err. Threads: nothing is
 * shared.
 */
#ifndef NRG_PREDICT_PHYSICAL_INTERVAL_H
#define NRG_PREDICT_PHYSICAL_INTERVAL_H

#include "predict/physical/fit.h"

int nrg_physical_calibrate(struct nrg_physical *model, const struct nrg_dataset *set,
                           const bool *mask, double confidence, struct nrg_error *err);

/* Fits, then calibrates. */
int nrg_physical_train(struct nrg_physical *model, const struct nrg_dataset *set, const bool *mask,
                       enum nrg_feature_set features, double confidence, struct nrg_error *err);

#endif
