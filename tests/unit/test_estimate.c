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

#include "sensors/machine/core_load.h"
#include "sensors/machine/cpu_power.h"

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

static const struct nrg_cpu_power *guest(const char *name)
{
    return &row(name)->power[NRG_CPU_OF_GUEST];
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
        {"AuthenticAMD", 23, 49, 0, "AMD Ryzen Threadripper 3990X", "", "desktops"},
        {"GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) CPU @ 2.00GHz", "", "Xeon Skylake-SP"},
        {"GenuineIntel", 6, 85, 7, "Intel(R) Xeon(R) CPU @ 2.80GHz", "", "Xeon Cascade Lake"},
        {"GenuineIntel", 6, 85, 11, "Intel(R) Xeon(R) Platinum 8380H", "", "Xeon Cooper Lake"},
        {"GenuineIntel", 6, 85, 4, "Intel(R) Core(TM) i9-7900X", "", "desktops"},
        {"GenuineIntel", 6, 106, 6, "Intel(R) Xeon(R) CPU", "", "Xeon Ice Lake-SP"},
        {"GenuineIntel", 6, 143, 8, "Intel(R) Xeon(R)", "hypervisor", "Xeon Sapphire Rapids"},
        {"GenuineIntel", 6, 207, 2, "INTEL(R) XEON(R)", "", "Xeon Emerald Rapids"},
        {"GenuineIntel", 6, 173, 1, "", "", "Xeon 6 P-core"},
        {"GenuineIntel", 6, 175, 3, "", "", "Xeon 6 E-core"},
        {"GenuineIntel", 6, 79, 1, "", "", "Xeon E5 v4"},
        {"GenuineIntel", 6, 42, 7, "Intel Xeon E312xx (Sandy Bridge)", "hypervisor", "Xeon E5 (S"},
        {"GenuineIntel", 6, 42, 7, "Intel(R) Xeon(R) CPU E31260L", "", "Xeon E3, Core 2"},
        {"GenuineIntel", 15, 6, 1, "Common KVM processor", "hypervisor", "servers since"},
        {"GenuineIntel", 6, 142, 10, "Intel(R) Core(TM) i7-8550U", "", "desktops"},
        {"GenuineIntel", 6, 142, 10, "Intel(R) Core(TM) i7-8550U", "hypervisor", "servers since"},
        {"GenuineIntel", 6, 190, 0, "Intel(R) N100", "", "desktops"},
        {"GenuineIntel", 6, 999, 0, "Intel(R) Xeon(R) 9", "", "servers since"},
        {"AuthenticAMD", 99, 1, 0, "AMD EPYC 1", "", "servers since"},
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
        assert_int_equal(known, strcmp(cases[i].expect, "servers since") != 0 &&
                                    strcmp(cases[i].expect, "desktops") != 0);
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
    assert_true(known);
    tree_release(&t);
}

