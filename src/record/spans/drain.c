/*
 * See spans/drain.h. A merge of the lanes through a heap of their next events; each lane copies a
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

#define SLOWEST_NS  (100 * NRG_NS_PER_MS)
#define FASTEST_NS  (5 * NRG_NS_PER_MS)
#define REST_NS     NRG_NS_PER_MS         /* the shortest sleep, however often programs wake it */
#define IDLE_NS     (250 * NRG_NS_PER_MS) /* the longest, however programs keep it asleep */
#define MAX_WAITING (1u << 17)            /* rows in the queue: 6 MB */
#define WAITING     4                     /* moments at which CPU times were read, in two rounds */
#define PATIENCE_MS 10000 /* of the last round, while the writer makes no progress */

/*
 * CPU times that were read for all threads at one moment. They wait until the events before that
 * moment have become rows, because rows of threads are in order of time.
 */
struct waiting_cpu {
    int64_t t_ns;
    int64_t cpu_ns[NRG_RING_SLOTS];
    bool read[NRG_RING_SLOTS];
};

struct nrg_span_drain {
    struct nrg_span_drain_options options;
    const struct nrg_span_segment *segment;
    struct nrg_span_rows rows;
    struct nrg_span_clock clock;
    struct nrg_span_lane *lanes[NRG_RING_SLOTS];
    struct nrg_span_lane *heap[NRG_RING_SLOTS];
    size_t n_lanes, n_heap;
    struct waiting_cpu waiting[WAITING];
    size_t n_waiting;
    uint64_t pid_namespace;
    uint64_t unplaced, unplaced_seen; /* the memory's count; of it, since this drain began */
    struct nrg_lane_drops drops;
    int64_t period_ns, cpu_next_ns, hand_over_ns;
    bool said[NRG_SPAN_DROPS], said_forgotten;
    struct nrg_span_totals totals;
    pthread_t thread;
    bool started, stopped;
    _Atomic bool stop;
    pthread_mutex_t lock; /* all above but the thread's own */
};

bool nrg_span_drain_is_marked(const struct nrg_span_drain *d)
{
    return atomic_load_explicit(&d->segment->header->claims, memory_order_relaxed) != 0;
}

/* What is left of a recorder before this one, which used the same memory. */
static void skip_old_records(struct nrg_span_drain *d)
{
    struct nrg_ring_slot *slots = nrg_span_segment_slots(d->segment);
    if (!atomic_load(&d->segment->header->claims))
        return; /* reading slots would touch pages that nobody uses */
    for (size_t i = 0; i < NRG_RING_SLOTS; i++) {
        atomic_store(&slots[i].tail, atomic_load(&slots[i].head));
        atomic_store(&slots[i].dropped, 0);
        atomic_store(&slots[i].too_deep, 0);
        atomic_store(&slots[i].nameless, 0);
    }
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
    nrg_span_history_leave(d->lanes[slot]);
    nrg_span_lane_give_back(d->lanes[slot]);
    nrg_span_lane_free(d->lanes[slot]);
    d->lanes[slot] = NULL;
    d->n_lanes--;
}

static void count_unplaced(struct nrg_span_drain *d)
{
    uint64_t unplaced = atomic_load_explicit(&d->segment->header->unplaced, memory_order_relaxed);
    uint64_t more = unplaced > d->unplaced ? unplaced - d->unplaced : 0;
    d->unplaced = unplaced;
    d->unplaced_seen += more < (uint64_t)INT64_MAX / 4 - d->unplaced_seen ? more : 0;
}

static void say_once(struct nrg_span_drain *d, bool *said, const char *why)
{
    if (!*said)
        nrg_queue_push_event(d->options.queue, "lost", "spans", why);
    *said = true;
}

/* Of what is missing, what has no other reason found no room in its ring. */
static uint64_t ring_full(const struct nrg_span_drain *d)
{
    uint64_t others = d->drops.too_deep + d->drops.nameless;
    return d->drops.all > others ? d->drops.all - others : 0;
}

static void say_dropped(struct nrg_span_drain *d)
{
    if (ring_full(d))
        say_once(d, &d->said[NRG_DROP_RING],
                 "marked faster than could be written: some are missing");
    if (d->drops.too_deep)
        say_once(d, &d->said[NRG_DROP_DEPTH],
                 "more than 1024 were open at once in a thread: deeper ones are missing");
    if (d->drops.nameless)
        say_once(d, &d->said[NRG_DROP_NAMES],
                 "there is no room for more names: what has further ones is missing");
    if (d->unplaced_seen)
        say_once(d, &d->said[NRG_DROP_THREADS],
                 "more than 256 threads marked at once: what the others marked is missing");
}

