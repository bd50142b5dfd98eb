/*
 * What fitting (fit.c) and predicting (estimate.c) both read from a data set's row. Private to
 * predict/physical. False: the row lacks a feature. Pure.
 */
#ifndef NRG_PREDICT_PHYSICAL_INTERNAL_H
#define NRG_PREDICT_PHYSICAL_INTERNAL_H

#include "predict/physical/fit.h"

bool nrg_operator_row(const struct nrg_dataset *set, size_t row, double x[NRG_OPERATOR_UNITS]);
bool nrg_module_row(const struct nrg_dataset *set, size_t row, double x[NRG_MODULE_UNITS]);
bool nrg_law_row(const struct nrg_dataset *set, size_t row, double x[NRG_LAW_TERMS]);

#endif
