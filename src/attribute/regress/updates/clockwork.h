/*
 * When a counter was updated that is read more slowly than it updates, or about as fast. RAPL moves
 * about every ms on a clock of its own; a reading shows the last update, which is up to a period
 * old. Taken as noise, that is most of what a regression leaves. But updates are regular: their
 * frequency and phase show in what a first fit leaves (saw.c), and are refined until least is left
 * (clockwork.c). Readings are then those of their updates.
 *
 * What is left is told without a regression (ages.c): with powers as they were found, a reading's
 * age only takes off what was used since its update. Powers are fitted again in between.
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
#define NRG_SAW_BLOCK      100  /* rows */
#define NRG_SAW_LEAST_PART 0.05 /* of what is left, that a line must explain */
#define NRG_SAW_PERIOD_OFF 0.05 /* of the period that the driver names */
#define NRG_SAW_CLOSE      0.06 /* of a period */
#define NRG_SAW_MOST_CLOSE 0.3  /* of all readings */

/* A reading that ends a row, and what a fit says of it. */
struct nrg_saw_reading {
    double t_s;
    double sum_j;    /* of the counter */
    double beyond_j; /* what it shows beyond what was expected by then, since its stretch began */
    double power_w;  /* mean in the update before */
    bool gap;        /* follows */
    bool joined;     /* it is of the same stretch as the one before */
};

/* A reading at the end of a row that begins and ends with updates. */
struct nrg_saw_end {
    double power_w; /* at the update */
    double lever_w; /* the same, times what a change of the clockwork goes with */
};

struct nrg_saw {
    struct nrg_regress *r;
    struct nrg_arena memory;
    int64_t first_ns;
    double update_s;
    double enough_j2; /* variance of a row by rounding alone: no clockwork leaves less */
    struct nrg_saw_reading *readings;
    int64_t *read_ns;
    size_t *kept;             /* readings whose times became those of updates */
    struct nrg_saw_end *ends; /* of them */
    float *used_j; /* per reading, energy that was expected between some moments before and it */
    size_t n_read; /* readings */
    size_t n;      /* of them, that were looked at */
    size_t stride; /* every so many blocks of rows are */
};

/* Updates are at (k - phase) / frequency; a reading is age_s times its part of a period old, and
 * delay_s. */
struct nrg_clockwork {
    double frequency, phase, age_s, delay_s;
};

/* Of what is left, that a line must explain. Where threads wait, that leaves most of it anyway, and
 * that a line explains more than chance does must do. */
static inline double nrg_saw_least_part(const struct nrg_saw *s)
{
    return s->r->waits.used ? 0 : NRG_SAW_LEAST_PART;
}

/* Threads that wait late in their calls look like a sensor that is early: then a delay is no more
 * than the phase leaves open, which readings close to an update do not tell. */
static inline double nrg_saw_delay_within(const struct nrg_saw *s, double delay_s)
{
    double most_s = s->r->waits.used ? NRG_SAW_CLOSE * s->update_s : INFINITY;
    return fmin(fmax(delay_s, -most_s), most_s);
}

static inline double nrg_saw_seconds(const struct nrg_saw *s, int64_t t_ns)
{
    return (double)(t_ns - s->first_ns) / 1e9;
}

/* Of the first n readings. */
static inline double nrg_saw_length_s(const struct nrg_saw *s, size_t n)
{
    return s->readings[n - 1].t_s - s->readings[0].t_s;
}

static inline double nrg_saw_row_s(const struct nrg_saw *s)
{
    return nrg_saw_length_s(s, s->n) / (double)(s->n * s->stride);
}

/* How much of a period has passed since the update that a reading shows: 0 to 1. */
static inline double nrg_clockwork_part(const struct nrg_clockwork *c, double t_s)
{
    double turns = c->frequency * t_s + c->phase;
    return turns - floor(turns);
}

/* On which side of an update a reading close to it is, jitter decides. */
static inline bool nrg_clockwork_is_close(double part)
{
    return part < NRG_SAW_CLOSE || part > 1 - NRG_SAW_CLOSE;
}

/* ages.c: fills readings with what is left if none were old; the regression has powers. */
int nrg_saw_take_readings(struct nrg_saw *s);
/* Mean square of what rows would leave with this clockwork, in the first n readings. */
double nrg_saw_left(const struct nrg_saw *s, const struct nrg_clockwork *c, size_t n);
/* Power at a moment before a reading. */
double nrg_saw_power_w(const struct nrg_saw *s, size_t i, double age_s);

/* saw.c: the frequency that explains most of what is left, and its phase; the part that it
 * explains, 0: no more than chance does. `kept`: of what readings are off by, in the next. First a
 * part of the run, then twice as much each time, closer to what was found. */
int nrg_saw_find_line(const struct nrg_saw *s, double kept, struct nrg_clockwork *best,
                      double *part);
/* The same of a counter that is almost in step with the readings, so that a part of the run would
 * not show it: all of the run, but only some of its readings. */
int nrg_saw_find_slow_line(const struct nrg_saw *s, double kept, struct nrg_clockwork *best,
                           double *part);

#endif
