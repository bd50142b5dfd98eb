/*
 * The rows of the model for one theta of the sensor: columns (sparse), values, and what the noise
 * of each is made of. Made by one walk over slices; scales of priors and noise need no other.
 *
 * The noise of a row (ATTRIBUTION.md): at each end of a counter's row its rounding, the age of the
 * reading and what the call that the end cuts used unevenly, which the neighbour has with the other
 * sign; in the row itself a part of the mean power, that calls differ, and when others ran.
 *
 * Make, look, release. -ENOMEM is the only error. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_MODEL_DESIGN_H
#define NRG_ATTRIBUTE_MODEL_DESIGN_H

#include "attribute/blocks/block.h"
#include "attribute/model/evidence.h"
#include "attribute/sensor/kernel.h"

/* Variances of the noise, each as a part of its unit: see design.c. */
enum { NRG_NOISE_AGE, NRG_NOISE_CUT, NRG_NOISE_WHITE, NRG_NOISE_CALLS, NRG_NOISES };

struct nrg_row_noise {
    double age2, cut2;     /* of the row's end, J^2; of gauges 0 */
    double white2, calls2; /* of the row */
    double calls_before;   /* calls in this row and the one before: covariance */
    double others2;        /* of where others ran, for 1 W of theirs */
    bool joined;           /* it begins where the row before ends */
};

struct nrg_design {
    size_t k, first[NRG_BLOCKS + 1]; /* columns, and where those of each block begin */
    size_t n, cap_rows, *start;      /* rows, and where the cells of each begin; n + 1 */
    double *y, *seconds;             /* per row */
    size_t n_cells, cap_cells;
    struct nrg_design_cell {
        uint32_t column;
        double x;
    } * cells;
    struct nrg_row_noise *noise;          /* n */
    double rounding2;                     /* of an end; of a gauge, of a row */
    double *extra[NRG_SENSOR_PARAMETERS]; /* columns after the blocks': see model/fit.c; NULL */
    size_t n_extra;
    const bool *stray; /* per row: it tells nothing (model/fit.c); NULL: all do */
};

/* power_w: per class, as far as it is known by now; of which the noise is made. */
int nrg_design_make(struct nrg_design *design, const struct nrg_facts *facts,
                    const struct nrg_sensor *sensor, const double *power_w);
void nrg_design_release(struct nrg_design *design);

/* What the columns make of each row, with so much per column. */
void nrg_design_predict(const struct nrg_design *design, const double *mean, double *y);

/* Standard deviation of a row by its noise. */
double nrg_design_deviation(const struct nrg_design *design, const double noise[NRG_NOISES],
                            double others_w, size_t i);

/* Whitened by the noise, and summed up, with the extra columns. */
int nrg_design_sum(const struct nrg_design *design, const double noise[NRG_NOISES], double others_w,
                   struct nrg_model_sums *sums);

#endif
