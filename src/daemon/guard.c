/* See guard.h. The unit's own filter is a second, coarser one: systemd knows groups of calls. */
#include "daemon/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/ipmi.h>
#include <linux/seccomp.h>
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
/* Allowed when argument n is one of two numbers. */
#define ALLOW_EITHER(call, n, a, b)                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 5), LOAD(ARGUMENT(n)),                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(a), 1, 0),                                  \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(b), 0, 1), RETURN(SECCOMP_RET_ALLOW),       \
        RETURN(SECCOMP_RET_ERRNO | EPERM)
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static const struct sock_filter filter[] = {
    LOAD(FIELD(arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(FIELD(nr)),
    /* the loop */
    ALLOW(ppoll),
    ALLOW(recvmsg),
    ALLOW(sendmsg),
    ALLOW(accept4),
    ALLOW(accept),
    ALLOW(getsockopt),
    ALLOW(close),
    ALLOW(clock_gettime),
    ALLOW(restart_syscall),
    ALLOW(rt_sigreturn),
    /* sensors */
    ALLOW(read),
    ALLOW(pread64),
    ALLOW(lseek),
    ALLOW_WITHOUT(openat, 2, WRITING),
    ALLOW(perf_event_open),
    ALLOW_EITHER(ioctl, 1, IPMICTL_SEND_COMMAND, IPMICTL_RECEIVE_MSG_TRUNC),
    ALLOW(fstat),
    ALLOW(newfstatat),
    ALLOW(statx),
    ALLOW(faccessat),
    ALLOW(readlinkat),
    ALLOW(getdents64),
    ALLOW_WITHOUT(fcntl, 1, 0x400), /* no leases, no notifications */
    /* memory, the end, one line to say why */
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
    ALLOW(tgkill), /* abort() */
    ALLOW(write),
    ALLOW(exit),
    ALLOW(exit_group),
#ifdef SYS_poll
    ALLOW(poll),
#endif
#ifdef SYS_openat2
    ALLOW(openat2), /* captured trees; a pointer can't be looked behind */
#endif
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
    RETURN(SECCOMP_RET_ERRNO | EPERM),
};

int nrg_guard_system_calls(struct nrg_error *err)
{
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter,
                                       .filter = (struct sock_filter *)(uintptr_t)filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        return nrg_fail(err, -errno, NULL, "can't filter system calls: %s", strerror(errno));
    return 0;
}
#else
int nrg_guard_system_calls(struct nrg_error *err)
{
    return nrg_fail(err, -ENOTSUP, NULL, "no filter of system calls for this kind of machine");
}
#endif
