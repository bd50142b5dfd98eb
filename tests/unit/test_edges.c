/*
 * The edges of a run between two readings: what the machine used before its begin and after its end
 * is known up to its power only. Machines go from idle to full power at the edges, readings are as
 * far from them as a slow or busy reader makes them, and the truth is in closed form. The intervals
 * hold it, and are no wider than what the time between reading and edge can have used.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>

#include "energy/summary.h"
#include "support/made.h"

#define RUNS    40
#define LEAST   0.95
#define IDLE_W  5.0
#define MOST    64    /* readings */
#define UPDATE  0.001 /* s, of a counter */
#define BEGIN_S 10.0

struct machine {
    double idle_w, full_w, from_s, to_s; /* full power from, to */
};

static double power_w(const struct machine *m, double t_s)
{
    return t_s >= m->from_s && t_s < m->to_s ? m->full_w : m->idle_w;
}

static double energy_j(const struct machine *m, double t_s)
{
    double full_s = fmax(0, fmin(t_s, m->to_s) - m->from_s);
    return m->idle_w * t_s + (m->full_w - m->idle_w) * full_s;
}

static double some(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

/* A run, and the readings around and in it. */
struct trial {
    struct machine machine;
    double end_s;
    struct nrg_channel channel;
    double t_s[MOST];
    int64_t raw[MOST];
    size_t n;
};

static void read_at(struct trial *t, double t_s)
{
    double updated_s = floor(t_s / UPDATE) * UPDATE;
    double value = t->channel.kind == NRG_COUNTER ? energy_j(&t->machine, updated_s)
                                                  : power_w(&t->machine, updated_s);
    assert_true(t->n < MOST);
    t->t_s[t->n] = t_s;
    t->raw[t->n++] = (int64_t)llround(value / t->channel.scale);
}

/* Readings every period_s, and one so long before the begin, and after the end. */
static void read_all(struct trial *t, double period_s, double before_s, double after_s)
{
    t->n = 0;
    for (double at_s = BEGIN_S - before_s - some(1, 2) * period_s; at_s < BEGIN_S - before_s;
         at_s += period_s)
        read_at(t, at_s);
    read_at(t, BEGIN_S - before_s);
    for (double at_s = BEGIN_S + some(0.01, 1) * period_s; at_s < t->end_s; at_s += period_s)
        read_at(t, at_s);
    read_at(t, t->end_s + after_s);
    read_at(t, t->end_s + after_s + period_s);
}

struct result {
    double energy_j, low_j, high_j;
};

static struct result evaluate(const struct trial *t)
{
    struct made made;
    struct nrg_summary s;
    struct nrg_error err;
    size_t n;
    made_init(&made);
    made_channel(&made, &t->channel, t->t_s, t->raw, t->n);
    made_run(&made, "run", BEGIN_S, t->end_s);
    made_open(&made);
    const struct nrg_run *run = nrg_recording_runs(made.recording, &n);
    assert_int_equal(nrg_summary_make(&s, made.recording, run, NRG_SPLIT_ACTIVE, &err), 0);
    assert_int_equal(s.n_domains, 1);
    struct result r = {s.domains[0].energy_j, s.domains[0].low_j, s.domains[0].high_j};
    nrg_summary_release(&s);
    made_release(&made);
    return r;
}

/* What is tried: with which part of the runs that must hold, and how wide they may be. */
struct kind {
    const char *name;
    bool gauge, falls; /* falls: full power before the run and after it, idle in it */
    double before_s[2], after_s[2], length_s[2];
};

/* All that the edges can be worth: readings that far from them, updates, and of a gauge half of a
 * period. */
static double widest_j(const struct kind *kind, const struct trial *t, double before_s,
                       double after_s, double period_s)
{
    double edges_s = before_s + after_s + 4 * UPDATE;
    if (kind->gauge)
        return t->machine.full_w * (edges_s + 2.5 * period_s);
    return t->machine.full_w * edges_s;
}

static void try_kind(const struct kind *kind)
{
    size_t held = 0;
    double half_j = 0;
    for (int i = 0; i < RUNS; i++) {
        struct trial t = {.channel =
                              kind->gauge ? made_gauge("package-0") : made_counter("package-0")};
        double period_s = 1 / some(1, 12), before_s = some(kind->before_s[0], kind->before_s[1]);
        double after_s = some(kind->after_s[0], kind->after_s[1]), full_w = some(20, 200);
        t.end_s = BEGIN_S + some(kind->length_s[0], kind->length_s[1]);
        t.channel.update_ns = (int64_t)llround(UPDATE * 1e9);
        t.machine = kind->falls ? (struct machine){full_w, IDLE_W, BEGIN_S, t.end_s}
                                : (struct machine){IDLE_W, full_w, BEGIN_S, t.end_s};
        read_all(&t, period_s, before_s, after_s);
        struct result r = evaluate(&t);
        double truth_j = energy_j(&t.machine, t.end_s) - energy_j(&t.machine, BEGIN_S);
        double wide_j = (r.high_j - r.low_j) / 2;
        held += truth_j >= r.low_j - 1e-5 && truth_j <= r.high_j + 1e-5;
        half_j += wide_j / RUNS;
        if (t.machine.full_w < t.machine.idle_w)
            t.machine.full_w = t.machine.idle_w;
        if (!(wide_j <= widest_j(kind, &t, before_s, after_s, period_s)))
            fail_msg("%s: %g J wide", kind->name, wide_j);
    }
    print_message("# %s: %zu of %d hold, mean half-width %.4f J\n", kind->name, held, RUNS, half_j);
    assert_true((double)held >= LEAST * RUNS);
}

/* As far from the edges as a busy machine makes it, at 1 to 12 Hz. */
static void counters_hold_a_step_at_the_edges(void **state)
{
    static const struct kind kinds[] = {
        {"close", false, false, {0, 0.0005}, {0, 0.0005}, {0.5, 4}},
        {"late", false, false, {0.0009, 0.0107}, {0.0009, 0.0107}, {0.5, 4}},
        {"late, at the begin", false, false, {0.0009, 0.0107}, {0, 0.0005}, {0.5, 4}},
        {"late, shorter than a period",
         false,
         false,
         {0.0009, 0.0107},
         {0.001, 0.01},
         {0.02, 0.08}},
        {"blocked", false, false, {0, 0.0005}, {0.05, 0.3}, {0.5, 4}},
        {"late, power falls", false, true, {0.0009, 0.0107}, {0.0009, 0.0107}, {0.5, 4}},
    };
    (void)state;
    srand(1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        try_kind(&kinds[i]);
}

/* Between two readings a gauge may have had the one's power, or the other's. */
static void gauges_hold_a_step_at_the_edges(void **state)
{
    static const struct kind kinds[] = {
        {"gauge", true, false, {0, 0.0005}, {0, 0.0005}, {2, 4}},
        {"gauge, late", true, false, {0.0009, 0.0107}, {0.0009, 0.0107}, {2, 4}},
        {"gauge, power falls", true, true, {0.0009, 0.0107}, {0.0009, 0.0107}, {2, 4}},
    };
    (void)state;
    srand(2);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        try_kind(&kinds[i]);
}

/* Power as it always was: a run that is read at its edges costs no more than before. */
static void readings_at_the_edges_cost_nothing(void **state)
{
    struct trial t = {.channel = made_counter("package-0"), .end_s = BEGIN_S + 2};
    (void)state;
    t.machine = (struct machine){50, 50, 0, 0};
    srand(3);
    read_all(&t, 0.1, 0, 0);
    struct result r = evaluate(&t);
    assert_true(fabs(r.energy_j - 100) < 0.06);
    assert_true(r.high_j - r.low_j < 2 * 50 * 0.0011);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_hold_a_step_at_the_edges),
        cmocka_unit_test(gauges_hold_a_step_at_the_edges),
        cmocka_unit_test(readings_at_the_edges_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
