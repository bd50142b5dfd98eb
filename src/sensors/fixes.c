/*
 * See fixes.h. Facts behind the conditions:
 *   - RAPL is Intel's and, since family 17h, AMD's. A virtual machine has none of its own.
 *   - CAP_PERFMON lets perf read energy up to kernel.perf_event_paranoid 2. Debian's and Ubuntu's
 *     kernels know a level 3, at which they ask for CAP_SYS_ADMIN instead.
 *   - A program with file capabilities starts in secure mode: it and all that it starts lose
 *     LD_LIBRARY_PATH, LD_PRELOAD and TMPDIR, and libraries beside it are not found, so that one in
 *     its build folder may not start any more. A second setcap replaces the first: all that nrg can
 *     use stand in one line.
 *   - Whoever can write a program, or a folder or link on the way to it, has its capabilities. So
 *     here they are given to the file that runs now, by its path, where root alone can write; which
 *     nrg a shell would find is asked only on another machine, whose captured tree is looked at.
 *   - nrgd gives a group what needs no capability on the program at all, so it comes first, where
 *     systemd can start it.
 */
#include "sensors/fixes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/machine/cpu_model.h"
#include "sensors/own_program.h"

#define CLOCKS "/sys/devices/system/clocksource/clocksource0"

struct machine {
    bool rapl; /* the processor may have it */
    bool virtual_machine;
    bool container;
    bool installed;     /* nrg does not run from its build folder */
    bool closed;        /* only root can put another program in its place */
    bool powercap, pmu; /* another way to RAPL that is there */
    bool daemon;        /* nrgd's socket */
    bool daemon_unit;   /* its unit is installed, but nobody listens */
    bool systemd, apt;
    bool tsc;         /* among the clocks that the kernel offers */
    int64_t paranoid; /* -1: not known */
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

static bool takes_capability(const struct machine *m)
{
    return !m->container && m->installed && m->closed;
}

static bool is_open_place(const struct machine *m)
{
    return !m->container && m->installed && !m->closed;
}

static bool takes_perfmon(const struct machine *m)
{
    return takes_capability(m) && m->paranoid >= 0 && m->paranoid <= 2;
}

static bool refuses_perfmon(const struct machine *m)
{
    return takes_capability(m) && m->paranoid > 2;
}

static bool is_strict_container(const struct machine *m)
{
    return m->container && m->paranoid > 2;
}

static bool is_build_folder(const struct machine *m)
{
    return !m->container && !m->installed;
}

static bool has_daemon(const struct machine *m)
{
    return m->daemon;
}

static bool may_start_daemon(const struct machine *m)
{
    return !m->container && !m->daemon && m->daemon_unit && m->systemd;
}

static bool may_install_daemon(const struct machine *m)
{
    return !m->container && !m->daemon && !m->daemon_unit && m->systemd && m->apt;
}

static bool may_build_daemon(const struct machine *m)
{
    return !m->container && !m->daemon && !m->daemon_unit && m->systemd && !m->apt;
}

static bool always(const struct machine *m)
{
    (void)m;
    return true;
}

static bool has_tsc(const struct machine *m)
{
    return m->tsc;
}

static bool lacks_tsc(const struct machine *m)
{
    return !m->tsc;
}

#define THE_PROGRAM  "\"$(command -v nrg)\"" /* on this machine its path is known: put_program */
#define SETCAP(list) "sudo setcap " list "=ep " THE_PROGRAM
#define SECURE       "nrg and what it starts then lose LD_LIBRARY_PATH, LD_PRELOAD and TMPDIR"
#define ENERGY_FILES "/sys/class/powercap/intel-rapl*:*/energy_uj"
#define GOVERNORS    "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
#define JOIN         "sudo usermod -aG nrg \"$USER\""
#define LOG_IN       "and log in again"
#define BY_DAEMON    "for members of group nrg, through nrgd"
#define THROUGH(problem)                                                                           \
    {problem,                                                                                      \
     has_daemon,                                                                                   \
     {"nrgd reads it: see its channels, or what it lacks", NULL, NULL, false, NRG_HARM_DAEMON}},   \
        {problem,                                                                                  \
         may_start_daemon,                                                                         \
         {BY_DAEMON, "sudo systemctl enable --now nrgd.socket && " JOIN, LOG_IN, false,            \
          NRG_HARM_DAEMON}},                                                                       \
        {problem,                                                                                  \
         may_install_daemon,                                                                       \
         {BY_DAEMON, "sudo apt install nrgd && " JOIN, "nrg's own package; " LOG_IN, false,        \
          NRG_HARM_DAEMON}},                                                                       \
    {                                                                                              \
        problem, may_build_daemon,                                                                 \
        {                                                                                          \
            BY_DAEMON ": install nrgd (docs/nrgd.md)", NULL, NULL, false, NRG_HARM_DAEMON          \
        }                                                                                          \
    }

/* The last word of a remedy: tests/cli/test_doctor.py runs it as root in a namespace, and the
 * sensor can be read by the user afterwards (or the setting is another). */
static const struct row {
    enum nrg_problem problem;
    bool (*holds)(const struct machine *);
    struct nrg_fix fix;
} rows[] = {
    {NRG_RAPL_ABSENT,
     is_bare,
     {NULL, "sudo modprobe intel_rapl_msr", "also for AMD Zen", false, NRG_HARM_SETTING}},
    {NRG_RAPL_ABSENT,
     is_bare_container,
     {"start the container with -v "
      "/sys/devices/virtual/powercap:/sys/devices/virtual/powercap:ro, or run nrg on the host",
      NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_RAPL_ABSENT,
     is_bare_container,
     {"or, where nrgd runs on the host, with -v /run/nrg:/run/nrg", NULL, NULL, false,
      NRG_HARM_SETTING}},
    {NRG_RAPL_ABSENT,
     is_guest,
     {"in a virtual machine the host keeps it: only the host can measure", NULL, NULL, false,
      NRG_HARM_SETTING}},
    {NRG_RAPL_ABSENT,
     has_no_rapl,
     {"this processor has no RAPL: sensors of its board, if any, are listed above; else a meter at "
      "the plug (--meter)",
      NULL, NULL, false, NRG_HARM_SETTING}},

    THROUGH(NRG_RAPL_DENIED),
    {NRG_RAPL_DENIED,
     is_host,
     {"for your group, until the next boot",
      "sudo chgrp \"$(id -gn)\" " ENERGY_FILES " && sudo chmod g+r " ENERGY_FILES, NULL, true,
      NRG_HARM_GROUP}},
    {NRG_RAPL_DENIED,
     is_host,
     {"for members of a group nrg, for good",
      "sudo groupadd -rf nrg && " JOIN " && echo 'SUBSYSTEM==\"powercap\", ACTION==\"add\", "
      "RUN+=\"/bin/chgrp nrg /sys%p/energy_uj\", RUN+=\"/bin/chmod g+r /sys%p/energy_uj\"' | sudo "
      "tee /etc/udev/rules.d/70-nrg.rules && sudo udevadm control --reload && sudo udevadm trigger "
      "-c add -s powercap",
      LOG_IN, false, NRG_HARM_GROUP}},
    {NRG_RAPL_DENIED,
     is_container,
     {"run as root in the container, or let the host's administrator open the files (chmod)", NULL,
      NULL, false, NRG_HARM_SETTING}},
    {NRG_RAPL_DENIED,
     has_pmu,
     {"or without these files: see RAPL through perf", NULL, NULL, false, NRG_HARM_SETTING}},

    {NRG_PMU_ABSENT, is_bare, {NULL, "sudo modprobe rapl", NULL, false, NRG_HARM_SETTING}},

    {NRG_PERF_DENIED,
     is_container,
     {"start the container with --cap-add PERFMON", NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_PERF_DENIED,
     is_strict_container,
     {"and on the host:  sudo sysctl -w kernel.perf_event_paranoid=2", NULL,
      "above, Debian's kernels refuse PERFMON", false, NRG_HARM_SETTING}},
    THROUGH(NRG_PERF_DENIED),
    {NRG_PERF_DENIED,
     has_powercap,
     {"with less harm: see RAPL through powercap", NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_PERF_DENIED,
     takes_perfmon,
     {"for nrg alone", SETCAP("cap_perfmon,cap_net_admin"), SECURE, false, NRG_HARM_CAPABILITY}},
    {NRG_PERF_DENIED,
     refuses_perfmon,
     {"for nrg alone",
      "sudo sysctl -w kernel.perf_event_paranoid=2 && " SETCAP("cap_perfmon,cap_net_admin"),
      SECURE "; above 2, Debian's kernels refuse the capability", false, NRG_HARM_CAPABILITY}},
    {NRG_PERF_DENIED,
     is_build_folder,
     {"for nrg alone: install it first (capabilities stop a program in its build folder)", NULL,
      NULL, false, NRG_HARM_SETTING}},
    {NRG_PERF_DENIED,
     is_open_place,
     {"for nrg alone: install it where root alone can write (others can replace this one, and "
      "would "
      "have its capabilities)",
      NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_PERF_DENIED,
     is_host,
     {"for everybody, until the next boot", "sudo sysctl -w kernel.perf_event_paranoid=0", NULL,
      false, NRG_HARM_EVERYBODY}},
    {NRG_PERF_DENIED,
     is_host,
     {"for everybody, for good",
      "echo 'kernel.perf_event_paranoid = 0' | sudo tee "
      "/etc/sysctl.d/70-nrg.conf && sudo sysctl --system",
      NULL, false, NRG_HARM_EVERYBODY}},

    {NRG_MSR_ABSENT,
     is_bare,
     {NULL, "sudo modprobe msr", "perf and powercap need less", false, NRG_HARM_SETTING}},

    {NRG_MSR_DENIED,
     has_powercap,
     {"with less harm: see RAPL through powercap", NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_MSR_DENIED,
     has_pmu,
     {"with less harm: see RAPL through perf", NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_MSR_DENIED,
     takes_capability,
     {"else, until the next boot",
      "sudo chgrp \"$(id -gn)\" /dev/cpu/*/msr && sudo chmod g+r "
      "/dev/cpu/*/msr && " SETCAP("cap_sys_rawio,cap_perfmon,cap_net_admin"),
      SECURE, false, NRG_HARM_CAPABILITY}},

    {NRG_BMC_ABSENT,
     is_host,
     {NULL, "sudo modprobe -a ipmi_si ipmi_devintf", NULL, false, NRG_HARM_SETTING}},
    {NRG_BMC_ABSENT,
     is_container,
     {"run nrg on the host: the device would let the container switch the machine off", NULL, NULL,
      false, NRG_HARM_SETTING}},
    THROUGH(NRG_BMC_DENIED),
    {NRG_BMC_DENIED,
     is_host,
     {"nrgd needs nrgd-dcmi.conf for it (docs/nrgd.md)", NULL, NULL, false, NRG_HARM_SETTING}},
    /* No command, so that nrg doctor --fix never does it. */
    {NRG_BMC_DENIED,
     is_host,
     {"for your group, who can then also switch the machine off, until the next boot:  sudo chgrp "
      "\"$(id -gn)\" /dev/ipmi0 && sudo chmod g+r /dev/ipmi0",
      NULL, NULL, false, NRG_HARM_GROUP}},
    {NRG_BMC_DENIED,
     is_container,
     {"run nrg on the host: the device would let the container switch the machine off", NULL, NULL,
      false, NRG_HARM_SETTING}},

    {NRG_CONNECTOR_DENIED,
     takes_perfmon,
     {NULL, SETCAP("cap_perfmon,cap_net_admin"), SECURE, false, NRG_HARM_CAPABILITY}},
    {NRG_CONNECTOR_DENIED,
     refuses_perfmon,
     {NULL, SETCAP("cap_net_admin"), SECURE, false, NRG_HARM_CAPABILITY}},
    {NRG_CONNECTOR_DENIED,
     is_host,
     {"until then their CPU time is known in sum, from what their parents were told", NULL, NULL,
      false, NRG_HARM_SETTING}},

    {NRG_DAEMON_SILENT,
     always,
     {NULL, "sudo systemctl restart nrgd.socket", "journalctl -u nrgd says what went wrong", false,
      NRG_HARM_DAEMON}},
    {NRG_DAEMON_COARSE, always, {NULL, JOIN, LOG_IN, true, NRG_HARM_DAEMON}},
    /* No command: newgrp starts a shell, for which nrg doctor --fix would wait. */
    {NRG_DAEMON_LOGIN,
     always,
     {"log in again, or for this terminal:  newgrp nrg", NULL, NULL, false, NRG_HARM_DAEMON}},
    {NRG_DAEMON_OTHER,
     always,
     {NULL, "sudo systemctl restart nrgd.socket", "and install nrg and nrgd of one version", false,
      NRG_HARM_DAEMON}},

    {NRG_SYS_ABSENT,
     is_host,
     {NULL, "sudo mount -t sysfs sysfs /sys", NULL, true, NRG_HARM_SETTING}},
    {NRG_SYS_ABSENT,
     is_container,
     {"let the container have /sys, read-only: -v /sys:/sys:ro", NULL, NULL, false,
      NRG_HARM_SETTING}},
    {NRG_PROC_ABSENT,
     always,
     {NULL, "sudo mount -t proc proc /proc", NULL, true, NRG_HARM_SETTING}},
    {NRG_CLOCK_SLOW,
     has_tsc,
     {"until the next boot", "echo tsc | sudo tee " CLOCKS "/current_clocksource", NULL, true,
      NRG_HARM_SETTING}},
    {NRG_CLOCK_SLOW,
     lacks_tsc,
     {"the kernel found no better clock (sudo dmesg | grep -i clocksource says why): leave --rate "
      "at 100 Hz or below",
      NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_GOVERNOR_ODD,
     is_host,
     {"until the next boot", "echo performance | sudo tee " GOVERNORS, "more power when idle", true,
      NRG_HARM_SETTING}},
    {NRG_DISK_SMALL,
     always,
     {"record elsewhere: nrg run -o FOLDER/run.nrg", NULL, NULL, false, NRG_HARM_SETTING}},
    {NRG_DISK_CLOSED,
     always,
     {"record elsewhere: nrg run -o FOLDER/run.nrg", NULL, NULL, false, NRG_HARM_SETTING}},
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* The command as it is to be run here: with the path of the program that runs now. */
static int put_program(const char *command, char *buf, size_t size)
{
    char path[PATH_MAX];
    const char *at = command ? strstr(command, THE_PROGRAM) : NULL;
    nrg_program_path(path);
    int n = at ? snprintf(buf, size, "%.*s%s%s", (int)(at - command), command, path,
                          at + strlen(THE_PROGRAM))
               : snprintf(buf, size, "%s", command ? command : "");
    return n < (int)size ? 0 : -ENAMETOOLONG;
}

static bool has_unit(const struct nrg_root *root)
{
    return nrg_root_exists(root, "/usr/lib/systemd/system/nrgd.socket") ||
           nrg_root_exists(root, "/lib/systemd/system/nrgd.socket") ||
           nrg_root_exists(root, "/usr/local/lib/systemd/system/nrgd.socket") ||
           nrg_root_exists(root, "/etc/systemd/system/nrgd.socket");
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
        .installed = nrg_program_is_installed(),
        .closed = !nrg_root_is_live(root) || nrg_program_is_closed(),
        .powercap = nrg_root_exists(root, "/sys/class/powercap/intel-rapl:0"),
        .pmu = nrg_root_exists(root, "/sys/bus/event_source/devices/power/events/energy-pkg"),
        .daemon = nrg_root_exists(root, NRG_DAEMON_SOCKET),
        .daemon_unit = has_unit(root),
        .systemd = nrg_root_exists(root, "/run/systemd/system"),
        .apt = nrg_root_exists(root, "/etc/debian_version")};
    char clocks[128];
    m->tsc = nrg_root_read(root, CLOCKS "/available_clocksource", clocks, sizeof clocks) > 0 &&
             strstr(clocks, "tsc");
    if (nrg_root_read_i64(root, "/proc/sys/kernel/perf_event_paranoid", &m->paranoid))
        m->paranoid = -1;
}

size_t nrg_fix_line(const struct nrg_fix *fix, char *buf, size_t size)
{
    const char *words = fix->words ? fix->words : "", *command = fix->command ? fix->command : "";
    const char *remark = fix->remark ? fix->remark : "";
    return (size_t)snprintf(buf, size, "%s%s%s%s%s%s", words, words[0] && command[0] ? ":  " : "",
                            command, remark[0] ? "   (" : "", remark, remark[0] ? ")" : "");
}

size_t nrg_fixes_list(const struct nrg_root *root, enum nrg_problem problem, struct nrg_fix *out,
                      size_t max)
{
    struct machine m;
    size_t n = 0;
    look_at(root, &m);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].problem != problem || !rows[i].holds(&m))
            continue;
        if (n < max)
            out[n] = rows[i].fix;
        n++;
    }
    return n;
}

const char *nrg_fixes(const struct nrg_root *root, enum nrg_problem problem,
                      char buf[NRG_FIX_BYTES])
{
    struct nrg_fix list[N_ROWS];
    size_t len = 0, n = nrg_fixes_list(root, problem, list, N_ROWS);
    buf[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char line[NRG_FIX_BYTES], command[NRG_FIX_BYTES];
        if (nrg_root_is_live(root)) {
            if (put_program(list[i].command, command, sizeof command))
                continue;
            list[i].command = command;
        }
        if (len + nrg_fix_line(&list[i], line, sizeof line) + 2 > NRG_FIX_BYTES)
            continue;
        len += (size_t)snprintf(buf + len, NRG_FIX_BYTES - len, "%s%s", len ? "\n" : "", line);
    }
    return buf;
}

#define UNTIL_BOOT "for your group, until the next boot"

const char *nrg_fix_file(const char *path, char buf[NRG_FIX_BYTES])
{
    buf[0] = '\0';
    if (!nrg_is_plain_path(path) || 2 * strlen(path) + 100 > NRG_FIX_BYTES)
        return buf; /* a shell would take it for something else */
    snprintf(buf, NRG_FIX_BYTES, UNTIL_BOOT ":  sudo chgrp \"$(id -gn)\" %s && sudo chmod g+r %s",
             path, path);
    return buf;
}

const char *nrg_fix_file_command(const char *line)
{
    size_t len = strlen(UNTIL_BOOT ":  ");
    return strncmp(line, UNTIL_BOOT ":  sudo chgrp ", len + strlen("sudo chgrp ")) ? NULL
                                                                                   : line + len;
}

static bool is_line(const char *line, size_t len, const struct nrg_fix *fix)
{
    char known[NRG_FIX_BYTES];
    return nrg_fix_line(fix, known, sizeof known) == len && len < sizeof known &&
           !memcmp(known, line, len);
}

bool nrg_fix_find(const char *line, size_t len, struct nrg_fix *fix)
{
    char command[NRG_FIX_BYTES];
    for (size_t i = 0; i < N_ROWS; i++) {
        *fix = rows[i].fix;
        struct nrg_fix here = *fix;
        here.command = put_program(fix->command, command, sizeof command) ? NULL : command;
        if (is_line(line, len, fix) || (here.command && is_line(line, len, &here)))
            return true;
    }
    return false;
}

int nrg_fix_command(const struct nrg_fix *fix, char *buf, size_t size)
{
    int rc = put_program(fix->command, buf, size);
    if (rc)
        buf[0] = '\0';
    return rc;
}
