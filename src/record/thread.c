/* See thread.h. */
#include "record/thread.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"

#define STACK_BYTES (256 * 1024)

int nrg_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!rc)
        pthread_setname_np(*thread, name);
    return -rc;
}

void nrg_cond_init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int nrg_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, long long t_ns)
{
    struct timespec ts = {(time_t)(t_ns / NRG_NS_PER_S), (long)(t_ns % NRG_NS_PER_S)};
    return pthread_cond_timedwait(cond, lock, &ts);
}
