/*
 * attribute/attribution.c: who gets what of the energy, on recordings whose joules per span are
 * known in closed form.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/attributed.h"

/* 50 W; step from 1 to 3 with two layers inside, of 0.5 s each. */
static void constant_power(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 50);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t step = made_name(&m, "step", "step"), conv = made_name(&m, "module", "conv"),
            fc = made_name(&m, "module", "fc");
    made_begin(&m, 1, track, step);
    made_span(&m, 1.25, 1.75, track, conv);
    made_span(&m, 2, 2.5, track, fc);
    made_end(&m, 3, track);
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_rows, 3);
    close_to(a.total_j, 500, 1e-4, "total");
    close_to(row(&a, "step")->energy_j, 100, 1e-4, "step");
    close_to(row(&a, "step")->energy_self_j, 50, 1e-4, "step itself");
    close_to(row(&a, "conv")->energy_j, 25, 1e-4, "conv");
    close_to(row(&a, "fc")->time_s, 0.5, 1e-9, "time of fc");
    close_to(row(&a, "step")->time_s, 2, 1e-9, "time of step");
    close_to(a.unattributed_j, 400, 1e-3, "unattributed");
    assert_int_equal(row(&a, "conv")->parent, 0);
    assert_int_equal(row(&a, "conv")->calls, 1);
    assert_int_equal(a.spans, 3);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Two threads of one process, 0.75 and 0.25 CPUs, both with a span open all the time; a third
 * without spans follows them. */
static void threads_share_by_cpu_time(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 40);
    made_run(&m, "run", 0, 10);
    made_busy(&m, -1, 11, 2);
    made_process(&m, 7, -1, 11, 2);
    int64_t one = made_track(&m, "thread", 7, 7, ""), two = made_track(&m, "thread", 7, 8, "");
    int64_t first = made_name(&m, "span", "first"), second = made_name(&m, "span", "second"),
            alone = made_name(&m, "span", "alone");
    made_thread(&m, one, -1, 11, 0.75);
    made_thread(&m, two, -1, 11, 0.25);
    made_span(&m, 1, 5, one, first);
    made_span(&m, 1, 5, two, second);
    made_span(&m, 6, 8, two, alone);
    attribute(&m, &plain, &a);
    close_to(row(&a, "first")->energy_j, 120, 1e-3, "first");
    close_to(row(&a, "second")->energy_j, 40, 1e-3, "second");
    close_to(row(&a, "alone")->energy_j, 80, 1e-3, "alone");
    close_to(a.unattributed_j, 400 - 240, 1e-3, "unattributed");
    close_to(a.other_processes_j, 0, 1e-4, "others");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Without CPU times, tracks that are open at once share equally. */
static void tracks_without_cpu_time_share_equally(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 40);
    made_run(&m, "run", 0, 10);
    int64_t first = made_name(&m, "span", "first"), second = made_name(&m, "span", "second");
    int64_t one = made_track(&m, "log", 0, 0, ""), two = made_track(&m, "log", 0, 0, "");
    made_span(&m, 1, 5, one, first);
    made_span(&m, 3, 7, two, second);
    attribute(&m, &plain, &a);
    close_to(row(&a, "first")->energy_j, 120, 1e-4, "first");
    close_to(row(&a, "second")->energy_j, 120, 1e-4, "second");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* 2 CPUs busy: 1 of process 7, 0.5 of process 8, 0.25 of a child without spans, 0.25 of others. */
