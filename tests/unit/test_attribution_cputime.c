/*
 * attribute/cputime: energy of spans where the source is a model of CPU time. All of it in closed
 * form: 2 J per CPU second above 1 W of idle power.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/cputime/cputime.h"
#include "support/attributed.h"

#define LOW  0.9 /* the band, times the energy */
#define HIGH 1.2

static const struct nrg_attribution_options automatic = {.idle_w = NAN};

/* Two CPUs are busy: 1 W idle + 2 * 2 W. */
static int64_t start(struct made *m, double process_cpus)
{
    made_init(m);
    made_estimate(m, -1, 11, 5, 1, LOW, HIGH);
    made_busy(m, -1, 11, 2);
    made_process(m, 7, -1, 11, process_cpus);
    made_run(m, "run", 0, 10);
    return made_track(m, "thread", 7, 7, "");
}

/* A span of length_s in each tenth of a second. */
static void tenths(struct made *m, int64_t track, int64_t name, double from_s, double length_s)
{
    for (int i = 0; i < 100; i++)
        made_span(m, 0.1 * i + from_s, 0.1 * i + from_s + length_s, track, name);
}

static void check_row(const struct nrg_attribution_row *row, double energy_j, double least_j,
                      double most_j)
{
    double ticks_j = 0.01 + 0.01 * energy_j; /* 3 % of a cell, of 100 cells, at 95 % */
    close_to(row->energy_j, energy_j, 0.01, row->name);
    close_to(row->low_j, least_j, ticks_j, "low");
    close_to(row->high_j, most_j, ticks_j, "high");
    close_to(row->scaled_low_j, least_j * LOW, ticks_j, "low with the scale");
    close_to(row->scaled_high_j, most_j * HIGH, ticks_j, "high with the scale");
}

