/*
 * Counters that stand still, on machines whose joules are known in closed form: where one is dead,
 * the interval holds the truth; where it is true, however slow, nothing is different from a counter
 * that nobody doubts.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/summary.h"
#include "support/attributed.h"

#define FIRST_S (-1.0)
#define RUN_S   10.0
#define LAST_S  11.0
#define MOST    1300 /* readings */

/* A counter: what its domain draws, and when it does not count. */
struct counter {
    const char *name;
    double before_w, after_w; /* up to 5 s, and from then on */
    double step_j, update_s;
    double dead_s, alive_s; /* stands still from .. to; equal: never */
    bool stuck;             /* and knows afterwards what it missed */
    double wrap_j, start_j; /* 0: never */
};

static double truth_j(const struct counter *c, double t_s)
{
    return c->before_w * (fmin(t_s, 5) - FIRST_S) + c->after_w * fmax(0, t_s - 5);
}

/* What it counts up to a moment, by its last update. */
static double counted_j(const struct counter *c, double t_s)
{
    double at_s = floor(t_s / c->update_s + 1e-6) * c->update_s;
    double lost_j = truth_j(c, c->alive_s) - truth_j(c, c->dead_s);
    if (c->dead_s >= c->alive_s || at_s <= c->dead_s)
        return truth_j(c, at_s);
    if (at_s < c->alive_s)
        return truth_j(c, c->dead_s);
    return truth_j(c, at_s) - (c->stuck ? 0 : lost_j);
}

static int64_t shown(const struct counter *c, double t_s)
{
    double j = floor((c->start_j + 100 + counted_j(c, t_s)) / c->step_j) * c->step_j;
    int64_t raw = llround(j * 1e6);
    return c->wrap_j > 0 ? raw % llround(c->wrap_j * 1e6) : raw;
}

static struct nrg_channel channel_of(const struct counter *c)
{
    struct nrg_channel channel = made_counter(c->name);
    channel.resolution = c->step_j;
    channel.update_ns = llround(c->update_s * 1e9);
    channel.covers_cpu = !strncmp(c->name, "package", 7) || !strncmp(c->name, "core", 4);
    channel.limit_w = 1000;
    channel.wrap = c->wrap_j > 0 ? (uint64_t)llround(c->wrap_j * 1e6) : 0;
    return channel;
}

/* Up to two of one sensor, read together every `every_s`. */
static void add_sensor(struct made *m, const struct counter *counters, size_t n, double every_s)
{
    static const struct nrg_driver driver = {.name = "made"};
    struct nrg_channel channels[2];
    bool wanted[] = {true, true};
    struct nrg_found found = {
        .driver = &driver, .channels = channels, .n_channels = n, .wanted = wanted};
    struct nrg_rows rows;
    int series;
    nrg_copy(found.sensor, sizeof found.sensor, counters[0].name);
    nrg_rows_init(&rows, n);
    for (size_t i = 0; i < n; i++)
        channels[i] = channel_of(&counters[i]);
    for (size_t k = 0; FIRST_S + (double)k * every_s <= LAST_S; k++) {
        double t_s = FIRST_S + ((double)k + 0.3) * every_s;
        int64_t raw[2];
        for (size_t i = 0; i < n; i++)
            raw[i] = shown(&counters[i], t_s);
        assert_int_equal(nrg_rows_add(&rows, made_ns(t_s), 0, raw), 0);
    }
    assert_int_equal(nrg_store_sensor(m->store, &found, llround(every_s * 1e9), &series, 1), 0);
    assert_int_equal(nrg_store_rows(m->store, series, &rows), 0);
    nrg_rows_release(&rows);
}

static void summarise(struct made *m, struct nrg_summary *s)
{
    size_t n;
    struct nrg_error err;
    made_run(m, "run", 0, RUN_S);
    made_open(m);
    const struct nrg_run *runs = nrg_recording_runs(m->recording, &n);
    assert_int_equal(nrg_summary_make(s, m->recording, &runs[0], NRG_SPLIT_ACTIVE, &err), 0);
}

static const struct nrg_domain *domain(const struct nrg_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_domains; i++)
        if (!strcmp(s->domains[i].channel->channel.name, name))
            return &s->domains[i];
    return NULL;
}

static bool says(const struct nrg_summary *s, const char *name, const char *text)
{
    for (size_t i = 0; i < s->n_missing; i++)
        if (!strcmp(s->missing[i].what, name) && strstr(s->missing[i].why, text))
            return true;
    return false;
}

static double run_j(const struct counter *c)
{
    return truth_j(c, RUN_S) - truth_j(c, 0);
}

