/* Advice must be true on the machine at hand: what each kind of machine is told, and what not. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <string.h>

#include "sensors/fixes.h"

#define INTEL    "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nflags\t\t: fpu"
#define OLD_AMD  "vendor_id\t: AuthenticAMD\ncpu family\t: 21\nmodel\t\t: 2\nflags\t\t: fpu"
#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

static char fix[NRG_FIX_BYTES];

static bool advises(const struct tree *t, enum nrg_problem problem, const char *what)
{
    return strstr(nrg_fixes(&t->ctx.root, problem, fix), what) != NULL;
}

static void modules_only_where_they_help(void **state)
{
    static const struct {
        const char *cpuinfo;
        bool helps;
    } cases[] = {{INTEL "\n", true},
                 {INTEL " hypervisor\n", false},
                 {OLD_AMD "\n", false},
                 {"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree t;
        tree_init(&t);
        tree_write(&t, "/proc/cpuinfo", "%s", cases[i].cpuinfo);
        assert_int_equal(advises(&t, NRG_RAPL_ABSENT, "modprobe"), cases[i].helps);
        assert_int_equal(advises(&t, NRG_PMU_ABSENT, "modprobe"), cases[i].helps);
        assert_int_equal(advises(&t, NRG_MSR_ABSENT, "modprobe"), cases[i].helps);
        assert_true(nrg_fixes(&t.ctx.root, NRG_RAPL_ABSENT, fix)[0]);
        tree_release(&t);
    }
}

/* A second setcap replaces the first: every line has all that nrg can use. */
static void capabilities_by_the_level_of_perf(void **state)
{
    struct tree t;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/cpuinfo", INTEL "\n");
    tree_write(&t, PARANOID, "2\n");
    assert_true(advises(&t, NRG_PERF_DENIED, "setcap cap_perfmon,cap_net_admin=ep"));
    assert_false(advises(&t, NRG_PERF_DENIED, "perf_event_paranoid=2"));
    assert_non_null(strstr(fix, "LD_LIBRARY_PATH"));
    assert_true(advises(&t, NRG_CONNECTOR_DENIED, "setcap cap_perfmon,cap_net_admin=ep"));
    tree_write(&t, PARANOID, "3\n"); /* Debian's own level */
    assert_true(
        advises(&t, NRG_PERF_DENIED, "sysctl -w kernel.perf_event_paranoid=2 && sudo setcap"));
    assert_true(advises(&t, NRG_CONNECTOR_DENIED, "setcap cap_net_admin=ep"));
    tree_remove(&t, PARANOID); /* not known: nothing is promised */
    assert_false(advises(&t, NRG_PERF_DENIED, "setcap"));
    tree_release(&t);
}

