/* rapl-powercap: which zones become which channels, and what happens when files misbehave. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <string.h>

#define P "/sys/class/powercap/"

static void add_zone(struct tree *t, const char *zone, const char *name, long long energy_uj,
                     long long range_uj)
{
    char path[200];
    snprintf(path, sizeof path, P "%s/name", zone);
    tree_write(t, path, "%s\n", name);
    snprintf(path, sizeof path, P "%s/energy_uj", zone);
    tree_write(t, path, "%lld\n", energy_uj);
    snprintf(path, sizeof path, P "%s/max_energy_range_uj", zone);
    tree_write(t, path, "%lld\n", range_uj);
}

static void two_packages_psys_and_mmio(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_zone(&t, "intel-rapl:0", "package-0", 10, 262143328850);
    add_zone(&t, "intel-rapl:0:0", "core", 11, 262143328850);
    add_zone(&t, "intel-rapl:0:1", "dram", 12, 65712999613);
    add_zone(&t, "intel-rapl:1", "package-1", 20, 262143328850);
    add_zone(&t, "intel-rapl:1:0", "dram", 22, 65712999613);
    add_zone(&t, "intel-rapl:2", "psys", 30, 262143328850);
    add_zone(&t, "intel-rapl-mmio:0", "package-0", 99, 262143328850);
    tree_write(&t, P "intel-rapl/enabled", "1\n");
    tree_probe(&t, &probe, "rapl-powercap");

    const struct nrg_found *found;
    const struct nrg_channel *c = probe_channel(&probe, "dram-1", NULL);
    assert_non_null(c);
    assert_int_equal(c->wrap, 65712999613);
    assert_string_equal(c->parent, "psys");
    c = probe_channel(&probe, "core-0", NULL);
    assert_non_null(c);
    assert_string_equal(c->parent, "package-0");
    assert_true(probe_channel(&probe, "psys", NULL)->wide);
    assert_non_null(probe_channel(&probe, "package-0", &found));
    assert_string_equal(found->sensor, "intel-rapl:0");
    struct nrg_found *mmio = probe_sensor(&probe, "rapl-powercap", "intel-rapl-mmio:0");
    assert_non_null(mmio);
    assert_false(mmio->wanted[0]); /* the package is counted once */
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void nested_tree_and_amd(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_zone(&t, "intel-rapl/intel-rapl:0", "package-0", 10, 65532610987);
    add_zone(&t, "intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", 11, 65532610987);
    tree_probe(&t, &probe, "rapl-powercap");
    assert_int_equal(probe.n_found, 1);
    assert_int_equal(probe.found[0].n_channels, 2);
    assert_string_equal(probe.found[0].channels[0].name, "package-0");
    assert_string_equal(probe.found[0].channels[0].parent, ""); /* no psys here */
    assert_string_equal(probe.found[0].channels[1].name, "core-0");
    nrg_probe_release(&probe);

    /* AMD's core zone is one core's register: it must not pass for all of them. */
    tree_write(&t, "/proc/cpuinfo", "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t: 1\n");
    tree_probe(&t, &probe, "rapl-powercap");
    assert_int_equal(probe.found[0].n_channels, 1);
    assert_null(probe_channel(&probe, "core-0", NULL));
    assert_non_null(strstr(probe_why(&probe, "core-0 (intel-rapl:0:0)")->why, "one core"));
    nrg_probe_release(&probe);

    /* A tree without /proc: whose processor this machine has says nothing of its zones. */
    t.ctx.root.live = NRG_PART_PROC;
    tree_probe(&t, &probe, "rapl-powercap");
    assert_non_null(probe_channel(&probe, "core-0", NULL));
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* Sixteen packages and more: the kernel numbers zones in hexadecimal. */
static void zones_beyond_the_tenth(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    char zone[32], name[32];
    (void)state;
    tree_init(&t);
    for (unsigned i = 0; i < 18; i++) {
        snprintf(zone, sizeof zone, "intel-rapl:%x", i);
        snprintf(name, sizeof name, "package-%u", i);
        add_zone(&t, zone, name, 10, 262143328850);
        snprintf(zone, sizeof zone, "intel-rapl:%x:0", i);
        add_zone(&t, zone, "dram", 10, 65712999613);
    }
    add_zone(&t, "intel-rapl:g", "package-99", 10, 262143328850); /* no number at all */
    tree_probe(&t, &probe, "rapl-powercap");
    assert_int_equal(probe.n_found, 18);
    for (unsigned i = 0; i < 18; i++) {
        snprintf(name, sizeof name, "package-%u", i);
        assert_non_null(probe_channel(&probe, name, NULL));
        snprintf(name, sizeof name, "dram-%u", i);
        assert_non_null(probe_channel(&probe, name, NULL));
    }
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void reads_and_faults(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    add_zone(&t, "intel-rapl:0", "package-0", 1000, 262143328850);
    add_zone(&t, "intel-rapl:0:0", "core", 500, 262143328850);
    tree_probe(&t, &probe, "rapl-powercap");
    const struct nrg_found *found = &probe.found[0];
    keep_open(&keep, &t, found);
    keep_read(&keep);
    static const char *const bad[] = {"", "garbage\n", "12 13\n", "\xff\xfe\n", "-", NULL};
    for (size_t i = 0; bad[i]; i++) {
        tree_write(&t, P "intel-rapl:0/energy_uj", "%s", bad[i]);
        keep_read(&keep);
        assert_int_equal(keep.rows[i + 1].raw[0], NRG_MISSING);
        assert_int_equal(keep.rows[i + 1].raw[1], 500);
        assert_int_equal(keep.faults[i].channel, 0);
        assert_int_equal(keep.faults[i].error, -EINVAL);
    }
    assert_int_equal(keep.rows[0].raw[0], 1000);
    assert_true(keep.rows[0].width_ns >= 0 && keep.rows[0].t_ns > 0);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void says_why_not(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_probe(&t, &probe, "rapl-powercap");
    assert_int_equal(probe.n_found, 0);
    assert_non_null(probe_why(&probe, "RAPL"));
    nrg_probe_release(&probe);

    add_zone(&t, "intel-rapl:0", "package-0", 1000, 262143328850);
    tree_write(&t, P "intel-rapl:0/energy_uj", "no number");
    tree_probe(&t, &probe, "rapl-powercap");
    assert_int_equal(probe.n_found, 0);
    assert_non_null(strstr(probe_why(&probe, "package-0")->why, "Invalid argument"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_packages_psys_and_mmio),
        cmocka_unit_test(nested_tree_and_amd),
        cmocka_unit_test(zones_beyond_the_tenth),
        cmocka_unit_test(reads_and_faults),
        cmocka_unit_test(says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
