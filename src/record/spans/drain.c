/*
 * See span_drain.h. A merge of the lanes through a heap of their next events; each lane copies a
 * few records at a time, so that memory does not grow with what is in the rings.
 */
#include "record/spans/drain.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/spans/lane.h"
#include "record/spans/rows.h"
#include "record/thread.h"
#include "sensors/channel.h"

#define SLOWEST_NS   (100 * NRG_NS_PER_MS)
#define FASTEST_NS   (5 * NRG_NS_PER_MS)
#define REST_NS      NRG_NS_PER_MS /* at least, whoever wakes us */
#define HAND_OVER_NS NRG_NS_PER_S
#define MAX_WAITING  (1u << 17) /* rows in the queue: 6 MB */
#define PATIENCE     10000      /* of the last round: ms without progress of the writer */

struct nrg_span_drain {
    struct nrg_span_drain_options options;
    const struct nrg_span_segment *segment;
    struct nrg_span_rows rows;
    struct nrg_span_clock clock;
    struct nrg_span_lane *lanes[NRG_RING_SLOTS];
    struct nrg_span_lane *heap[NRG_RING_SLOTS];
    size_t n_lanes, n_heap;
    uint64_t pid_namespace, unplaced;
    int64_t period_ns, cpu_next_ns, hand_over_ns;
    bool said_lost;
    struct nrg_span_totals totals;
    pthread_t thread;
    bool started, stopped;
    _Atomic bool stop;
    pthread_mutex_t lock; /* all above but the thread's own */
};

static void skip_old_records(struct nrg_span_drain *d)
{
    struct nrg_ring_slot *slots = nrg_span_segment_slots(d->segment);
    if (!atomic_load(&d->segment->header->claims))
        return; /* a look would touch pages that nobody uses */
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        atomic_store(&slots[i].tail, atomic_load(&slots[i].head));
}

struct nrg_span_drain *nrg_span_drain_new(const struct nrg_span_drain_options *options)
{
    struct nrg_span_drain *d = calloc(1, sizeof *d);
    struct stat st;
    if (!d)
        return NULL;
    d->options = *options;
    d->segment = options->segment;
    d->period_ns = SLOWEST_NS;
    d->pid_namespace = stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
    d->unplaced = atomic_load(&d->segment->header->unplaced);
    nrg_span_rows_init(&d->rows, options);
    nrg_span_clock_init(&d->clock, (enum nrg_ring_clock)d->segment->header->clock);
    pthread_mutex_init(&d->lock, NULL);
    skip_old_records(d);
    atomic_store(&d->segment->header->listening, 1);
    return d;
}

void nrg_span_drain_free(struct nrg_span_drain *d)
{
    if (!d)
        return;
    nrg_span_drain_stop(d);
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        nrg_span_lane_free(d->lanes[i]);
    nrg_span_rows_release(&d->rows);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

void nrg_span_drain_hand_over(struct nrg_span_drain *d)
{
    nrg_span_rows_hand_over(&d->rows);
}

static void open_lane(struct nrg_span_drain *d, size_t slot)
{
    d->lanes[slot] = nrg_span_lane_new(d->segment, slot, d->pid_namespace);
    d->n_lanes += d->lanes[slot] != NULL;
}

static void close_lane(struct nrg_span_drain *d, size_t slot)
{
    nrg_span_lane_give_back(d->lanes[slot], d->segment);
    nrg_span_lane_free(d->lanes[slot]);
    d->lanes[slot] = NULL;
    d->n_lanes--;
}

static uint64_t count_unplaced(struct nrg_span_drain *d)
{
    uint64_t unplaced = atomic_load_explicit(&d->segment->header->unplaced, memory_order_relaxed);
    uint64_t news = unplaced > d->unplaced ? unplaced - d->unplaced : 0;
    d->unplaced = unplaced;
    return news;
}

static void count_dropped(struct nrg_span_drain *d, uint64_t news)
{
    if (!news)
        return;
    d->totals.dropped += news < INT64_MAX - d->totals.dropped ? news : 0;
    if (!d->said_lost)
        nrg_span_rows_event(&d->rows, "lost", "spans",
                            "marked faster than could be written: some are missing");
    d->said_lost = true;
}

/* Finds new threads and how much there is to do; returns the fullest ring's records. */
static uint64_t look_around(struct nrg_span_drain *d)
{
    struct nrg_ring_slot *slots = nrg_span_segment_slots(d->segment);
    uint64_t fullest = 0;
    for (size_t i = 0; i < NRG_RING_SLOTS; i++) {
        if (!d->lanes[i] && atomic_load_explicit(&slots[i].owner, memory_order_relaxed) &&
            atomic_load_explicit(&slots[i].phase, memory_order_acquire) != NRG_RING_CLAIMED)
            open_lane(d, i);
        if (!d->lanes[i])
            continue;
        uint64_t waiting = nrg_span_lane_look(d->lanes[i], d->segment, &d->totals.damaged);
        fullest = waiting > fullest ? waiting : fullest;
        count_dropped(d, nrg_span_lane_dropped(d->lanes[i], d->segment));
    }
    count_dropped(d, count_unplaced(d));
    d->clock.now_ns = nrg_now_ns();
    return fullest;
}

static bool is_before(const struct nrg_span_lane *a, const struct nrg_span_lane *b)
{
    return a->next.t_ns != b->next.t_ns ? a->next.t_ns < b->next.t_ns : a->slot < b->slot;
}

static void sift_down(struct nrg_span_drain *d, size_t at)
{
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        for (size_t c = child; c < child + 2 && c < d->n_heap; c++)
            if (is_before(d->heap[c], d->heap[least]))
                least = c;
        if (least == at)
            return;
        struct nrg_span_lane *lane = d->heap[at];
        d->heap[at] = d->heap[least];
        d->heap[least] = lane;
        at = least;
    }
}

