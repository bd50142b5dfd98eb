/*
 * attribute/attribution.c: recordings whose joules per span are known in closed form, and the laws
 * that hold for all.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/attribution.h"
#include "support/made.h"

static const struct nrg_attribution_options plain = {
    .method = NRG_METHOD_INTEGRATE, .idle = NRG_IDLE_NONE, .idle_w = NAN};

static void close_to(double value, double expected, double off, const char *what)
{
    if (!(fabs(value - expected) <= off))
        fail_msg("%s: %.9g, not %.9g", what, value, expected);
}

/* What holds for every attribution that is not flat. */
static void check_laws(const struct nrg_attribution *a, bool tree)
{
    double *children = calloc(a->n_rows + 1, sizeof *children);
    double self = 0, tiny = 1e-9 * (fabs(a->total_j) + 1);
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct nrg_attribution_row *row = &a->rows[i];
        self += isnan(row->energy_self_j) ? 0 : row->energy_self_j;
        if (row->parent != SIZE_MAX) {
            assert_true(row->parent < i);
            assert_int_equal(row->depth, a->rows[row->parent].depth + 1);
            children[row->parent] += isnan(row->energy_j) ? 0 : row->energy_j;
        } else {
            assert_int_equal(row->depth, 0);
        }
        if (!isnan(row->energy_j)) {
            assert_true(row->low_j <= row->energy_j + tiny && row->energy_j <= row->high_j + tiny);
            assert_true(row->high_j - row->low_j <= row->energy_j + tiny ||
                        row->flags & NRG_ROW_UNRESOLVED);
        }
        double sum = 0;
        for (size_t p = 0; p < a->n_domains; p++)
            sum += row->domain_j[p];
        if (!isnan(row->energy_j))
            close_to(sum, row->energy_j, tiny, "domains of a row");
    }
    for (size_t i = 0; tree && i < a->n_rows; i++) {
        double own = a->rows[i].energy_self_j;
        if (!isnan(a->rows[i].energy_j))
            close_to(a->rows[i].energy_j, (isnan(own) ? 0 : own) + children[i], tiny, "inclusive");
    }
    if (a->n_domains)
        close_to(self + a->unattributed_j + a->idle_j + a->other_processes_j, a->total_j, tiny,
                 "conservation");
    free(children);
}

static void attribute(struct made *m, const struct nrg_attribution_options *o,
                      struct nrg_attribution *a)
{
    struct nrg_error err = {0};
    if (!m->recording)
        made_open(m);
    int rc = nrg_attribution_make(a, m->recording, o, &err);
    if (rc)
        fail_msg("%s: %s", err.where, err.what);
    check_laws(a, o->by != NRG_BY_NAME);
}

static const struct nrg_attribution_row *row(const struct nrg_attribution *a, const char *name)
{
    const struct nrg_attribution_row *found = NULL;
    for (size_t i = 0; i < a->n_rows; i++)
        if (!strcmp(a->rows[i].name, name)) {
            assert_null(found);
            found = &a->rows[i];
        }
    if (!found)
        fail_msg("no row '%s'", name);
    return found;
}

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

/* 10 W up to t = 5, then 30 W. */
static double stepped_j(void *arg, double t_s)
{
    (void)arg;
    return 10 * (t_s + 1) + (t_s > 5 ? 20 * (t_s - 5) : 0);
}

static double stepped_w(void *arg, double t_s)
{
    (void)arg;
    return t_s < 5 ? 10 : 30;
}

