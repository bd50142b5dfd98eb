/* Idle power between baselines, in closed form: the shapes of its course (regress/idle_course), the
 * temperature beside a domain (heat), its bounds (idle_bound), and what threads do between spans.
 */
#include "support/cmocka.h"

#include <math.h>

#include "attribute/internal.h"
#include "base/linalg.h"
#include "support/attributed.h"

static double at(const struct nrg_idle_course *c, size_t shape, double t_s)
{
    return nrg_idle_shape(c, shape, made_ns(t_s));
}

static void shapes_begin_where_idle_power_was_seen(void **state)
{
    struct nrg_idle_course c = {.begin_ns = made_ns(2), .end_ns = made_ns(10)};
    const double begins[] = {
        [NRG_IDLE_NOT_SEEN] = -0.5, [NRG_IDLE_BEFORE] = 0, [NRG_IDLE_AFTER] = -1};
    (void)state;
    for (size_t seen = 0; seen < 3; seen++) {
        c.seen = (enum nrg_idle_seen)seen;
        close_to(at(&c, NRG_IDLE_LINE, 2), begins[seen], 1e-12, "line, begin");
        close_to(at(&c, NRG_IDLE_LINE, 10), begins[seen] + 1, 1e-12, "line, end");
        close_to(nrg_idle_shape_mean(&c, NRG_IDLE_LINE), begins[seen] + 0.5, 1e-6, "line, mean");
    }
    for (size_t shape = NRG_IDLE_BEND; shape < NRG_IDLE_HEAT; shape++) {
        close_to(at(&c, shape, 2), 0, 1e-12, "begin");
        close_to(at(&c, shape, 10), 0, 1e-12, "end");
    }
    close_to(at(&c, NRG_IDLE_BEND, 6), 1, 1e-12, "bend, middle");
    close_to(nrg_idle_shape_mean(&c, NRG_IDLE_BEND), 2.0 / 3, 1e-4, "bend, mean");
    close_to(at(&c, NRG_IDLE_WARM, 2 + 8 * 0.32), (1 - exp(-1)) / (1 - exp(-1 / 0.32)) - 0.32, 1e-9,
             "the slowest warm-up");
    close_to(at(&c, NRG_IDLE_HEAT - 1, 2 + 8 * 0.02), 1 - exp(-1) - 0.02, 1e-9, "the fastest");
    close_to(at(&c, NRG_IDLE_HEAT - 1, 1), 0, 1e-12, "before the run");
    close_to(at(&c, NRG_IDLE_HEAT, 6), 0, 0, "no temperature");
}

/* A warm-up of any pace is a sum of shapes, of which none is there before the run. */
static void shapes_make_up_a_warm_up_of_any_pace(void **state)
{
    struct nrg_idle_course c = {
        .begin_ns = made_ns(0), .end_ns = made_ns(60), .seen = NRG_IDLE_BEFORE};
    (void)state;
    for (double tau = 0.02; tau < 2; tau *= 1.3) {
        struct nrg_gram sum = {0};
        double x[NRG_IDLE_SHAPES], fitted[NRG_IDLE_SHAPES];
        size_t rank;
        assert_int_equal(nrg_gram_grow(&sum, NRG_IDLE_HEAT), 0);
        for (double t = 0.05; t < 60; t += 0.1) {
            nrg_idle_shapes(&c, made_ns(t), x);
            nrg_gram_add(&sum, x, NULL, 0, 1 - exp(-t / 60 / tau), 1);
        }
        assert_int_equal(nrg_gram_least_squares(&sum, fitted, &rank), 0);
        double left = sqrt(fmax(nrg_gram_residual(&sum, fitted), 0) / (double)sum.rows);
        close_to(left, 0, 1e-3, "what is left of a warm-up");
        nrg_gram_release(&sum);
    }
}