/* One of a processor, which never stands still. */
#define FINE(name, before_w, after_w)                                                              \
    {                                                                                              \
        name, before_w, after_w, 61e-6, 1e-3, 0, 0, false, 0, 0                                    \
    }
#define DEAD(name, before_w, after_w, from_s, to_s)                                                \
    {                                                                                              \
        name, before_w, after_w, 61e-6, 1e-3, from_s, to_s, false, 0, 0                            \
    }

/* Each is dead for a part of its run, or all of it. */
static const struct machine {
    const char *name;
    struct counter counters[2];
    size_t n;
    double every_s, least_covered, most_covered; /* of the first counter; 0, 0: it is no domain */
} dead[] = {
    {"for three seconds", {DEAD("package-0", 25, 25, 3, 6)}, 1, 0.1, 0.66, 0.71},
    {"read every second", {DEAD("package-0", 25, 25, 3, 6)}, 1, 1, 0.4, 0.71},
    {"read every 10 ms", {DEAD("package-0", 25, 25, 3, 6)}, 1, 0.01, 0.69, 0.71},
    {"twice the load after it", {DEAD("package-0", 25, 50, 3, 6)}, 1, 0.1, 0.6, 0.71},
    {"from the begin", {DEAD("package-0", 25, 25, -2, 4)}, 1, 0.1, 0.58, 0.61},
    {"at the end", {DEAD("package-0", 25, 25, 7, 20)}, 1, 0.1, 0.67, 0.71},
    {"wraps as it comes back",
     {{"package-0", 25, 25, 61e-6, 1e-3, 3, 6, false, 500, 299}},
     1,
     0.1,
     0.66,
     0.71},
    {"0.1 J, ten times a second",
     {{"package-0", 60, 60, 0.1, 0.1, 4, 20, false, 0, 0}},
     1,
     0.02,
     0.38,
     0.41},
    {"one of two",
     {DEAD("package-0", 25, 25, 3, 6), FINE("package-1", 20, 20)},
     2,
     0.1,
     0.66,
     0.71},
    {"one of two, always",
     {DEAD("package-0", 25, 25, -2, 20), FINE("package-1", 25, 25)},
     2,
     0.1,
     0,
     0},
    {"one of two, in all of the run",
     {DEAD("package-0", 25, 25, -0.5, 20), FINE("package-1", 5, 5)},
     2,
     0.1,
     0,
     0},
    {"one of two, while the load comes",
     {DEAD("package-0", 5, 80, 4, 20), FINE("package-1", 5, 80)},
     2,
     0.1,
     0.37,
     0.41},
    {"with its memory",
     {DEAD("package-0", 25, 25, 3, 6), DEAD("dram-0", 6, 6, 3, 6)},
     2,
     0.1,
     0.66,
     0.71},
};

static void check_dead(const struct machine *machine)
{
    struct made m;
    struct nrg_summary s;
    double all_j = 0;
    bool absent = !(machine->most_covered > 0);
    made_init(&m);
    add_sensor(&m, machine->counters, machine->n, machine->every_s);
    summarise(&m, &s);
    for (size_t i = 0; i < machine->n; i++) {
        const struct nrg_domain *d = domain(&s, machine->counters[i].name);
        double j = run_j(&machine->counters[i]);
        all_j += j;
        if (d && !(d->low_j <= j && j <= d->high_j))
            fail_msg("%s: %s %g .. %g does not hold %g", machine->name, machine->counters[i].name,
                     d->low_j, d->high_j, j);
        if (!i && (absent ? d != NULL
                          : !d || d->covered < machine->least_covered ||
                                d->covered > machine->most_covered))
            fail_msg("%s: covered %g", machine->name, d ? d->covered : 0);
    }
    if (!(s.total_low_j <= all_j && all_j <= s.total_high_j))
        fail_msg("%s: the total's %g .. %g does not hold %g", machine->name, s.total_low_j,
                 s.total_high_j, all_j);
    assert_true(says(&s, machine->counters[0].name, "stood still"));
    nrg_summary_release(&s);
    made_release(&m);
}

static void dead_counters_have_gaps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof dead / sizeof *dead; i++)
        check_dead(&dead[i]);
}

