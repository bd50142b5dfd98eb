/*
 * Data sets, evaluations, profiles and predictions for people and programs. Numbers are those of
 * predict/; nothing is computed here but units and shares. docs/predict.md and docs/dataset.md
 * describe every output.
 */
#ifndef NRG_REPORT_PREDICT_REPORT_H
#define NRG_REPORT_PREDICT_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "predict/evaluate.h"
#include "predict/summary.h"

/* What is in a data set. */
void nrg_dataset_text_report(const struct nrg_dataset *set, const struct nrg_data_summary *summary,
                             FILE *out);
/* New references; NULL when out of memory. Schema nrg.dataset-summary/1. */
json_t *nrg_dataset_summary_json(const struct nrg_dataset *set,
                                 const struct nrg_data_summary *summary);
/* The data set itself; reading it gives the same rows. Schema nrg.dataset/1. */
void nrg_dataset_write_csv(const struct nrg_dataset *set, FILE *out);
json_t *nrg_dataset_json(const struct nrg_dataset *set);

struct nrg_evaluation_report {
    const struct nrg_dataset *set;
    const struct nrg_evaluation *evaluation;
    const char *protocol, *model, *features;
    double confidence;
};

void nrg_evaluation_text(const struct nrg_evaluation_report *report, FILE *out);
/* A new reference; NULL when out of memory. Schema nrg.evaluation/1. */
json_t *nrg_evaluation_json(const struct nrg_evaluation_report *report);

#endif