static void heat_goes_along_lines_between_readings(void **state)
{
    const int64_t t_ns[] = {made_ns(1), made_ns(3), made_ns(3), made_ns(7)};
    const double part[] = {0.2, 0.6, 0.6, -1};
    const struct nrg_heat heat = {.t_ns = t_ns, .part = part, .n = 4};
    const struct nrg_idle_course c = {.begin_ns = made_ns(0), .end_ns = made_ns(8), .heat = &heat};
    (void)state;
    close_to(at(&c, NRG_IDLE_HEAT, 0), 0.2, 1e-12, "before the first");
    close_to(at(&c, NRG_IDLE_HEAT, 2), 0.4, 1e-12, "between two");
    close_to(at(&c, NRG_IDLE_HEAT, 3), 0.6, 1e-12, "on two at once");
    close_to(at(&c, NRG_IDLE_HEAT, 6), -0.6, 1e-12, "downwards");
    close_to(at(&c, NRG_IDLE_HEAT, 9), -1, 1e-12, "after the last");
}

static void a_walk_goes_along_lines_between_borders(void **state)
{
    const struct nrg_idle_course c = {.begin_ns = made_ns(2), .end_ns = made_ns(10)};
    const struct nrg_idle_walk none = {0}, walk = {3, {0, 0.25, 1}, {0, 2, -1}};
    (void)state;
    close_to(nrg_idle_walk_w(&none, &c, made_ns(4)), 0, 0, "none");
    close_to(nrg_idle_walk_mean_w(&none), 0, 0, "its mean");
    close_to(nrg_idle_walk_w(&walk, &c, made_ns(1)), 0, 1e-12, "before the run");
    close_to(nrg_idle_walk_w(&walk, &c, made_ns(3)), 1, 1e-12, "up");
    close_to(nrg_idle_walk_w(&walk, &c, made_ns(4)), 2, 1e-12, "on a border");
    close_to(nrg_idle_walk_w(&walk, &c, made_ns(7)), 0.5, 1e-12, "down");
    close_to(nrg_idle_walk_w(&walk, &c, made_ns(11)), -1, 1e-12, "after the run");
    close_to(nrg_idle_walk_mean_w(&walk), 0.25 + 0.375, 1e-12, "mean");
}

/* 40 degrees before the run, `more` at its end, and `after` then. */
struct warm {
    double more_c, after_c;
};

static double celsius(void *arg, double t_s)
{
    const struct warm *w = arg;
    return t_s < 0 ? 40 : t_s <= 10 ? 40 + w->more_c * t_s / 10 : w->after_c;
}

static bool find_heat(const char *domain, const char *name, struct warm warm,
                      enum nrg_idle_seen seen, double *middle, struct nrg_heat *heat)
{
    struct made m;
    struct nrg_engine e = {0};
    struct nrg_channel power = made_counter(domain), degrees = made_gauge(name);
    degrees.quantity = NRG_TEMPERATURE;
    made_init(&m);
    made_constant(&m, &power, -5, 15, 0.1, 50);
    made_power(&m, &degrees, -5, 15, 0.5, NULL, celsius, &warm);
    made_run(&m, "baseline", -4, -1);
    made_run(&m, "run", 0, 10);
    made_run(&m, "baseline", 11, 14);
    made_open(&m);
    assert_int_equal(nrg_frame_init(&e.frame, m.recording), 0);
    const struct nrg_part part = {
        .channel = &e.frame.channels[nrg_frame_find(&e.frame, domain, NRG_ENERGY)]};
    bool found = nrg_heat_find(&e, &part, seen, heat);
    const struct nrg_idle_course c = {
        .begin_ns = made_ns(0), .end_ns = made_ns(10), .heat = found ? heat : NULL};
    *middle = at(&c, NRG_IDLE_HEAT, 5);
    nrg_frame_release(&e.frame);
    nrg_arena_release(&e.memory);
    made_release(&m);
    return found;
}

