/*
 * energy/second.c: a GPU's counter and its power, which may not say the same.
 * energy/updates/part_time.c and unseen.c: a sensor that sees 25 of every 100 ms. The joules
 * expected are worked out by hand.
 */
#include "support/cmocka.h"

#include <math.h>
#include <string.h>

#include "energy/summary.h"
#include "record/format.h"
#include "support/made.h"

#define BEGIN_S 0.0
#define END_S   5.0
#define UPDATE  (100 * NRG_NS_PER_MS)

struct fixture {
    struct made made;
    struct nrg_summary summary;
};

static struct nrg_channel nvml(struct nrg_channel channel)
{
    channel.update_ns = UPDATE;
    return channel;
}

static void begin(struct fixture *f, double counter_w, double gauge_w)
{
    struct nrg_channel counter = nvml(made_counter("gpu-0")), gauge = nvml(made_gauge("gpu-0"));
    counter.scale = counter.resolution = 1e-3;
    made_init(&f->made);
    if (counter_w > 0)
        made_constant(&f->made, &counter, BEGIN_S - 0.5, END_S + 0.5, 0.02, counter_w);
    if (gauge_w > 0)
        made_constant(&f->made, &gauge, BEGIN_S - 0.5, END_S + 0.5, 0.02, gauge_w);
    made_run(&f->made, "run", BEGIN_S, END_S);
}

static const struct nrg_domain *summarise(struct fixture *f)
{
    struct nrg_error err;
    size_t n;
    made_open(&f->made);
    const struct nrg_run *runs = nrg_recording_runs(f->made.recording, &n);
    assert_int_equal(
        nrg_summary_make(&f->summary, f->made.recording, &runs[0], NRG_SPLIT_ACTIVE, &err), 0);
    assert_int_equal(f->summary.n_domains, 1);
    return &f->summary.domains[0];
}

/* The note on gpu-0 that has this text in it. */
static const char *note_with(const struct fixture *f, const char *text)
{
    for (size_t i = 0; i < f->summary.n_missing; i++)
        if (!strcmp(f->summary.missing[i].what, "gpu-0") && strstr(f->summary.missing[i].why, text))
            return f->summary.missing[i].why;
    return NULL;
}

static void end(struct fixture *f)
{
    nrg_summary_release(&f->summary);
    made_release(&f->made);
}

/* The counter says 187.5 J, the power 327 J: either may be true. */
static void two_readings_that_disagree(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 37.5, 65.4);
    const struct nrg_domain *d = summarise(&f);
    assert_float_equal(d->energy_j, 187.5, 1e-3);
    assert_true(d->low_j <= 187.5 && d->low_j > 180);
    assert_true(d->high_j >= 327 && d->high_j < 335);
    assert_true(d->uncertainty_j >= 139.5);
    assert_non_null(d->second);
    assert_int_equal(d->second->channel.quantity, NRG_POWER);
    assert_float_equal(d->second_j, 327, 1e-3);
    assert_true(f.summary.total_high_j >= 327);
    const char *note = note_with(&f, "holds both");
    assert_non_null(note);
    assert_non_null(strstr(note, "327"));
    end(&f);
}

/* Within the counter's 100 ms of 37.5 W there is nothing to say. */
static void two_readings_that_agree(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 37.5, 37.7);
    const struct nrg_domain *d = summarise(&f);
    assert_true(d->uncertainty_j < 4);
    assert_non_null(d->second);
    assert_float_equal(d->second_j, 188.5, 1e-3);
    assert_null(note_with(&f, "holds both"));
    end(&f);
}

/* The buffer agrees with the counter, the getter does not. */
static void a_third_reading_that_disagrees(void **state)
{
    struct fixture f;
    struct nrg_channel polled = nvml(made_gauge("gpu-0.polled"));
    (void)state;
    begin(&f, 37.5, 37.6);
    made_constant(&f.made, &polled, -0.5, END_S + 0.5, 0.02, 65.4);
    const struct nrg_domain *d = summarise(&f);
    assert_string_equal(d->second->channel.name, "gpu-0.polled");
    assert_true(d->high_j >= 327 && d->low_j < 187.5);
    assert_non_null(note_with(&f, "its polled power 327 J"));
    end(&f);
}

