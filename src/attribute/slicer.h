/*
 * Slices of activity on their way from the walk to the regressions of the domains: in order of
 * time, cut at the borders of cells, with each slice's share of its pool's work. Time in which no
 * track of a pool has a span open is a class of its own: it uses power too.
 *
 * Inside src/attribute. Memory is the slices of one cell.
 */
#ifndef NRG_ATTRIBUTE_SLICER_H
#define NRG_ATTRIBUTE_SLICER_H

#include "attribute/internal.h"

struct nrg_slice {
    int64_t begin_ns, end_ns;
    double share;
    uint32_t path, pool; /* path 0: no span is open */
};

struct nrg_slicer {
    struct nrg_regress **regress; /* per part; NULL: not by regression */
    const struct nrg_part *engine_parts;
    size_t n_parts;
    const uint32_t *class_of; /* per path; UINT32_MAX: none */
    struct nrg_slice *slices;
    size_t n, cap;
    bool unsorted;
};

int nrg_slicer_add(struct nrg_slicer *slicer, const struct nrg_slice *slice);
/* Hands over what there is; all that follows begins later. */
int nrg_slicer_flush(struct nrg_slicer *slicer);

#endif