static void temperature_is_counted_from_its_baseline(void **state)
{
    const char *package = "temperature.coretemp.package-id-0";
    struct warm warm = {20, 50};
    struct nrg_heat heat;
    double middle;
    (void)state;
    assert_true(find_heat("package-0", package, warm, NRG_IDLE_BEFORE, &middle, &heat));
    close_to(heat.range_c, 20, 1e-9, "range");
    close_to(middle, 0.5, 1e-9, "half of the way");
    close_to(heat.after, 0.5, 1e-9, "after the run");
    assert_true(find_heat("package-0", package, warm, NRG_IDLE_AFTER, &middle, &heat));
    close_to(heat.range_c, 10, 1e-9, "range from the end");
    close_to(middle, 0, 1e-9, "there again");
    assert_true(find_heat("gpu-0", "gpu-0.temperature", warm, NRG_IDLE_BEFORE, &middle, &heat));
}

static void other_thermometers_say_nothing(void **state)
{
    struct warm warm = {20, 50}, steady = {1, 41};
    struct nrg_heat heat;
    double middle;
    (void)state;
    assert_false(find_heat("package-0", "temperature.nvme.composite", warm, NRG_IDLE_BEFORE,
                           &middle, &heat));
    assert_false(find_heat("package-1", "temperature.coretemp.package-id-0", warm, NRG_IDLE_BEFORE,
                           &middle, &heat));
    assert_false(find_heat("gpu-1", "gpu-0.temperature", warm, NRG_IDLE_BEFORE, &middle, &heat));
    assert_false(find_heat("package-0", "temperature.coretemp.package-id-0", steady,
                           NRG_IDLE_BEFORE, &middle, &heat));
    close_to(middle, 0, 0, "no course");
}

static void idle_power_is_within_what_a_cell_drew(void **state)
{
    double idle_w[1], most_w[] = {30};
    struct nrg_part part = {.idle_w = idle_w, .most_w = most_w};
    const double given[] = {-5, 0, 12, 30, 31}, kept[] = {0, 0, 12, 30, 30};
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        nrg_part_set_idle(&part, 0, given[i]);
        close_to(idle_w[0], kept[i], 0, "idle power");
    }
    nrg_part_set_idle(&part, 0, INFINITY);
    assert_true(isnan(idle_w[0]));
}

static void what_is_beyond_the_total_is_idle_and_others(void **state)
{
    struct nrg_attribution_domain d = {.total_j = 100, .idle_j = 60, .other_processes_j = 20};
    (void)state;
    nrg_domain_settle(&d, 15);
    close_to(d.unattributed_j, 5, 1e-12, "a rest");
    nrg_domain_settle(&d, 60);
    close_to(d.idle_j, 30, 1e-12, "idle");
    close_to(d.other_processes_j, 10, 1e-12, "others");
    close_to(d.unattributed_j, 0, 0, "none");
    nrg_domain_settle(&d, 101);
    close_to(d.idle_j + d.other_processes_j, 0, 0, "rows have more than all");
    close_to(d.unattributed_j, -1, 1e-12, "which shows");
}

/* 1 ms between spans in each of ten intervals, in six of which the thread also sleeps. Readings are
 * off by 3 ms, which are back in the next. */
static void work_between_spans_is_not_placed_where_a_thread_sleeps(void **state)
{
    struct nrg_thread_gaps gaps = {0};
    (void)state;
    for (int i = 0; i < 10; i++) {
        bool sleeps = i < 6;
        double open_s = sleeps ? 0.05 : 0.099, off_s = i % 2 ? -0.003 : 0.003;
        nrg_thread_gaps_add(&gaps, &(struct nrg_thread_use){.cpu_s = open_s + 0.001 + off_s,
                                                            .open_s = open_s,
                                                            .length_s = 0.1,
                                                            .off_s = 0.005});
    }
    double slept_s = 6 * 0.05, open_s = slept_s + 4 * 0.099;
    close_to(nrg_thread_gaps_unplaced(&gaps), 0.01 * slept_s / open_s, 1e-12, "unplaced");
    close_to(nrg_thread_gaps_unplaced(&(struct nrg_thread_gaps){0}), 0, 0, "no spans");
}

