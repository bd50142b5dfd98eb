/*
 * The sampling thread of the recorder. It sleeps until the next deadline, in ppoll where a
 * descriptor may become readable earlier. All deadlines start at the same instant, so equal periods
 * share a wake-up. Its lock is contended at the edges of a run only.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/sampler/internal.h"
#include "record/thread.h"

#define CLOCK_NS      (950 * NRG_NS_PER_MS) /* about every second, whatever the pace */
#define CLOCK_STEP_NS (100 * NRG_NS_PER_MS)

static bool is_jump(int64_t ns)
{
    return ns > CLOCK_STEP_NS || ns < -CLOCK_STEP_NS;
}

/* Against the time that readings have: the machine slept, or the wall clock was set, or both. */
static void check_clock(struct nrg_recorder *r)
{
    char detail[160];
    struct nrg_clock_pair pair = nrg_clock_pair_now(r->with_tsc), *last = &r->last_clock;
    int64_t passed_ns = pair.mono_ns - last->mono_ns;
    int64_t slept_ns = pair.boot_ns - last->boot_ns - passed_ns;
    int64_t set_ns = pair.real_ns - last->real_ns - passed_ns - slept_ns;
    nrg_queue_push(&r->queue, &(struct nrg_message){.kind = NRG_MSG_CLOCK, .clock = pair});
    if (last->mono_ns && is_jump(slept_ns)) {
        snprintf(
            detail, sizeof detail,
            "the machine was suspended for %.3f s: that time is in no duration, and its energy "
            "is known only to counters that went on",
            (double)slept_ns / 1e9);
        nrg_queue_push_event(&r->queue, "suspend", "clock", detail);
    }
    if (last->mono_ns && is_jump(set_ns)) {
        snprintf(detail, sizeof detail,
                 "the wall clock was set by %+.3f s; durations and energies are not affected",
                 (double)set_ns / 1e9);
        nrg_queue_push_event(&r->queue, "clock-step", "clock", detail);
    }
    *last = pair;
}

void nrg_recorder_hand_over_rows(struct nrg_recorder *r)
{
    for (size_t i = 0; i < r->n_feeds; i++)
        nrg_feed_hand_over(&r->feeds[i]);
    nrg_queue_push_rows(&r->queue, NRG_MSG_ROWS, r->process_series, &r->process_rows);
    if (nrg_queue_rows(&r->queue)) /* also those of other threads */
        nrg_queue_wake(&r->queue);
}

void nrg_recorder_hand_over(struct nrg_recorder *r)
{
    check_clock(r);
    nrg_recorder_hand_over_rows(r);
    nrg_queue_wake(&r->queue);
}

void nrg_recorder_first_readings(struct nrg_recorder *r, int64_t now_ns)
{
    pthread_mutex_lock(&r->lock);
    check_clock(r);
    for (size_t i = 0; i < r->n_feeds; i++) {
        r->feeds[i].next_ns = now_ns + r->feeds[i].period_ns;
        if (!r->feeds[i].found->driver->fd)
            nrg_feed_read(&r->feeds[i]);
    }
    r->process_next_ns = now_ns + r->process_period_ns;
    r->commit_next_ns = now_ns + nrg_pace_period(&r->pace, now_ns);
    pthread_mutex_unlock(&r->lock);
}

static void read_due_feeds(struct nrg_recorder *r, int64_t now, unsigned flag)
{
    for (size_t i = 0; i < r->n_feeds; i++) {
        struct nrg_feed *feed = &r->feeds[i];
        if (!nrg_feed_is_due(feed, now) ||
            (feed->found->driver->flags & NRG_WITH_PROCESSES) != flag)
            continue;
        nrg_feed_read(feed);
        r->status.ticks++;
        r->status.late_ticks += nrg_feed_schedule(feed, now);
    }
}

void nrg_recorder_poll_processes(struct nrg_recorder *r)
{
    nrg_proctree_poll(r->tree);
    if (r->drain)
        nrg_span_drain_read_cpu(r->drain);
}

/* Spans are short, so sensors are read faster from the first one on. */
static void quicken_if_due(struct nrg_recorder *r, int64_t now)
{
    if (r->quick == NRG_QUICK_NEVER ||
        (r->quick == NRG_QUICK_WITH_SPANS && !(r->drain && nrg_span_drain_is_marked(r->drain))))
        return;
    for (size_t i = 0; i < r->n_feeds; i++)
        nrg_feed_quicken(&r->feeds[i], now);
    for (size_t i = 0; i < r->n_slow; i++)
        nrg_slow_reader_quicken(&r->slow[i]);
    r->quick = NRG_QUICK_NEVER;
}