/* The same core is a board's on bare metal and a server's in a virtual machine. */
static void arm_boards_and_guests(void **state)
{
    static const struct {
        unsigned implementer, part;
        bool board, guest;
        const char *expect;
        bool known;
    } cases[] = {
        {0x41, 0xd08, true, false, "Raspberry Pi 4", true},
        {0x41, 0xd0b, true, false, "Raspberry Pi 5", true},
        {0x41, 0xd03, true, false, "Cortex-A53", true},
        {0x41, 0xd05, true, false, "Cortex-A55", true},
        {0x41, 0xd42, true, false, "ARM boards", true}, /* Jetson Orin */
        {0x4e, 0x004, true, false, "ARM boards", true}, /* Jetson Xavier */
        {0x61, 0x022, true, false, "Apple", true},
        {0x41, 0xd08, false, true, "ARM servers", true}, /* Graviton 1 */
        {0x41, 0xd0c, false, true, "Neoverse N1", true}, /* Graviton 2 */
        {0x41, 0xd40, false, true, "ARM servers", true}, /* Graviton 3 */
        {0x41, 0xd49, false, true, "ARM servers", true}, /* Cobalt */
        {0xc0, 0xac3, false, false, "ARM servers", true},
        {0x41, 0xfff, false, true, "ARM servers", false},
        {0x41, 0xfff, true, false, "ARM boards", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree t;
        struct nrg_cpu_model m;
        bool known;
        tree_init(&t);
        tree_write(&t, "/proc/cpuinfo", "processor : 0\nCPU implementer : 0x%x\nCPU part : 0x%x\n",
                   cases[i].implementer, cases[i].part);
        if (cases[i].board)
            tree_write(&t, "/proc/device-tree/model", "A board");
        if (cases[i].guest)
            tree_write(&t, "/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        nrg_cpu_model_read(&t.ctx.root, &m);
        assert_ptr_equal(nrg_cpu_family_of(&m, &known), row(cases[i].expect));
        assert_int_equal(known, cases[i].known);
        tree_release(&t);
    }
}

/* Nominal, not what the CPU runs at now: from the name, the firmware, or what a guest is told. */
static void nominal_clock(void **state)
{
    static const struct {
        const char *name, *flags, *path, *value;
        unsigned mhz;
    } cases[] = {
        {"Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz", "", NULL, NULL, 2500},
        {"Intel(R) Xeon(R) Processor @ 2.90GHz", "hypervisor", NULL, NULL, 2900},
        {"AMD EPYC 7763", "", "cpufreq/base_frequency", "2450000\n", 2450},
        {"AMD EPYC 7763", "", "acpi_cppc/nominal_freq", "2450\n", 2450},
        {"AMD EPYC 7763", "", "cpufreq/cpuinfo_max_freq", "3500000\n", 0},
        {"AMD EPYC 7763", "", NULL, NULL, 0},
        {"AMD EPYC", "hypervisor", NULL, NULL, 3100},
        {"AMD EPYC", "hypervisor aperfmperf", NULL, NULL, 0},
        {"odd @ nanGHz", "", NULL, NULL, 0},
        {"odd @ 99999GHz", "", NULL, NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree t;
        struct nrg_cpu_model m;
        char path[128];
        tree_init(&t);
        tree_write(&t, "/proc/cpuinfo",
                   "vendor_id : AuthenticAMD\nmodel name : %s\ncpu MHz : 3099.998\n"
                   "cpu cores : 24\nflags : fpu %s\n",
                   cases[i].name, cases[i].flags);
        if (cases[i].path) {
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/%s", cases[i].path);
            tree_write(&t, path, "%s", cases[i].value);
        }
        nrg_cpu_model_read(&t.ctx.root, &m);
        assert_int_equal(m.clock_mhz, cases[i].mhz);
        assert_int_equal(m.chip_cores, *cases[i].flags ? 0 : 24); /* a guest's are made up */
        tree_release(&t);
    }
}

/* Machines that were measured (facts and figures: tools/cpu_hosts.csv), as nrg sees them. */
static void measured_machines_are_in_the_band(void **state)
{
    static const struct {
        const char *name;
        int model, stepping, threads, siblings, cores;
        double idle_w, full_w;
    } hosts[] = {
        {"Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz", 85, 4, 96, 48, 24, 211.7, 957.8},
        {"Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz", 85, 4, 72, 36, 18, 184.0, 689.1},
        {"Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz", 79, 1, 72, 36, 18, 195.4, 646.3},
        {"Intel(R) Xeon(R) Platinum 8151 CPU @ 3.40GHz", 85, 4, 48, 24, 12, 194.0, 793.0},
        {"Intel(R) Core(TM) i7-8700B CPU @ 3.20GHz", 158, 10, 12, 12, 6, 26.9, 98.4},
        {"13th Gen Intel(R) Core(TM) i9-13900K", 183, 1, 32, 32, 24, NAN, 333},
    };
    (void)state;
    for (size_t i = 0; i < 3 * sizeof hosts / sizeof *hosts; i++) {
        const char *flags = i % 3 == 1 ? "hypervisor" : "";
        size_t h = i / 3;
        struct nrg_cpu_model m;
        struct tree t;
        bool known;
        tree_init(&t);
        write_stat(&t, hosts[h].threads, 1, 1, 0);
        tree_write(&t, "/proc/cpuinfo",
                   "vendor_id : GenuineIntel\ncpu family : 6\nmodel : %d\nmodel name : %s\n"
                   "stepping : %d\nsiblings : %d\ncpu %s : %d\nflags : fpu %s\n",
                   hosts[h].model, hosts[h].name, hosts[h].stepping, hosts[h].siblings,
                   i % 3 == 2 ? "what" : "cores", hosts[h].cores, flags);
        nrg_cpu_model_read(&t.ctx.root, &m);
        struct nrg_cpu_power p = nrg_cpu_power_of(&m, nrg_cpu_family_of(&m, &known));
        double idle_w = hosts[h].idle_w / m.threads, full_w = hosts[h].full_w / m.threads;
        assert_true(isnan(idle_w) || (p.idle.low_w <= idle_w && idle_w <= p.idle.high_w));
        assert_true(p.full.low_w <= full_w && full_w <= p.full.high_w);
        assert_true(p.idle.high_w / p.idle.low_w < 50 && p.full.high_w / p.full.low_w < 12);
        tree_release(&t);
    }
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
    const struct nrg_cpu_band *full = &guest("EPYC Milan")->full;
    const struct nrg_channel *c = probe_channel(&probe, "machine", NULL);
    assert_non_null(c);
    assert_int_equal(c->provenance, NRG_ESTIMATED);
    assert_true(c->covers_cpu && !c->wide && c->kind == NRG_COUNTER && c->scale == 1e-6);
    assert_string_equal(c->parent, "");
    assert_non_null(strstr(c->source, "EPYC Milan (7003), 28 servers, 2 hardware threads of "
                                      "a virtual machine, 3.21 to 8.24 W"));
    assert_true(near(c->error_low, 1 - full->low_w / full->typical_w, 1e-9));
    assert_true(near(c->error_high, full->high_w / full->typical_w - 1, 1e-9));
    assert_null(probe_channel(&probe, "dram", NULL)); /* its memory is a slice of the host's */
    static const char *const parts[] = {"machine.low", "machine.high", "machine.idle", NULL};
    for (size_t i = 0; parts[i]; i++) {
        c = probe_channel(&probe, parts[i], NULL);
        assert_non_null(c);
        assert_string_equal(c->parent, "machine");
        assert_int_equal(c->provenance, NRG_ESTIMATED);
        assert_false(c->covers_cpu);
    }
    nrg_probe_release(&probe);

    write_cpu(&t, "GenuineIntel", 6, 999, 0, "\xff\xfeodd", "");
    tree_probe(&t, &probe, "estimate");
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
    tree_probe(&t, &probe, "estimate"); /* asked for: given */
    assert_non_null(probe_sensor(&probe, "estimate", NULL));
    nrg_probe_release(&probe);

    /* DRAM alone says nothing about the CPU. */
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/name", "dram\n");
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, NULL, NULL), 0);
    assert_non_null(probe_sensor(&probe, "estimate", NULL));
    nrg_probe_release(&probe);

    tree_remove(&t, "/proc/stat");
    tree_probe(&t, &probe, "estimate");
    assert_int_equal(probe.n_found, 0); /* no utilisation, no estimate */
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* The published formula, written once more. */
static double power_w(double idle_w, double full_w, double u)
{
    double awake = 1 - (1 - u) * (1 - u);
    return idle_w + (full_w - idle_w) * (0.84 * awake + 0.16 * u * u);
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
        const struct nrg_cpu_power *milan = guest("EPYC Milan");
        const double idle_w[] = {milan->idle.typical_w, milan->idle.low_w, milan->idle.high_w};
        const double full_w[] = {milan->full.typical_w, milan->full.low_w, milan->full.high_w};
        double expect_uj[4] = {0};
        long long busy = 1000, idle = 1000, steal = 0;
        tree_init(&t);
        write_milan_vm(&t, threads[k]);
        tree_probe(&t, &probe, "estimate");
        const struct nrg_found *found = &probe.found[0];
        assert_int_equal(found->n_channels, 4);
        keep_open(&keep, &t, found);
        keep_read(&keep);
        assert_int_equal(keep.rows[0].raw[0], 0);
        for (size_t i = 0; i < STEPS; i++) {
            busy += steps[i].busy * threads[k];
            idle += steps[i].idle * threads[k];
            steal += steps[i].steal * threads[k];
            write_stat(&t, threads[k], busy, idle, steal);
            usleep(20000);
            keep_read(&keep);
            double dt_us = (double)(keep.rows[i + 1].t_ns - keep.rows[i].t_ns) / 1e3;
            for (size_t c = 0; c < 3; c++)
                expect_uj[c] += threads[k] * power_w(idle_w[c], full_w[c], steps[i].u) * dt_us;
            expect_uj[3] += threads[k] * idle_w[0] * dt_us;
            for (size_t c = 0; c < 4; c++)
                assert_true(near((double)keep.rows[i + 1].raw[c], expect_uj[c], 1e-3));
        }
        keep_close(&keep);
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
    const struct nrg_cpu_power *milan = guest("EPYC Milan");
    long long busy = 1000, idle = 1000;
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 1);
    tree_probe(&t, &probe, "estimate");
    const struct nrg_found *found = &probe.found[0];
    keep_open(&keep, &t, found);
    keep_read(&keep);
    double longest_us = 0;
    for (int i = 0; i < 80; i++) { /* one tick every other read, half of them busy */
        if (i % 2)
            *(i % 4 == 1 ? &busy : &idle) += 1;
        write_stat(&t, 1, busy, idle, 0);
        usleep(1000);
        keep_read(&keep);
        assert_true(keep.rows[i + 1].raw[0] >= keep.rows[i].raw[0]);
        double read_us = (double)(keep.rows[i + 1].t_ns - keep.rows[i].t_ns) / 1e3;
        longest_us = read_us > longest_us ? read_us : longest_us;
    }
    double dt_us = (double)(keep.rows[80].t_ns - keep.rows[0].t_ns) / 1e3;
    double expect_uj = power_w(milan->idle.typical_w, milan->full.typical_w, 0.5) * dt_us;
    /* A test machine that stalls in the middle of a window leaves its provisional value. */
    assert_true(near((double)keep.rows[80].raw[0], expect_uj, longest_us < 5e3 ? 0.03 : 0.4));
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

/*
 * Before the first tick the utilisation is not known, which is not 0: one CPU is busy, and the band
 * holds none and all of them. The ticks that come first are few: of 4 threads that were seen busy
 * for a tick each, half of the range is known.
 */
static void nothing_is_known_before_ticks(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    const struct nrg_cpu_power *milan = guest("EPYC Milan");
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 4);
    tree_probe(&t, &probe, "estimate");
    keep_open(&keep, &t, &probe.found[0]);
    keep_read(&keep);
    usleep(2000);
    keep_read(&keep);
    double dt_us = (double)(keep.rows[1].t_ns - keep.rows[0].t_ns) / 1e3;
    const int64_t *uj = keep.rows[1].raw;
    double one_w = power_w(milan->idle.typical_w, milan->full.typical_w, 0.25);
    assert_true(near((double)uj[0], 4 * one_w * dt_us, 1e-3));
    assert_true(near((double)uj[1], 4 * milan->idle.low_w * dt_us, 1e-3));
    assert_true(near((double)uj[2], 4 * milan->full.high_w * dt_us, 1e-3));
    assert_true(near((double)uj[3], 4 * milan->idle.typical_w * dt_us, 1e-3));

    write_stat(&t, 4, 1004, 1000, 0);
    usleep(8000);
    keep_read(&keep);
    dt_us = (double)(keep.rows[2].t_ns - keep.rows[0].t_ns) / 1e3;
    uj = keep.rows[2].raw;
    double range_w = milan->full.low_w - milan->idle.low_w;
    assert_true(near((double)uj[1], 4 * (milan->idle.low_w + range_w / 2) * dt_us, 1e-3));
    assert_true(near((double)uj[2], 4 * milan->full.high_w * dt_us, 1e-3));
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void bad_reads_and_backward_steps(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    const struct nrg_cpu_power *milan = guest("EPYC Milan");
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 1);
    tree_probe(&t, &probe, "estimate");
    const struct nrg_found *found = &probe.found[0];
    assert_int_equal(found->n_channels, 4); /* no /proc/meminfo, no dram */
    keep_open(&keep, &t, found);
    keep_read(&keep);
    tree_write(&t, "/proc/stat", "cpu  1 2\n");
    keep_read(&keep);
    assert_int_equal(keep.rows[1].raw[0], NRG_MISSING);
    assert_int_equal(keep.n_faults, 4);
    assert_int_equal(keep.faults[0].error, -EINVAL);

    /* The gap is bridged by the counters; idle time that stepped back counts as none. */
    write_stat(&t, 1, 1100, 990, 0);
    usleep(10000);
    keep_read(&keep);
    double dt_us = (double)(keep.rows[2].t_ns - keep.rows[0].t_ns) / 1e3;
    assert_true(near((double)keep.rows[2].raw[0], milan->full.typical_w * dt_us, 1e-3));

    /* Counters that stand still for seconds do not mean a utilisation of 0. */
    usleep(2100000);
    keep_read(&keep);
    assert_int_equal(keep.rows[3].raw[0], NRG_MISSING);
    assert_int_equal(keep.faults[4].error, -ENODATA);
    keep_close(&keep);
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
    (void)state;
    tree_init(&t);
    write_milan_vm(&t, 64);
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, NULL), 0);
    const struct nrg_found *found = &probe.found[0];
    assert_non_null(strstr(found->channels[0].source, "--cpu-watts, 20 to 120 W"));
    assert_true(near(found->channels[0].error_high, 0.1, 1e-9));
    keep_open(&keep, &t, found);
    keep_read(&keep);
    write_stat(&t, 64, 1000 + 3200, 1000 + 3200, 0);
    usleep(20000);
    keep_read(&keep);
    double dt_us = (double)(keep.rows[1].t_ns - keep.rows[0].t_ns) / 1e3;
    assert_true(near((double)keep.rows[1].raw[0], 87 * dt_us, 1e-3)); /* 20 + 0.67 * 100 */
    assert_true(near((double)keep.rows[1].raw[1], 78.3 * dt_us, 1e-3));
    keep_close(&keep);
    nrg_probe_release(&probe);

    options.cpu_idle_w = 130;
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, &err), -EINVAL);
    assert_string_equal(err.where, "--cpu-watts");
    tree_release(&t);
}

