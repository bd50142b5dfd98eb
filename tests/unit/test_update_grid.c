/*
 * energy/updates/update_grid.c: which update of a device each new value is, from readings that are
 * half an update apart. The numbers are known because the updates are made here.
 */
#include "support/cmocka.h"

#include <math.h>

#include "energy/updates/update_grid.h"

#define UPDATES  4000
#define UPDATE_S 0.02
#define READ_S   0.01

/* Between which two readings an update lies. */
static struct nrg_update bracket(double t_s)
{
    double before = floor(t_s / READ_S) * READ_S;
    return (struct nrg_update){before, before + READ_S, 0};
}

/* Updates that come `off_s` after a reading, and on: some of them, as if the others had shown the
 * same value again. */
static void check_numbers(double off_s, double ppm, double jitter_s, size_t every)
{
    static struct nrg_update updates[UPDATES];
    static double truth[UPDATES];
    size_t n = 0;
    for (size_t k = 0; k < UPDATES; k++) {
        double t_s = off_s + (double)k * UPDATE_S * (1 + ppm * 1e-6) +
                     jitter_s * sin(12.9 * (double)(k * k % 1009));
        if (every && k % every == 3)
            continue;
        truth[n] = (double)k;
        updates[n++] = bracket(t_s);
    }
    nrg_updates_number(updates, n, UPDATE_S);
    for (size_t i = 0; i < n; i++)
        if (updates[i].number != truth[i])
            fail_msg("update %.0f has number %.0f (off %g s, %g ppm, jitter %g s)", truth[i],
                     updates[i].number, off_s, ppm, jitter_s);
}

static void numbers_of_updates(void **state)
{
    (void)state;
    check_numbers(0.003, 0, 0, 0);
    check_numbers(0.003, 0, 0, 7);
    check_numbers(0.003, 40, 0, 7);
    check_numbers(0.003, -40, 0, 0);
}

/* An update that jitters about the moment of a reading looks 10 or 30 ms after the one before. */
static void numbers_beside_a_reading(void **state)
{
    (void)state;
    check_numbers(0.01, 0, 0.001, 0);
    check_numbers(0.0095, 20, 0.001, 0);
    check_numbers(0.0199, 1, 0.002, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_updates),
        cmocka_unit_test(numbers_beside_a_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