static void step_of_power(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.01, stepped_j, stepped_w, NULL);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t low = made_name(&m, "span", "low"), high = made_name(&m, "span", "high"),
            both = made_name(&m, "span", "both");
    made_span(&m, 1, 3, track, low);
    made_span(&m, 4.5, 5.503, track, both);
    made_span(&m, 6, 8, track, high);
    attribute(&m, &plain, &a);
    close_to(row(&a, "low")->energy_j, 20, 1e-4, "low");
    close_to(row(&a, "high")->energy_j, 60, 1e-4, "high");
    close_to(row(&a, "both")->energy_j, 5 + 30 * 0.503, 1e-4, "both");
    close_to(a.total_j, 200, 1e-4, "total");
    assert_int_equal(row(&a, "low")->flags, 0);
    close_to(row(&a, "low")->updates_per_call, 200, 1, "updates");
    /* Two edges within an interval of 0.01 s that is like its neighbours: rounding and phase. */
    assert_true(row(&a, "low")->high_j - row(&a, "low")->low_j < 0.1);
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
    close_to(row(&a, "seven")->energy_j, 200, 1e-3, "seven");
    close_to(row(&a, "eight")->energy_j, 50, 1e-3, "eight");
    close_to(a.other_processes_j, 50, 1e-3, "others");
    close_to(a.unattributed_j, 100, 1e-3, "unattributed");
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

/* The baseline's power is idle power, and the baseline is no part of the run. */
static void idle_by_baseline(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.1, stepped_j, stepped_w, NULL);
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

static void domains_that_overlap_are_refused(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_error err = {0};
    struct nrg_channel package = made_counter("package-0"), core = made_counter("core-0");
    static const char *const both[] = {"package-0", "core-0", NULL}, *const none[] = {"x", NULL};
    struct nrg_attribution_options o = plain;
    (void)state;
    strcpy(core.parent, "package-0");
    made_init(&m);
    made_constant(&m, &package, -1, 11, 0.1, 20);
    made_constant(&m, &core, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    made_open(&m);
    o.domains = both;
    assert_int_equal(nrg_attribution_make(&a, m.recording, &o, &err), -EINVAL);
    assert_non_null(strstr(err.what, "twice"));
    o.domains = none;
    assert_int_equal(nrg_attribution_make(&a, m.recording, &o, &err), -ENOENT);
    o = plain;
    o.run = 17;
    assert_int_equal(nrg_attribution_make(&a, m.recording, &o, &err), -ENOENT);
    made_release(&m);
}

static void unclosed_and_unmatched(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, ""), other = made_track(&m, "thread", 8, 8, "");
    int64_t open = made_name(&m, "span", "open"), lost = made_name(&m, "span", "lost");
    struct nrg_process_info ended = {
        .id = 5, .pid = 8, .first_ns = made_ns(0), .last_ns = made_ns(4), .ended = 1, .uid = -1};
    assert_int_equal(nrg_store_process(m.store, &ended), 0);
    made_end(&m, 1, track);
    made_begin(&m, 2, other, lost);
    made_begin(&m, 6, track, open);
    attribute(&m, &plain, &a);
    assert_int_equal(a.unclosed, 2);
    assert_int_equal(a.unmatched_ends, 1);
    close_to(row(&a, "open")->energy_j, 40, 1e-4, "up to the end of the run");
    close_to(row(&a, "lost")->energy_j, 20, 1e-4, "up to the end of its process");
    assert_int_equal(row(&a, "open")->flags & NRG_ROW_UNCLOSED, NRG_ROW_UNCLOSED);
    assert_true(a.n_notes >= 2);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* a: 1..5, b: 3..7 on one track: an end that names the outer one closes the inner one too. */
static void overlap_is_cut(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t first = made_name(&m, "span", "a"), second = made_name(&m, "span", "b");
    made_begin(&m, 1, track, first);
    made_begin(&m, 3, track, second);
    made_event(&m, 5, track, NRG_SPAN_END, first, NRG_MISSING, NRG_MISSING);
    made_event(&m, 7, track, NRG_SPAN_END, second, NRG_MISSING, NRG_MISSING);
    attribute(&m, &plain, &a);
    assert_int_equal(a.cut, 1);
    assert_int_equal(a.unmatched_ends, 1);
    close_to(row(&a, "a")->energy_j, 40, 1e-4, "a");
    close_to(row(&a, "b")->energy_j, 20, 1e-4, "b");
    assert_int_equal(row(&a, "b")->flags & NRG_ROW_CLOCK, NRG_ROW_CLOCK);
    nrg_attribution_release(&a);
    made_release(&m);
}

static void zero_length_and_odd_names(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    char *name = malloc(10001);
    (void)state;
    memset(name, 'x', 10000);
    memcpy(name, "<b>\"'\n,", 7);
    name[10000] = 0;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 2, 2, track, made_name(&m, "span", "nothing"));
    made_span(&m, 3, 4, track, made_name(&m, "span", name));
    made_begin(&m, 5, track, 4711); /* a name that is not in the catalog */
    made_end(&m, 6, track);
    made_span(&m, 7, 8, 4712, 1); /* a track that is not */
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_rows, 3);
    close_to(row(&a, "nothing")->energy_j, 0, 0, "nothing");
    assert_int_equal(row(&a, "nothing")->calls, 1);
    assert_int_equal(strlen(a.rows[1].name), 10000);
    close_to(a.rows[1].energy_j, 10, 1e-4, "long name");
    close_to(row(&a, "(unknown name)")->energy_j, 10, 1e-4, "unknown name");
    nrg_attribution_release(&a);
    made_release(&m);
    free(name);
}