/* All of these count, or may. */
static const struct machine slow_or_idle[] = {
    {"fine", {FINE("package-0", 25, 25)}, 1, 0.01, 0, 0},
    {"an idle socket", {FINE("package-0", 40, 40), FINE("package-1", 0.3, 0.3)}, 2, 0.001, 0, 0},
    {"1 J at 3 W", {{"package-0", 3, 3, 1, 0.001, 0, 0, false, 0, 0}}, 1, 0.1, 0, 0},
    {"1 J, then almost nothing",
     {{"package-0", 80, 0.3, 1, 0.1, 0, 0, false, 0, 0}},
     1,
     0.02,
     0,
     0},
    {"updates every second", {{"package-0", 25, 3, 61e-6, 1, 0, 0, false, 0, 0}}, 1, 0.2, 0, 0},
    {"1 J every second", {{"package-0", 3, 1, 1, 1, 0, 0, false, 0, 0}}, 1, 0.2, 0, 0},
    {"an idle graphics unit", {FINE("package-0", 25, 25), FINE("uncore-0", 4, 0)}, 2, 0.1, 0, 0},
    {"idle memory", {FINE("package-0", 25, 25), FINE("dram-0", 4, 0)}, 2, 0.1, 0, 0},
    {"a GPU that falls asleep",
     {{"gpu-0", 60, 0, 1e-3, 0.1, 0, 0, false, 0, 0}, FINE("package-0", 25, 25)},
     2,
     0.02,
     0,
     0},
    {"sleeping cores", {FINE("core-0", 9, 0), FINE("package-0", 25, 25)}, 2, 0.1, 0, 0},
    {"stuck, then right again",
     {{"package-0", 25, 25, 61e-6, 1e-3, 3, 6, true, 0, 0}},
     1,
     0.1,
     0,
     0},
    {"stuck, and wrapped meanwhile",
     {{"package-0", 25, 25, 61e-6, 1e-3, 3, 6, true, 5000, 4770}},
     1,
     0.1,
     0,
     0},
};

static void check_true(const struct machine *machine)
{
    struct made m;
    struct nrg_summary s;
    made_init(&m);
    add_sensor(&m, machine->counters, machine->n, machine->every_s);
    summarise(&m, &s);
    for (size_t i = 0; i < machine->n; i++) {
        const struct counter *c = &machine->counters[i];
        const struct nrg_domain *d = domain(&s, c->name);
        double edge_w = fmax(c->before_w, c->after_w);
        double edges_j = c->step_j + edge_w * (1.5 * c->update_s + 2 * machine->every_s);
        if (!d || d->covered < 1 || d->uncertainty_j > edges_j)
            fail_msg("%s: %s covered %g, +- %g", machine->name, c->name, d ? d->covered : 0,
                     d ? d->uncertainty_j : 0);
        if (fabs(d->energy_j - run_j(c)) > edges_j)
            fail_msg("%s: %s has %g J, not %g", machine->name, c->name, d->energy_j, run_j(c));
        assert_false(says(&s, c->name, "from"));
    }
    nrg_summary_release(&s);
    made_release(&m);
}

static void true_counters_have_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof slow_or_idle / sizeof *slow_or_idle; i++)
        check_true(&slow_or_idle[i]);
}

/* Of a machine that updates its registers once a second, and a driver that does not know it: a
 * virtual one, whose host fills them in. */
static void a_counter_that_is_slower_than_it_says(void **state)
{
    struct made m;
    struct nrg_summary s;
    struct counter c = {"package-0", 25, 4, 61e-6, 1, 0, 0, false, 0, 0};
    struct nrg_channel channel = channel_of(&c);
    double t_s[121];
    int64_t raw[121];
    (void)state;
    channel.update_ns = NRG_NS_PER_MS;
    for (size_t k = 0; k <= 120; k++) {
        t_s[k] = FIRST_S + ((double)k + 0.3) * 0.1;
        raw[k] = shown(&c, t_s[k]);
    }
    made_init(&m);
    made_channel(&m, &channel, t_s, raw, 119);
    summarise(&m, &s);
    close_to(s.domains[0].covered, 1, 1e-9, "covered");
    close_to(s.domains[0].energy_j, run_j(&c), 26, "energy");
    nrg_summary_release(&s);
    made_release(&m);
}

/* What it draws at least is not known, but a gauge says that it is awake. */
static void a_gauge_of_the_same_name_tells(void **state)
{
    const struct counter c = {"gpu-0", 60, 60, 1e-3, 0.1, 3, 6, false, 0, 0};
    (void)state;
    for (int awake = 0; awake <= 1; awake++) {
        struct made m;
        struct nrg_summary s;
        struct nrg_channel gauge = made_gauge("gpu-0");
        static double t_s[1200];
        static int64_t raw[1200];
        for (size_t k = 0; k < 1200; k++) {
            t_s[k] = FIRST_S + (double)k * 0.01;
            raw[k] = !awake && t_s[k] > 2.9 && t_s[k] < 6.1 ? 0 : 60000;
        }
        made_init(&m);
        add_sensor(&m, &c, 1, 0.02);
        made_channel(&m, &gauge, t_s, raw, 1200);
        summarise(&m, &s);
        const struct nrg_domain *d = domain(&s, "gpu-0");
        assert_non_null(d);
        assert_true(awake ? d->covered < 0.72 && d->covered > 0.6 : d->covered > 0.9999);
        assert_true(!awake || (d->low_j <= 600 && 600 <= d->high_j));
        nrg_summary_release(&s);
        made_release(&m);
    }
}

