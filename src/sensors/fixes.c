/*
 * See fixes.h. Facts behind the conditions:
 *   - RAPL is Intel's and, since family 17h, AMD's. A virtual machine has none of its own.
 *   - CAP_PERFMON lets perf read energy up to kernel.perf_event_paranoid 2. Debian's and Ubuntu's
 *     kernels know a level 3, at which they ask for CAP_SYS_ADMIN instead.
 *   - A program with file capabilities starts in secure mode: it and all that it starts lose
 *     LD_LIBRARY_PATH, LD_PRELOAD and TMPDIR, and libraries beside it are not found, so that one in
 *     its build folder may not start any more. A second setcap replaces the first: all that nrg can
 *     use stand in one line.
 */
#include "sensors/fixes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sensors/machine/cpu_model.h"

struct machine {
    bool rapl; /* the processor may have it */
    bool virtual_machine;
    bool container;
    bool installed;     /* nrg does not run from its build folder */
    bool powercap, pmu; /* another way to RAPL that is there */
    int64_t paranoid;   /* -1: not known */
};

static bool is_bare(const struct machine *m)
{
    return m->rapl && !m->virtual_machine && !m->container;
}

static bool is_guest(const struct machine *m)
{
    return m->virtual_machine;
}

static bool is_container(const struct machine *m)
{
    return m->container;
}

static bool is_bare_container(const struct machine *m)
{
    return m->container && m->rapl && !m->virtual_machine;
}

static bool has_no_rapl(const struct machine *m)
{
    return !m->rapl;
}

static bool is_host(const struct machine *m)
{
    return !m->container;
}

static bool has_powercap(const struct machine *m)
{
    return m->powercap;
}

static bool has_pmu(const struct machine *m)
{
    return m->pmu;
}

static bool takes_perfmon(const struct machine *m)
{
    return !m->container && m->installed && m->paranoid >= 0 && m->paranoid <= 2;
}

static bool refuses_perfmon(const struct machine *m)
{
    return !m->container && m->installed && m->paranoid > 2;
}

static bool is_strict_container(const struct machine *m)
{
    return m->container && m->paranoid > 2;
}

static bool takes_capability(const struct machine *m)
{
    return !m->container && m->installed;
}

static bool is_build_folder(const struct machine *m)
{
    return !m->container && !m->installed;
}

#define SETCAP(list) "sudo setcap " list "=ep \"$(command -v nrg)\""
#define SECURE       "   (nrg and what it starts then lose LD_LIBRARY_PATH, LD_PRELOAD and TMPDIR)"
#define ENERGY_FILES "/sys/class/powercap/intel-rapl*:*/energy_uj"

