/*
 * A comparison for people and programs (docs/compare.md). Everything is borrowed; a stream that
 * fails is seen by the caller (ferror).
 */
#ifndef NRG_REPORT_COMPARE_REPORT_H
#define NRG_REPORT_COMPARE_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/mem.h"
#include "compare/compare.h"
#include "compare/gate.h"
#include "report/units.h"

struct nrg_compare_report {
    const struct nrg_comparison *comparison;
    bool forced; /* compared though it was refused; else a refused comparison has no numbers */
    const char *const *conditions; /* of --fail-if */
    size_t n_conditions;
    bool colour;
    size_t top; /* rows of each kind, largest change first; 0: all */
};

/* Whether the sides are not comparable, and so are not compared. */
bool nrg_compare_is_refused(const struct nrg_compare_report *report);

/* Of condition i; of a refused comparison none is decided. */
enum nrg_gate_result nrg_compare_condition(const struct nrg_compare_report *report, size_t i);

/* The answer in a sentence, without a full stop. 0 or -ENOMEM. */
int nrg_compare_answer(const struct nrg_compare_report *report, struct nrg_str *out);

/* What it rests on: runs, how much they vary, drift, ranks. 0 or -ENOMEM. */
int nrg_compare_basis(const struct nrg_compare_report *report, struct nrg_str *out);

/* What a p-value is below where a difference is sure: 0.05 at 95 %. */
double nrg_compare_level(const struct nrg_compare_report *report);

/* A quantity for people. */
struct nrg_compare_quantity_words {
    const char *name; /* "program's own" */
    struct nrg_shown (*show)(double value);
};
extern const struct nrg_compare_quantity_words nrg_compare_quantities[NRG_COMPARE_QUANTITIES];

void nrg_compare_text(const struct nrg_compare_report *report, FILE *out);
void nrg_compare_markdown(const struct nrg_compare_report *report, FILE *out);
/* One file that opens from disk, without scripts. */
void nrg_compare_html(const struct nrg_compare_report *report, FILE *out);
/* A new reference; NULL when out of memory. Schema nrg.compare/1. */
json_t *nrg_compare_json(const struct nrg_compare_report *report);

/* Of the runs of a side whose value is known; NAN: none. */
double nrg_compare_mean(const struct nrg_compare_side *side,
                        double (*value)(const struct nrg_compare_run *run));
double nrg_compare_energy_j(const struct nrg_compare_run *run);
double nrg_compare_duration_s(const struct nrg_compare_run *run);

/* "-12.3 %", "+0.05 %": the change that a ratio is; "-" when it is not known. */
struct nrg_change {
    char text[32];
};
struct nrg_change nrg_show_change(double ratio);

/* Indices of rows for people: by kind as they come, in each the most certain first. n of them. */
size_t nrg_compare_order(const struct nrg_compare_report *report, size_t *order);

#endif
