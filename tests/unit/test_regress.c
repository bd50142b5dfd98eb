/*
 * attribute/regress/fit.c on small machines whose powers are known in closed form: readings are
 * worked out here, second by second, and powers must come back. How good it is with noise is the
 * business of test_regress_bars.c.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/internal.h"

#define MS        1000000LL
#define ZERO      (1000 * 1000 * MS)
#define MAX_CALLS 40000
#define MAX_READS 40000

struct call {
    int64_t begin_ns, end_ns;
    size_t class_;
    double share;
};

/* A program and its true power; calls are in order of time. */
struct machine {
    struct call calls[MAX_CALLS];
    size_t n_calls, n_classes;
    double power_w[48]; /* above idle */
    double idle_w;
    int64_t end_ns;
    struct nrg_timeline tl;
    struct nrg_channel channel;
};

static uint32_t dice;

static double roll(void)
{
    dice = dice * 1664525u + 1013904223u;
    return (double)(dice >> 8) / 16777216.0;
}

static struct machine *new_machine(size_t n_classes, double idle_w)
{
    struct machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    dice = 12345;
    m->n_classes = n_classes;
    m->idle_w = idle_w;
    m->end_ns = ZERO;
    return m;
}

static void done(struct machine *m)
{
    nrg_timeline_release(&m->tl);
    free(m);
}

/* A call after the last one; ms that pass without any before it. */
static void add_call(struct machine *m, size_t class_, double gap_ms, double ms)
{
    int64_t begin = m->end_ns + (int64_t)(gap_ms * MS), end = begin + (int64_t)(ms * MS);
    assert_true(m->n_calls < MAX_CALLS);
    m->calls[m->n_calls++] = (struct call){begin, end, class_, 1};
    m->end_ns = end;
}

/* The classes one after the other, with times that differ from turn to turn. */
static void run_turns(struct machine *m, size_t turns, double gap_ms)
{
    for (size_t i = 0; i < turns; i++)
        for (size_t c = 0; c < m->n_classes; c++)
            add_call(m, c, gap_ms * roll(), 0.3 + (double)(c + 1) * roll());
}

static double power_at(const struct machine *m, int64_t t_ns)
{
    double w = m->idle_w;
    for (size_t i = 0; i < m->n_calls && m->calls[i].begin_ns <= t_ns; i++)
        if (t_ns < m->calls[i].end_ns)
            w += m->power_w[m->calls[i].class_] * m->calls[i].share;
    return w;
}

/* Energy between two instants; `from` says where to begin looking and moves on. */
static double energy_j(const struct machine *m, int64_t begin_ns, int64_t end_ns, size_t *from)
{
    double j = m->idle_w * (double)(end_ns - begin_ns) / 1e9;
    while (*from < m->n_calls && m->calls[*from].end_ns <= begin_ns)
        ++*from;
    for (size_t i = *from; i < m->n_calls && m->calls[i].begin_ns < end_ns; i++) {
        const struct call *c = &m->calls[i];
        int64_t a = c->begin_ns > begin_ns ? c->begin_ns : begin_ns;
        int64_t b = c->end_ns < end_ns ? c->end_ns : end_ns;
        if (b > a)
            j += m->power_w[c->class_] * c->share * (double)(b - a) / 1e9;
    }
    return j;
}

static void make_timeline(struct machine *m, int64_t period_ns, bool gauge)
{
    struct nrg_timeline *tl = &m->tl;
    tl->n = (size_t)((m->end_ns - ZERO) / period_ns) + 1;
    assert_true(tl->n <= MAX_READS);
    tl->t_ns = calloc(tl->n, sizeof *tl->t_ns);
    tl->sum_j = calloc(tl->n, sizeof *tl->sum_j);
    tl->gap = calloc(tl->n, 1);
    tl->own_gauge = gauge ? calloc(tl->n, sizeof *tl->own_gauge) : NULL;
    tl->is_gauge = gauge;
    tl->period_ns = period_ns;
    for (size_t i = 0; i < tl->n; i++)
        tl->t_ns[i] = ZERO + (int64_t)i * period_ns;
    m->channel = (struct nrg_channel){.name = "package-0",
                                      .quantity = gauge ? NRG_POWER : NRG_ENERGY,
                                      .kind = gauge ? NRG_GAUGE : NRG_COUNTER,
                                      .scale = 1};
}

static void read_counter(struct machine *m, int64_t period_ns)
{
    size_t from = 0;
    make_timeline(m, period_ns, false);
    for (size_t i = 1; i < m->tl.n; i++)
        m->tl.sum_j[i] = m->tl.sum_j[i - 1] + energy_j(m, m->tl.t_ns[i - 1], m->tl.t_ns[i], &from);
}

/* Running average, in steps that are short against tau, each with its mean power. */
static void read_average(struct machine *m, int64_t period_ns, double tau_s)
{
    const int parts = 50;
    double shown = m->idle_w;
    size_t from = 0;
    make_timeline(m, period_ns, true);
    for (size_t i = 0; i < m->tl.n; i++) {
        for (int p = 0; i && p < parts; p++) {
            int64_t begin = m->tl.t_ns[i - 1] + period_ns * p / parts;
            int64_t end = m->tl.t_ns[i - 1] + period_ns * (p + 1) / parts;
            double s = (double)(end - begin) / 1e9, w = energy_j(m, begin, end, &from) / s;
            shown = w + (shown - w) * exp(-s / tau_s);
        }
        m->tl.own_gauge[i] = shown;
    }
}

static void read_window(struct machine *m, int64_t period_ns, int64_t window_ns)
{
    make_timeline(m, period_ns, true);
    for (size_t i = 0; i < m->tl.n; i++) {
        size_t from = 0;
        m->tl.own_gauge[i] = energy_j(m, m->tl.t_ns[i] - window_ns, m->tl.t_ns[i], &from) /
                             ((double)window_ns / 1e9);
    }
}

static struct nrg_regress_options options_of(const struct machine *m)
{
    return (struct nrg_regress_options){.timeline = &m->tl,
                                        .channel = &m->channel,
                                        .begin_ns = ZERO,
                                        .end_ns = m->end_ns,
                                        .n_classes = m->n_classes,
                                        .idle_w = NAN,
                                        .confidence = 0.95};
}

static int add_slice(struct nrg_regress *r, int64_t begin_ns, int64_t end_ns, size_t class_,
                     double rate)
{
    return nrg_regress_slice(
        r, &(struct nrg_class_activity){
               .begin_ns = begin_ns, .end_ns = end_ns, .class_ = class_, .rate = rate});
}

