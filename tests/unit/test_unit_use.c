/*
 * Joules per unit of work from rows whose sums are written down here: counters by what they were
 * counted in, a job's ranks together, and single steps with the first ones apart.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "support/attributed.h"

static struct nrg_attribution_row made(const char *name, const char *kind, const char *detail,
                                       size_t parent, uint64_t calls, double energy_j)
{
    struct nrg_attribution_row r = nrg_row_unknown(name, kind, detail);
    r.parent = parent;
    r.depth = parent == SIZE_MAX ? 0 : 1;
    r.calls = calls;
    r.time_s = (double)calls;
    r.energy_j = energy_j;
    r.low_j = energy_j / 2;
    r.high_j = energy_j * 2;
    return r;
}

static const struct nrg_unit_use *find(const struct nrg_attribution *a, const char *name,
                                       const char *of)
{
    for (size_t i = 0; i < a->n_units; i++)
        if (!strcmp(a->units[i].name, name) && !strcmp(a->units[i].of, of))
            return &a->units[i];
    fail_msg("no unit %s of %s", name, of);
    return NULL;
}

/* Units of rows that are a tree of places and classes of spans at once. */
static void find_units(struct nrg_attribution *a, struct nrg_attribution_row *rows, size_t n,
                       const char *const *per)
{
    const struct nrg_view_rows view = {.rows = rows, .n = n};
    const struct nrg_row_count outside[] = {{"samples", 7, 7}};
    struct nrg_error err;
    *a = (struct nrg_attribution){0};
    assert_int_equal(nrg_units_find(a,
                                    &(struct nrg_unit_sources){.paths = &view,
                                                               .classes = &view,
                                                               .outside = outside,
                                                               .n_outside = 1,
                                                               .whole = {.of = "this program",
                                                                         .of_kind = NRG_OF_PROGRAM,
                                                                         .energy_j = 14}},
                                    per, &err),
                     0);
}

static void counters_divide_what_they_were_counted_in(void **state)
{
    struct nrg_row_count train = {"samples", 400, 400}, test = {"samples", 200, 200},
                         all = {"samples", 610, 10};
    struct nrg_attribution_row rows[] = {
        made("main", "span", "", SIZE_MAX, 1, 4.0),
        made("epoch", "epoch", "", 0, 2, 3.0),
        made("evaluation", "phase", "", 0, 2, 0.6),
    };
    const char *const per[] = {"samples/main", "samples", NULL};
    struct nrg_attribution a;
    rows[0].counts = &all;
    rows[1].counts = &train;
    rows[2].counts = &test;
    rows[0].n_counts = rows[1].n_counts = rows[2].n_counts = 1;
    find_units(&a, rows, 3, per);
    assert_int_equal(a.n_units, 7);
    const struct nrg_unit_use *u = find(&a, "samples", "epoch");
    close_to(u->energy_j / u->amount, 7.5e-3, 1e-12, "amount");
    u = find(&a, "samples", "evaluation");
    close_to(u->energy_j / u->amount, 3e-3, 1e-12, "amount");
    close_to(u->high_j, 1.2, 1e-12, "high_j");
    u = find(&a, "samples", "main"); /* counted in neither */
    close_to(u->amount, 10, 1e-9, "amount");
    close_to(u->energy_j, 4, 1e-9, "energy_j");
    close_to(find(&a, "samples", "this program")->energy_j, 14, 1e-12, "energy_j");
    close_to(find(&a, "samples", "this program")->amount, 7, 1e-12, "amount");
    close_to(a.units[5].amount, 610, 1e-12, "asked for");
    assert_true(a.units[5].inside);
    close_to(a.units[6].amount, 617, 1e-12, "all of it");
    close_to(find(&a, "epoch", "epoch")->amount, 2, 1e-12, "amount");
    free(a.units);
}

static void ranks_make_one_job(void **state)
{
    struct nrg_attribution_row rows[] = {
        made("epoch", "epoch", "rank 0 of 2", SIZE_MAX, 3, 3.3),
        made("epoch", "epoch", "rank 1 of 2", SIZE_MAX, 3, 3.0),
        made("step", "step", "", SIZE_MAX, 5, 1.0),
    };
    struct nrg_row_count samples = {"samples", 600, 600};
    struct nrg_attribution_row class = made("epoch", "epoch", "rank 0 of 2", SIZE_MAX, 6, 6.3);
    const struct nrg_view_rows paths = {.rows = rows, .n = 3}, classes = {.rows = &class, .n = 1};
    struct nrg_attribution a = {0};
    struct nrg_error err;
    class.counts = &samples;
    class.n_counts = 1;
    assert_int_equal(
        nrg_units_find(&a, &(struct nrg_unit_sources){.paths = &paths, .classes = &classes}, NULL,
                       &err),
        0);
    const struct nrg_unit_use *u = find(&a, "samples", "epoch");
    close_to(u->amount, 600, 1e-12, "amount"); /* each rank has its own, in the same 3 s */
    close_to(u->time_s, 3, 1e-12, "time_s");
    close_to(u->energy_j, 6.3, 1e-12, "energy_j");
    assert_int_equal(u->ranks, 0);
    u = find(&a, "epoch", "epoch");
    close_to(u->amount, 3, 1e-12, "amount");
    close_to(u->energy_j, 6.3, 1e-12, "energy_j");
    close_to(u->time_s, 3, 1e-12, "time_s"); /* at the same time */
    assert_int_equal(u->ranks, 2);
    assert_int_equal(find(&a, "step", "step")->ranks, 0);
    free(a.units);
}