/* The program may have used all of what was not counted; spans in that time say that it is not
 * covered, and the intervals of all hold what they had. */
static void program_and_rows(void **state)
{
    struct made m;
    struct nrg_attribution a;
    const struct counter c = DEAD("package-0", 25, 25, 3, 6);
    (void)state;
    made_init(&m);
    add_sensor(&m, &c, 1, 0.1);
    made_run(&m, "run", 0, RUN_S);
    made_busy(&m, FIRST_S, LAST_S, 1);
    made_process(&m, 7, FIRST_S, LAST_S, 1);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t before = made_name(&m, "span", "before"),
            meanwhile = made_name(&m, "span", "meanwhile"),
            across = made_name(&m, "span", "across");
    made_span(&m, 1, 2, track, before);
    made_span(&m, 3.5, 5.5, track, meanwhile);
    made_span(&m, 5.6, 9, track, across);
    attribute(&m, &plain, &a);
    const struct nrg_program *p = &a.summary.program;
    assert_true(p->low_j <= 250 && 250 <= p->high_j);
    close_to(row(&a, "before")->energy_j, 25, 0.1, "before");
    assert_true(row(&a, "before")->high_j < 26);
    const struct nrg_attribution_row *r = row(&a, "across");
    if (!(r->low_j <= 85 && 85 <= r->high_j))
        fail_msg("across: %g .. %g", r->low_j, r->high_j);
    r = row(&a, "meanwhile");
    assert_true(r->flags & NRG_ROW_UNCOVERED);
    if (!isnan(r->energy_j) && !(r->low_j <= 50 && 50 <= r->high_j))
        fail_msg("meanwhile: %g J, %g .. %g", r->energy_j, r->low_j, r->high_j);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* One package of two is dead while the program runs: what it has left to show is not the least
 * power, which idle power is at most. */
static void idle_power_is_not_that_of_gaps(void **state)
{
    struct made m;
    struct nrg_summary s;
    const struct counter c[] = {DEAD("package-0", 25, 25, 2, 9), FINE("package-1", 20, 20)};
    (void)state;
    made_init(&m);
    add_sensor(&m, c, 2, 0.1);
    made_busy(&m, FIRST_S, LAST_S, 1);
    made_process(&m, 7, FIRST_S, LAST_S, 1);
    summarise(&m, &s);
    close_to(s.idle_found.more_w, 45, 0.5, "idle power at most");
    assert_true(s.program.low_j < 1); /* all may be idle */
    assert_true(s.program.high_j >= 450);
    nrg_summary_release(&s);
    made_release(&m);
}

/* Readings of one counter, `every_s` from from_s to before to_s. */
static void add_readings(struct made *m, const struct counter *c, double from_s, double to_s,
                         double every_s)
{
    struct nrg_channel channel = channel_of(c);
    static double t_s[MOST];
    static int64_t raw[MOST];
    size_t n = 0;
    for (double at_s = from_s; at_s < to_s; at_s += every_s, n++) {
        t_s[n] = at_s;
        raw[n] = shown(c, at_s);
    }
    made_channel(m, &channel, t_s, raw, n);
}

/* After it was dead its register can't be read for a while, and perf shows 0. */
static void a_register_that_is_lost_after_it_was_dead(void **state)
{
    const struct counter c = DEAD("package-0", 25, 25, 3, 20), back = FINE("package-0", 25, 25);
    struct nrg_channel channel = channel_of(&c);
    struct made m;
    struct nrg_summary s;
    double t_s[119];
    int64_t raw[119];
    (void)state;
    for (size_t k = 0; k < 119; k++) {
        t_s[k] = FIRST_S + ((double)k + 0.3) * 0.1;
        raw[k] = t_s[k] < 6 ? shown(&c, t_s[k]) : t_s[k] < 8 ? 0 : shown(&back, t_s[k]);
    }
    made_init(&m);
    made_channel(&m, &channel, t_s, raw, 119);
    summarise(&m, &s);
    const struct nrg_domain *d = domain(&s, "package-0");
    close_to(d->covered, 0.5, 0.02, "covered");
    if (!(d->low_j <= 250 && 250 <= d->high_j))
        fail_msg("%g .. %g does not hold 250", d->low_j, d->high_j);
    nrg_summary_release(&s);
    made_release(&m);
}

/* Nothing was read of the processors in the run, but a model of them has them already. */
static void a_model_has_what_was_not_read(void **state)
{
    const struct counter c = FINE("package-0", 25, 25);
    struct made m;
    struct nrg_summary s;
    (void)state;
    made_init(&m);
    made_estimate(&m, FIRST_S, LAST_S, 20, 5, 0.5, 2);
    add_readings(&m, &c, FIRST_S, -0.2, 0.1);
    summarise(&m, &s);
    assert_null(domain(&s, "package-0"));
    assert_int_equal(s.total_provenance, NRG_ESTIMATED);
    close_to(s.total_covered, 1, 1e-9, "covered");
    close_to(s.total_high_j, domain(&s, "machine")->high_j, 1e-9, "high");
    close_to(s.absent_j, 0, 0, "absent");
    nrg_summary_release(&s);
    made_release(&m);
}

static void attribute_range(struct made *m, double from_s, double to_s, struct nrg_attribution *a)
{
    struct nrg_attribution_options o = plain;
    o.has_range = true;
    o.from_s = from_s;
    o.to_s = to_s;
    made_run(m, "run", 0, RUN_S);
    made_span(m, 1, 9, made_track(m, "thread", 7, 7, ""), made_name(m, "span", "work"));
    attribute(m, &o, a);
}

/* A range in a gap is as wide as the run: its like shows what it may have drawn. */
static void a_range_in_a_gap(void **state)
{
    const struct counter c[] = {DEAD("package-0", 5, 80, 4, 20), FINE("package-1", 5, 80)};
    struct made m;
    struct nrg_attribution a;
    (void)state;
    made_init(&m);
    add_sensor(&m, c, 2, 0.1);
    attribute_range(&m, 6, 9, &a);
    if (!(a.total_low_j <= 480 && 480 <= a.total_high_j))
        fail_msg("%g .. %g does not hold 480", a.total_low_j, a.total_high_j);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* nrgd's coarse view, with the last reading 0.7 s before the end of the run: that time has any
 * power that was seen, and a range in the middle has nothing of it. */
static void ends_that_are_held(void **state)
{
    const struct counter steady = {"package-0", 50, 50, 1, 1, 0, 0, false, 0, 0};
    const struct counter rising = {"package-0", 10, 200, 1, 1, 0, 0, false, 0, 0};
    struct made m;
    struct nrg_attribution a;
    struct nrg_summary s;
    (void)state;
    made_init(&m);
    add_readings(&m, &steady, -0.7, 9.4, 1);
    attribute_range(&m, 3, 6, &a);
    close_to(a.total_j, 150, 1.1, "range");
    assert_true(a.total_low_j > 150 - 51 - 5 && a.total_high_j < 150 + 51 + 5);
    nrg_attribution_release(&a);
    made_release(&m);

    made_init(&m);
    add_readings(&m, &rising, -0.7, 6.4, 1);
    made_run(&m, "run", 0, 7);
    made_open(&m);
    size_t n;
    struct nrg_error err;
    const struct nrg_run *run = nrg_recording_runs(m.recording, &n);
    assert_int_equal(nrg_summary_make(&s, m.recording, run, NRG_SPLIT_ACTIVE, &err), 0);
    const struct nrg_domain *d = domain(&s, "package-0");
    double last_j = (double)(shown(&rising, 6.3) - shown(&rising, 5.3)) * 1e-6;
    double held_j = d->energy_j - 10 * 5.3 - last_j;
    assert_true(d->edges_below_j >= held_j - 1);
    if (!(d->edges_above_j >= last_j * 0.7 - held_j - 1 && d->edges_above_j > 10))
        fail_msg("held %g J, the last second %g, above %g", held_j, last_j, d->edges_above_j);
    nrg_summary_release(&s);
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_counters_have_gaps),
        cmocka_unit_test(true_counters_have_none),
        cmocka_unit_test(a_counter_that_is_slower_than_it_says),
        cmocka_unit_test(a_gauge_of_the_same_name_tells),
        cmocka_unit_test(program_and_rows),
        cmocka_unit_test(idle_power_is_not_that_of_gaps),
        cmocka_unit_test(a_register_that_is_lost_after_it_was_dead),
        cmocka_unit_test(a_model_has_what_was_not_read),
        cmocka_unit_test(a_range_in_a_gap),
        cmocka_unit_test(ends_that_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