static double full_load_w(struct tree *t)
{
    struct nrg_probe probe;
    tree_probe(t, &probe, "estimate");
    double limit_w = probe_channel(&probe, "machine", NULL)->limit_w;
    nrg_probe_release(&probe);
    return limit_w;
}

static void threads_and_smt(void **state)
{
    struct tree t;
    struct nrg_probe probe;
    (void)state;
    const struct nrg_cpu_family *milan = row("EPYC Milan");
    static const char cpu[] =
        "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nstepping : 1\n";
    tree_init(&t);
    write_stat(&t, 32, 1, 1, 0);
    /* Bare metal with SMT off: 32 whole cores are 64 threads, of a chip with half of the cores. */
    tree_write(&t, "/proc/cpuinfo", "%ssiblings : 32\ncpu cores : 32\nflags : fpu\n", cpu);
    double cores = pow(32.0 / milan->chip_cores, nrg_cpu_powers[NRG_CPU_OF_METAL].full.cores);
    double metal_w = milan->power[NRG_CPU_OF_METAL].full.typical_w * cores;
    assert_true(cores > 1.2 && near(full_load_w(&t), 64 * metal_w, 1e-9));
    tree_probe(&t, &probe, "estimate");
    assert_non_null(strstr(probe_channel(&probe, "machine", NULL)->source, "32 whole cores"));
    nrg_probe_release(&probe);
    /* The same numbers in a virtual machine are made up: 32 threads. */
    tree_write(&t, "/proc/cpuinfo", "%ssiblings : 32\ncpu cores : 32\nflags : hypervisor\n", cpu);
    double guest_w = guest("EPYC Milan")->full.typical_w;
    assert_true(near(full_load_w(&t), 32 * guest_w, 1e-9));
    /* Unless its type is sold as cores. */
    tree_write(&t, "/sys/class/dmi/id/product_name", "m7a.8xlarge\n");
    assert_true(near(full_load_w(&t), 64 * guest_w, 1e-9));
    tree_write(&t, "/sys/class/dmi/id/product_name", "m7i.8xlarge\n");
    assert_true(near(full_load_w(&t), 32 * guest_w, 1e-9));
    /* It shows no SMT: are its CPUs threads, or whole cores of two? The band holds both. */
    const struct nrg_cpu_band *full = &guest("EPYC Milan")->full;
    tree_probe(&t, &probe, "estimate");
    const struct nrg_channel *high = probe_channel(&probe, "machine.high", NULL);
    assert_true(near(high->limit_w, 64 * full->high_w, 1e-9));
    assert_non_null(strstr(high->source, "CPUs as threads or as whole cores"));
    const struct nrg_channel *c = probe_channel(&probe, "machine", NULL);
    assert_true(near(c->error_high, 2 * full->high_w / full->typical_w - 1, 1e-9));
    nrg_probe_release(&probe);
    /* Who shows SMT has threads. */
    tree_write(&t, "/proc/cpuinfo", "%ssiblings : 32\ncpu cores : 16\nflags : hypervisor\n", cpu);
    tree_probe(&t, &probe, "estimate");
    double high_w = probe_channel(&probe, "machine.high", NULL)->limit_w;
    assert_true(near(high_w, 32 * full->high_w, 1e-9));
    nrg_probe_release(&probe);
    tree_release(&t);
}

