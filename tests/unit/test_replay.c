/* replay: CSV in all its forms, the clock it is put on, loops and speed, and bad files. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/virtual/replay_csv.h"
#include "sensors/virtual/replay_time.h"

#define S  NRG_NS_PER_S
#define MS NRG_NS_PER_MS

static void open_source(struct tree *t, struct nrg_replay_source **source)
{
    char path[300];
    struct nrg_error err = {0};
    snprintf(path, sizeof path, "%s/log.csv", t->path);
    if (nrg_replay_csv_open(source, path, &err))
        fail_msg("line %lld: %s", err.offset, err.what);
}

static void columns(void **state)
{
    struct tree t;
    struct nrg_probe p;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/log.csv",
               "\xef\xbb\xbf# made by hand\n\n"
               "time_s,package-0:energy_j,core-0:energy_j,\"gpu-0:power_w\",gpu-0:util,"
               "memory:used_bytes,VDD_IN:voltage_v,VDD_IN:current_a,cpu:clock_hz,cpu:temp_c\r\n"
               "0,0,0,0,0,0,0,0,0,0\r\n0.1,1,1,1,1,1,1,1,1,1\r\n");
    /* The mark before a comment line makes that line the header: it is refused, not guessed. */
    struct nrg_error err;
    assert_int_equal(tree_probe_file(&t, &p, "replay", "/log.csv", &err), -EINVAL);
    assert_int_equal(err.offset, 1);
    tree_write(&t, "/log.csv",
               "# made by hand\n\n"
               "time_s,package-0:energy_j,core-0:energy_j,\"gpu-0:power_w\",gpu-0:util,"
               "memory:used_bytes,VDD_IN:voltage_v,VDD_IN:current_a,cpu:clock_hz,cpu:temp_c\r\n"
               "0,0,0,0,0,0,0,0,0,0\r\n0.1,1,1,1,1,1,1,1,1,1\r\n");
    assert_int_equal(tree_probe_file(&t, &p, "replay", "/log.csv", NULL), 0);
    const struct nrg_found *found = &p.found[0];
    static const enum nrg_quantity want[] = {NRG_ENERGY,      NRG_ENERGY, NRG_POWER,
                                             NRG_UTILISATION, NRG_BYTES,  NRG_VOLTAGE,
                                             NRG_CURRENT,     NRG_CLOCK,  NRG_TEMPERATURE};
    assert_int_equal(found->n_channels, 9);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(found->channels[i].quantity, want[i]);
        assert_int_equal(found->channels[i].kind, i < 2 ? NRG_COUNTER : NRG_GAUGE);
        assert_int_equal(found->channels[i].update_ns, 100 * MS);
    }
    assert_string_equal(found->channels[1].parent, "package-0");
    assert_string_equal(found->channels[2].name, "gpu-0");
    assert_true(found->channels[0].covers_cpu);
    nrg_probe_release(&p);
    tree_release(&t);
}

static void refuses_headers(void **state)
{
    static const struct {
        const char *text;
        int rc;
        long long line;
        const char *says;
    } cases[] = {
        {"", -ENODATA, 0, "empty"},
        {"\n# only this\n", -ENODATA, 2, "empty"},
        {"seconds,a:power_w\n0,1\n", -EINVAL, 1, "not 'seconds'"},
        {"\n\ntime_s\n0\n", -EINVAL, 3, "no column"},
        {"time_s,a\n0,1\n", -EINVAL, 1, "column 'a'"},
        {"time_s,a:power\n0,1\n", -EINVAL, 1, "column 'a:power'"},
        {"time_s,a:low_k\n0,1\n", -EINVAL, 1, "column 'a:low_k'"},
        {"time_s,:power_w\n0,1\n", -EINVAL, 1, "column ':power_w'"},
        {"time_s,a:power_w,a:mean_w\n0,1,1\n", -EINVAL, 1, "twice"},
        {"time_s,a:power_w,\n0,1,\n", -EINVAL, 1, "column ''"},
        {"time_s,\xff\xfe:volt\n0,1\n", -EINVAL, 1, "column '\?\?:volt'"},
        {"time_s,a:power_w\n", -ENODATA, -1, "no usable line"},
        {"time_s,a:power_w\nx,y\n", -ENODATA, -1, "no usable line"},
    };
    struct tree t;
    struct nrg_probe p;
    (void)state;
    tree_init(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_error err = {0};
        tree_write(&t, "/log.csv", "%s", cases[i].text);
        int rc = tree_probe_file(&t, &p, "replay", "/log.csv", &err);
        if (rc != cases[i].rc || err.offset != cases[i].line || !strstr(err.what, cases[i].says))
            fail_msg("'%s' gave %d, line %lld: %s", cases[i].text, rc, err.offset, err.what);
    }
    tree_release(&t);
}

