/* machine: what /proc and /sys lines become, and what happens when they are odd or go away. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sensors/machine/files.h"
#include "sensors/machine/internal.h"

#define CPU    "/sys/devices/system/cpu/"
#define HWMON  "/sys/class/hwmon/"
#define CGROUP "/sys/fs/cgroup/"

static void probe_machine(struct tree *t, bool per_cpu, struct nrg_probe *probe)
{
    static const char *const only[] = {"machine", NULL};
    struct nrg_sensor_options options = {.only = only, .per_cpu = per_cpu};
    assert_int_equal(nrg_probe_all(probe, &t->ctx, &options, NULL), 0);
}

static void write_stat(struct tree *t)
{
    tree_write(t, "/proc/stat",
               "cpu  100 10 50 1000 40 5 6 70 30 2\n"
               "cpu0 60 5 25 500 20 2 3 35 15 1\n"
               "cpu2 40 5 25 500 20 3 3 35 15 1\n"
               "intr 12345 0 0\nctxt 99\n");
    tree_write(t, "/proc/meminfo",
               "MemTotal:       16384000 kB\nMemFree:         1000000 kB\n"
               "MemAvailable:   10000000 kB\nBuffers:           1 kB\nCached:   2 kB\n");
}

static void lines_of_proc_stat(void **state)
{
    static const struct {
        const char *text;
        int rc;
        int64_t busy, idle, steal;
    } cases[] = {
        {"cpu  1 2 3 4 5 6 7 8 9 10\n", 0, 1 + 2 + 3 + 6 + 7, 9, 8},
        {"cpu  1 2 3 4\n", 0, 6, 4, NRG_MISSING},        /* Linux 2.4 */
        {"cpu  1 2 3 4 5 6 7\n", 0, 19, 9, NRG_MISSING}, /* before 2.6.11 */
        {"cpu  1 2 3 4 5 6 7 8", 0, 19, 9, 8},           /* no newline */
        {"cpu  1 2 3\n4 5 6 7\n", -EINVAL, 0, 0, 0},     /* too few */
        {"cpu0 1 2 3 4\n", -EINVAL, 0, 0, 0},            /* no aggregate */
        {"cpu  1 x 3 4\n", -EINVAL, 0, 0, 0},
        {"cpu  1 -2 3 4\n", -EINVAL, 0, 0, 0},
        {"cpu\xff\xfe 1 2 3 4\n", -EINVAL, 0, 0, 0},
        {"cpu  18446744073709551615 2 3 4\n", -ERANGE, 0, 0, 0},
        {"cpu  99999999999999999999999 2 3 4\n", -ERANGE, 0, 0, 0},
        {"", -EINVAL, 0, 0, 0},
        {"\n", -EINVAL, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_cpu_ticks ticks = {0};
        int rc = nrg_proc_stat_total(cases[i].text, strlen(cases[i].text), &ticks);
        assert_int_equal(rc, cases[i].rc);
        if (rc)
            continue;
        assert_int_equal(ticks.busy, cases[i].busy);
        assert_int_equal(ticks.idle, cases[i].idle);
        assert_int_equal(ticks.steal, cases[i].steal);
    }
}