/* Memory modules draw power, slices of them in a virtual machine are part of what it is sold. */
static void memory_of_machines_alone(void **state)
{
    static const struct {
        const char *flags, *kib;
        bool there;
    } cases[] = {{"fpu", "67108864", true},
                 {"hypervisor", "67108864", false},
                 {"fpu", "10737418240", false}}; /* 10 TiB: more than the whole idle machine */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree t;
        struct nrg_probe probe;
        tree_init(&t);
        write_stat(&t, 64, 1, 1, 0);
        tree_write(&t, "/proc/cpuinfo",
                   "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nstepping : 1\n"
                   "siblings : 64\ncpu cores : 32\nflags : %s\n",
                   cases[i].flags);
        tree_write(&t, "/proc/meminfo", "MemTotal: %s kB\nMemAvailable: 1 kB\n", cases[i].kib);
        tree_probe(&t, &probe, "estimate");
        const struct nrg_channel *c = probe_channel(&probe, "dram", NULL);
        assert_int_equal(c != NULL, cases[i].there);
        if (c)
            assert_non_null(strstr(c->source, "part of machine: 64 GiB x 0.25 W"));
        nrg_probe_release(&probe);
        tree_release(&t);
    }
}

/* Four threads on two cores, (0, 2) and (1, 3); ticks of each. */
static void write_cores(struct tree *t, const long long busy[4], const long long idle[4])
{
    char text[512];
    int n = snprintf(text, sizeof text, "cpu  %lld 0 0 %lld\n",
                     busy[0] + busy[1] + busy[2] + busy[3], idle[0] + idle[1] + idle[2] + idle[3]);
    for (int i = 0; i < 4; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "cpu%d %lld 0 0 %lld\n", i, busy[i],
                      idle[i]);
    tree_write(t, "/proc/stat", "%sintr 1\n", text);
}

