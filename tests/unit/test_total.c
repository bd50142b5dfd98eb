/*
 * What nrg_recorder_read says is what the report's total says: each test gives the same readings to
 * the sum that a recorder keeps while it runs (record/sampler/live.c) and to a recording, and
 * compares the two with each other and with the joules that the test worked out by hand.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "energy/summary.h"
#include "record/sampler/live.h"
#include "record/store/writer.h"

#define S       NRG_NS_PER_S
#define ZERO    (1000 * S)
#define SENSORS 3
#define COLUMNS 4
#define RUNS    3

struct fixture {
    char path[64];
    struct nrg_found found[SENSORS];
    struct nrg_channel channels[SENSORS][COLUMNS];
    bool wanted[SENSORS][COLUMNS];
    struct nrg_rows rows[SENSORS];
    struct nrg_live live;
    struct nrg_run runs[RUNS];
    double live_j[RUNS], truth_j[RUNS];
    size_t n_sensors, n_runs;
};

static const struct nrg_driver driver = {.name = "test"};

static int64_t at(double t_s)
{
    return ZERO + (int64_t)llround(t_s * 1e9);
}

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    nrg_live_init(&f->live);
    for (size_t i = 0; i < SENSORS; i++) {
        f->found[i].driver = &driver;
        f->found[i].channels = f->channels[i];
        f->found[i].wanted = f->wanted[i];
        snprintf(f->found[i].sensor, sizeof f->found[i].sensor, "sensor %zu", i);
    }
}

/* Raw units are joules or watts. */
static struct nrg_channel *add_channel(struct fixture *f, size_t sensor, const char *name,
                                       const char *parent, enum nrg_quantity quantity)
{
    struct nrg_found *found = &f->found[sensor];
    struct nrg_channel *c = &f->channels[sensor][found->n_channels];
    f->wanted[sensor][found->n_channels++] = true;
    nrg_copy(c->name, sizeof c->name, name);
    nrg_copy(c->parent, sizeof c->parent, parent);
    c->quantity = quantity;
    c->kind = quantity == NRG_ENERGY ? NRG_COUNTER : NRG_GAUGE;
    c->scale = 1;
    c->update_ns = NRG_NS_PER_MS;
    if (sensor >= f->n_sensors)
        f->n_sensors = sensor + 1;
    return c;
}

static struct nrg_channel *add_processor(struct fixture *f, size_t sensor, const char *name,
                                         enum nrg_quantity quantity)
{
    struct nrg_channel *c = add_channel(f, sensor, name, "", quantity);
    c->covers_cpu = true;
    return c;
}

static struct nrg_channel *add_wide(struct fixture *f, size_t sensor, const char *name,
                                    bool covers_cpu, enum nrg_quantity quantity)
{
    struct nrg_channel *c = add_channel(f, sensor, name, "", quantity);
    c->wide = true;
    c->covers_cpu = covers_cpu;
    return c;
}

/* All channels are there; readings come about once a second. */
static void ready(struct fixture *f)
{
    for (size_t i = 0; i < f->n_sensors; i++) {
        nrg_rows_init(&f->rows[i], f->found[i].n_channels);
        assert_int_equal(nrg_live_add(&f->live, &f->found[i], S), 0);
    }
}

static void read_sensor(struct fixture *f, size_t sensor, double t_s, const int64_t *raw)
{
    assert_int_equal(nrg_rows_add(&f->rows[sensor], at(t_s), 0, raw), 0);
    nrg_live_row(&f->live, &f->found[sensor], 0, at(t_s), raw);
}

static void begin_run(struct fixture *f, double t_s)
{
    f->runs[f->n_runs] = (struct nrg_run){
        .id = (int32_t)f->n_runs + 1, .kind = "run", .exit_code = -1, .begin_ns = at(t_s)};
    nrg_live_begin(&f->live, at(t_s));
}

/* At the last reading's time. */
static void end_run(struct fixture *f, double t_s, double truth_j)
{
    struct nrg_live_sum sum;
    int rc = nrg_live_energy(&f->live, &sum);
    f->runs[f->n_runs].end_ns = at(t_s);
    f->live_j[f->n_runs] = rc ? NAN : sum.energy_j;
    f->truth_j[f->n_runs++] = truth_j;
}

