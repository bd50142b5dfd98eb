/*
 * A model graph for people and programs: table, JSON, CSV, DOT. Numbers are those of graph/;
 * nothing is computed here but shares and units. docs/graph.md describes every output. A stream
 * that fails is seen by the caller (ferror).
 */
#ifndef NRG_REPORT_GRAPH_REPORT_H
#define NRG_REPORT_GRAPH_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "graph/analysis.h"

struct nrg_graph_view {
    bool colour;
    bool operators;   /* a row per operator instead of a tree of modules */
    const char *sort; /* NULL: the model's order; "macs", "flops", "params", "bytes" */
    int depth;        /* 0: all */
};

void nrg_graph_text(const struct nrg_analysis *report, const struct nrg_graph_view *view,
                    FILE *out);
/* A new reference; NULL when out of memory. Schema nrg.graph/1. */
json_t *nrg_graph_json(const struct nrg_analysis *report);
/* A row per module, or per operator. */
void nrg_graph_csv(const struct nrg_analysis *report, bool operators, FILE *out);
/* The reduced graph for Graphviz, a box per module. */
void nrg_graph_dot(const struct nrg_analysis *report, FILE *out);
/* The reduced graph as text, one operator per line. */
void nrg_graph_reduced_text(const struct nrg_analysis *report, FILE *out);
/* What became of a value's operator: `id` with or without %. False when there is none. */
bool nrg_graph_explain(const struct nrg_analysis *report, const char *id, FILE *out);
/* Two models side by side: totals, and the modules that differ. */
void nrg_graph_compare_text(const struct nrg_analysis *a, const struct nrg_analysis *b, FILE *out);
json_t *nrg_graph_compare_json(const struct nrg_analysis *a, const struct nrg_analysis *b);

/* The command that makes a file with operators of an archive that has none; false: it is no such.
 */
bool nrg_graph_dump_command(const struct nrg_analysis *report, char *buf, size_t size);

/* "1x3x224x224", unknown dims as ?; "-" when nothing is known. Returns buf. */
const char *nrg_show_dims(char *buf, size_t size, const struct nrg_type *type);

#endif
