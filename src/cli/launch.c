/*
 * See launch.h. A pipe that closes on exec tells a failed exec from a child that exits with the
 * same code. Handlers, unlike ignored signals, are reset by exec: so nrg installs handlers, and
 * only for signals that were not ignored when it started (nohup stays nohup).
 */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

static volatile sig_atomic_t forward_to; /* the only state a signal handler can have */

static void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)context;
    /* The terminal sends to the whole foreground group: the child has it already. */
    bool from_terminal = info->si_code == SI_KERNEL;
    if (forward_to > 0 && !from_terminal)
        kill((pid_t)forward_to, signal);
}

void nrg_launch_forward_to(pid_t child)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    forward_to = child;
    if (!child)
        return;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old,
            new = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
        sigfillset(&new.sa_mask);
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &new, NULL);
    }
}

void nrg_launch_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

pid_t nrg_launch(char *const *argv, struct nrg_error *err)
{
    int tell[2], why = 0;
    if (pipe2(tell, O_CLOEXEC))
        return nrg_fail(err, -errno, argv[0], "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[0], argv);
        why = errno;
        ssize_t ignored = write(tell[1], &why, sizeof why);
        (void)ignored;
        _exit(127);
    }
    int fork_error = errno;
    close(tell[1]);
    if (child < 0) {
        close(tell[0]);
        return nrg_fail(err, -fork_error, argv[0], "cannot fork: %s", strerror(fork_error));
    }
    ssize_t n;
    do
        n = read(tell[0], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    close(tell[0]);
    if (n == (ssize_t)sizeof why)
        return nrg_fail(err, -why, argv[0], "%s", strerror(why));
    return child;
}