static void refuses_arguments(void **state)
{
    static const char *const bad[] = {"/log.csv?speed=0",
                                      "/log.csv?speed=x",
                                      "/log.csv?loop=2",
                                      "/log.csv?fast",
                                      "/log.csv?speed=2&",
                                      "/log.csv?",
                                      NULL};
    struct tree t;
    struct nrg_probe p;
    char path[300];
    (void)state;
    tree_init(&t);
    tree_write(&t, "/log.csv", "time_s,a:power_w\n0,1\n");
    for (size_t i = 0; bad[i]; i++)
        assert_int_equal(tree_probe_file(&t, &p, "replay", bad[i], NULL), -EINVAL);
    assert_int_equal(tree_probe_file(&t, &p, "replay", NULL, NULL), -EINVAL);
    assert_int_equal(tree_probe_file(&t, &p, "replay", "/missing", NULL), -ENOENT);
    assert_int_equal(tree_probe_file(&t, &p, "replay", "", NULL), -EINVAL); /* a directory */
    snprintf(path, sizeof path, "%s/fifo", t.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tree_probe_file(&t, &p, "replay", "/fifo", NULL),
                     -EINVAL); /* and does not hang */
    assert_int_equal(tree_probe_file(&t, &p, "replay", "/log.csv?loop=1&speed=0.5", NULL), 0);
    nrg_probe_release(&p);
    tree_release(&t);
}

static void times(void **state)
{
    static const struct {
        const char *text;
        int64_t t_ns;
        int rc;
    } seconds[] = {{"0", 0, 0},
                   {" 12.5 ", 12500000000, 0},
                   {"1700000000.123456789", 1700000000123456789, 0},
                   {"1.1234567899", 1123456789, 0},
                   {"-0.25", -250000000, 0},
                   {"99999999999", 0, -EINVAL},
                   {"1.", 0, -EINVAL},
                   {"1e3", 0, -EINVAL},
                   {"", 0, -EINVAL}},
      iso[] = {{"1970-01-01T00:00:01Z", S, 0},
               {"2024-02-29 12:00:00.25", 1709208000250000000, 0},
               {"2024-02-29T14:00:00.25+02:00", 1709208000250000000, 0},
               {"2024-02-29T06:30:00-0530", 1709208000000000000, 0},
               {"1969-12-31T23:59:59Z", -S, 0},
               {"2000-03-01T00:00:00Z", 951868800000000000, 0},
               {"2024-13-01T00:00:00Z", 0, -EINVAL},
               {"2024-01-01", 0, -EINVAL},
               {"2024-01-01T00:00:00Zulu", 0, -EINVAL},
               {"2024-01-01T00:00:00+", 0, -EINVAL}};
    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        int64_t t_ns = 0;
        const char *text = seconds[i].text;
        assert_int_equal(nrg_time_from_seconds(text, strlen(text), &t_ns), seconds[i].rc);
        if (!seconds[i].rc)
            assert_int_equal(t_ns, seconds[i].t_ns);
    }
    for (size_t i = 0; i < sizeof iso / sizeof *iso; i++) {
        int64_t t_ns = 0;
        assert_int_equal(nrg_time_from_iso(iso[i].text, strlen(iso[i].text), &t_ns), iso[i].rc);
        if (!iso[i].rc)
            assert_int_equal(t_ns, iso[i].t_ns);
    }
}

