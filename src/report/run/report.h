/*
 * A summary as text and as JSON. Numbers are those of energy/summary.h; nothing is computed here
 * but units, shares and means over repeated runs. Nothing is owned; a stream that fails is seen by
 * the caller (ferror).
 */
#ifndef NRG_REPORT_RUN_REPORT_H
#define NRG_REPORT_RUN_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "attribute/recorded_model.h"
#include "base/stats.h"
#include "energy/summary.h"
#include "llm/serving.h"

struct nrg_report_options {
    bool colour;
    bool all_processes;      /* text: not only the largest */
    double carbon_g_per_kwh; /* 0: not asked for */
    double price_per_kwh;    /* in the user's currency; 0: not asked for */
};

/* One or several executions of the same command. */
struct nrg_report {
    struct nrg_recording *recording;
    const struct nrg_summary *runs;
    size_t n_runs;
    struct nrg_model_counts model;
    struct nrg_serving serving; /* of the first run */
    struct nrg_report_options options;
};

/* Values of one run, for nrg_report_spread. */
double nrg_report_program_j(const struct nrg_summary *run);
double nrg_report_machine_j(const struct nrg_summary *run);
double nrg_report_duration_s(const struct nrg_summary *run);
/* Over the runs in which the value is known; all NAN when it is in none. */
struct nrg_spread nrg_report_spread(const struct nrg_report *report,
                                    double (*value)(const struct nrg_summary *));

void nrg_report_text(const struct nrg_report *report, FILE *out);
/* A new reference; NULL when out of memory. Schema nrg.report/1. */
json_t *nrg_report_json(const struct nrg_report *report);

#endif