/* Spans before the first reading and after the last: nothing is made up. */
static void outside_the_readings(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, 2, 8, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 0.5, 1, track, made_name(&m, "span", "before"));
    made_span(&m, 1, 3, track, made_name(&m, "span", "into"));
    made_span(&m, 7, 12, track, made_name(&m, "span", "out"));
    attribute(&m, &plain, &a);
    assert_true(isnan(row(&a, "before")->energy_j));
    assert_true(isnan(row(&a, "before")->high_j));
    close_to(row(&a, "into")->energy_j, 10, 1e-4, "into");
    close_to(row(&a, "out")->energy_j, 10, 1e-4, "out");
    close_to(row(&a, "out")->time_s, 5, 1e-9, "time of out");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(a.rows[i].flags & NRG_ROW_UNCOVERED, NRG_ROW_UNCOVERED);
    close_to(a.unattributed_j, 40, 1e-4, "unattributed");
    nrg_attribution_release(&a);
    made_release(&m);
}

static void nothing_to_attribute(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_rows, 0);
    close_to(a.unattributed_j, 100, 1e-4, "no spans");
    nrg_attribution_release(&a);
    made_release(&m);

    made_init(&m);
    made_busy(&m, -1, 11, 1);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 1, 3, track, made_name(&m, "span", "work"));
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_domains, 0);
    assert_true(isnan(a.total_j) && isnan(row(&a, "work")->energy_j));
    close_to(row(&a, "work")->time_s, 2, 1e-9, "time without energy");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* One reading of a gauge holds for one period to each side. */
