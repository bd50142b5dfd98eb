/*
 * Busy, idle, busy: one thread for each CPU that we may use. A seeded generator gives the lengths
 * of the phases, so that the pattern matches itself at one delay only; a regular one would match
 * again a period later.
 */
#include "cli/meter/load.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define MAX_THREADS 1024

struct load {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool busy;
    bool over;
};

static void spin_while_busy(struct load *l)
{
    volatile double x = 1;
    while (atomic_load_explicit(&l->busy, memory_order_relaxed))
        for (int i = 0; i < 2000; i++)
            x = x * 1.0000001 + 1e-9;
}

/* At low priority, because sensors must be read in time: a late reading looks like a late meter. */
static void *run_worker(void *arg)
{
    struct load *l = arg;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
    pthread_mutex_lock(&l->lock);
    while (!l->over) {
        if (atomic_load(&l->busy)) {
            pthread_mutex_unlock(&l->lock);
            spin_while_busy(l);
            pthread_mutex_lock(&l->lock);
        } else {
            pthread_cond_wait(&l->changed, &l->lock);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void set_phase(struct load *l, bool busy, bool over)
{
    pthread_mutex_lock(&l->lock);
    atomic_store(&l->busy, busy);
    l->over = over;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* Short naps, so that Ctrl-C is answered soon. */
static void wait_until(int64_t until_ns, bool (*stopped)(void))
{
    const struct timespec nap = {0, 20 * NRG_NS_PER_MS};
    while (nrg_now_ns() < until_ns && !stopped())
        nanosleep(&nap, NULL);
}

static void play_phases(struct load *l, int64_t total_ns, int64_t least_ns, unsigned seed,
                        bool (*stopped)(void))
{
    uint64_t random = seed * UINT64_C(2654435761) + 88172645463325252;
    int64_t end_ns = nrg_now_ns() + total_ns, at = nrg_now_ns();
    for (bool busy = true; at < end_ns && !stopped(); busy = !busy) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        at += least_ns + (int64_t)(random % (uint64_t)(2 * least_ns));
        set_phase(l, busy, false);
        wait_until(at < end_ns ? at : end_ns, stopped);
    }
}

int nrg_meter_load(int64_t total_ns, int64_t least_ns, unsigned seed, bool (*stopped)(void))
{
    struct load l = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    cpu_set_t cpus;
    int wanted = sched_getaffinity(0, sizeof cpus, &cpus) ? 1 : CPU_COUNT(&cpus), n = 0;
    if (wanted > MAX_THREADS)
        wanted = MAX_THREADS;
    pthread_t *threads = nrg_calloc((size_t)wanted, sizeof *threads);
    if (!threads)
        return -ENOMEM;
    while (n < wanted && !pthread_create(&threads[n], NULL, run_worker, &l))
        n++;
    if (n)
        play_phases(&l, total_ns, least_ns > 0 ? least_ns : NRG_NS_PER_S, seed, stopped);
    set_phase(&l, false, true);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return n ? 0 : -EAGAIN;
}