static int regress(const struct machine *m, const struct nrg_regress_options *o,
                   struct nrg_regress_result *result)
{
    struct nrg_regress *r;
    assert_int_equal(nrg_regress_new(o, &r), 0);
    for (size_t i = 0; i < m->n_calls; i++)
        assert_int_equal(add_slice(r, m->calls[i].begin_ns, m->calls[i].end_ns, m->calls[i].class_,
                                   m->calls[i].share),
                         0);
    int rc = nrg_regress_solve(r, result);
    nrg_regress_free(r);
    return rc;
}

static void near(double value, double truth, double part, const char *what, size_t i)
{
    if (!(fabs(value - truth) <= part * fabs(truth)))
        fail_msg("%s %zu: %.9g, not %.9g", what, i, value, truth);
}

static void check_powers(const struct machine *m, const struct nrg_regress_result *result,
                         double above_w, double part)
{
    for (size_t i = 0; i < m->n_classes; i++) {
        const struct nrg_regress_class *c = &result->classes[i];
        near(c->power_w, m->power_w[i] + above_w, part, "power of class", i);
        if (c->unresolved)
            print_message("# class %zu: %g (%g .. %g) W\n", i, c->power_w, c->low_w, c->high_w);
        assert_true(c->low_w <= c->power_w && c->power_w <= c->high_w);
        assert_int_equal(c->group, i);
        assert_false(c->unresolved);
    }
}

static void powers_and_idle_of_a_counter(void **state)
{
    struct machine *m = new_machine(4, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30, 0.5}, 4 * sizeof(double));
    run_turns(m, 400, 2);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-6);
    assert_true(r.idle_fitted);
    near(r.idle_w, 3, 1e-6, "idle", 0);
    assert_string_equal(r.lag_source, "none");
    assert_true(r.lag_s == 0 && r.residual < 1e-6);
    assert_true(r.intervals > 300 && r.intervals < m->tl.n);
    nrg_regress_result_release(&r);
    o.idle_w = 3;
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-6);
    assert_false(r.idle_fitted);
    assert_true(r.idle_w == 3);
    assert_null(r.idle_covariance);
    nrg_regress_result_release(&r);
    done(m);
}

/* Time and power of everything add up to what was read. */
static void times_add_up(void **state)
{
    struct machine *m = new_machine(3, 5);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 20, 30}, 3 * sizeof(double));
    run_turns(m, 300, 1);
    read_counter(m, 7 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    double j = 0, read_j = m->tl.sum_j[m->tl.n - 1], read_s;
    read_s = (double)(m->tl.t_ns[m->tl.n - 1] - ZERO) / 1e9;
    for (size_t i = 0; i < 3; i++)
        j += r.classes[i].power_w * r.classes[i].time_s;
    near(j + r.idle_w * read_s, read_j, 0.01, "energy", 0);
    nrg_regress_result_release(&r);
    done(m);
}

/* No time without spans: idle can't be told from them, and is in their powers. */
static void covered_time_has_no_idle(void **state)
{
    struct machine *m = new_machine(4, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30, 0.5}, 4 * sizeof(double));
    run_turns(m, 400, 0);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 3, 1e-6);
    assert_true(isnan(r.idle_w) && !r.idle_fitted);
    nrg_regress_result_release(&r);
    done(m);
}

static void classes_at_once_share(void **state)
{
    struct machine *m = new_machine(2, 1);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){12, 40}, 2 * sizeof(double));
    for (int i = 0; i < 2000; i++) {
        add_call(m, 0, roll(), 1 + roll());
        m->calls[m->n_calls - 1].share = 0.25;
        struct call *last = &m->calls[m->n_calls - 1];
        m->calls[m->n_calls++] = (struct call){last->begin_ns + MS / 3, last->end_ns, 1, 0.75};
        add_call(m, 0, 0, 2 * roll());
    }
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-5);
    nrg_regress_result_release(&r);
    done(m);
}

/* 1 lasts twice as long as 0, always and at once; 3 runs whenever 4 does. */
static void inseparable_classes_are_a_group(void **state)
{
    struct machine *m = new_machine(5, 2);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){12, 6, 40, 9, 21}, 5 * sizeof(double));
    for (int i = 0; i < 1500; i++) {
        add_call(m, 0, roll(), 1 + roll());
        struct call *last = &m->calls[m->n_calls - 1];
        m->calls[m->n_calls++] = (struct call){last->begin_ns, last->end_ns, 1, 2};
        add_call(m, 2, roll(), 1 + roll());
        add_call(m, 3, roll(), 1 + roll());
        last = &m->calls[m->n_calls - 1];
        m->calls[m->n_calls++] = (struct call){last->begin_ns, last->end_ns, 4, 1};
    }
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    assert_int_equal(r.classes[0].group, 0);
    assert_int_equal(r.classes[1].group, 0);
    assert_int_equal(r.classes[2].group, 2);
    assert_int_equal(r.classes[3].group, 3);
    assert_int_equal(r.classes[4].group, 3);
    near(r.classes[0].power_w, (12 + 2 * 6) / 3.0, 1e-5, "group", 0);
    assert_true(r.classes[1].power_w == r.classes[0].power_w);
    near(r.classes[2].power_w, 40, 1e-5, "class", 2);
    near(r.classes[4].power_w, (9 + 21) / 2.0, 1e-5, "group", 3);
    assert_true(r.covariance[0] == r.covariance[1] && r.covariance[0] == r.covariance[5 + 1]);
    nrg_regress_result_release(&r);
    done(m);
}

/* 2 is open whenever 0 or 1 is: the three are one, and their joint power is known. */
static void what_others_explain_is_a_group(void **state)
{
    struct machine *m = new_machine(4, 2);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){12, 6, 5, 50}, 4 * sizeof(double));
    for (int i = 0; i < 3000; i++) {
        add_call(m, (size_t)(i % 2), roll(), 1 + roll());
        struct call *last = &m->calls[m->n_calls - 1];
        m->calls[m->n_calls++] = (struct call){last->begin_ns, last->end_ns, 2, 1};
        add_call(m, 3, roll(), roll());
    }
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    double j = 0, s = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(r.classes[i].group, 0);
        j += m->power_w[i] * r.classes[i].time_s;
        s += r.classes[i].time_s;
    }
    near(r.classes[1].power_w, j / s, 1e-4, "group", 0);
    near(r.classes[3].power_w, 50, 1e-4, "class", 3);
    nrg_regress_result_release(&r);
    done(m);
}

/* Two threads that never rest, each in one of its own classes, as many of each. */
static void run_sides(struct machine *m, int64_t end_ns)
{
    int64_t at_ns[2] = {ZERO, ZERO};
    size_t next[2] = {0, 0}, each = m->n_classes / 2;
    while (at_ns[0] < end_ns || at_ns[1] < end_ns) {
        size_t side = at_ns[1] < at_ns[0];
        int64_t until_ns = at_ns[side] + MS / 2 + (int64_t)(roll() * 4 * MS);
        until_ns = until_ns < end_ns ? until_ns : end_ns;
        m->calls[m->n_calls++] = (struct call){at_ns[side], until_ns, side * each + next[side], 1};
        at_ns[side] = until_ns;
        next[side] = (next[side] + 1) % each;
    }
    m->end_ns = end_ns;
}

