/*
 * energy/updates/running_mean.c: a gauge that shows, every 100 ms, the mean of the second before.
 * The joules expected are worked out by hand: idle, a load that goes on and off, idle again.
 */
#include "support/cmocka.h"

#include <math.h>

#include "energy/frame.h"
#include "energy/summary.h"
#include "support/made.h"

#define UPDATE_S 0.1
#define READ_S   0.02
#define IDLE_W   25.0
#define LOAD_W   200.0 /* above idle */
#define BEGIN_S  0.0
#define END_S    20.3
#define SIDE_S   5.0

struct shown {
    double mean_s;   /* of which values are means */
    double from_s;   /* the load begins */
    double on_s;     /* of every second it is on; 1: always */
    double before_s; /* readings begin and end so long before and after the run */
    int64_t window_ns;
};

/* Energy since long before the run. */
static double energy_j(const struct shown *shown, double t_s)
{
    double at_s = fmin(fmax(t_s, shown->from_s), END_S) - shown->from_s, whole = floor(at_s);
    double loaded_s = whole * shown->on_s + fmin(at_s - whole, shown->on_s);
    return IDLE_W * (t_s + 100) + LOAD_W * loaded_s;
}

static double truth_j(const struct shown *shown)
{
    return energy_j(shown, END_S) - energy_j(shown, BEGIN_S);
}

static void make(struct made *made, const struct shown *shown)
{
    enum { MOST = (int)((END_S + 2 * SIDE_S) / READ_S) + 1 };
    static double t_s[MOST];
    static int64_t raw[MOST];
    struct nrg_channel gauge = made_gauge("gpu-0");
    size_t n = 0;
    gauge.update_ns = (int64_t)(UPDATE_S * 1e9);
    gauge.window_ns = shown->window_ns;
    for (double t = BEGIN_S - shown->before_s; t < END_S + shown->before_s && n < MOST; n++) {
        double update_s = floor((t - 0.037) / UPDATE_S) * UPDATE_S + 0.037;
        double j = energy_j(shown, update_s) - energy_j(shown, update_s - shown->mean_s);
        t_s[n] = t;
        raw[n] = llround(j / shown->mean_s * 1e3);
        t += READ_S;
    }
    made_init(made);
    made_channel(made, &gauge, t_s, raw, n);
    made_run(made, "run", BEGIN_S, END_S);
    if (shown->before_s >= SIDE_S) {
        made_run(made, "baseline", BEGIN_S - SIDE_S, BEGIN_S - 0.01);
        made_run(made, "baseline", END_S + 0.01, END_S + SIDE_S);
    }
    made_open(made);
}

static struct nrg_domain summarised(struct made *made)
{
    struct nrg_summary summary;
    struct nrg_error err;
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(made->recording, &n);
    while (runs->begin_ns != made_ns(BEGIN_S))
        runs++;
    assert_int_equal(nrg_summary_make(&summary, made->recording, runs, NRG_SPLIT_ACTIVE, &err), 0);
    assert_int_equal(summary.n_domains, 1);
    struct nrg_domain d = summary.domains[0];
    nrg_summary_release(&summary);
    return d;
}

static bool holds(const struct nrg_domain *d, double j)
{
    return d->low_j <= j && j <= d->high_j;
}

/* With a baseline, the mean's own shape at both ends is known, and little is left. */
static void said_with_baselines(void **state)
{
    static const struct shown shown[] = {{1, 0, 1, SIDE_S, NRG_NS_PER_S},
                                         {1, 0.4, 1, SIDE_S, NRG_NS_PER_S},
                                         {1, 0.4, 0.35, SIDE_S, NRG_NS_PER_S},
                                         {0.5, 0, 0.7, SIDE_S, NRG_NS_PER_S / 2}};
    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct made made;
        make(&made, &shown[i]);
        struct nrg_domain d = summarised(&made);
        double truth = truth_j(&shown[i]);
        assert_true(holds(&d, truth));
        assert_true(fabs(d.energy_j - truth) < 2e-3 * truth);
        assert_true(d.high_j - d.low_j < 0.02 * truth);
        made_release(&made);
    }
}

/* Where readings are those of the run alone, what they do not show is in the interval. */
static void said_without_baselines(void **state)
{
    static const struct shown shown[] = {
        {1, 0, 1, 0, NRG_NS_PER_S}, {1, 0.4, 1, 0, NRG_NS_PER_S}, {1, 0.4, 0.35, 0, NRG_NS_PER_S}};
    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct made made;
        make(&made, &shown[i]);
        struct nrg_domain d = summarised(&made);
        assert_true(holds(&d, truth_j(&shown[i])));
        made_release(&made);
    }
}

/* What nobody says may be such a mean, as long as readings never went faster; a gauge that jumps is
 * none, and has no such doubt. */
static void not_said(void **state)
{
    static const struct shown mean = {1, 0.4, 1, SIDE_S, 0}, prompt = {0.1, 0.4, 1, SIDE_S, 0};
    struct made made;
    (void)state;
    make(&made, &mean);
    struct nrg_domain d = summarised(&made);
    assert_true(holds(&d, truth_j(&mean)));
    made_release(&made);
    make(&made, &prompt);
    d = summarised(&made);
    assert_true(holds(&d, truth_j(&prompt)));
    assert_true(d.uncertainty_j < 0.02 * d.energy_j);
    made_release(&made);
}

/* The second after a run is the run's, said or not. */
static void baseline_after_the_window(void **state)
{
    static const struct shown shown[] = {{1, 0, 1, SIDE_S, NRG_NS_PER_S}, {1, 0, 1, SIDE_S, 0}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct made made;
        struct nrg_frame frame;
        make(&made, &shown[i]);
        assert_int_equal(nrg_frame_init(&frame, made.recording), 0);
        size_t channel = nrg_frame_find(&frame, "gpu-0", NRG_POWER);
        assert_float_equal(nrg_frame_baseline_rate(&frame, channel), IDLE_W, 0.01);
        assert_float_equal(nrg_frame_baseline_most(&frame, channel), IDLE_W, 0.01);
        assert_true(nrg_frame_baseline_scatter(&frame, channel) < 0.01);
        nrg_frame_release(&frame);
        made_release(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(said_with_baselines),
        cmocka_unit_test(said_without_baselines),
        cmocka_unit_test(not_said),
        cmocka_unit_test(baseline_after_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