static void write_recording(struct fixture *f)
{
    struct nrg_store *store;
    struct nrg_error err;
    int series;
    strcpy(f->path, "/tmp/nrg-total-XXXXXX");
    close(mkstemp(f->path));
    assert_int_equal(nrg_store_create(f->path, true, &store, &err), 0);
    for (size_t i = 0; i < f->n_sensors; i++) {
        assert_int_equal(nrg_store_sensor(store, &f->found[i], S, &series, 1), 0);
        assert_int_equal(nrg_store_rows(store, series, &f->rows[i]), 0);
        nrg_rows_release(&f->rows[i]);
    }
    for (size_t i = 0; i < f->n_runs; i++)
        assert_int_equal(nrg_store_run(store, &f->runs[i]), 0);
    assert_int_equal(nrg_store_close(store, &err), 0);
}

static bool differ(double a, double b)
{
    return isnan(a) || isnan(b) ? isnan(a) != isnan(b) : fabs(a - b) > 1e-9;
}

static void compare(struct fixture *f)
{
    struct nrg_recording *recording;
    struct nrg_error err;
    size_t n;
    write_recording(f);
    assert_int_equal(nrg_recording_open(f->path, &recording, &err), 0);
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    assert_int_equal(n, f->n_runs);
    for (size_t i = 0; i < n; i++) {
        struct nrg_summary s;
        assert_int_equal(nrg_summary_make(&s, recording, &runs[i], NRG_SPLIT_ACTIVE, &err), 0);
        if (differ(s.total_j, f->truth_j[i]) || differ(f->live_j[i], f->truth_j[i]))
            fail_msg("run %zu: the report has %g J, the recorder said %g J, truth is %g J", i + 1,
                     s.total_j, f->live_j[i], f->truth_j[i]);
        nrg_summary_release(&s);
    }
    nrg_recording_close(recording);
    nrg_live_release(&f->live);
    unlink(f->path);
}

/* Another machine's meter says nothing about this one: there is no total. */
static void a_wide_meter_without_this_processor(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_wide(&f, 0, "power1", false, NRG_POWER);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){50});
    end_run(&f, 4, NAN);
    compare(&f);
}

/* The first meter is another machine's, the second has this one's processors in it. */
static void the_wide_meter_with_this_processor(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_wide(&f, 0, "power1", false, NRG_POWER);
    add_wide(&f, 1, "power2", true, NRG_POWER);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++) {
        read_sensor(&f, 0, i, (int64_t[]){50});
        read_sensor(&f, 1, i, (int64_t[]){30});
    }
    end_run(&f, 4, 120);
    compare(&f);
}

/* Two phases of one meter are the machine together. */
static void all_lines_of_the_meter(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_wide(&f, 0, "power1", true, NRG_POWER);
    add_wide(&f, 0, "power2", true, NRG_POWER);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){50, 20});
    end_run(&f, 4, 280);
    compare(&f);
}

/* layout=msg: whole Wh as text, and nobody says so. None in a run is too few, and three are, too.
 */
static void a_counter_of_unknown_steps_beside_its_gauge(void **state)
{
    struct fixture f;
    (void)state;
    for (int steps = 0; steps <= 3; steps += 3) {
        begin(&f);
        add_wide(&f, 0, "wall", true, NRG_ENERGY);
        add_wide(&f, 0, "wall", true, NRG_POWER);
        ready(&f);
        begin_run(&f, 0);
        for (int i = 0; i <= 10; i++)
            read_sensor(&f, 0, i, (int64_t[]){3600 * (1 + i * steps / 10), 80});
        end_run(&f, 10, 800);
        compare(&f);
    }
}

/* A plug that counts watt-hours moved once; its power tells more. */
static void a_coarse_counter_beside_its_gauge(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_wide(&f, 0, "wall", true, NRG_ENERGY)->resolution = 3600;
    add_wide(&f, 0, "wall", true, NRG_POWER);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){i < 3 ? 3600 : 7200, 80});
    end_run(&f, 4, 320);
    compare(&f);
}

/* A chip's counter is finer than the chip's gauge. */
static void a_fine_counter_beside_its_gauge(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_ENERGY)->resolution = 1e-6;
    add_processor(&f, 0, "package-0", NRG_POWER);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){10 * i, 80});
    end_run(&f, 4, 40);
    compare(&f);
}

static void a_counter_wraps(void **state)
{
    struct fixture f;
    static const int64_t raw[] = {950, 990, NRG_MISSING, 50, 70};
    (void)state;
    begin(&f);
    struct nrg_channel *c = add_processor(&f, 0, "package-0", NRG_ENERGY);
    c->wrap = 1000;
    c->limit_w = 300;
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, &raw[i]);
    end_run(&f, 4, 120);
    compare(&f);
}

