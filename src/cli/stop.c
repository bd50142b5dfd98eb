/* See stop.h. */
#include "cli/stop.h"

#include <errno.h>

#include "cli/run/witness.h"

static volatile sig_atomic_t asked, child;

/* What the terminal or somebody sends to the whole group reaches the child by itself. */
static void on_stop(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    bool from_terminal = info->si_code == SI_KERNEL;
    asked = signal;
    if (child > 0 && !from_terminal && !nrg_witness_saw(signal))
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
#define N_STOPS (sizeof stops / sizeof *stops)

void nrg_stop_catch(void)
{
    struct sigaction action = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    nrg_set_signals(stops, N_STOPS, &action);
}

void nrg_stop_release(void)
{
    nrg_set_signals(stops, N_STOPS, &(const struct sigaction){.sa_handler = SIG_DFL});
}

bool nrg_stop_asked(void)
{
    return asked;
}

void nrg_stop_forget(void)
{
    asked = 0;
}

int nrg_stop_signal(void)
{
    return asked;
}

void nrg_stop_pass_to(pid_t pid)
{
    child = pid;
    if (asked && pid > 0) /* it came before */
        kill(pid, SIGTERM);
}
