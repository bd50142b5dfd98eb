/* ina3221: which files are rails, what contains what on real boards, and how lag is known. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define B "/sys/bus/i2c/drivers/ina3221/"
#define X "/sys/bus/i2c/drivers/ina3221x/"

static void set(struct tree *t, const char *dir, const char *format, unsigned n, const char *text)
{
    char path[256], file[32];
    const char *at = strstr(format, "%u");
    snprintf(file, sizeof file, "%.*s%u%s", (int)(at - format), format, n, at + 2);
    snprintf(path, sizeof path, "%s/%s", dir, file);
    tree_write(t, path, "%s\n", text);
}

/* A mainline chip with three labels (NULL: not connected). */
static void add_chip(struct tree *t, const char *dir, const char *a, const char *b, const char *c)
{
    const char *const labels[] = {a, b, c};
    char path[256];
    snprintf(path, sizeof path, "%s/name", dir);
    tree_write(t, path, "ina3221\n");
    snprintf(path, sizeof path, "%s/in7_label", dir);
    tree_write(t, path, "sum of shunt voltages\n");
    for (unsigned i = 0; i < 3; i++) {
        set(t, dir, "in%u_enable", i + 1, labels[i] ? "1" : "0");
        set(t, dir, "in%u_input", i + 4, "4000");
        if (!labels[i])
            continue;
        set(t, dir, "in%u_label", i + 1, labels[i]);
        set(t, dir, "in%u_input", i + 1, "5000");
        set(t, dir, "curr%u_input", i + 1, "1096");
        set(t, dir, "shunt%u_resistor", i + 1, "5000");
    }
}

static void orin_nano(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_chip(&t, B "1-0040/hwmon/hwmon1", "VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC");
    tree_write(&t, B "1-0040/hwmon/hwmon1/samples", "512\n");
    tree_write(&t, B "1-0040/hwmon/hwmon1/update_interval", "430\n");
    tree_link(&t, "../../bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon1", "/sys/class/hwmon/hwmon1");
    tree_probe(&t, &probe, "ina3221");
    assert_int_equal(probe.n_found, 1); /* the class shows the same chip */
    assert_int_equal(probe.found[0].n_channels, 9);
    const struct nrg_channel *c = probe_channel(&probe, "VDD_IN", NULL);
    assert_non_null(c);
    assert_int_equal(c->quantity, NRG_POWER);
    assert_int_equal(c->provenance, NRG_DERIVED);
    assert_true(c->covers_cpu && !c->wide);
    assert_string_equal(c->parent, "");
    assert_int_equal(c->update_ns, 430000000);
    assert_int_equal(c->lag_ns, 430000000);
    assert_true(fabs(c->resolution - 0.04) < 1e-9); /* 8 mA at 5 V */
    assert_string_equal(probe_channel(&probe, "VDD_SOC", NULL)->parent, "VDD_IN");
    assert_true(probe_channel(&probe, "VDD_CPU_GPU_CV", NULL)->covers_cpu);
    c = probe_channel(&probe, "VDD_SOC.current", NULL);
    assert_int_equal(c->quantity, NRG_CURRENT);
    assert_true(fabs(c->resolution - 8e-3) < 1e-12);
    assert_int_equal(probe.n_unavailable, 0);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void boards_know_their_rails(void **state)
{
    static const struct {
        const char *rail, *parent;
    } cases[] = {{"VDD_GPU_SOC", ""},
                 {"VIN_SYS_5V0", ""},
                 {"VDDQ_VDD2_1V8AO", "VIN_SYS_5V0"},
                 {"VDD_IN", ""},
                 {"VDD_SYS_CPU", "VDD_IN"},
                 {"VDD_MUX", ""},
                 {"VDD_3V3_SYS", "VDD_MUX"},
                 {"VDD_1V8_IO", "VDD_5V0_IO_SYS"},
                 {"VDD_3V3_IO_SLP", "VDD_3V3_SYS"}};
    struct tree agx, tx2;
    struct nrg_probe probes[2];
    (void)state;
    tree_init(&agx);
    add_chip(&agx, B "1-0040/hwmon/hwmon3", "VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0");
    add_chip(&agx, B "1-0041/hwmon/hwmon4", NULL, "VDDQ_VDD2_1V8AO", "NC");
    tree_probe(&agx, &probes[0], "ina3221");
    tree_init(&tx2);
    add_chip(&tx2, B "0-0041/hwmon/hwmon1", "VDD_IN", "VDD_SYS_CPU", "VDD_SYS_DDR");
    add_chip(&tx2, B "0-0042/hwmon/hwmon2", "VDD_MUX", "VDD_5V0_IO_SYS", "VDD_3V3_SYS");
    add_chip(&tx2, B "0-0043/hwmon/hwmon3", "VDD_3V3_IO_SLP", "VDD_1V8_IO", NULL);
    tree_probe(&tx2, &probes[1], "ina3221");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct nrg_channel *c = probe_channel(&probes[i >= 3], cases[i].rail, NULL);
        assert_non_null(c);
        assert_string_equal(c->parent, cases[i].parent);
        assert_false(c->wide);
    }
    assert_null(probe_channel(&probes[0], "NC", NULL));
    assert_int_equal(probes[0].found[1].n_channels, 3);
    nrg_probe_release(&probes[0]);
    nrg_probe_release(&probes[1]);
    tree_release(&agx);
    tree_release(&tx2);
}

