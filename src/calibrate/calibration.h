/*
 * A device's joules per multiply-accumulate, per byte by cache level, and at idle: every point is
 * repeated until its energy is known well enough, or until a time limit. The caller hands in the
 * meter, so that nothing here depends on sensors.
 *
 * Energies are per call. `above` is without what the idle machine uses in the same time.
 * Calibrate, use, release. An interrupted calibration holds what was measured until then.
 */
#ifndef NRG_CALIBRATE_CALIBRATION_H
#define NRG_CALIBRATE_CALIBRATION_H

#include "calibrate/points.h"

struct nrg_work_reading {
    double duration_s, energy_j;
    double uncertainty_j; /* of the sensors, not of the spread */
    double utilisation;   /* of all CPUs, 0..1; NAN: not known */
    bool others_out;      /* what others used meanwhile is not in it */
};

struct nrg_meter {
    void *arg;
    /* Reads, does the work, reads. 0 or -errno with err. */
    int (*measure)(void *arg, void (*work)(void *work_arg), void *work_arg,
                   struct nrg_work_reading *reading, struct nrg_error *err);
    /* True: end soon. Called often, also within work. */
    bool (*stop)(void *arg);
    /* What is done next, for people; may be NULL. */
    void (*progress)(void *arg, size_t at, size_t n, const char *what);
};

struct nrg_calibrate_options {
    double relative_error; /* of the mean energy, at 95 % confidence */
    double window_s;       /* one reading */
    double limit_s;        /* per point */
    double idle_s;         /* before, and after */
};

struct nrg_point_result {
    const struct nrg_point *point;
    size_t repeats;
    double calls;                        /* measured in all */
    double time_s;                       /* of one call */
    double energy_j, uncertainty_j;      /* of one call; ± 95 % */
    double above_j, above_uncertainty_j; /* NAN: not significantly above idle */
    double spread;      /* relative half width of the mean energy, by the readings' spread */
    bool reached_error; /* false: the limit came first */
};

struct nrg_calibration {
    struct nrg_point_result *results; /* of the points that were measured, in their order */
    size_t n, n_points;
    double idle_before_w, idle_after_w; /* NAN: not measured */
    double idle_w, idle_uncertainty_w;
    double idle_utilisation; /* the most that others used meanwhile; NAN: not known */
    bool others_out;         /* that is not in any energy */
    bool interrupted;
};

int nrg_calibrate(struct nrg_calibration *out, const struct nrg_points *points,
                  struct nrg_team *team, const struct nrg_meter *meter,
                  const struct nrg_calibrate_options *options, struct nrg_error *err);
void nrg_calibration_release(struct nrg_calibration *calibration);

#endif
