/* Threads of the recorder: small stack, a name, and no signals (they are the caller's). */
#ifndef NRG_RECORD_THREAD_H
#define NRG_RECORD_THREAD_H

#include <pthread.h>

int nrg_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* A condition variable that waits on CLOCK_MONOTONIC. */
void nrg_cond_init_monotonic(pthread_cond_t *cond);
/* Until t_ns (CLOCK_MONOTONIC); 0 or ETIMEDOUT. */
int nrg_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, long long t_ns);

#endif