#define STEPS 20

static void make_steps(struct nrg_attribution_row *rows, size_t slow)
{
    for (size_t i = 0; i < STEPS; i++) {
        rows[i] = made("step", "step", "", SIZE_MAX, 1, i < slow ? 1.0 : 0.1 + 0.001 * (double)i);
        rows[i].number = (int64_t)i + 1;
        rows[i].time_s = i < slow ? 5.0 : 0.5;
    }
}

/* The spread of the steps that such rows are. */
static void spread(struct nrg_attribution_row *rows, size_t n, int skip, struct nrg_unit_use *unit)
{
    struct nrg_single_steps steps = {0};
    assert_int_equal(
        nrg_single_steps_of_rows(&steps, &(struct nrg_view_rows){.rows = rows, .n = n}), 0);
    assert_int_equal(nrg_unit_spread(&steps, skip, unit), 0);
    free(steps.items);
}

static void first_steps_are_apart(void **state)
{
    struct nrg_attribution_row rows[STEPS];
    struct nrg_unit_use unit = {.name = "step", .kind = "step"};
    make_steps(rows, 3);
    spread(rows, STEPS, -1, &unit);
    assert_int_equal(unit.spread.first, 3);
    close_to(unit.spread.first_j, 3.0, 1e-12, "first_j");
    assert_int_equal(unit.spread.n, 17);
    close_to(unit.spread.median_j, 0.111, 1e-12, "median_j");
    close_to(unit.spread.low_j, 0.107, 1e-12, "low_j");
    close_to(unit.spread.high_j, 0.115, 1e-12, "high_j");
    assert_false(unit.spread.given);
    spread(rows, STEPS, 5, &unit);
    assert_int_equal(unit.spread.first, 5);
    assert_true(unit.spread.given);
    make_steps(rows, 0);
    spread(rows, STEPS, -1, &unit);
    assert_int_equal(unit.spread.first, 0);
    spread(rows, STEPS, STEPS + 1, &unit);
    assert_int_equal(unit.spread.n, 0); /* nothing is left: nothing is said */
    assert_true(isnan(unit.spread.median_j));
}

/* Half of the steps or more are no first steps, however long they last. */
static void a_change_in_the_middle_is_no_start(void **state)
{
    struct nrg_attribution_row rows[STEPS];
    struct nrg_unit_use unit = {.name = "step", .kind = "step"};
    make_steps(rows, 10);
    spread(rows, STEPS, -1, &unit);
    assert_int_equal(unit.spread.first, 0);
}

static void steps_of_ranks_are_steps_of_the_job(void **state)
{
    struct nrg_attribution_row rows[2 * STEPS];
    struct nrg_unit_use unit = {.name = "step", .kind = "step"};
    make_steps(rows, 0);
    make_steps(rows + STEPS, 0);
    for (size_t i = 0; i < 2 * STEPS; i++)
        rows[i].detail = i < STEPS ? "rank 0 of 2" : "rank 1 of 2";
    spread(rows, 2 * STEPS, -1, &unit);
    assert_int_equal(unit.spread.n, STEPS);
    close_to(unit.spread.median_j, 2 * (0.1 + 0.0095), 1e-12, "median_j");
}

/* Numbers that begin anew in each epoch are steps of their own, joined rank by rank. */
static void epochs_count_anew(void **state)
{
    struct nrg_single_step items[8];
    struct nrg_single_steps steps = {.items = items, .n = 8};
    struct nrg_unit_use unit = {.name = "step", .kind = "step"};
    for (size_t i = 0; i < 8; i++) /* two ranks, two epochs of two steps */
        items[i] = (struct nrg_single_step){.name = "step",
                                            .detail = i < 4 ? "rank 0 of 2" : "rank 1 of 2",
                                            .number = (int64_t)i % 2,
                                            .begin_ns = 100 * ((int64_t)i % 4) + (i < 4 ? 0 : 1),
                                            .energy_j = (double)(i % 4 + 1),
                                            .time_s = 1};
    assert_int_equal(nrg_unit_spread(&steps, 1, &unit), 0);
    assert_int_equal(unit.spread.n, 3);
    close_to(unit.spread.first_j, 2, 1e-12, "first_j"); /* the first of both ranks */
    close_to(unit.spread.median_j, 6, 1e-12, "median_j");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_divide_what_they_were_counted_in),
        cmocka_unit_test(ranks_make_one_job),
        cmocka_unit_test(first_steps_are_apart),
        cmocka_unit_test(a_change_in_the_middle_is_no_start),
        cmocka_unit_test(steps_of_ranks_are_steps_of_the_job),
        cmocka_unit_test(epochs_count_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
