/* Between html.c, the page of a comparison, and html_plot.c, its pictures. Nothing is owned. */
#ifndef NRG_REPORT_COMPARE_HTML_H
#define NRG_REPORT_COMPARE_HTML_H

#include "report/compare/report.h"

struct nrg_html_row {
    const char *name;
    const struct nrg_effect *effect;
    struct nrg_shown (*show)(double value);
    double p;
};

/* Text as HTML: what would be markup is not. */
void nrg_html_text(FILE *out, const char *text);
/* The class of a change that is sure: "less", "more"; "" else. */
const char *nrg_html_verdict(const struct nrg_effect *effect, bool sure);

/* The interval of a change on an axis from -widest to +widest, relative. */
void nrg_html_whisker(FILE *out, const struct nrg_effect *effect, const char *verdict,
                      double widest);
/* Energy of every run in the order of time. */
void nrg_html_runs(const struct nrg_compare_report *report, FILE *out);

#endif
