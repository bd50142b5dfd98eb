/*
 * See launch.h. A pipe that closes on exec distinguishes a failed exec from a child that exits with
 * the same code. Unlike ignored signals, handlers are reset by exec: so nrg installs handlers, for
 * SIGPIPE too, and only for signals that were not ignored when it started (nohup stays nohup).
 *
 * Once the command has ended, a signal is meant for nrg. What was measured is still written if that
 * is quick; then nrg dies of the signal, as whoever sent it expects.
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
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/run/witness.h"
#include "cli/stop.h"

#define LATE_S      2  /* to finish after a signal that came after the command's end */
#define STILL_MS    20 /* a group is continued one by one: is the command still stopped then? */
#define N_FORWARDED (sizeof forwarded / sizeof *forwarded)
#define N_ENDING    4

/* Those that ask for the end come first. */
static const int forwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* The only state that a signal handler can have. */
static volatile sig_atomic_t forward_to, asked_to_end, late_signal;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    /* The terminal signals the whole foreground group: the child has it already. */
    bool from_terminal = info->si_code == SI_KERNEL;
    if (signal != SIGUSR1 && signal != SIGUSR2)
        asked_to_end = 1;
    if (forward_to > 0 && !from_terminal && !nrg_witness_saw(signal))
        kill((pid_t)forward_to, signal);
    errno = saved;
}

static void die_of(int signal)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sigaction(signal, &(const struct sigaction){.sa_handler = SIG_DFL}, NULL);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static void on_late_signal(int signal)
{
    if (late_signal)
        die_of(signal == SIGALRM ? late_signal : signal);
    late_signal = signal;
    asked_to_end = 1;
    alarm(LATE_S);
}

void nrg_launch_catch_late(void)
{
    const struct sigaction action = {.sa_handler = on_late_signal, .sa_flags = SA_RESTART};
    nrg_set_signals(forwarded, N_ENDING, &action);
    sigaction(SIGALRM, &action, NULL);
}

void nrg_launch_die_late(void)
{
    if (late_signal)
        die_of(late_signal);
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
    nrg_launch_catch_late();
}

bool nrg_launch_asked_to_end(void)
{
    return asked_to_end;
}

void nrg_launch_prepare(char *const *argv, int kept_fd)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    nrg_witness_start(argv, kept_fd);
}

/* A shell that controls jobs: it has put us into a group of our own, and has that in front. */
static bool is_job_in_front(void)
{
    pid_t parent = getppid();
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool front = tty >= 0 && tcgetpgrp(tty) == getpgrp();
    if (tty >= 0)
        close(tty);
    return front && getsid(parent) == getsid(0) && getpgid(parent) != getpgrp();
}

/* Takes the news that a process has stopped; 0 when it runs again. */
static int take_stop(pid_t pid)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) || !info.si_pid)
        return 0;
    return info.si_status;
}

void nrg_launch_stopped(pid_t pid)
{
    const struct timespec still = {.tv_nsec = STILL_MS * 1000000L};
    nanosleep(&still, NULL);
    int signal = take_stop(pid);
    if (!signal || pid != forward_to || !is_job_in_front())
        return;
    nrg_witness_watch(pid);
    raise(signal);
    /* The shell continues all of the group; a signal to nrg alone has to be passed on. */
    siginfo_t info = {0};
    if (!waitid(P_PID, (id_t)pid, &info, WCONTINUED | WNOHANG) && !info.si_pid)
        kill(pid, SIGCONT);
}

/* Our environment with the variable set. NULL when out of memory. */
static char **make_environment(const char *variable)
{
    size_t n = 0, made = 0, name = variable ? strcspn(variable, "=") + 1 : 0;
    while (environ && environ[n])
        n++;
    char **list = nrg_calloc(n + 2, sizeof *list);
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
        forward_to = 0;
        waitpid(child, NULL, 0);
        return nrg_fail(err, -why, argv[0], "%s", strerror(why));
    }
    return child;
}
