/*
 * Kernels of two streams that run at the same time: each may draw what it does alone, so that
 * powers add up; or both may share the GPU, each at part of its speed and power; mostly they are
 * between the two. How far powers add up (struct nrg_class_split) is one number, and is sought: the
 * one whose regression leaves least of the readings unexplained. Sharing or adding up alone is
 * taken where a number between them is not worth another column by Schwarz's criterion.
 *
 * Find, widen, release. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_LOAD_STREAMS_H
#define NRG_ATTRIBUTE_REGRESS_LOAD_STREAMS_H

#include "attribute/internal.h"
#include "attribute/regress/rows/slicer.h"

struct nrg_streams {
    double adds, off;                  /* that was taken, and what that may be off by */
    double near;                       /* another one, */
    struct nrg_regress_result nearest; /* and its result; no classes: nothing overlaps */
};

/* Changes the part's result, which is that of sharing, to the best one, and sets its `adds`. */
int nrg_streams_find(struct nrg_streams *beside, struct nrg_engine *engine, struct nrg_part *part,
                     const struct nrg_slicer *slicer);
/* Widens intervals of a result by what is not known of how far powers add up. */
void nrg_streams_widen(const struct nrg_streams *beside, const struct nrg_engine *engine,
                       struct nrg_regress_result *result);
void nrg_streams_release(struct nrg_streams *beside);

/* use.c: regresses a part; split: with other classes or rates; NULL. rc is that of the solution,
 * too. */
int nrg_regress_classes(struct nrg_engine *engine, struct nrg_part *part,
                        const struct nrg_slicer *slicer, const struct nrg_class_split *split,
                        struct nrg_regress_result *result, struct nrg_updates_found *updates);

#endif
