/*
 * How far off a row's energy may be, kept up span by span while they are walked through.
 *
 * Between two updates the sensor does not tell when energy was used. A stretch that holds whole
 * intervals is known but for its two edges: there, power changes from that of the interval before
 * to that of the interval after, and by how much they differ bounds what interpolation can get
 * wrong. That error is the same each time a span comes from the same surroundings, so edges add up
 * end to end, not as squares. In an interval of which the row has only a part, it may have used
 * anything from nothing to all of it, as far as power has a ceiling; all its parts in one
 * interval are taken together. Rounding and the phase of the sensor's updates are random: their
 * squares add up.
 *
 * Plain data that starts as zero; nothing can fail. Energies here are above idle.
 */
#ifndef NRG_ATTRIBUTE_ROW_ERROR_H
#define NRG_ATTRIBUTE_ROW_ERROR_H

#include <stdint.h>

struct nrg_row_error {
    double below_j, above_j; /* may be that much lower, higher */
    double variance_j2;
    double doubt_j;    /* half of an interval by scatter alone, of cpu-time and of a regression's
                          leaves; INFINITY: not known */
    uint32_t interval; /* the one that `part_s` is of; 0: none */
    float part_s, width_s, active_j;
};

/* Where an edge lies. */
struct nrg_edge {
    uint32_t interval;
    float off_j; /* what interpolation may get wrong if the stretch goes beyond the interval */
    float variance_j2;
    float power_w; /* that a gauge shows there */
};

/* One interval of the sensor's. */
struct nrg_interval {
    uint32_t index;
    double width_s, active_j;
};

/* The row had part_s of the interval (time, times its share of the work). */
void nrg_row_error_part(struct nrg_row_error *error, const struct nrg_interval *interval,
                        double part_s, double ceiling_w);
/* Adds the error of the interval in hand. */
void nrg_row_error_settle(struct nrg_row_error *error, double ceiling_w);

/* Both ways, end to end. */
static inline void nrg_row_error_widen(struct nrg_row_error *error, double off_j)
{
    error->below_j += off_j;
    error->above_j += off_j;
}

/* Adds an error that is settled. */
static inline void nrg_row_error_add(struct nrg_row_error *to, const struct nrg_row_error *from)
{
    to->below_j += from->below_j;
    to->above_j += from->above_j;
    to->variance_j2 += from->variance_j2;
}

#endif
