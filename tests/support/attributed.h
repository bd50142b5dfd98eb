/* For tests of attribution: makes one of a made recording, and looks at it. Aborts the test where
 * something is not as it must be. */
#ifndef NRG_TESTS_ATTRIBUTED_H
#define NRG_TESTS_ATTRIBUTED_H

#include "attribute/attribution.h"
#include "support/made.h"

/* Integrated, and nothing is idle. */
extern const struct nrg_attribution_options plain;

void close_to(double value, double expected, double off, const char *what);
/* Opens the recording if need be; what holds for every attribution is checked. */
void attribute(struct made *made, const struct nrg_attribution_options *options,
               struct nrg_attribution *attribution);
/* The one row of that name. */
const struct nrg_attribution_row *row(const struct nrg_attribution *attribution, const char *name);

#endif
