/*
 * What is drawn while threads wait inside of their calls. A baseline shows a machine that sleeps
 * deeply. A thread that waits for a moment leaves its CPU in a shallow sleep, with the package
 * awake around it; or it waits because another process has its CPU. So a row in which threads
 * waited draws more than idle power, and a regression without a term for that takes idle power to
 * be higher in all rows: for a program that never rests, waits are all that tells idle power from
 * its load. (Found with an independent simulator: 2 % of such waits, and steps were 31 % too low at
 * +-3 %, with idle power the same in the baselines before and after.)
 *
 * The column is the time that threads wait in the row. A class's part, in the mean of its CPU time,
 * is taken off as so much of its CPU time: over the run the column is 0 in each class, and a
 * class's energy is its power * its CPU time whatever the column's power is, what it drew in its
 * waits included. Whether idle power moved or waits draw something is judged in drift.c.
 */
#include <errno.h>
#include <math.h>

#include "attribute/regress/internal.h"
#include "base/mem.h"

#define LEAST_WAITS 1e-3 /* of the CPU time: less tells nothing */

/* Time that threads wait and work, per column of a class. */
static void add_slices(const struct nrg_regress *r, double *wait_s, double *work_s)
{
    for (size_t i = 0; i < r->slices.n; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[i];
        double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        if (!s->calls_column)
            continue;
        wait_s[s->column] += length_s * nrg_slice_waits(&r->options, s);
        work_s[s->column] += length_s * (double)s->rate;
    }
}

/* Watts of a CPU's mean second above idle: the most that waits can be expected to draw. */
static double most_w(const struct nrg_regress *r, double work_s)
{
    double active_j = r->energy_j - r->options.idle_w * r->energy_s;
    return work_s > 0 && active_j > 0 ? active_j / work_s : 0;
}

int nrg_regress_find_awake(struct nrg_regress *r)
{
    size_t n = NRG_REGRESS_COLUMNS(&r->options);
    double waits_s = 0, works_s = 0;
    if (r->options.has_gaps || !(r->options.idle_w > 0))
        return 0;
    double *wait_s = nrg_arena_array(&r->memory, n, sizeof *wait_s);
    double *work_s = nrg_arena_array(&r->memory, n, sizeof *work_s);
    if (r->memory.failed)
        return -ENOMEM;
    add_slices(r, wait_s, work_s);
    for (size_t i = 0; i < n; i++) {
        waits_s += wait_s[i];
        works_s += work_s[i];
        wait_s[i] = work_s[i] > 0 ? wait_s[i] / work_s[i] : 0;
    }
    r->awake_w = most_w(r, works_s);
    if (waits_s > LEAST_WAITS * works_s && r->awake_w > 0)
        r->options.awake = wait_s;
    return 0;
}

void nrg_rowgen_set_awake(struct nrg_rowgen *gen, const double *awake)
{
    double sum = gen->x[NRG_COLUMN_AWAKE];
    size_t n = gen->dense ? gen->n : gen->n_touched;
    for (size_t i = 0; i < n; i++) {
        size_t column = gen->dense ? i : gen->touched[i];
        if (column >= NRG_COLUMN_CLASSES)
            sum -= gen->x[column] * awake[column];
    }
    nrg_rowgen_set(gen, NRG_COLUMN_AWAKE, sum);
}