static double share_after(struct tree *t, const long long busy[4], const long long idle[4])
{
    char text[512];
    static const long long none[4];
    write_cores(t, none, none);
    struct nrg_core_load *load = nrg_core_load_new(&t->ctx.root);
    assert_non_null(load);
    assert_true(nrg_core_load_stat_size(load) >= 512);
    ssize_t len = nrg_root_read(&t->ctx.root, "/proc/stat", text, sizeof text);
    assert_true(nrg_core_load_share(load, text, (size_t)len, true) < 0); /* no window yet */
    write_cores(t, busy, idle);
    len = nrg_root_read(&t->ctx.root, "/proc/stat", text, sizeof text);
    double share = nrg_core_load_share(load, text, (size_t)len, false);
    assert_true(near(nrg_core_load_share(load, text, (size_t)len, true), share, 1e-12));
    assert_true(nrg_core_load_share(load, text, (size_t)len, false) < 1e-12); /* nothing since */
    nrg_core_load_free(load);
    return share;
}

static void cores_count_more_than_threads(void **state)
{
    static const struct {
        long long busy[4], idle[4];
        double share;
    } cases[] = {
        {{0, 0, 0, 0}, {10, 10, 10, 10}, 0},    {{10, 10, 10, 10}, {0, 0, 0, 0}, 1},
        {{10, 10, 0, 0}, {0, 0, 10, 10}, 0.84}, /* one thread on each core */
        {{10, 0, 10, 0}, {0, 10, 0, 10}, 0.5},  /* both threads of one core */
        {{5, 5, 5, 5}, {5, 5, 5, 5}, 0.67},     {{10, 0, 0, 0}, {0, 10, 10, 10}, 0.42},
    };
    struct tree t;
    char path[128];
    static const long long none[4];
    (void)state;
    tree_init(&t);
    write_cores(&t, none, none);
    assert_null(nrg_core_load_new(&t.ctx.root)); /* nobody says who shares a core */
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 i);
        tree_write(&t, path, "%d,%d\n", i % 2, i % 2 + 2);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(fabs(share_after(&t, cases[i].busy, cases[i].idle) - cases[i].share) < 1e-9);
    assert_true(near(nrg_load_share(0.5), 0.67, 1e-9) && near(nrg_load_share(1), 1, 1e-9));
    nrg_core_load_free(NULL);
    tree_release(&t);
}