/* One side could draw any watts more and the other as many less: both are taken to draw the same in
 * the mean, and what that may be wrong by is in each, but not in the sum of both. */
static void check_sides(size_t n)
{
    struct machine *m = new_machine(n, 2);
    struct nrg_regress_result r;
    double off_j = 0, more_j = 0;
    for (size_t c = 0; c < n; c++)
        m->power_w[c] = 6 + (double)(c % (n / 2) * 7 % 20) / 2;
    run_sides(m, ZERO + 30000 * MS);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    o.idle_w = 2;
    assert_int_equal(regress(m, &o, &r), 0);
    for (size_t c = 0; c < n; c++) {
        const struct nrg_regress_class *of = &r.classes[c];
        assert_int_equal(of->group, c);
        near(of->power_w, m->power_w[c], 0.05, "class", c);
        assert_true(of->low_w < m->power_w[c] - 3 && of->high_w > m->power_w[c] + 3);
        off_j += of->drift_w[NRG_DOUBT_ALIKE] * of->time_s;
        more_j += fabs(of->drift_w[NRG_DOUBT_ALIKE]) * of->time_s;
    }
    assert_true(more_j > 2 * 30 * 3 && fabs(off_j) < 0.02 * more_j);
    nrg_regress_result_release(&r);
    done(m);
}

static void sides_that_never_rest_are_alike(void **state)
{
    (void)state;
    check_sides(40);
    check_sides(10);
}

/* Sides that are not alike in the mean, so that a class would draw less than nothing if they were:
 * the other powers of its side go with it, and all intervals have it. */
static void sides_keep_their_differences(void **state)
{
    struct machine *m = new_machine(40, 2);
    struct nrg_regress_result r;
    (void)state;
    for (size_t c = 0; c < 40; c++)
        m->power_w[c] = c < 20 ? 1 + (double)(c * 7 % 20) * 2 : 8 + (double)(c % 20) / 4;
    run_sides(m, ZERO + 30000 * MS);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    o.idle_w = 2;
    assert_int_equal(regress(m, &o, &r), 0);
    for (size_t c = 0; c < 40; c++) {
        const struct nrg_regress_class *of = &r.classes[c], *first = &r.classes[c / 20 * 20 + 1];
        near(of->power_w - first->power_w, m->power_w[c] - m->power_w[c / 20 * 20 + 1], 0.2,
             "class", c);
        assert_true(of->low_w <= m->power_w[c] && of->high_w >= m->power_w[c]);
    }
    nrg_regress_result_release(&r);
    done(m);
}

/* Another process has one CPU all the time, and the program never rests: only the sum is known. */
static void steady_others_are_not_told(void **state)
{
    struct machine *m = new_machine(6, 2);
    struct nrg_regress_result r;
    double sum_w = 0, others_w = 12;
    (void)state;
    for (size_t c = 0; c < 4; c++)
        m->power_w[c] = 10 + 3 * (double)c;
    m->power_w[4] = others_w;
    m->n_classes = 4;
    m->calls[m->n_calls++] = (struct call){ZERO, ZERO + 20000 * MS, 4, 1};
    while (m->end_ns < ZERO + 20000 * MS - 10 * MS)
        run_turns(m, 1, 0);
    m->calls[0].end_ns = m->end_ns;
    m->n_classes = 6;
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    int64_t cells[201];
    for (size_t k = 0; k < 201; k++)
        cells[k] = ZERO + (int64_t)k * 100 * MS;
    o.idle_w = 2;
    o.others_class = 4;
    o.workers_class = 5;
    o.cell_ns = cells;
    o.n_cells = 200;
    assert_int_equal(regress(m, &o, &r), 0);
    assert_true(r.others_steady);
    for (size_t c = 0; c < 5; c++) {
        assert_true(r.classes[c].low_w <= m->power_w[c] && r.classes[c].high_w >= m->power_w[c]);
        sum_w += (r.classes[c].power_w - m->power_w[c]) * r.classes[c].time_s;
    }
    assert_true(r.classes[4].low_w > 4 && r.classes[4].high_w < 30);
    assert_true(fabs(sum_w) / 20 < 0.1);
    nrg_regress_result_release(&r);
    done(m);
}

static void classes_that_never_run(void **state)
{
    struct machine *m = new_machine(2, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 20}, 2 * sizeof(double));
    run_turns(m, 400, 2);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    o.n_classes = 1000;
    assert_int_equal(regress(m, &o, &r), 0);
    near(r.classes[1].power_w, 20, 1e-6, "class", 1);
    for (size_t i = 2; i < 1000; i++) {
        assert_true(isnan(r.classes[i].power_w) && isnan(r.classes[i].low_w));
        assert_true(r.classes[i].time_s == 0 && r.classes[i].group == i);
    }
    nrg_regress_result_release(&r);
    done(m);
}

static void bad_and_empty_slices(void **state)
{
    struct machine *m = new_machine(2, 3);
    struct nrg_regress *r;
    struct nrg_regress_result result;
    (void)state;
    memcpy(m->power_w, (double[]){10, 20}, 2 * sizeof(double));
    run_turns(m, 400, 2);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(nrg_regress_new(&o, &r), 0);
    assert_int_equal(add_slice(r, ZERO, ZERO + 1, 2, 1), -EINVAL);
    assert_int_equal(add_slice(r, ZERO, ZERO + 1, SIZE_MAX, 1), -EINVAL);
    assert_int_equal(add_slice(r, ZERO, ZERO + 1, 0, NAN), -EINVAL);
    assert_int_equal(add_slice(r, ZERO, ZERO + 1, 0, INFINITY), -EINVAL);
    for (size_t i = 0; i < m->n_calls; i++) {
        const struct call *c = &m->calls[i];
        assert_int_equal(add_slice(r, c->begin_ns, c->begin_ns, 1 - c->class_, 1), 0);
        assert_int_equal(add_slice(r, c->begin_ns, c->begin_ns - 5, 1 - c->class_, 1), 0);
        assert_int_equal(add_slice(r, c->begin_ns, c->end_ns, c->class_, 1), 0);
        assert_int_equal(add_slice(r, c->begin_ns, c->end_ns, 1 - c->class_, 0), 0);
    }
    assert_int_equal(add_slice(r, ZERO - 1, ZERO + 1, 0, 1), -EINVAL);
    assert_int_equal(nrg_regress_solve(r, &result), 0);
    check_powers(m, &result, 0, 1e-6);
    nrg_regress_result_release(&result);
    nrg_regress_free(r);
    nrg_regress_free(NULL);
    done(m);
}