static void commit_if_due(struct nrg_recorder *r, int64_t now)
{
    if (r->commit_next_ns > now)
        return;
    int64_t period_ns = nrg_pace_period(&r->pace, now);
    bool marked = r->drain && nrg_span_drain_is_marked(r->drain);
    if (r->slow_pace && !marked && period_ns == NRG_PACE_STEADY_NS)
        period_ns = NRG_PACE_SLOW_NS;
    if (now - r->last_clock.mono_ns >= CLOCK_NS)
        nrg_recorder_hand_over(r);
    else
        nrg_recorder_hand_over_rows(r);
    r->commit_next_ns += period_ns * (1 + (now - r->commit_next_ns) / period_ns);
}

static void read_due(struct nrg_recorder *r, int64_t now)
{
    quicken_if_due(r, now);
    read_due_feeds(r, now, 0);
    if (r->process_next_ns <= now) {
        nrg_recorder_poll_processes(r);
        r->process_next_ns +=
            r->process_period_ns * (1 + (now - r->process_next_ns) / r->process_period_ns);
    }
    read_due_feeds(r, now, NRG_WITH_PROCESSES);
    commit_if_due(r, now);
}

static int64_t next_deadline(const struct nrg_recorder *r)
{
    int64_t next = r->commit_next_ns < r->process_next_ns ? r->commit_next_ns : r->process_next_ns;
    for (size_t i = 0; i < r->n_feeds; i++)
        if (nrg_feed_is_due(&r->feeds[i], next))
            next = r->feeds[i].next_ns;
    return next;
}

#define MAX_POLLED 34
#define UNWOKEN_NS (100 * NRG_NS_PER_MS) /* the longest sleep without a descriptor to end it */

/* fds[0] wakes the thread, fds[1] is the proc connector, the rest are sensors that push. */
static nfds_t list_polled(const struct nrg_recorder *r, struct pollfd *fds, size_t *feed_of)
{
    nfds_t n = 2;
    fds[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = nrg_proctree_fd(r->tree), .events = POLLIN};
    for (size_t i = 0; i < r->n_feeds && n < MAX_POLLED; i++) {
        if (r->feeds[i].state && r->feeds[i].found->driver->fd) {
            feed_of[n] = i;
            fds[n++] = (struct pollfd){.fd = r->feeds[i].found->driver->fd(r->feeds[i].state),
                                       .events = POLLIN};
        }
    }
    return n;
}

static void poll_until(struct nrg_recorder *r, int64_t deadline_ns)
{
    struct pollfd fds[MAX_POLLED];
    size_t feed_of[MAX_POLLED];
    nfds_t n = list_polled(r, fds, feed_of);
    int64_t wait = deadline_ns - nrg_now_ns();
    if (r->wake_fd < 0 && wait > UNWOKEN_NS)
        wait = UNWOKEN_NS;
    struct timespec ts = {wait / NRG_NS_PER_S, wait % NRG_NS_PER_S};
    if (wait <= 0)
        return;
    pthread_mutex_unlock(&r->lock);
    int ready = ppoll(fds, n, &ts, NULL);
    pthread_mutex_lock(&r->lock);
    bool gone = false;
    uint64_t woken; /* left unread, it would wake the thread again and again */
    if (ready > 0 && fds[0].revents && read(r->wake_fd, &woken, sizeof woken) < 0)
        nrg_log(r->ctx, NRG_DEBUG, "woken: %s", strerror(errno));
    for (nfds_t i = 1; ready > 0 && i < n; i++) {
        gone |= fds[i].revents & POLLNVAL;
        if (fds[i].revents && i == 1)
            nrg_proctree_drain(r->tree);
        else if (fds[i].revents)
            nrg_feed_read(&r->feeds[feed_of[i]]);
    }
    /* Closed by the program that we are in: such a descriptor is ready without end. */
    if (gone && !r->sampler_stop)
        nrg_cond_wait_until(&r->stopping, &r->lock, nrg_now_ns() + wait);
}

/* True when no descriptor can wake the thread: only its deadlines and the stop do. */
static bool has_only_deadlines(const struct nrg_recorder *r)
{
    bool pushed = nrg_proctree_fd(r->tree) >= 0;
    for (size_t i = 0; i < r->n_feeds; i++)
        pushed |= r->feeds[i].found->driver->fd != NULL;
    return !pushed;
}

void *nrg_recorder_sample_loop(void *arg)
{
    struct nrg_recorder *r = arg;
    pthread_mutex_lock(&r->lock);
    bool sleep_only = has_only_deadlines(r);
    while (!r->sampler_stop) {
        int64_t deadline_ns = next_deadline(r);
        if (!sleep_only)
            poll_until(r, deadline_ns);
        else if (deadline_ns > nrg_now_ns()) /* a tenth cheaper than ppoll */
            nrg_cond_wait_until(&r->stopping, &r->lock, deadline_ns);
        read_due(r, nrg_now_ns());
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}