static void fill_heap(struct nrg_span_drain *d, int64_t until_ns)
{
    d->n_heap = 0;
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        if (d->lanes[i] &&
            nrg_span_lane_peek(d->lanes[i], d->segment, &d->clock, &d->totals.damaged) &&
            d->lanes[i]->next.t_ns <= until_ns)
            d->heap[d->n_heap++] = d->lanes[i];
    for (size_t i = d->n_heap / 2; i-- > 0;)
        sift_down(d, i);
}

static void settle_all(struct nrg_span_drain *d)
{
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        if (d->lanes[i])
            nrg_span_lane_settle(d->lanes[i], d->segment);
}

/* False: the writer is behind, and what is left stays in the rings. */
static bool writer_keeps_up(struct nrg_span_drain *d, bool last)
{
    struct nrg_queue *queue = d->options.queue;
    size_t waiting = nrg_queue_rows(queue), least = SIZE_MAX;
    if (waiting <= MAX_WAITING || !last)
        return waiting <= MAX_WAITING;
    for (int idle = 0; idle < PATIENCE && waiting > MAX_WAITING; idle++) {
        struct timespec ms = {0, NRG_NS_PER_MS};
        nanosleep(&ms, NULL);
        waiting = nrg_queue_rows(queue);
        idle = waiting < least ? 0 : idle;
        least = waiting < least ? waiting : least;
    }
    return waiting <= MAX_WAITING;
}

/* Gives out events up to a time, in order. False: not all of them. */
static bool merge(struct nrg_span_drain *d, int64_t until_ns, bool last)
{
    if (!writer_keeps_up(d, last))
        return false;
    fill_heap(d, until_ns);
    while (d->n_heap) {
        struct nrg_span_lane *lane = d->heap[0];
        nrg_span_rows_add(&d->rows, lane, &d->totals);
        nrg_span_lane_advance(lane);
        if (!nrg_span_lane_peek(lane, d->segment, &d->clock, &d->totals.damaged) ||
            lane->next.t_ns > until_ns)
            d->heap[0] = d->heap[--d->n_heap];
        sift_down(d, 0);
        if (nrg_span_rows_are_many(&d->rows)) {
            settle_all(d);
            nrg_span_drain_hand_over(d);
            nrg_queue_wake(d->options.queue);
            if (!writer_keeps_up(d, last))
                return false;
        }
    }
    return true;
}

static void read_cpu(struct nrg_span_drain *d, struct nrg_span_lane *lane)
{
    int64_t cpu_ns;
    int rc = nrg_span_lane_cpu(lane, &cpu_ns);
    if (!rc && lane->track)
        nrg_span_rows_cpu(&d->rows, lane, nrg_now_ns(), cpu_ns);
    lane->over |= rc == -ESRCH;
}