static void too_little_is_no_data(void **state)
{
    struct machine *m = new_machine(4, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30, 0.5}, 4 * sizeof(double));
    run_turns(m, 40, 2);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    size_t all = m->tl.n;
    for (size_t n = 0; n <= 4; n++) {
        m->tl.n = n;
        assert_int_equal(regress(m, &o, &r), -ENODATA);
    }
    m->tl.n = all;
    m->n_calls = 0;
    assert_int_equal(regress(m, &o, &r), -ENODATA);
    done(m);
}

/* As many readings as make it possible give powers, and an interval that says how little that is.
 */
static void hardly_enough(void **state)
{
    struct machine *m = new_machine(2, 0);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 20}, 2 * sizeof(double));
    run_turns(m, 40, 2);
    read_counter(m, 10 * MS);
    for (size_t i = 0; i < m->tl.n; i++)
        m->tl.sum_j[i] = round(m->tl.sum_j[i] * 20) / 20; /* steps of half an interval */
    m->tl.n = 5;
    struct nrg_regress_options o = options_of(m);
    o.idle_w = 0;
    assert_int_equal(regress(m, &o, &r), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_true(r.classes[i].low_w >= 0 && r.classes[i].low_w <= m->power_w[i]);
        assert_true(r.classes[i].high_w >= m->power_w[i]);
        assert_true(r.classes[i].unresolved);
    }
    nrg_regress_result_release(&r);
    done(m);
}

static void gaps_are_left_out(void **state)
{
    struct machine *m = new_machine(3, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    run_turns(m, 400, 2);
    read_counter(m, 10 * MS);
    for (size_t g = 20; g < m->tl.n; g += 37) { /* what is in a gap is not known: here, garbage */
        m->tl.gap[g - 1] = 1;
        for (size_t i = g; i < m->tl.n; i++)
            m->tl.sum_j[i] += 1000;
    }
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-5);
    nrg_regress_result_release(&r);
    done(m);
}

/* Read every ms, moves every 20 ms: the jump belongs to the time since the last one. */
static void counter_that_stands_still(void **state)
{
    struct machine *m = new_machine(3, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    run_turns(m, 1000, 2);
    read_counter(m, MS);
    for (size_t i = 0; i < m->tl.n; i++)
        m->tl.sum_j[i] = m->tl.sum_j[i / 20 * 20];
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-5);
    assert_true(r.intervals <= m->tl.n / 20);
    nrg_regress_result_release(&r);
    done(m);
}

/* Readings before and after the time asked for have nothing to say. */
static void only_the_time_asked_for(void **state)
{
    struct machine *m = new_machine(3, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    run_turns(m, 600, 2);
    read_counter(m, 10 * MS);
    struct nrg_regress_options o = options_of(m);
    o.begin_ns = m->tl.t_ns[m->tl.n / 4];
    o.end_ns = m->tl.t_ns[m->tl.n / 4 * 3];
    for (size_t i = 0; i < m->tl.n; i++) {
        double before = (double)(o.begin_ns - m->tl.t_ns[i]) / 1e9;
        double after = (double)(m->tl.t_ns[i] - o.end_ns) / 1e9;
        m->tl.sum_j[i] += after > 0 ? 100 * after : before > 0 ? -500 * before : 0;
    }
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-5);
    assert_true(r.intervals <= m->tl.n / 2);
    nrg_regress_result_release(&r);
    done(m);
}

static void running_average(void **state)
{
    struct machine *m = new_machine(3, 4);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    run_turns(m, 600, 2);
    read_average(m, 2 * MS, 0.05);
    struct nrg_regress_options o = options_of(m);
    o.lag = NRG_LAG_GIVEN;
    o.lag_s = 0.05;
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 0.005);
    near(r.idle_w, 4, 0.005, "idle", 0);
    assert_string_equal(r.lag_source, "given");
    nrg_regress_result_release(&r);
    o.lag = NRG_LAG_AUTO;
    o.lag_s = 0;
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 0.005);
    assert_string_equal(r.lag_source, "fitted");
    near(r.lag_s, 0.05, 0.01, "lag", 0);
    nrg_regress_result_release(&r);
    m->channel.lag_ns = 50 * MS;
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 0.005);
    assert_string_equal(r.lag_source, "driver");
    near(r.lag_s, 0.05, 1e-9, "lag", 0);
    nrg_regress_result_release(&r);
    /* Without it, powers are drawn together: the shortest way to see that it matters. */
    o.lag = NRG_LAG_NONE;
    assert_int_equal(regress(m, &o, &r), 0);
    assert_string_equal(r.lag_source, "none");
    assert_true(r.classes[2].power_w < 15);
    nrg_regress_result_release(&r);
    done(m);
}

/* What the first reading of a running average is off by shows in all rows until the average has
 * forgotten it: it is nobody's power. */
static void first_reading_is_off(void **state)
{
    struct machine *m = new_machine(3, 4);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    run_turns(m, 600, 2);
    read_average(m, 2 * MS, 0.4);
    for (size_t i = 0; i < m->tl.n; i++)
        m->tl.own_gauge[i] += i ? 0.1 * (roll() - 0.5) : -0.05;
    struct nrg_regress_options o = options_of(m);
    o.lag = NRG_LAG_GIVEN;
    o.lag_s = 0.4;
    assert_int_equal(regress(m, &o, &r), 0);
    near(r.idle_w, 4, 0.01, "idle", 0);
    nrg_regress_result_release(&r);
    done(m);
}

static void mean_over_a_window(void **state)
{
    struct machine *m = new_machine(3, 4);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    run_turns(m, 600, 2);
    read_window(m, 2 * MS, 40 * MS);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-3);
    assert_string_equal(r.lag_source, "fitted");
    near(r.lag_s, 0.02, 0.01, "lag", 0);
    nrg_regress_result_release(&r);
    m->channel.lag_ns = 20 * MS; /* how late the mean is: half the window */
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-3);
    assert_string_equal(r.lag_source, "driver");
    nrg_regress_result_release(&r);
    done(m);
}

static void instant_and_mean_of_a_gauge(void **state)
{
    struct machine *m = new_machine(3, 4);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    run_turns(m, 600, 2);
    make_timeline(m, 2 * MS, true);
    for (size_t i = 0; i < m->tl.n; i++)
        m->tl.own_gauge[i] = power_at(m, m->tl.t_ns[i]);
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-3);
    assert_string_equal(r.lag_source, "none");
    nrg_regress_result_release(&r);
    nrg_timeline_release(&m->tl);
    read_window(m, 3 * MS, 3 * MS); /* the window is the time since the last reading */
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-3);
    assert_true(r.lag_s < 1e-4);
    nrg_regress_result_release(&r);
    done(m);
}

/* One moment of each update, on a clock that is not the reader's: two updates in calls of one class
 * show the same. */
