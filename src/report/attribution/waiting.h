/*
 * What GPUs waited for (attribute/waiting/waiting.h), as a table below the spans' and as JSON.
 */
#ifndef NRG_REPORT_ATTRIBUTION_WAITING_H
#define NRG_REPORT_ATTRIBUTION_WAITING_H

#include <jansson.h>
#include <stdio.h>

#include "attribute/waiting/waiting.h"
#include "report/style.h"

/* Both only where there are devices. */
void nrg_waiting_text(const struct nrg_waiting *waiting, const struct nrg_text_style *style,
                      bool unicode, FILE *out);
/* The object `waiting` of nrg attribute --json. */
json_t *nrg_waiting_json(const struct nrg_waiting *waiting);

#endif
