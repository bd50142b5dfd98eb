/* See slow_reader.h. Requests are counted: a reading serves all requests made before it began. */
#include "record/sampler/slow_reader.h"

#include <errno.h>

#include "record/thread.h"

#define PATIENCE_NS (3 * NRG_NS_PER_S)

/* True when it has just become quick: a reading is due. The caller holds the lock. */
static bool take_quicken(struct nrg_slow_reader *r)
{
    bool quicken = r->quicken;
    if (quicken)
        nrg_feed_quicken(&r->feed, nrg_now_ns());
    r->quicken = false;
    return quicken;
}

static void *read_loop(void *arg)
{
    struct nrg_slow_reader *r = arg;
    int64_t now = nrg_now_ns(), hand_over_ns = now + nrg_pace_period(r->pace, now);
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        while (!r->stop && r->asked == r->served && !take_quicken(r) &&
               nrg_now_ns() < r->feed.next_ns)
            nrg_cond_wait_until(&r->changed, &r->lock, r->feed.next_ns);
        uint64_t asked = r->asked;
        bool edge = asked != r->served; /* a reading at the edge of a run is handed over at once */
        pthread_mutex_unlock(&r->lock);
        nrg_feed_read(&r->feed);
        now = nrg_now_ns();
        if (now >= r->feed.next_ns)
            nrg_feed_schedule(&r->feed, now);
        if (now >= hand_over_ns || edge) {
            nrg_feed_hand_over(&r->feed);
            hand_over_ns = now + nrg_pace_period(r->pace, now);
        }
        pthread_mutex_lock(&r->lock);
        r->served = asked;
        pthread_cond_broadcast(&r->changed);
    }
    r->ended = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    nrg_feed_hand_over(&r->feed);
    return NULL;
}

int nrg_slow_reader_start(struct nrg_slow_reader *r)
{
    pthread_mutex_init(&r->lock, NULL);
    nrg_cond_init_monotonic(&r->changed);
    r->feed.next_ns = nrg_now_ns();
    int rc = nrg_thread_start(&r->thread, "nrg-slow", read_loop, r);
    r->started = !rc;
    return rc;
}

void nrg_slow_reader_quicken(struct nrg_slow_reader *r)
{
    pthread_mutex_lock(&r->lock);
    r->quicken = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

void nrg_slow_reader_ask(struct nrg_slow_reader *r)
{
    pthread_mutex_lock(&r->lock);
    r->asked++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

int nrg_slow_reader_wait(struct nrg_slow_reader *r)
{
    int64_t until = nrg_now_ns() + PATIENCE_NS;
    int rc = 0;
    pthread_mutex_lock(&r->lock);
    while (r->served < r->asked && !rc)
        rc = nrg_cond_wait_until(&r->changed, &r->lock, until);
    pthread_mutex_unlock(&r->lock);
    return rc ? -ETIMEDOUT : 0;
}

void nrg_slow_reader_stop(struct nrg_slow_reader *r)
{
    int64_t until = nrg_now_ns() + PATIENCE_NS;
    int rc = 0;
    if (!r->started)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    while (!r->ended && !rc)
        rc = nrg_cond_wait_until(&r->changed, &r->lock, until);
    r->stuck = !r->ended;
    pthread_mutex_unlock(&r->lock);
    if (r->stuck)
        pthread_detach(r->thread);
    else
        pthread_join(r->thread, NULL);
    r->started = false;
}

void nrg_slow_reader_release(struct nrg_slow_reader *r)
{
    nrg_slow_reader_stop(r);
    if (!r->stuck) /* a thread that hangs in the driver still uses the driver's state */
        nrg_feed_release(&r->feed);
}
