/*
 * estimate: which row of the table a machine gets, when nothing is estimated at all, and that the
 * energy is the integral that docs/estimate.md promises. Expected values are computed here from
 * the table's rows and the published formula, not by the driver's code.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sensors/cpu_model.h"

static void write_cpu(struct tree *t, const char *vendor, int family, int model, int stepping,
                      const char *name, const char *flags)
{
    tree_write(t, "/proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\n"
               "model name\t: %s\nstepping\t: %d\nsiblings\t: 64\ncpu cores\t: 32\n"
               "flags\t\t: fpu vme %s\n\nprocessor\t: 1\nvendor_id\t: Other\n",
               vendor, family, model, name, stepping, flags);
}

static void write_stat(struct tree *t, int threads, long long busy, long long idle, long long steal)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "cpu  %lld 0 0 %lld 0 0 0 %lld 0 0\n", busy, idle, steal);
    for (int i = 0; i < threads; i++)
        fprintf(out, "cpu%d 1 0 0 1 0 0 0 0 0 0\n", 2 * i); /* every other CPU is offline */
    fprintf(out, "intr 5\n");
    fclose(out);
    tree_write(t, "/proc/stat", "%s", text);
    free(text);
}

static void write_milan_vm(struct tree *t, int threads)
{
    write_cpu(t, "AuthenticAMD", 25, 1, 1, "AMD EPYC", "hypervisor lahf_lm");
    write_stat(t, threads, 1000, 1000, 0);
}

static const struct nrg_cpu_family *row(const char *name)
{
    for (size_t i = 0; i < nrg_cpu_n_families; i++)
        if (!strncmp(nrg_cpu_families[i].name, name, strlen(name)))
            return &nrg_cpu_families[i];
    fail_msg("no row '%s'", name);
    return NULL;
}

static void probe_by_name(struct tree *t, struct nrg_probe *probe)
{
    static const char *const only[] = {"estimate", NULL};
    static const struct nrg_sensor_options options = {.only = only};
    assert_int_equal(nrg_probe_all(probe, &t->ctx, &options, NULL), 0);
}

static bool near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

static void numbers_decide_the_family(void **state)
{
    static const struct {
        const char *vendor;
        int family, model, stepping;
        const char *name, *flags, *expect;
    } cases[] = {
        {"AuthenticAMD", 25, 1, 1, "AMD EPYC", "hypervisor", "EPYC Milan"},
        {"AuthenticAMD", 25, 17, 1, "AMD EPYC 9R14", "hypervisor", "EPYC Genoa"},
        {"AuthenticAMD", 25, 160, 2, "AMD EPYC 9754", "", "EPYC Bergamo"},
        {"AuthenticAMD", 26, 2, 1, "AMD EPYC 9R45", "", "EPYC Turin (9005)"},
        {"AuthenticAMD", 26, 17, 0, "AMD EPYC 9845", "", "EPYC Turin Dense"},
        {"AuthenticAMD", 23, 49, 0, "AMD EPYC 7B12", "", "EPYC Rome"},
        {"AuthenticAMD", 23, 1, 2, "AMD EPYC 7601", "", "EPYC Naples"},
        {"AuthenticAMD", 23, 49, 0, "AMD Ryzen Threadripper 3990X", "", "servers since"},
        {"GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) CPU @ 2.00GHz", "", "Xeon Skylake-SP"},
        {"GenuineIntel", 6, 85, 7, "Intel(R) Xeon(R) CPU @ 2.80GHz", "", "Xeon Cascade Lake"},
        {"GenuineIntel", 6, 85, 11, "Intel(R) Xeon(R) Platinum 8380H", "", "Xeon Cooper Lake"},
        {"GenuineIntel", 6, 85, 4, "Intel(R) Core(TM) i9-7900X", "", "servers since"},
        {"GenuineIntel", 6, 106, 6, "Intel(R) Xeon(R) CPU", "", "Xeon Ice Lake-SP"},
        {"GenuineIntel", 6, 143, 8, "Intel(R) Xeon(R)", "hypervisor", "Xeon Sapphire Rapids"},
        {"GenuineIntel", 6, 207, 2, "INTEL(R) XEON(R)", "", "Xeon Emerald Rapids"},
        {"GenuineIntel", 6, 173, 1, "", "", "Xeon 6 P-core"},
        {"GenuineIntel", 6, 175, 3, "", "", "Xeon 6 E-core"},
        {"GenuineIntel", 6, 79, 1, "", "", "Xeon E5 v4"},
        {"GenuineIntel", 6, 42, 7, "Intel Xeon E312xx (Sandy Bridge)", "hypervisor", "Xeon E5 (S"},
        {"GenuineIntel", 6, 42, 7, "Intel(R) Xeon(R) CPU E31260L", "", "Xeon E3, Core 2"},
        {"GenuineIntel", 15, 6, 1, "Common KVM processor", "hypervisor", "servers since"},
        {"GenuineIntel", 6, 142, 10, "Intel(R) Core(TM) i7-8550U", "", "servers since"},
    };
    struct tree t;
    (void)state;
    tree_init(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_cpu_model m;
        bool known;
        write_cpu(&t, cases[i].vendor, cases[i].family, cases[i].model, cases[i].stepping,
                  cases[i].name, cases[i].flags);
        nrg_cpu_model_read(&t.ctx.root, &m);
        assert_int_equal(m.virtual_machine, *cases[i].flags != '\0');
        assert_ptr_equal(nrg_cpu_family_of(&m, &known), row(cases[i].expect));
        assert_int_equal(known, strcmp(cases[i].expect, "servers since") != 0);
    }
    tree_release(&t);
}

