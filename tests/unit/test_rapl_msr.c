/*
 * rapl-msr: units, domains and sums from register files. A register of N is 8 bytes at offset N,
 * so a sparse file stands in for the device. AMD's registers lie one byte apart, which a file can
 * only hold overlapping: the values there are chosen to fit.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static void set_bytes(struct tree *t, unsigned cpu, uint32_t reg, const void *bytes, size_t len)
{
    char path[256], full[400];
    snprintf(path, sizeof path, "/dev/cpu/%u/msr", cpu);
    snprintf(full, sizeof full, "%s%s", t->path, path);
    if (access(full, F_OK))
        tree_write(t, path, "%s", "");
    int fd = open(full, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, reg), len);
    close(fd);
}

static void set_register(struct tree *t, unsigned cpu, uint32_t reg, uint64_t value)
{
    set_bytes(t, cpu, reg, &value, sizeof value);
}

static void add_cpu(struct tree *t, unsigned cpu, int package, int core)
{
    char path[200];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    tree_write(t, path, "%d\n", package);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/core_id", cpu);
    tree_write(t, path, "%d\n", core);
}

static void processor(struct tree *t, const char *vendor, int family, int model)
{
    tree_write(t, "/proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\n"
               "model name\t: a processor\n",
               vendor, family, model);
}

static void skylake_server(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    processor(&t, "GenuineIntel", 6, 0x55);
    for (unsigned cpu = 0; cpu < 4; cpu++)
        add_cpu(&t, cpu, (int)cpu / 2, (int)cpu % 2);
    for (unsigned cpu = 0; cpu < 4; cpu += 2) {
        set_register(&t, cpu, 0x606, 0xa0e03);                  /* 2^-14 J */
        set_register(&t, cpu, 0x611, 0x7fffffff12345678 + cpu); /* upper half is not energy */
        set_register(&t, cpu, 0x619, 77);
    }
    tree_probe(&t, &probe, "rapl-msr");
    assert_int_equal(probe.n_found, 2);
    const struct nrg_found *found;
    const struct nrg_channel *c = probe_channel(&probe, "package-1", &found);
    assert_non_null(c);
    assert_true(fabs(c->scale - ldexp(1, -14)) < 1e-12);
    assert_int_equal(c->wrap, UINT64_C(1) << 32);
    assert_true(fabs(probe_channel(&probe, "dram-0", NULL)->scale - 15.3e-6) < 1e-12);
    assert_null(probe_channel(&probe, "core-0", NULL)); /* register stands at 0 */
    assert_null(probe_channel(&probe, "psys", NULL));

    keep_open(&keep, &t, found);
    keep_read(&keep);
    assert_int_equal(keep.rows[0].raw[0], 0x1234567a);
    assert_int_equal(keep.rows[0].raw[1], 77);
    char full[300];
    snprintf(full, sizeof full, "%s/dev/cpu/2/msr", t.path);
    assert_int_equal(truncate(full, 0x612), 0); /* the registers stop answering */
    keep_read(&keep);
    assert_int_equal(keep.rows[1].raw[0], NRG_MISSING);
    assert_int_equal(keep.faults[0].error, -EIO);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void units_by_model(void **state)
{
    static const struct {
        int model;
        const char *channel;
        double unit_j;
    } cases[] = {{0x9e, "dram-0", 1.0 / 16384},
                 {0x8f, "dram-0", 1.0 / 16384},
                 {0x8f, "psys", 1},
                 {0x9e, "psys", 1.0 / 16384},
                 {0x6a, "dram-0", 15.3e-6},
                 {0x37, "package-0", 16384e-6},
                 {0x9e, "uncore-0", 1.0 / 16384}};
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    add_cpu(&t, 0, 0, 0);
    set_register(&t, 0, 0x606, 0xa0e03);
    for (uint32_t reg = 0x611; reg <= 0x64d; reg += 4)
        set_register(&t, 0, reg, 1000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        processor(&t, "GenuineIntel", 6, cases[i].model);
        tree_probe(&t, &probe, "rapl-msr");
        const struct nrg_channel *c = probe_channel(&probe, cases[i].channel, NULL);
        assert_non_null(c);
        assert_true(fabs(c->scale / cases[i].unit_j - 1) < 1e-9);
        nrg_probe_release(&probe);
    }
    tree_release(&t);
}

