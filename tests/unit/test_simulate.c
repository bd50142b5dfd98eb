/* The simulated device (quantum, wrap, noise, lag, faults) and the driver on top of it. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sensors/virtual/sim_meter.h"

#define S  NRG_NS_PER_S
#define MS NRG_NS_PER_MS

static void parse(struct nrg_scenario *scenario, const char *text)
{
    struct nrg_error err = {0};
    if (nrg_scenario_parse(scenario, "test", text, strlen(text), &err))
        fail_msg("line %lld: %s", err.offset, err.what);
}

static int64_t shown(struct nrg_sim_meter *m, int64_t t_ns)
{
    int64_t raw = -1;
    int rc = nrg_sim_meter_read(m, t_ns, 0, &raw);
    if (rc)
        fail_msg("read at %lld ns: %d", (long long)t_ns, rc);
    return raw;
}

static void latch_quantum_and_wrap(void **state)
{
    struct nrg_scenario s;
    struct nrg_sim_meter m;
    (void)state;
    parse(&s, "domain a\npower 50\nupdate 10ms\nquantum 0.1J\nwrap 100J\nstart 98J\n");
    assert_int_equal(nrg_sim_meter_wrap(&s.domains[0]), 1000);
    nrg_sim_meter_init(&m, &s, 0, 0);
    assert_int_equal(shown(&m, 0), 980);
    assert_int_equal(shown(&m, 9999999), 980); /* not updated yet */
    assert_int_equal(shown(&m, 10 * MS), 985); /* 0.5 J */
    assert_int_equal(shown(&m, 19 * MS), 985);
    assert_int_equal(shown(&m, 30 * MS), 995);
    assert_int_equal(shown(&m, 40 * MS), 0); /* 100 J: wrapped */
    assert_int_equal(shown(&m, 60 * MS), 10);
    assert_int_equal(shown(&m, 60 * MS + 60 * S), 10); /* thirty times round */
    nrg_scenario_release(&s);

    parse(&s, "domain a\npower 1\nquantum 61uJ\n");
    nrg_sim_meter_init(&m, &s, 0, 0);
    assert_int_equal(shown(&m, MS), 16); /* 1000 uJ / 61 uJ, down */
    assert_int_equal(nrg_sim_meter_wrap(&s.domains[0]), 0);
    nrg_scenario_release(&s);
}

static void reading_often_changes_nothing(void **state)
{
    struct nrg_scenario s;
    struct nrg_sim_meter often, once;
    (void)state;
    parse(&s, "seed 7\ndomain a\nramp 0s:3 1s:90\nnoise 5%\n"
              "domain b\nburst period=37ms duty=0.3 high=50\n"
              "domain c\nkind gauge\nlag 100ms\nnoise 5%\npower 0s:3 0.4s:90\n");
    for (size_t d = 0; d < s.n_domains; d++) {
        nrg_sim_meter_init(&often, &s, d, 0);
        nrg_sim_meter_init(&once, &s, d, 0);
        shown(&once, 0);
        for (int64_t t = 0; t < S; t += 7 * MS + 13)
            shown(&often, t);
        int64_t difference = shown(&often, S) - shown(&once, S);
        assert_in_range(difference + 1, 0, 2); /* rounding of the noise's sum at most */
    }
    nrg_scenario_release(&s);
}

static void lag_of_a_gauge(void **state)
{
    struct nrg_scenario s;
    struct nrg_sim_meter m;
    (void)state;
    parse(&s, "domain a\nkind gauge\nlag 0.4s\nupdate 20ms\nquantum 1mW\npower 0s:20 1s:80\n");
    nrg_sim_meter_init(&m, &s, 0, 0);
    for (int64_t t = 0; t < 3 * S; t += 20 * MS) {
        double since_s = (double)(t - S) / 1e9;
        double want_w = since_s < 0 ? 20 : 80 - 60 * exp(-since_s / 0.4);
        int64_t raw = shown(&m, t + 5 * MS);
        if (fabs((double)raw * 1e-3 - want_w) > 1.001e-3)
            fail_msg("at %g s: %lld mW, not %g W", since_s, (long long)raw, want_w);
    }
    nrg_scenario_release(&s);
}

