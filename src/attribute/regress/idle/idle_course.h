/*
 * How idle power goes away from where a baseline saw it, in shapes: a line from the baseline on; a
 * parabola that is 0 at both ends of the run, and exponentials of several time constants, which
 * together make a machine that warms up, fast at first; and its temperature, where that was
 * recorded. Coefficients are watts.
 *
 * Plain data; nothing can fail.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_IDLE_IDLE_COURSE_H
#define NRG_ATTRIBUTE_REGRESS_IDLE_IDLE_COURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NRG_IDLE_LINE,
    NRG_IDLE_BEND,
    NRG_IDLE_WARM,
    NRG_IDLE_FAST = NRG_IDLE_WARM + 2, /* those of them that a course of its own makes up for */
    NRG_IDLE_HEAT = NRG_IDLE_WARM + 5,
    NRG_IDLE_SHAPES
};

/* Of a temperature, from 0 at the baseline to 1 (or -1) where it is furthest from that. */
struct nrg_heat {
    const int64_t *t_ns;
    const double *part;
    size_t n;
    double range_c; /* what 1 is */
    double after;   /* in a baseline after the run; 0 without one */
};

/* Where idle power is known from, which is where its line begins: from no baseline, it is that of
 * the middle of the run. */
enum nrg_idle_seen { NRG_IDLE_NOT_SEEN, NRG_IDLE_BEFORE, NRG_IDLE_AFTER };

struct nrg_idle_course {
    int64_t begin_ns, end_ns;
    enum nrg_idle_seen seen;
    int64_t before_ns, after_ns; /* from a baseline up to the run, and after it on to one */
    const struct nrg_heat *heat; /* NULL: not known */
};

#define NRG_IDLE_BORDERS 65

/* Idle power that goes its own way, straight from border to border: parts of the run, and watts. */
struct nrg_idle_walk {
    size_t n; /* borders; 0: it does not */
    double at[NRG_IDLE_BORDERS], w[NRG_IDLE_BORDERS];
};

double nrg_idle_walk_mean_w(const struct nrg_idle_walk *walk);
double nrg_idle_walk_w(const struct nrg_idle_walk *walk, const struct nrg_idle_course *course,
                       int64_t t_ns);

/* All of them at a moment. */
void nrg_idle_shapes(const struct nrg_idle_course *course, int64_t t_ns,
                     double shapes[NRG_IDLE_SHAPES]);
/* One of them alone. */
double nrg_idle_line(const struct nrg_idle_course *course, int64_t t_ns);
double nrg_idle_heat(const struct nrg_idle_course *course, int64_t t_ns);
double nrg_idle_shape(const struct nrg_idle_course *course, size_t shape, int64_t t_ns);
/* Over the run. */
double nrg_idle_shape_mean(const struct nrg_idle_course *course, size_t shape);

#endif