static void arm_by_implementer_and_part(void **state)
{
    struct tree t;
    struct nrg_cpu_model m;
    bool known;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/cpuinfo",
               "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\n"
               "CPU part\t: 0xd0c\nCPU revision\t: 1\n\n");
    tree_write(&t, "/sys/devices/system/cpu/online", "0-1,4-79\n");
    nrg_cpu_model_read(&t.ctx.root, &m);
    assert_int_equal(m.threads, 78); /* no /proc/stat here */
    assert_ptr_equal(nrg_cpu_family_of(&m, &known), row("Neoverse N1"));
    assert_false(m.virtual_machine);
    tree_write(&t, "/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    nrg_cpu_model_read(&t.ctx.root, &m);
    assert_true(m.virtual_machine);
    tree_write(&t, "/sys/class/dmi/id/product_name", "c6g.metal\n");
    nrg_cpu_model_read(&t.ctx.root, &m);
    assert_false(m.virtual_machine);
    tree_write(&t, "/proc/cpuinfo", "CPU implementer : 0x41\nCPU part : 0xd4f\n");
    nrg_cpu_model_read(&t.ctx.root, &m);
    assert_ptr_equal(nrg_cpu_family_of(&m, &known), row("ARM servers"));
    assert_false(known);
    tree_release(&t);
}