static void one_sample(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_gauge("machine");
    static const double t_s[] = {5};
    static const int64_t raw[] = {10000};
    (void)state;
    made_init(&m);
    made_channel(&m, &c, t_s, raw, 1);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "log", 0, 0, "");
    made_span(&m, 4.5, 5.5, track, made_name(&m, "layer", "near"));
    made_span(&m, 8, 9, track, made_name(&m, "layer", "far"));
    attribute(&m, &plain, &a);
    close_to(row(&a, "near")->energy_j, 10, 1e-6, "near");
    assert_true(isnan(row(&a, "far")->energy_j));
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Readings 10, 20, 30 W at 1, 2, 3 s; windows with two, one and none of them. */
static void nearest_and_window(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_gauge("machine");
    struct nrg_attribution_options o = plain;
    static const double t_s[] = {1, 2, 3};
    static const int64_t raw[] = {10000, 20000, 30000};
    (void)state;
    made_init(&m);
    made_channel(&m, &c, t_s, raw, 3);
    made_run(&m, "run", 1, 3);
    int64_t track = made_track(&m, "log", 0, 0, "");
    made_span(&m, 1, 2, track, made_name(&m, "layer", "two"));
    made_span(&m, 2.25, 2.5, track, made_name(&m, "layer", "none"));
    made_span(&m, 2.75, 3.25, track, made_name(&m, "layer", "one"));
    o.method = NRG_METHOD_WINDOW;
    attribute(&m, &o, &a);
    close_to(row(&a, "two")->energy_j, 15, 1e-9, "both ends count");
    close_to(row(&a, "one")->energy_j, 15, 1e-9, "one");
    assert_true(isnan(row(&a, "none")->energy_j));
    nrg_attribution_release(&a);
    o.method = NRG_METHOD_NEAREST;
    attribute(&m, &o, &a);
    close_to(row(&a, "two")->energy_j, 20, 1e-9, "at the end");
    close_to(row(&a, "none")->energy_j, 5, 1e-9, "the earlier of two");
    close_to(row(&a, "one")->energy_j, 15, 1e-9, "after the last");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A first-order sensor, tau 0.4 s, while power steps from 10 to 30 W at 5 s. */
static double lagged_w(void *arg, double t_s)
{
    (void)arg;
    return t_s < 5 ? 10 : 30 - 20 * exp(-(t_s - 5) / 0.4);
}

static void lag_is_corrected(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_gauge("machine");
    struct nrg_attribution_options o = plain;
    (void)state;
    c.scale = 1e-6;
    c.resolution = 1e-6;
    c.lag_ns = 400 * NRG_NS_PER_MS;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.002, NULL, lagged_w, NULL);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "log", 0, 0, "");
    made_span(&m, 4, 5, track, made_name(&m, "layer", "low"));
    made_span(&m, 5, 5.5, track, made_name(&m, "layer", "high"));
    o.lag = NRG_LAG_NONE;
    attribute(&m, &o, &a);
    double shown = 30 * 0.5 - 20 * 0.4 * (1 - exp(-0.5 / 0.4));
    close_to(row(&a, "high")->energy_j, shown, 0.01, "as the sensor shows it");
    nrg_attribution_release(&a);
    o.lag = NRG_LAG_AUTO;
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].lag_source, "driver");
    close_to(row(&a, "low")->energy_j, 10, 0.05, "before the step");
    close_to(row(&a, "high")->energy_j, 15, 0.05, "after the step");
    nrg_attribution_release(&a);
    o.lag = NRG_LAG_GIVEN;
    o.lag_s = 0.8;
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].lag_source, "given");
    close_to(a.domains[0].lag_s, 0.8, 0, "given");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* 20 ms of work in every second, read once a second: the interval must not be confident. */
static void short_spans_are_unresolved(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 101, 1, 10);
    made_run(&m, "run", 0, 100);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t layer = made_name(&m, "layer", "short"), all = made_name(&m, "phase", "all");
    made_begin(&m, 0, track, all);
    for (int i = 0; i < 100; i++)
        made_span(&m, i + 0.3, i + 0.32, track, layer);
    made_end(&m, 100, track);
    attribute(&m, &plain, &a);
    const struct nrg_attribution_row *r = row(&a, "short");
    close_to(r->energy_j, 20, 0.01, "interpolated");
    assert_int_equal(r->flags & NRG_ROW_UNRESOLVED, NRG_ROW_UNRESOLVED);
    /* It may have used nothing, or as much as the ceiling of four times the power allows. */
    assert_true(r->low_j < 1 && r->high_j > 75);
    close_to(r->updates_per_call, 0.02, 1e-3, "updates per call");
    /* What holds whole intervals is known. */
    assert_int_equal(row(&a, "all")->flags & NRG_ROW_UNRESOLVED, 0);
    close_to(row(&a, "all")->low_j, 1000, 5, "all, low");
    nrg_attribution_release(&a);
    made_release(&m);
}