static void noise_statistics(void **state)
{
    struct nrg_scenario s;
    struct nrg_sim_meter m;
    const int n = 20000;
    double sum = 0, squares = 0, neighbours = 0, before = 0;
    (void)state;
    parse(&s, "seed 42\ndomain a\nkind gauge\npower 100\nnoise 2%\nquantum 1uW\n"
              "domain b\npower 100\nnoise 2%\n");
    nrg_sim_meter_init(&m, &s, 0, 0);
    for (int i = 1; i <= n; i++) {
        double noise = (double)shown(&m, i * MS) * 1e-6 / 100 - 1;
        sum += noise;
        squares += noise * noise;
        neighbours += noise * before;
        before = noise;
    }
    double sd = sqrt(squares / n);
    assert_true(fabs(sum / n) < 4 * 0.02 / sqrt(n));
    assert_true(fabs(sd - 0.02) < 4 * 0.02 / sqrt(2.0 * n));
    assert_true(fabs(neighbours / squares) < 4 / sqrt(n));
    /* A counter's noise averages out: sd of the sum is 2 % / sqrt(n), also in one big jump. */
    for (int jump = 0; jump < 2; jump++) {
        nrg_sim_meter_init(&m, &s, 1, 0);
        for (int i = 1; !jump && i <= n; i++)
            shown(&m, i * MS);
        double energy_j = (double)shown(&m, n * MS) * 1e-6;
        assert_true(fabs(energy_j / 2000 - 1) < 4 * 0.02 / sqrt(n));
        assert_true(fabs(energy_j - 2000) > 1e-6); /* but it is noise */
    }
    nrg_scenario_release(&s);
}

static void seeds_matter(void **state)
{
    (void)state;
    assert_true(nrg_sim_gauss(1, 5) == nrg_sim_gauss(1, 5));
    assert_true(nrg_sim_gauss(1, 5) != nrg_sim_gauss(2, 5));
    assert_true(nrg_sim_gauss(1, 5) != nrg_sim_gauss(1, 6));
}

static void faults_of_a_counter(void **state)
{
    struct nrg_scenario s;
    struct nrg_sim_meter m;
    int64_t raw = 77;
    (void)state;
    parse(&s, "domain a\npower 100\nquantum 1J\n"
              "fault 2s EIO 500ms\nfault 3s stuck 1s\nfault 5s freeze 1s\nfault 7s backwards 50J\n"
              "fault 9s ENODATA\n");
    nrg_sim_meter_init(&m, &s, 0, 0);
    assert_int_equal(shown(&m, 2 * S - 1), 199);
    assert_int_equal(nrg_sim_meter_read(&m, 2 * S, 0, &raw), -EIO);
    assert_int_equal(nrg_sim_meter_read(&m, 2 * S + 499 * MS, 0, &raw), -EIO);
    assert_int_equal(raw, 77); /* no value made up */
    assert_int_equal(shown(&m, 2 * S + 500 * MS), 250);
    assert_int_equal(shown(&m, 3 * S + 900 * MS), 300); /* stuck where it was at 3 s */
    assert_int_equal(shown(&m, 4 * S), 400);            /* and has caught up */
    assert_int_equal(shown(&m, 5 * S + 500 * MS), 500);
    assert_int_equal(shown(&m, 6 * S), 500);
    assert_int_equal(shown(&m, 6 * S + 500 * MS), 550); /* 100 J are lost */
    assert_int_equal(shown(&m, 7 * S - MS), 599);
    assert_int_equal(shown(&m, 7 * S), 550);
    assert_int_equal(shown(&m, 8 * S), 650);
    assert_int_equal(nrg_sim_meter_read(&m, 9 * S, 0, &raw), -ENODATA);
    assert_int_equal(nrg_sim_meter_read(&m, 900 * S, 0, &raw), -ENODATA);
    /* The same for one who only looks once, behind it all. */
    nrg_sim_meter_init(&m, &s, 0, 0);
    assert_int_equal(shown(&m, 8 * S), 650);
    assert_false(nrg_scenario_gone(&s, 1000 * S));
    nrg_scenario_release(&s);

    parse(&s, "domain a\npower 10\nquantum 1J\nwrap 100J\nfault 1s backwards 20J\n");
    nrg_sim_meter_init(&m, &s, 0, 0);
    assert_int_equal(shown(&m, 1 * S), 90); /* through zero, as a wrapping counter would */
    nrg_scenario_release(&s);
}

static void faults_of_a_gauge(void **state)
{
    struct nrg_scenario s;
    struct nrg_sim_meter m;
    (void)state;
    parse(&s, "domain a\nkind gauge\nquantum 1W\nramp 0s:0 10s:100\nfault 2s stuck 1s\n"
              "fault 4s freeze 1s\nfault 8s gone\n");
    nrg_sim_meter_init(&m, &s, 0, 0);
    assert_int_equal(shown(&m, 2 * S + 900 * MS), 20);
    assert_int_equal(shown(&m, 3 * S), 30);
    assert_int_equal(shown(&m, 5 * S), 40);
    assert_int_equal(shown(&m, 5 * S + 100 * MS), 51);
    assert_false(nrg_scenario_gone(&s, 8 * S - 1));
    assert_true(nrg_scenario_gone(&s, 8 * S));
    nrg_scenario_release(&s);
}

