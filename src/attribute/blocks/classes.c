/*
 * Power of each class above idle: its seconds of work. The prior of a class is the common power of
 * all plus one of its own, so that classes which readings tell little of are taken to be like the
 * others. Others, and what runs without spans, draw watts of their own: they have no part in that.
 */
#include "attribute/blocks/internal.h"

static size_t class_columns(const struct nrg_facts *f)
{
    return f->n_classes;
}

static void class_slice(const struct nrg_facts *f, size_t first, const struct nrg_fact_slice *slice,
                        struct nrg_model_seen seen, struct nrg_row_cells *row)
{
    (void)f;
    nrg_row_add(row, first + slice->class_, seen.weight_s * (double)slice->rate);
}

const struct nrg_model_block nrg_model_block_classes = {
    .name = "classes",
    .summary = "power of each class of spans",
    .columns = class_columns,
    .slice = class_slice,
    .start = 1,
};

static size_t one_column(const struct nrg_facts *f)
{
    (void)f;
    return 1;
}

static void common_slice(const struct nrg_facts *f, size_t first,
                         const struct nrg_fact_slice *slice, struct nrg_model_seen seen,
                         struct nrg_row_cells *row)
{
    if (slice->class_ < f->spans)
        nrg_row_add(row, first, seen.weight_s * (double)slice->rate);
}

const struct nrg_model_block nrg_model_block_common = {
    .name = "common",
    .summary = "power that all classes of spans have in common",
    .columns = one_column,
    .slice = common_slice,
    .wide = true,
};
