/*
 * Private to attribution/: the parts of the text for a terminal. Which rows are shown, the tree as
 * a table with the columns that fit, and the layers of a layer log. Functions return 0 or -ENOMEM.
 */
#ifndef NRG_REPORT_ATTRIBUTION_INTERNAL_H
#define NRG_REPORT_ATTRIBUTION_INTERNAL_H

#include "report/attribution/report.h"
#include "report/style.h"

/*
 * Marks the rows to be shown: the largest `view->top` of those with `view->min_share`, and what is
 * above them in the tree. `shown` has a->n_rows cells. 0 or -ENOMEM.
 */
int nrg_attribution_select(const struct nrg_attribution *a, const struct nrg_attribution_view *view,
                           bool *shown);

int nrg_attribution_table(const struct nrg_attribution_report *report,
                          const struct nrg_attribution_view *view, FILE *out);

/* Joules per step, token and the like: nothing where there are none. */
int nrg_attribution_per_text(const struct nrg_attribution_report *report,
                             const struct nrg_attribution_view *view, FILE *out);

/* What a layer log says, layer by layer, and what the layers do not cover. Needs cycles. */
void nrg_attribution_layers_text(const struct nrg_attribution_report *report,
                                 const struct nrg_attribution_view *view, FILE *out);

#endif
