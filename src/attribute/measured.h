/*
 * Energy of single numbered spans, and of rows inside of them, that a regression has from powers
 * which are the same all through the run: measured as far as readings lie inside of one.
 *
 * What the readings leave (left_over.h) of an interval goes to all that ran in it, in proportion to
 * the model's energies. So a reading inside of a step is its own, and one that an edge cuts is
 * divided by the model's powers. How far this is believed follows from how much single steps differ
 * beyond what readings are off by (measured.c). Energies of all that have one path keep their sum,
 * which is the regression's.
 *
 * Make, add while spans are walked through, finish, free. Only make fails, with -ENOMEM. One thread
 * at a time.
 */
#ifndef NRG_ATTRIBUTE_MEASURED_H
#define NRG_ATTRIBUTE_MEASURED_H

#include "attribute/internal.h"

struct nrg_measured;

/* Nothing where no domain has what readings leave. */
int nrg_measured_make(struct nrg_engine *engine);
void nrg_measured_free(struct nrg_measured *measured);
/* The step, counted from 1, is one of those with this path. */
void nrg_measured_step(struct nrg_measured *measured, uint32_t step, uint32_t path);
/* So is the row, which has a span. */
void nrg_measured_row(struct nrg_measured *measured, uint32_t row, uint32_t path);
/* Of a row and a step (0: none): what a class's power is multiplied by between two instants. */
struct nrg_measured_stretch {
    uint32_t row, step, path;
    struct nrg_span_ns when;
    double cost_s;
};
/* The stretch is not added to a part yet. */
void nrg_measured_cost(struct nrg_engine *engine, const struct nrg_measured_stretch *stretch);
/* It has this energy of a part, by the model. */
void nrg_measured_add(struct nrg_engine *engine, size_t part,
                      const struct nrg_measured_stretch *stretch, double energy_j);
/* Corrects rows, with their errors, and steps. Needs the rows' errors. */
void nrg_measured_finish(struct nrg_engine *engine, struct nrg_single_steps *steps);

#endif
