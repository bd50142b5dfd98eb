/*
 * Energy per call: a call that lasts longer than the mean one uses no more than it. The column of a
 * class is how much longer its calls would have been in this row had all been of mean length, which
 * is 0 over the run.
 */
#include "attribute/blocks/internal.h"

static size_t call_columns(const struct nrg_facts *f)
{
    return f->spans;
}

static void call_slice(const struct nrg_facts *f, size_t first, const struct nrg_fact_slice *slice,
                       struct nrg_model_seen seen, struct nrg_row_cells *row)
{
    const struct nrg_fact_class *class_ = &f->classes[slice->class_];
    double length_s = slice->end_s - slice->begin_s;
    if (slice->class_ >= f->spans || !(class_->calls > 0) || !(slice->calls > 0))
        return;
    double per_s = (double)slice->calls * class_->call_s / length_s;
    nrg_row_add(row, first + slice->class_, seen.weight_s * (per_s - (double)slice->rate));
}

const struct nrg_model_block nrg_model_block_calls = {
    .name = "calls",
    .summary = "energy per call instead of per second",
    .columns = call_columns,
    .slice = call_slice,
    .start = 0.1,
};