static void estimates_are_flagged(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("machine"), idle = made_counter("machine.idle"),
                       low = made_counter("machine.low"), high = made_counter("machine.high");
    struct nrg_attribution_options o = plain;
    (void)state;
    c.provenance = idle.provenance = low.provenance = high.provenance = NRG_ESTIMATED;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 50);
    made_constant(&m, &idle, -1, 11, 0.1, 20);
    made_constant(&m, &low, -1, 11, 0.1, 40);
    made_constant(&m, &high, -1, 11, 0.1, 70);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 1, 5, track, made_name(&m, "span", "work"));
    attribute(&m, &o, &a);
    assert_int_equal(row(&a, "work")->flags & NRG_ROW_ESTIMATED, NRG_ROW_ESTIMATED);
    assert_int_equal(a.provenance, NRG_ESTIMATED);
    assert_string_equal(a.domains[0].idle_source, "estimate");
    close_to(row(&a, "work")->energy_j, 120, 0.01, "above idle");
    close_to(row(&a, "work")->high_j, 120 * 1.4, 0.5, "band");
    close_to(row(&a, "work")->low_j, 120 * 0.8, 0.5, "band");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Two runs, with a pause that belongs to none. */
static void several_runs(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 3);
    made_run(&m, "run", 5, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t name = made_name(&m, "span", "work");
    made_span(&m, 1, 2, track, name);
    made_span(&m, 6, 8, track, name);
    attribute(&m, &o, &a);
    close_to(a.total_j, 80, 1e-4, "both runs");
    close_to(a.duration_s, 8, 1e-9, "both runs");
    close_to(row(&a, "work")->energy_j, 30, 1e-4, "both");
    nrg_attribution_release(&a);
    o.run = 2;
    attribute(&m, &o, &a);
    close_to(a.total_j, 50, 1e-4, "second run");
    close_to(row(&a, "work")->energy_j, 20, 1e-4, "in the second");
    close_to(row(&a, "work")->time_s, 2, 1e-9, "in the second");
    assert_int_equal(row(&a, "work")->calls, 1);
    nrg_attribution_release(&a);
    made_release(&m);
}

