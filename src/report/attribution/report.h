/*
 * An attribution for people and programs: tree table, JSON, CSV, folded stacks, trace. Numbers are
 * those of attribute/attribution.h; nothing is computed here but units, shares and ratios.
 * docs/attribute.md describes every output, docs/json.md the keys.
 *
 * Names come from unknown programs: every output stays well-formed whatever they hold. Functions
 * return 0 or -errno; a stream that fails is seen by the caller (ferror). Nothing is owned.
 */
#ifndef NRG_REPORT_ATTRIBUTION_REPORT_H
#define NRG_REPORT_ATTRIBUTION_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "attribute/attribution.h"
#include "attribute/cycles/window.h"
#include "attribute/waiting/waiting.h"
#include "base/mem.h"

struct nrg_attribution_report {
    struct nrg_recording *recording; /* for its name and command; NULL: none */
    const struct nrg_attribution *attribution;
    const struct nrg_cycles *cycles;   /* of a layer log beside a power log; NULL: none */
    const struct nrg_waiting *waiting; /* NULL: not looked for */
    double confidence;                 /* of the intervals, 0..1 */
};

struct nrg_attribution_view {
    bool colour, unicode;
    unsigned width;   /* of the terminal; 0: not limited */
    size_t top;       /* rows shown, largest first; 0: all */
    double min_share; /* rows below this part of what all rows have are folded; 0..1 */
};

void nrg_attribution_text(const struct nrg_attribution_report *report,
                          const struct nrg_attribution_view *view, FILE *out);
/* Schema nrg.attribute/1. Rows are written one by one: 100,000 of them need no memory. */
int nrg_attribution_json(const struct nrg_attribution_report *report, FILE *out);
int nrg_attribution_csv(const struct nrg_attribution_report *report, FILE *out);
/* Per cycle and layer with the columns of the earlier Jetson tool, in its units. Needs cycles. */
int nrg_attribution_csv_cycles(const struct nrg_attribution_report *report, FILE *out);
/* "a;b;c 123": self energy in uJ, for flame graphs. */
int nrg_attribution_folded(const struct nrg_attribution_report *report, FILE *out);

struct nrg_trace_options {
    int64_t begin_ns, end_ns; /* what lies outside is left out */
    uint64_t limit;           /* spans; 0: all */
};
struct nrg_trace_result {
    uint64_t spans, left_out;
};
/* Spans and power for chrome://tracing and Perfetto, streamed from the recording. */
int nrg_attribution_trace(struct nrg_recording *recording, const struct nrg_trace_options *options,
                          FILE *out, struct nrg_trace_result *result, struct nrg_error *err);

/* ---- shared by the outputs (attribution/words.c) ---- */

/*
 * Replaces *out by what a row is called: its name made clean, the number of a step, "(backward)".
 * `local`: without what the enclosing module's name says already.
 */
int nrg_attribution_label(const struct nrg_attribution *a, size_t row, bool local,
                          struct nrg_str *out);

/* The bits of a row's flags one by one; NULL beyond the last word of NRG_ROW_FLAG_WORDS. */
enum { NRG_ROW_FLAG_WORDS = 5 };
const char *nrg_attribution_flag(unsigned flags, size_t word); /* "": not set */
/* All that are set. */
json_t *nrg_attribution_flags_json(unsigned flags);
const char *nrg_attribution_idle_word(enum nrg_idle_mode idle); /* "apart" */

/* Why rows leave the scale of an estimate out. */
extern const char nrg_attribution_scale_why[];

const char *nrg_attribution_domain_name(const struct nrg_attribution_domain *domain);

/* Energy of a row over what its calls multiply and move; NAN: not known. */
double nrg_row_pj_per_mac(const struct nrg_attribution_row *row);
double nrg_row_j_per_byte(const struct nrg_attribution_row *row);

/* The execution that a row stands for; NULL when the row is no layer of a cycle. */
const struct nrg_execution *nrg_cycle_of_row(const struct nrg_cycles *cycles, size_t row);
/* The earlier tool leaves such a row out: the power log had ended. */
bool nrg_row_left_out(const struct nrg_attribution_report *report, size_t row);

#endif
