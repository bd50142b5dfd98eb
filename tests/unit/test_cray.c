/*
 * cray: the files of /sys/cray/pm_counters as HPE documents them, what each becomes beside other
 * drivers, the time stamps, scans that come between two reads, and lines that are none.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sensors/cray/counter.h"

#define P "/sys/cray/pm_counters/"

static void names_of_files(void **state)
{
    static const struct {
        const char *name;
        struct nrg_cray_file file;
    } good[] = {
        {"energy", {NRG_CRAY_NODE, -1, true}},
        {"power", {NRG_CRAY_NODE, -1, false}},
        {"cpu_energy", {NRG_CRAY_CPU, -1, true}},
        {"memory_power", {NRG_CRAY_MEMORY, -1, false}},
        {"accel0_energy", {NRG_CRAY_ACCEL, 0, true}},
        {"accel3_power", {NRG_CRAY_ACCEL, 3, false}},
        {"accel_energy", {NRG_CRAY_ACCEL, -1, true}},
        {"cpu1_power", {NRG_CRAY_CPU, 1, false}},
    };
    static const char *const others[] = {
        "power_cap", "accel0_power_cap", "cpu_temp",      "cpu0_temp",
        "freshness", "generation",       "startup",       "raw_scan_hz",
        "version",   "accel99_energy",   "accelx_energy", "cpuenergy",
        ""};
    struct nrg_cray_file file;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(nrg_cray_file(good[i].name, &file));
        assert_int_equal(file.domain, good[i].file.domain);
        assert_int_equal(file.number, good[i].file.number);
        assert_int_equal(file.energy, good[i].file.energy);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(nrg_cray_file(others[i], &file));
}

static int parse(const char *text, bool energy, int64_t *value, int64_t *stamp_us)
{
    return nrg_cray_parse(text, strlen(text), energy, value, stamp_us);
}

static void lines(void **state)
{
    static const char *const odd[] = {"",          "J",           "12",
                                      "12 W 5 us", "12 J 5",      "12 J 5 ms",
                                      "12 J x us", "12 J 5 us 7", "1.5 J 5 us",
                                      "-1 J 5 us", "12 J -5 us",  "12 J 99999999999999999999 us"};
    int64_t value, stamp_us;
    (void)state;
    assert_int_equal(parse("21387942 J 1681310187425541 us\n", true, &value, &stamp_us), 0);
    assert_int_equal(value, 21387942);
    assert_int_equal(stamp_us, 1681310187425541);
    assert_int_equal(parse("462 W 1681310187425541 us\n", false, &value, &stamp_us), 0);
    assert_int_equal(value, 462);
    assert_int_equal(parse("462 W\n", false, &value, &stamp_us), 0);
    assert_true(stamp_us == NRG_MISSING);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_true(parse(odd[i], true, &value, &stamp_us) < 0);
    assert_int_equal(parse("2000000 W 5 us", false, &value, &stamp_us), -ERANGE);
    assert_int_equal(nrg_cray_count("4711 1681310187425541 us\n", 25), 4711);
    assert_true(nrg_cray_count("\n", 1) == NRG_MISSING);
}

/* All counters of a node with two accelerators at a moment: power p, energy since 0. */
static void write_scan(struct tree *t, int scan, int64_t stamp_us)
{
    static const struct {
        const char *name;
        int w;
    } parts[] = {{"", 500}, {"cpu_", 120}, {"memory_", 40}, {"accel0_", 100}, {"accel1_", 200}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char path[80];
        snprintf(path, sizeof path, P "%senergy", parts[i].name);
        tree_write(t, path, "%d J %lld us\n", 1000 + parts[i].w * scan / 10, (long long)stamp_us);
        snprintf(path, sizeof path, P "%spower", parts[i].name);
        tree_write(t, path, "%d W %lld us\n", parts[i].w, (long long)stamp_us);
    }
    tree_write(t, P "freshness", "%d\n", scan);
}

static void write_node(struct tree *t)
{
    tree_init(t);
    write_scan(t, 1, 1681310187400000);
    tree_write(t, P "accel2_energy", "0 J 1681310187400000 us\n"); /* no third one */
    tree_write(t, P "accel2_power", "0 W 1681310187400000 us\n");
    tree_write(t, P "power_cap", "0 W 1681310187400000 us\n");
    tree_write(t, P "generation", "17\n");
    tree_write(t, P "raw_scan_hz", "10\n");
    tree_write(t, P "version", "2\n");
}