/* Reset to 0 (no power explains a wrap), and a jump that no power explains: both are gaps. */
static void a_counter_jumps(void **state)
{
    struct fixture f;
    static const int64_t raw[] = {100000, 100040, 10, 50, 900000, 900020};
    (void)state;
    begin(&f);
    struct nrg_channel *c = add_processor(&f, 0, "package-0", NRG_ENERGY);
    c->wrap = 10000000;
    c->limit_w = 300;
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 5; i++)
        read_sensor(&f, 0, i, &raw[i]);
    end_run(&f, 5, 100);
    compare(&f);
}

static void a_rail_in_its_parent(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_ENERGY);
    add_channel(&f, 0, "core-0", "package-0", NRG_ENERGY);
    add_channel(&f, 0, "rail", "core-0", NRG_POWER);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){30 * i, 20 * i, 5});
    end_run(&f, 4, 120);
    compare(&f);
}

/* A parent that stands still does not measure here: its parts are what there is. */
static void a_parent_that_stands_still(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_ENERGY);
    add_channel(&f, 0, "core-0", "package-0", NRG_ENERGY);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){7, 20 * i});
    end_run(&f, 4, 80);
    compare(&f);
}

static void psys_beside_its_parts(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_wide(&f, 0, "psys", true, NRG_ENERGY);
    nrg_copy(add_processor(&f, 0, "package-0", NRG_ENERGY)->parent, 48, "psys");
    add_channel(&f, 0, "dram-0", "psys", NRG_ENERGY);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){100 * i, 30 * i, 4 * i});
    end_run(&f, 4, 136);
    compare(&f);
}

/* The parts have no processor; the wall has, unless it reads less than they do. */
static void the_wall_beside_a_gpu(void **state)
{
    struct fixture f;
    (void)state;
    for (int wall_w = 40; wall_w <= 90; wall_w += 50) {
        begin(&f);
        add_channel(&f, 0, "gpu-0", "", NRG_POWER);
        add_wide(&f, 1, "wall", true, NRG_POWER);
        ready(&f);
        begin_run(&f, 0);
        for (int i = 0; i <= 4; i++) {
            read_sensor(&f, 0, i, (int64_t[]){60});
            read_sensor(&f, 1, i, &(int64_t){wall_w});
        }
        end_run(&f, 4, wall_w > 60 ? 360 : 240);
        compare(&f);
    }
}

/* It says of the processors what a sensor says, if that has readings. */
static void an_estimate_beside_a_sensor(void **state)
{
    struct fixture f;
    (void)state;
    for (int readings = 0; readings <= 1; readings++) {
        begin(&f);
        add_processor(&f, 0, "machine", NRG_ENERGY)->provenance = NRG_ESTIMATED;
        add_channel(&f, 0, "dram", "machine", NRG_ENERGY)->provenance = NRG_ESTIMATED;
        add_processor(&f, 1, "package-0", NRG_ENERGY);
        ready(&f);
        begin_run(&f, 0);
        for (int i = 0; i <= 4; i++) {
            read_sensor(&f, 0, i, (int64_t[]){i * 30, i * 2});
            if (readings)
                read_sensor(&f, 1, i, &(int64_t){i * 50});
        }
        end_run(&f, 4, readings ? 200 : 120);
        compare(&f);
    }
}

/* Runs begin between readings; each counts its own energy only. */
static void several_runs(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_ENERGY);
    add_channel(&f, 1, "gpu-0", "", NRG_POWER);
    ready(&f);
    for (int i = 0; i <= 9; i++) {
        read_sensor(&f, 0, i, (int64_t[]){i * i});
        read_sensor(&f, 1, i, (int64_t[]){10 * i});
        if (i == 4) /* from 0.5 s: half of 1 J, 15 J; gauge: 10 W * t */
            end_run(&f, 4, 15.5 + 5 * (16 - 0.25));
        if (i == 9) /* from 4.75 s: a quarter of 9 J, 56 J */
            end_run(&f, 9, 56 + 2.25 + 5 * (81 - 4.75 * 4.75));
        if (i == 0 || i == 4)
            begin_run(&f, i ? 4.75 : 0.5);
    }
    compare(&f);
}

