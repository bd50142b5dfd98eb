/*
 * attribute/notes.c: what the user is told beside the numbers: whose work counts to spans of
 * others, tracks whose process is not known, and idle power that is not the baseline's.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "support/attributed.h"

/* The note about something that has these words in it; NULL: there is none. */
static const char *note_of(const struct nrg_attribution *a, const char *what, const char *words)
{
    for (size_t i = 0; i < a->n_notes; i++)
        if (!strcmp(a->notes[i].what, what) && strstr(a->notes[i].why, words))
            return a->notes[i].why;
    return NULL;
}

/* A thread that is busy in its spans, in a process that uses so many CPUs. */
static void attribute_thread(struct made *m, double cpus, int32_t pid, struct nrg_attribution *a)
{
    struct nrg_channel c = made_counter("package-0");
    made_init(m);
    made_constant(m, &c, -1, 11, 0.01, 20);
    made_busy(m, -1, 11, cpus);
    made_run(m, "run", 0, 10);
    made_process(m, 7, 0, 10, cpus);
    int64_t track = made_track(m, "thread", pid, 7, ""), name = made_name(m, "span", "work");
    made_thread(m, track, 0, 10, 1);
    for (int k = 0; k < 10; k++)
        made_span(m, k, k + 0.95, track, name);
    attribute(m, &plain, a);
}

static void threads_without_spans_are_said(void **state)
{
    static const struct {
        double cpus;
        const char *words; /* NULL: not worth a note */
    } cases[] = {{1, NULL}, {1.04, NULL}, {1.25, "20 %"}, {4, "75 %"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made m;
        struct nrg_attribution a;
        attribute_thread(&m, cases[i].cpus, 7, &a);
        const char *why = note_of(&a, "threads without spans", "nrg_span_begin");
        assert_int_equal(why != NULL, cases[i].words != NULL);
        if (why && !strstr(why, cases[i].words))
            fail_msg("%s", why);
        nrg_attribution_release(&a);
        made_release(&m);
    }
}

static void a_track_of_no_process_is_said(void **state)
{
    struct made m;
    struct nrg_attribution a;
    (void)state;
    attribute_thread(&m, 1, 8, &a);
    assert_non_null(note_of(&a, "threads of no process", "pid 8"));
    nrg_attribution_release(&a);
    made_release(&m);
    attribute_thread(&m, 1, 7, &a);
    assert_null(note_of(&a, "threads of no process", ""));
    nrg_attribution_release(&a);
    made_release(&m);
}

#define RUN_S   40.0
#define CYCLE_S 0.137 /* spans a and b, and sleep, by thirds */

/* Idle power during the run, beside 10 W in the baseline. */
struct machine {
    double idle_w;
};

static double energy_j(void *arg, double t_s)
{
    const struct machine *machine = arg;
    double run_s = fmin(fmax(t_s, 0), RUN_S), cycles = floor(run_s / CYCLE_S);
    double third_s = CYCLE_S / 3, in_s = run_s - cycles * CYCLE_S;
    double a_s = fmin(in_s, third_s), b_s = fmin(fmax(in_s - third_s, 0), third_s);
    return 10 * (t_s + 6) + (machine->idle_w - 10) * run_s + cycles * third_s * (15 + 30) +
           15 * a_s + 30 * b_s;
}

static void attribute_machine(struct made *m, double idle_w, struct nrg_attribution *a)
{
    struct machine machine = {idle_w};
    struct nrg_attribution_options o = {.idle_w = NAN};
    struct nrg_channel c = made_counter("package-0");
    double third_s = CYCLE_S / 3;
    c.update_ns = NRG_NS_PER_MS;
    made_init(m);
    made_power(m, &c, -6, RUN_S + 1, 0.01, energy_j, NULL, &machine);
    made_run(m, "baseline", -5, 0);
    made_run(m, "run", 0, RUN_S);
    made_process(m, 7, 0, RUN_S, 2.0 / 3);
    int64_t track = made_track(m, "thread", 7, 7, "");
    int64_t name_a = made_name(m, "span", "a"), name_b = made_name(m, "span", "b");
    for (double t_s = 0, cpu_s = 0; t_s + CYCLE_S < RUN_S; t_s += CYCLE_S) {
        made_span(m, t_s, t_s + third_s, track, name_a);
        made_span(m, t_s + third_s, t_s + 2 * third_s, track, name_b);
        made_thread_row(m, track, t_s, cpu_s);
        cpu_s += 2 * third_s;
        made_thread_row(m, track, t_s + 2 * third_s, cpu_s);
    }
    attribute(m, &o, a);
}

/* As idle power drifts, and beyond it. */
static void idle_power_that_moved_is_said(void **state)
{
    static const struct {
        double idle_w;
        const char *source;
        bool far;
    } cases[] = {{10, "baseline", false},
                 {10.7, "baseline, fitted", false},
                 {12.5, "baseline, fitted", true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made m;
        struct nrg_attribution a;
        attribute_machine(&m, cases[i].idle_w, &a);
        assert_int_equal(a.domains[0].method, NRG_METHOD_REGRESS);
        close_to(a.domains[0].idle_w, cases[i].idle_w, 0.06 * cases[i].idle_w, "idle power");
        assert_string_equal(a.domains[0].idle_source, cases[i].source);
        assert_int_equal(note_of(&a, "package-0", "10 W in the baseline") != NULL, cases[i].far);
        nrg_attribution_release(&a);
        made_release(&m);
    }
}

/* All is recorded an hour before the run: a time of another clock. */
static void a_run_without_any_reading_is_refused(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_error err = {0};
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, 0, 10, 0.1, 10);
    made_run(&m, "run", 3600, 3610);
    made_open(&m);
    assert_int_equal(nrg_attribution_make(&a, m.recording, &plain, &err), -ENODATA);
    assert_non_null(strstr(err.what, "no reading of the run"));
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_without_spans_are_said),
        cmocka_unit_test(a_track_of_no_process_is_said),
        cmocka_unit_test(idle_power_that_moved_is_said),
        cmocka_unit_test(a_run_without_any_reading_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
