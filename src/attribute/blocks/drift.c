/*
 * Power of a class that rises or falls over the run, as temperatures and clocks do: its seconds
 * times how far they are from the middle of its work, in halves of the run.
 */
#include "attribute/blocks/internal.h"

static size_t drift_columns(const struct nrg_facts *f)
{
    return f->spans;
}

static void drift_slice(const struct nrg_facts *f, size_t first, const struct nrg_fact_slice *slice,
                        struct nrg_model_seen seen, struct nrg_row_cells *row)
{
    if (slice->class_ >= f->spans)
        return;
    double from_middle =
        (seen.middle_s - f->classes[slice->class_].middle_s) * 2 / (f->run_end_s - f->run_begin_s);
    nrg_row_add(row, first + slice->class_, seen.weight_s * (double)slice->rate * from_middle);
}

const struct nrg_model_block nrg_model_block_drift = {
    .name = "drift",
    .summary = "power of classes that rises or falls over the run",
    .columns = drift_columns,
    .slice = drift_slice,
    .start = 1e-8,
};