static void counts(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t step = made_name(&m, "step", "step"), inner = made_name(&m, "span", "inner"),
            tokens = made_name(&m, "counter", "tokens"),
            other = made_name(&m, "counter", "requests");
    made_begin(&m, 1, track, step);
    made_event(&m, 1.5, track, NRG_SPAN_COUNT, tokens, 3, NRG_MISSING);
    made_begin(&m, 2, track, inner);
    made_event(&m, 2.5, track, NRG_SPAN_COUNT, tokens, 4, NRG_MISSING);
    made_event(&m, 2.6, track, NRG_SPAN_COUNT, other, 1, NRG_MISSING);
    made_end(&m, 3, track);
    made_end(&m, 4, track);
    made_event(&m, 5, track, NRG_SPAN_COUNT, tokens, 100, NRG_MISSING);
    attribute(&m, &plain, &a);
    const struct nrg_attribution_row *outer = row(&a, "step"), *in = row(&a, "inner");
    assert_int_equal(in->n_counts, 2);
    assert_int_equal(outer->n_counts, 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_tokens = !strcmp(outer->counts[i].name, "tokens");
        close_to(outer->counts[i].amount, is_tokens ? 7 : 1, 0, "step");
        is_tokens = !strcmp(in->counts[i].name, "tokens");
        close_to(in->counts[i].amount, is_tokens ? 4 : 1, 0, "inner");
    }
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A model of two modules, twice forward and once backward, with operators. */
static void views(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, ""), step = made_name(&m, "step", "step"),
            net = made_name(&m, "module", "Net"), conv = made_name(&m, "module", "block.0.conv"),
            back = made_name(&m, "backward", "block.0.conv"), op = made_name(&m, "operator", "mm");
    for (int i = 0; i < 2; i++) {
        double t = 1 + 4 * i;
        made_event(&m, t, track, NRG_SPAN_BEGIN, step, 10 + i, NRG_MISSING);
        made_begin(&m, t + 0.5, track, net);
        made_begin(&m, t + 1, track, conv);
        made_span(&m, t + 1.25, t + 1.5, track, op);
        made_end(&m, t + 2, track);
        made_end(&m, t + 2.5, track);
        if (i)
            made_span(&m, t + 3, t + 3.5, track, back);
        made_end(&m, t + 4, track);
    }
    o.by = NRG_BY_MODULE;
    attribute(&m, &o, &a);
    const struct nrg_attribution_row *r = row(&a, "block.0.conv");
    assert_int_equal(r->calls, 2);
    close_to(r->time_s, 2.5, 1e-9, "forward and backward");
    close_to(r->energy_j, 25, 1e-3, "forward and backward");
    close_to(r->energy_self_j, 20, 1e-3, "without its operators");
    assert_string_equal(a.rows[r->parent].name, "block.0");
    assert_string_equal(a.rows[a.rows[r->parent].parent].name, "block");
    assert_string_equal(a.rows[a.rows[a.rows[r->parent].parent].parent].name, "Net");
    assert_string_equal(a.rows[row(&a, "mm")->parent].name, "block.0.conv");
    close_to(row(&a, "step")->energy_j, 80 - 45, 1e-3, "what is no module's");
    close_to(row(&a, "Net")->energy_j, 45, 1e-3, "the model, with its backward");
    nrg_attribution_release(&a);

    o.by = NRG_BY_NAME;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 5);
    close_to(row(&a, "step")->energy_j, 80, 1e-3, "all inside");
    close_to(row(&a, "mm")->energy_j, 5, 1e-3, "mm");
    close_to(row(&a, "step")->time_s, 8, 1e-9, "all inside");
    nrg_attribution_release(&a);

    o.by = NRG_BY_STEP;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(a.rows[i].number, 10 + i);
        assert_int_equal(a.rows[i].calls, 1);
        close_to(a.rows[i].energy_j, 40, 1e-3, "a step");
        close_to(a.rows[i].energy_self_j, 40, 1e-3, "a step");
    }
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Cycles show their layers. */
static void by_cycle(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "log", 0, 0, ""), cycle = made_name(&m, "cycle", "cycle"),
            layer = made_name(&m, "layer", "conv");
    for (int i = 0; i < 3; i++) {
        made_event(&m, 1 + i, track, NRG_SPAN_BEGIN, cycle, 1 + i, NRG_MISSING);
        made_span(&m, 1.25 + i, 1.5 + i, track, layer);
        made_end(&m, 1.75 + i, track);
    }
    o.by = NRG_BY_CYCLE;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 6);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(a.rows[2 * i].number, 1 + i);
        assert_int_equal(a.rows[2 * i + 1].parent, 2 * i);
        close_to(a.rows[2 * i].energy_j, 7.5, 1e-3, "cycle");
        close_to(a.rows[2 * i + 1].energy_j, 2.5, 1e-3, "layer");
    }
    nrg_attribution_release(&a);
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_power),
        cmocka_unit_test(step_of_power),
        cmocka_unit_test(threads_share_by_cpu_time),
        cmocka_unit_test(tracks_without_cpu_time_share_equally),
        cmocka_unit_test(processes_share_by_cpu_time),
        cmocka_unit_test(sleeping_spans_share_idle),
        cmocka_unit_test(constant_load_shares_idle_too),
        cmocka_unit_test(idle_by_regression),
        cmocka_unit_test(idle_by_baseline),
        cmocka_unit_test(gpu_track),
        cmocka_unit_test(gpu_without_track),
        cmocka_unit_test(domains_that_overlap_are_refused),
        cmocka_unit_test(unclosed_and_unmatched),
        cmocka_unit_test(overlap_is_cut),
        cmocka_unit_test(zero_length_and_odd_names),
        cmocka_unit_test(outside_the_readings),
        cmocka_unit_test(nothing_to_attribute),
        cmocka_unit_test(one_sample),
        cmocka_unit_test(nearest_and_window),
        cmocka_unit_test(lag_is_corrected),
        cmocka_unit_test(short_spans_are_unresolved),
        cmocka_unit_test(estimates_are_flagged),
        cmocka_unit_test(several_runs),
        cmocka_unit_test(counts),
        cmocka_unit_test(views),
        cmocka_unit_test(by_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
