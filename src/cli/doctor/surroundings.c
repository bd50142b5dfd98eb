/*
 * See diagnosis.h: what is not a sensor and matters all the same. Slow clocks cost a system call or
 * a device access per reading; governors that differ between CPUs make the same work cost different
 * energy depending on where it runs; other profilers are part of what is measured.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/doctor/diagnosis.h"
#include "sensors/machine/cpu_model.h"

#define LEAST_FREE_MB 200
#define CLOCK         "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define CPUFREQ       "/sys/devices/system/cpu/cpufreq"

static int check_file_systems(const struct nrg_root *root, struct nrg_diagnosis *out)
{
    char fix[NRG_FIX_BYTES];
    int rc = 0;
    if (!nrg_root_exists(root, "/sys/class"))
        rc = nrg_findings_add(&out->problems, "/sys", nrg_fixes(root, NRG_SYS_ABSENT, fix),
                              "not there: RAPL, hwmon and clocks of processors are read from it");
    if (!rc && !nrg_root_exists(root, "/proc/stat"))
        rc = nrg_findings_add(&out->problems, "/proc", nrg_fixes(root, NRG_PROC_ABSENT, fix),
                              "not there: load and processes are read from it");
    return rc;
}

static int check_clock(const struct nrg_root *root, struct nrg_diagnosis *out)
{
    static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
    char clock[32], fix[NRG_FIX_BYTES];
    if (nrg_root_read_label(root, CLOCK, clock, sizeof clock))
        return 0;
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (!strcmp(clock, slow[i]))
            return nrg_findings_add(&out->problems, "clock source",
                                    nrg_fixes(root, NRG_CLOCK_SLOW, fix),
                                    "the kernel's clock is %s: every reading of the time is slow, "
                                    "and spans cost more",
                                    clock);
    return 0;
}

/* In acpi-cpufreq, powersave holds the lowest clock; intel_pstate means something else by it. */
static bool holds_down(const struct nrg_root *root, const char *policy, const char *governor)
{
    char path[128], driver[32] = "";
    snprintf(path, sizeof path, CPUFREQ "/%.32s/scaling_driver", policy);
    nrg_root_read_label(root, path, driver, sizeof driver);
    return !strcmp(governor, "userspace") ||
           (!strcmp(governor, "powersave") && strncmp(driver, "intel_pstate", 12) != 0 &&
            strncmp(driver, "amd-pstate", 10) != 0);
}

static int check_governor(const struct nrg_root *root, struct nrg_diagnosis *out)
{
    struct nrg_names names;
    char first[32] = "", path[128], governor[32], fix[NRG_FIX_BYTES];
    bool differ = false, down = false;
    if (nrg_root_list(root, CPUFREQ, &names))
        return 0;
    for (size_t i = 0; i < names.n; i++) {
        snprintf(path, sizeof path, CPUFREQ "/%.32s/scaling_governor", names.items[i]);
        if (strncmp(names.items[i], "policy", 6) ||
            nrg_root_read_label(root, path, governor, sizeof governor))
            continue;
        differ |= first[0] && strcmp(first, governor) != 0;
        down |= holds_down(root, names.items[i], governor);
        nrg_copy(first, sizeof first, governor);
    }
    nrg_names_release(&names);
    if (differ || down)
        return nrg_findings_add(&out->problems, "governor", nrg_fixes(root, NRG_GOVERNOR_ODD, fix),
                                differ ? "processors have different ones (one is %s): what a "
                                         "program costs depends on where it runs"
                                       : "%s holds the processors at one clock: energies are not "
                                         "those of normal use",
                                first);
    if (first[0] && strcmp(first, "performance") != 0)
        return nrg_findings_add(&out->notes, "governor", "",
                                "%s changes the clock with the load; runs that are compared should "
                                "be equally long and warm",
                                first);
    return 0;
}

