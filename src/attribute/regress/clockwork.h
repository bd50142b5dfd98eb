/*
 * When a counter was updated that is read more slowly than it updates, or about as fast. RAPL moves
 * about every ms on a clock of its own; a reading shows the last update, which is up to a period
 * old. Taken as noise, that is most of what a regression leaves. But updates are regular: their
 * frequency and phase show in what a first fit leaves (saw.c), and are refined until a regression
 * leaves least (clockwork.c). Readings are then those of their updates.
 *
 * It counts only where it explains far more: updates may come irregularly.
 *
 * Made and released by clockwork.c; 0 or -ENOMEM. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_CLOCKWORK_H
#define NRG_ATTRIBUTE_REGRESS_CLOCKWORK_H

#include <math.h>

#include "attribute/regress/internal.h"

#define NRG_SAW_LEAST_ROWS 200
#define NRG_SAW_MOST_ROWS  50000
#define NRG_SAW_LEAST_PART 0.05 /* of what is left, that a line must explain */
#define NRG_SAW_PERIOD_OFF 0.05 /* of the period that the driver names */

/* What a first fit leaves of the rows. */
struct nrg_saw_row {
    double from_s, to_s; /* when its two readings were made */
    double from_w, to_w; /* power shortly before them */
    double off_j;        /* what is left */
};

struct nrg_saw {
    struct nrg_regress *r;
    struct nrg_arena memory;
    struct nrg_saw_row *rows;
    size_t n;
    int64_t first_ns;
    double update_s;
    double enough_j2; /* variance of a row by rounding alone: no clockwork leaves less */
    int64_t *read_ns; /* of the readings that end rows, their sums, and what follows is a gap */
    double *sum_j;
    uint8_t *gap;
    size_t n_read;
};

/* Updates are at (k - phase) / frequency; a reading is age_s times its part of a period old, and
 * delay_s. */
struct nrg_clockwork {
    double frequency, phase, age_s, delay_s;
};

static inline double nrg_saw_seconds(const struct nrg_saw *s, int64_t t_ns)
{
    return (double)(t_ns - s->first_ns) / 1e9;
}

/* Of the first n rows. */
static inline double nrg_saw_length_s(const struct nrg_saw *s, size_t n)
{
    return s->rows[n - 1].to_s - s->rows[0].from_s;
}

static inline double nrg_saw_row_s(const struct nrg_saw *s)
{
    return nrg_saw_length_s(s, s->n) / (double)s->n;
}

/* saw.c: fills rows with what is left if no reading were old; the regression has first powers. */
int nrg_saw_take_rows(struct nrg_saw *s);
/* The frequency that explains most of it, and its phase; the part that it explains, 0: no more than
 * chance does. */
int nrg_saw_find_line(const struct nrg_saw *s, struct nrg_clockwork *best, double *part);

#endif
