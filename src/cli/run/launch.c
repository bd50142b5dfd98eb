/*
 * See launch.h. A pipe that closes on exec distinguishes a failed exec from a child that exits with
 * the same code. Unlike ignored signals, handlers are reset by exec: so nrg installs handlers, for
 * SIGPIPE too, and only for signals that were not ignored when it started (nohup stays nohup).
 */
#include "cli/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/stop.h"

static const int forwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define N_FORWARDED (sizeof forwarded / sizeof *forwarded)

/* The only state that a signal handler can have. */
static volatile sig_atomic_t forward_to, asked_to_end;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    /* The terminal signals the whole foreground group: the child has it already. */
    bool from_terminal = info->si_code == SI_KERNEL;
    if (signal != SIGUSR1 && signal != SIGUSR2)
        asked_to_end = 1;
    if (forward_to > 0 && !from_terminal)
        kill((pid_t)forward_to, signal);
}

static void on_broken_pipe(int signal)
{
}

void nrg_launch_survive_pipes(void)
{
    const struct sigaction action = {.sa_handler = on_broken_pipe, .sa_flags = SA_RESTART};
    nrg_set_signals(&(const int){SIGPIPE}, 1, &action);
}

static void install_handlers(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    nrg_set_signals(forwarded, N_FORWARDED, &action);
}

void nrg_launch_ended(void)
{
    forward_to = 0;
}

bool nrg_launch_asked_to_end(void)
{
    return asked_to_end;
}

void nrg_launch_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Our environment with the variable set. NULL when out of memory. */
static char **make_environment(const char *variable)
{
    size_t n = 0, made = 0, name = variable ? strcspn(variable, "=") + 1 : 0;
    while (environ && environ[n])
        n++;
    char **list = calloc(n + 2, sizeof *list);
    if (!list)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!variable || strncmp(environ[i], variable, name) != 0)
            list[made++] = environ[i];
    list[made] = (char *)variable;
    return list;
}

/* Never returns: the child's side of the fork. */
static void become_command(char *const *argv, char *const *environment, int kept_fd,
                           const sigset_t *mask, int tell)
{
    /* As exec would do it, but before signals are unblocked. */
    nrg_set_signals(forwarded, N_FORWARDED, &(const struct sigaction){.sa_handler = SIG_DFL});
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (kept_fd >= 0)
        fcntl(kept_fd, F_SETFD, 0);
    execvpe(argv[0], argv, environment);
    int why = errno;
    ssize_t ignored = write(tell, &why, sizeof why);
    (void)ignored;
    _exit(127);
}

/* 0 once the child has been replaced by the command, else the errno of exec. */
static int read_exec_error(int tell)
{
    int why = 0;
    ssize_t n;
    do
        n = read(tell, &why, sizeof why);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof why ? why : 0;
}

pid_t nrg_launch(char *const *argv, const struct nrg_launch_gift *gift, struct nrg_error *err)
{
    int tell[2];
    sigset_t all, before;
    char **environment = make_environment(gift->variable);
    if (!environment || pipe2(tell, O_CLOEXEC)) {
        int rc = environment ? -errno : -ENOMEM;
        free(environment);
        return nrg_fail(err, rc, argv[0], "cannot make a pipe: %s", strerror(-rc));
    }
    /* Signals are blocked until the handlers know the child, so that none is lost. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0)
        become_command(argv, environment, gift->variable ? gift->fd : -1, &before, tell[1]);
    int fork_error = errno;
    free(environment);
    if (child > 0) {
        install_handlers();
        forward_to = child;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(tell[1]);
    int why = child > 0 ? read_exec_error(tell[0]) : fork_error;
    close(tell[0]);
    if (child < 0)
        return nrg_fail(err, -why, argv[0], "cannot fork: %s", strerror(why));
    if (why) {
        nrg_launch_ended();
        waitpid(child, NULL, 0);
        return nrg_fail(err, -why, argv[0], "%s", strerror(why));
    }
    return child;
}