static void what_contains_what(void **state)
{
    static const char *const parts[] = {"cpu", "memory", "accel-0", "accel-1"};
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    write_node(&t);
    tree_probe(&t, &probe, "cray");
    assert_int_equal(probe.n_found, 1);
    assert_int_equal(probe.found[0].n_channels, 10);
    const struct nrg_channel *machine = probe_channel(&probe, "machine", NULL);
    assert_true(machine->wide && machine->covers_cpu && !machine->parent[0]);
    assert_int_equal(machine->update_ns, 100 * NRG_NS_PER_MS);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct nrg_channel *c = probe_channel(&probe, parts[i], NULL);
        assert_non_null(c);
        assert_false(c->wide);
        assert_int_equal(c->covers_cpu, i == 0);
        assert_string_equal(c->parent, "machine");
    }
    assert_null(probe_channel(&probe, "accel-2", NULL));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void probe_after(struct tree *t, struct nrg_probe *probe, const char *const *drivers)
{
    const struct nrg_sensor_options options = {.only = drivers};
    assert_int_equal(nrg_probe_all(probe, &t->ctx, &options, NULL), 0);
    probe->options = NULL;
}

/* RAPL sees the processors and the memory, hwmon the GPUs and the machine: nothing twice. */
static void beside_other_drivers(void **state)
{
    static const char *const all[] = {"rapl-powercap", "hwmon", "cray", NULL};
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    write_node(&t);
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "1000\n");
    tree_write(&t, "/sys/class/powercap/intel-rapl:0:0/name", "dram\n");
    tree_write(&t, "/sys/class/powercap/intel-rapl:0:0/energy_uj", "1000\n");
    tree_write(&t, "/sys/class/hwmon/hwmon0/name", "amdgpu\n");
    tree_write(&t, "/sys/class/hwmon/hwmon0/power1_average", "35000000\n");
    tree_write(&t, "/sys/class/hwmon/hwmon1/name", "power_meter\n");
    tree_write(&t, "/sys/class/hwmon/hwmon1/power1_average", "512000000\n");
    probe_after(&t, &probe, all);
    assert_non_null(probe_channel(&probe, "gpu-0", NULL));
    static const char *const beside[] = {"machine-2", "cpu", "memory", "accel-0", "accel-1"};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        assert_non_null(probe_channel(&probe, beside[i], NULL));
        assert_true(probe_channel(&probe, beside[i], NULL)->wide);
    }
    assert_string_equal(probe_channel(&probe, "cpu", NULL)->parent, "machine-2");
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* The times between rows are the controller's, whatever its clock says and when we looked. */
static void readings_and_their_times(void **state)
{
    static struct keep_sink keep;
    struct tree t;
    struct nrg_probe probe;
    const struct nrg_found *found;
    (void)state;
    write_node(&t);
    tree_probe(&t, &probe, "cray");
    const struct nrg_channel *machine = probe_channel(&probe, "machine", &found);
    unsigned group = machine->group;
    keep_open(&keep, &t, found);
    for (int scan = 1; scan <= 5; scan++) {
        write_scan(&t, scan, 1681310187400000 + scan * 2000);
        usleep(2000);
        keep_read(&keep);
        keep_read(&keep); /* the same scan: no second row */
    }
    assert_int_equal(keep.n_rows, 50);
    int64_t last = 0;
    for (size_t i = 0, n = 0; i < keep.n_rows; i++) {
        if (keep.rows[i].group != group)
            continue;
        n++;
        assert_int_equal(keep.rows[i].raw[0],
                         machine->quantity == NRG_ENERGY ? 1000 + 50 * (int64_t)n : 500);
        assert_true(keep.rows[i].t_ns > last && keep.rows[i].t_ns <= nrg_now_ns());
        last = keep.rows[i].t_ns;
    }
    assert_int_equal(keep.n_faults, 0);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void what_is_no_reading_is_missing(void **state)
{
    static struct keep_sink keep;
    struct tree t;
    struct nrg_probe probe;
    const struct nrg_found *found;
    (void)state;
    write_node(&t);
    tree_write(&t, P "cpu_energy", "not now\n");
    tree_probe(&t, &probe, "cray");
    assert_non_null(strstr(probe_why(&probe, "cpu_energy")->why, "no reading"));
    assert_int_equal(probe_channel(&probe, "cpu", &found)->quantity, NRG_POWER);
    unsigned group = probe_channel(&probe, "cpu", NULL)->group;
    keep_open(&keep, &t, found);
    write_scan(&t, 2, 1681310187500000);
    tree_write(&t, P "cpu_power", "%s", "120 W 168131");
    keep_read(&keep);
    bool seen = false;
    for (size_t i = 0; i < keep.n_rows; i++)
        if (keep.rows[i].group == group) {
            seen = true;
            assert_true(keep.rows[i].raw[0] == NRG_MISSING);
        }
    assert_true(seen);
    assert_int_equal(keep.n_faults, 1);
    assert_int_equal(keep.faults[0].error, -EPROTO);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void no_cray(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/sys/class/x", "%s", "");
    tree_probe(&t, &probe, "cray");
    assert_int_equal(probe.n_found, 0);
    assert_int_equal(probe.n_unavailable, 0);
    nrg_probe_release(&probe);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_files),
        cmocka_unit_test(lines),
        cmocka_unit_test(what_contains_what),
        cmocka_unit_test(beside_other_drivers),
        cmocka_unit_test(readings_and_their_times),
        cmocka_unit_test(what_is_no_reading_is_missing),
        cmocka_unit_test(no_cray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
