/*
 * attribute/regress/load/together.c: power of threads that does not add up, with powers that are
 * known in closed form. Threads work and sleep at random; each stretch between two edges has one
 * power.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/internal.h"

#define MS        1000000LL
#define ZERO      (1000 * 1000 * MS)
#define RUN_NS    (30000 * MS)
#define READ_NS   (10 * MS)
#define READINGS  3001
#define THREADS   3
#define PER       2 /* classes of a thread */
#define CLASSES   (THREADS * PER)
#define MAX_CALLS 40000
#define IDLE_W    12.0

struct call {
    int64_t begin_ns, end_ns;
    size_t class_;
};

struct machine {
    struct call calls[MAX_CALLS];
    size_t n;
    double sum_j[READINGS];
    double truth_j[CLASSES], time_s[CLASSES];
    double turbo, uncore_w;
};

static const double power_w[CLASSES] = {10, 25, 16, 9, 30, 14};

static uint32_t dice;

static double roll(void)
{
    dice = dice * 1664525u + 1013904223u;
    return (double)(dice >> 8) / 16777216.0;
}

static int by_begin(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Classes of each thread in turn, 1 to 4 ms each, and then it rests for up to 6. */
static void run_threads(struct machine *m)
{
    for (size_t thread = 0; thread < THREADS; thread++) {
        int64_t at = ZERO + (int64_t)(roll() * MS);
        for (size_t c = 0; at < ZERO + RUN_NS - 20 * MS; c = (c + 1) % PER) {
            int64_t end = at + (int64_t)((1 + 3 * roll()) * MS);
            m->calls[m->n++] = (struct call){at, end, thread * PER + c};
            at = end + (c == PER - 1 ? (int64_t)(6 * roll() * MS) : 0);
        }
    }
    qsort(m->calls, m->n, sizeof *m->calls, by_begin);
}

/* Adds the energy of a stretch with these calls open to the readings. */
static void draw(struct machine *m, const struct call *open, size_t n, int64_t from, int64_t to)
{
    double less = n ? 1 / (1 + m->turbo * ((double)n - 1)) : 1, w = IDLE_W;
    for (size_t i = 0; i < n; i++) {
        double own_w = power_w[open[i].class_] * less + m->uncore_w / (double)n;
        m->truth_j[open[i].class_] += own_w * (double)(to - from) / 1e9;
        m->time_s[open[i].class_] += (double)(to - from) / 1e9;
        w += own_w;
    }
    while (from < to) {
        int64_t reading = (from - ZERO) / READ_NS + 1, end = ZERO + reading * READ_NS;
        end = end < to ? end : to;
        if (reading < READINGS)
            m->sum_j[reading] += w * (double)(end - from) / 1e9;
        from = end;
    }
}

static void measure(struct machine *m)
{
    struct call open[THREADS + 1];
    size_t n = 0, next = 0;
    int64_t at = ZERO;
    while (at < ZERO + RUN_NS) {
        int64_t to = next < m->n ? m->calls[next].begin_ns : ZERO + RUN_NS;
        for (size_t i = 0; i < n;) {
            if (open[i].end_ns <= at) {
                open[i] = open[--n];
                continue;
            }
            to = open[i].end_ns < to ? open[i].end_ns : to;
            i++;
        }
        draw(m, open, n, at, to);
        at = to;
        while (next < m->n && m->calls[next].begin_ns <= at)
            open[n++] = m->calls[next++];
        for (size_t i = 0; i < n;) /* one thread's call ends where its next one begins */
            if (open[i].end_ns <= at)
                open[i] = open[--n];
            else
                i++;
    }
    for (size_t i = 1; i < READINGS; i++)
        m->sum_j[i] += m->sum_j[i - 1];
}

static void regress(const struct machine *m, bool adds_up, size_t held,
                    struct nrg_regress_result *result)
{
    int64_t t_ns[READINGS];
    uint8_t gap[READINGS] = {0};
    double sum_j[READINGS];
    for (size_t i = 0; i < READINGS; i++)
        t_ns[i] = ZERO + (int64_t)i * READ_NS;
    memcpy(sum_j, m->sum_j, sizeof sum_j);
    struct nrg_timeline tl = {
        .n = READINGS, .t_ns = t_ns, .sum_j = sum_j, .gap = gap, .period_ns = READ_NS};
    struct nrg_channel channel = {
        .name = "package-0", .quantity = NRG_ENERGY, .kind = NRG_COUNTER, .scale = 1};
    struct nrg_regress_options o = {.timeline = &tl,
                                    .channel = &channel,
                                    .begin_ns = ZERO,
                                    .end_ns = ZERO + RUN_NS,
                                    .n_classes = CLASSES + 1,
                                    .others_class = CLASSES,
                                    .adds_up = adds_up,
                                    .held = held,
                                    .idle_w = IDLE_W,
                                    .idle_error_w = 0.01 * IDLE_W,
                                    .confidence = 0.95};
    for (size_t i = 0; i < NRG_IDLE_HEAT; i++)
        o.idle_shape_w[i] = 0.15 * IDLE_W / (double)(1 + i * i);
    struct nrg_regress *r;
    assert_int_equal(nrg_regress_new(&o, &r), 0);
    for (size_t i = 0; i < m->n; i++)
        assert_int_equal(
            nrg_regress_slice(r, &(struct nrg_class_activity){.begin_ns = m->calls[i].begin_ns,
                                                              .end_ns = m->calls[i].end_ns,
                                                              .class_ = m->calls[i].class_,
                                                              .rate = 1}),
            0);
    assert_int_equal(nrg_regress_solve(r, result), 0);
    nrg_regress_free(r);
}

/* The largest error of a class's power, as a part of it. */
static double worst(const struct machine *m, const struct nrg_regress_result *r)
{
    double most = 0;
    for (size_t c = 0; c < CLASSES; c++) {
        double truth_w = m->truth_j[c] / m->time_s[c];
        most = fmax(most, fabs(r->classes[c].power_w / truth_w - 1));
    }
    return most;
}

static struct machine *new_machine(double turbo, double uncore_w)
{
    struct machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    dice = 4711;
    m->turbo = turbo;
    m->uncore_w = uncore_w;
    run_threads(m);
    measure(m);
    return m;
}

/* Powers come back where they bend, and a regression that only adds up is far off. */
static void check(double turbo, double uncore_w, size_t held, double part)
{
    struct machine *m = new_machine(turbo, uncore_w);
    struct nrg_regress_result with, without;
    regress(m, true, held, &with);
    regress(m, false, held, &without);
    if (!(worst(m, &with) < part))
        fail_msg("off by %g", worst(m, &with));
    assert_true(worst(m, &without) > 0.05);
    assert_true(fabs(with.idle_off_w) < 0.01 && fabs(without.idle_off_w) > 0.1);
    for (size_t c = 0; !held && c < CLASSES; c++) {
        double truth_w = m->truth_j[c] / m->time_s[c];
        assert_true(with.classes[c].low_w <= truth_w && truth_w <= with.classes[c].high_w);
    }
    nrg_regress_result_release(&with);
    nrg_regress_result_release(&without);
    free(m);
}

static void an_uncore_draws_once(void **state)
{
    (void)state;
    check(0, 6, 0, 1e-4);
}

static void turbo_falls_with_more_cpus(void **state)
{
    (void)state;
    check(0.12, 0, 0, 1e-3);
}

static void both_at_once(void **state)
{
    (void)state;
    check(0.08, 5, 0, 2e-3);
}

/* Slices that are not all held at once: what classes have of the bend is known from those that are.
 */
static void streams(void **state)
{
    (void)state;
    check(0.12, 0, 6000, 5e-3);
}

/* A model that is wrong makes idle power what it can't be: then all that this moves is doubted. */
static void idle_power_that_cannot_be_widens_rows(void **state)
{
    struct machine *m = new_machine(0.3, 8);
    struct nrg_regress_result r;
    double low_j = 0, high_j = 0, truth_j = 0;
    (void)state;
    regress(m, false, 0, &r);
    assert_true(r.idle_off_w > 0.3 * IDLE_W);
    for (size_t c = 0; c < CLASSES; c++) {
        low_j += r.classes[c].low_w * m->time_s[c];
        high_j += r.classes[c].high_w * m->time_s[c];
        truth_j += m->truth_j[c];
    }
    assert_true(low_j < truth_j && truth_j < high_j);
    nrg_regress_result_release(&r);
    free(m);
}

/* Where power adds up, it makes no difference. */
static void what_adds_up_stays(void **state)
{
    struct machine *m = new_machine(0, 0);
    struct nrg_regress_result with, without;
    (void)state;
    regress(m, true, 0, &with);
    regress(m, false, 0, &without);
    assert_true(worst(m, &with) < 1e-4);
    for (size_t c = 0; c < CLASSES; c++)
        assert_true(fabs(with.classes[c].power_w / without.classes[c].power_w - 1) < 1e-6);
    nrg_regress_result_release(&with);
    nrg_regress_result_release(&without);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_uncore_draws_once),
        cmocka_unit_test(turbo_falls_with_more_cpus),
        cmocka_unit_test(both_at_once),
        cmocka_unit_test(streams),
        cmocka_unit_test(what_adds_up_stays),
        cmocka_unit_test(idle_power_that_cannot_be_widens_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
