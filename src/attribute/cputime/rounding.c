/*
 * The rounding of busy time, of which a modelled energy is made (cputime.h).
 *
 * /proc/stat counts in ticks, so the busy time up to a border between two cells is off by e, which
 * is anywhere within a tick. What one cell has too much, its neighbour has too little. A row that
 * has p joules per busy second of the cell before a border, and q of the one after, is off by
 * e * (p - q): where it is alike in all cells, nothing is left but the two ends of the run. Errors
 * of different borders are independent, and add up as squares.
 *
 * The model bends, so errors of both signs do not cancel wholly: in the mean it says a little less.
 * That is the same in all cells, and adds up end to end. Of prices by ticks (price.c) it is more.
 *
 * Errors that last, those of a kernel that samples, are independent from cell to cell. How large
 * they are is found in ticks.c.
 */
#include <errno.h>
#include <math.h>

#include "attribute/cputime/cputime.h"

int nrg_cpu_rounding_init(struct nrg_cpu_rounding *r, const struct nrg_cpu_time *times,
                          struct nrg_arena *memory, size_t n)
{
    *r = (struct nrg_cpu_rounding){.times = times};
    r->variance_j2 = nrg_arena_array(memory, n, sizeof *r->variance_j2);
    r->prices = nrg_arena_array(memory, n, sizeof *r->prices);
    r->active = nrg_arena_array(memory, n, sizeof *r->active);
    return memory->failed ? -ENOMEM : 0;
}

/* What comes after the first cell is taken to lie in the next one. Of a slot over many cells the
 * rest is alike in all of them, and its errors are those of one. */
void nrg_cpu_rounding_add(struct nrg_cpu_rounding *r, size_t energy,
                          const struct nrg_cpu_slot *slot, double energy_j)
{
    const struct nrg_cpu_time *t = r->times;
    struct nrg_cpu_price *price = &r->prices[energy];
    const struct nrg_cpu_tick_cell *cell = &t->cells[slot->cell];
    const struct nrg_cpu_tick_cell *next = slot->cell + 1 < t->n_cells ? cell + 1 : cell;
    double here_j = energy_j * (double)slot->here, after_j = energy_j - here_j;
    double after_cells = (1 - (double)slot->here) * (double)slot->width_s / next->length_s;
    if (!(energy_j > 0))
        return;
    if (!(price->before > 0 || price->here > 0 || price->after > 0))
        r->active[r->n_active++] = (uint32_t)energy;
    price->here += here_j / cell->busy_s;
    price->after += after_j / next->busy_s / fmax(1, after_cells);
    price->bent_j += here_j * cell->bend + after_j * next->bend;
}

/* The border before the cell in hand. */
static void end_border(struct nrg_cpu_rounding *r)
{
    const struct nrg_cpu_time *t = r->times;
    const struct nrg_cpu_tick_cell *cell =
        &t->cells[r->cell < t->n_cells ? r->cell : t->n_cells - 1];
    size_t n = 0;
    for (size_t i = 0; i < r->n_active; i++) {
        uint32_t at = r->active[i];
        struct nrg_cpu_price *price = &r->prices[at];
        double jump = cell->slope * (price->before - price->here),
               lasts = cell->lasts * price->here;
        bool inside = price->before > 0 && price->here > 0;
        r->variance_j2[at] +=
            jump * jump * (inside ? t->rounding_s2 : t->ends_s2) + lasts * lasts * t->lasting_s2;
        price->before = price->here;
        price->here = price->after;
        price->after = 0;
        if (price->before > 0 || price->here > 0)
            r->active[n++] = at;
    }
    r->n_active = n;
}

void nrg_cpu_rounding_move(struct nrg_cpu_rounding *r, size_t cell)
{
    while (r->cell < cell && r->n_active) {
        end_border(r);
        r->cell++;
    }
    r->cell = cell == SIZE_MAX ? 0 : cell;
}

void nrg_cpu_rounding_take(struct nrg_cpu_rounding *r, size_t energy, struct nrg_row_error *error)
{
    error->variance_j2 += r->variance_j2[energy];
    *(r->times->price_by_ticks ? &error->below_j : &error->above_j) += r->prices[energy].bent_j;
    r->variance_j2[energy] = r->prices[energy].bent_j = 0;
}
