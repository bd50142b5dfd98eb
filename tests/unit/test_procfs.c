/* record/sampler/procfs.c: lines of /proc as kernels and container runtimes write them, and worse.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <string.h>

#include "record/sampler/procfs.h"

#define TAIL                                                                                       \
    " S 41 42 42 0 -1 4194560 100 200 0 0 11 12 13 14 20 0 3 0 5678 1000000 250 "                  \
    "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"

static void check_stat(const char *text, const char *name)
{
    struct nrg_proc_stat s;
    assert_int_equal(nrg_proc_parse_stat(text, strlen(text), &s), 0);
    assert_string_equal(s.name, name);
    assert_int_equal(s.state, 'S');
    assert_int_equal(s.parent_pid, 41);
    assert_int_equal(s.user_ticks, 11);
    assert_int_equal(s.system_ticks, 12);
    assert_int_equal(s.child_user_ticks, 13);
    assert_int_equal(s.child_system_ticks, 14);
    assert_int_equal(s.threads, 3);
    assert_int_equal(s.start_ticks, 5678);
    assert_int_equal(s.rss_pages, 250);
}

static void stat_lines(void **state)
{
    struct nrg_proc_stat s;
    (void)state;
    check_stat("42 (bash)" TAIL, "bash");
    check_stat("42 (Web Content)" TAIL, "Web Content");
    check_stat("42 (a) S 1 (b))" TAIL, "a) S 1 (b)");
    check_stat("42 (((()" TAIL, "(((");
    check_stat("42 ()" TAIL, "");
    check_stat("42 (\xff\n\x1b)" TAIL, "? ?");
    check_stat("42 (kworker/u16:3-events_unbound)" TAIL, "kworker/u16:3-events_unbound");
    static const char *const bad[] = {
        "",
        "42",
        "42 (bash",
        ")42(",
        "42 (bash) S 41",
        "42 (bash) S x 42 42 0 -1 0 1 2 0 0 11 12 13 14 20 0 3 0 5 1 2",
        "42 (bash) S 41 42 42 0 -1 0 1 2 0 0 z 12 13 14 20 0 3 0 5 1 2",
        NULL};
    for (size_t i = 0; bad[i]; i++)
        assert_int_equal(nrg_proc_parse_stat(bad[i], strlen(bad[i]), &s), -EINVAL);
}

#define ID64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void cgroup_paths(void **state)
{
    static const struct {
        const char *text, *container, *unit;
    } rows[] = {
        {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope\n", "",
         "vte-spawn-1.scope"},
        {"0::/system.slice/ssh.service\n", "", "ssh.service"},
        {"0::/init.scope\n", "", "init.scope"},
        {"0::/\n", "", ""},
        {"12:memory:/docker/" ID64 "\n11:cpu,cpuacct:/docker/" ID64 "\n", "docker:0123456789ab",
         ""},
        {"0::/system.slice/docker-" ID64 ".scope\n", "docker:0123456789ab",
         "docker-" ID64 ".scope"},
        {"0::/machine.slice/libpod-" ID64 ".scope/container\n", "podman:0123456789ab",
         "libpod-" ID64 ".scope"},
        {"0::/kubepods.slice/kubepods-burstable.slice/"
         "kubepods-burstable-pod1234_5678.slice/cri-containerd-" ID64 ".scope\n",
         "containerd:0123456789ab", "cri-containerd-" ID64 ".scope"},
        {"5:cpu:/kubepods/besteffort/pod12-34/" ID64 "\n", "kubernetes:0123456789ab", ""},
        {"0::/kubepods.slice/crio-" ID64 ".scope\n", "cri-o:0123456789ab", "crio-" ID64 ".scope"},
        {"0::/lxc.payload.web1/system.slice/nginx.service\n", "lxc:web1", "nginx.service"},
        {"4:memory:/lxc/db\n", "lxc:db", ""},
        {"0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "", "slurm:job_4711"},
        {"9:memory:/slurm/uid_1000/job_99/step_batch\n", "", "slurm:job_99"},
        {"9:memory:/slurm/uid_1000/job_/step_batch\n", "", ""},
        {"garbage without colons\n0::/a.service", "", "a.service"},
        {"", "", ""},
        {"::\n:::\n0::", "", ""},
        {"0::/docker/" ID64 "a\n", "", ""}, /* 65 digits are no id */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char container[80] = "", unit[128] = "";
        nrg_proc_parse_cgroup(rows[i].text, strlen(rows[i].text), container, sizeof container, unit,
                              sizeof unit);
        assert_string_equal(container, rows[i].container);
        assert_string_equal(unit, rows[i].unit);
    }
}

