/* See inject/follow.h. */
#include "inject/follow.h"

#include <signal.h>
#include <time.h>

#include "inject/inject.h"
#include "nrg/nrg.h"

#define BATCH    4096 /* marks in a row, which wait until there is room for them */
#define STALL_MS 2000 /* a recorder that takes nothing for so long has come to an end */
#define END_S    5    /* the program's end waits no longer than that */

__attribute__((visibility("default"))) _Atomic int nrg_inject_tracing;

/* The recorder empties a ring within some ms, later where processors are busy. */
static void wait_for_room(void)
{
    const struct timespec rest = {0, 2000000};
    for (int ms = 0; ms < STALL_MS && nrg_span_room() < BATCH; ms += 2)
        nanosleep(&rest, NULL);
}

void nrg_follow_mark(struct nrg_gpu_activity *activity, int64_t before_ns)
{
    do
        wait_for_room();
    while (nrg_activity_mark(activity, before_ns, BATCH) == BATCH);
}

void nrg_follow_say(const struct nrg_gpu_activity *a, uint64_t n_dropped, const char *source)
{
    struct timespec cpu = {0};
    wait_for_room();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    nrg_inject_say("GPU trace: %llu spans of GPU work from %llu records; nrg's thread for them "
                   "used %.1f ms of CPU time, %s's own cost is not known",
                   (unsigned long long)a->n_marked, (unsigned long long)a->n_records,
                   (double)cpu.tv_sec * 1e3 + (double)cpu.tv_nsec / 1e6, source);
    if (n_dropped || a->n_lost)
        nrg_inject_say("GPU trace: %llu records are missing: %s made more than could be taken",
                       (unsigned long long)(n_dropped + a->n_lost), source);
    if (a->n_timeless)
        nrg_inject_say("GPU trace: %s had no times for %llu records, which are left out", source,
                       (unsigned long long)a->n_timeless);
    if (a->n_untied)
        nrg_inject_say("GPU trace: who launched %llu spans of GPU work is not known: they are "
                       "below no span",
                       (unsigned long long)a->n_untied);
}

bool nrg_follow_start(pthread_t *thread, void *(*run)(void *))
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!rc)
        pthread_setname_np(*thread, "nrg-gpu");
    return !rc;
}

void nrg_follow_join(pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_S;
    pthread_timedjoin_np(thread, NULL, &until);
}