/* Finds new threads and how much waits; returns the records in the fullest ring. */
static uint64_t survey_rings(struct nrg_span_drain *d)
{
    struct nrg_ring_slot *slots = nrg_span_segment_slots(d->segment);
    bool launches = atomic_load_explicit(&d->segment->header->launches, memory_order_relaxed) != 0;
    uint64_t fullest = 0;
    for (size_t i = 0; i < NRG_RING_SLOTS; i++) {
        if (!d->lanes[i] && atomic_load_explicit(&slots[i].owner, memory_order_relaxed) &&
            atomic_load_explicit(&slots[i].phase, memory_order_acquire) != NRG_RING_CLAIMED)
            open_lane(d, i);
        if (!d->lanes[i])
            continue;
        if (launches)
            nrg_span_history_open(&d->rows.histories, d->lanes[i], &d->rows.texts);
        uint64_t waiting = nrg_span_lane_look(d->lanes[i], &d->totals.damaged);
        fullest = waiting > fullest ? waiting : fullest;
        nrg_span_lane_dropped(d->lanes[i], &d->drops);
    }
    if (d->totals.forgotten)
        say_once(d, &d->said_forgotten,
                 "GPU work was reported too long after its launch: some is below no span");
    count_unplaced(d);
    say_dropped(d);
    d->clock.now_ns = nrg_now_ns();
    return fullest;
}

static bool is_before(const struct nrg_span_lane *a, const struct nrg_span_lane *b)
{
    return a->next.t_ns != b->next.t_ns ? a->next.t_ns < b->next.t_ns : a->number < b->number;
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
        if (d->lanes[i] && nrg_span_lane_peek(d->lanes[i], &d->clock, &d->totals.damaged) &&
            d->lanes[i]->next.t_ns <= until_ns)
            d->heap[d->n_heap++] = d->lanes[i];
    for (size_t i = d->n_heap / 2; i-- > 0;)
        sift_down(d, i);
}

static void settle_all(struct nrg_span_drain *d)
{
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        if (d->lanes[i])
            nrg_span_lane_settle(d->lanes[i]);
}

static void sleep_ns(int64_t ns)
{
    struct timespec ts = {ns / NRG_NS_PER_S, ns % NRG_NS_PER_S};
    nanosleep(&ts, NULL);
}

/* False: the writer is behind, and events have to stay in the rings. */
static bool writer_keeps_up(struct nrg_span_drain *d, bool last)
{
    struct nrg_queue *queue = d->options.queue;
    size_t waiting = nrg_queue_rows(queue), least = SIZE_MAX;
    if (waiting <= MAX_WAITING || !last)
        return waiting <= MAX_WAITING;
    for (int idle = 0; idle < PATIENCE_MS && waiting > MAX_WAITING; idle++) {
        sleep_ns(NRG_NS_PER_MS);
        waiting = nrg_queue_rows(queue);
        idle = waiting < least ? 0 : idle;
        least = waiting < least ? waiting : least;
    }
    return waiting <= MAX_WAITING;
}

static void add_waiting_cpu(struct nrg_span_drain *d, int64_t until_ns)
{
    size_t n = 0;
    for (; n < d->n_waiting && d->waiting[n].t_ns <= until_ns; n++)
        for (size_t i = 0; i < NRG_RING_SLOTS; i++)
            if (d->waiting[n].read[i] && d->lanes[i] && d->lanes[i]->track)
                nrg_span_rows_cpu(&d->rows, d->lanes[i], d->waiting[n].t_ns,
                                  d->waiting[n].cpu_ns[i]);
    if (n)
        memmove(d->waiting, d->waiting + n, (d->n_waiting - n) * sizeof *d->waiting);
    d->n_waiting -= n;
}

void nrg_span_drain_read_cpu(struct nrg_span_drain *d)
{
    if (pthread_mutex_trylock(&d->lock))
        return; /* the rings are being emptied: CPU times are read after that */
    if (d->n_lanes && d->n_waiting < WAITING) {
        struct waiting_cpu *w = &d->waiting[d->n_waiting++];
        w->t_ns = nrg_now_ns();
        for (size_t i = 0; i < NRG_RING_SLOTS; i++)
            w->read[i] = d->lanes[i] && !d->lanes[i]->over && d->lanes[i]->cpu_ns != NRG_MISSING &&
                         !nrg_span_lane_cpu(d->lanes[i], &w->cpu_ns[i]);
        d->cpu_next_ns = w->t_ns + d->options.cpu_period_ns + d->options.cpu_period_ns / 2;
    }
    pthread_mutex_unlock(&d->lock);
}