static void processes_share_by_cpu_time(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 40);
    made_run(&m, "run", 0, 10);
    made_busy(&m, -1, 11, 2);
    made_process(&m, 7, -1, 11, 1);
    made_process(&m, 8, -1, 11, 0.5);
    made_process(&m, 9, -1, 11, 0.25);
    int64_t one = made_track(&m, "thread", 7, 7, ""), two = made_track(&m, "thread", 8, 8, "");
    made_span(&m, 0, 10, one, made_name(&m, "span", "seven"));
    made_span(&m, 0, 5, two, made_name(&m, "span", "eight"));
    attribute(&m, &plain, &a);
    /* Of the others' first half ms nobody can say whether it is rounding. */
    close_to(row(&a, "seven")->energy_j, 200, 1e-2, "seven");
    close_to(row(&a, "eight")->energy_j, 50, 1e-2, "eight");
    close_to(a.other_processes_j, 50, 2e-2, "others");
    close_to(a.unattributed_j, 100, 1e-2, "unattributed");
    nrg_attribution_release(&a);
    made_release(&m);
}

static double half_busy_s(void *arg, double t_s)
{
    return *(double *)arg * (t_s + 1) + (t_s > 5 ? t_s - 5 : 0);
}

/* Busy: the background all the time, one CPU more from 5 s on. */
static void busy_later(struct made *m, double background)
{
    struct nrg_channel c = made_counter("cpu.busy");
    c.quantity = NRG_SECONDS;
    c.covers_cpu = false;
    made_power(m, &c, -1, 11, 0.1, half_busy_s, NULL, &background);
}

static double burn_s(void *arg, double t_s)
{
    (void)arg;
    return t_s > 5 ? t_s - 5 : 0;
}

/* A process that sleeps up to 5 s and burns a CPU from then on. */
static void sleep_and_burn(struct made *m, int64_t *track)
{
    int64_t id = made_process(m, 7, -1, -0.9, 0);
    *track = made_track(m, "thread", 7, 7, "");
    for (int i = 2; i <= 120; i++) {
        double t_s = -1 + i * 0.1;
        int64_t cells[] = {id, (int64_t)llround(burn_s(NULL, t_s) * 1e9), 1 << 20, 1};
        assert_int_equal(nrg_rows_add(&m->processes, made_ns(t_s), 0, cells), 0);
        int64_t thread[] = {*track, cells[1]};
        assert_int_equal(nrg_rows_add(&m->threads, made_ns(t_s), 0, thread), 0);
    }
}

/* The bar: constant power, idle shared: sleeping costs as much as burning, and others, who are busy
 * all the time, take nothing of it. */
static void sleeping_spans_share_idle(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    int64_t track;
    (void)state;
    o.idle = NRG_IDLE_SHARE;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.001, 50);
    made_run(&m, "run", 0, 10);
    busy_later(&m, 0.5);
    sleep_and_burn(&m, &track);
    made_span(&m, 1, 4, track, made_name(&m, "module", "sleep"));
    made_span(&m, 6, 9, track, made_name(&m, "module", "burn"));
    attribute(&m, &o, &a);
    close_to(row(&a, "sleep")->energy_j, 150, 0.1, "sleep");
    close_to(row(&a, "burn")->energy_j, 150, 0.1, "burn");
    close_to(a.unattributed_j, 200, 0.2, "unattributed");
    close_to(a.idle_j, 0, 0, "idle");
    assert_string_equal(a.domains[0].idle_source, "constant power");
    nrg_attribution_release(&a);
    o.idle = NRG_IDLE_APART;
    attribute(&m, &o, &a);
    close_to(a.idle_j, 500, 0.1, "all is idle");
    nrg_attribution_release(&a);
    made_release(&m);
}

static double server_j(void *arg, double t_s)
{
    (void)arg;
    return 200 * (t_s + 1) + 5 * burn_s(NULL, t_s);
}

/* 5 W of a CPU on a server of 200 W are not idle power because they are few. */
static void little_above_idle_is_not_idle(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    int64_t track;
    (void)state;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.01, server_j, NULL, NULL);
    made_run(&m, "run", 0, 10);
    busy_later(&m, 0);
    sleep_and_burn(&m, &track);
    made_span(&m, 6, 9, track, made_name(&m, "module", "burn"));
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].idle_source, "regression");
    close_to(row(&a, "burn")->energy_j, 15, 0.5, "burn");
    nrg_attribution_release(&a);
    made_release(&m);
}