static void a_counter_alone(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, 37.5, 0);
    const struct nrg_domain *d = summarise(&f);
    assert_null(d->second);
    assert_null(note_with(&f, "holds both"));
    end(&f);
}

/* The power was read in the first half of the run only: that half is what can be compared. */
static void a_gauge_that_ends_early(void **state)
{
    struct fixture f;
    struct nrg_channel gauge = nvml(made_gauge("gpu-0"));
    (void)state;
    begin(&f, 40, 0);
    made_constant(&f.made, &gauge, -0.5, 2.4, 0.02, 40);
    const struct nrg_domain *d = summarise(&f);
    assert_true(d->uncertainty_j < 5);
    assert_null(note_with(&f, "holds both"));
    end(&f);
}

/* --- a sensor that looks part of the time --- */

#define READ_S   0.02
#define UPDATE_S 0.1
#define WINDOW_S 0.025
#define PART_S   20.0
#define LOW_W    60.0
#define HIGH_W   300.0

/* HIGH_W in the first half of each period, then LOW_W. */
/* Whole seconds in which process 7, ours, has a quarter of the GPU and process 8 the rest. */
/* sizes: of the instances, beside what they did; NULL: not known. */
static void begin_shared(struct fixture *f, bool mig, int64_t other_ppm, const int64_t *sizes)
{
    struct nrg_rows rows;
    struct nrg_channel memory = made_gauge("gpu-0.mig-0.memory");
    memory.quantity = NRG_BYTES;
    begin(f, 300, 0);
    made_process(&f->made, 7, BEGIN_S - 0.5, END_S + 0.5, 1);
    if (mig)
        made_constant(&f->made, &memory, BEGIN_S - 0.5, END_S + 0.5, 0.1, 1);
    nrg_rows_init(&rows, NRG_G_COLUMNS);
    for (int i = 1; i <= 5; i++) {
        const int64_t mine[] = {7, 0, 7, 250000, NRG_MISSING, sizes ? sizes[0] : NRG_MISSING};
        const int64_t other[] = {8, 0, 8, other_ppm, NRG_MISSING, sizes ? sizes[1] : NRG_MISSING};
        nrg_rows_add(&rows, made_ns(i), 0, mine);
        nrg_rows_add(&rows, made_ns(i), 0, other);
    }
    int series = nrg_store_series(f->made.store, NRG_GPU_PROCESSES);
    assert_int_equal(nrg_store_rows(f->made.store, series, &rows), 0);
    nrg_rows_release(&rows);
}

/* 1500 J: by the sizes of instances a quarter is ours, but either may have done nothing. */
static void mig_instances_side_by_side(void **state)
{
    struct fixture f;
    (void)state;
    begin_shared(&f, true, 750000, NULL);
    const struct nrg_domain *d = summarise(&f);
    assert_true(fabs(d->energy_j - 1500) < 1);
    assert_true(fabs(d->program.energy_j - 375) < 1);
    assert_true(d->program.least_j == 0);
    assert_true(fabs(d->program.most_j - 1500) < 1);
    assert_non_null(note_with(&f, "sizes of its MIG instances"));
    end(&f);

    begin_shared(&f, true, 0, NULL); /* nobody beside us: all above idle is ours */
    d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 1500) < 1);
    assert_null(note_with(&f, "MIG"));
    end(&f);

    begin_shared(&f, false, 750000, NULL); /* measured shares: no doubt of that kind */
    d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 375) < 1);
    assert_true(d->program.most_j < 400);
    assert_null(note_with(&f, "MIG"));
    end(&f);
}