/* A thread that never sleeps, between spans neither; some readings are 4 ms late, so that a cell
 * has that much too much and the next one too little. */
static void late_readings_are_no_sleep(void **state)
{
    struct nrg_thread_gaps gaps = {0};
    struct nrg_thread_use use = {.length_s = 0.1, .off_s = 0.0045};
    double inside_s, outside_s;
    (void)state;
    for (int i = 0; i < 60; i++) {
        use.open_s = 0.1 - 0.001 * (1 + i % 7);
        use.cpu_s = 0.1 + (i % 10 == 3 ? 0.004 : i % 10 == 4 ? -0.004 : 0);
        nrg_thread_gaps_add(&gaps, &use);
    }
    use.open_s = 0.098;
    use.cpu_s = 0.1;
    nrg_thread_divide(&use, &gaps, &inside_s, &outside_s);
    close_to(inside_s, 0.098, 1e-12, "in spans");
    close_to(outside_s, 0.002, 1e-12, "between them");
    nrg_thread_divide(&use, &(struct nrg_thread_gaps){0}, &inside_s, &outside_s);
    close_to(outside_s, 0.002, 1e-12, "where no other cell says more");
}

/* 10 W of idle power, and from 1 s on 20 W more; but for half a second of each of the run's 5 s,
 * where it rests. */
static double resting_j(void *arg, double t_s)
{
    const bool *rests = arg;
    double at_s = fmin(fmax(t_s - 1, 0), 18), rested_s = 0.5 * floor(at_s / 5);
    rested_s += fmin(fmod(at_s, 5), 0.5);
    return 10 * (t_s + 6) + 20 * (at_s - (*rests ? rested_s : 0));
}

/* How far a row of 18 s may be off. */
static double off_after_baselines(bool rests, bool second)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    o.idle = NRG_IDLE_APART;
    o.method = NRG_METHOD_INTEGRATE;
    made_init(&m);
    made_power(&m, &c, -5, 25, 0.1, resting_j, NULL, &rests);
    made_run(&m, "baseline", -4, -1);
    made_run(&m, "run", 0, 20);
    if (second)
        made_run(&m, "baseline", 21, 24);
    made_span(&m, 1, 19, made_track(&m, "thread", 7, 7, ""), made_name(&m, "span", "work"));
    attribute(&m, &o, &a);
    const struct nrg_attribution_row *work = row(&a, "work");
    double off_j = work->high_j - work->energy_j;
    close_to(work->energy_j, 20 * (18 - (rests ? 2 : 0)), 0.1, "work");
    close_to(work->energy_j - work->low_j, off_j, 1e-6, "downwards");
    nrg_attribution_release(&a);
    made_release(&m);
    return off_j;
}

/* By 15 %, unless what the run draws while it rests, or a second baseline, says that it did not. */
static void idle_power_may_drift_after_one_baseline(void **state)
{
    (void)state;
    close_to(off_after_baselines(false, false), 0.15 * 10 * 18, 0.3, "never rests");
    assert_true(off_after_baselines(true, false) < 1);
    assert_true(off_after_baselines(false, true) < 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_begin_where_idle_power_was_seen),
        cmocka_unit_test(shapes_make_up_a_warm_up_of_any_pace),
        cmocka_unit_test(heat_goes_along_lines_between_readings),
        cmocka_unit_test(a_walk_goes_along_lines_between_borders),
        cmocka_unit_test(temperature_is_counted_from_its_baseline),
        cmocka_unit_test(other_thermometers_say_nothing),
        cmocka_unit_test(idle_power_is_within_what_a_cell_drew),
        cmocka_unit_test(idle_power_may_drift_after_one_baseline),
        cmocka_unit_test(what_is_beyond_the_total_is_idle_and_others),
        cmocka_unit_test(work_between_spans_is_not_placed_where_a_thread_sleeps),
        cmocka_unit_test(late_readings_are_no_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
