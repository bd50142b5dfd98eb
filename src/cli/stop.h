/*
 * Ctrl-C and SIGTERM as a request to stop, which long loops poll. There is one flag for the
 * process, since a signal handler has no other state. A signal that was ignored when nrg started
 * stays ignored (nohup).
 */
#ifndef NRG_CLI_STOP_H
#define NRG_CLI_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

void nrg_stop_catch(void);
/* Back to the default actions. */
void nrg_stop_release(void);
bool nrg_stop_asked(void);
/* It is known: from now on only the next one counts. */
void nrg_stop_forget(void);
/* The signal that asked for it; 0: none did. */
int nrg_stop_signal(void);
/* What is sent to nrg alone goes on to this process, too; 0: to none any more. */
void nrg_stop_pass_to(pid_t pid);

/* Sets the action of signals, except of those that are ignored. */
void nrg_set_signals(const int *signals, size_t n, const struct sigaction *action);

#endif
