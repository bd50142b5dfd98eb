/*
 * A program whose output is a meter's. `sh -c` runs it in a process group of its own, so that
 * Ctrl-C at the terminal only reaches the workload, and ending the program ends its helpers too.
 * Another part of this process may reap it (nrg run waits for any child). A pidfd shows whether
 * the pid still means our program, so that no other process ever gets a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sensors/meter/internal.h"

/* How long a program may take to end by itself when asked to. */
#define PATIENCE_MS 300

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static int spawn_shell(const char *command, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return -rc;
    rc = posix_spawnattr_init(&attr);
    if (!rc) {
        sigemptyset(&none);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        posix_spawnattr_setpgroup(&attr, 0);
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        rc = posix_spawn(pid, "/bin/sh", &actions, &attr, argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

int nrg_program_start(const char *command, pid_t *pid, int *pidfd, struct nrg_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return nrg_fail(err, -errno, command, "cannot make a pipe: %s", strerror(errno));
    int rc = spawn_shell(command, ends[1], pid);
    close(ends[1]);
    if (rc) {
        close(ends[0]);
        return nrg_fail(err, rc, command, "cannot be started: %s", strerror(-rc));
    }
    *pidfd = (int)syscall(SYS_pidfd_open, *pid, 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return ends[0];
}

/* Waits for the program's end: it may close its output a moment earlier. */
static void wait_for_end(int pidfd, int ms)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    int64_t until_ns = nrg_now_ns() + ms * NRG_NS_PER_MS;
    while (pidfd >= 0 && poll(&fd, 1, ms) < 0 && errno == EINTR && nrg_now_ns() < until_ns)
        ;
}

void nrg_program_why(int pidfd, char *why, size_t size)
{
    siginfo_t info = {0};
    if (pidfd < 0 || waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) ||
        !info.si_pid)
        snprintf(why, size, "the program has ended its output");
    else if (info.si_code == CLD_EXITED)
        snprintf(why, size, "the program has ended with code %d%s", info.si_status,
                 info.si_status == 127 ? ": is it installed?" : "");
    else
        snprintf(why, size, "the program was ended by signal %d", info.si_status);
}

void nrg_program_stop(pid_t pid, int pidfd, bool pipe_open)
{
    siginfo_t info;
    bool ours = pidfd >= 0 && !syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0);
    /* A group keeps its number while it has members; afterwards it may be another group's. */
    if (ours || pipe_open) {
        kill(-pid, SIGTERM);
        wait_for_end(pidfd, PATIENCE_MS);
        kill(-pid, SIGKILL);
    }
    if (ours)
        while (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED) && errno == EINTR)
            ;
    if (pidfd >= 0)
        close(pidfd);
}
