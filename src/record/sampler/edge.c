/*
 * Readings at the edges of a run. What the machine uses between the edge and the reading next to it
 * is not known, so the two are taken together: at a begin, what takes long is read first (sensors
 * that block, processes, load), then what counts energy, and the run begins with the last of these.
 * At an end, what counts energy is read first. What is left between them is in the interval
 * (energy/edges.h).
 *
 * A run that has begun is read once more soon: a recorder that is killed then leaves a run with two
 * readings, and of a gauge that is read seldom it is known how it went on.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record/sampler/internal.h"

#define SOON_NS (5 * NRG_NS_PER_MS) /* a few updates of the fastest counters */

static bool awaits_reading(const struct nrg_recorder *r, int64_t t_ns)
{
    for (size_t i = 0; i < r->n_feeds; i++) {
        const struct nrg_feed *feed = &r->feeds[i];
        if (feed->state && feed->found->driver->fd && (!feed->last_t_ns || feed->last_t_ns < t_ns))
            return true;
    }
    return false;
}

void nrg_recorder_await_pushed(struct nrg_recorder *r, int64_t t_ns)
{
    const struct timespec moment = {.tv_nsec = 5 * NRG_NS_PER_MS};
    int64_t until_ns = nrg_now_ns() + NRG_AWAIT_MOST_NS;
    bool more = true;
    while (more && nrg_now_ns() < until_ns) {
        pthread_mutex_lock(&r->lock);
        more = awaits_reading(r, t_ns);
        pthread_mutex_unlock(&r->lock);
        if (more)
            nanosleep(&moment, NULL);
    }
}

static void ask_slow(struct nrg_recorder *r)
{
    for (size_t i = 0; i < r->n_slow; i++)
        nrg_slow_reader_ask(&r->slow[i]);
}

static void wait_for_slow(struct nrg_recorder *r)
{
    for (size_t i = 0; i < r->n_slow; i++)
        if (nrg_slow_reader_wait(&r->slow[i]))
            nrg_recorder_event(r, "fault", r->slow[i].feed.found->sensor,
                               "did not answer at the edge of the run");
}

enum kind { COUNTS_ENERGY, LOAD, OTHER };

static enum kind kind_of(const struct nrg_feed *feed)
{
    return feed->found->driver->flags & NRG_WITH_PROCESSES ? LOAD
           : nrg_feed_measures(feed)                       ? COUNTS_ENERGY
                                                           : OTHER;
}

static void read_feeds(struct nrg_recorder *r, enum kind kind)
{
    for (size_t i = 0; i < r->n_feeds; i++)
        if (kind_of(&r->feeds[i]) == kind)
            nrg_feed_read(&r->feeds[i]);
}

/* Processes, then at once what they are compared with. */
static void read_load(struct nrg_recorder *r)
{
    read_feeds(r, OTHER);
    nrg_recorder_poll_processes(r);
    read_feeds(r, LOAD);
}

int64_t nrg_recorder_read_begin(struct nrg_recorder *r)
{
    ask_slow(r);
    wait_for_slow(r);
    pthread_mutex_lock(&r->lock);
    read_load(r);
    int64_t since_ns = nrg_now_ns(), begin_ns = since_ns;
    read_feeds(r, COUNTS_ENERGY);
    int64_t now_ns = nrg_now_ns();
    for (size_t i = 0; i < r->n_feeds; i++) {
        const struct nrg_feed *feed = &r->feeds[i];
        bool newer = feed->last_t_ns > begin_ns && feed->last_t_ns <= now_ns;
        if (kind_of(feed) == COUNTS_ENERGY && newer)
            begin_ns = feed->last_t_ns;
    }
    pthread_mutex_unlock(&r->lock);
    return begin_ns > since_ns ? begin_ns : now_ns;
}

int64_t nrg_recorder_read_now(struct nrg_recorder *r)
{
    int64_t now_ns = nrg_now_ns();
    ask_slow(r);
    pthread_mutex_lock(&r->lock);
    read_feeds(r, COUNTS_ENERGY);
    read_load(r);
    pthread_mutex_unlock(&r->lock);
    wait_for_slow(r);
    return now_ns;
}

void nrg_recorder_wake_sampler(struct nrg_recorder *r)
{
    uint64_t one = 1;
    pthread_cond_signal(&r->stopping);
    if (r->wake_fd >= 0 && write(r->wake_fd, &one, sizeof one) < 0)
        nrg_log(r->ctx, NRG_DEBUG, "waking the sampler: %s", strerror(errno));
}

void nrg_recorder_read_soon(struct nrg_recorder *r)
{
    int64_t soon_ns = nrg_now_ns() + SOON_NS;
    for (size_t i = 0; i < r->n_feeds; i++)
        if (r->feeds[i].next_ns > soon_ns)
            r->feeds[i].next_ns = soon_ns;
    if (r->process_next_ns > soon_ns)
        r->process_next_ns = soon_ns;
    if (r->commit_next_ns > soon_ns)
        r->commit_next_ns = soon_ns;
    nrg_recorder_wake_sampler(r);
}