static void read_moments(struct machine *m, double update_ms, double jitter_ms)
{
    double after_ms = 0, next_ms = 3.7;
    make_timeline(m, 10 * MS, true);
    m->channel.update_ns = 20 * MS;
    for (size_t i = 0, k = 0; i < m->tl.n; i++) {
        while (next_ms <= 10.0 * (double)i) {
            after_ms = next_ms;
            next_ms = 3.7 + (double)++k * update_ms + jitter_ms * (2 * roll() - 1);
        }
        m->tl.own_gauge[i] = power_at(m, ZERO + (int64_t)(after_ms * MS));
    }
}

static void moments_of_a_slow_gauge(void **state)
{
    struct machine *m = new_machine(4, 20);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){40, 150, 10, 90}, 4 * sizeof(double));
    run_turns(m, 2500, 1);
    read_moments(m, 20.0011, 0);
    struct nrg_regress_options o = options_of(m);
    for (int known = 0; known < 2; known++) {
        m->channel.window_ns = known ? MS / 10 : 0;
        assert_int_equal(regress(m, &o, &r), 0);
        check_powers(m, &r, 0, 0.02);
        nrg_regress_result_release(&r);
    }
    done(m);
}

/* By how much updates jitter is not known: what they show is one of the moments about, which is
 * noise and no reason to take a class's power for its neighbour's. */
static void moments_that_jitter(void **state)
{
    struct machine *m = new_machine(4, 20);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){40, 150, 10, 90}, 4 * sizeof(double));
    run_turns(m, 2500, 1);
    read_moments(m, 20.0011, 1);
    m->channel.window_ns = MS / 10;
    struct nrg_regress_options o = options_of(m);
    o.idle_w = m->idle_w;
    assert_int_equal(regress(m, &o, &r), 0);
    for (size_t i = 0; i < m->n_classes; i++)
        assert_true(r.classes[i].low_w < m->power_w[i] && m->power_w[i] < r.classes[i].high_w);
    near(r.classes[1].power_w, 150, 0.1, "power of class", 1);
    nrg_regress_result_release(&r);
    done(m);
}

/* Bursts of something that no span tells of: one interval in fifty has twice the energy. */
static void outliers_lose_weight(void **state)
{
    struct machine *m = new_machine(3, 3);
    struct nrg_regress_result r;
    double extra = 0, last = 0;
    (void)state;
    memcpy(m->power_w, (double[]){10, 12, 30}, 3 * sizeof(double));
    run_turns(m, 2000, 2);
    read_counter(m, 10 * MS);
    for (size_t i = 1; i < m->tl.n; i++) {
        double step = m->tl.sum_j[i] - last;
        last = m->tl.sum_j[i];
        extra += roll() < 0.02 ? step : 0.002 * step * (roll() - 0.5);
        m->tl.sum_j[i] += extra;
    }
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 0.01);
    nrg_regress_result_release(&r);
    done(m);
}

/* Everything gets 5 % hotter over the run: powers are the mean, and not drawn to idle. */
static void drift_is_not_idle(void **state)
{
    struct machine *m = new_machine(3, 3);
    struct nrg_regress_result r;
    double sum = 0, last = 0;
    (void)state;
    memcpy(m->power_w, (double[]){10, 12, 30}, 3 * sizeof(double));
    run_turns(m, 2000, 2);
    read_counter(m, 10 * MS);
    for (size_t i = 1; i < m->tl.n; i++) {
        double step = m->tl.sum_j[i] - last, at = (double)i / (double)m->tl.n - 0.5;
        last = m->tl.sum_j[i];
        sum += step * (1 + 0.05 * at);
        m->tl.sum_j[i] = sum;
    }
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 0.003);
    near(r.idle_w, 3, 0.01, "idle", 0);
    nrg_regress_result_release(&r);
    done(m);
}

/* Calls that wait at their end: only the rate of all of them together is known. */
static void waits_are_not_the_neighbours(void **state)
{
    struct machine *m = new_machine(4, 3);
    struct nrg_regress_result result;
    struct nrg_regress *r;
    double busy_ns = 0;
    (void)state;
    memcpy(m->power_w, (double[]){40, 10, 30, 20}, 4 * sizeof(double));
    for (size_t i = 0; i < 12000; i++) /* the gap before a call is the wait of the one before */
        add_call(m, i % 4, 0.6 * roll() * (double)((i + 3) % 4 + 1), (double)(i % 4 + 1));
    read_counter(m, 10 * MS);
    m->channel.update_ns = MS;
    struct nrg_regress_options o = options_of(m);
    o.idle_w = 3;
    for (size_t i = 0; i < m->n_calls; i++)
        busy_ns += (double)(m->calls[i].end_ns - m->calls[i].begin_ns);
    assert_int_equal(nrg_regress_new(&o, &r), 0);
    for (size_t i = 0; i + 1 < m->n_calls; i++) {
        struct nrg_class_activity call = {.begin_ns = m->calls[i].begin_ns,
                                          .end_ns = m->calls[i + 1].begin_ns,
                                          .class_ = i % 4,
                                          .rate = busy_ns / (double)(m->end_ns - ZERO),
                                          .calls = 1};
        assert_int_equal(nrg_regress_slice(r, &call), 0);
    }
    assert_int_equal(nrg_regress_solve(r, &result), 0);
    for (size_t c = 0; c < 4; c++) { /* energy of a call: its power for c + 1 ms */
        double calls = (double)(m->n_calls / 4), truth_j = m->power_w[c] * (double)(c + 1) * 1e-3;
        near(result.classes[c].power_w * result.classes[c].time_s / calls, truth_j, 0.1, "call", c);
    }
    nrg_regress_free(r);
    nrg_regress_result_release(&result);
    done(m);
}

/* What is not known of when calls use their energy: classes have it of each other. */
static void doubts_cancel(const struct nrg_regress_result *result, size_t n)
{
    double sum_j = 0, all_j = 0;
    for (size_t c = 0; c < n; c++) {
        double doubt_j = result->classes[c].drift_w[NRG_DOUBT_WITHIN] * result->classes[c].time_s;
        sum_j += doubt_j;
        all_j += fabs(doubt_j);
    }
    assert_true(all_j > 0);
    assert_true(fabs(sum_j) < 1e-6 * all_j);
}

static void read_every_10_ms(struct machine *m)
{
    read_counter(m, 10 * MS);
}

/* Windows that follow one another, and such that are a part of the time. */
static void read_means(struct machine *m)
{
    read_window(m, 20 * MS, 20 * MS);
}

static void read_parts(struct machine *m)
{
    read_window(m, 40 * MS, 10 * MS);
}