/* unit | core << 8 | package << 16 as they overlap: the unit's byte 1 is the core's byte 0. */
static void set_amd(struct tree *t, unsigned cpu, uint32_t package)
{
    uint8_t bytes[10] = {0x03, 0x10};
    memcpy(bytes + 2, &package, sizeof package);
    set_bytes(t, cpu, 0xC0010299, bytes, sizeof bytes);
}

static void amd_sums_its_cores(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    processor(&t, "AuthenticAMD", 25, 1);
    for (unsigned cpu = 0; cpu < 4; cpu++) /* CPU 2 and 3 are second threads of the two cores */
        add_cpu(&t, cpu, 0, (int)cpu % 2);
    for (unsigned cpu = 0; cpu < 4; cpu++)
        set_amd(&t, cpu, 0x00000500 + cpu);
    tree_probe(&t, &probe, "rapl-msr");
    const struct nrg_channel *package = probe_channel(&probe, "package-0", NULL);
    assert_non_null(package);
    assert_true(fabs(package->scale - ldexp(1, -16)) < 1e-12);
    const struct nrg_found *found;
    const struct nrg_channel *core = probe_channel(&probe, "core-0", &found);
    assert_non_null(core);
    assert_true(found->hidden);
    assert_int_equal(core->wrap, 0);
    assert_int_equal(core->provenance, NRG_DERIVED);
    assert_string_equal(core->parent, "package-0");

    keep_open(&keep, &t, found);
    keep_read(&keep);
    assert_int_equal(keep.rows[0].raw[0], 0x00050010 + 0x00050110); /* CPU 0 and CPU 1 */
    set_amd(&t, 0, 0x00fffff0);                                     /* core register: 0xfffff010 */
    keep_read(&keep);
    set_amd(&t, 0, 0x00000001); /* wrapped to 0x110 */
    keep_read(&keep);
    assert_int_equal(keep.rows[2].raw[0] - keep.rows[1].raw[0], 0x110 + 0xff0);
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
    tree_probe(&t, &probe, "rapl-msr");
    assert_non_null(strstr(probe_why(&probe, "MSR")->why, "/proc/cpuinfo"));
    nrg_probe_release(&probe);

    tree_write(&t, "/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 62.50\nCPU part\t: 0xd42\n");
    tree_probe(&t, &probe, "rapl-msr");
    assert_non_null(strstr(probe_why(&probe, "MSR")->why, "neither"));
    nrg_probe_release(&probe);

    processor(&t, "AuthenticAMD", 21, 2);
    tree_probe(&t, &probe, "rapl-msr");
    assert_non_null(strstr(probe_why(&probe, "MSR")->why, "family 23"));
    nrg_probe_release(&probe);

    processor(&t, "GenuineIntel", 6, 85);
    tree_probe(&t, &probe, "rapl-msr");
    assert_non_null(strstr(probe_why(&probe, "MSR")->fix, "modprobe msr"));
    nrg_probe_release(&probe);

    set_register(&t, 0, 0x700, 0); /* a virtual machine: every register is 0, with success */
    tree_probe(&t, &probe, "rapl-msr");
    assert_int_equal(probe.n_found, 0);
    assert_non_null(strstr(probe_why(&probe, "MSR")->why, "virtual machine"));
    nrg_probe_release(&probe);

    set_register(&t, 0, 0x606, 0xa0e03); /* units without a counter that counts */
    tree_probe(&t, &probe, "rapl-msr");
    assert_int_equal(probe.n_found, 0);
    assert_non_null(strstr(probe_why(&probe, "MSR")->why, "stands at 0"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skylake_server),
        cmocka_unit_test(units_by_model),
        cmocka_unit_test(amd_sums_its_cores),
        cmocka_unit_test(says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