/* Half of the thread's time is CPU time: it may lie inside or outside the spans. */
static void bounds_of_a_thread_that_waits(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t track = start(&m, 0.5);
    made_thread(&m, track, -1, 11, 0.5);
    tenths(&m, track, made_name(&m, "module", "net"), 0.01, 0.06);
    attribute(&m, &automatic, &a);
    assert_int_equal(a.method, NRG_METHOD_CPU_TIME);
    assert_string_equal(nrg_method_name(a.method), "cpu-time");
    assert_non_null(strstr(a.domains[0].why, "model of CPU time"));
    check_row(row(&a, "net"), 10, 2, 10);
    close_to(a.idle_j, 10, 1e-3, "idle");
    close_to(a.other_processes_j, 30, 1e-3, "others: 1.5 of 2 CPUs");
    close_to(a.unattributed_j, 0, 1e-2, "outside of the spans it may have waited");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A thread that never waits has no choice. The band alone is no reason for a flag. */
static void a_busy_thread_is_known(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t track = start(&m, 1);
    made_thread(&m, track, -1, 11, 1);
    tenths(&m, track, made_name(&m, "module", "net"), 0.01, 0.06);
    attribute(&m, &automatic, &a);
    check_row(row(&a, "net"), 12, 12, 12);
    assert_int_equal(row(&a, "net")->flags, 0);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Two rows share each interval: neither is known, what holds both is. */
static void a_whole_is_better_known_than_its_parts(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_attribution_options o = automatic;
    (void)state;
    int64_t track = start(&m, 0.5);
    int64_t net = made_name(&m, "module", "net"), one = made_name(&m, "module", "net.one"),
            two = made_name(&m, "module", "net.two");
    made_thread(&m, track, -1, 11, 0.5);
    made_begin(&m, 0, track, net);
    for (int i = 0; i < 100; i++) {
        made_span(&m, 0.1 * i + 0.01, 0.1 * i + 0.05, track, one);
        made_span(&m, 0.1 * i + 0.05, 0.1 * i + 0.09, track, two);
    }
    made_end(&m, 10, track);
    for (int by = 0; by < 2; by++) {
        o.by = by ? NRG_BY_MODULE : NRG_BY_PATH;
        attribute(&m, &o, &a);
        check_row(row(&a, "net"), 10, 10, 10);
        check_row(row(&a, "net.one"), 4, 0, 8);
        assert_int_equal(row(&a, "net")->flags, 0);
        assert_int_equal(row(&a, "net.one")->flags, NRG_ROW_UNRESOLVED);
        nrg_attribution_release(&a);
    }
    o.by = NRG_BY_NAME;
    attribute(&m, &o, &a);
    check_row(row(&a, "net"), 10, 10, 10);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Where the thread's CPU time is read at the edges of spans, nothing is left open. */
static void readings_at_edges_make_it_exact(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t track = start(&m, 0.5), name = made_name(&m, "module", "net");
    for (int i = 0; i < 100; i++) { /* it works in the spans, 30 of 60 ms, and 20 ms before them */
        double t_s = 0.1 * i;
        made_thread_row(&m, track, t_s, 0.05 * i);
        made_thread_row(&m, track, t_s + 0.03, 0.05 * i + 0.02);
        made_thread_row(&m, track, t_s + 0.09, 0.05 * i + 0.05);
        made_span(&m, t_s + 0.03, t_s + 0.09, track, name);
    }
    made_thread_row(&m, track, 10, 5);
    attribute(&m, &automatic, &a);
    check_row(row(&a, "net"), 6, 6, 6);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Readings of the kernel's, of a thread that runs, are up to a tick old: those that can't be true
 * beside the thread's own do no harm. */
static void old_readings_are_left_out(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t track = start(&m, 0.5), name = made_name(&m, "module", "net");
    for (int i = 0; i < 100; i++) { /* it works in the second half of each tenth, in the span */
        double t_s = 0.1 * i;
        made_thread_row(&m, track, t_s, 0.05 * i);
        made_thread_row(&m, track, t_s + 0.001, 0.05 * i - 0.003); /* lower than the one before */
        made_thread_row(&m, track, t_s + 0.05, 0.05 * i);
        made_thread_row(&m, track, t_s + 0.07, 0.05 * i + 0.016); /* 4 ms late */
        made_span(&m, t_s + 0.05, t_s + 0.1, track, name);
    }
    made_thread_row(&m, track, 10, 5);
    attribute(&m, &automatic, &a);
    check_row(row(&a, "net"), 10, 10, 10);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* More readings than are kept: some are left out, and what they told with them. */
static void too_many_readings_are_thinned(void **state)
{
    enum { ROWS = 1200000 };
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t track = start(&m, 0.5);
    for (int i = 0; i <= ROWS; i++)
        made_thread_row(&m, track, 10.0 * i / ROWS, 5.0 * i / ROWS);
    tenths(&m, track, made_name(&m, "module", "net"), 0.01, 0.06);
    attribute(&m, &automatic, &a);
    close_to(row(&a, "net")->energy_j, 6, 0.2, "net");
    assert_true(row(&a, "net")->low_j > 5 && row(&a, "net")->high_j < 7);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A pool of workers follows the thread that has the spans, within what a tick can tell. */
static void threads_without_spans_follow(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t track = start(&m, 1.5);
    made_thread(&m, track, -1, 11, 1);
    tenths(&m, track, made_name(&m, "module", "net"), 0.01, 0.06);
    attribute(&m, &automatic, &a);
    /* Its own 0.06 s per tenth, and of the workers' 0.05 s between 0.01 and 0.05 s. */
    check_row(row(&a, "net"), 12 + 10, 12 + 2, 12 + 10);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A thread that sleeps in a span has nobody working for it. */
static void workers_follow_the_one_that_works(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t track = start(&m, 1.5), other = made_track(&m, "thread", 7, 8, "");
    made_thread(&m, track, -1, 11, 1);
    made_thread(&m, other, -1, 11, 0);
    made_span(&m, 0, 10, track, made_name(&m, "module", "works"));
    made_span(&m, 0, 10, other, made_name(&m, "module", "waits"));
    attribute(&m, &automatic, &a);
    close_to(row(&a, "works")->energy_j, 30, 1e-2, "works");
    close_to(row(&a, "waits")->energy_j, 0, 1e-2, "waits");
    nrg_attribution_release(&a);
    made_release(&m);
}

static void idle_is_shared_by_time(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_attribution_options o = automatic;
    (void)state;
    o.idle = NRG_IDLE_SHARE;
    int64_t track = start(&m, 1);
    made_thread(&m, track, -1, 11, 1);
    tenths(&m, track, made_name(&m, "module", "net"), 0.01, 0.06);
    attribute(&m, &o, &a);
    check_row(row(&a, "net"), 18, 18, 18);
    nrg_attribution_release(&a);
    made_release(&m);
}

static void without_cpu_times_it_integrates(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    made_init(&m);
    made_estimate(&m, -1, 11, 5, 1, LOW, HIGH);
    made_run(&m, "run", 0, 10);
    made_span(&m, 1, 9, made_track(&m, "thread", 7, 7, ""), made_name(&m, "module", "net"));
    attribute(&m, &automatic, &a);
    assert_int_equal(a.method, NRG_METHOD_INTEGRATE);
    assert_non_null(strstr(a.domains[0].why, "the recording has none"));
    close_to(row(&a, "net")->energy_j, 32, 1e-2, "by time");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* What a thread did before its first span is not that of threads without spans, which would count
 * to those that others have open. */
static void work_before_a_first_span_is_outside(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    int64_t first = start(&m, 1), second = made_track(&m, "thread", 7, 8, "");
    made_thread(&m, first, -1, 11, 0.5);
    tenths(&m, first, made_name(&m, "module", "net"), 0, 0.1);
    for (int i = 0; i <= 59; i++) /* from 5.05 s on; half a CPU since the process began, at -1 s */
        made_thread_row(&m, second, 5.05 + 0.1 * i, 3.025 + 0.05 * i);
    made_span(&m, 5.05, 9.95, second, made_name(&m, "module", "late"));
    attribute(&m, &automatic, &a);
    close_to(row(&a, "net")->energy_j, 10, 0.05, "half a CPU");
    close_to(row(&a, "late")->energy_j, 4.9, 0.05, "the same, from its span on");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* CPU time that has no other place is that of a span which seemed never to work. */
static void a_rate_of_nothing_loses_nothing(void **state)
{
    uint32_t column_of[] = {0};
    double call_s[] = {0.01}, rate[] = {0, 0, 1};
    struct nrg_cpu_entry entry = {.open_s = 0.01f, .calls = 1};
    struct nrg_cpu_slot slot = {.width_s = 0.01f, .cpu_s = 0.004f, .open_s = 0.01f, .threads = 1};
    struct nrg_cpu_time times = {
        .slots = &slot, .entries = &entry, .n_slots = 1, .n_entries = 1, .cpus = 2};
    (void)state;
    times.rates[NRG_CPU_THREAD] = (struct nrg_cpu_rates){
        .n = 3, .n_own = 1, .column_of = column_of, .call_s = call_s, .rate = rate};
    nrg_cpu_divide(&times);
    close_to((double)entry.own_s, 0.004, 1e-6, "all of it");
}

static void a_sensor_is_refused(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_error err = {0};
    struct nrg_attribution_options o = automatic;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    o.method = NRG_METHOD_CPU_TIME;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 5);
    made_run(&m, "run", 0, 10);
    made_span(&m, 1, 9, made_track(&m, "thread", 7, 7, ""), made_name(&m, "module", "net"));
    made_open(&m);
    assert_int_equal(nrg_attribution_make(&a, m.recording, &o, &err), -EINVAL);
    assert_non_null(strstr(err.what, "package-0"));
    assert_non_null(strstr(err.what, "integrate or regress"));
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_of_a_thread_that_waits),
        cmocka_unit_test(a_busy_thread_is_known),
        cmocka_unit_test(a_whole_is_better_known_than_its_parts),
        cmocka_unit_test(readings_at_edges_make_it_exact),
        cmocka_unit_test(old_readings_are_left_out),
        cmocka_unit_test(too_many_readings_are_thinned),
        cmocka_unit_test(threads_without_spans_follow),
        cmocka_unit_test(workers_follow_the_one_that_works),
        cmocka_unit_test(idle_is_shared_by_time),
        cmocka_unit_test(without_cpu_times_it_integrates),
        cmocka_unit_test(work_before_a_first_span_is_outside),
        cmocka_unit_test(a_rate_of_nothing_loses_nothing),
        cmocka_unit_test(a_sensor_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
