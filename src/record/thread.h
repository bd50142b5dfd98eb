/*
 * Threads of the recorder: a small stack, a name, and all signals blocked, because signals are the
 * program's; but not SIGBUS, which comes of what the thread itself does (base/mapped.h). The caller
 * joins or detaches. Errors: a negative errno unless said otherwise.
 */
#ifndef NRG_RECORD_THREAD_H
#define NRG_RECORD_THREAD_H

#include <pthread.h>

int nrg_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* A condition variable that waits on CLOCK_MONOTONIC. */
void nrg_cond_init_monotonic(pthread_cond_t *cond);
/* Waits until t_ns (CLOCK_MONOTONIC) at most; 0 or ETIMEDOUT. */
int nrg_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, long long t_ns);

#endif
