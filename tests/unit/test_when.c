/* When processes run whose CPU time is known per cell alone: workers whose hours are known. */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/load/when.h"

#define CELL_S  0.1
#define CELLS   400
#define CLASSES 4 /* the last one is no span */

/* A program that goes from class to class, for length_s each, off by up to `jitter` of it. */
struct program {
    double length_s[CLASSES];
    double jitter;
};

struct cells {
    struct nrg_gram gram;
    double open_s[CLASSES], next[CLASSES * (CLASSES + 1) / 2];
};

static double random_part(void)
{
    return (double)rand() / RAND_MAX;
}

static void end_cell(struct cells *c, double *x, const double *cpus)
{
    double cpu_s = 0;
    for (size_t i = 0; i < CLASSES; i++) {
        cpu_s += cpus[i] * x[i];
        c->open_s[i] += x[i];
    }
    nrg_gram_add(&c->gram, x, NULL, 0, cpu_s + 2e-3 * (random_part() - 0.5), 1);
    memset(x, 0, CLASSES * sizeof *x);
}

/* `cpus`: of the worker while each class is open. */
static void run(struct cells *c, const struct program *p, const double *cpus)
{
    double x[CLASSES] = {0}, left_s = CELL_S;
    *c = (struct cells){0};
    srand(11);
    assert_int_equal(nrg_gram_grow(&c->gram, CLASSES), 0);
    for (size_t at = 0; c->gram.rows < CELLS; at = (at + 1) % CLASSES) {
        double s = p->length_s[at] * (1 + p->jitter * (2 * random_part() - 1));
        c->next[nrg_packed(at, (at + 1) % CLASSES)]++;
        for (; s > left_s - 1e-9; left_s = CELL_S) {
            x[at] += left_s;
            s = fmax(s - left_s, 0);
            end_cell(c, x, cpus);
        }
        x[at] += s;
        left_s -= s;
    }
}

static struct nrg_when fit(const struct program *p, const double *cpus, double most2,
                           struct nrg_arena *memory)
{
    struct cells c;
    struct nrg_when when;
    run(&c, p, cpus);
    struct nrg_when_cells cells = {&c.gram, c.open_s, c.next, most2};
    assert_int_equal(nrg_when_fit(&when, &cells, memory), 0);
    nrg_gram_release(&c.gram);
    return when;
}

static double error_of(const struct nrg_when *when, size_t c)
{
    return sqrt(when->covariance[nrg_packed(when->part[c], when->part[c])]);
}

static void cells_tell_in_which_class_a_worker_runs(void **state)
{
    (void)state;
    struct nrg_arena memory = {0};
    const struct program p = {{0.03, 0.02, 0.025, 0.005}, 0.2};
    const double cpus[CLASSES] = {1, 0, 0, 0};
    struct nrg_when when = fit(&p, cpus, 0.2, &memory);
    assert_true(when.differs);
    for (size_t c = 0; c < CLASSES; c++) {
        assert_true(fabs(when.rate[c] - cpus[c]) < 0.02);
        assert_true(error_of(&when, c) < 0.05);
    }
    nrg_arena_release(&memory);
}

static void one_that_runs_always_has_one_rate(void **state)
{
    (void)state;
    struct nrg_arena memory = {0};
    const struct program p = {{0.03, 0.02, 0.025, 0.005}, 0.2};
    const double cpus[CLASSES] = {0.4, 0.4, 0.4, 0.4};
    struct nrg_when when = fit(&p, cpus, 0.24, &memory);
    assert_false(when.differs);
    assert_true(fabs(when.rate[0] - 0.4) < 0.01);
    assert_true(error_of(&when, 0) < 0.05);
    nrg_arena_release(&memory);
}

/* All cells hold the same: the worker may run in any class, and intervals are as wide as that. */
static void cells_that_are_alike_leave_it_open(void **state)
{
    (void)state;
    struct nrg_arena memory = {0};
    const struct program p = {{0.004, 0.003, 0.002, 0.001}, 0};
    const double cpus[CLASSES] = {1, 0, 0, 0};
    struct nrg_when when = fit(&p, cpus, 0.24, &memory);
    assert_false(when.differs);
    assert_true(fabs(when.rate[0] - 0.4) < 0.01);
    assert_true(error_of(&when, 2) > 0.4);
    nrg_arena_release(&memory);
}

static void nothing_is_said_of_few_cells_or_of_none_who_run(void **state)
{
    (void)state;
    struct nrg_arena memory = {0};
    struct nrg_gram gram = {0};
    double open_s[CLASSES] = {1, 1, 1, 1}, next[CLASSES * (CLASSES + 1) / 2] = {0};
    struct nrg_when_cells cells = {&gram, open_s, next, 0.1};
    struct nrg_when when;
    assert_int_equal(nrg_gram_grow(&gram, CLASSES), 0);
    assert_int_equal(nrg_when_fit(&when, &cells, &memory), 0);
    assert_true(!when.rate && !when.differs);
    for (int i = 0; i < CELLS; i++)
        nrg_gram_add(&gram, open_s, NULL, 0, 0, 1);
    assert_int_equal(nrg_when_fit(&when, &cells, &memory), 0);
    assert_true(!when.rate && !when.differs);
    nrg_gram_release(&gram);
    nrg_arena_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_tell_in_which_class_a_worker_runs),
        cmocka_unit_test(one_that_runs_always_has_one_rate),
        cmocka_unit_test(cells_that_are_alike_leave_it_open),
        cmocka_unit_test(nothing_is_said_of_few_cells_or_of_none_who_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