/* The same by what they did: half of the board is ours, so 375 J up to 750 J, not 0 to 1500 J. */
static void mig_instances_by_what_they_did(void **state)
{
    static const int64_t half[] = {500000, 500000}, tenth[] = {100000, 900000};
    struct fixture f;
    (void)state;
    begin_shared(&f, true, 750000, half);
    const struct nrg_domain *d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 375) < 1);
    assert_true(d->program.least_j <= 375);
    assert_true(fabs(d->program.most_j - 750) < 1);
    assert_non_null(note_with(&f, "how busy its MIG instances were"));
    assert_null(note_with(&f, "every other division"));
    end(&f);

    begin_shared(&f, true, 750000, tenth);
    d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 375) < 1);
    assert_true(fabs(d->program.most_j - 375) < 1);
    end(&f);

    begin_shared(&f, true, 0, half); /* the other did nothing, but its size costs something */
    d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 1500) < 1);
    assert_true(d->program.least_j <= 750);
    assert_true(fabs(d->program.most_j - 1500) < 1);
    end(&f);
}

/* 1500 J of two clients of MPS, by their limits a third is ours; then we are the only client. */
static void clients_of_mps(void **state)
{
    static const int64_t both[] = {750000, 750000};
    struct fixture f;
    (void)state;
    begin_shared(&f, false, 500000, both);
    const struct nrg_domain *d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 500) < 1);
    assert_true(d->program.least_j == 0);
    assert_true(fabs(d->program.most_j - 1500) < 1);
    assert_non_null(note_with(&f, "clients of its MPS server"));
    end(&f);

    /* Their times are known: ours is half of the others'. Side by side all the while, we may have
     * had nothing, or all that they did while we computed; half of the time we did not. */
    static const int64_t times[] = {250000, 500000};
    begin_shared(&f, false, 500000, times);
    d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 500) < 1);
    assert_true(d->program.least_j == 0);
    assert_true(fabs(d->program.most_j - 750) < 1);
    assert_non_null(note_with(&f, "clients of its MPS server"));
    end(&f);

    /* Ours is the longer one, but on a quarter of the processors: three quarters of it were ours
     * alone, 187.5 of 1000 by the processors; beside it the other had them all for 250. */
    static const int64_t longer[] = {1000000, 250000};
    begin_shared(&f, false, 250000, longer);
    d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 750) < 1);
    /* Idle power is not known: so much of the least may be idle. */
    assert_true(d->program.least_j <= 1500 * 187.5 / 437.5);
    assert_true(fabs(d->program.most_j - 1500) < 1);
    end(&f);

    static const int64_t alone[] = {250000, NRG_MISSING}; /* what is booked on the server is 7's */
    begin_shared(&f, false, 750000, alone);
    d = summarise(&f);
    assert_true(fabs(d->program.energy_j - 375) < 1);
    assert_true(d->program.most_j < 376);
    assert_null(note_with(&f, "MPS"));
    end(&f);
}

struct square {
    double period_s;
};

static double square_j(const struct square *wave, double t_s)
{
    double periods = floor(t_s / wave->period_s), half = wave->period_s / 2;
    double rest = t_s - periods * wave->period_s, high = rest < half ? rest : half;
    return LOW_W * t_s + (HIGH_W - LOW_W) * (periods * half + high);
}

/* Readings of a run of PART_S; updates are `late_s` after a multiple of UPDATE_S. */
static void begin_part_time(struct fixture *f, const struct square *wave, double late_s)
{
    enum { N = (int)((PART_S + 1) / READ_S) };
    static double t_s[N];
    static int64_t raw[N];
    struct nrg_channel gauge = nvml(made_gauge("gpu-0"));
    gauge.window_ns = (int64_t)(WINDOW_S * 1e9);
    gauge.limit_w = 400;
    for (size_t i = 0; i < N; i++) {
        t_s[i] = -0.5 + (double)i * READ_S + 1e-4;
        double update = floor((t_s[i] - late_s) / UPDATE_S) * UPDATE_S + late_s + 10;
        double seen_j = square_j(wave, update) - square_j(wave, update - WINDOW_S);
        raw[i] = llround(seen_j / WINDOW_S * 1e3) + (int64_t)(i / 5 % 2); /* so updates show */
    }
    made_init(&f->made);
    made_channel(&f->made, &gauge, t_s, raw, N);
    made_run(&f->made, "run", 0, PART_S);
}