static void lines_of_meminfo(void **state)
{
    static const struct {
        const char *text;
        int rc;
        int64_t total, available;
    } cases[] = {
        {"MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 60 kB\nCached: 5 kB\n", 0, 100, 60},
        {"MemTotal: 100 kB\nMemFree: 10 kB\nBuffers: 5 kB\nCached: 7 kB\n", 0, 100, 22},
        {"MemTotal: 100 kB\nMemAvailable: 600 kB\n", 0, 100, 100}, /* seen with lxcfs */
        {"MemTotal: 100 kB\nMemAvail", -EINVAL, 0, 0},
        {"MemTotal:\nMemFree: 10 kB\n", -EINVAL, 0, 0},
        {"MemTotal: 0 kB\nMemFree: 0 kB\n", -EINVAL, 0, 0},
        {"MemFree: 10 kB\n", -EINVAL, 0, 0},
        {"\xff\xff\xff", -EINVAL, 0, 0},
        {"", -EINVAL, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_proc_memory memory = {0};
        int rc = nrg_proc_meminfo(cases[i].text, strlen(cases[i].text), &memory);
        assert_int_equal(rc, cases[i].rc);
        assert_int_equal(memory.total_kib, cases[i].total);
        assert_int_equal(memory.available_kib, cases[i].available);
    }
}

static void lines_of_cpu_stat(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"usage_usec 30\nuser_usec 20\nsystem_usec 10\nnice_usec 1\n", 0},
        {"system_usec 10\nuser_usec 20\nusage_usec 30", 0},
        {"usage_usec 30\nuser_usec 20\n", -EINVAL},
        {"usage_usec 30\nuser_usec\nsystem_usec 10\n", -EINVAL},
        {"usage_usec -30\nuser_usec 20\nsystem_usec 10\n", -EINVAL},
        {"usage_usec 99999999999999999999\nuser_usec 20\nsystem_usec 10\n", -ERANGE},
        {"usage_usecs 30\nuser_usec 20\nsystem_usec 10\n", -EINVAL},
        {"", -EINVAL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_cpu_stat stat = {0};
        int rc = nrg_cgroup_cpu_stat(cases[i].text, strlen(cases[i].text), &stat);
        assert_int_equal(rc, cases[i].rc);
        if (!rc)
            assert_true(stat.usage_us == 30 && stat.user_us == 20 && stat.system_us == 10);
    }
}

/* A machine that was busy for 1000 s since boot. */
static void write_busy_machine(struct tree *t)
{
    tree_init(t);
    tree_write(t, "/proc/stat", "cpu  60000 0 40000 500000 0 0 0 3000 0 0\n");
}

static void write_cpu_stat(struct tree *t, const char *group, int64_t user_us, int64_t system_us,
                           int64_t steal_us)
{
    char path[128];
    snprintf(path, sizeof path, CGROUP "%scpu.stat", group);
    tree_write(t, path, "usage_usec %" PRId64 "\nuser_usec %" PRId64 "\nsystem_usec %" PRId64 "\n",
               user_us + system_us + steal_us, user_us, system_us);
}

/* Reads cpu.busy once: the last row that the sensor emits for its group. */
static int64_t read_busy(struct keep_sink *keep)
{
    size_t first = keep->n_rows;
    keep_read(keep);
    for (size_t i = first; i < keep->n_rows; i++)
        if (keep->rows[i].group == 2)
            return keep->rows[i].raw[0];
    return NRG_MISSING;
}

static const struct nrg_channel *busy_of(struct tree *t, struct nrg_probe *probe)
{
    probe_machine(t, false, probe);
    const struct nrg_channel *c = probe_channel(probe, "cpu.busy", NULL);
    assert_non_null(c);
    assert_true(c->quantity == NRG_SECONDS && c->kind == NRG_COUNTER);
    return c;
}