static void read_all_cpu(struct nrg_span_drain *d, int64_t now_ns, bool last)
{
    bool due = last || now_ns >= d->cpu_next_ns;
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        if (d->lanes[i] && !d->lanes[i]->over && (due || d->lanes[i]->cpu_ns == NRG_MISSING))
            read_cpu(d, d->lanes[i]);
    if (due)
        d->cpu_next_ns = now_ns + d->options.cpu_period_ns;
}

/* How long until a ring that fills like the fullest one is a quarter full. */
static int64_t next_period(int64_t period_ns, uint64_t fullest, bool done)
{
    if (!done)
        return FASTEST_NS;
    double quarters = (double)fullest / (NRG_RING_RECORDS / 4);
    double wanted = quarters > 0.5 ? (double)period_ns / quarters : 2 * (double)period_ns;
    return wanted < FASTEST_NS ? FASTEST_NS : wanted > SLOWEST_NS ? SLOWEST_NS : (int64_t)wanted;
}

int64_t nrg_span_drain_step(struct nrg_span_drain *d, bool last)
{
    int64_t now_ns = nrg_span_clock_update(&d->clock);
    uint64_t fullest = look_around(d);
    bool done = merge(d, last ? INT64_MAX : now_ns, last);
    settle_all(d);
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        if (d->lanes[i] && d->lanes[i]->over && done && !d->lanes[i]->next_records)
            close_lane(d, i);
    if (d->n_lanes)
        read_all_cpu(d, now_ns, last);
    if (now_ns >= d->hand_over_ns || !d->n_lanes) {
        nrg_span_drain_hand_over(d);
        d->hand_over_ns = now_ns + HAND_OVER_NS;
    }
    d->period_ns = next_period(d->period_ns, fullest, done);
    return d->n_lanes ? d->period_ns : 0;
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static void rest(int64_t ns)
{
    struct timespec ts = {ns / NRG_NS_PER_S, ns % NRG_NS_PER_S};
    nanosleep(&ts, NULL);
}

static void *drain_loop(void *arg)
{
    struct nrg_span_drain *d = arg;
    _Atomic uint32_t *claims = &d->segment->header->claims;
    while (!atomic_load(&d->stop)) {
        uint32_t seen = atomic_load(claims);
        int64_t wait_ns = 0;
        if (seen) {
            pthread_mutex_lock(&d->lock);
            wait_ns = nrg_span_drain_step(d, false);
            pthread_mutex_unlock(&d->lock);
        }
        int64_t slept_ns = nrg_now_ns();
        struct timespec ts = {wait_ns / NRG_NS_PER_S, wait_ns % NRG_NS_PER_S};
        if (!atomic_load(&d->stop))
            futex(claims, FUTEX_WAIT, seen, wait_ns ? &ts : NULL);
        if (nrg_now_ns() - slept_ns < REST_NS && !atomic_load(&d->stop))
            rest(REST_NS); /* a program could wake us without end */
    }
    return NULL;
}

int nrg_span_drain_start(struct nrg_span_drain *d, pthread_t *thread)
{
    int rc = nrg_thread_start(&d->thread, "nrg-spans", drain_loop, d);
    d->started = !rc;
    *thread = d->thread;
    return rc;
}

void nrg_span_drain_exiting(struct nrg_span_drain *d, int32_t pid)
{
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; d->n_lanes && i < NRG_RING_SLOTS; i++)
        if (d->lanes[i] && d->lanes[i]->pid == pid && !d->lanes[i]->over)
            read_cpu(d, d->lanes[i]);
    pthread_mutex_unlock(&d->lock);
}

static void end_thread(struct nrg_span_drain *d)
{
    _Atomic uint32_t *claims = &d->segment->header->claims;
    if (!d->started)
        return;
    atomic_store(&d->stop, true);
    atomic_fetch_add(claims, 1);
    futex(claims, FUTEX_WAKE, INT_MAX, NULL);
    pthread_join(d->thread, NULL);
    d->started = false;
}

void nrg_span_drain_stop(struct nrg_span_drain *d)
{
    if (d->stopped)
        return;
    d->stopped = true;
    end_thread(d);
    atomic_store(&d->segment->header->listening, 0);
    if (d->n_lanes || atomic_load(&d->segment->header->claims)) {
        nrg_span_drain_step(d, true);
        nrg_span_drain_hand_over(d);
    }
}

struct nrg_span_totals nrg_span_drain_totals(const struct nrg_span_drain *d)
{
    return d->totals;
}
