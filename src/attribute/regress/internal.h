/*
 * What the files of the regression share: its state, and the model of the sensor that is chosen
 * once, from the slices that are held, before rows are summed up for good.
 *
 * Order: slices are held (regress.c) until there are too many or the end is reached; the kernel and
 * the noise are chosen from them (regress_choose.c, regress_noise.c); rows are made, whitened,
 * weighted and summed up in blocks of time (regress.c); the blocks give powers, groups and
 * intervals (regress_solver.h).
 */
#ifndef NRG_ATTRIBUTE_REGRESS_MODEL_H
#define NRG_ATTRIBUTE_REGRESS_MODEL_H

#include "attribute/gram.h"
#include "attribute/regress/rows.h"

/*
 * What a row is off by: e[i] = phi e[i-1] + u[i] - theta u[i-1], with u independent of one another
 * and of variance floor2 + slope2 * m^2, where m is the y that was expected (with phi: whitened,
 * the part of it that is new). Rounding and late updates of a counter come back in the next
 * interval (theta > 0); a sensor that averages noise remembers it (phi > 0).
 */
struct nrg_noise {
    double phi, theta, floor2, slope2;
};

/* Weight of a row, given what was expected of it and what is left of it when whitened. */
double nrg_noise_weight(const struct nrg_noise *noise, double expected, double white_e);

/* Makes u from e, for y and every column alike. */
struct nrg_whitener {
    double phi, theta;
    double *last, *white; /* columns, then y */
    size_t n, cap;
    bool primed;
};

void nrg_whitener_release(struct nrg_whitener *whitener);
/* In place on gen's row; false: the first of a stretch, not to be used. -ENOMEM. */
int nrg_whiten(struct nrg_whitener *whitener, struct nrg_rowgen *gen);

#define NRG_REGRESS_BLOCKS 64

/* Rows of two kernels close to the chosen one, in step with it. */
struct nrg_bend {
    struct nrg_rowgen more, less;
    double step_s; /* 0: not used */
};

struct nrg_regress {
    struct nrg_regress_options options;
    uint32_t *column_of; /* class to column; 0: none yet */
    size_t *class_of;    /* column to class */
    size_t n_columns, last_column;
    double *time_s; /* per column, in used rows */
    double *pure;   /* weight of readings that saw this column alone */
    struct nrg_slices slices;
    int64_t last_begin_ns, last_end_ns;
    int64_t covered_until_ns;
    double covered_s;      /* with any class active */
    int64_t ready_ns;      /* all slices that begin before have come */
    int64_t grain_ns;      /* all stamps are this far apart, or multiples of it */
    struct nrg_gram edges; /* ends of slices: 2 each on the diagonal, -1 where two share one */
    double repeats;        /* readings that were rounded alike, per reading: see same_rounding */
    double pure_rows, pure_e2;            /* all of them, and the squares of what is left of them */
    double quantum;                       /* of a gauge, W; 0: none seen */
    double energy_j, energy_s;            /* of all rows, before any is made */
    size_t rows_expected, row, next_turn; /* next_turn: held slices that start summing up */

    bool chosen;
    bool plenty; /* of rows: drift and bends are fitted too */
    struct nrg_kernel kernel;
    char lag_source[32];
    struct nrg_noise noise;
    double first_phi; /* of the trial that the kernel was chosen by */
    double *prior;    /* first powers per column: for weights */
    size_t n_prior;

    struct nrg_rowgen gen;
    struct nrg_bend bend[2]; /* shift, memory */
    struct nrg_whitener whitener;
    struct nrg_gram block[NRG_REGRESS_BLOCKS];
    size_t n_blocks;
    double sum_y2, sum_e2; /* of rows as they are: how much is explained */
    double sum_y, sum_s;   /* J, s */
};

/* A pass over all rows of the held slices. */
struct nrg_pass {
    struct nrg_kernel kernel;
    const uint32_t *map; /* of columns that are put together; NULL */
    size_t n_columns, max_rows;
    double phi, theta; /* rows are whitened */
    bool weigh;        /* by the noise and the prior of the regression */
};

int nrg_regress_sum_rows(const struct nrg_regress *r, const struct nrg_pass *pass,
                         struct nrg_gram *sum);
/* In a part of the run, a drift looks like the power itself. */
bool nrg_regress_sees_drift(const struct nrg_regress *r, size_t max_rows);
/* What a row is expected to be, from the prior. */
double nrg_regress_expected(const struct nrg_regress *r, const struct nrg_rowgen *gen);
/* beta >= 0 of the sum, and any of the columns before idle; idle is left out when it is known. */
int nrg_regress_powers(const struct nrg_regress *r, const struct nrg_gram *sum, double *beta);

int nrg_regress_choose_kernel(struct nrg_regress *r);
int nrg_regress_choose_noise(struct nrg_regress *r);
int nrg_regress_make_result(const struct nrg_regress *r, struct nrg_regress_result *result);

/* Quantile of Student's t that holds `confidence` around 0. */
double nrg_student_t(double confidence, double freedom);

#endif