static void busy_from_cpuacct(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    write_busy_machine(&t);
    tree_write(&t, CGROUP "cpuacct/cpuacct.usage", "1003000000001\n");
    const struct nrg_channel *c = busy_of(&t, &probe); /* a container's own: no file of the root */
    assert_string_equal(c->source, "/proc/stat");
    nrg_probe_release(&probe);

    tree_write(&t, CGROUP "cpuacct/release_agent", "\n");
    c = busy_of(&t, &probe);
    assert_string_equal(c->source, CGROUP "cpuacct/cpuacct.usage");
    assert_true(c->scale == 1e-9 && c->resolution == 1e-9 && c->update_ns > 0 &&
                c->update_ns <= 10000000);
    keep_open(&keep, &t, probe_sensor(&probe, "machine", "machine"));
    assert_int_equal(read_busy(&keep), 1003000000001);
    assert_int_equal(keep.rows[1].group, 0); /* idle and steal time stay what they were */
    assert_int_equal(keep.rows[1].raw[0], 500000);
    tree_write(&t, CGROUP "cpuacct/cpuacct.usage", "gone\n");
    assert_int_equal(read_busy(&keep), NRG_MISSING);
    assert_int_equal(keep.n_faults, 1);
    keep_close(&keep);
    nrg_probe_release(&probe);

    /* Somebody has set it to 0: it does not agree with the ticks. */
    tree_write(&t, CGROUP "cpuacct/cpuacct.usage", "500000000000\n");
    c = busy_of(&t, &probe);
    assert_string_equal(c->source, "/proc/stat");
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* Version 2: the groups below the root are exact, the root itself has ticks. */
static void busy_from_groups(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    write_busy_machine(&t);
    tree_write(&t, CGROUP "cgroup.procs", "1\n");
    write_cpu_stat(&t, "", 600000000, 400000000, 30000000);
    write_cpu_stat(&t, "system.slice/", 10000000, 5000000, 0);
    const struct nrg_channel *c = busy_of(&t, &probe); /* most processes are in the root */
    assert_string_equal(c->source, CGROUP "cpu.stat");
    assert_true(c->scale == 1e-6 && c->resolution >= 1e-3 && c->resolution <= 1e-2);
    keep_open(&keep, &t, probe_sensor(&probe, "machine", "machine"));
    assert_int_equal(read_busy(&keep), 1000000000); /* without steal */
    keep_close(&keep);
    nrg_probe_release(&probe);

    write_cpu_stat(&t, "user.slice/", 580000000, 390000001, 0);
    c = busy_of(&t, &probe);
    assert_string_equal(c->source, CGROUP "*/cpu.stat");
    assert_true(c->resolution == 1e-6);
    keep_open(&keep, &t, probe_sensor(&probe, "machine", "machine"));
    assert_int_equal(read_busy(&keep), 985000001);
    write_cpu_stat(&t, "user.slice/", 580000000, 390000007, 0);
    write_cpu_stat(&t, "machine.slice/", 1, 2, 0); /* a group that comes later */
    assert_int_equal(read_busy(&keep), 985000010);
    keep_close(&keep);
    nrg_probe_release(&probe);

    tree_write(&t, CGROUP "cgroup.events", "populated 1\n"); /* of every group but the root */
    c = busy_of(&t, &probe);
    assert_string_equal(c->source, "/proc/stat");
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void time_and_memory(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    write_stat(&t);
    probe_machine(&t, false, &probe);
    assert_int_equal(probe.n_found, 1); /* nothing for the environment here */
    const struct nrg_found *found = probe_sensor(&probe, "machine", "machine");
    keep_open(&keep, &t, found);
    const struct nrg_channel *c = probe_channel(&probe, "cpu.busy", NULL);
    assert_true(c->scale > 0.9 / (double)sysconf(_SC_CLK_TCK) && c->quantity == NRG_SECONDS);
    assert_int_equal(c->update_ns, 10000000);
    assert_null(probe_channel(&probe, "cpu.recorder", NULL)); /* it runs on another machine */
    assert_null(probe_channel(&probe, "cpu.0.busy", NULL));

    keep_read(&keep);
    assert_int_equal(keep.n_rows, 2);
    assert_int_equal(keep.rows[0].group, 0);
    assert_int_equal(keep.rows[0].raw[0], 100 + 10 + 50 + 5 + 6); /* guest is inside user */
    assert_int_equal(keep.rows[0].raw[1], 1040);
    assert_int_equal(keep.rows[0].raw[2], 70);
    assert_int_equal(keep.rows[1].group, 1);
    assert_int_equal(keep.rows[1].raw[0], 6384000);
    assert_int_equal(keep.rows[1].raw[1], 16384000);
    assert_true(probe_channel(&probe, "memory.used", NULL)->scale == 1024);

    /* One file turns bad: its channels are missing with a reason, the other's go on. */
    tree_write(&t, "/proc/stat", "garbage\n");
    keep_read(&keep);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(keep.rows[2].raw[i], NRG_MISSING);
        assert_int_equal(keep.faults[i].channel, i);
        assert_int_equal(keep.faults[i].error, -EINVAL);
    }
    assert_int_equal(keep.rows[3].raw[0], 6384000);
    assert_int_equal(keep.n_faults, 3);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void single_cpus_come_and_go(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    write_stat(&t);
    tree_remove(&t, "/proc/meminfo");
    probe_machine(&t, true, &probe);
    assert_non_null(probe_why(&probe, "memory"));
    assert_null(probe_channel(&probe, "cpu.1.busy", NULL)); /* offline */
    struct nrg_found *found = probe_sensor(&probe, "machine", "machine");
    assert_int_equal(found->n_channels, 5);
    found->wanted[1] = false; /* another driver serves cpu.idle */
    keep_open(&keep, &t, found);
    keep_read(&keep);
    assert_int_equal(keep.rows[0].raw[1], NRG_MISSING);
    assert_int_equal(keep.rows[0].raw[3], 60 + 5 + 25 + 2 + 3);
    assert_int_equal(keep.rows[0].raw[4], 40 + 5 + 25 + 3 + 3);
    assert_int_equal(keep.n_faults, 0);

    tree_write(&t, "/proc/stat",
               "cpu  1 1 1 1 1 1 1 1 0 0\ncpu1 9 9 9 9 9 9 9 9 0 0\ncpu2 7 0 0 1 0 0 0 0 0 0");
    keep_read(&keep);
    assert_int_equal(keep.rows[1].raw[3], NRG_MISSING);
    assert_int_equal(keep.rows[1].raw[4], 7);
    assert_int_equal(keep.n_faults, 1);
    assert_int_equal(keep.faults[0].channel, 3);
    assert_int_equal(keep.faults[0].error, -ENODEV);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* 1000 CPUs with counters of ten years: every line must fit the buffer. */
static void many_cpus(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    char *text = NULL;
    size_t size;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "cpu  1 1 1 1 1 1 1 1 0 0\n");
    for (int i = 0; i < 1000; i++)
        fprintf(out, "cpu%d 31536000000 1 1 31536000000 1 1 1 31536000000 1 1\n", i);
    fclose(out);
    tree_init(&t);
    tree_write(&t, "/proc/stat", "%s", text);
    probe_machine(&t, true, &probe);
    const struct nrg_found *found = probe_sensor(&probe, "machine", "machine");
    assert_int_equal(found->n_channels, 1003);
    const struct nrg_channel *last = &found->channels[1002];
    assert_string_equal(last->name, "cpu.999.busy");
    for (size_t c = 0; c < 1002; c++)
        found->wanted[c] = false;
    struct nrg_found narrow = *found; /* the sink keeps few channels: look at the faults only */
    static struct keep_sink keep;
    keep_open(&keep, &t, found);
    narrow.n_channels = 3;
    keep.found = &narrow;
    for (size_t c = 0; c < 3; c++)
        keep_read(&keep);
    assert_int_equal(keep.n_faults, 0);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
    free(text);
}

static void pressure_and_clock(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/pressure/cpu",
               "some avg10=0.00 avg60=0.00 avg300=0.18 total=10033409\n"
               "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
    tree_write(&t, "/proc/pressure/io", "some avg10=1.00 total=77\n");
    tree_write(&t, "/proc/pressure/memory", "nonsense\n");
    tree_write(&t, CPU "cpufreq/policy0/scaling_cur_freq", "1000000\n");
    tree_write(&t, CPU "cpufreq/policy0/affected_cpus", "0 1 2\n");
    tree_write(&t, CPU "cpufreq/policy3/scaling_cur_freq", "3000000\n");
    tree_write(&t, CPU "cpufreq/policy3/affected_cpus", "3\n");
    tree_write(&t, CPU "cpufreq/policy4/scaling_cur_freq", "<unknown>\n");
    tree_write(&t, CPU "cpu0/cpufreq/scaling_cur_freq", "1\n"); /* same again: not counted */
    probe_machine(&t, false, &probe);
    assert_non_null(probe_why(&probe, "CPU time"));
    assert_null(probe_channel(&probe, "pressure.memory", NULL));
    const struct nrg_found *found = probe_sensor(&probe, "machine", "machine environment");
    keep_open(&keep, &t, found);
    assert_int_equal(found->n_channels, 3);
    keep_read(&keep);
    assert_int_equal(keep.rows[0].raw[0], 10033409);
    assert_int_equal(keep.rows[0].raw[1], 77);
    assert_int_equal(keep.rows[1].group, 1);
    assert_int_equal(keep.rows[1].raw[0], 1500000); /* (3 * 1 + 1 * 3) / 4 GHz */
    assert_true(probe_channel(&probe, "cpu.clock", NULL)->scale == 1e3);

    tree_write(&t, CPU "cpufreq/policy0/scaling_cur_freq", "%s", "");
    tree_write(&t, "/proc/pressure/cpu", "some total=\n");
    keep_read(&keep);
    assert_int_equal(keep.rows[2].raw[0], NRG_MISSING);
    assert_int_equal(keep.rows[3].raw[0], 3000000);
    assert_int_equal(keep.n_faults, 1);
    tree_write(&t, CPU "cpufreq/policy3/scaling_cur_freq", "%s", "");
    keep_read(&keep);
    assert_int_equal(keep.rows[5].raw[0], NRG_MISSING);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void add_temperature(struct tree *t, const char *chip, const char *name, int n,
                            const char *label, int mc)
{
    char path[200];
    snprintf(path, sizeof path, HWMON "%s/name", chip);
    tree_write(t, path, "%s\n", name);
    snprintf(path, sizeof path, HWMON "%s/temp%d_input", chip, n);
    tree_write(t, path, "%d\n", mc);
    snprintf(path, sizeof path, HWMON "%s/temp%d_label", chip, n);
    if (label)
        tree_write(t, path, "%s\n", label);
}

static void temperatures(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    char label[32];
    (void)state;
    tree_init(&t);
    tree_write(&t, "/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    tree_write(&t, "/sys/class/thermal/thermal_zone0/temp", "51000\n");
    probe_machine(&t, false, &probe);
    assert_non_null(probe_channel(&probe, "temperature.zone.x86_pkg_temp", NULL));
    nrg_probe_release(&probe);

    for (int i = 0; i < 20; i++) {
        snprintf(label, sizeof label, "Core %d", i);
        add_temperature(&t, "hwmon0", "coretemp", i + 2, label, 40000 + i);
    }
    add_temperature(&t, "hwmon0", "coretemp", 1, "Package id 0", 45000);
    add_temperature(&t, "hwmon1", "nvme", 1, "Composite", 30000);
    add_temperature(&t, "hwmon2", "jc42", 1, NULL, 31000);
    add_temperature(&t, "hwmon10", "jc42", 1, NULL, -5000);
    tree_write(&t, HWMON "hwmon10/temp1_max", "90000\n");
    tree_write(&t, HWMON "hwmon10/temp2_input", "broken\n");
    probe_machine(&t, false, &probe);
    const struct nrg_found *found = probe_sensor(&probe, "machine", "machine environment");
    assert_int_equal(found->n_channels, 16);
    assert_string_equal(found->channels[0].name, "temperature.coretemp.package-id-0");
    assert_string_equal(found->channels[1].name, "temperature.jc42.temp1");
    assert_string_equal(found->channels[2].name, "temperature.jc42-2.temp1");
    assert_string_equal(found->channels[3].name, "temperature.coretemp.core-0");
    assert_null(probe_channel(&probe, "temperature.zone.x86_pkg_temp", NULL));
    assert_null(probe_channel(&probe, "temperature.nvme.composite", NULL));
    keep_open(&keep, &t, found);
    keep_read(&keep);
    assert_int_equal(keep.rows[0].group, 1);
    assert_int_equal(keep.rows[0].raw[0], 45000);
    assert_int_equal(keep.rows[0].raw[2], -5000);
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void empty_machine(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    probe_machine(&t, true, &probe);
    assert_int_equal(probe.n_found, 0);
    assert_non_null(strstr(probe_why(&probe, "CPU time")->why, "/proc/stat"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_proc_stat), cmocka_unit_test(lines_of_meminfo),
        cmocka_unit_test(time_and_memory),    cmocka_unit_test(single_cpus_come_and_go),
        cmocka_unit_test(many_cpus),          cmocka_unit_test(pressure_and_clock),
        cmocka_unit_test(temperatures),       cmocka_unit_test(empty_machine),
        cmocka_unit_test(lines_of_cpu_stat),  cmocka_unit_test(busy_from_cpuacct),
        cmocka_unit_test(busy_from_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