/* Turns events up to a time into rows, in order. False: the writer is behind, some are left. */
static bool merge_lanes(struct nrg_span_drain *d, int64_t until_ns, bool last)
{
    if (!writer_keeps_up(d, last))
        return false;
    fill_heap(d, until_ns);
    while (d->n_heap) {
        struct nrg_span_lane *lane = d->heap[0];
        add_waiting_cpu(d, lane->next.t_ns);
        nrg_span_rows_add(&d->rows, lane, &d->totals);
        nrg_span_lane_advance(lane);
        if (!nrg_span_lane_peek(lane, &d->clock, &d->totals.damaged) || lane->next.t_ns > until_ns)
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

/* The time in which a ring that fills like the fullest one gets a quarter full. */
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
    uint64_t fullest = survey_rings(d);
    bool done = merge_lanes(d, last ? INT64_MAX : now_ns, last);
    if (done)
        add_waiting_cpu(d, INT64_MAX);
    settle_all(d);
    for (size_t i = 0; i < NRG_RING_SLOTS; i++)
        if (d->lanes[i] && d->lanes[i]->over && done && !d->lanes[i]->next_records)
            close_lane(d, i);
    if (d->n_lanes)
        read_all_cpu(d, now_ns, last);
    if (now_ns >= d->hand_over_ns || !d->n_lanes) {
        nrg_span_drain_hand_over(d);
        d->hand_over_ns = now_ns + nrg_pace_period(d->options.pace, now_ns);
    }
    d->period_ns = next_period(d->period_ns, fullest, done);
    return d->n_lanes ? d->period_ns : 0;
}

static void call_futex(_Atomic uint32_t *word, int op, uint32_t value,
                       const struct timespec *timeout)
{
    syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/*
 * The word is shared with programs that may do with its sleepers what they like: wake them without
 * end, or move them to another word (FUTEX_REQUEUE), where our own wake does not find them. So
 * every sleep has an end of its own.
 */
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
        wait_ns = wait_ns ? wait_ns : IDLE_NS;
        int64_t slept_ns = nrg_now_ns();
        struct timespec ts = {wait_ns / NRG_NS_PER_S, wait_ns % NRG_NS_PER_S};
        if (!atomic_load(&d->stop))
            call_futex(claims, FUTEX_WAIT, seen, &ts);
        if (nrg_now_ns() - slept_ns < REST_NS && !atomic_load(&d->stop))
            sleep_ns(REST_NS);
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

static bool has_lane_of(const struct nrg_span_drain *d, int32_t pid)
{
    for (size_t i = 0; d->n_lanes && i < NRG_RING_SLOTS; i++)
        if (d->lanes[i] && d->lanes[i]->pid == pid)
            return true;
    return false;
}

void nrg_span_drain_exiting(struct nrg_span_drain *d, int32_t pid)
{
    pthread_mutex_lock(&d->lock);
    if (has_lane_of(d, pid)) { /* rows are in order of time: first what is in its rings */
        nrg_span_drain_step(d, false);
        for (size_t i = 0; i < NRG_RING_SLOTS; i++)
            if (d->lanes[i] && d->lanes[i]->pid == pid && !d->lanes[i]->over)
                read_cpu(d, d->lanes[i]);
    }
    pthread_mutex_unlock(&d->lock);
}

static void end_thread(struct nrg_span_drain *d)
{
    _Atomic uint32_t *claims = &d->segment->header->claims;
    if (!d->started)
        return;
    atomic_store(&d->stop, true);
    atomic_fetch_add(claims, 1);
    call_futex(claims, FUTEX_WAKE, INT_MAX, NULL);
    pthread_join(d->thread, NULL);
    d->started = false;
}

/* Programs that could not mark, because their libnrg is of another layout. */
static void count_refused(struct nrg_span_drain *d)
{
    struct nrg_ring_refusals *r = nrg_span_segment_refusals(d->segment);
    char why[160];
    d->totals.refused = atomic_load(&r->programs);
    if (!d->totals.refused)
        return;
    snprintf(why, sizeof why,
             "%llu %s marked with a libnrg of another layout (%u, this nrg's is %d): nothing of it "
             "is recorded",
             (unsigned long long)d->totals.refused, d->totals.refused == 1 ? "program" : "programs",
             atomic_load(&r->version), NRG_RING_VERSION);
    nrg_queue_push_event(d->options.queue, "lost", "spans", why);
}

void nrg_span_drain_stop(struct nrg_span_drain *d)
{
    if (d->stopped)
        return;
    d->stopped = true;
    end_thread(d);
    count_refused(d);
    atomic_store(&d->segment->header->listening, 0);
    if (d->n_lanes || atomic_load(&d->segment->header->claims)) {
        nrg_span_drain_step(d, true);
        nrg_span_drain_hand_over(d);
    }
}

struct nrg_span_totals nrg_span_drain_totals(const struct nrg_span_drain *d)
{
    struct nrg_span_totals totals = d->totals;
    totals.dropped_by[NRG_DROP_RING] = ring_full(d);
    totals.dropped_by[NRG_DROP_DEPTH] = d->drops.too_deep;
    totals.dropped_by[NRG_DROP_NAMES] = d->drops.nameless;
    totals.dropped_by[NRG_DROP_THREADS] = d->unplaced_seen;
    for (size_t i = 0; i < NRG_SPAN_DROPS; i++)
        totals.dropped += totals.dropped_by[i];
    return totals;
}