static void busy_cpus(void **state)
{
    struct nrg_scenario s;
    struct nrg_sim_meter counter, gauge;
    int64_t raw;
    (void)state;
    parse(&s, "domain a\npower 5\nper-busy-cpu 10\nquantum 1mJ\nupdate 100ms\n"
              "domain b\nkind gauge\nper-busy-cpu 10\n");
    nrg_sim_meter_init(&counter, &s, 0, 1000);
    nrg_sim_meter_init(&gauge, &s, 1, 1000);
    assert_int_equal(nrg_sim_meter_read(&counter, 0, 1000, &raw), 0);
    assert_int_equal(raw, 0);
    assert_int_equal(nrg_sim_meter_read(&gauge, 0, 1000, &raw), 0);
    assert_int_equal(nrg_sim_meter_read(&counter, S, 1002, &raw), 0);
    assert_int_equal(raw, 25000); /* 5 J and 2 busy seconds */
    assert_int_equal(nrg_sim_meter_read(&gauge, S, 1002, &raw), 0);
    assert_int_equal(raw, 20000); /* mW */
    /* 1.25 s: latched at 1.2 s, where 4/5 of the half second's work was done */
    assert_int_equal(nrg_sim_meter_read(&counter, S + 250 * MS, 1002.5, &raw), 0);
    assert_int_equal(raw, 25000 + 1000 + 4000);
    nrg_scenario_release(&s);
}

static void reads_proc_stat(void **state)
{
    static const struct {
        const char *text;
        int rc;
        double ticks;
    } cases[] = {{"cpu  10 20 30 400 50 1 2 7 99 99\ncpu0 1\n", 0, 63},
                 {"cpu 1 2 3 4\n", 0, 6},
                 {"cpu 1 2 3\n", -EINVAL, 0},
                 {"cpu 1 2 x 4\n", -EINVAL, 0},
                 {"cpu0 1 2 3 4\n", -EINVAL, 0},
                 {"cpu 1 2 3 4", -EINVAL, 0},
                 {"", -EINVAL, 0}};
    struct tree t;
    (void)state;
    tree_init(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double busy_s = 0;
        tree_write(&t, "/proc/stat", "%s", cases[i].text);
        int fd = nrg_root_open(&t.ctx.root, "/proc/stat", O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(nrg_sim_busy_cpu_s(fd, &busy_s), cases[i].rc);
        double want_s = cases[i].ticks / (double)sysconf(_SC_CLK_TCK);
        assert_true(fabs(busy_s - want_s) < 1e-9);
        close(fd);
    }
    tree_release(&t);
}

static void driver_end_to_end(void **state)
{
    struct tree t;
    struct nrg_probe p;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/stat", "cpu 1000 0 0 0\n");
    tree_write(&t, "/m.txt",
               "domain psys\npower 1000\ndomain package-0\npower 500\nquantum 1mJ\n"
               "wrap 1kJ\nper-busy-cpu 10\nfault 0s EIO 20ms\n"
               "domain gpu-0\nkind gauge\nlag 1s\npower 300\n");
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", NULL), 0);
    assert_int_equal(p.n_found, 1);
    const struct nrg_found *found = &p.found[0];
    const struct nrg_channel *c = &found->channels[1];
    assert_string_equal(c->parent, "psys");
    assert_true(c->covers_cpu && found->channels[0].wide);
    assert_int_equal(c->wrap, 1000000);
    assert_int_equal(found->channels[2].kind, NRG_GAUGE);
    assert_int_equal(found->channels[2].lag_ns, S);
    keep_open(&keep, &t, found);
    keep_read(&keep);
    assert_int_equal(keep.rows[0].raw[0], 0);
    assert_int_equal(keep.rows[0].raw[1], NRG_MISSING);
    assert_int_equal(keep.rows[0].raw[2], 300000);
    assert_int_equal(keep.faults[0].channel, 1);
    assert_int_equal(keep.faults[0].error, -EIO);
    usleep(30000);
    tree_write(&t, "/proc/stat", "cpu 1100 0 0 0\n");
    keep_read(&keep);
    int64_t elapsed_ms = (keep.rows[1].t_ns - keep.rows[0].t_ns) / MS;
    assert_int_equal(keep.rows[1].raw[0], elapsed_ms * 1000000); /* 1 J each ms, in uJ */
    assert_true(keep.rows[1].raw[1] > elapsed_ms * 500 + 9000);  /* and 1 s of busy CPU */
    tree_write(&t, "/proc/stat", "garbage");
    keep_read(&keep);
    assert_int_equal(keep.rows[2].raw[1], NRG_MISSING);
    assert_true(keep.rows[2].raw[0] >= keep.rows[1].raw[0]);
    assert_int_equal(keep.faults[1].error, -EINVAL);
    keep_close(&keep);
    nrg_probe_release(&p);
    tree_release(&t);
}

static void follows_a_file(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } files[] = {
        {NULL, -ENOENT}, {"", -EINVAL}, {"much\n", -EINVAL}, {"nan", -EINVAL}, {"7.5\n", 0}};
    struct tree t;
    struct nrg_probe p;
    struct nrg_error err;
    static struct keep_sink keep;
    void *sensor;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/m.txt", "domain a\nper-busy-cpu 1\njoules-from used\n");
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", &err), -EINVAL);
    tree_write(&t, "/m.txt", "domain a\njoules-from ../used\n");
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", &err), -EINVAL);
    tree_write(&t, "/m.txt", "domain a\njoules-from used\nquantum 1mJ\nupdate 1us\n");
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", &err), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i].text)
            tree_write(&t, "/used", "%s", files[i].text);
        int rc = p.found[0].driver->open(&t.ctx, &p.found[0], &sensor, &err);
        assert_int_equal(rc, files[i].rc);
        if (!rc)
            p.found[0].driver->close(sensor);
    }
    keep_open(&keep, &t, &p.found[0]);
    assert_int_equal(keep_try_read(&keep), 0); /* the first value is where it begins */
    usleep(5000);
    tree_write(&t, "/used", "10.25\n");
    assert_int_equal(keep_try_read(&keep), 0);
    assert_int_equal(keep.n_rows, 2);
    int64_t used_mj = keep.rows[1].raw[0] - keep.rows[0].raw[0];
    assert_true(used_mj <= 2750 && used_mj > 2740); /* as of the last update, within 1 us */
    keep_close(&keep);
    nrg_probe_release(&p);
    tree_release(&t);
}