static void rows_and_bad_lines(void **state)
{
    struct tree t;
    struct nrg_replay_source *source;
    struct nrg_replay_row row;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/log.csv",
               "\xef\xbb\xbftime_ns,a:energy_j,b:power_w\n"
               "1000,1.5,2\n"
               "2000,,nan\n"
               "# a remark\n"
               "3000,x,1\n"     /* a's cell */
               "4000,1,1e999\n" /* b's cell */
               "5000,1\n"       /* too few */
               "6000,1,2,3\n"   /* too many */
               "zero,1,2\n"     /* no time */
               "1500,1,2\n"     /* backwards */
               "2000,\" 3 \",-4");
    open_source(&t, &source);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(source->next(source, &row), 1);
        assert_int_equal(row.t_ns, 1000);
        assert_int_equal(row.raw[0], 1500000);
        assert_int_equal(source->next(source, &row), 1);
        assert_int_equal(row.raw[0], NRG_MISSING);
        assert_int_equal(row.raw[1], NRG_MISSING);
        static const unsigned channels[] = {0, 1, 1, 1, 0, 0};
        for (size_t i = 0; i < 6; i++) {
            assert_true(source->next(source, &row) < 0);
            assert_int_equal(source->bad_channel, channels[i]);
        }
        assert_int_equal(source->next(source, &row), 1);
        assert_int_equal(row.raw[0], 3000000);
        assert_int_equal(row.raw[1], -4000000);
        assert_int_equal(source->next(source, &row), 0);
        assert_int_equal(source->next(source, &row), 0);
        assert_int_equal(source->bad_lines, 6 * (round + 1));
        assert_false(source->failed);
        assert_int_equal(source->rewind(source), 0);
    }
    source->close(source);
    tree_release(&t);
}

/* Many buffers long, with a line in it that is longer than the buffer. */
static void long_files_and_lines(void **state)
{
    struct tree t;
    struct nrg_replay_source *source;
    struct nrg_replay_row row;
    struct nrg_str text = {0};
    (void)state;
    tree_init(&t);
    assert_int_equal(nrg_str_addf(&text, "time_s,a:energy_j\n"), 0);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(nrg_str_addf(&text, "%d.5,%d\n", i, i * 3), 0);
        for (int k = 0; i == 777 && k < 20000; k++)
            assert_int_equal(nrg_str_addf(&text, "0000000%s", k == 19999 ? "\n" : ""), 0);
    }
    tree_write_bytes(&t, "/log.csv", text.text, text.len);
    open_source(&t, &source);
    for (int i = 0; i < 20000; i++) {
        if (source->next(source, &row) != 1)
            fail_msg("row %d", i);
        assert_int_equal(row.t_ns, i * S + S / 2);
        assert_int_equal(row.raw[0], i * INT64_C(3000000));
        if (i == 777)
            assert_int_equal(source->next(source, &row), -EMSGSIZE);
    }
    assert_int_equal(source->next(source, &row), 0);
    assert_int_equal(source->bad_lines, 1);
    source->close(source);
    nrg_str_release(&text);
    tree_release(&t);
}

static void play(struct tree *t, const char *file, struct nrg_probe *p, struct keep_sink *keep)
{
    assert_int_equal(tree_probe_file(t, p, "replay", file, NULL), 0);
    keep_open(keep, t, &p->found[0]);
}

