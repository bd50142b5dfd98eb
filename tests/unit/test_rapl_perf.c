/* rapl-perf: the PMU's description on a fake tree, and reading through a PMU that always exists. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/rapl/perf.h"

#define P     "/sys/bus/event_source/devices/power/"
#define SCALE "2.3283064365386962890625e-10"

static void add_event(struct tree *t, const char *name, unsigned config)
{
    char path[200];
    snprintf(path, sizeof path, P "events/%s", name);
    tree_write(t, path, "event=0x%02x\n", config);
    snprintf(path, sizeof path, P "events/%s.scale", name);
    tree_write(t, path, SCALE "\n");
    snprintf(path, sizeof path, P "events/%s.unit", name);
    tree_write(t, path, "Joules\n");
}

static void add_cpu(struct tree *t, unsigned cpu, int package, int die)
{
    char path[200];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    tree_write(t, path, "%d\n", package);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/die_id", cpu);
    tree_write(t, path, "%d\n", die);
}

static void add_pmu(struct tree *t, const char *cpumask)
{
    tree_write(t, P "type", "9\n");
    tree_write(t, P "cpumask", "%s\n", cpumask);
    add_event(t, "energy-pkg", 2);
    add_event(t, "energy-ram", 3);
}

static void describes_two_packages(void **state)
{
    struct tree t;
    struct nrg_perf_pmu pmu;
    char suffix[32];
    (void)state;
    tree_init(&t);
    add_pmu(&t, "0,2");
    add_event(&t, "energy-psys", 5);
    add_cpu(&t, 0, 0, 0);
    add_cpu(&t, 1, 0, 0);
    add_cpu(&t, 2, 1, 0);
    add_cpu(&t, 10, 1, 0);
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), 0);
    assert_int_equal(pmu.type, 9);
    assert_int_equal(pmu.n_events, 3);
    assert_string_equal(pmu.events[0].domain, "package");
    assert_int_equal(pmu.events[0].config, 2);
    assert_true(fabs(pmu.events[0].scale_j - ldexp(1, -32)) < 1e-20);
    assert_string_equal(pmu.events[1].domain, "dram");
    assert_string_equal(pmu.events[2].domain, "psys");
    assert_int_equal(pmu.cpus.n, 2);
    nrg_cpu_suffix(&pmu.cpus, &pmu.cpus.items[1], suffix, sizeof suffix);
    assert_string_equal(suffix, "1");
    assert_int_equal(pmu.cpus.items[1].cpu, 2);
    nrg_perf_pmu_release(&pmu);
    tree_release(&t);
}

/* As in a virtual machine on Sapphire Rapids, whose kernel lists psys without reading it. */
static void psys_alone_is_told_apart(void **state)
{
    struct tree t;
    struct nrg_perf_pmu pmu;
    (void)state;
    tree_init(&t);
    tree_write(&t, P "type", "9\n");
    tree_write(&t, P "cpumask", "0\n");
    add_event(&t, "energy-psys", 5);
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), 0);
    assert_true(nrg_perf_psys_is_alone(&pmu));
    nrg_perf_pmu_release(&pmu);
    add_event(&t, "energy-pkg", 2);
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), 0);
    assert_false(nrg_perf_psys_is_alone(&pmu));
    nrg_perf_pmu_release(&pmu);
    tree_release(&t);
}

static void dies_count_on_intel_only(void **state)
{
    struct tree t;
    struct nrg_perf_pmu pmu;
    char suffix[32];
    (void)state;
    tree_init(&t);
    add_pmu(&t, "0-1\n");
    add_cpu(&t, 0, 0, 0);
    add_cpu(&t, 1, 0, 1);
    tree_write(&t, "/proc/cpuinfo", "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n");
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), 0);
    assert_int_equal(pmu.cpus.n, 2);
    nrg_cpu_suffix(&pmu.cpus, &pmu.cpus.items[1], suffix, sizeof suffix);
    assert_string_equal(suffix, "0-die-1");
    nrg_perf_pmu_release(&pmu);
    tree_write(&t, "/proc/cpuinfo", "vendor_id\t: AuthenticAMD\ncpu family\t: 25\n");
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), 0);
    assert_int_equal(pmu.cpus.n, 1); /* both would read the package's one counter */
    nrg_perf_pmu_release(&pmu);
    tree_release(&t);
}

