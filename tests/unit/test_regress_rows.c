/*
 * What passes of a regression share: rows that were kept are those that were made, to the last
 * digit and with the limits of who reads them; those that skip slices, or take sums of them, too;
 * slices leave in order of time, whenever they came.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>

#include "attribute/regress/rows/kept_rows.h"
#include "attribute/regress/rows/prefix.h"
#include "attribute/regress/rows/slice_index.h"
#include "attribute/regress/rows/slicer.h"

#define MS       1000000LL
#define READINGS 300
#define SLICES   900
#define COLUMNS  (NRG_COLUMN_CLASSES + 3)

struct run {
    struct nrg_timeline tl;
    struct nrg_regress_options options;
    struct nrg_slices slices;
};

static void make_run(struct run *run, bool gauge)
{
    *run = (struct run){.tl = {.n = READINGS, .is_gauge = gauge, .period_ns = 10 * MS}};
    run->tl.t_ns = calloc(READINGS, sizeof *run->tl.t_ns);
    run->tl.sum_j = calloc(READINGS, sizeof *run->tl.sum_j);
    run->tl.gap = calloc(READINGS, sizeof *run->tl.gap);
    run->tl.own_gauge = calloc(READINGS, sizeof *run->tl.own_gauge);
    run->slices.items = calloc(SLICES, sizeof *run->slices.items);
    for (size_t i = 0; i < READINGS; i++) {
        run->tl.t_ns[i] = (int64_t)i * 10 * MS;
        run->tl.sum_j[i] = (double)i * 0.3 + (double)(i % 7) * 0.01;
        run->tl.own_gauge[i] = 30 + (double)(i % 5);
    }
    run->tl.gap[READINGS / 2] = 1;
    for (size_t i = 0; i < SLICES; i++)
        run->slices.items[i] = (struct nrg_regress_slice){
            .begin_ns = (int64_t)i * 3300000,
            .end_ns = (int64_t)(i + 1) * 3300000,
            .column = (uint16_t)(NRG_COLUMN_CLASSES + i % 3),
            .rate = 1 / (float)(1 + i % 4),
        };
    run->slices.n = SLICES;
    run->options = (struct nrg_regress_options){
        .timeline = &run->tl, .end_ns = READINGS * 10 * MS, .idle_error_w = 1};
    run->options.course.end_ns = run->options.end_ns;
}

static void release(struct run *run)
{
    nrg_timeline_release(&run->tl);
    nrg_slices_release(&run->slices);
}

/* Some slices last, over many that come after them. */
static void make_overlapping(struct run *run)
{
    make_run(run, true);
    for (size_t i = 0; i < SLICES; i += 50)
        run->slices.items[i].end_ns += (int64_t)i * MS;
}

static int next_row(struct nrg_rowgen *gen, const struct run *run)
{
    return nrg_rowgen_next(gen, &run->slices, INT64_MAX, COLUMNS);
}

static size_t compare_rows(struct nrg_rowgen *a, struct nrg_rowgen *b, const struct run *run)
{
    size_t rows = 0;
    for (int rc; (rc = next_row(a, run)) > 0; rows++) {
        assert_int_equal(next_row(b, run), rc);
        assert_true(a->y == b->y && a->restart == b->restart && a->dense == b->dense);
        assert_true(a->seen.to_ns == b->seen.to_ns && a->weight_s == b->weight_s);
        for (size_t i = 0; i < COLUMNS; i++)
            assert_true(a->x[i] == b->x[i]);
    }
    assert_int_equal(next_row(b, run), 0);
    return rows;
}

static void keeps_rows_of(const struct run *run, const struct nrg_kernel *kernel)
{
    struct nrg_kept_rows kept = {0};
    struct nrg_rowgen writer, reader, maker;
    nrg_rowgen_init(&writer, &run->options, kernel, NULL, true);
    nrg_kept_rows_attach(&kept, &writer);
    while (next_row(&writer, run) > 0)
        continue;
    assert_true(kept.complete);
    for (int late = 0; late < 2; late++) {
        nrg_rowgen_init(&maker, &run->options, kernel, NULL, true);
        nrg_rowgen_init(&reader, &run->options, kernel, NULL, true);
        nrg_kept_rows_attach(&kept, &reader);
        assert_ptr_equal(reader.kept, &kept);
        maker.usable_from_ns += late * 100 * MS;
        reader.usable_from_ns = maker.usable_from_ns;
        assert_true(compare_rows(&maker, &reader, run) > READINGS - 30);
        nrg_rowgen_release(&maker);
        nrg_rowgen_release(&reader);
    }
    nrg_rowgen_release(&writer);
    nrg_kept_rows_forget(&kept);
}

