/*
 * See witness.h. Pending signals are read from /proc, so that it does not matter when the witness
 * gets a processor. It is made by clone(2) without a signal at its end: no wait(2) of ours finds it
 * unless asked for it. All that it calls after that is async-signal-safe, because nrg's other
 * threads may have held any lock.
 */
#include "cli/run/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKS        4 /* the kernel goes through a group one by one, which takes microseconds */
#define FORGET_LOOKS 200
#define WATCH_MS     50

struct order {
    pid_t watch; /* 0: forget the signals that were seen */
};

static struct {
    pid_t pid; /* 0: none */
    int orders;
    char status[32];
} witness;

static void nap_ms(long ms)
{
    nanosleep(&(const struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static ssize_t read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

static void forget_signals(void)
{
    sigset_t all;
    const struct timespec now = {0};
    sigfillset(&all);
    while (sigtimedwait(&all, NULL, &now) > 0)
        ;
}

/* The state stands behind the name, which may contain anything. */
static bool is_stopped(const char *stat)
{
    char text[512];
    const char *end = read_text(stat, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    return end && (end[2] == 'T' || end[2] == 't');
}

static void watch(pid_t command)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)command);
    while (is_stopped(path))
        nap_ms(WATCH_MS);
    kill(getppid(), SIGCONT);
}

/* Lets go of all else that nrg has open: whoever waits for the end of a pipe must not wait for us.
 */
static void keep_only(int fd, int other)
{
    int low = other < 0 || fd < other ? fd : other, high = fd > other ? fd : other;
    bool done = !syscall(SYS_close_range, high + 1, ~0U, 0);
    if (done && high > low + 1)
        done = !syscall(SYS_close_range, low + 1, high - 1, 0);
    if (done && low > 0)
        done = !syscall(SYS_close_range, 0, low - 1, 0);
    for (int i = 0; !done && i < 4096; i++)
        if (i != fd && i != other)
            close(i);
}

/* Never returns. `name`: room for another command line. */
static void be_witness(int orders, int kept_fd, pid_t parent, char *name, size_t room)
{
    static const char called[] = "(signals)";
    struct order order;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(0);
    prctl(PR_SET_NAME, called, 0, 0, 0);
    memset(name, 0, room);
    memcpy(name, called, room < sizeof called ? room : sizeof called);
    keep_only(orders, kept_fd);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* there is nothing here that the user does not have */
    if (chdir("/"))
        _exit(0);
    while (read(orders, &order, sizeof order) == (ssize_t)sizeof order) {
        if (order.watch)
            watch(order.watch);
        else
            forget_signals();
    }
    _exit(0);
}

/* The arguments stand one behind the other; these are the last of them. */
static size_t room_of_arguments(char *const *argv)
{
    const char *last = program_invocation_name;
    for (; *argv; argv++)
        last = *argv > last ? *argv : last;
    return (size_t)(last - program_invocation_name) + strlen(last);
}

void nrg_witness_start(char *const *argv, int kept_fd)
{
    int ends[2];
    sigset_t all, before;
    pid_t parent = getpid();
    if (witness.pid || pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return;
    fcntl(ends[0], F_SETFL, 0);
    size_t room = room_of_arguments(argv);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
    if (pid == 0)
        be_witness(ends[0], kept_fd, parent, program_invocation_name, room);
    close(ends[0]);
    if (pid > 0) {
        witness.orders = ends[1];
        snprintf(witness.status, sizeof witness.status, "/proc/%d/status", (int)pid);
        witness.pid = pid;
    } else {
        close(ends[1]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

pid_t nrg_witness_pid(void)
{
    return witness.pid;
}

pid_t nrg_witness_or_self(void)
{
    return witness.pid && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1 ? witness.pid : getpid();
}

static void give_order(pid_t watched)
{
    const struct order order = {watched};
    ssize_t ignored = write(witness.orders, &order, sizeof order);
    (void)ignored;
}

void nrg_witness_watch(pid_t command)
{
    if (witness.pid)
        give_order(command);
}

static bool is_pending(int signal)
{
    char text[4096];
    static const char key[] = "ShdPnd:";
    const char *at = read_text(witness.status, text, sizeof text) > 0 ? strstr(text, key) : NULL;
    return at && strtoull(at + sizeof key - 1, NULL, 16) >> (signal - 1) & 1;
}

static bool becomes_pending(int signal, bool wanted, int looks)
{
    for (int i = 0; i < looks; i++) {
        if (is_pending(signal) == wanted)
            return true;
        nap_ms(1);
    }
    return false;
}

/* A signal that is still pending would make the next one, to nrg alone, look like the group's. */
bool nrg_witness_saw(int signal)
{
    if (!witness.pid || !becomes_pending(signal, true, LOOKS))
        return false;
    give_order(0);
    becomes_pending(signal, false, FORGET_LOOKS);
    return true;
}

void nrg_witness_end(void)
{
    pid_t pid = witness.pid;
    if (!pid)
        return;
    witness.pid = 0;
    close(witness.orders);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        ;
}
