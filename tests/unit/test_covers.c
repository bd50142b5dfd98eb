/* --covers: what the user says of a rail decides whether it is added, and whether the processors
 * are estimated; wrong rules are named. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <string.h>

#include "sensors/meter/config.h"

#define H "/sys/class/hwmon/"

static void make_tree(struct tree *t)
{
    tree_init(t);
    tree_write(t, H "hwmon0/name", "ina226\n");
    tree_write(t, H "hwmon0/power1_input", "5000000\n");
    tree_write(t, "/proc/stat",
               "cpu  100 0 100 1000 0 0 0 0 0 0\ncpu0 100 0 100 1000 0 0 0 0 0 0\n");
}

static int probe_all(struct tree *t, struct nrg_probe *probe, const char *rule,
                     const struct nrg_meter_config *config, struct nrg_error *err)
{
    const char *const rules[] = {rule, NULL};
    const struct nrg_sensor_options options = {.covers = rules, .config = config};
    int rc = nrg_probe_all(probe, &t->ctx, &options, err);
    probe->options = NULL;
    return rc;
}

static void rules_place_a_rail(void **state)
{
    static const struct {
        const char *rule;
        bool wide, covers_cpu;
    } cases[] = {{NULL, true, false},
                 {"ina226=machine", true, true},
                 {"ina226=cpu", false, true},
                 {"ina226=part", false, false},
                 {"ina226=none", true, false}};
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    make_tree(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(probe_all(&t, &probe, cases[i].rule, NULL, NULL), 0);
        const struct nrg_channel *c = probe_channel(&probe, "ina226", NULL);
        assert_non_null(c);
        assert_int_equal(c->wide, cases[i].wide);
        assert_int_equal(c->covers_cpu, cases[i].covers_cpu);
        bool estimated = probe_channel(&probe, "machine", NULL) != NULL;
        assert_int_equal(estimated, !cases[i].covers_cpu);
        nrg_probe_release(&probe);
    }
    tree_release(&t);
}

static void wrong_rules_are_named(void **state)
{
    static const char *const bad[][2] = {{"ina226", "wants RAIL="},
                                         {"=machine", "wants RAIL="},
                                         {"ina226=gpu", "not 'gpu'"},
                                         {"ina22=machine", "is called 'ina22'"},
                                         {"ina226=cpu", "package-0"}};
    struct tree t;
    struct nrg_probe probe;
    struct nrg_error err;
    (void)state;
    make_tree(&t);
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "1000\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(probe_all(&t, &probe, bad[i][0], NULL, &err), -EINVAL);
        assert_non_null(strstr(err.what, bad[i][1]));
    }
    tree_release(&t);
}

/* nrg.conf may be for another machine: a rail that is not here is listed, and the command line's
 * word goes before the file's. */
static void rules_of_the_settings_file(void **state)
{
    static const char text[] = "covers ina226 = machine\ncovers far rail = part\n";
    struct nrg_meter_config config = {0};
    struct tree t;
    struct nrg_probe probe;
    struct nrg_error err;
    (void)state;
    make_tree(&t);
    assert_int_equal(nrg_meter_config_parse(&config, "f", text, sizeof text - 1, &err), 0);
    assert_int_equal(probe_all(&t, &probe, NULL, &config, &err), 0);
    assert_true(probe_channel(&probe, "ina226", NULL)->covers_cpu);
    assert_non_null(strstr(probe_why(&probe, "far rail")->why, "f:2"));
    nrg_probe_release(&probe);
    assert_int_equal(probe_all(&t, &probe, "ina226=none", &config, &err), 0);
    assert_false(probe_channel(&probe, "ina226", NULL)->covers_cpu);
    nrg_probe_release(&probe);
    assert_int_equal(nrg_meter_config_parse(&config, "f", "covers = x\n", 11, &err), -EINVAL);
    assert_non_null(strstr(err.what, "covers RAIL"));
    nrg_meter_config_release(&config);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_place_a_rail),
        cmocka_unit_test(wrong_rules_are_named),
        cmocka_unit_test(rules_of_the_settings_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