static void plays_as_if_live(void **state)
{
    struct tree t;
    struct nrg_probe p;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/log.csv",
               "time,a:energy_j,b:power_w\n"
               "2024-01-01T00:00:00.00Z,100,5\n"
               "2024-01-01T00:00:00.02Z,101,\n"
               "bad line\n"
               "2024-01-01T00:00:00.04Z,102,7\n");
    play(&t, "/log.csv", &p, &keep);
    int64_t before_ns = nrg_now_ns();
    keep_read(&keep);
    assert_int_equal(keep.n_rows, 1); /* the rest is still to come */
    assert_true(keep.rows[0].t_ns >= before_ns && keep.rows[0].t_ns <= nrg_now_ns());
    usleep(60000);
    assert_int_equal(keep_try_read(&keep), -ENODATA); /* and says that it ended */
    assert_int_equal(keep.n_rows, 3);
    assert_int_equal(keep.rows[1].t_ns - keep.rows[0].t_ns, 20 * MS);
    assert_int_equal(keep.rows[2].t_ns - keep.rows[0].t_ns, 40 * MS);
    assert_int_equal(keep.rows[1].raw[0], 101000000);
    assert_int_equal(keep.rows[1].raw[1], NRG_MISSING);
    assert_int_equal(keep.n_faults, 1);
    assert_int_equal(keep.faults[0].error, -EINVAL);
    assert_int_equal(keep_try_read(&keep), -ENODEV); /* final: no retry */
    assert_int_equal(keep.n_rows, 3);
    keep_close(&keep);
    nrg_probe_release(&p);
    tree_release(&t);
}

static void loops_without_a_seam(void **state)
{
    struct tree t;
    struct nrg_probe p;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/log.csv", "time_s,a:energy_j,b:power_w\n0,10,1\n0.01,11,2\n0.03,14,3\n");
    play(&t, "/log.csv?loop=1&speed=2", &p, &keep);
    keep_read(&keep);
    usleep(50000); /* more than three rounds of 15 ms */
    keep_read(&keep);
    assert_true(keep.n_rows >= 7);
    static const int64_t at_ms[] = {0, 5, 15, 20, 30, 35, 45};
    static const int64_t power_w[] = {1, 2, 3, 2, 3, 2, 3};
    static const int64_t energy_mj[] = {10000, 10500, 12000, 12500, 14000, 14500, 16000};
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(keep.rows[i].t_ns - keep.rows[0].t_ns, at_ms[i] * MS);
        assert_int_equal(keep.rows[i].raw[0], energy_mj[i] * 1000);
        assert_int_equal(keep.rows[i].raw[1], power_w[i] * 1000000);
    }
    keep_close(&keep);
    nrg_probe_release(&p);

    /* One row is not a loop: playback ends instead of spinning. */
    tree_write(&t, "/log.csv", "time_s,a:energy_j\n5,1\n");
    play(&t, "/log.csv?loop=1", &p, &keep);
    assert_int_equal(keep_try_read(&keep), -ENODATA);
    assert_int_equal(keep.n_rows, 1);
    keep_close(&keep);
    nrg_probe_release(&p);
    tree_release(&t);
}

static void extreme_numbers(void **state)
{
    struct tree t;
    struct nrg_probe p;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/log.csv",
               "time_ns,a:energy_j,b:used_bytes\n"
               "-4611686018427387903,-3.9e12,3.9e18\n"
               "-4611686018427387902,3.9e12,-3.9e18\n"
               "4611686018427387903,1,1\n");
    play(&t, "/log.csv?loop=1&speed=0.001", &p, &keep);
    keep_read(&keep);
    usleep(1000);
    keep_read(&keep);
    assert_int_equal(keep.n_rows, 2); /* the third is due in centuries */
    keep_close(&keep);
    nrg_probe_release(&p);

    tree_write(&t, "/log.csv", "time_ns,a:energy_j\n0,-3.9e12\n1,3.9e12\n");
    play(&t, "/log.csv?loop=1", &p, &keep);
    usleep(1000);
    keep_read(&keep);
    usleep(1000); /* the counter is full after one round: an end, not an overflow */
    assert_int_equal(keep_try_read(&keep), -ENODATA);
    keep_close(&keep);
    nrg_probe_release(&p);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns),
        cmocka_unit_test(refuses_headers),
        cmocka_unit_test(refuses_arguments),
        cmocka_unit_test(times),
        cmocka_unit_test(rows_and_bad_lines),
        cmocka_unit_test(long_files_and_lines),
        cmocka_unit_test(plays_as_if_live),
        cmocka_unit_test(loops_without_a_seam),
        cmocka_unit_test(extreme_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
