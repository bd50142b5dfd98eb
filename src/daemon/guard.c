/* See guard.h. The unit's own filter is a second, coarser one: systemd knows groups of calls. */
#include "daemon/guard.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/ipmi.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

#define BIT(capability) (UINT64_C(1) << (capability))

int nrg_guard_capabilities(struct nrg_error *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    const uint64_t kept = BIT(CAP_PERFMON) | BIT(CAP_SYS_RAWIO);
    for (unsigned c = 0; c < 64; c++)
        if (!(kept & BIT(c)))
            prctl(PR_CAPBSET_DROP, c, 0, 0, 0); /* needs a privilege that the unit does not give */
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
        syscall(SYS_capget, &head, sets))
        return nrg_fail(err, -errno, NULL, "can't give up privileges: %s", strerror(errno));
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        sets[i].permitted &= (uint32_t)(kept >> (32 * i));
        sets[i].effective = sets[i].permitted;
        sets[i].inheritable = 0;
    }
    if (syscall(SYS_capset, &head, sets))
        return nrg_fail(err, -errno, NULL, "can't give up capabilities: %s", strerror(errno));
    return 0;
}

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

#ifdef ARCH
#define FIELD(name)   ((uint32_t)offsetof(struct seccomp_data, name))
#define LOAD(where)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
/* The low half of argument n: flags are 32 bits. */
#define ARGUMENT(n) (FIELD(args) + 8 * (n))
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* Allowed when none of `bits` is set in argument n. The number is loaded again for what follows. */
#define ALLOW_WITHOUT(call, n, bits)                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), LOAD(ARGUMENT(n)),                      \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), 1, 0), RETURN(SECCOMP_RET_ALLOW),   \
        RETURN(SECCOMP_RET_ERRNO | EPERM)
/* Allowed when argument n is one of three numbers. */
#define ALLOW_ONE_OF_THREE(call, n, a, b, c)                                                       \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 6), LOAD(ARGUMENT(n)),                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(a), 2, 0),                                  \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(b), 1, 0),                                  \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(c), 0, 1), RETURN(SECCOMP_RET_ALLOW),       \
        RETURN(SECCOMP_RET_ERRNO | EPERM)
/* Allowed when argument n is this number. */
#define ALLOW_ONLY(call, n, a)                                                                     \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), LOAD(ARGUMENT(n)),                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(a), 0, 1), RETURN(SECCOMP_RET_ALLOW),       \
        RETURN(SECCOMP_RET_ERRNO | EPERM)
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static const struct sock_filter machine[] = {
    LOAD(FIELD(arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(FIELD(nr)),
#ifdef __x86_64__ /* x32: the same machine, other numbers */
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
    RETURN(SECCOMP_RET_KILL_PROCESS),
#endif
};

static const struct sock_filter loop[] = {
    ALLOW(ppoll),        ALLOW(recvmsg),       ALLOW(sendmsg),
    ALLOW(accept4),      ALLOW(accept),        ALLOW(getsockopt),
    ALLOW(close),        ALLOW(clock_gettime), ALLOW(restart_syscall),
    ALLOW(rt_sigreturn),
#ifdef SYS_poll
    ALLOW(poll),
#endif
};

static const struct sock_filter sensors[] = {
    ALLOW(read),
    ALLOW(pread64),
    ALLOW(lseek),
    ALLOW_WITHOUT(openat, 2, WRITING),
    ALLOW_ONLY(perf_event_open, 1, -1), /* of CPUs: of no process */
    ALLOW_ONE_OF_THREE(ioctl, 1, SIOCOUTQ, IPMICTL_SEND_COMMAND, IPMICTL_RECEIVE_MSG_TRUNC),
    ALLOW(fstat),
    ALLOW(newfstatat),
    ALLOW(statx),
    ALLOW(faccessat),
    ALLOW(readlinkat),
    ALLOW(getdents64),
    ALLOW_ONE_OF_THREE(fcntl, 1, F_GETFL, F_GETFD, F_SETFD), /* of folders */
#ifdef SYS_faccessat2
    ALLOW(faccessat2),
#endif
#ifdef SYS_readlink
    ALLOW(readlink),
#endif
#ifdef SYS_access
    ALLOW(access),
#endif
#ifdef SYS_stat
    ALLOW(stat),
#endif
};

/* Memory, the end, one line to say why. */
static const struct sock_filter memory[] = {
    ALLOW(brk),
    ALLOW_WITHOUT(mmap, 2, PROT_EXEC),
    ALLOW_WITHOUT(mprotect, 2, PROT_EXEC),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(madvise),
    ALLOW(futex),
    ALLOW(getrandom),
    ALLOW(getpid),
    ALLOW(gettid),
    ALLOW(rt_sigprocmask),
    ALLOW(write),
    ALLOW(exit),
    ALLOW(exit_group),
};

/* A captured tree is opened with openat2, whose flags lie behind a pointer: not to be looked at. */
static const struct sock_filter tree[] = {
#ifdef SYS_openat2
    ALLOW(openat2),
#endif
};

#define MAX_STEPS 256

static void append(struct sock_fprog *program, const struct sock_filter *steps, size_t size)
{
    memcpy(program->filter + program->len, steps, size);
    program->len = (unsigned short)(program->len + size / sizeof *steps);
}

int nrg_guard_system_calls(bool has_tree, struct nrg_error *err)
{
    struct sock_filter steps[MAX_STEPS];
    struct sock_fprog program = {.filter = steps};
    const struct sock_filter abort_itself[] = {ALLOW_ONLY(tgkill, 0, getpid())};
    const struct sock_filter refuse[] = {RETURN(SECCOMP_RET_ERRNO | EPERM)};
    static_assert(sizeof machine + sizeof loop + sizeof sensors + sizeof memory + sizeof tree +
                          sizeof abort_itself + sizeof refuse <=
                      sizeof steps,
                  "the filter fits");
    append(&program, machine, sizeof machine);
    append(&program, loop, sizeof loop);
    append(&program, sensors, sizeof sensors);
    append(&program, memory, sizeof memory);
    append(&program, abort_itself, sizeof abort_itself);
    if (has_tree)
        append(&program, tree, sizeof tree);
    append(&program, refuse, sizeof refuse);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        return nrg_fail(err, -errno, NULL, "can't filter system calls: %s", strerror(errno));
    return 0;
}
#else
int nrg_guard_system_calls(bool has_tree, struct nrg_error *err)
{
    (void)has_tree;
    return nrg_fail(err, -ENOTSUP, NULL, "no filter of system calls for this kind of machine");
}
#endif
