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

void nrg_stop_catch(void);
/* Back to the default actions. */
void nrg_stop_release(void);
bool nrg_stop_asked(void);

/* Sets the action of signals, except of those that are ignored. */
void nrg_set_signals(const int *signals, size_t n, const struct sigaction *action);

#endif