static void mark_halves(struct fixture *f, const struct square *wave)
{
    int64_t track = made_track(&f->made, "gpu", 1, 0, "gpu-0");
    int64_t name = made_name(&f->made, "kernel", "busy");
    for (double t = 0; t + wave->period_s < PART_S; t += wave->period_s)
        made_span(&f->made, t, t + wave->period_s / 2, track, name);
}

static bool holds_truth(const struct nrg_domain *d, const struct square *wave)
{
    double truth_j = square_j(wave, PART_S + 10) - square_j(wave, 10);
    return d->low_j <= truth_j && truth_j <= d->high_j;
}

/* The windows fall into the busy half, always: readings are constant, and the spans tell. */
static void in_step_with_spans(void **state)
{
    struct fixture f;
    struct square wave = {UPDATE_S};
    (void)state;
    begin_part_time(&f, &wave, 0.04);
    mark_halves(&f, &wave);
    const struct nrg_domain *d = summarise(&f);
    assert_true(fabs(d->mean_w - HIGH_W) < 1);
    assert_true(holds_truth(d, &wave));
    assert_non_null(note_with(&f, "in step"));
    end(&f);
}

/* 3 % off: the window drifts through the load and sees all of it. */
static void out_of_step_with_spans(void **state)
{
    struct fixture f;
    struct square wave = {0.103};
    (void)state;
    begin_part_time(&f, &wave, 0.04);
    mark_halves(&f, &wave);
    const struct nrg_domain *d = summarise(&f);
    assert_true(holds_truth(d, &wave));
    assert_true(d->high_j - d->low_j < 0.2 * d->energy_j);
    assert_null(note_with(&f, "in step"));
    assert_non_null(note_with(&f, "sees 25 of every 100 ms"));
    end(&f);
}

/* Without spans, half of a slow beat is seen: the rest may be anything that was read. */
static void a_slow_beat_without_spans(void **state)
{
    struct fixture f;
    struct square wave = {0.1002};
    (void)state;
    begin_part_time(&f, &wave, 0.04);
    const struct nrg_domain *d = summarise(&f);
    assert_true(holds_truth(d, &wave));
    assert_non_null(note_with(&f, "creep"));
    end(&f);
}

/* Phases are no beat, also when several fall into a second: only their edges are uncertain. */
static void slow_phases_without_spans(void **state)
{
    static const double periods_s[] = {6.7, 0.94};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        struct square wave = {periods_s[i]};
        begin_part_time(&f, &wave, 0.04);
        const struct nrg_domain *d = summarise(&f);
        assert_true(holds_truth(d, &wave));
        assert_true(d->high_j - d->low_j < (i ? 0.25 : 0.1) * d->energy_j);
        assert_null(note_with(&f, "creep"));
        end(&f);
    }
}

/* A run of three updates says nothing of three quarters of its time. */
static void too_short_to_tell(void **state)
{
    struct fixture f;
    struct nrg_channel gauge = nvml(made_gauge("gpu-0"));
    (void)state;
    gauge.window_ns = UPDATE / 4;
    made_init(&f.made);
    made_constant(&f.made, &gauge, -0.5, 1, READ_S, 100);
    made_run(&f.made, "run", 0, 0.3);
    const struct nrg_domain *d = summarise(&f);
    assert_true(d->low_j <= 0.26 * d->energy_j && d->high_j >= 1.74 * d->energy_j);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_readings_that_disagree),
        cmocka_unit_test(two_readings_that_agree),
        cmocka_unit_test(a_third_reading_that_disagrees),
        cmocka_unit_test(a_counter_alone),
        cmocka_unit_test(a_gauge_that_ends_early),
        cmocka_unit_test(mig_instances_side_by_side),
        cmocka_unit_test(mig_instances_by_what_they_did),
        cmocka_unit_test(clients_of_mps),
        cmocka_unit_test(in_step_with_spans),
        cmocka_unit_test(out_of_step_with_spans),
        cmocka_unit_test(a_slow_beat_without_spans),
        cmocka_unit_test(slow_phases_without_spans),
        cmocka_unit_test(too_short_to_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