/* The driver looks at cores where it can. */
static void energy_follows_busy_cores(void **state)
{
    static const long long none[4], all[4] = {100, 100, 100, 100};
    static const long long busy[4] = {200, 200, 100, 100}, idle[4] = {100, 100, 200, 200};
    struct tree t;
    struct nrg_probe probe;
    static struct keep_sink keep;
    (void)state;
    tree_init(&t);
    write_cpu(&t, "AuthenticAMD", 25, 1, 1, "AMD EPYC", "hypervisor");
    for (int i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 i);
        tree_write(&t, path, "%d,%d\n", i % 2, i % 2 + 2);
    }
    write_cores(&t, none, none);
    static const char *const only[] = {"estimate", NULL};
    struct nrg_sensor_options options = {.only = only, .cpu_idle_w = 20, .cpu_full_w = 120};
    assert_int_equal(nrg_probe_all(&probe, &t.ctx, &options, NULL), 0);
    write_cores(&t, all, all);
    keep_open(&keep, &t, &probe.found[0]);
    keep_read(&keep);
    write_cores(&t, busy, idle);
    usleep(20000);
    keep_read(&keep);
    double dt_us = (double)(keep.rows[1].t_ns - keep.rows[0].t_ns) / 1e3;
    assert_true(near((double)keep.rows[1].raw[0], 104 * dt_us, 1e-3)); /* 20 + 0.84 * 100 */
    keep_close(&keep);
    nrg_probe_release(&probe);
    tree_release(&t);
}

