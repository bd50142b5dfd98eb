/*
 * Single pictures of a recording as SVG, for papers and CI: power over time with the spans below,
 * the flame graph in joules, the roofline in joules. The same as the page draws (docs/page.md),
 * without a browser. Each says of its energy whether it was measured, and its interval.
 *
 * Everything is borrowed; a stream that fails is seen by the caller (ferror). 0 or -errno with err;
 * -ENODATA: there is nothing that could be drawn. One thread at a time.
 */
#ifndef NRG_REPORT_PICTURE_PICTURE_H
#define NRG_REPORT_PICTURE_PICTURE_H

#include <stdio.h>

#include "attribute/attribution.h"
#include "predict/machine_price.h"

struct nrg_picture {
    struct nrg_recording *recording;
    const struct nrg_attribution *attribution; /* by path, with buckets */
    const struct nrg_machine_price *price;     /* NULL: not known */
};

typedef int (*nrg_picture_fn)(const struct nrg_picture *picture, FILE *out, struct nrg_error *err);

int nrg_picture_timeline(const struct nrg_picture *picture, FILE *out, struct nrg_error *err);
int nrg_picture_flame(const struct nrg_picture *picture, FILE *out, struct nrg_error *err);
int nrg_picture_roofline(const struct nrg_picture *picture, FILE *out, struct nrg_error *err);

#endif