static void channels_and_text(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 2);
    tree_write(&t, "/proc/meminfo", "MemTotal: 2097152 kB\nMemFree: 1 kB\nMemAvailable: 1 kB\n");
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, NULL, NULL), 0);
    const struct nrg_cpu_family *milan = row("EPYC Milan");
    const struct nrg_channel *c = probe_channel(&probe, "machine", NULL);
    assert_non_null(c);
    assert_int_equal(c->provenance, NRG_ESTIMATED);
    assert_true(c->covers_cpu && !c->wide && c->kind == NRG_COUNTER && c->scale == 1e-6);
    assert_string_equal(c->parent, "");
    assert_non_null(strstr(c->source, "EPYC Milan (7003) family, 28 servers, 2 hardware threads of "
                                      "a virtual machine, 0.848 to 3.83 W"));
    assert_true(near(c->error_low, 1 - milan->full_low_w / milan->full_w, 1e-9));
    assert_true(near(c->error_high, milan->full_high_w / milan->full_w - 1, 1e-9));
    static const char *const parts[] = {"machine.low", "machine.high", "machine.idle", "dram",
                                        NULL};
    for (size_t i = 0; parts[i]; i++) {
        c = probe_channel(&probe, parts[i], NULL);
        assert_non_null(c);
        assert_string_equal(c->parent, "machine");
        assert_int_equal(c->provenance, NRG_ESTIMATED);
        assert_false(c->covers_cpu);
    }
    assert_non_null(strstr(c->source, "part of machine: 2 GiB"));
    nrg_probe_release(&probe);

    write_cpu(&t, "GenuineIntel", 6, 999, 0, "\xff\xfeodd", "");
    probe_by_name(&t, &probe);
    c = probe_channel(&probe, "machine", NULL);
    assert_non_null(strstr(c->source, "processor not in the table"));
    assert_null(strstr(c->source, "virtual"));
    assert_true(c->error_low > 0.5); /* honest about knowing little */
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void silent_beside_a_measured_cpu(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 2);
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/energy_uj", "1\n");
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, NULL, NULL), 0);
    assert_non_null(probe_channel(&probe, "package-0", NULL));
    assert_null(probe_sensor(&probe, "estimate", NULL));
    nrg_probe_release(&probe);
    probe_by_name(&t, &probe); /* asked for: given */
    assert_non_null(probe_sensor(&probe, "estimate", NULL));
    nrg_probe_release(&probe);

    /* DRAM alone says nothing about the CPU. */
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/name", "dram\n");
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, NULL, NULL), 0);
    assert_non_null(probe_sensor(&probe, "estimate", NULL));
    nrg_probe_release(&probe);

    tree_remove(&t, "/proc/stat");
    probe_by_name(&t, &probe);
    assert_int_equal(probe.n_found, 0); /* no utilisation, no estimate */
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* The published formula, written once more. */
static double power_w(double idle_w, double full_w, double u)
{
    return idle_w + (full_w - idle_w) * (1.6 * u - 0.6 * u * u);
}

static const struct {
    long long busy, idle, steal;
    double u;
} steps[] = {{0, 400, 0, 0}, {200, 200, 0, 0.5}, {400, 0, 0, 1}, {100, 200, 100, 0.25}};
#define STEPS (sizeof steps / sizeof *steps)

static void energy_is_the_integral(void **state)
{
    static const int threads[] = {2, 64};
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const struct nrg_cpu_family *milan = row("EPYC Milan");
        const double idle_w[] = {milan->idle_w, milan->idle_low_w, milan->idle_high_w};
        const double full_w[] = {milan->full_w, milan->full_low_w, milan->full_high_w};
        double expect_uj[5] = {0};
        long long busy = 1000, idle = 1000, steal = 0;
        void *sensor;
        tree_init(&t);
        write_milan_vm(&t, threads[k]);
        tree_write(&t, "/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1 kB\n");
        probe_by_name(&t, &probe);
        const struct nrg_found *found = &probe.found[0];
        assert_int_equal(found->n_channels, 5);
        assert_int_equal(found->driver->open(&t.ctx, found, &sensor, NULL), 0);
        keep_sink_init(&keep, found);
        assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
        assert_int_equal(keep.rows[0].raw[0], 0);
        for (size_t i = 0; i < STEPS; i++) {
            busy += steps[i].busy * threads[k];
            idle += steps[i].idle * threads[k];
            steal += steps[i].steal * threads[k];
            write_stat(&t, threads[k], busy, idle, steal);
            usleep(20000);
            assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
            double dt_us = (double)(keep.rows[i + 1].t_ns - keep.rows[i].t_ns) / 1e3;
            for (size_t c = 0; c < 3; c++)
                expect_uj[c] += threads[k] * power_w(idle_w[c], full_w[c], steps[i].u) * dt_us;
            expect_uj[3] += threads[k] * idle_w[0] * dt_us;
            expect_uj[4] += 0.5 * dt_us; /* 2 GiB */
            for (size_t c = 0; c < 5; c++)
                assert_true(near((double)keep.rows[i + 1].raw[c], expect_uj[c], 1e-3));
        }
        found->driver->close(sensor);
        nrg_probe_release(&probe);
        tree_release(&t);
    }
}

