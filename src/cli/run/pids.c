/* See pids.h. A pidfd reports the end of a process; kernels without pidfd are polled. */
#include "cli/run/pids.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/stop.h"

/* "4242", "4242,4243" */
static int store_pids(const struct nrg_opt_type *type, void *field, const char *text)
{
    struct nrg_run_pids *given = field;
    while (*text) {
        size_t len = strcspn(text, ", ");
        int64_t pid;
        if (nrg_parse_i64(text, len, &pid) || pid < 1 || pid > INT32_MAX ||
            given->n == NRG_RUN_PIDS)
            return -EINVAL;
        given->pids[given->n++] = (int32_t)pid;
        text += len + strspn(text + len, ", ");
    }
    return 0;
}

const struct nrg_opt_type nrg_opt_pids = {
    .takes = NRG_TAKES_VALUE, .store = store_pids, .wants = "process numbers"};

#define LOOK_NS (200 * NRG_NS_PER_MS) /* polling period on kernels without pidfd */

/* Descriptors that become readable when the processes end, -1 for those that have. */
static bool open_pidfds(const struct nrg_run_pids *given, struct pollfd *fds)
{
    bool supported = true;
    for (size_t i = 0; i < given->n; i++) {
        fds[i].events = POLLIN;
        fds[i].fd = (int)syscall(SYS_pidfd_open, given->pids[i], 0);
        supported &= fds[i].fd >= 0 || errno == ESRCH;
    }
    return supported;
}

static size_t count_alive(const struct nrg_run_pids *given, struct pollfd *fds, bool by_fd)
{
    size_t alive = 0;
    for (size_t i = 0; i < given->n; i++) {
        if (fds[i].fd >= 0 && fds[i].revents) {
            close(fds[i].fd);
            fds[i].fd = -1;
        }
        alive += by_fd ? fds[i].fd >= 0 : !kill(given->pids[i], 0) || errno == EPERM;
    }
    return alive;
}

void nrg_run_pids_wait(const struct nrg_run_pids *given, int64_t until_ns)
{
    struct pollfd fds[NRG_RUN_PIDS] = {0};
    sigset_t stops, before;
    bool by_fd = open_pidfds(given, fds);
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, &before); /* only ppoll unblocks them: none is missed */
    for (int64_t now = nrg_now_ns(); !nrg_stop_asked() && now < until_ns; now = nrg_now_ns()) {
        if (given->n && !count_alive(given, fds, by_fd))
            break;
        int64_t left = by_fd || until_ns - now < LOOK_NS ? until_ns - now : LOOK_NS;
        struct timespec ts = {left / NRG_NS_PER_S, left % NRG_NS_PER_S};
        if (ppoll(fds, by_fd ? given->n : 0, &ts, &before) <= 0)
            for (size_t i = 0; i < given->n; i++)
                fds[i].revents = 0;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < given->n; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
}
