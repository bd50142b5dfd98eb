/*
 * The rows of the regression (fit.c): what rows.c makes of slots, and what is learnt from them.
 */
#ifndef NRG_SERVING_INTERNAL_H
#define NRG_SERVING_INTERNAL_H

#include "base/linalg.h"
#include "llm/fit.h"

#define NRG_SERVING_LATE      NRG_SERVING_TERMS       /* the column of the delay */
#define NRG_SERVING_LATE_READ (NRG_SERVING_TERMS + 1) /* of how much later prompts are counted */
#define NRG_SERVING_COLUMNS   (NRG_SERVING_TERMS + 2)
#define NRG_SERVING_CELLS     (NRG_SERVING_COLUMNS * (NRG_SERVING_COLUMNS + 1) / 2)
/* To tell prices from noise: twice the columns, but for the one of requests that are not
 * understood, which hardly any server has. */
#define NRG_SERVING_LEAST_ROWS (2 * (NRG_SERVING_COLUMNS - 1))

/* Variance of the two amounts that are sampled, and what they share. */
struct nrg_serving_doubt {
    double sequence, busy, both;
};

struct nrg_serving_row {
    double x[NRG_SERVING_COLUMNS], y, length_s;
    double z[NRG_SERVING_COLUMNS]; /* instruments: the amounts of a little more and a little less
                                      time */
    /* Amounts per second around its begin minus those around its end; and in wider surroundings. */
    double step[NRG_SERVING_TERMS], wide_step[NRG_SERVING_TERMS];
    struct nrg_serving_doubt own, first, last; /* common to x and z; of the outermost slots */
    double steps;
    double output_edge2, prompt_edge2; /* variance of tokens at its edges (edges.c) */
    double sd, left;                   /* standard deviation and residual, joules */
    double power_w;                    /* as the law has it */
    double white[NRG_SERVING_COLUMNS], white_z[NRG_SERVING_COLUMNS], white_y, white_left;
    bool follows; /* begins where the one before ends */
};

struct nrg_serving_work {
    struct nrg_serving_row *rows;
    size_t n;
    double phi, slow; /* correlation of rows with those before, and that of what is slow in them */
    double mean_square;
    struct nrg_gram gram; /* of the amounts as the instruments have them */
    double beta[NRG_SERVING_COLUMNS], inverse[NRG_SERVING_CELLS];
    size_t index[NRG_SERVING_COLUMNS], m; /* of columns that are told apart */
};

/* Rows of `group` slots each; where slots do not touch, a row begins anew. w->rows has room for n.
 */
void nrg_serving_set_rows(struct nrg_serving_work *w, const struct nrg_serving_slot *slots,
                          size_t n, size_t group);
/* The columns of the delays, from the prices in w->beta. */
void nrg_serving_set_late(struct nrg_serving_work *w);
void nrg_serving_add_doubt(struct nrg_serving_doubt *sum, struct nrg_serving_doubt more, double by);

/* Standard deviation of each row, from residuals. 0 or -ENOMEM. */
int nrg_serving_learn_variance(struct nrg_serving_work *w);
/* w->phi and slow; as they were where there are too few rows. */
void nrg_serving_learn_phi(struct nrg_serving_work *w);
/* How many rows are as good as independent, columns apart. */
double nrg_serving_freedom(const struct nrg_serving_work *w);

/* What these amounts cost, with the ends of the interval of laws without a negative price; fit has
 * the solution, its covariance and the values. 0 or -ENOMEM. */
int nrg_serving_bound(const struct nrg_serving_fit *fit, const double amount[NRG_SERVING_TERMS],
                      struct nrg_serving_value *cost);
/* By how much prices may be too small because tokens at the edges of rows are counted late; value:
 * of the law that was chosen. 0 or -ENOMEM. */
int nrg_serving_edges(const struct nrg_serving_work *w, const double *value,
                      double more[NRG_SERVING_TERMS]);
/* The plain ratios of a steady state whose energy and counts are known. */
struct nrg_serving;
void nrg_serving_set_ratios(struct nrg_serving *serving);
/* fit->output_all_in and prompt_all_in, once the prices are known. 0 or -ENOMEM. */
int nrg_serving_all_in(const struct nrg_serving_work *w, struct nrg_serving_fit *fit);
/* Of their sum without the bound, by the wider of the two covariances. */
double nrg_serving_variance(const struct nrg_serving_fit *fit,
                            const double amount[NRG_SERVING_TERMS]);

#endif
