/* The posterior of a domain as the rest of attribution takes it over: per class and for sums. */
#ifndef NRG_ATTRIBUTE_MODEL_RESULT_H
#define NRG_ATTRIBUTE_MODEL_RESULT_H

#include "attribute/model/fit.h"

/* confidence: of the intervals. The result is the caller's. 0 or -ENOMEM. */
int nrg_model_fit_result(const struct nrg_model_fit *fit, const struct nrg_facts *facts,
                         double confidence, struct nrg_regress_result *result);

#endif
