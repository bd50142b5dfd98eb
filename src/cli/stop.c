/* See stop.h. */
#include "cli/stop.h"

#include <errno.h>

static volatile sig_atomic_t asked, child;

/* Ctrl-C reaches the child by itself. */
static void on_stop(int signal)
{
    int saved = errno;
    asked = signal;
    if (signal == SIGTERM && child > 0)
        kill((pid_t)child, signal);
    errno = saved;
}

void nrg_set_signals(const int *signals, size_t n, const struct sigaction *action)
{
    struct sigaction old;
    for (size_t i = 0; i < n; i++)
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(signals[i], action, NULL);
}

static const int stops[] = {SIGINT, SIGTERM};

void nrg_stop_catch(void)
{
    nrg_set_signals(stops, 2, &(const struct sigaction){.sa_handler = on_stop});
}

void nrg_stop_release(void)
{
    nrg_set_signals(stops, 2, &(const struct sigaction){.sa_handler = SIG_DFL});
}

bool nrg_stop_asked(void)
{
    return asked;
}

int nrg_stop_signal(void)
{
    return asked;
}

void nrg_stop_pass_to(pid_t pid)
{
    child = pid;
    if (asked == SIGTERM && pid > 0) /* it came before */
        kill(pid, SIGTERM);
}