static void unlabelled_chip_in_the_class_only(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/sys/class/hwmon/hwmon7/name", "ina3221\n");
    for (unsigned i = 1; i <= 7; i++)
        set(&t, "/sys/class/hwmon/hwmon7", "in%u_input", i, "3300");
    for (unsigned i = 1; i <= 4; i++)
        set(&t, "/sys/class/hwmon/hwmon7", "curr%u_input", i, "100");
    tree_link(&t, "../../../1-0043", "/sys/class/hwmon/hwmon7/device");
    tree_write(&t, "/sys/class/hwmon/hwmon8/name", "coretemp\n");
    tree_probe(&t, &probe, "ina3221");
    assert_int_equal(probe.n_found, 1);
    assert_int_equal(probe.found[0].n_channels, 9); /* in4..7 and curr4 are no rails */
    const struct nrg_channel *c = probe_channel(&probe, "ina3221-1-0043.3", NULL);
    assert_non_null(c);
    assert_int_equal(c->lag_ns, 0);
    assert_true(c->resolution == 0); /* no shunt is told */
    assert_true(c->wide);            /* nor what hangs on the rail */
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void jetpack_4_nano(void **state)
{
    static const char *const rails[] = {"POM_5V_IN", "POM_5V_GPU", "POM_5V_CPU"};
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    for (unsigned i = 0; i < 3; i++) {
        set(&t, X "6-0040/iio:device0", "rail_name_%u", i, rails[i]);
        set(&t, X "6-0040/iio:device0", "in_voltage%u_input", i, "5112");
        set(&t, X "6-0040/iio:device0", "in_current%u_input", i, "440");
        set(&t, X "6-0040/iio:device0", "in_power%u_input", i, "2249");
    }
    tree_link(&t, "iio:device0", X "6-0040/iio_device");
    tree_probe(&t, &probe, "ina3221");
    assert_int_equal(probe.n_found, 1);
    const struct nrg_channel *c = probe_channel(&probe, "POM_5V_CPU", NULL);
    assert_non_null(c);
    assert_string_equal(c->parent, "POM_5V_IN");
    assert_int_equal(c->provenance, NRG_MEASURED);
    assert_true(fabs(c->scale - 1e-3) < 1e-12);
    const struct nrg_found *found = &probe.found[0];
    keep_open(&keep, &t, found);
    keep_read(&keep);
    assert_int_equal(keep.n_rows, 3);
    assert_int_equal(keep.rows[2].raw[0], 2249);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static size_t count_descriptors(void)
{
    struct nrg_root live = {.fd = -1};
    struct nrg_names names;
    assert_int_equal(nrg_root_list(&live, "/proc/self/fd", &names), 0);
    size_t n = names.n;
    nrg_names_release(&names);
    return n;
}

static void reads_and_faults(void **state)
{
    static const char dir[] = B "1-0040/hwmon/hwmon1";
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    add_chip(&t, dir, "VDD_IN", "VDD_CPU_GPU_CV", "\xff\xfe rail");
    tree_probe(&t, &probe, "ina3221");
    assert_non_null(probe_channel(&probe, "?? rail", NULL));
    struct nrg_found *found = &probe.found[0];
    assert_int_equal(found->driver->flags & NRG_MAY_BLOCK, NRG_MAY_BLOCK);
    found->wanted[5] = false; /* VDD_CPU_GPU_CV.current is still read for the power */
    size_t before = count_descriptors();
    keep_open(&keep, &t, found);
    assert_int_equal(count_descriptors() - before, 6); /* two files per rail, read once each */
    set(&t, dir, "curr%u_input", 2, "-8");
    set(&t, dir, "in%u_input", 3, "");
    keep_read(&keep);
    assert_int_equal(keep.n_rows, 3);
    assert_int_equal(keep.rows[0].raw[0], 5000 * 1096);
    assert_int_equal(keep.rows[0].raw[1], 5000);
    assert_int_equal(keep.rows[0].raw[2], 1096);
    assert_int_equal(keep.rows[1].raw[0], 5000 * -8);
    assert_int_equal(keep.rows[1].raw[2], NRG_MISSING);
    assert_int_equal(keep.rows[2].raw[0], NRG_MISSING);
    assert_int_equal(keep.rows[2].raw[1], NRG_MISSING);
    assert_int_equal(keep.rows[2].raw[2], 1096);
    assert_int_equal(keep.n_faults, 2);
    assert_int_equal(keep.faults[0].channel, 6);
    set(&t, dir, "curr%u_input", 1, "x"); /* the other factor */
    keep_read(&keep);
    assert_int_equal(keep.rows[3].raw[0], NRG_MISSING);
    assert_int_equal(keep.rows[3].raw[1], 5000);
    set(&t, dir, "curr%u_input", 1, "9223372036854775807"); /* no product of that */
    keep_read(&keep);
    assert_int_equal(keep.rows[6].raw[0], NRG_MISSING);
    assert_int_equal(keep.faults[6].error, -ERANGE);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void one_bad_rail_is_named(void **state)
{
    static const char dir[] = B "1-0040/hwmon/hwmon1";
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_chip(&t, dir, "VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC");
    set(&t, dir, "curr%u_input", 2, "garbage");
    tree_probe(&t, &probe, "ina3221");
    assert_int_equal(probe.found[0].n_channels, 6);
    assert_null(probe_channel(&probe, "VDD_CPU_GPU_CV", NULL));
    assert_non_null(probe_why(&probe, "VDD_CPU_GPU_CV"));
    assert_int_equal(probe.found[0].channels[5].group, 1);
    nrg_probe_release(&probe);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orin_nano),
        cmocka_unit_test(boards_know_their_rails),
        cmocka_unit_test(unlabelled_chip_in_the_class_only),
        cmocka_unit_test(jetpack_4_nano),
        cmocka_unit_test(reads_and_faults),
        cmocka_unit_test(one_bad_rail_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