static void least_harm_comes_first(void **state)
{
    struct tree t;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/cpuinfo", INTEL "\n");
    tree_write(&t, PARANOID, "2\n");
    tree_write(&t, "/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    nrg_fixes(&t.ctx.root, NRG_PERF_DENIED, fix);
    const char *files = strstr(fix, "powercap"), *capability = strstr(fix, "setcap"),
               *everybody = strstr(fix, "paranoid=0");
    assert_true(files && capability && everybody);
    assert_true(files < capability && capability < everybody);
    nrg_fixes(&t.ctx.root, NRG_RAPL_DENIED, fix);
    assert_non_null(strstr(fix, "groupadd -rf nrg"));
    assert_null(strstr(fix, "chmod a+r")); /* counters tell something about others' data */
    tree_release(&t);
}

static void containers_are_told_about_the_container(void **state)
{
    struct tree t;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/cpuinfo", INTEL "\n");
    tree_write(&t, PARANOID, "2\n");
    tree_write(&t, "/.dockerenv", "%s", "");
    assert_true(advises(&t, NRG_PERF_DENIED, "--cap-add PERFMON"));
    assert_false(advises(&t, NRG_PERF_DENIED, "sudo"));
    tree_write(&t, PARANOID, "4\n");
    assert_true(advises(&t, NRG_PERF_DENIED, "on the host:  sudo sysctl"));
    assert_false(advises(&t, NRG_RAPL_ABSENT, "modprobe"));
    assert_true(advises(&t, NRG_RAPL_ABSENT, "-v /sys/devices/virtual/powercap"));
    tree_release(&t);
}

/* nrgd needs no capability on the program: where systemd can start it, it is the first advice. */
static void the_daemon_comes_first(void **state)
{
    struct tree t;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/cpuinfo", INTEL "\n");
    tree_write(&t, PARANOID, "2\n");
    assert_false(advises(&t, NRG_RAPL_DENIED, "nrgd"));
    tree_write(&t, "/run/systemd/system/x", "%s", "");
    nrg_fixes(&t.ctx.root, NRG_PERF_DENIED, fix);
    assert_true(strstr(fix, "install nrgd") && strstr(fix, "install nrgd") < strstr(fix, "setcap"));
    tree_write(&t, "/etc/debian_version", "12.11\n");
    nrg_fixes(&t.ctx.root, NRG_RAPL_DENIED, fix);
    assert_ptr_equal(strstr(fix, "for members of group nrg, through nrgd:  sudo apt install nrgd"),
                     fix);
    tree_write(&t, "/usr/lib/systemd/system/nrgd.socket", "%s", "");
    assert_true(advises(&t, NRG_RAPL_DENIED, "sudo systemctl enable --now nrgd.socket"));
    assert_false(advises(&t, NRG_RAPL_DENIED, "apt install"));
    tree_write(&t, "/run/nrg/nrgd.sock", "%s", "");
    assert_false(advises(&t, NRG_RAPL_DENIED, "systemctl"));
    tree_release(&t);
}

/* What a driver prints is found again in the table, with its command alone. */
static void lines_are_remedies(void **state)
{
    struct tree t;
    struct nrg_fix found;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/cpuinfo", INTEL "\n");
    tree_write(&t, PARANOID, "2\n");
    nrg_fixes(&t.ctx.root, NRG_RAPL_DENIED, fix);
    size_t len = strcspn(fix, "\n");
    assert_true(nrg_fix_find(fix, len, &found));
    assert_int_equal(strncmp(found.command, "sudo chgrp", 10), 0);
    assert_true(found.tried);
    assert_false(nrg_fix_find(fix, len - 1, &found));
    nrg_fix_file("/sys/class/hwmon/hwmon0/power1_input", fix);
    assert_string_equal(nrg_fix_file_command(fix),
                        "sudo chgrp \"$(id -gn)\" /sys/class/hwmon/hwmon0/power1_input && sudo "
                        "chmod g+r /sys/class/hwmon/hwmon0/power1_input");
    assert_null(nrg_fix_file_command("until the next boot:  rm -rf /"));
    assert_string_equal(nrg_fix_file("/sys/a b", fix), ""); /* a shell would see two words */
    assert_string_equal(nrg_fix_file("/sys/$(id)", fix), "");
    tree_release(&t);
}

/* Who can open the BMC's device can send it any command: nothing opens it without being asked. */
static void the_bmc_is_opened_by_hand_only(void **state)
{
    struct nrg_fix list[16];
    struct tree t;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/cpuinfo", INTEL "\n");
    assert_true(advises(&t, NRG_BMC_DENIED, "chmod g+r /dev/ipmi0"));
    assert_true(advises(&t, NRG_BMC_DENIED, "switch the machine off"));
    size_t n = nrg_fixes_list(&t.ctx.root, NRG_BMC_DENIED, list, 16);
    assert_in_range(n, 2, 16);
    for (size_t i = 0; i < n; i++)
        assert_true(!list[i].command || !strstr(list[i].command, "/dev/ipmi0"));
    tree_write(&t, "/.dockerenv", "%s", "");
    assert_false(advises(&t, NRG_BMC_DENIED, "chmod"));
    assert_true(advises(&t, NRG_BMC_DENIED, "run nrg on the host"));
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_only_where_they_help),
        cmocka_unit_test(capabilities_by_the_level_of_perf),
        cmocka_unit_test(least_harm_comes_first),
        cmocka_unit_test(the_daemon_comes_first),
        cmocka_unit_test(the_bmc_is_opened_by_hand_only),
        cmocka_unit_test(lines_are_remedies),
        cmocka_unit_test(containers_are_told_about_the_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