/* Calls draw less in their first part, by time or by length: their neighbours do not pay for it. */
static void regress_uneven_calls(double first_part, double first_ms,
                                 void (*read)(struct machine *m))
{
    struct machine *m = new_machine(4, 3);
    struct nrg_regress_result result;
    struct nrg_regress *r;
    double energy[4] = {0};
    memcpy(m->power_w, (double[]){40, 10, 30, 20}, 4 * sizeof(double));
    for (size_t i = 0; i < 8000; i++) {
        double ms = (0.3 + 2 * (double)(i % 4)) * (0.8 + 0.4 * roll());
        double first = first_part * ms + first_ms;
        add_call(m, i % 4, i % 4 ? 0 : roll(), first);
        m->calls[m->n_calls - 1].share = 0.8;
        add_call(m, i % 4, 0, ms - first);
        energy[i % 4] += m->power_w[i % 4] * (ms - 0.2 * first) * 1e-3;
    }
    read(m);
    struct nrg_regress_options o = options_of(m);
    o.idle_w = 3;
    assert_int_equal(nrg_regress_new(&o, &r), 0);
    for (size_t i = 0; i < m->n_calls; i += 2) {
        struct nrg_class_activity call = {.begin_ns = m->calls[i].begin_ns,
                                          .end_ns = m->calls[i + 1].end_ns,
                                          .class_ = m->calls[i].class_,
                                          .rate = 1,
                                          .calls = 1};
        assert_int_equal(nrg_regress_slice(r, &call), 0);
    }
    assert_int_equal(nrg_regress_solve(r, &result), 0);
    for (size_t c = 0; c < 4; c++) {
        const struct nrg_regress_class *class_ = &result.classes[c];
        double off = c >= 2 ? 0.005 : m->tl.is_gauge ? 0.08 : 0.06; /* calls are long, or short */
        near(class_->power_w * class_->time_s, energy[c], off, "class", c);
    }
    doubts_cancel(&result, 4);
    nrg_regress_free(r);
    nrg_regress_result_release(&result);
    done(m);
}

static void power_changes_within_calls(void **state)
{
    (void)state;
    regress_uneven_calls(0.3, 0, read_every_10_ms);
    regress_uneven_calls(0, 0.1, read_every_10_ms);
    regress_uneven_calls(0.3, 0, read_means);
    regress_uneven_calls(0.3, 0, read_parts);
}

/* Every tenth reading is late: no row of ten readings or more ends with one of those. */
static void rows_end_with_punctual_readings(void **state)
{
    enum { READINGS = 1000 };
    static int64_t t_ns[READINGS];
    static double sum_j[READINGS];
    static uint8_t gap[READINGS];
    struct nrg_timeline tl = {
        .n = READINGS, .t_ns = t_ns, .sum_j = sum_j, .gap = gap, .period_ns = MS};
    struct nrg_observer observer;
    struct nrg_observation seen;
    size_t rows = 0;
    (void)state;
    for (size_t i = 0; i < READINGS; i++) {
        t_ns[i] = ZERO + (int64_t)i * MS + (i % 10 ? 0 : MS / 5);
        sum_j[i] = (double)i;
    }
    struct nrg_regress_options o = {.timeline = &tl,
                                    .begin_ns = ZERO,
                                    .end_ns = ZERO + READINGS * MS,
                                    .merged_ns = MS * 95 / 10,
                                    .punctual_ns = nrg_observer_due(&tl)};
    assert_in_range((o.punctual_ns - ZERO) % MS, 0, MS / 20);
    for (nrg_observer_init(&observer, &o); nrg_observe(&observer, &seen); rows++)
        assert_int_equal((seen.to_ns - ZERO) % MS, 0);
    assert_in_range(rows, READINGS / 14, READINGS / 10);
}

/* Readings of an edge are one row, whose reach is not longer than the readings around it; rows
 * between two edges are as elsewhere. */
static void readings_of_an_edge_are_one_row(void **state)
{
    enum { READINGS = 1000 };
    static int64_t t_ns[READINGS];
    static double sum_j[READINGS];
    static uint8_t gap[READINGS];
    struct nrg_timeline tl = {
        .n = READINGS, .t_ns = t_ns, .sum_j = sum_j, .gap = gap, .period_ns = MS};
    struct nrg_observer observer;
    struct nrg_observation seen;
    size_t edges = 0, others = 0;
    (void)state;
    for (size_t i = 0; i < READINGS; i++) {
        t_ns[i] = ZERO + (int64_t)i * MS;
        sum_j[i] = (double)i;
    }
    struct nrg_regress_options o = {.timeline = &tl,
                                    .begin_ns = ZERO,
                                    .end_ns = ZERO + READINGS * MS,
                                    .merged_ns = 10 * MS,
                                    .edges = {{ZERO, ZERO + 50 * MS},
                                              {ZERO + 195 * MS, ZERO + 295 * MS},
                                              {ZERO + 900 * MS, ZERO + READINGS * MS}},
                                    .n_edges = 3};
    for (nrg_observer_init(&observer, &o); nrg_observe(&observer, &seen);) {
        edges += seen.edge;
        others += !seen.edge;
        assert_in_range(seen.to_ns - seen.from_ns, seen.edge ? 50 * MS : 10 * MS,
                        seen.edge ? 110 * MS : 10 * MS);
    }
    assert_int_equal(edges, 3);
    assert_in_range(others, 73, 76); /* 50 to 190 ms, 300 to 900 */
}

/* Two classes take turns, 95 ms each, cut into slices by cells: of readings in between, those that
 * a change falls into are rows, and what lies between two such is one, or two where that is long.
 * Observed again, from what was kept, rows are the same. */
static void rows_go_on_while_nothing_changes(void **state)
{
    enum { READINGS = 1000, TURN = 95, CELL = 19 };
    static int64_t t_ns[READINGS];
    static double sum_j[READINGS];
    static uint8_t gap[READINGS];
    static struct nrg_regress_slice slice[READINGS / CELL];
    struct nrg_timeline tl = {
        .n = READINGS, .t_ns = t_ns, .sum_j = sum_j, .gap = gap, .period_ns = MS};
    struct nrg_slices slices = {.items = slice, .n = READINGS / CELL};
    struct nrg_borders borders = {0}, few = {0};
    struct nrg_observer observer;
    struct nrg_observation seen;
    (void)state;
    for (size_t i = 0; i < READINGS; i++) {
        t_ns[i] = ZERO + (int64_t)i * MS + MS / 3;
        sum_j[i] = (double)i;
    }
    for (size_t i = 0; i < slices.n; i++)
        slice[i] = (struct nrg_regress_slice){.begin_ns = ZERO + (int64_t)i * CELL * MS,
                                              .end_ns = ZERO + (int64_t)(i + 1) * CELL * MS,
                                              .column = (uint16_t)(i * CELL / TURN % 2)};
    assert_int_equal(nrg_borders_find(&few, &slices, 2, 5), 0);
    assert_int_equal(few.n, 0);
    assert_int_equal(nrg_borders_find(&borders, &slices, 2, 100), 0);
    assert_int_equal(borders.n, slices.n * CELL / TURN + 2); /* with the begin and the end */
    struct nrg_regress_options o = {.timeline = &tl,
                                    .begin_ns = ZERO,
                                    .end_ns = ZERO + READINGS * MS,
                                    .borders = &borders,
                                    .steady_ns = 60 * MS};
    for (int turn = 0; turn < 2; turn++) {
        size_t rows = 0;
        double j = 0;
        for (nrg_observer_init(&observer, &o); nrg_observe(&observer, &seen); rows++) {
            size_t at = (size_t)(seen.from_ns - ZERO) / MS % TURN;
            assert_int_equal(seen.to_ns - seen.from_ns,
                             at == TURN - 1 ? MS : (at < 60 ? 60 : TURN - 1 - 60) * MS);
            j += seen.y;
            if (rows == 3 * (READINGS / TURN) - 1)
                break;
        }
        assert_int_equal(rows, 3 * (READINGS / TURN) - 1);
        assert_true(j > READINGS - TURN);
        assert_int_equal(nrg_borders_observe(&borders, &o), 0);
        assert_ptr_equal(borders.of, &tl);
    }
    nrg_borders_release(&borders);
    nrg_borders_release(&few);
}