static void refuses_what_it_does_not_know(void **state)
{
    struct tree t;
    struct nrg_perf_pmu pmu;
    uint64_t config;
    (void)state;
    tree_init(&t);
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), -ENOENT);
    tree_write(&t, P "type", "9\n");
    tree_write(&t, P "cpumask", "0\n");
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), -ENODATA);
    add_event(&t, "energy-pkg", 2);
    add_event(&t, "energy-ram", 3);
    tree_write(&t, P "events/energy-ram.unit", "Watts\n");
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), 0);
    assert_int_equal(pmu.n_events, 1);
    assert_non_null(strstr(pmu.refused, "energy-ram"));
    nrg_perf_pmu_release(&pmu);
    tree_write(&t, P "cpumask", "\xff\n");
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), -EINVAL);
    tree_write(&t, P "type", "-1\n");
    assert_int_equal(nrg_perf_pmu_read(&t.ctx.root, &pmu, NULL), -EINVAL);
    static const char *const bad[] = {"", "event=", "event=0x02,umask=1", "0x02", "event=-1", NULL};
    for (size_t i = 0; bad[i]; i++)
        assert_int_equal(nrg_perf_config_parse(bad[i], &config), -EINVAL);
    assert_int_equal(nrg_perf_config_parse("config=5", &config), 0);
    assert_int_equal(config, 5);
    tree_release(&t);
}

static void another_machine_is_not_opened(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_pmu(&t, "0");
    tree_probe(&t, &probe, "rapl-perf");
    assert_int_equal(probe.n_found, 0);
    assert_non_null(strstr(probe_why(&probe, "perf")->why, "another machine"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* The software clock of CPU 0 stands in for the power PMU: "TYPE CPU CONFIG CONFIG". */
static void opens_and_reads_real_counters(void **state)
{
    static struct keep_sink keep;
    struct nrg_channel channels[2] = {{.name = "package-0"}, {.name = "dram-0"}};
    bool wanted[2] = {true, false};
    struct nrg_found found = {.driver = &nrg_driver_rapl_perf,
                              .locator = "1 0 0 0x2",
                              .channels = channels,
                              .n_channels = 2,
                              .wanted = wanted};
    struct nrg_context ctx = {.root = {.fd = -1}};
    void *sensor;
    (void)state;
    int rc = found.driver->open(&ctx, &found, &sensor, NULL);
    if (rc == -EACCES || rc == -EPERM || rc == -ENOSYS)
        skip(); /* this machine does not let us */
    assert_int_equal(rc, 0);
    keep_sink_init(&keep, &found);
    assert_int_equal(found.driver->read(sensor, &keep.sink), 0);
    usleep(2000);
    assert_int_equal(found.driver->read(sensor, &keep.sink), 0);
    int64_t passed_ns = keep.rows[1].raw[0] - keep.rows[0].raw[0];
    assert_true(passed_ns > 1000000 && passed_ns < 5000000000);
    assert_int_equal(keep.rows[1].raw[1], NRG_MISSING);
    assert_int_equal(keep.n_faults, 0);
    found.driver->close(sensor);

    nrg_copy(found.locator, sizeof found.locator, "4000000000 0 0x2 0x2");
    assert_true(found.driver->open(&ctx, &found, &sensor, NULL) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_two_packages),
        cmocka_unit_test(psys_alone_is_told_apart),
        cmocka_unit_test(dies_count_on_intel_only),
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(another_machine_is_not_opened),
        cmocka_unit_test(opens_and_reads_real_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
