/*
 * The tree of an attribution as a table that fits a terminal: which rows are shown, which columns
 * there is room for, and the lines themselves. Inside src/report.
 */
#ifndef NRG_REPORT_ATTRIBUTION_TABLE_H
#define NRG_REPORT_ATTRIBUTION_TABLE_H

#include "report/attribution/report.h"

struct nrg_text_style {
    const char *bold, *dim, *warn, *off;
};
struct nrg_text_style nrg_text_style(bool colour);

/*
 * Marks the rows to be shown: the largest `view->top` of those with `view->min_share`, and what is
 * above them in the tree. `shown` has a->n_rows cells. 0 or -ENOMEM.
 */
int nrg_attribution_select(const struct nrg_attribution *a, const struct nrg_attribution_view *view,
                           bool *shown);

/* Cuts a clean text, in the middle or at the end, so that it takes at most `width` columns. */
int nrg_fit_text(struct nrg_str *text, size_t width, bool middle, bool unicode);
/* Columns that a clean text takes. */
size_t nrg_text_width(const char *text);

int nrg_attribution_table(const struct nrg_attribution_report *report,
                          const struct nrg_attribution_view *view, FILE *out);

/* What a layer log says, layer by layer, and what the layers do not cover. Needs cycles. */
void nrg_attribution_layers_text(const struct nrg_attribution_report *report,
                                 const struct nrg_attribution_view *view, FILE *out);

#endif
