/*
 * What the readings of a regressed domain leave: measured energy above idle beside what all classes
 * have by the model, per interval of the sensor (struct nrg_grid). Powers of classes are means over
 * the run; what is left of an interval belongs to what ran in it.
 *
 * Made by the regression from its log, where the recording has numbered spans; in the engine's
 * memory, some 20 bytes per interval. -ENOMEM. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_LEFT_OVER_H
#define NRG_ATTRIBUTE_LEFT_OVER_H

#include "attribute/internal.h"
#include "attribute/regress/rows/slice_log.h"

struct nrg_left_over {
    size_t n;
    int64_t *begin_ns; /* n + 1 */
    float *model_j;    /* of all classes */
    float *left;       /* beyond that, as a part of it; at least -1; 0: not known */
    float *border_j2;  /* variance of where its begin lies: it is in one interval or the other */
    double left_part2; /* mean square of what all readings leave, as a part of the model's */
    double alone_j2;   /* variance of each interval by itself, of a gauge */
};

/* Keeps energies at the times of a sensor's updates, as a regression has found them; of a gauge, as
 * if each value was the mean since the one before. */
int nrg_left_over_keep(struct nrg_engine *engine, struct nrg_part *part,
                       const struct nrg_timeline *timeline);
/* Leaves part->left_over NULL where nothing asks for it, or readings see a part of the time. */
int nrg_left_over_make(struct nrg_engine *engine, struct nrg_part *part,
                       const struct nrg_slice_log *log);

#endif
