/*
 * Activity of the columns from the begin up to any moment, for searches that make the same rows
 * again and again as seen a little differently: what a reading saw of the many slices between two
 * moments is a difference of two sums, of which only the slices about these moments are looked at.
 *
 * Sums are kept at some slices (8 MB at most), of slices that have an index. Differences of sums
 * have other last digits than sums of the same slices one after the other.
 *
 * Make, ask, release; slices, options and map must outlive it and stay as they are. 0 or -ENOMEM.
 * One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_PREFIX_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_PREFIX_H

#include "attribute/regress/rows/rows.h"

struct nrg_prefix {
    const struct nrg_slices *slices;
    const struct nrg_regress_options *options;
    const uint32_t *map; /* of columns */
    size_t n_columns;
    size_t every; /* blocks of the index */
    double *sums; /* [column] before each; NULL: there are none */
};

/* `rows`: how many there are. Makes none where slices about a moment would be as many as a row's,
 * or sums too large for their differences. */
int nrg_prefix_make(struct nrg_prefix *prefix, const struct nrg_slices *slices,
                    const struct nrg_regress_options *options, const uint32_t *map,
                    size_t n_columns, size_t rows);
/* Whether it saves anything for what so long a time has in it. */
bool nrg_prefix_helps(const struct nrg_prefix *prefix, int64_t width_ns);
/* Seconds of all columns up to a moment. */
void nrg_prefix_up_to(const struct nrg_prefix *prefix, int64_t t_ns, double *seconds);
void nrg_prefix_release(struct nrg_prefix *prefix);

#endif