/* Busy time of calls between two instants; `from` as in energy_j. */
static double busy_ns(const struct machine *m, int64_t begin_ns, int64_t end_ns, size_t *from)
{
    double sum = 0;
    while (*from < m->n_calls && m->calls[*from].end_ns <= begin_ns)
        ++*from;
    for (size_t i = *from; i < m->n_calls && m->calls[i].begin_ns < end_ns; i++) {
        int64_t a = m->calls[i].begin_ns > begin_ns ? m->calls[i].begin_ns : begin_ns;
        int64_t b = m->calls[i].end_ns < end_ns ? m->calls[i].end_ns : end_ns;
        sum += b > a ? (double)(b - a) : 0;
    }
    return sum;
}

/* A span lasts from a call's work to that of the next: it waits at its end. Its thread's CPU time
 * is known per cell of 100 ms, or not at all but for the whole. */
static void regress_waits(const struct machine *m, const struct nrg_regress_options *o, bool cells,
                          struct nrg_regress_result *result)
{
    struct nrg_regress *r;
    size_t from = 0, all = 0;
    double rate = busy_ns(m, ZERO, m->end_ns, &all) / (double)(m->end_ns - ZERO);
    int64_t cell = -1;
    assert_int_equal(nrg_regress_new(o, &r), 0);
    for (size_t i = 0; i + 1 < m->n_calls; i++) {
        int64_t at = m->calls[i].begin_ns, end = m->calls[i + 1].begin_ns, whole = end - at;
        for (int64_t next; at < end; at = next) {
            int64_t k = (at - ZERO) / (100 * MS), border = ZERO + (k + 1) * 100 * MS;
            next = cells && border < end ? border : end;
            if (cells && k != cell)
                rate = busy_ns(m, border - 100 * MS, border, &from) / (100.0 * MS);
            cell = k;
            uint32_t id = cells ? (uint32_t)k + 1 : 0;
            struct nrg_class_activity part = {.begin_ns = at,
                                              .end_ns = next,
                                              .class_ = m->calls[i].class_,
                                              .rate = rate,
                                              .calls = (double)(next - at) / (double)whole,
                                              .cell = id,
                                              .group = id};
            assert_int_equal(nrg_regress_slice(r, &part), 0);
        }
    }
    assert_int_equal(nrg_regress_solve(r, result), 0);
    nrg_regress_free(r);
}

/* How far energies of calls are off, in the mean; counts the intervals that hold them. */
static double off_per_call(const struct machine *m, const struct nrg_regress_result *r,
                           size_t *held)
{
    double off = 0;
    for (size_t c = 0; c < m->n_classes; c++) {
        double truth_j = m->power_w[c] * (double)(c + 1) * 1e-3 * (double)(m->n_calls / 4);
        double s = r->classes[c].time_s;
        off += fabs(r->classes[c].power_w * s / truth_j - 1) / (double)m->n_classes;
        *held += r->classes[c].low_w * s < truth_j && r->classes[c].high_w * s > truth_j;
    }
    return off;
}

/* Readings as long as the cells: which call waited is known by the CPU times alone. */
static void cpu_times_say_which_call_waits(void **state)
{
    struct machine *m = new_machine(4, 3);
    struct nrg_regress_result with, without, streamed;
    size_t held = 0, ignored = 0;
    (void)state;
    memcpy(m->power_w, (double[]){40, 10, 30, 20}, 4 * sizeof(double));
    for (size_t i = 0; i < 24000; i++) /* the second class waits more than the others */
        add_call(m, i % 4, (i % 4 == 2 ? 1.6 : 0.4) * roll() * (double)((i + 3) % 4 + 1),
                 (double)(i % 4 + 1));
    read_counter(m, 100 * MS);
    m->channel.update_ns = MS;
    struct nrg_regress_options o = options_of(m);
    o.idle_w = 3;
    regress_waits(m, &o, true, &with);
    regress_waits(m, &o, false, &without);
    o.held = 12000;
    regress_waits(m, &o, true, &streamed);
    double off = off_per_call(m, &with, &held);
    assert_true(off < 0.05);
    assert_true(off < off_per_call(m, &without, &ignored));
    assert_int_equal(held, 4);
    assert_true(off_per_call(m, &streamed, &ignored) < 0.08);
    nrg_regress_result_release(&with);
    nrg_regress_result_release(&without);
    nrg_regress_result_release(&streamed);
    done(m);
}

/* The same, held in memory or streamed in small pieces. */
static void streaming_changes_little(void **state)
{
    struct machine *m = new_machine(6, 3);
    struct nrg_regress_result held, streamed;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30, 7, 15, 22}, 6 * sizeof(double));
    run_turns(m, 4000, 1);
    for (int gauge = 0; gauge < 2; gauge++) {
        if (gauge)
            read_average(m, 5 * MS, 0.03);
        else
            read_counter(m, 5 * MS);
        for (size_t i = 0; gauge && i < m->tl.n; i++)
            m->tl.own_gauge[i] = round(m->tl.own_gauge[i] * 100) / 100;
        struct nrg_regress_options o = options_of(m);
        assert_int_equal(regress(m, &o, &held), 0);
        o.held = 3000;
        assert_int_equal(regress(m, &o, &streamed), 0);
        assert_int_equal(held.intervals, streamed.intervals);
        for (size_t i = 0; i < 6; i++) {
            near(streamed.classes[i].power_w, m->power_w[i], 0.005, "streamed", i);
            near(streamed.classes[i].power_w, held.classes[i].power_w, 0.005, "streamed", i);
            near(streamed.classes[i].time_s, held.classes[i].time_s, 0.01, "time", i);
        }
        nrg_regress_result_release(&held);
        nrg_regress_result_release(&streamed);
        nrg_timeline_release(&m->tl);
    }
    done(m);
}