/* A gauge's silence of more than three periods is a gap, and edges are held for one period. */
static void a_gauge_with_a_pause(void **state)
{
    struct fixture f;
    static const double t_s[] = {0.5, 1.5, 2.5, 9, 10};
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_POWER);
    add_channel(&f, 1, "gpu-0", "", NRG_ENERGY);
    ready(&f);
    begin_run(&f, 0);
    read_sensor(&f, 1, 0, (int64_t[]){0});
    for (int i = 0; i < 5; i++)
        read_sensor(&f, 0, t_s[i], (int64_t[]){20});
    read_sensor(&f, 1, 10.25, (int64_t[]){41});
    end_run(&f, 10.25, 41 + 20 * (2.5 + 1 + 0.25));
    compare(&f);
}

/* A meter that sends every five seconds and does not say so: the readings show it. */
static void a_gauge_of_unknown_pace(void **state)
{
    struct fixture f;
    (void)state;
    for (int n = 12; n <= 400; n += 388) {
        begin(&f);
        add_processor(&f, 0, "package-0", NRG_POWER)->update_ns = 0;
        ready(&f);
        begin_run(&f, 0);
        for (int i = 0; i <= n; i++)
            read_sensor(&f, 0, 5 * i, (int64_t[]){20});
        end_run(&f, 5 * n, 100 * n);
        compare(&f);
    }
}

/* 10 W more at the end than at the beginning were not yet in readings that lag by 0.2 s. */
static void a_gauge_that_lags(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_POWER)->lag_ns = 200 * NRG_NS_PER_MS;
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){i < 2 ? 20 : 30});
    end_run(&f, 4, 20 + 25 + 60 + 2);
    compare(&f);
}

static void no_total_without_energy(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_ENERGY);
    add_channel(&f, 0, "package-0.low", "", NRG_ENERGY);
    add_channel(&f, 0, "temperature", "", NRG_TEMPERATURE);
    ready(&f);
    begin_run(&f, 0);
    for (int i = 0; i <= 4; i++)
        read_sensor(&f, 0, i, (int64_t[]){NRG_MISSING, 10 * i, 50});
    end_run(&f, 4, NAN);
    compare(&f);
}

/* No reading: no sum. Right after the beginning: 0 J. Then energy, its time and provenance. */
static void the_sum_of_a_young_run(void **state)
{
    struct fixture f;
    struct nrg_live_sum sum;
    (void)state;
    begin(&f);
    add_processor(&f, 0, "package-0", NRG_ENERGY)->provenance = NRG_ESTIMATED;
    add_channel(&f, 1, "gpu-0", "", NRG_POWER);
    ready(&f);
    assert_int_equal(nrg_live_energy(&f.live, &sum), -ENODATA);
    read_sensor(&f, 0, 1, (int64_t[]){7});
    begin_run(&f, 1.25);
    assert_int_equal(nrg_live_energy(&f.live, &sum), 0);
    assert_true(sum.energy_j == 0 && sum.t_ns == at(1) && sum.provenance == NRG_ESTIMATED);
    read_sensor(&f, 1, 1.75, (int64_t[]){2});
    read_sensor(&f, 0, 2, (int64_t[]){11});
    assert_int_equal(nrg_live_energy(&f.live, &sum), 0);
    assert_float_equal(sum.energy_j, 3 + 1.5, 1e-9);
    assert_true(sum.t_ns == at(2) && sum.provenance == NRG_ESTIMATED);
    nrg_rows_release(&f.rows[0]);
    nrg_rows_release(&f.rows[1]);
    nrg_live_release(&f.live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wide_meter_without_this_processor),
        cmocka_unit_test(the_wide_meter_with_this_processor),
        cmocka_unit_test(all_lines_of_the_meter),
        cmocka_unit_test(a_coarse_counter_beside_its_gauge),
        cmocka_unit_test(a_counter_of_unknown_steps_beside_its_gauge),
        cmocka_unit_test(a_fine_counter_beside_its_gauge),
        cmocka_unit_test(a_counter_wraps),
        cmocka_unit_test(a_counter_jumps),
        cmocka_unit_test(a_rail_in_its_parent),
        cmocka_unit_test(a_parent_that_stands_still),
        cmocka_unit_test(psys_beside_its_parts),
        cmocka_unit_test(the_wall_beside_a_gpu),
        cmocka_unit_test(an_estimate_beside_a_sensor),
        cmocka_unit_test(several_runs),
        cmocka_unit_test(a_gauge_with_a_pause),
        cmocka_unit_test(a_gauge_of_unknown_pace),
        cmocka_unit_test(a_gauge_that_lags),
        cmocka_unit_test(no_total_without_energy),
        cmocka_unit_test(the_sum_of_a_young_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
