/*
 * Data sets, evaluations, profiles and predictions for people and programs. Numbers are those of
 * predict/; nothing is computed here but units and shares. docs/predict.md and docs/dataset.md
 * describe every output. JSON is a new reference, NULL when out of memory; a stream that fails is
 * seen by the caller (ferror).
 */
#ifndef NRG_REPORT_PREDICTION_REPORT_H
#define NRG_REPORT_PREDICTION_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "predict/against.h"
#include "predict/dataset/summary.h"
#include "predict/evaluate.h"
#include "predict/llm/forecast.h"
#include "predict/llm/groups.h"
#include "predict/prediction.h"
#include "predict/profile_json.h"
#include "report/units.h"

/* A column of a table: two blanks and the range, as `show` prints its ends. */
void nrg_print_range(FILE *out, struct nrg_range range, struct nrg_shown (*show)(double value));

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
    const struct nrg_llm_scores *groups; /* of language models; NULL: not */
};

void nrg_evaluation_text(const struct nrg_evaluation_report *report, FILE *out);
/* A new reference; NULL when out of memory. Schema nrg.evaluation/1. */
json_t *nrg_evaluation_json(const struct nrg_evaluation_report *report);

/* What a profile knows, and two side by side. */
void nrg_profile_text(const struct nrg_profile *profile, const char *name, FILE *out);
void nrg_profile_line(const struct nrg_profile *profile, const char *name, FILE *out);
void nrg_profile_compare_text(const struct nrg_profile *a, const struct nrg_profile *b, FILE *out);
/* Schema nrg.profile-compare/1. */
json_t *nrg_profile_compare_json(const struct nrg_profile *a, const struct nrg_profile *b);

struct nrg_prediction_report {
    const char *name; /* of the model's file */
    const struct nrg_profile *profile;
    const char *profile_name;
    const struct nrg_reduced *reduced;
    const struct nrg_module_tree *tree;
    const struct nrg_prediction *prediction;
    double runs; /* NAN: not asked for */
};

/* `depth` levels of modules, 0 all; `terms` of the explanation, 0 none. */
void nrg_prediction_text(const struct nrg_prediction_report *report, int depth, int terms,
                         FILE *out);
/* Schema nrg.prediction/1. */
json_t *nrg_prediction_json(const struct nrg_prediction_report *report);
/* One model on two devices; the first gives the order. Schema nrg.prediction-compare/1. */
void nrg_prediction_compare_text(const struct nrg_prediction_report *a,
                                 const struct nrg_prediction_report *b, int depth, FILE *out);
json_t *nrg_prediction_compare_json(const struct nrg_prediction_report *a,
                                    const struct nrg_prediction_report *b);

/* A prediction and what a recording says. */
struct nrg_against_report {
    struct nrg_prediction_report predicted;
    const char *recording; /* its path */
    const struct nrg_attribution *attribution;
    const struct nrg_against *against;
};
void nrg_against_text(const struct nrg_against_report *report, int depth, FILE *out);
/* Schema nrg.prediction-against/1. */
json_t *nrg_against_json(const struct nrg_against_report *report);

/* A language model on a server. */
struct nrg_llm_report {
    const char *name; /* of the config's file */
    const struct nrg_profile *profile;
    const char *profile_name;
    const struct nrg_llm_config *config;
    const struct nrg_llm_load *load;
    const struct nrg_llm_forecast *forecast;
    const struct nrg_gpu *gpu; /* carried over to it; NULL: the profile's own */
};
void nrg_llm_text(const struct nrg_llm_report *report, FILE *out);
/* Schema nrg.llm-prediction/1. */
json_t *nrg_llm_json(const struct nrg_llm_report *report);
void nrg_llm_profile_text(const struct nrg_profile *profile, const char *name, FILE *out);

struct nrg_llm_what_if {
    struct nrg_llm_load load;
    struct nrg_llm_forecast forecast;
};
void nrg_llm_what_if_text(const struct nrg_llm_what_if *rows, size_t n, FILE *out);
/* Schema nrg.llm-what-if/1. */
json_t *nrg_llm_what_if_json(const struct nrg_llm_what_if *rows, size_t n);

/* One size of a what-if. */
struct nrg_what_if {
    double value; /* of the size that is varied */
    double items; /* batch size, NAN unknown */
    struct nrg_estimate estimate;
    bool refused;
    char why[300]; /* when refused; otherwise the first reason for caution, or "" */
};
void nrg_what_if_text(const char *name, const struct nrg_what_if *rows, size_t n, FILE *out);
json_t *nrg_what_if_json(const char *name, const struct nrg_what_if *rows, size_t n);

#endif
