/*
 * See team.h. A round has a number: the caller raises it, members that see it work and count down.
 * They look for a new round for a while before they sleep on a futex-backed condition.
 */
#include "calibrate/team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LOOKS 20000 /* some tens of microseconds */

struct member {
    struct nrg_team *team;
    pthread_t thread;
    unsigned at;
};

struct nrg_team {
    struct member *members;
    unsigned n, started;
    atomic_uint round, left;
    atomic_bool ends;
    pthread_mutex_t lock;
    pthread_cond_t begun;
    nrg_team_fn *fn;
    void *arg;
};

/* Spins, then sleeps; true: there is work. */
static bool wait_for_round(struct nrg_team *team, unsigned seen)
{
    for (int i = 0; i < LOOKS; i++)
        if (atomic_load_explicit(&team->round, memory_order_acquire) != seen)
            return !atomic_load(&team->ends);
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->round) == seen)
        pthread_cond_wait(&team->begun, &team->lock);
    pthread_mutex_unlock(&team->lock);
    return !atomic_load(&team->ends);
}

static void *run_member(void *arg)
{
    struct member *m = arg;
    struct nrg_team *team = m->team;
    for (unsigned seen = 0; wait_for_round(team, seen); seen++) {
        team->fn(team->arg, m->at, team->n);
        atomic_fetch_sub_explicit(&team->left, 1, memory_order_release);
    }
    return NULL;
}

static void begin_round(struct nrg_team *team)
{
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add_explicit(&team->round, 1, memory_order_release);
    pthread_cond_broadcast(&team->begun);
    pthread_mutex_unlock(&team->lock);
}

/* Members block all signals, which they inherit from here, so that the caller gets them. */
static int start_members(struct nrg_team *team)
{
    sigset_t all, before;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 1; !rc && i < team->n; i++) {
        team->members[i] = (struct member){.team = team, .at = i};
        rc = -pthread_create(&team->members[i].thread, NULL, run_member, &team->members[i]);
        team->started += !rc;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int nrg_team_new(struct nrg_team **out, unsigned n, struct nrg_error *err)
{
    struct nrg_team *team = nrg_calloc(1, sizeof *team);
    if (team)
        team->members = nrg_calloc(n, sizeof *team->members);
    if (!team || !team->members) {
        free(team);
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    }
    team->n = n;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->begun, NULL);
    int rc = start_members(team);
    if (rc) {
        nrg_team_free(team);
        return nrg_fail(err, rc, NULL, "%u threads can't be started: %s", n, strerror(-rc));
    }
    *out = team;
    return 0;
}

void nrg_team_free(struct nrg_team *team)
{
    if (!team)
        return;
    atomic_store(&team->ends, true);
    begin_round(team);
    for (unsigned i = 1; i <= team->started; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->begun);
    pthread_mutex_destroy(&team->lock);
    free(team->members);
    free(team);
}

unsigned nrg_team_size(const struct nrg_team *team)
{
    return team->n;
}

void nrg_team_run(struct nrg_team *team, nrg_team_fn *fn, void *arg)
{
    if (team->n == 1) {
        fn(arg, 0, 1);
        return;
    }
    team->fn = fn;
    team->arg = arg;
    atomic_store(&team->left, team->n - 1);
    begin_round(team);
    fn(arg, 0, team->n);
    /* With more members than processors, let the others run. */
    for (unsigned i = 0; atomic_load_explicit(&team->left, memory_order_acquire); i++)
        if (i >= LOOKS)
            sched_yield();
}

void nrg_team_part(size_t total, size_t step, unsigned at, unsigned n, size_t *begin, size_t *end)
{
    size_t steps = (total + step - 1) / step;
    size_t first = steps * at / n * step, last = steps * (at + 1) / n * step;
    *begin = first < total ? first : total;
    *end = last < total ? last : total;
}
