/*
 * Installs nrgd's real filter of system calls, as nrgd does, and attacks it: each call below in a
 * process of its own, first without the filter and then behind it. One line of each:
 *
 *   NAME WITHOUT BEHIND     "ok", an errno's number, or "sigN"
 *
 * for tests/cli/test_nrgd_guard.py, which knows what must be refused and what must not.
 * Calls are made by number, so that no library stands between; arguments are such that the kernel
 * itself would do something, or say something else than EPERM.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "daemon/guard.h"

#define A(value) ((long)(value))
#define X32      0x40000000

struct attack {
    const char *name;
    long number;
    long args[6];
};

static char file[] = "/tmp/nrg-guard-XXXXXX";
static char *const no_arguments[] = {NULL};
static struct open_how writing = {.flags = O_RDWR};
static struct perf_event_attr clock_event = {
    .type = PERF_TYPE_SOFTWARE, .size = sizeof clock_event, .config = PERF_COUNT_SW_CPU_CLOCK};
static uint64_t buffer[64];
static int pair[2], opened;

/* Stand for what is known when the program runs. */
enum { OPENED = -1001, SOCKET = -1002, SELF = -1003, PARENT = -1004 };
#define OTHER_ARCHITECTURE (-1)

/* clang-format off */
static const struct attack attacks[] = {
    /* what nrgd does must go on */
    {"getpid", SYS_getpid, {0}},
    {"openat-read", SYS_openat, {AT_FDCWD, A(file), O_RDONLY | O_CLOEXEC}},
    {"ioctl-queue", SYS_ioctl, {SOCKET, SIOCOUTQ, A(buffer)}},
    {"mmap-data", SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
    {"perf-of-a-cpu", SYS_perf_event_open, {A(&clock_event), -1, 0, -1, PERF_FLAG_FD_CLOEXEC}},
    {"fcntl-flags", SYS_fcntl, {OPENED, F_GETFL}},
    {"abort", SYS_tgkill, {SELF, SELF, 0}},
    /* programs and processes */
    {"execve", SYS_execve, {A("/bin/true"), A(no_arguments), A(no_arguments)}},
    {"execveat", SYS_execveat, {AT_FDCWD, A("/bin/true"), A(no_arguments), A(no_arguments), 0}},
    {"clone", SYS_clone, {SIGCHLD}},
    {"clone3", SYS_clone3, {A(buffer), 8}},
    {"unshare", SYS_unshare, {CLONE_FILES}},
    {"setns", SYS_setns, {OPENED, 0}},
    {"ptrace", SYS_ptrace, {PTRACE_TRACEME}},
    {"process_vm_readv", SYS_process_vm_readv, {SELF, 0, 0, 0, 0, 0}},
    {"process_vm_writev", SYS_process_vm_writev, {SELF, 0, 0, 0, 0, 0}},
    {"kill", SYS_kill, {PARENT, 0}},
    {"tkill", SYS_tkill, {PARENT, 0}},
    {"tgkill", SYS_tgkill, {PARENT, PARENT, 0}},
    {"pidfd_open", SYS_pidfd_open, {PARENT, 0}},
    {"prctl", SYS_prctl, {15 /* PR_SET_NAME */, A(file)}},
    {"seccomp", SYS_seccomp, {2 /* SECCOMP_GET_ACTION_AVAIL */, 0, A(buffer)}},
    {"personality", SYS_personality, {0xffffffff}},
    {"setuid", SYS_setuid, {0}},
    {"setgroups", SYS_setgroups, {-1, 0}},
    {"capset", SYS_capset, {0, 0}},
    {"setrlimit", SYS_setrlimit, {7 /* RLIMIT_NOFILE */, 0}},
    {"prlimit64", SYS_prlimit64, {PARENT, 7, 0, A(buffer)}},
    {"sched_setaffinity", SYS_sched_setaffinity, {0, 8, A(buffer)}},
    {"keyctl", SYS_keyctl, {0, -3}},
    {"bpf", SYS_bpf, {-1, 0, 0}},
    {"userfaultfd", SYS_userfaultfd, {-1}},
    {"io_uring_setup", SYS_io_uring_setup, {1, A(buffer)}},
    {"io_uring_enter", SYS_io_uring_enter, {OPENED, 0, 0, 0, 0, 0}},
    {"io_uring_register", SYS_io_uring_register, {OPENED, 0, 0, 0}},
    {"perf-of-a-process", SYS_perf_event_open, {A(&clock_event), 0, -1, -1, PERF_FLAG_FD_CLOEXEC}},
    {"perf-of-a-group", SYS_perf_event_open, {A(&clock_event), OPENED, 0, -1, PERF_FLAG_PID_CGROUP}},
    /* sockets */
    {"socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
    {"socket-inet", SYS_socket, {AF_INET, SOCK_STREAM, 0}},
    {"socketpair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, A(buffer)}},
    {"connect", SYS_connect, {SOCKET, A(buffer), 2}},
    {"bind", SYS_bind, {SOCKET, A(buffer), 2}},
    {"listen", SYS_listen, {SOCKET, 1}},
    {"setsockopt", SYS_setsockopt, {SOCKET, SOL_SOCKET, SO_SNDBUF, A(buffer), 4}},
    {"sendto", SYS_sendto, {SOCKET, A(file), 1, MSG_DONTWAIT}},
    /* files */
    {"openat-write", SYS_openat, {AT_FDCWD, A(file), O_WRONLY}},
    {"openat-read-write", SYS_openat, {AT_FDCWD, A(file), O_RDWR}},
    {"openat-append", SYS_openat, {AT_FDCWD, A(file), O_WRONLY | O_APPEND}},
    {"openat-ioctl-only", SYS_openat, {AT_FDCWD, A(file), O_ACCMODE}},
    {"openat-create", SYS_openat, {AT_FDCWD, A("/tmp/nrg-guard-made"), O_RDONLY | O_CREAT, 0600}},
    {"openat-cut", SYS_openat, {AT_FDCWD, A(file), O_RDONLY | O_TRUNC}},
    {"openat-unnamed", SYS_openat, {AT_FDCWD, A("/tmp"), O_TMPFILE | O_RDWR, 0600}},
    {"openat2-write", SYS_openat2, {AT_FDCWD, A(file), A(&writing), sizeof writing}},
    {"truncate", SYS_truncate, {A(file), 1}},
    {"ftruncate", SYS_ftruncate, {OPENED, 1}},
    {"pwrite64", SYS_pwrite64, {OPENED, A(file), 1, 0}},
    {"fallocate", SYS_fallocate, {OPENED, 0, 0, 1}},
    {"copy_file_range", SYS_copy_file_range, {OPENED, 0, OPENED, 0, 0, 0}},
    {"unlinkat", SYS_unlinkat, {AT_FDCWD, A("/tmp/nrg-guard-none"), 0}},
    {"renameat2", SYS_renameat2, {AT_FDCWD, A("/tmp/nrg-guard-none"), AT_FDCWD, A(file), 0}},
    {"linkat", SYS_linkat, {AT_FDCWD, A("/tmp/nrg-guard-none"), AT_FDCWD, A(file), 0}},
    {"symlinkat", SYS_symlinkat, {A("x"), AT_FDCWD, A(file)}},
    {"mkdirat", SYS_mkdirat, {AT_FDCWD, A(file), 0700}},
    {"mknodat", SYS_mknodat, {AT_FDCWD, A(file), 0010600, 0}},
    {"fchmodat", SYS_fchmodat, {AT_FDCWD, A("/tmp/nrg-guard-none"), 0600}},
    {"fchmod", SYS_fchmod, {OPENED, 0600}},
    {"fchownat", SYS_fchownat, {AT_FDCWD, A("/tmp/nrg-guard-none"), -1, -1, 0}},
    {"utimensat", SYS_utimensat, {AT_FDCWD, A("/tmp/nrg-guard-none"), 0, 0}},
    {"setxattr", SYS_setxattr, {A("/tmp/nrg-guard-none"), A("user.x"), A("x"), 1, 0}},
    {"chdir", SYS_chdir, {A("/")}},
    {"umask", SYS_umask, {022}},
    {"dup", SYS_dup, {OPENED}},
    {"fcntl-lock", SYS_fcntl, {OPENED, F_SETLKW, A(buffer)}},
    {"fcntl-owner", SYS_fcntl, {OPENED, F_SETOWN, SELF}},
    {"fcntl-flags-set", SYS_fcntl, {OPENED, F_SETFL, O_APPEND}},
    {"fcntl-duplicate", SYS_fcntl, {OPENED, F_DUPFD_CLOEXEC, 3}},
    {"fcntl-lease", SYS_fcntl, {OPENED, 1024 /* F_SETLEASE */, F_UNLCK}},
    /* memory that can be executed */
    {"mmap-code", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
    {"mmap-file-code", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, OPENED, 0}},
    {"mprotect-code", SYS_mprotect, {0, 0, PROT_READ | PROT_EXEC}},
    {"pkey_mprotect-code", SYS_pkey_mprotect, {0, 0, PROT_READ | PROT_EXEC, -1}},
    {"memfd_create", SYS_memfd_create, {A("x"), 0}},
    {"shmget", SYS_shmget, {0, 4096, 01600}},
    /* devices */
    {"ioctl-terminal", SYS_ioctl, {OPENED, TCGETS, A(buffer)}},
    {"ioctl-push", SYS_ioctl, {OPENED, TIOCSTI, A(buffer)}},
    {"ioctl-nonblock", SYS_ioctl, {OPENED, FIONBIO, A(buffer)}},
    {"ioctl-input-queue", SYS_ioctl, {SOCKET, FIONREAD, A(buffer)}},
    {"ioctl-owner", SYS_ioctl, {SOCKET, FIOSETOWN, A(buffer)}},
    {"ioctl-perf-period", SYS_ioctl, {OPENED, PERF_EVENT_IOC_PERIOD, A(buffer)}},
    {"ioctl-perf-bpf", SYS_ioctl, {OPENED, PERF_EVENT_IOC_SET_BPF, 0}},
    {"ioctl-ipmi-register", SYS_ioctl, {OPENED, IPMICTL_REGISTER_FOR_CMD, A(buffer)}},
    {"ioctl-high-bits", SYS_ioctl, {OPENED, A(INT64_C(0x100000000)) | TCGETS, A(buffer)}},
#ifdef __x86_64__
    {"open-write", SYS_open, {A(file), O_WRONLY}},
    {"open-read", SYS_open, {A(file), O_RDONLY}},
    {"creat", SYS_creat, {A(file), 0600}},
    {"fork", SYS_fork, {0}},
    {"arch_prctl", SYS_arch_prctl, {0x1003 /* ARCH_GET_FS */, A(buffer)}},
    {"x32-getpid", X32 | SYS_getpid, {0}},
    {"x32-openat", X32 | SYS_openat, {AT_FDCWD, A(file), O_WRONLY}},
    {"x32-ioctl", X32 | 514, {OPENED, TCGETS, A(buffer)}},
    {"x32-execve", X32 | 520, {A("/bin/true"), A(no_arguments), A(no_arguments)}},
    {"i386-getpid", OTHER_ARCHITECTURE, {0}},
#endif
    {"number-too-large", 100000, {0}},
};
/* clang-format on */

/* What another architecture's numbers do: getpid of i386 is write of x86-64. */
static long other_architecture(void)
{
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
    return result < 0 ? result : 0;
#else
    return -ENOSYS;
#endif
}

static long resolve(long value)
{
    switch (value) {
    case OPENED:
        return opened;
    case SOCKET:
        return pair[0];
    case SELF:
        return getpid();
    case PARENT:
        return getppid();
    default:
        return value;
    }
}

static long perform(const struct attack *attack)
{
    long a[6];
    for (size_t i = 0; i < 6; i++)
        a[i] = resolve(attack->args[i]);
    if (attack->number == OTHER_ARCHITECTURE)
        return other_architecture();
    pid_t self = getpid();
    long rc = syscall(attack->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int error = rc == -1 ? errno : 0;
    if (getpid() != self) /* it forked */
        syscall(SYS_exit_group, 0);
    return -error;
}

/* Writes what happened; 0 and errnos are the exit code. */
static void report(const struct attack *attack, bool guarded)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        exit(1);
    if (!pid) {
        if (guarded && nrg_guard_system_calls(false, NULL))
            _exit(255);
        long rc = perform(attack);
        syscall(SYS_exit_group, (int)-rc);
    }
    while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        printf(" sig%d", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        printf(" %d", WEXITSTATUS(status));
    else
        printf(" ok");
}

static int make_files(void)
{
    opened = mkstemp(file);
    return opened < 0 || write(opened, "1\n", 2) != 2 ||
           socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
}

int main(void)
{
    if (make_files() || nrg_guard_capabilities(NULL))
        return 1;
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        printf("%s", attacks[i].name);
        for (int guarded = 0; guarded < 2; guarded++) {
            fflush(stdout);
            report(&attacks[i], guarded);
        }
        printf("\n");
    }
    unlink(file);
    unlink("/tmp/nrg-guard-made");
    return 0;
}
