/*
 * NVIDIA Grace: what its ACPI meters become by their labels, what a total adds of them beside GPUs,
 * and readings: turns, the firmware's word for "no value", meters that leave.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sensors/total.h"

#define D "/sys/devices/acpi/ACPI000D:"

/* A meter as kernel 6.1 shows it: hwmonN without files, and those in the device. */
static void add_meter(struct tree *t, int n, const char *label, long long uw)
{
    char path[96], target[64];
    snprintf(path, sizeof path, D "%02d/name", n);
    tree_write(t, path, "power_meter\n");
    snprintf(path, sizeof path, D "%02d/power1_average", n);
    tree_write(t, path, "%lld\n", uw);
    snprintf(path, sizeof path, D "%02d/power1_average_interval", n);
    tree_write(t, path, "50\n");
    snprintf(path, sizeof path, D "%02d/power1_oem_info", n);
    tree_write(t, path, "%s\n", label);
    snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/uevent", n);
    tree_write(t, path, "%s", "");
    snprintf(target, sizeof target, "../../../devices/acpi/ACPI000D:%02d", n);
    snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/device", n);
    tree_link(t, target, path);
}

static void set_power(struct tree *t, int n, long long uw)
{
    char path[96];
    snprintf(path, sizeof path, D "%02d/power1_average", n);
    tree_write(t, path, "%lld\n", uw);
}

static void add_socket(struct tree *t, int first, int socket)
{
    static const struct {
        const char *word;
        long long uw;
    } meters[] = {
        {"Module", 550000000}, {"Grace", 150000000}, {"CPU", 90000000}, {"SysIO", 20000000}};
    for (int i = 0; i < 4; i++) {
        char label[40];
        snprintf(label, sizeof label, "%s Power Socket %d", meters[i].word, socket);
        add_meter(t, first + i, label, meters[i].uw);
    }
}

static double total_w(const struct nrg_probe *probe)
{
    static const double watts[] = {550, 150, 90, 20};
    static const char *const words[] = {"module", "grace", "cpu", "sysio"};
    struct nrg_total_item items[64] = {0};
    size_t n = 0;
    for (size_t f = 0; f < probe->n_found; f++)
        for (size_t c = 0; c < probe->found[f].n_channels; c++) {
            const struct nrg_channel *channel = &probe->found[f].channels[c];
            double w = 400; /* a GPU */
            for (size_t k = 0; k < 4; k++)
                if (!strncmp(channel->name, words[k], strlen(words[k])))
                    w = watts[k];
            items[n++] = (struct nrg_total_item){.channel = channel,
                                                 .driver = probe->found[f].driver->name,
                                                 .sensor = probe->found[f].sensor,
                                                 .energy_j = w};
        }
    nrg_total_choose(items, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += items[i].in_total ? items[i].energy_j : 0;
    return sum;
}

static const struct nrg_channel *check(const struct nrg_probe *probe, const char *name,
                                       const char *parent, bool wide, bool covers_cpu)
{
    const struct nrg_channel *c = probe_channel(probe, name, NULL);
    assert_non_null(c);
    assert_string_equal(c->parent, parent);
    assert_int_equal(c->wide, wide);
    assert_int_equal(c->covers_cpu, covers_cpu);
    return c;
}

static void a_module_and_what_is_in_it(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_socket(&t, 0, 0);
    tree_probe(&t, &probe, "hwmon");
    assert_int_equal(probe.n_found, 1);
    const struct nrg_channel *module = check(&probe, "module-0", "", true, true);
    assert_int_equal(module->lag_ns, 50 * NRG_NS_PER_MS);
    check(&probe, "grace-0", "module-0", false, true);
    check(&probe, "cpu-0", "grace-0", false, true);
    check(&probe, "sysio-0", "grace-0", false, false);
    assert_null(probe_channel(&probe, "machine", NULL));
    assert_true(total_w(&probe) == 150);
    /* Firmware without the socket's sum: its rails are what there is. */
    nrg_probe_release(&probe);
    tree_remove(&t, "/sys/class/hwmon/hwmon1/device");
    tree_probe(&t, &probe, "hwmon");
    check(&probe, "cpu-0", "module-0", false, true);
    assert_true(total_w(&probe) == 110);
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* The GPU is the stand-in of a graphics board, as a driver before this one would find it. */
static void beside_gpus(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    char scenario[160];
    (void)state;
    tree_init(&t);
    tree_write(&t, "/machine.txt", "domain gpu-0\n  power 0s:400\n");
    snprintf(scenario, sizeof scenario, "simulate:%s/machine.txt", t.path);
    const char *const drivers[] = {scenario, "hwmon", NULL};
    const struct nrg_sensor_options options = {.only = drivers};
    add_socket(&t, 0, 0);
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, NULL), 0);
    probe.options = NULL;
    check(&probe, "gpu-0", "module-0", false, false);
    assert_true(total_w(&probe) == 550); /* 150 and 400, and never the module's 550 besides */
    nrg_probe_release(&probe);

    add_socket(&t, 4, 1); /* two modules: whose the GPU is is not known */
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, NULL), 0);
    probe.options = NULL;
    check(&probe, "gpu-0", "", false, false);
    check(&probe, "cpu-1", "grace-1", false, true);
    assert_true(total_w(&probe) == 700);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void labels_that_are_others(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_meter(&t, 0, "Node Manager", 300000000);
    add_meter(&t, 1, "NIC Power Socket 0", 25000000);
    add_meter(&t, 2, "Grace Power Socket 99", 25000000);
    add_meter(&t, 3, "CPU Power Socket 0", 0);
    add_meter(&t, 4, "SysIO Power Socket 0", 4294967295000);
    tree_probe(&t, &probe, "hwmon");
    assert_true(probe_channel(&probe, "machine", NULL)->wide);
    check(&probe, "nic-0", "", true, false);
    assert_null(probe_channel(&probe, "grace-99", NULL));
    assert_non_null(strstr(probe_why(&probe, "CPU Power Socket 0")->why, "0 W"));
    assert_non_null(strstr(probe_why(&probe, "SysIO Power Socket 0")->why, "no value"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void readings(void **state)
{
    static struct keep_sink keep;
    struct tree t;
    struct nrg_probe probe;
    const struct nrg_found *found;
    unsigned first[4];
    (void)state;
    tree_init(&t);
    add_socket(&t, 0, 0);
    tree_probe(&t, &probe, "hwmon");
    unsigned grace = probe_channel(&probe, "grace-0", &found)->group;
    keep_open(&keep, &t, found);
    for (int k = 0; k < 4; k++) {
        size_t before = keep.n_rows;
        keep_read(&keep);
        keep_read(&keep); /* too soon: nothing */
        assert_int_equal(keep.n_rows - before, 4);
        first[k] = keep.rows[before].group;
        usleep(55000);
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(first[i], first[k]);
    set_power(&t, 1, 4294967295000);
    keep_read(&keep);
    for (size_t i = keep.n_rows - 4; i < keep.n_rows; i++)
        assert_int_equal(keep.rows[i].raw[0] == NRG_MISSING, keep.rows[i].group == grace);
    assert_int_equal(keep.n_faults, 1);
    assert_int_equal(keep.faults[0].error, -ERANGE);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_and_what_is_in_it),
        cmocka_unit_test(beside_gpus),
        cmocka_unit_test(labels_that_are_others),
        cmocka_unit_test(readings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