/* A class that comes first when the model has been chosen already. */
static void late_class(void **state)
{
    struct machine *m = new_machine(3, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 2, 30}, 3 * sizeof(double));
    for (int i = 0; i < 9000; i++)
        add_call(m, i < 4000 ? (size_t)(i % 2) : (size_t)(i % 3), roll(), 0.2 + roll());
    read_counter(m, 5 * MS);
    struct nrg_regress_options o = options_of(m);
    o.held = 1000;
    assert_int_equal(regress(m, &o, &r), 0);
    check_powers(m, &r, 0, 1e-3);
    nrg_regress_result_release(&r);
    done(m);
}

/* What one class has too much its neighbour has too little: sums are known better than parts. */
static void covariance_is_of_the_sum(void **state)
{
    struct machine *m = new_machine(2, 3);
    struct nrg_regress_result r;
    (void)state;
    memcpy(m->power_w, (double[]){10, 20}, 2 * sizeof(double));
    run_turns(m, 3000, 2);
    read_counter(m, 20 * MS);
    double sum = 0, last = 0;
    for (size_t i = 1; i < m->tl.n; i++) {
        double step = m->tl.sum_j[i] - last;
        last = m->tl.sum_j[i];
        sum += step * (1 + 0.1 * (roll() + roll() - 1));
        m->tl.sum_j[i] = sum;
    }
    struct nrg_regress_options o = options_of(m);
    assert_int_equal(regress(m, &o, &r), 0);
    assert_true(r.idle_covariance[0] < 0 && r.idle_covariance[1] < 0 && r.idle_variance > 0);
    nrg_regress_result_release(&r);
    o.idle_w = 3;
    assert_int_equal(regress(m, &o, &r), 0);
    double a_s = r.classes[0].time_s, b_s = r.classes[1].time_s;
    double parts = a_s * a_s * r.covariance[0] + b_s * b_s * r.covariance[3];
    double all = parts + 2 * a_s * b_s * r.covariance[1];
    assert_true(r.covariance[1] == r.covariance[2]);
    assert_true(all > 0 && all < parts);
    for (size_t i = 0; i < 2; i++) {
        const struct nrg_regress_class *c = &r.classes[i];
        near(r.t * sqrt(r.covariance[3 * i]), (c->high_w - c->low_w) / 2, 0.05, "half of", i);
    }
    nrg_regress_result_release(&r);
    done(m);
}

/* Conditions of Karush, Kuhn and Tucker on random problems, some of them with dependent columns. */
static void nonnegative_solutions(void **state)
{
    enum { N = 12, ROWS = 30 };
    (void)state;
    dice = 7;
    for (int trial = 0; trial < 300; trial++) {
        struct nrg_gram g = {0};
        double x[N], beta[N], scale[N];
        assert_int_equal(nrg_gram_grow(&g, N), 0);
        for (int row = 0; row < ROWS; row++) {
            for (int i = 0; i < N; i++)
                x[i] = trial % 3 == 0 && i == N - 1 ? x[0] + x[1] : roll();
            nrg_gram_add(&g, x, NULL, 0, roll() - 0.3, 1 + roll());
        }
        for (size_t i = 0; i < N; i++)
            scale[i] = 1 / sqrt(g.a[nrg_packed(i, i)]);
        for (size_t i = 0; i < N; i++) {
            g.b[i] *= scale[i];
            for (size_t j = 0; j <= i; j++)
                g.a[nrg_packed(i, j)] *= scale[i] * scale[j];
        }
        assert_int_equal(nrg_nnls(g.a, g.b, N, N - 2, NRG_RIDGE, beta), 0);
        for (size_t i = 0; i < N; i++) {
            double gradient = -g.b[i];
            for (size_t j = 0; j < N; j++)
                gradient += g.a[nrg_packed(i, j)] * beta[j];
            assert_true(i >= N - 2 || beta[i] >= 0);
            assert_true(gradient > -1e-6);
            assert_true(fabs(gradient * beta[i]) < 1e-6);
        }
        nrg_gram_release(&g);
    }
}

static void inverse_of_a_matrix(void **state)
{
    enum { N = 17 };
    double a[N * (N + 1) / 2], l[N * (N + 1) / 2], inverse[N * (N + 1) / 2];
    (void)state;
    dice = 99;
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++)
            a[nrg_packed(i, j)] = i == j ? 2 * N : roll();
    memcpy(l, a, sizeof a);
    assert_int_equal(nrg_gram_factor(l, N, NULL, NULL, false), N);
    nrg_gram_invert(l, N, inverse);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t k = 0; k < N; k++)
                sum += a[nrg_packed(i, k)] * inverse[nrg_packed(k, j)];
            assert_true(fabs(sum - (i == j)) < 1e-12);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_and_idle_of_a_counter),
        cmocka_unit_test(times_add_up),
        cmocka_unit_test(covered_time_has_no_idle),
        cmocka_unit_test(classes_at_once_share),
        cmocka_unit_test(inseparable_classes_are_a_group),
        cmocka_unit_test(what_others_explain_is_a_group),
        cmocka_unit_test(sides_that_never_rest_are_alike),
        cmocka_unit_test(sides_keep_their_differences),
        cmocka_unit_test(steady_others_are_not_told),
        cmocka_unit_test(classes_that_never_run),
        cmocka_unit_test(bad_and_empty_slices),
        cmocka_unit_test(too_little_is_no_data),
        cmocka_unit_test(hardly_enough),
        cmocka_unit_test(gaps_are_left_out),
        cmocka_unit_test(counter_that_stands_still),
        cmocka_unit_test(only_the_time_asked_for),
        cmocka_unit_test(running_average),
        cmocka_unit_test(first_reading_is_off),
        cmocka_unit_test(mean_over_a_window),
        cmocka_unit_test(instant_and_mean_of_a_gauge),
        cmocka_unit_test(moments_of_a_slow_gauge),
        cmocka_unit_test(moments_that_jitter),
        cmocka_unit_test(outliers_lose_weight),
        cmocka_unit_test(drift_is_not_idle),
        cmocka_unit_test(waits_are_not_the_neighbours),
        cmocka_unit_test(power_changes_within_calls),
        cmocka_unit_test(cpu_times_say_which_call_waits),
        cmocka_unit_test(rows_end_with_punctual_readings),
        cmocka_unit_test(rows_go_on_while_nothing_changes),
        cmocka_unit_test(readings_of_an_edge_are_one_row),
        cmocka_unit_test(streaming_changes_little),
        cmocka_unit_test(late_class),
        cmocka_unit_test(covariance_is_of_the_sum),
        cmocka_unit_test(nonnegative_solutions),
        cmocka_unit_test(inverse_of_a_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
