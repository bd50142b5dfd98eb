/* Workers that work while their thread waits, and those that wait with it. */
#include "support/cmocka.h"

#include <stdlib.h>

#include "attribute/cells/workers.h"

#define CELLS  200
#define OPEN_S 0.09

static double random_part(void)
{
    return (double)rand() / RAND_MAX;
}

/* Cells whose threads wait 10 to 50 % of the time; workers per second that they work, and wait. */
static struct nrg_workers cells(double beside, double instead, double noise_s, int n)
{
    struct nrg_workers w = {0};
    srand(7);
    for (int i = 0; i < n; i++) {
        double waited_s = OPEN_S * (0.1 + 0.4 * random_part());
        double extra_s = beside * (OPEN_S - waited_s) + instead * waited_s;
        nrg_workers_add(&w, OPEN_S, waited_s, extra_s + noise_s * (random_part() - 0.5));
    }
    return w;
}

static void workers_that_wait_have_less_where_their_thread_waits_more(void **state)
{
    (void)state;
    struct nrg_workers with = cells(2, 0, 0.02, CELLS), instead = cells(0, 3, 0.02, CELLS);
    struct nrg_workers always = cells(1, 1, 0.02, CELLS);
    assert_true(nrg_workers_wait_too(&with));
    assert_false(nrg_workers_wait_too(&instead));
    assert_false(nrg_workers_wait_too(&always));
}

static void cells_that_do_not_tell_leave_it_as_it_was(void **state)
{
    (void)state;
    struct nrg_workers few = cells(2, 0, 0, 10), noisy = cells(1, 0, 20, CELLS), none = {0};
    struct nrg_workers alike = {0};
    for (int i = 0; i < CELLS; i++)
        nrg_workers_add(&alike, OPEN_S, OPEN_S / 4, OPEN_S);
    assert_false(nrg_workers_wait_too(&few));
    assert_false(nrg_workers_wait_too(&noisy));
    assert_false(nrg_workers_wait_too(&none));
    assert_false(nrg_workers_wait_too(&alike));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_that_wait_have_less_where_their_thread_waits_more),
        cmocka_unit_test(cells_that_do_not_tell_leave_it_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
