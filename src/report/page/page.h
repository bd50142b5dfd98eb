/*
 * The page: one HTML file that shows recordings, with their data inside (docs/page.md). The frame,
 * scripts and styles, is web/dist/page.html, which the program carries; the data of each recording
 * is a gzip stream in base64, so that nothing in a recording can end an element or run.
 *
 * begin, add for each recording, end, all on one stream; a stream that fails is seen by the caller
 * (ferror). 0 or -errno, with the reason in err. Nothing is owned.
 */
#ifndef NRG_REPORT_PAGE_PAGE_H
#define NRG_REPORT_PAGE_PAGE_H

#include <stdio.h>

#include "attribute/attribution.h"
#include "predict/machine_price.h"
#include "report/run/report.h"

/* Buckets of time to ask an attribution for. */
#define NRG_PAGE_BUCKETS 2000

struct nrg_page_run {
    struct nrg_recording *recording;
    const struct nrg_report *report;
    const struct nrg_attribution *attribution; /* by path, with buckets */
    bool redact; /* leaves out arguments, paths, names of hosts and users */
    const struct nrg_machine_price *price; /* NULL: not known */
    json_t *prediction;                    /* schema nrg.prediction-against/1; NULL: none */
    json_t *comparison; /* of all recordings of the page, nrg.compare/1, with the first; NULL */
};

int nrg_page_begin(FILE *out, struct nrg_error *err);
int nrg_page_add(FILE *out, const struct nrg_page_run *run, struct nrg_error *err);
int nrg_page_end(FILE *out);

#endif
