/* The emulator's tree against the driver that will read it: layout, values, faults. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <string.h>

#include "emulator/emulator_tree.h"

static void make(struct tree *t, struct emulator_tree *tree, struct nrg_scenario *scenario,
                 const char *text)
{
    struct nrg_error err = {0};
    tree_init(t);
    *tree = (struct emulator_tree){0};
    assert_int_equal(nrg_scenario_parse(scenario, "test", text, strlen(text), &err), 0);
    if (emulator_tree_make(tree, scenario, t->path, &err))
        fail_msg("%s: %s", err.where, err.what);
}

static void powercap_reads_it(void **state)
{
    static struct keep_sink keep;
    struct tree t;
    struct emulator_tree tree;
    struct nrg_scenario scenario;
    struct nrg_probe probe;
    (void)state;
    make(&t, &tree, &scenario,
         "domain psys\npower 9\ndomain package-0\npower 5\nwrap 100J\nquantum 1mJ\n"
         "domain dram-1\npower 1\ndomain package-1\npower 1\ndomain core-0\npower 1\n");
    for (size_t i = 0; i < scenario.n_domains; i++)
        emulator_tree_show(&tree, i, 0, 1234 + (int64_t)i);
    tree_probe(&t, &probe, "rapl-powercap");
    static const struct {
        const char *name, *parent, *sensor;
    } want[] = {{"psys", "", "intel-rapl:2"},
                {"package-0", "psys", "intel-rapl:0"},
                {"core-0", "package-0", "intel-rapl:0"},
                {"package-1", "psys", "intel-rapl:1"},
                {"dram-1", "psys", "intel-rapl:1"}};
    for (size_t i = 0; i < 5; i++) {
        const struct nrg_found *found = NULL;
        const struct nrg_channel *c = probe_channel(&probe, want[i].name, &found);
        assert_non_null(c);
        assert_string_equal(c->parent, want[i].parent);
        assert_string_equal(found->sensor, want[i].sensor);
    }
    assert_int_equal(probe_channel(&probe, "package-0", NULL)->wrap, 100000000);

    struct nrg_found *found = probe_sensor(&probe, "rapl-powercap", "intel-rapl:0");
    keep_open(&keep, &t, found);
    keep_read(&keep);
    assert_int_equal(keep.rows[0].raw[0], 1235000); /* raw is mJ there, shown in uJ */
    assert_int_equal(keep.rows[0].raw[1], 1238);
    emulator_tree_show(&tree, 1, 0, 99999);
    emulator_tree_show(&tree, 4, -EIO, 0);
    keep_read(&keep);
    assert_int_equal(keep.rows[1].raw[0], 99999000);
    assert_int_equal(keep.rows[1].raw[1], NRG_MISSING);
    assert_int_equal(keep.faults[0].channel, 1);
    emulator_tree_show(&tree, 4, 0, 7);
    keep_read(&keep);
    assert_int_equal(keep.rows[2].raw[1], 7);
    assert_true(nrg_root_exists(&t.ctx.root, "/sys/class/powercap/intel-rapl:0:0/energy_uj"));
    assert_true(
        nrg_root_exists(&t.ctx.root, "/sys/class/powercap/intel-rapl/subsystem/intel-rapl:0/name"));
    emulator_tree_show(&tree, 4, -ENODEV, 0);
    assert_false(nrg_root_exists(&t.ctx.root, "/sys/class/powercap/intel-rapl:0:0/energy_uj"));
    keep_close(&keep);
    nrg_probe_release(&probe);
    emulator_tree_release(&tree);
    nrg_scenario_release(&scenario);
    tree_release(&t);
}

static void refuses_what_rapl_has_not(void **state)
{
    static const char *const bad[] = {"domain gpu-0\npower 1\n",
                                      "domain package-0\npower 1\nkind gauge\n",
                                      "domain core-0\npower 1\n", "domain wall\npower 1\n",
                                      "domain package-0\npower 1\nwrap 1e12J\n"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tree t;
        struct emulator_tree tree = {0};
        struct nrg_scenario scenario;
        tree_init(&t);
        assert_int_equal(nrg_scenario_parse(&scenario, "", bad[i], strlen(bad[i]), NULL), 0);
        assert_true(emulator_tree_make(&tree, &scenario, t.path, NULL) < 0);
        emulator_tree_release(&tree);
        nrg_scenario_release(&scenario);
        tree_release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powercap_reads_it),
        cmocka_unit_test(refuses_what_rapl_has_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
