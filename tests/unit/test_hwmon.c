/* hwmon and battery: what becomes a channel, under which name, and what is not counted twice. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sensors/drivers.h"

#define H "/sys/class/hwmon/"
#define S "/sys/class/power_supply/"

static void probe_with(struct tree *t, struct nrg_probe *probe, const char *before)
{
    const char *const both[] = {before ? before : "hwmon", before ? "hwmon" : NULL, NULL};
    const struct nrg_sensor_options options = {.only = both};
    assert_int_equal(nrg_probe_all(probe, &t->ctx, &options, NULL), 0);
    probe->options = NULL;
}

static void add_rapl(struct tree *t)
{
    tree_write(t, "/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    tree_write(t, "/sys/class/powercap/intel-rapl:0/energy_uj", "1000\n");
}

static void several_chips_of_a_name(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, H "hwmon2/name", "ina226\n"); /* the later device has the lower number */
    tree_write(&t, H "hwmon2/power1_input", "2000000\n");
    tree_write(&t, H "hwmon2/update_interval", "36\n");
    tree_link(&t, "../../../1-0045", H "hwmon2/device");
    tree_write(&t, H "hwmon10/name", "ina226\n");
    tree_write(&t, H "hwmon10/power1_input", "1000000\n");
    tree_link(&t, "../../../1-0040", H "hwmon10/device");
    tree_write(&t, H "hwmon3/name", "coretemp\n");
    tree_write(&t, H "hwmon3/temp1_input", "40000\n");
    tree_write(&t, H "hwmon4/name", "ina3221\n");
    tree_write(&t, H "hwmon4/power1_input", "1\n");
    tree_write(&t, H "hwmon5/name", "ina238\n");
    tree_write(&t, H "hwmon5/label", "VDD_CORE\n");
    tree_write(&t, H "hwmon5/power1_input", "5\n");
    probe_with(&t, &probe, NULL);
    assert_int_equal(probe.n_found, 3);
    const struct nrg_found *found;
    const struct nrg_channel *c = probe_channel(&probe, "ina226-1", &found);
    assert_non_null(c);
    assert_string_equal(c->source, H "hwmon2/power1_input");
    assert_string_equal(found->sensor, "ina226 1-0045");
    assert_int_equal(c->update_ns, 36000000);
    assert_int_equal(c->quantity, NRG_POWER);
    assert_int_equal(c->kind, NRG_GAUGE);
    assert_true(fabs(c->scale - 1e-6) < 1e-15);
    assert_true(c->wide && !c->covers_cpu); /* whose watts these are is not known */
    assert_non_null(probe_channel(&probe, "ina226-0", NULL));
    assert_non_null(probe_channel(&probe, "VDD_CORE", NULL));
    nrg_probe_release(&probe);

    add_rapl(&t);
    probe_with(&t, &probe, "rapl-powercap");
    assert_true(probe_channel(&probe, "ina226-0", NULL)->wide);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void pmbus_input_or_output(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, H "hwmon0/name", "pmbus\n");
    tree_write(&t, H "hwmon0/power1_input", "230000000\n");
    tree_write(&t, H "hwmon0/power1_label", "pin\n");
    tree_write(&t, H "hwmon0/power2_input", "210000000\n");
    tree_write(&t, H "hwmon0/power2_label", "pout1\n");
    tree_write(&t, H "hwmon1/name", "tps53679\n");
    tree_write(&t, H "hwmon1/power1_input", "10\n");
    tree_write(&t, H "hwmon1/power1_label", "pout1\n");
    tree_write(&t, H "hwmon1/power2_input", "20\n");
    tree_write(&t, H "hwmon1/power2_label", "pout2\n");
    probe_with(&t, &probe, NULL);
    assert_non_null(probe_channel(&probe, "pmbus.pin", NULL));
    assert_null(probe_channel(&probe, "pmbus.pout1", NULL));
    assert_non_null(probe_channel(&probe, "tps53679.pout1", NULL));
    assert_non_null(probe_channel(&probe, "tps53679.pout2", NULL));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void the_machine_from_acpi(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/sys/devices/acpi/ACPI000D:00/name", "power_meter\n");
    tree_write(&t, "/sys/devices/acpi/ACPI000D:00/power1_average", "312000000\n");
    tree_write(&t, "/sys/devices/acpi/ACPI000D:00/power1_average_min", "unknown\n");
    tree_write(&t, "/sys/devices/acpi/ACPI000D:00/power1_average_interval", "1000\n");
    tree_write(&t, H "hwmon0/uevent", "%s", "");
    tree_link(&t, "../../../devices/acpi/ACPI000D:00", H "hwmon0/device");
    add_rapl(&t);
    probe_with(&t, &probe, "rapl-powercap");
    const struct nrg_channel *c = probe_channel(&probe, "machine", NULL);
    assert_non_null(c);
    assert_true(c->wide && c->covers_cpu);
    assert_int_equal(c->lag_ns, 1000000000);
    assert_string_equal(c->source, H "hwmon0/device/power1_average");
    nrg_probe_release(&probe);
    tree_write(&t, "/sys/devices/acpi/ACPI000D:00/power1_average", "0\n");
    probe_with(&t, &probe, NULL);
    assert_int_equal(probe.n_found, 0);
    assert_non_null(strstr(probe_why(&probe, "power_meter")->why, "0 W"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void graphics_boards(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, H "hwmon0/name", "amdgpu\n");
    tree_write(&t, H "hwmon0/power1_average", "35000000\n");
    tree_write(&t, H "hwmon0/power1_input", "36000000\n");
    tree_write(&t, H "hwmon0/power1_label", "PPT\n");
    tree_link(&t, "../../../0000:03:00.0", H "hwmon0/device");
    tree_write(&t, H "hwmon1/name", "amdgpu\n"); /* an APU */
    tree_write(&t, H "hwmon1/power1_input", "15000000\n");
    tree_write(&t, H "hwmon1/in1_label", "vddnb\n");
    tree_link(&t, "../../../0000:c4:00.0", H "hwmon1/device");
    tree_write(&t, H "hwmon2/name", "xe\n");
    tree_write(&t, H "hwmon2/energy1_input", "9\n");
    tree_write(&t, H "hwmon2/energy1_label", "card\n");
    tree_write(&t, H "hwmon2/energy2_input", "8\n");
    tree_write(&t, H "hwmon2/energy2_label", "pkg\n");
    tree_write(&t, H "hwmon3/name", "i915_gt0\n");
    tree_write(&t, H "hwmon3/energy1_input", "7\n");
    tree_link(&t, "../../../0000:4d:00.0", H "hwmon3/device");
    tree_write(&t, H "hwmon4/name", "i915\n");
    tree_write(&t, H "hwmon4/energy1_input", "9\n");
    tree_link(&t, "../../../0000:4d:00.0", H "hwmon4/device");
    add_rapl(&t);
    probe_with(&t, &probe, "rapl-powercap");
    const struct nrg_channel *c = probe_channel(&probe, "gpu-0", NULL);
    assert_non_null(c);
    assert_string_equal(c->source, H "hwmon0/power1_average");
    assert_false(c->wide || c->covers_cpu);
    c = probe_channel(&probe, "apu-0", NULL);
    assert_non_null(c);
    assert_true(c->covers_cpu);
    assert_string_equal(c->parent, "package-0");
    c = probe_channel(&probe, "gpu-1", NULL); /* i915 */
    assert_int_equal(c->kind, NRG_COUNTER);
    assert_string_equal(probe_channel(&probe, "gpu-1.gt0", NULL)->parent, "gpu-1");
    assert_string_equal(probe_channel(&probe, "gpu-2.pkg", NULL)->parent, "gpu-2");
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* gpu-0 may be NVML's. */
static void gpus_go_on_counting(void **state)
{
    struct tree t;
    struct nrg_probe probe = {0};
    (void)state;
    tree_init(&t);
    tree_write(&t, H "hwmon0/name", "amdgpu\n");
    tree_write(&t, H "hwmon0/power1_average", "35000000\n");
    probe.ctx = &t.ctx;
    probe.driver = &nrg_driver_rapl_perf;
    struct nrg_found *nvml = nrg_probe_found(&probe, "GPU 0");
    assert_non_null(nrg_found_channel(nvml, "gpu-0", NRG_ENERGY, NRG_COUNTER));
    assert_non_null(nrg_found_channel(nvml, "gpu-3.memory", NRG_BYTES, NRG_GAUGE));
    probe.driver = &nrg_driver_hwmon;
    assert_int_equal(nrg_driver_hwmon.probe(&probe, NULL), 0);
    assert_non_null(probe_channel(&probe, "gpu-4", NULL));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void sockets_and_totals(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, H "hwmon0/name", "amd_energy\n");
    tree_write(&t, H "hwmon0/energy1_input", "5\n");
    tree_write(&t, H "hwmon0/energy1_label", "Ecore000\n");
    tree_write(&t, H "hwmon0/energy33_input", "500\n");
    tree_write(&t, H "hwmon0/energy33_label", "Esocket1\n");
    tree_write(&t, H "hwmon1/name", "ibmpowernv\n");
    tree_write(&t, H "hwmon1/power1_input", "5\n");
    tree_write(&t, H "hwmon1/power1_label", "System\n");
    tree_write(&t, H "hwmon1/energy1_input", "5\n");
    tree_write(&t, H "hwmon1/energy1_label", "System\n");
    tree_write(&t, H "hwmon1/power2_input", "5\n");
    tree_write(&t, H "hwmon1/power2_label", "Chip 0 CPU\n");
    probe_with(&t, &probe, NULL);
    const struct nrg_channel *c = probe_channel(&probe, "package-1", NULL);
    assert_non_null(c);
    assert_true(c->covers_cpu);
    assert_int_equal(c->wrap, 0);
    assert_int_equal(probe.found[0].n_channels, 1); /* cores are parts of it */
    c = probe_channel(&probe, "ibmpowernv.System", NULL);
    assert_int_equal(c->quantity, NRG_ENERGY); /* the counter, and not the gauge beside it */
    assert_true(c->wide && c->covers_cpu);
    assert_int_equal(probe.found[1].n_channels, 2);
    assert_string_equal(probe_channel(&probe, "ibmpowernv.Chip 0 CPU", NULL)->parent,
                        "ibmpowernv.System");
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void unreadable_files_are_named(void **state)
{
    static const char *const bad[] = {
        "", "N/A\n", "\xff\xfe\n", "1 2\n", "99999999999999999999999\n", NULL};
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    tree_write(&t, H "hwmon0/name", "ina219\n");
    for (size_t i = 0; bad[i]; i++) {
        tree_write(&t, H "hwmon0/power1_input", "%s", bad[i]);
        probe_with(&t, &probe, NULL);
        assert_int_equal(probe.n_found, 0);
        assert_non_null(strstr(probe_why(&probe, "ina219")->why, "power1_input"));
        nrg_probe_release(&probe);
    }
    tree_release(&t);
}

static void reads_and_faults(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    void *sensor;
    (void)state;
    tree_init(&t);
    tree_write(&t, H "hwmon0/name", "tps53679\n");
    tree_write(&t, H "hwmon0/power1_input", "10\n");
    tree_write(&t, H "hwmon0/power2_input", "20\n");
    probe_with(&t, &probe, NULL);
    const struct nrg_found *found = &probe.found[0];
    keep_open(&keep, &t, found);
    keep_read(&keep);
    tree_write(&t, H "hwmon0/power1_input", "gone\n");
    keep_read(&keep);
    assert_int_equal(keep.rows[0].raw[0], 10);
    assert_int_equal(keep.rows[1].raw[0], NRG_MISSING);
    assert_int_equal(keep.rows[1].raw[1], 20);
    assert_int_equal(keep.n_faults, 1);
    assert_int_equal(keep.faults[0].channel, 0);
    keep_close(&keep);
    tree_remove(&t, H "hwmon0/power2_input");
    assert_int_equal(found->driver->open(&t.ctx, found, &sensor, NULL), -ENOENT);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void battery(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    tree_write(&t, S "AC/type", "Mains\n");
    tree_write(&t, S "BAT0/type", "Battery\n");
    tree_write(&t, S "BAT0/status", "Discharging\n");
    tree_write(&t, S "BAT0/power_now", "8500000\n");
    tree_write(&t, S "BAT1/type", "Battery\n");
    tree_write(&t, S "BAT1/status", "Not charging\n");
    tree_write(&t, S "BAT1/voltage_now", "12000000\n");
    tree_write(&t, S "BAT1/current_now", "-500000\n");
    tree_write(&t, S "hidpp_battery_0/type", "Battery\n");
    tree_write(&t, S "hidpp_battery_0/scope", "Device\n");
    tree_write(&t, S "hidpp_battery_0/status", "Discharging\n");
    tree_write(&t, S "hidpp_battery_0/power_now", "1\n");
    tree_write(&t, H "hwmon0/name", "BAT0\n"); /* the kernel's mirror of it */
    tree_write(&t, H "hwmon0/power1_input", "8500000\n");
    probe_with(&t, &probe, NULL);
    assert_int_equal(probe.n_found, 1);
    const struct nrg_found *found = &probe.found[0];
    assert_string_equal(found->sensor, "battery BAT0+BAT1");
    assert_string_equal(found->channels[0].name, "battery");
    assert_true(found->channels[0].wide && found->channels[0].covers_cpu);
    keep_open(&keep, &t, found);

    static const struct {
        const char *status0, *power0, *status1;
        int64_t expect_uw;
        size_t faults;
    } steps[] = {{"Discharging", "8500000", "Not charging", 8500000, 0},
                 {"Discharging", "-8500000", "Discharging", 14500000, 0},
                 {"Charging", "30000000", "Discharging", NRG_MISSING, 0},
                 {"Full", "0", "Unknown", NRG_MISSING, 0},
                 {"Discharging", "0", "Full", NRG_MISSING, 0},
                 {"Discharging", "x", "Full", NRG_MISSING, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        tree_write(&t, S "BAT0/status", "%s\n", steps[i].status0);
        tree_write(&t, S "BAT0/power_now", "%s\n", steps[i].power0);
        tree_write(&t, S "BAT1/status", "%s\n", steps[i].status1);
        keep_read(&keep);
        assert_int_equal(keep.rows[i].raw[0], steps[i].expect_uw);
        assert_int_equal(keep.n_faults, steps[i].faults);
    }
    keep_close(&keep);
    nrg_probe_release(&probe);

    tree_write(&t, S "BAT0/status", "Charging\n");
    probe_with(&t, &probe, NULL);
    assert_false(probe.found[0].channels[0].covers_cpu); /* an estimate is still needed */
    assert_non_null(probe_why(&probe, "battery"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* Supplies contain what other meters measure: they are never added to those. */
static void supplies_beside_known_meters(void **state)
{
    static const char *const known[][2] = {{"power_meter", "power1_average"},
                                           {"amdgpu", "power1_average"},
                                           {"ina226", "power1_input"}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct tree t;
        struct nrg_probe probe;
        char path[64];
        tree_init(&t);
        tree_write(&t, H "hwmon0/name", "pmbus\n"); /* listed before what it contains */
        tree_write(&t, H "hwmon0/power1_label", "pin\n");
        tree_write(&t, H "hwmon0/power1_input", "160000000\n");
        snprintf(path, sizeof path, H "hwmon1/%s", known[i][1]);
        tree_write(&t, H "hwmon1/name", "%s\n", known[i][0]);
        tree_write(&t, path, "45000000\n");
        probe_with(&t, &probe, NULL);
        const struct nrg_channel *pin = probe_channel(&probe, "pmbus.pin", NULL);
        assert_non_null(pin);
        assert_true(pin->wide && !pin->covers_cpu);
        nrg_probe_release(&probe);
        tree_release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_chips_of_a_name), cmocka_unit_test(supplies_beside_known_meters),
        cmocka_unit_test(pmbus_input_or_output),   cmocka_unit_test(the_machine_from_acpi),
        cmocka_unit_test(graphics_boards),         cmocka_unit_test(gpus_go_on_counting),
        cmocka_unit_test(sockets_and_totals),      cmocka_unit_test(unreadable_files_are_named),
        cmocka_unit_test(reads_and_faults),        cmocka_unit_test(battery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