static int check_place(const struct nrg_root *root, struct nrg_diagnosis *out)
{
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv",
                                        "/run/systemd/container"};
    struct nrg_cpu_model cpu;
    char maker[64] = "";
    int rc = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (nrg_root_exists(root, marks[i])) {
            rc = nrg_findings_add(&out->notes, "container", "",
                                  "%s says so: some sensors are hidden (docs/containers.md)",
                                  marks[i]);
            break;
        }
    if (!rc && !nrg_cpu_model_identify(root, &cpu) && cpu.virtual_machine) {
        nrg_root_read_label(root, "/sys/class/dmi/id/sys_vendor", maker, sizeof maker);
        rc = nrg_findings_add(&out->notes, "virtual machine", "",
                              "%s%sonly its host can measure energy; CPU time that the host takes "
                              "away is cpu.steal",
                              maker, maker[0] ? ": " : "");
    }
    return rc;
}

static int check_paranoid(const struct nrg_root *root, struct nrg_diagnosis *out)
{
    int64_t level;
    if (nrg_root_read_i64(root, "/proc/sys/kernel/perf_event_paranoid", &level) || level < 3)
        return 0;
    return nrg_findings_add(&out->notes, "kernel.perf_event_paranoid", "",
                            "%lld is a level of Debian's and Ubuntu's kernels: they ask for "
                            "CAP_SYS_ADMIN, CAP_PERFMON alone does nothing",
                            (long long)level);
}

static int check_profilers(const struct nrg_root *root, struct nrg_diagnosis *out)
{
    static const char *const known[] = {
        "perf",  "turbostat",  "powertop", "powerstat",      "scaphandre",    "kepler",
        "zeusd", "codecarbon", "pcm",      "likwid-perfctr", "tegrastats",    "nsys",
        "ncu",   "vtune",      "jtop",     "nv-hostengine",  "dcgm-exporter", "ceems_exporter"};
    struct nrg_names names;
    int rc = 0;
    if (nrg_root_list(root, "/proc", &names))
        return 0;
    for (size_t i = 0; !rc && i < names.n; i++) {
        char path[64], name[32];
        snprintf(path, sizeof path, "/proc/%.20s/comm", names.items[i]);
        if (names.items[i][0] < '1' || names.items[i][0] > '9' ||
            nrg_root_read_label(root, path, name, sizeof name))
            continue;
        for (size_t k = 0; !rc && k < sizeof known / sizeof *known; k++)
            if (!strcmp(name, known[k]))
                rc = nrg_findings_add(&out->notes, "another profiler", "",
                                      "%s runs (process %s): what it costs is measured, too", name,
                                      names.items[i]);
    }
    nrg_names_release(&names);
    return rc;
}

/* The folder in which nrg run would write now. */
static int check_disk(const struct nrg_root *root, struct nrg_diagnosis *out)
{
    struct statvfs disk;
    char fix[NRG_FIX_BYTES];
    if (!nrg_root_is_live(root) || statvfs(".", &disk))
        return 0;
    double free_mb = (double)disk.f_bavail * (double)disk.f_frsize / 1e6;
    if (disk.f_flag & ST_RDONLY || faccessat(AT_FDCWD, ".", W_OK, AT_EACCESS))
        return nrg_findings_add(&out->problems, "this folder",
                                nrg_fixes(root, NRG_DISK_CLOSED, fix),
                                "can't be written: nrg run puts its recording here unless -o says "
                                "where to");
    if (free_mb < LEAST_FREE_MB)
        return nrg_findings_add(&out->problems, "disk", nrg_fixes(root, NRG_DISK_SMALL, fix),
                                "only %.0f MB are free in this folder, where nrg run puts its "
                                "recording unless -o says where to",
                                free_mb);
    return 0;
}

int nrg_diagnose_surroundings(const struct nrg_context *ctx, struct nrg_diagnosis *out)
{
    int (*const checks[])(const struct nrg_root *, struct nrg_diagnosis *) = {
        check_file_systems, check_clock,     check_governor, check_place,
        check_paranoid,     check_profilers, check_disk};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof checks / sizeof *checks; i++)
        rc = checks[i](&ctx->root, out);
    return rc;
}