static double never_rests_j(void *arg, double t_s)
{
    (void)arg;
    return 30 * (t_s + 1);
}

/* Power that ignores others, beside a program that never rests, says nothing of the program. */
static void others_of_no_watts_make_nothing_idle(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.01, never_rests_j, NULL, NULL);
    made_run(&m, "run", 0, 10);
    busy_later(&m, 1);
    int64_t id = made_process(&m, 7, -1, -0.9, 0), track = made_track(&m, "thread", 7, 7, "");
    for (int i = 2; i <= 120; i++) {
        int64_t cells[] = {id, i * INT64_C(100000000), 1 << 20, 1}, thread[] = {track, cells[1]};
        assert_int_equal(nrg_rows_add(&m.processes, made_ns(-1 + i * 0.1), 0, cells), 0);
        assert_int_equal(nrg_rows_add(&m.threads, made_ns(-1 + i * 0.1), 0, thread), 0);
    }
    made_span(&m, 2, 8, track, made_name(&m, "module", "burn"));
    attribute(&m, &o, &a);
    assert_string_not_equal(a.domains[0].idle_source, "constant power");
    assert_true(row(&a, "burn")->high_j > 100);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Each of several short spans may have all of the reading that they lie in; together they can't. */
static void what_is_no_operator_stays_within_the_total(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    double sum_j = 0;
    (void)state;
    made_init(&m);
    c.update_ns = 1000000000;
    made_constant(&m, &c, -1, 3, 1, 30);
    made_run(&m, "run", 0, 2);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    for (int i = 0; i < 6; i++)
        made_span(&m, 0.2 + i * 0.1, 0.28 + i * 0.1, track, made_name(&m, "module", names[i]));
    attribute(&m, &plain, &a);
    for (size_t i = 0; i < a.n_rows; i++)
        sum_j += a.rows[i].self_high_j;
    assert_true(sum_j > a.total_high_j);
    assert_int_equal(nrg_attribution_list(&a, true), 0);
    assert_int_equal(a.n_rows, 1);
    assert_true(a.rows[0].high_j <= a.total_high_j && a.rows[0].high_j >= a.rows[0].energy_j);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Busy all the time: idle can't be told, and the least power stands in. */
static void constant_load_shares_idle_too(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    int64_t track;
    (void)state;
    o.idle = NRG_IDLE_SHARE;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.001, 50);
    made_run(&m, "run", 0, 10);
    made_busy(&m, -1, 11, 4);
    sleep_and_burn(&m, &track);
    made_span(&m, 1, 4, track, made_name(&m, "module", "sleep"));
    made_span(&m, 6, 9, track, made_name(&m, "module", "burn"));
    attribute(&m, &o, &a);
    close_to(row(&a, "sleep")->energy_j, 150, 0.1, "sleep");
    close_to(row(&a, "burn")->energy_j, 150, 0.1, "burn");
    nrg_attribution_release(&a);
    made_release(&m);
}

static double loaded_j(void *arg, double t_s)
{
    (void)arg;
    return 10 * (t_s + 1) + 20 * half_busy_s(&(double){0.5}, t_s);
}

/* 10 W idle, 20 W per busy CPU: idle is found, the workload has 20 W while it burns, others 10 W.
 */
static void idle_by_regression(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    int64_t track;
    (void)state;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.01, loaded_j, NULL, NULL);
    made_run(&m, "run", 0, 10);
    busy_later(&m, 0.5);
    sleep_and_burn(&m, &track);
    made_span(&m, 1, 4, track, made_name(&m, "module", "sleep"));
    made_span(&m, 6, 9, track, made_name(&m, "module", "burn"));
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].idle_source, "regression");
    close_to(a.domains[0].idle_w, 10, 0.05, "idle power");
    close_to(a.idle_j, 100, 0.5, "idle");
    close_to(row(&a, "sleep")->energy_j, 0, 0.1, "sleep");
    close_to(row(&a, "burn")->energy_j, 60, 0.5, "burn");
    close_to(a.other_processes_j, 100, 1, "others");
    nrg_attribution_release(&a);
    o.idle_w = 5;
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].idle_source, "given");
    close_to(a.idle_j, 50, 1e-6, "given idle");
    nrg_attribution_release(&a);
    o.idle_w = NAN;
    o.idle = NRG_IDLE_SHARE;
    attribute(&m, &o, &a);
    close_to(row(&a, "sleep")->energy_j, 30, 0.3, "sleep shares");
    close_to(row(&a, "burn")->energy_j, 90, 0.6, "burn shares");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* 10 W up to t = 5, then 30 W. */
