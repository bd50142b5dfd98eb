/*
 * See connector.h. A socket filter lets only forks of processes (not threads), execs and exits
 * of thread-group leaders through, so that a program that makes many threads does not wake us.
 */
#include "sensors/machine/connector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define EVENT_AT    (NLMSG_HDRLEN + sizeof(struct cn_msg))
#define FIELD(name) ((uint32_t)(EVENT_AT + offsetof(struct proc_event, name)))

static int install_filter(int fd)
{
    /* Jump targets are relative to the next instruction. */
    struct sock_filter code[] = {
        /* 0 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(what)),
        /* 1 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_FORK), 5 - 2, 0),
        /* 2 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 13 - 3, 0),
        /* 3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXIT), 9 - 4, 0),
        /* 4 */ BPF_STMT(BPF_RET | BPF_K, 0),
        /* 5: fork: child_pid == child_tgid? */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(event_data.fork.child_tgid)),
        /* 6 */ BPF_STMT(BPF_MISC | BPF_TAX, 0),
        /* 7 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(event_data.fork.child_pid)),
        BPF_STMT(BPF_JMP | BPF_JA, 3),
        /* 9: exit: process_pid == process_tgid? */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(event_data.exit.process_tgid)),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(event_data.exit.process_pid)),
        /* 12 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
        /* 13 */ BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
        /* 14 */ BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) ? -errno : 0;
}

static int subscribe_to_events(int fd)
{
    enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;
    struct cn_msg message = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof op};
    struct nlmsghdr head = {.nlmsg_len = NLMSG_HDRLEN + sizeof message + sizeof op,
                            .nlmsg_type = NLMSG_DONE};
    struct iovec parts[] = {{&head, NLMSG_HDRLEN}, {&message, sizeof message}, {&op, sizeof op}};
    return writev(fd, parts, sizeof parts / sizeof *parts) < 0 ? -errno : 0;
}

int nrg_connector_open(const struct nrg_root *root)
{
    char ns[64];
    if (!nrg_root_is_live(root) ||
        nrg_root_readlink(root, "/proc/self/ns/pid", ns, sizeof ns) < 0 ||
        strcmp(ns, NRG_INITIAL_PID_NAMESPACE))
        return -EXDEV;
    int fd = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (fd < 0)
        return -errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    int size = 1 << 21, rc;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    rc = bind(fd, (struct sockaddr *)&address, sizeof address) ? -errno : install_filter(fd);
    if (!rc)
        rc = subscribe_to_events(fd);
    if (rc)
        close(fd);
    return rc ? rc : nrg_root_lift(root, fd);
}

static void dispatch_event(const struct proc_event *event,
                           const struct nrg_connector_events *events)
{
    /* `what` is an enum in newer headers only and lies unaligned behind cn_msg. */
    switch ((unsigned)event->what) {
    case PROC_EVENT_FORK:
        if (event->event_data.fork.child_pid == event->event_data.fork.child_tgid)
            events->forked(events->arg, (int64_t)event->timestamp_ns,
                           event->event_data.fork.parent_tgid, event->event_data.fork.child_tgid);
        break;
    case PROC_EVENT_EXEC:
        events->executed(events->arg, event->event_data.exec.process_tgid);
        break;
    case PROC_EVENT_EXIT:
        if (event->event_data.exit.process_pid == event->event_data.exit.process_tgid)
            events->exited(events->arg, event->event_data.exit.process_tgid);
        break;
    default:
        break;
    }
}

void nrg_connector_drain(int fd, const struct nrg_connector_events *events)
{
    char buf[4096] __attribute__((aligned(8)));
    for (int i = 0; i < 10000; i++) { /* bounded: a fork bomb must not keep us here */
        struct sockaddr_nl from = {.nl_pid = UINT32_MAX};
        socklen_t from_len = sizeof from;
        ssize_t len = recvfrom(fd, buf, sizeof buf, 0, (struct sockaddr *)&from, &from_len);
        if (len < 0 && errno == ENOBUFS) {
            events->lost(events->arg);
            continue;
        }
        if (len <= 0)
            return;
        struct proc_event event;
        if (from.nl_pid != 0 ||
            (size_t)len < EVENT_AT + offsetof(struct proc_event, event_data) + 16)
            continue;
        memset(&event, 0, sizeof event);
        size_t have = (size_t)len - EVENT_AT;
        memcpy(&event, buf + EVENT_AT, have < sizeof event ? have : sizeof event);
        dispatch_event(&event, events);
    }
}