static void driver_refuses(void **state)
{
    struct tree t;
    struct nrg_probe p;
    struct nrg_error err;
    static struct keep_sink keep;
    void *sensor;
    (void)state;
    tree_init(&t);
    assert_int_equal(tree_probe_file(&t, &p, "simulate", NULL, &err), -EINVAL);
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/missing", &err), -ENOENT);
    tree_write(&t, "/m.txt", "domain a\npower 1\nwarp 3\n");
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", &err), -EINVAL);
    assert_int_equal(err.offset, 3);
    assert_non_null(strstr(err.what, "did you mean 'wrap'?"));
    assert_non_null(strstr(err.where, "/m.txt"));

    tree_write(&t, "/m.txt", "domain a\npower 1\n");
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", &err), 0);
    tree_write(&t, "/m.txt", "domain b\npower 1\n");
    assert_int_equal(p.found[0].driver->open(&t.ctx, &p.found[0], &sensor, &err), -ESTALE);
    nrg_probe_release(&p);

    tree_write(&t, "/m.txt", "domain a\nper-busy-cpu 1\n"); /* and there is no /proc/stat */
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", &err), 0);
    assert_int_equal(p.found[0].driver->open(&t.ctx, &p.found[0], &sensor, &err), -ENOENT);
    nrg_probe_release(&p);

    tree_write(&t, "/m.txt", "domain a\npower 1\nfault 0s gone\n");
    assert_int_equal(tree_probe_file(&t, &p, "simulate", "/m.txt", &err), 0);
    keep_open(&keep, &t, &p.found[0]);
    assert_int_equal(keep_try_read(&keep), -ENODEV);
    assert_int_equal(keep.n_rows, 0);
    keep_close(&keep);
    nrg_probe_release(&p);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latch_quantum_and_wrap), cmocka_unit_test(reading_often_changes_nothing),
        cmocka_unit_test(lag_of_a_gauge),         cmocka_unit_test(noise_statistics),
        cmocka_unit_test(seeds_matter),           cmocka_unit_test(faults_of_a_counter),
        cmocka_unit_test(faults_of_a_gauge),      cmocka_unit_test(busy_cpus),
        cmocka_unit_test(reads_proc_stat),        cmocka_unit_test(driver_end_to_end),
        cmocka_unit_test(follows_a_file),         cmocka_unit_test(driver_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