/* 1 kHz reads of 10 ms ticks: windows that are too short must not bias the result. */
static void fast_reads_settle_per_window(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    const struct nrg_cpu_family *milan = row("EPYC Milan");
    long long busy = 1000, idle = 1000;
    void *sensor;
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 1);
    probe_by_name(&t, &probe);
    const struct nrg_found *found = &probe.found[0];
    assert_int_equal(found->driver->open(&t.ctx, found, &sensor, NULL), 0);
    keep_sink_init(&keep, found);
    assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
    double longest_us = 0;
    for (int i = 0; i < 80; i++) { /* one tick every other read, half of them busy */
        if (i % 2)
            *(i % 4 == 1 ? &busy : &idle) += 1;
        write_stat(&t, 1, busy, idle, 0);
        usleep(1000);
        assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
        assert_true(keep.rows[i + 1].raw[0] >= keep.rows[i].raw[0]);
        double read_us = (double)(keep.rows[i + 1].t_ns - keep.rows[i].t_ns) / 1e3;
        longest_us = read_us > longest_us ? read_us : longest_us;
    }
    double dt_us = (double)(keep.rows[80].t_ns - keep.rows[0].t_ns) / 1e3;
    double expect_uj = power_w(milan->idle_w, milan->full_w, 0.5) * dt_us;
    /* A test machine that stalls in the middle of a window leaves its provisional value. */
    assert_true(near((double)keep.rows[80].raw[0], expect_uj, longest_us < 5e3 ? 0.03 : 0.4));
    found->driver->close(sensor);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void bad_reads_and_backward_steps(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    const struct nrg_cpu_family *milan = row("EPYC Milan");
    void *sensor;
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 1);
    probe_by_name(&t, &probe);
    const struct nrg_found *found = &probe.found[0];
    assert_int_equal(found->n_channels, 4); /* no /proc/meminfo, no dram */
    assert_int_equal(found->driver->open(&t.ctx, found, &sensor, NULL), 0);
    keep_sink_init(&keep, found);
    assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
    tree_write(&t, "/proc/stat", "cpu  1 2\n");
    assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
    assert_int_equal(keep.rows[1].raw[0], NRG_MISSING);
    assert_int_equal(keep.n_faults, 4);
    assert_int_equal(keep.faults[0].error, -EINVAL);

    /* The gap is bridged by the counters; idle time that stepped back counts as none. */
    write_stat(&t, 1, 1100, 990, 0);
    usleep(10000);
    assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
    double dt_us = (double)(keep.rows[2].t_ns - keep.rows[0].t_ns) / 1e3;
    assert_true(near((double)keep.rows[2].raw[0], milan->full_w * dt_us, 1e-3));

    /* Time that stands still for seconds is no utilisation of 0. */
    usleep(2100000);
    assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
    assert_int_equal(keep.rows[3].raw[0], NRG_MISSING);
    assert_int_equal(keep.faults[4].error, -ENODATA);
    found->driver->close(sensor);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void watts_of_the_user(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    struct nrg_error err;
    static struct keep_sink keep;
    static const char *const only[] = {"estimate", NULL};
    struct nrg_sensor_options options = {.only = only, .cpu_idle_w = 20, .cpu_full_w = 120};
    void *sensor;
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 64);
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, NULL), 0);
    const struct nrg_found *found = &probe.found[0];
    assert_non_null(strstr(found->channels[0].source, "--cpu-watts, 20 to 120 W"));
    assert_true(near(found->channels[0].error_high, 0.1, 1e-9));
    assert_int_equal(found->driver->open(&t.ctx, found, &sensor, NULL), 0);
    keep_sink_init(&keep, found);
    assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
    write_stat(&t, 64, 1000 + 3200, 1000 + 3200, 0);
    usleep(20000);
    assert_int_equal(found->driver->read(sensor, &keep.sink), 0);
    double dt_us = (double)(keep.rows[1].t_ns - keep.rows[0].t_ns) / 1e3;
    assert_true(near((double)keep.rows[1].raw[0], 85 * dt_us, 1e-3)); /* 20 + 0.65 * 100 */
    assert_true(near((double)keep.rows[1].raw[1], 76.5 * dt_us, 1e-3));
    found->driver->close(sensor);
    nrg_probe_release(&probe);

    options.cpu_idle_w = 130;
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, &err), -EINVAL);
    assert_string_equal(err.where, "--cpu-watts");
    tree_release(&t);
}

