/*
 * Slices of activity on their way from the walk to the regressions of the domains, which get them
 * from its log, one regression after the other: in order of time, cut at the borders of cells, with
 * the CPU seconds per second of each, or its share of a GPU's work. What happens outside of spans
 * is a class of its own: it uses power too.
 *
 * How much of a call a slice is, is known when the stretch that it belongs to ends. Until then it
 * waits, and so do those that begin after it; at most for NRG_CALL_NS. So does what a thread does
 * outside of its spans: for long, that is something else than between two steps (an evaluation that
 * nobody marked), with watts of its own.
 *
 * For distribute.c and use.c; memory is the slices of that time, and the log. 0 or -errno. One
 * thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_SLICER_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_SLICER_H

#include "attribute/internal.h"
#include "attribute/regress/load/split.h"
#include "attribute/regress/rows/slice_log.h"

#define NRG_SLICE_WAITS (-1.0f) /* calls of a slice whose stretch goes on */
#define NRG_GAP_WAITS   (-2.0f) /* the same of one that is no call, but may become a long gap */

struct nrg_slicer {
    struct nrg_slice *slices; /* that wait */
    size_t n, cap;
    size_t sorted;    /* so many, the first, are in order */
    int64_t least_ns; /* the first begin of the others */
    bool unsorted;
    struct nrg_slice_log log;
    uint32_t gap_class, apart_class; /* outside of spans: between steps, and for long */
};

int nrg_slicer_add(struct nrg_slicer *slicer, const struct nrg_slice *slice);
/* The stretch of a track that began at begin_ns is over: what it is of calls, if it is one. */
void nrg_slicer_settle(struct nrg_slicer *slicer, uint32_t track, int64_t begin_ns, int64_t end_ns,
                       bool is_call);
/* Writes down what there is up to t_ns; all that follows begins later. `last`: nothing follows. */
int nrg_slicer_flush(struct nrg_slicer *slicer, int64_t t_ns, bool last);
/* Hands all that was written down of a part to `take`; split: classes of threads; NULL. */
int nrg_slicer_hand_over(const struct nrg_slicer *slicer, const struct nrg_engine *engine,
                         const struct nrg_part *part, const struct nrg_class_split *split,
                         int (*take)(void *arg, const struct nrg_class_activity *activity),
                         void *arg);
void nrg_slicer_release(struct nrg_slicer *slicer);

#endif