static double stepped_j(void *arg, double t_s)
{
    (void)arg;
    return 10 * (t_s + 1) + (t_s > 5 ? 20 * (t_s - 5) : 0);
}

/* The baseline's power is idle power, and the baseline is not part of the run. */
static void idle_by_baseline(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.1, stepped_j, NULL, NULL);
    made_run(&m, "baseline", 0, 4);
    made_run(&m, "run", 6, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 7, 9, track, made_name(&m, "span", "work"));
    attribute(&m, &o, &a);
    close_to(a.total_j, 120, 1e-4, "total");
    close_to(a.idle_j, 40, 1e-4, "idle");
    close_to(row(&a, "work")->energy_j, 40, 1e-4, "work");
    assert_string_equal(a.domains[0].idle_source, "baseline");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Kernels on a GPU's track stand below the operator that launched them and have the GPU's energy;
 * the operator's thread has the processors'. */
static void gpu_track(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel cpu = made_counter("package-0"), gpu = made_gauge("gpu-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &cpu, -1, 11, 0.1, 20);
    made_constant(&m, &gpu, -1, 11, 0.1, 100);
    made_run(&m, "run", 0, 10);
    int64_t host = made_track(&m, "thread", 7, 7, ""),
            device = made_track(&m, "gpu", 7, 0, "gpu-0");
    int64_t op = made_name(&m, "operator", "matmul"), kernel = made_name(&m, "kernel", "sgemm");
    int64_t path = made_path(&m, 0, op);
    made_span(&m, 1, 2, host, op);
    made_event(&m, 3, device, NRG_SPAN_BEGIN, kernel, NRG_MISSING, path);
    made_end(&m, 7, device);
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_domains, 2);
    assert_int_equal(a.n_rows, 2);
    assert_int_equal(row(&a, "sgemm")->parent, 0);
    close_to(row(&a, "sgemm")->energy_j, 400, 1e-3, "kernel");
    close_to(row(&a, "matmul")->energy_self_j, 20, 1e-3, "operator itself");
    close_to(row(&a, "matmul")->energy_j, 420, 1e-3, "operator with kernel");
    close_to(row(&a, "matmul")->time_s, 5, 1e-9, "time");
    close_to(a.total_j, 1200, 1e-3, "total");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A kernel's row for ten seconds at 100 W, a quarter of which the driver says is ours: sizes of us
 * and of a stranger, mig: of instances. */
static void attribute_shared_gpu(const int64_t *sizes, bool mig, struct made *m,
                                 struct nrg_attribution *a)
{
    struct nrg_channel gpu = made_gauge("gpu-0"), memory = made_gauge("gpu-0.mig-0.memory");
    struct nrg_rows rows;
    memory.quantity = NRG_BYTES;
    made_init(m);
    made_constant(m, &gpu, -1, 11, 0.1, 100);
    if (mig)
        made_constant(m, &memory, -1, 11, 0.1, 1);
    made_run(m, "run", 0, 10);
    made_process(m, 7, -1, 11, 1);
    int64_t device = made_track(m, "gpu", 7, 0, "gpu-0");
    made_span(m, 0, 10, device, made_name(m, "kernel", "sgemm"));
    nrg_rows_init(&rows, NRG_G_COLUMNS);
    for (int i = 1; i <= 10; i++) {
        int64_t mine[] = {7, 0, 7, 200000, NRG_MISSING, sizes[0]};
        int64_t other[] = {-1, 0, 99, 600000, NRG_MISSING, sizes[1]};
        nrg_rows_add(&rows, made_ns(i), 0, mine);
        nrg_rows_add(&rows, made_ns(i), 0, other);
    }
    assert_int_equal(nrg_store_rows(m->store, nrg_store_series(m->store, NRG_GPU_PROCESSES), &rows),
                     0);
    nrg_rows_release(&rows);
    attribute(m, &plain, a);
    close_to(row(a, "sgemm")->energy_j, 250, 1e-3, "kernel");
    close_to(a->other_processes_j, 750, 1e-3, "others");
}

/* The driver says that three quarters of the GPU's work are a stranger's. */
static void gpu_of_others(void **state)
{
    static const int64_t measured[] = {NRG_MISSING, NRG_MISSING};
    struct made m;
    struct nrg_attribution a;
    (void)state;
    attribute_shared_gpu(measured, false, &m, &a);
    assert_true(row(&a, "sgemm")->low_j > 240 && row(&a, "sgemm")->high_j < 260);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A row can't be surer than the division of its GPU. */
static void gpu_shared_by_rule(void **state)
{
    static const struct {
        bool mig;
        int64_t sizes[2];
        double low_j, high_j;
    } cases[] = {
        {true, {NRG_MISSING, NRG_MISSING}, 0, 1000}, /* by sizes: either may have done nothing */
        {true, {500000, 500000}, 250, 500},          /* by what they did, up to sizes */
        {false, {800000, 800000}, 0, 1000},          /* clients of MPS, of whom nothing is known */
        {false, {200000, 600000}, 0, 1000. / 3}, /* of whom it is known how long they computed */
    };
    struct made m;
    struct nrg_attribution a;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attribute_shared_gpu(cases[i].sizes, cases[i].mig, &m, &a);
        assert_true(fabs(row(&a, "sgemm")->low_j - cases[i].low_j) < 10);
        assert_true(fabs(row(&a, "sgemm")->high_j - cases[i].high_j) < 10);
        nrg_attribution_release(&a);
        made_release(&m);
    }
}

/* Without GPU spans, host spans have the GPU's energy too. */
static void gpu_without_track(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel cpu = made_counter("package-0"), gpu = made_gauge("gpu-0");
    static const char *const only[] = {"gpu-0", NULL};
    struct nrg_attribution_options o = plain;
    (void)state;
    made_init(&m);
    made_constant(&m, &cpu, -1, 11, 0.1, 20);
    made_constant(&m, &gpu, -1, 11, 0.1, 100);
    made_run(&m, "run", 0, 10);
    int64_t host = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 1, 2, host, made_name(&m, "operator", "matmul"));
    attribute(&m, &o, &a);
    close_to(row(&a, "matmul")->energy_j, 120, 1e-3, "operator");
    nrg_attribution_release(&a);
    o.domains = only;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_domains, 1);
    close_to(row(&a, "matmul")->energy_j, 100, 1e-3, "operator, GPU only");
    nrg_attribution_release(&a);
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_power),
        cmocka_unit_test(threads_share_by_cpu_time),
        cmocka_unit_test(tracks_without_cpu_time_share_equally),
        cmocka_unit_test(processes_share_by_cpu_time),
        cmocka_unit_test(sleeping_spans_share_idle),
        cmocka_unit_test(little_above_idle_is_not_idle),
        cmocka_unit_test(what_is_no_operator_stays_within_the_total),
        cmocka_unit_test(others_of_no_watts_make_nothing_idle),
        cmocka_unit_test(constant_load_shares_idle_too),
        cmocka_unit_test(idle_by_regression),
        cmocka_unit_test(idle_by_baseline),
        cmocka_unit_test(gpu_track),
        cmocka_unit_test(gpu_of_others),
        cmocka_unit_test(gpu_shared_by_rule),
        cmocka_unit_test(gpu_without_track),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
