/*
 * Idle power: a constant, and how it goes over the recording, as ramps between RAMPS + 1 moments
 * that are equally far apart. A ramp stays at 1 after its own stretch, so that the course goes on
 * from where it got to. What is known of idle power from a baseline is the prior of the constant
 * (model/fit.c).
 */
#include <math.h>

#include "attribute/blocks/internal.h"

#define RAMPS 8

static size_t one_column(const struct nrg_facts *f)
{
    (void)f;
    return 1;
}

static void idle_time(const struct nrg_facts *f, size_t first, struct nrg_model_seen seen,
                      struct nrg_row_cells *row)
{
    (void)f;
    nrg_row_add(row, first, seen.weight_s);
}

const struct nrg_model_block nrg_model_block_idle = {
    .name = "idle",
    .summary = "power that is drawn whoever runs",
    .columns = one_column,
    .time = idle_time,
    .wide = true,
};

static size_t ramp_columns(const struct nrg_facts *f)
{
    (void)f;
    return RAMPS;
}

/* Of each, the mean over the run is taken off: they add nothing. */
static void ramp_time(const struct nrg_facts *f, size_t first, struct nrg_model_seen seen,
                      struct nrg_row_cells *row)
{
    double at = (seen.middle_s - f->run_begin_s) / (f->run_end_s - f->run_begin_s) * RAMPS;
    for (size_t i = 0; i < RAMPS; i++) {
        double height = fmin(fmax(at - (double)i, 0), 1);
        double mean = (RAMPS - (double)i - 0.5) / RAMPS;
        nrg_row_add(row, first + i, seen.weight_s * (height - mean));
    }
}

const struct nrg_model_block nrg_model_block_ramps = {
    .name = "ramps",
    .summary = "idle power that rises or falls over the run",
    .columns = ramp_columns,
    .time = ramp_time,
    .start = 1e-5,
};