/* The text ends where its length says, not at a zero byte. */
static void cgroup_is_bounded(void **state)
{
    static const char slurm[] = "0::/slurm/job_12345", lxc[] = "0::/lxc/webserver";
    char container[80] = "", unit[128] = "";
    (void)state;
    nrg_proc_parse_cgroup(slurm, strlen(slurm) - 3, container, sizeof container, unit, sizeof unit);
    assert_string_equal(unit, "slurm:job_12");
    nrg_proc_parse_cgroup(lxc, strlen(lxc) - 6, container, sizeof container, unit, sizeof unit);
    assert_string_equal(container, "lxc:web");
}

static void memory_and_io(void **state)
{
    static const char smaps[] = "559a-7ffc ---p 00000000 00:00 0    [rollup]\n"
                                "Rss:                5000 kB\n"
                                "Pss:                3000 kB\n"
                                "Pss_Anon:           1111 kB\n"
                                "Private_Clean:       100 kB\n"
                                "Private_Dirty:       900 kB\n"
                                "Private_Hugetlb:       0 kB\n";
    static const char io[] = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\n"
                             "read_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
    int64_t a, b;
    (void)state;
    assert_int_equal(nrg_proc_parse_smaps(smaps, strlen(smaps), &a, &b), 0);
    assert_int_equal(a, 3000 * 1024);
    assert_int_equal(b, 1000 * 1024);
    assert_int_equal(nrg_proc_parse_io(io, strlen(io), &a, &b), 0);
    assert_int_equal(a, 4096);
    assert_int_equal(b, 8192);
    assert_int_equal(nrg_proc_parse_smaps("", 0, &a, &b), -EINVAL);
    assert_int_equal(nrg_proc_parse_smaps("Pss: many kB\n", 13, &a, &b), -EINVAL);
    assert_int_equal(nrg_proc_parse_io("read_bytes: -1\n", 15, &a, &b), -EINVAL);
    assert_int_equal(nrg_proc_parse_io("read_bytes:", 11, &a, &b), -EINVAL);
    /* Numbers that would overflow once they are bytes are left out. */
    static const char huge[] = "Pss: 2251799813685000 kB\nPss: 2251799813685000 kB\n"
                               "Pss: 2251799813685000 kB\nPrivate_Clean: 9223372036854775807 kB\n"
                               "Private_Dirty: 1 kB\n";
    assert_int_equal(nrg_proc_parse_smaps(huge, strlen(huge), &a, &b), 0);
    assert_true(a > 0);
    assert_int_equal(b, 1024);
}

static void note_child(int32_t child, void *arg)
{
    int64_t *sum = arg;
    *sum += child;
}

static void children_and_description(void **state)
{
    struct tree t;
    struct nrg_process_info info = {0};
    int64_t sum = 0;
    (void)state;
    tree_init(&t);
    tree_write(&t, "/proc/42/task/42/children", "100 200 x -5 99999999999 ");
    tree_write(&t, "/proc/42/task/43/children", "1000");
    tree_write(&t, "/proc/42/stat", "42 (py thon)" TAIL);
    tree_write_bytes(&t, "/proc/42/cmdline", "python3\0-c\0a\nb\0", 15);
    tree_write(&t, "/proc/42/cgroup", "0::/system.slice/x.service\n");
    nrg_proc_children(&t.ctx.root, 42, 1, note_child, &sum);
    assert_int_equal(sum, 300);
    nrg_proc_children(&t.ctx.root, 42, 2, note_child, &sum);
    assert_int_equal(sum, 1600);
    nrg_proc_children(&t.ctx.root, 77, 1, note_child, &sum);
    assert_int_equal(sum, 1600);
    nrg_proc_describe(&t.ctx.root, 42, NULL, &info);
    assert_string_equal(info.name, "py thon");
    assert_string_equal(info.command, "python3 -c a b");
    assert_string_equal(info.unit, "x.service");
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_lines),
        cmocka_unit_test(cgroup_paths),
        cmocka_unit_test(cgroup_is_bounded),
        cmocka_unit_test(memory_and_io),
        cmocka_unit_test(children_and_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
