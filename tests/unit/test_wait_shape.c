/* Where in a call its wait lies: against a call that is stepped through. */
#include "support/cmocka.h"

#include <math.h>

#include "attribute/regress/rows/rows.h"

#define STEPS 20000

/* CPU time of a call of length 1 up to u that waits for `lacks` after a part of its work. */
static double stepped(double u, double lacks, double after)
{
    double worked = 0, waited = 0;
    for (int i = 0; i < STEPS && (i + 0.5) / STEPS < u; i++) {
        bool waits = worked >= after * (1 - lacks) && waited < lacks;
        *(waits ? &waited : &worked) += 1.0 / STEPS;
    }
    return worked;
}

static void work_is_that_of_a_call_with_one_wait(void **state)
{
    (void)state;
    for (double lacks = 0; lacks < 0.96; lacks += 0.19)
        for (double u = 0; u <= 1.0001; u += 0.125) {
            double more[NRG_WAIT_SHAPES];
            nrg_wait_work(u, lacks, more);
            for (int i = 0; i < NRG_WAIT_SHAPES; i++) {
                double after = (double)i / (NRG_WAIT_SHAPES - 1);
                double expected = stepped(u, lacks, after) - (1 - lacks) * u;
                assert_true(fabs(more[i] - expected) < 3.0 / STEPS);
            }
        }
}

/* Long waits scatter by the work that is left, not by their own length. */
static void scatter_is_that_of_waits_at_any_place(void **state)
{
    (void)state;
    const double calls[][2] = {{0.5, 0.23}, {0.1, 0.3}, {0.9, 0.3}, {0.5, 0.9}, {0.3, 0.7}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        double sum = 0, square = 0, u = calls[i][0], lacks = calls[i][1];
        for (int k = 0; k < 400; k++) {
            double work = stepped(u, lacks, (k + 0.5) / 400);
            sum += work / 400;
            square += work * work / 400;
        }
        double expected = square - sum * sum + 0.02 * 0.02 * u * (1 - u);
        assert_true(fabs(nrg_wait_cut2(u, lacks) - expected) < 1e-4);
    }
    assert_true(nrg_wait_cut2(0, 0.5) == 0 && fabs(nrg_wait_cut2(1, 0.5)) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_that_of_a_call_with_one_wait),
        cmocka_unit_test(scatter_is_that_of_waits_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
