/* attribute/range: what a part of a row has of the row's interval, in closed form, and a row that
 * may have used nothing. web/test/range.test.ts has the same of the page. */
#include "support/cmocka.h"

#include <math.h>

#include "attribute/range.h"
#include "support/attributed.h"

static void a_part_keeps_what_is_common_and_grows_what_is_random(void **state)
{
    const struct nrg_range_whole common = {100, 0, 4}, random = {100, 10, 4};
    (void)state;
    close_to(nrg_range_row_end(&common, 90, 25, 2), 22.5, 1e-12, "common");
    close_to(nrg_range_row_end(&random, 90, 25, 2), 20, 1e-12, "random");
    close_to(nrg_range_row_end(&random, 110, 25, 2), 30, 1e-12, "upwards");
    assert_true(isnan(nrg_range_row_end(&common, NAN, 25, 2)));
}

static void an_estimate_of_nothing_keeps_its_high_end(void **state)
{
    const struct nrg_range_whole zero = {0, 0, 4}, random = {0, 8, 4}, instant = {0, 0, 0};
    const struct nrg_range_whole some = {10, 0, 4};
    (void)state;
    close_to(nrg_range_row_end(&zero, 8, 0, 4), 8, 0, "all of it");
    close_to(nrg_range_row_end(&zero, 8, 0, 1), 2, 0, "a quarter of the time");
    close_to(nrg_range_row_end(&random, 8, 0, 1), 4, 0, "half, as a square");
    close_to(nrg_range_row_end(&zero, 0, 0, 1), 0, 0, "the low end");
    close_to(nrg_range_row_end(&instant, 8, 0, 0), 8, 0, "without time");
    close_to(nrg_range_row_end(&some, 18, 0, 1), 2, 0, "nothing in this part alone");
}

/* All power is idle, as far as its counter can tell. */
static void a_row_of_no_joules_has_an_interval_in_a_range(void **state)
{
    struct made m;
    struct nrg_attribution whole, part;
    struct nrg_attribution_options o = {.method = NRG_METHOD_INTEGRATE, .idle_w = 50};
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    c.resolution = 0.5;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 50);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, ""), name = made_name(&m, "module", "net");
    for (int i = 0; i < 100; i++)
        made_span(&m, 0.1 * i + 0.01, 0.1 * i + 0.06, track, name);
    attribute(&m, &o, &whole);
    o.has_range = true;
    o.from_s = 2;
    o.to_s = 7;
    attribute(&m, &o, &part);
    const struct nrg_attribution_row *all = row(&whole, "net"), *here = row(&part, "net");
    close_to(all->energy_j, 0, 1e-9, "energy");
    assert_true(all->high_j > 0.1);
    assert_int_equal(here->calls, 50);
    assert_true(here->high_j >= all->high_j / 2 && here->high_j <= all->high_j);
    assert_true(here->flags & NRG_ROW_UNRESOLVED);
    nrg_attribution_release(&part);
    nrg_attribution_release(&whole);
    made_release(&m);
}

#define STEP_S 3.04 /* when power goes from 10 to 60 W: between two readings */

static double stepped_j(void *arg, double t_s)
{
    (void)arg;
    return 10 * (t_s + 100) + 50 * fmax(0, t_s - STEP_S);
}

/* Read at 10 Hz, as energy/edges.c has it: which side the energy was on is not known. */
static void a_range_holds_a_step_at_its_edges(void **state)
{
    struct made m;
    struct nrg_attribution part;
    struct nrg_attribution_options o = {.method = NRG_METHOD_INTEGRATE, .has_range = true};
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.1, stepped_j, NULL, NULL);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, ""), name = made_name(&m, "module", "net");
    for (int i = 0; i < 100; i++)
        made_span(&m, 0.1 * i + 0.01, 0.1 * i + 0.06, track, name);
    for (int after = 0; after < 2; after++) {
        o.from_s = after ? STEP_S : 1;
        o.to_s = after ? 5 : STEP_S;
        attribute(&m, &o, &part);
        double truth_j = (o.to_s - o.from_s) * (after ? 60 : 10);
        assert_true(fabs(part.total_j - truth_j) > 1); /* interpolated */
        assert_true(part.total_low_j <= truth_j && truth_j <= part.total_high_j);
        assert_true(part.total_high_j - part.total_low_j < 2 * 4);
        nrg_attribution_release(&part);
    }
    o.from_s = 4; /* at readings */
    o.to_s = 6;
    attribute(&m, &o, &part);
    assert_true(part.total_high_j - part.total_low_j < 2 * 0.2);
    nrg_attribution_release(&part);
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_keeps_what_is_common_and_grows_what_is_random),
        cmocka_unit_test(an_estimate_of_nothing_keeps_its_high_end),
        cmocka_unit_test(a_row_of_no_joules_has_an_interval_in_a_range),
        cmocka_unit_test(a_range_holds_a_step_at_its_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
