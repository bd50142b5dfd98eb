/*
 * A domain by the one model (model/fit.h) instead of the terms of regress: nrg attribute --engine
 * model of a developer's build.
 *
 * The result is the caller's. 0 or -errno, -ENODATA where there are too few readings.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_BY_MODEL_H
#define NRG_ATTRIBUTE_REGRESS_BY_MODEL_H

#include "attribute/internal.h"
#include "attribute/regress/rows/slicer.h"

int nrg_regress_by_model(struct nrg_engine *engine, struct nrg_part *part,
                         const struct nrg_slicer *slicer, struct nrg_regress_result *result);

/* use.c: what is known of a domain, for either. The arrays are memory's. */
int nrg_regress_options_make(struct nrg_engine *engine, struct nrg_part *part,
                             const struct nrg_class_split *split, struct nrg_arena *memory,
                             struct nrg_regress_options *options);

#endif
