/*
 * The moments at which a class begins or ends: from one to the next all readings of a counter tell
 * the same, so that one row of them does. Find, read, release.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_BORDERS_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_BORDERS_H

#include "attribute/regress/rows/rows.h"

struct nrg_borders {
    int64_t *t_ns; /* in order, all different */
    size_t n;
    bool sought;
    /* Rows as they were observed once, of this timeline: all passes have the same. */
    const struct nrg_timeline *of;
    struct nrg_observation *seen;
    size_t n_seen, cap_seen;
};

/* The first time that it is asked; none where there are more than `most`. 0 or -errno. */
int nrg_borders_find(struct nrg_borders *borders, const struct nrg_slices *slices, size_t n_columns,
                     size_t most);
/* Observes all rows with these options, once, unless they are too many to be kept. 0 or -errno. */
int nrg_borders_observe(struct nrg_borders *borders, const struct nrg_regress_options *options);
/* The timeline has changed. */
void nrg_borders_forget(struct nrg_borders *borders);
void nrg_borders_release(struct nrg_borders *borders);

#endif
