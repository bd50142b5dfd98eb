/*
 * Cells in which all CPUs of the machine were busy, and how much the idle time of the others tells.
 *
 * Where CPUs are always busy, others run whenever the workload does not: what they draw can't be
 * told from idle power, and the errors of busy time would be all that tells it. It is late by up to
 * a tick of each CPU, at both ends of a cell.
 */
#include "attribute/cells/full.h"

#include <math.h>

#define CROWDED 0.5 /* of the cells are full: CPUs are hardly ever idle */
#define MOSTLY  0.5 /* of the time of a full cell's CPUs, busy time says it itself */

static double off_s(const struct nrg_cells *c, const struct nrg_others_clock *clock)
{
    return fmax(clock->tick_s, clock->late_s) * sqrt(c->cpus);
}

/* Of what idle times scatter around their mean, that which is not the errors'; squares. */
static double told_s2(const struct nrg_cells *c, const double *idle_s, double error_s)
{
    double n = 0, full = 0, sum_s = 0, squares = 0;
    for (size_t k = 0; k < c->n; k++) {
        if (c->outside[k])
            continue;
        n++;
        full += c->full[k];
        sum_s += idle_s[k];
        squares += idle_s[k] * idle_s[k];
    }
    if (!(full > CROWDED * n))
        return INFINITY;
    return fmax(squares - sum_s * sum_s / n - n * error_s * error_s, 0);
}

void nrg_cells_find_full(struct nrg_cells *c, struct nrg_frame *frame,
                         const struct nrg_others_clock *clock, double *busy_s, double *idle_s)
{
    int64_t cpus = 0;
    nrg_recording_integer(frame->recording, "cpus", &cpus);
    c->cpus = cpus > 0 ? (double)cpus : INFINITY;
    c->idle_told_s2 = INFINITY;
    for (size_t k = 0; k < c->n; k++)
        busy_s[k] = c->busy_s[k];
    if (!isfinite(c->cpus))
        return;
    for (size_t k = 0; k < c->n; k++) {
        double all_s = c->cpus * nrg_cells_length_s(c, k);
        /* A cell may be so short that it could be idle as well. */
        c->full[k] = all_s - c->busy_s[k] < off_s(c, clock) && c->busy_s[k] > MOSTLY * all_s;
        busy_s[k] = c->outside[k] ? c->busy_s[k] : all_s;
    }
    nrg_others_spread(busy_s, c->busy_s, NULL, c->n, off_s(c, clock), idle_s);
    c->idle_told_s2 = told_s2(c, idle_s, off_s(c, clock) / sqrt(6));
    for (size_t k = 0; k < c->n; k++)
        busy_s[k] = c->full[k] ? busy_s[k] : c->busy_s[k];
}