static void threads_smt_and_memory(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    const struct nrg_cpu_family *milan = row("EPYC Milan");
    tree_init(&t);
    write_stat(&t, 32, 1, 1, 0);
    /* Bare metal with SMT off: 32 whole cores draw what 64 threads do. */
    tree_write(&t, "/proc/cpuinfo",
               "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nstepping : 1\n"
               "siblings : 32\ncpu cores : 32\nflags : fpu\n");
    probe_by_name(&t, &probe);
    const struct nrg_channel *c = probe_channel(&probe, "machine", NULL);
    assert_true(near(c->limit_w, 64 * milan->full_w, 1e-9));
    assert_non_null(strstr(c->source, "32 cores without SMT"));
    nrg_probe_release(&probe);
    /* The same numbers in a virtual machine are made up: 32 threads. */
    tree_write(&t, "/proc/cpuinfo",
               "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nstepping : 1\n"
               "siblings : 32\ncpu cores : 32\nflags : fpu hypervisor\n");
    probe_by_name(&t, &probe);
    c = probe_channel(&probe, "machine", NULL);
    assert_true(near(c->limit_w, 32 * milan->full_w, 1e-9));
    nrg_probe_release(&probe);
    /* A part is not more than the whole: 1 TiB in a guest of 32 threads. */
    tree_write(&t, "/proc/meminfo", "MemTotal: 1073741824 kB\nMemAvailable: 1 kB\n");
    probe_by_name(&t, &probe);
    c = probe_channel(&probe, "dram", NULL);
    assert_non_null(strstr(c->source, "cut to what machine draws when idle"));
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void table_is_sane(void **state)
{
    (void)state;
    assert_true(nrg_cpu_n_families > 20);
    for (size_t i = 0; i < nrg_cpu_n_families; i++) {
        const struct nrg_cpu_family *f = &nrg_cpu_families[i];
        assert_true(f->servers >= 4 && (f->smt == 1 || f->smt == 2));
        assert_true(0 < f->idle_low_w && f->idle_low_w <= f->idle_w && f->idle_w <= f->idle_high_w);
        assert_true(f->full_low_w <= f->full_w && f->full_w <= f->full_high_w);
        assert_true(f->idle_w < f->full_w && f->idle_low_w < f->full_low_w);
        assert_true(strlen(f->name) < 50);
    }
    for (size_t i = 0; i < nrg_cpu_n_ids; i++)
        assert_true(nrg_cpu_ids[i].row < nrg_cpu_n_families - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_decide_the_family),
        cmocka_unit_test(arm_by_implementer_and_part),
        cmocka_unit_test(channels_and_text),
        cmocka_unit_test(silent_beside_a_measured_cpu),
        cmocka_unit_test(energy_is_the_integral),
        cmocka_unit_test(fast_reads_settle_per_window),
        cmocka_unit_test(bad_reads_and_backward_steps),
        cmocka_unit_test(watts_of_the_user),
        cmocka_unit_test(threads_smt_and_memory),
        cmocka_unit_test(table_is_sane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
