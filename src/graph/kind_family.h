/*
 * Names that one operation has in graphs and when it is dispatched: a traced aten::linear runs as
 * aten::addmm, aten::mm or aten::bmm. Spans of operators have the dispatched name.
 */
#ifndef NRG_GRAPH_KIND_FAMILY_H
#define NRG_GRAPH_KIND_FAMILY_H

#include <stdbool.h>

/* The name that stands for all of them; the kind itself when it has no others. */
const char *nrg_kind_family(const char *kind);
bool nrg_kind_same(const char *a, const char *b);

#endif