static const struct fix {
    enum nrg_problem problem;
    bool (*holds)(const struct machine *);
    const char *text;
} fixes[] = {
    {NRG_RAPL_ABSENT, is_bare, "sudo modprobe intel_rapl_msr   (also for AMD Zen)"},
    {NRG_RAPL_ABSENT, is_bare_container,
     "start the container with -v "
     "/sys/devices/virtual/powercap:/sys/devices/virtual/powercap:ro, or run nrg on the host"},
    {NRG_RAPL_ABSENT, is_guest,
     "in a virtual machine the host keeps it: only the host can measure"},
    {NRG_RAPL_ABSENT, has_no_rapl,
     "this processor has no RAPL: sensors of its board, if any, are listed above; else a meter at "
     "the plug (--meter)"},

    {NRG_RAPL_DENIED, is_host,
     "for your group, until the next boot:  sudo chgrp \"$(id -gn)\" " ENERGY_FILES
     " && sudo chmod g+r " ENERGY_FILES},
    {NRG_RAPL_DENIED, is_host,
     "for members of a group nrg, for good:  sudo groupadd -rf nrg && sudo usermod -aG nrg "
     "\"$USER\" && echo 'SUBSYSTEM==\"powercap\", ACTION==\"add\", "
     "RUN+=\"/bin/chgrp nrg /sys%p/energy_uj\", RUN+=\"/bin/chmod g+r /sys%p/energy_uj\"' | sudo "
     "tee /etc/udev/rules.d/70-nrg.rules && sudo udevadm control --reload && sudo udevadm trigger "
     "-c add -s powercap   (and log in again)"},
    {NRG_RAPL_DENIED, is_container,
     "run as root in the container, or let the host's administrator open the files (chmod)"},
    {NRG_RAPL_DENIED, has_pmu, "or without these files: see RAPL through perf"},

    {NRG_PMU_ABSENT, is_bare, "sudo modprobe rapl"},

    {NRG_PERF_DENIED, is_container, "start the container with --cap-add PERFMON"},
    {NRG_PERF_DENIED, is_strict_container,
     "and on the host:  sudo sysctl -w kernel.perf_event_paranoid=2   (above, Debian's kernels "
     "refuse PERFMON)"},
    {NRG_PERF_DENIED, has_powercap, "with less harm: see RAPL through powercap"},
    {NRG_PERF_DENIED, takes_perfmon, "for nrg alone:  " SETCAP("cap_perfmon,cap_net_admin") SECURE},
    {NRG_PERF_DENIED, refuses_perfmon,
     "for nrg alone:  sudo sysctl -w kernel.perf_event_paranoid=2 && " SETCAP(
         "cap_perfmon,cap_net_admin") SECURE "; above 2, Debian's kernels refuse the capability"},
    {NRG_PERF_DENIED, is_build_folder,
     "for nrg alone: install it first (capabilities stop a program in its build folder)"},
    {NRG_PERF_DENIED, is_host,
     "for everybody, until the next boot:  sudo sysctl -w kernel.perf_event_paranoid=0"},
    {NRG_PERF_DENIED, is_host,
     "for everybody, for good:  echo 'kernel.perf_event_paranoid = 0' | sudo tee "
     "/etc/sysctl.d/70-nrg.conf && sudo sysctl --system"},

    {NRG_MSR_ABSENT, is_bare, "sudo modprobe msr   (perf and powercap need less)"},

    {NRG_MSR_DENIED, has_powercap, "with less harm: see RAPL through powercap"},
    {NRG_MSR_DENIED, has_pmu, "with less harm: see RAPL through perf"},
    {NRG_MSR_DENIED, takes_capability,
     "else, until the next boot:  sudo chgrp \"$(id -gn)\" /dev/cpu/*/msr && sudo chmod g+r "
     "/dev/cpu/*/msr && " SETCAP("cap_sys_rawio,cap_perfmon,cap_net_admin") SECURE},

    {NRG_CONNECTOR_DENIED, takes_perfmon, SETCAP("cap_perfmon,cap_net_admin") SECURE},
    {NRG_CONNECTOR_DENIED, refuses_perfmon, SETCAP("cap_net_admin") SECURE},
    {NRG_CONNECTOR_DENIED, is_host,
     "until then their CPU time is known in sum, from what their parents were told"},
};

/* A build folder has the file that it is built by. */
static bool runs_installed(void)
{
    char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return true;
    strcpy(slash, "/build.ninja");
    return access(path, F_OK) != 0;
}

static void look_at(const struct nrg_root *root, struct machine *m)
{
    struct nrg_cpu_model cpu;
    bool known = nrg_root_is_one_machine(root, NRG_PART_PROC | NRG_PART_SYS) &&
                 !nrg_cpu_model_identify(root, &cpu);
    enum nrg_cpu_vendor vendor = known ? nrg_cpu_vendor_of(&cpu) : NRG_VENDOR_OTHER;
    *m = (struct machine){
        .rapl = !known || vendor == NRG_VENDOR_INTEL ||
                (vendor == NRG_VENDOR_AMD && cpu.family >= 0x17),
        .virtual_machine = known && cpu.virtual_machine,
        .container =
            nrg_root_exists(root, "/.dockerenv") || nrg_root_exists(root, "/run/.containerenv"),
        .installed = runs_installed(),
        .powercap = nrg_root_exists(root, "/sys/class/powercap/intel-rapl:0"),
        .pmu = nrg_root_exists(root, "/sys/bus/event_source/devices/power/events/energy-pkg")};
    if (nrg_root_read_i64(root, "/proc/sys/kernel/perf_event_paranoid", &m->paranoid))
        m->paranoid = -1;
}

const char *nrg_fixes(const struct nrg_root *root, enum nrg_problem problem,
                      char buf[NRG_FIX_BYTES])
{
    struct machine m;
    size_t len = 0;
    look_at(root, &m);
    buf[0] = '\0';
    for (size_t i = 0; i < sizeof fixes / sizeof *fixes; i++) {
        if (fixes[i].problem != problem || !fixes[i].holds(&m) ||
            len + strlen(fixes[i].text) + 2 > NRG_FIX_BYTES)
            continue;
        len += (size_t)snprintf(buf + len, NRG_FIX_BYTES - len, "%s%s", len ? "\n" : "",
                                fixes[i].text);
    }
    return buf;
}

const char *nrg_fix_file(const char *path, char buf[NRG_FIX_BYTES])
{
    snprintf(buf, NRG_FIX_BYTES, "until the next boot:  sudo chmod a+r %s", path);
    return buf;
}