static void band_is_sane(const struct nrg_cpu_power *p)
{
    assert_true(0 < p->idle.low_w && p->idle.low_w < p->idle.typical_w);
    assert_true(p->idle.typical_w < p->idle.high_w && p->full.low_w < p->full.typical_w);
    assert_true(p->full.typical_w < p->full.high_w && p->idle.low_w < p->full.low_w);
    assert_true(p->idle.typical_w < p->full.typical_w && p->idle.high_w < p->full.high_w);
}

static void table_is_sane(void **state)
{
    (void)state;
    assert_true(nrg_cpu_n_families > 20);
    for (size_t i = 0; i < nrg_cpu_n_families; i++) {
        const struct nrg_cpu_family *f = &nrg_cpu_families[i];
        assert_true(f->servers + f->machines >= 3 && (f->smt == 1 || f->smt == 2));
        assert_true(strlen(f->name) < 50);
        for (unsigned cores = 0; cores <= 512; cores = cores * 2 + 1) { /* however small the chip */
            struct nrg_cpu_model m = {.chip_cores = cores, .virtual_machine = !cores};
            struct nrg_cpu_power power = nrg_cpu_power_of(&m, f);
            band_is_sane(&power);
        }
    }
    for (size_t i = 0; i < nrg_cpu_n_ids; i++)
        assert_true(nrg_cpu_ids[i].row < nrg_cpu_n_families - NRG_CPU_UNKNOWN_CLIENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_decide_the_family),
        cmocka_unit_test(arm_by_implementer_and_part),
        cmocka_unit_test(arm_boards_and_guests),
        cmocka_unit_test(nominal_clock),
        cmocka_unit_test(measured_machines_are_in_the_band),
        cmocka_unit_test(channels_and_text),
        cmocka_unit_test(silent_beside_a_measured_cpu),
        cmocka_unit_test(energy_is_the_integral),
        cmocka_unit_test(fast_reads_settle_per_window),
        cmocka_unit_test(nothing_is_known_before_ticks),
        cmocka_unit_test(bad_reads_and_backward_steps),
        cmocka_unit_test(watts_of_the_user),
        cmocka_unit_test(threads_and_smt),
        cmocka_unit_test(memory_of_machines_alone),
        cmocka_unit_test(cores_count_more_than_threads),
        cmocka_unit_test(energy_follows_busy_cores),
        cmocka_unit_test(table_is_sane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
