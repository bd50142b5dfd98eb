/*
 * Joules per token of a server (llm/serving.h) as text and as JSON: the object `llm` of
 * nrg.report/1. Each figure says what it is divided by. Nothing is owned, nothing fails.
 */
#ifndef NRG_REPORT_RUN_SERVING_H
#define NRG_REPORT_RUN_SERVING_H

#include <jansson.h>
#include <stdio.h>

#include "llm/serving.h"
#include "report/style.h"

/* Nothing where no server was asked. */
void nrg_serving_text(const struct nrg_serving *serving, const struct nrg_text_style *style,
                      FILE *out);
/* A new reference; NULL where no server was asked. */
json_t *nrg_serving_json(const struct nrg_serving *serving);

#endif