static void kept_rows_are_those_that_were_made(void **state)
{
    static const struct nrg_kernel kernels[] = {
        {.kind = NRG_KERNEL_LEVEL},
        {.kind = NRG_KERNEL_LEVEL, .near_s = 1e-3, .far_s = 2e-3},
        {.kind = NRG_KERNEL_BOX, .far_s = 0.05},
        {.kind = NRG_KERNEL_BOX, .far_s = 0.002},
        {.kind = NRG_KERNEL_EXP, .tau_s = 0.03},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (int gauge = i < 2 ? 0 : 1; gauge < 2; gauge++) {
            struct run run;
            make_run(&run, gauge);
            keeps_rows_of(&run, &kernels[i]);
            release(&run);
        }
}

static void rows_of_another_kernel_are_made(void **state)
{
    struct nrg_kernel prompt = {.kind = NRG_KERNEL_LEVEL}, late = {.near_s = 1e-3, .far_s = 1e-3};
    struct nrg_kept_rows kept = {0};
    struct nrg_rowgen gen;
    struct run run;
    (void)state;
    make_run(&run, false);
    nrg_rowgen_init(&gen, &run.options, &prompt, NULL, true);
    nrg_kept_rows_attach(&kept, &gen);
    while (next_row(&gen, &run) > 0)
        continue;
    nrg_rowgen_release(&gen);
    nrg_rowgen_init(&gen, &run.options, &late, NULL, true);
    nrg_kept_rows_attach(&kept, &gen);
    assert_null(gen.kept);
    assert_null(gen.keeps);
    nrg_rowgen_release(&gen);
    nrg_kept_rows_forget(&kept);
    release(&run);
}

/* Of windows that see few slices, and of some of the rows. */
static void skipping_slices_changes_no_row(void **state)
{
    static const struct nrg_kernel kernels[] = {
        {.kind = NRG_KERNEL_BOX, .far_s = 1e-6},
        {.kind = NRG_KERNEL_BOX, .far_s = 0.002},
        {.kind = NRG_KERNEL_LEVEL},
        {.kind = NRG_KERNEL_LEVEL, .near_s = 1e-3, .far_s = 2e-3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct nrg_rowgen all, skips;
        struct run run;
        make_overlapping(&run);
        struct nrg_slices plain = run.slices;
        assert_int_equal(nrg_slice_index_make(&run.slices), 0);
        assert_int_equal(run.slices.index.n, SLICES);
        nrg_rowgen_init(&all, &run.options, &kernels[i], NULL, true);
        nrg_rowgen_init(&skips, &run.options, &kernels[i], NULL, true);
        all.stride = skips.stride = 20;
        for (int rc = 1; rc > 0;) {
            rc = nrg_rowgen_next(&all, &plain, INT64_MAX, COLUMNS);
            assert_int_equal(next_row(&skips, &run), rc);
            for (size_t k = 0; rc > 0 && k < COLUMNS; k++)
                assert_true(fabs(all.x[k] - skips.x[k]) < 1e-14);
        }
        assert_true(all.nth > READINGS - 5 && skips.head.next == all.head.next);
        nrg_rowgen_release(&all);
        nrg_rowgen_release(&skips);
        release(&run);
    }
}

static void sums_up_to_moments_are_those_of_slices(void **state)
{
    uint32_t map[COLUMNS];
    struct nrg_prefix prefix;
    struct run run;
    (void)state;
    make_overlapping(&run);
    for (uint32_t i = 0; i < COLUMNS; i++)
        map[i] = i;
    assert_int_equal(nrg_slice_index_make(&run.slices), 0);
    assert_int_equal(nrg_prefix_make(&prefix, &run.slices, &run.options, map, COLUMNS, 4), 0);
    assert_non_null(prefix.sums);
    for (int64_t t_ns = -MS; t_ns < 3200 * MS; t_ns += 777777) {
        double want[COLUMNS] = {0}, got[COLUMNS];
        for (size_t i = 0; i < SLICES; i++) {
            const struct nrg_regress_slice *s = &run.slices.items[i];
            int64_t to_ns = s->end_ns < t_ns ? s->end_ns : t_ns;
            if (to_ns > s->begin_ns)
                want[s->column] += (double)(to_ns - s->begin_ns) / 1e9 * (double)s->rate;
        }
        nrg_prefix_up_to(&prefix, t_ns, got);
        for (size_t k = 0; k < COLUMNS; k++)
            assert_true(fabs(want[k] - got[k]) < 1e-12);
    }
    nrg_prefix_release(&prefix);
    assert_int_equal(nrg_prefix_make(&prefix, &run.slices, &run.options, map, COLUMNS, 300), 0);
    assert_null(prefix.sums); /* rows are as short as what would be looked at */
    release(&run);
}

/* A stretch that goes on for long makes those after it wait, over many flushes. */
static void slices_leave_in_order(void **state)
{
    struct nrg_slicer slicer = {0};
    struct nrg_slice_reader reader;
    size_t n = 0;
    (void)state;
    for (int64_t cell = 0; cell < 20; cell++) {
        for (int64_t i = 0; i < 12; i++) {
            int64_t begin = cell * 100 * MS + (i * 7 % 12) * 8 * MS;
            struct nrg_slice slice = {.begin_ns = begin,
                                      .end_ns = begin + 8 * MS,
                                      .rate = 1,
                                      .track = (uint32_t)i,
                                      .calls = !cell && i == 1 ? NRG_SLICE_WAITS : 0};
            assert_int_equal(nrg_slicer_add(&slicer, &slice), 0);
        }
        if (cell == 15)
            nrg_slicer_settle(&slicer, 1, 56 * MS, 64 * MS, true);
        assert_int_equal(nrg_slicer_flush(&slicer, (cell + 1) * 100 * MS, cell == 19), 0);
    }
    nrg_slice_reader_init(&reader, &slicer.log);
    for (int64_t last = INT64_MIN; nrg_slice_read(&reader); n++) {
        assert_true(reader.slice.begin_ns >= last);
        last = reader.slice.begin_ns;
    }
    assert_int_equal(n, 20 * 12);
    nrg_slicer_release(&slicer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_rows_are_those_that_were_made),
        cmocka_unit_test(rows_of_another_kernel_are_made),
        cmocka_unit_test(skipping_slices_changes_no_row),
        cmocka_unit_test(sums_up_to_moments_are_those_of_slices),
        cmocka_unit_test(slices_leave_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
