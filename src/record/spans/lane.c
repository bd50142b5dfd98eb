/*
 * See spans/lane.h. The CPU time of another process's thread comes from its schedstat, which while
 * the thread runs is as old as the last tick. Only threads of this process have an exact clock.
 */
#include "record/spans/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/parse.h"
#include "base/root.h"
#include "record/format.h"
#include "sensors/channel.h"

#define PAIR_TRIES  8
#define MIN_BASE_NS (2 * NRG_NS_PER_MS)
#define MAX_TICKS   1e16 /* months; further away means damage */
#define MASK        (NRG_RING_RECORDS - 1)

static uint64_t read_tsc(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

/* The tightest of a few pairs: caches are cold at first, and a thread can be interrupted. */
static void read_pair(int64_t *ns, uint64_t *tsc)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < PAIR_TRIES; i++) {
        int64_t before = nrg_now_ns();
        uint64_t ticks = read_tsc();
        int64_t after = nrg_now_ns();
        if (after - before < best) {
            best = after - before;
            *ns = before + best / 2;
            *tsc = ticks;
        }
    }
}

void nrg_span_clock_init(struct nrg_span_clock *c, enum nrg_ring_clock kind)
{
    *c = (struct nrg_span_clock){.kind = kind};
    if (kind == NRG_RING_TSC)
        read_pair(&c->ns, &c->tsc);
    else
        c->ns = nrg_now_ns();
    c->before_ns = c->now_ns = c->ns;
    c->before_tsc = c->tsc;
}

int64_t nrg_span_clock_update(struct nrg_span_clock *c)
{
    int64_t last_ns = c->ns;
    uint64_t last_tsc = c->tsc;
    if (c->kind != NRG_RING_TSC) {
        c->ns = c->now_ns = nrg_now_ns();
        return c->ns;
    }
    read_pair(&c->ns, &c->tsc);
    if (c->ns - last_ns >= MIN_BASE_NS) {
        c->before_ns = last_ns;
        c->before_tsc = last_tsc;
    }
    double ticks = (double)(int64_t)(c->tsc - c->before_tsc);
    if (ticks > 0)
        c->ns_per_tick = (double)(c->ns - c->before_ns) / ticks;
    c->now_ns = c->ns;
    return c->ns;
}

static int64_t to_monotonic_ns(const struct nrg_span_clock *c, uint64_t clock)
{
    if (c->kind != NRG_RING_TSC)
        return clock > NRG_MAX_TIME_NS ? 0 : (int64_t)clock;
    double ticks = (double)(int64_t)(clock - c->tsc);
    if (ticks > MAX_TICKS || ticks < -MAX_TICKS)
        return 0;
    return c->ns + (int64_t)(ticks * c->ns_per_tick);
}

static void open_schedstat(struct nrg_span_lane *lane)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", lane->pid, lane->tid);
    lane->cpu_fd = open(path, O_RDONLY | O_CLOEXEC);
}

struct nrg_span_lane *nrg_span_lane_new(const struct nrg_span_segment *segment, size_t number,
                                        uint64_t pid_namespace)
{
    struct nrg_ring_slot *slot = &nrg_span_segment_slots(segment)[number];
    struct nrg_span_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->segment = segment;
    lane->slot = slot;
    lane->number = number;
    lane->owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
    lane->pid = (int32_t)(lane->owner >> 32 & INT32_MAX);
    lane->tid = (int32_t)(lane->owner & INT32_MAX);
    lane->start_ticks = slot->start_ticks;
    memcpy(lane->name, slot->name, sizeof lane->name);
    lane->foreign = !pid_namespace || slot->pid_namespace != pid_namespace;
    uint64_t head = atomic_load_explicit(&slot->head, memory_order_acquire);
    lane->tail = atomic_load_explicit(&slot->tail, memory_order_relaxed);
    if (head - lane->tail > NRG_RING_RECORDS)
        lane->tail = head;
    lane->read = lane->head = lane->tail;
    lane->cpu_fd = -1;
    lane->cpu_ns = lane->launch_ns = NRG_MISSING;
    if (!lane->foreign && lane->pid != (int32_t)getpid())
        open_schedstat(lane);
    return lane;
}

void nrg_span_lane_free(struct nrg_span_lane *lane)
{
    if (!lane)
        return;
    if (lane->cpu_fd >= 0)
        close(lane->cpu_fd);
    free(lane);
}

uint64_t nrg_span_lane_look(struct nrg_span_lane *lane, uint64_t *damaged)
{
    struct nrg_ring_slot *slot = lane->slot;
    /* The phase is read first: if the thread is over, the head read after it is the last. */
    uint32_t phase = atomic_load_explicit(&slot->phase, memory_order_acquire);
    uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
    lane->over |= phase == NRG_RING_CLOSED || owner != lane->owner;
    uint64_t head = atomic_load_explicit(&slot->head, memory_order_acquire);
    if (head - lane->tail > NRG_RING_RECORDS || head - lane->read > NRG_RING_RECORDS) {
        ++*damaged;
        lane->tail = lane->read = head;
        lane->next_records = 0;
        lane->at = lane->filled = 0;
    }
    lane->head = head;
    return head - lane->tail;
}

/* What a count of the memory grew by; one that a program overwrote adds nothing absurd. */
static void take_count(_Atomic uint64_t *count, uint64_t *seen, uint64_t *sum)
{
    uint64_t now = atomic_load_explicit(count, memory_order_acquire);
    uint64_t more = now > *seen ? now - *seen : 0;
    *seen = now;
    *sum += more < (uint64_t)INT64_MAX / 2 - *sum ? more : 0;
}

void nrg_span_lane_dropped(struct nrg_span_lane *lane, struct nrg_lane_drops *drops)
{
    struct nrg_ring_slot *slot = lane->slot;
    take_count(&slot->dropped, &lane->dropped, &drops->all);
    take_count(&slot->too_deep, &lane->too_deep, &drops->too_deep);
    take_count(&slot->nameless, &lane->nameless, &drops->nameless);
}

/* Copies records from number `from` on; at least `need`, or false. */
static bool fill_window(struct nrg_span_lane *lane, uint64_t from, size_t need)
{
    uint64_t there = lane->head - from;
    size_t n = there < NRG_LANE_WINDOW ? (size_t)there : NRG_LANE_WINDOW, done = 0;
    if (n < need)
        return false;
    while (done < n) {
        uint64_t place = (from + done) & MASK;
        size_t part =
            n - done < NRG_RING_RECORDS - place ? n - done : (size_t)(NRG_RING_RECORDS - place);
        size_t offset =
            NRG_RING_RINGS_AT + lane->number * NRG_RING_RING_BYTES + place * sizeof *lane->window;
        if (nrg_span_segment_read(lane->segment, offset, lane->window + done,
                                  part * sizeof *lane->window))
            return false;
        done += part;
    }
    lane->at = 0;
    lane->filled = n;
    lane->read = from + n;
    return true;
}

/* The next one or two records in the window; 0 when they are not there yet. */
static unsigned load_records(struct nrg_span_lane *lane)
{
    if (lane->at >= lane->filled && !fill_window(lane, lane->tail, 1))
        return 0;
    if (!(lane->window[lane->at].op & NRG_RING_HAS_VALUE))
        return 1;
    if (lane->at + 1 >= lane->filled && !fill_window(lane, lane->tail, 2))
        return 0;
    return 2;
}

static int64_t clamp(int64_t t, int64_t low, int64_t high)
{
    return t < low ? low : t > high ? high : t;
}

/*
 * A past span that was launched comes after all that happened before its launch, so that the rows
 * know what the launching thread had open then.
 */
static void take_launch(struct nrg_span_lane *lane, int64_t floor, int64_t now_ns)
{
    struct nrg_lane_event *e = &lane->next;
    if (lane->launch_ns == NRG_MISSING)
        return;
    e->launch_ns = lane->launch_ns;
    e->launch_tid = lane->launch_tid;
    e->t_ns = clamp(e->launch_ns, floor, now_ns);
    lane->launch_ns = NRG_MISSING;
}

/* False: the record is not an event. */
static bool decode_event(struct nrg_span_lane *lane, unsigned records,
                         const struct nrg_span_clock *clock)
{
    const struct nrg_ring_record *r = &lane->window[lane->at];
    struct nrg_lane_event *e = &lane->next;
    int64_t floor = lane->last_ns < clock->now_ns ? lane->last_ns : clock->now_ns;
    *e = (struct nrg_lane_event){.op = r->op & NRG_RING_OP_MASK, .name = r->name};
    e->value = e->launch_ns = NRG_MISSING;
    if (records == 2 && r[1].op != NRG_RING_VALUE)
        return false;
    if (records == 2) {
        e->value = (int64_t)r[1].clock;
        e->track = r[1].name;
    }
    switch (e->op) {
    case NRG_RING_BEGIN:
    case NRG_RING_END:
    case NRG_RING_MARK:
        break;
    case NRG_RING_COUNT:
    case NRG_RING_CPU:
        if (records != 2)
            return false;
        break;
    case NRG_RING_PAST:
        e->t_ns = lane->last_ns; /* reported between its neighbours, whenever it was */
        e->begin_ns = r->clock > (uint64_t)clock->now_ns ? clock->now_ns : (int64_t)r->clock;
        e->value = clamp(e->value, e->begin_ns, clock->now_ns);
        take_launch(lane, floor, clock->now_ns);
        return records == 2 && r->clock <= NRG_MAX_TIME_NS;
    case NRG_RING_LAUNCH:
        return records == 1 && r->clock <= NRG_MAX_TIME_NS && r->name <= INT32_MAX;
    default:
        return false;
    }
    e->t_ns = clamp(to_monotonic_ns(clock, r->clock), floor, clock->now_ns);
    return true;
}

/* Keeps begins and ends balanced. False: the event is left out. */
static bool fits_nesting(struct nrg_span_lane *lane)
{
    if (lane->next.op == NRG_RING_BEGIN && lane->depth >= NRG_LANE_MAX_DEPTH) {
        lane->hidden++;
        return false;
    }
    if (lane->next.op != NRG_RING_END)
        return true;
    if (lane->hidden) {
        lane->hidden--;
        return false;
    }
    return lane->depth > 0;
}

/*
 * A past span of the thread's own track stands between its neighbours, whose times come from
 * another clock and may be some ns off. It is made to begin inside the open span, and to end before
 * the next event.
 */
static void fit_past(struct nrg_span_lane *lane)
{
    struct nrg_lane_event *e = &lane->next;
    if (e->op != NRG_RING_PAST || e->track)
        return;
    int64_t open_ns = lane->depth ? lane->begun_ns[lane->depth - 1] : 0;
    if (e->begin_ns < open_ns && e->value > open_ns)
        e->begin_ns = open_ns;
    if (e->value >= lane->last_ns)
        e->t_ns = e->value + 1;
}

static void skip_records(struct nrg_span_lane *lane, unsigned records)
{
    lane->at += records;
    lane->tail += records;
}

bool nrg_span_lane_peek(struct nrg_span_lane *lane, const struct nrg_span_clock *clock,
                        uint64_t *damaged)
{
    while (!lane->next_records) {
        unsigned records = load_records(lane);
        if (!records)
            return false;
        if (!decode_event(lane, records, clock)) {
            ++*damaged;
            skip_records(lane, 1);
        } else if (lane->next.op == NRG_RING_LAUNCH) {
            lane->launch_ns = (int64_t)lane->window[lane->at].clock;
            lane->launch_tid = (int32_t)lane->next.name;
            skip_records(lane, 1);
        } else if (!fits_nesting(lane)) {
            skip_records(lane, records);
        } else {
            fit_past(lane);
            lane->next_records = records;
        }
    }
    return true;
}

void nrg_span_lane_advance(struct nrg_span_lane *lane)
{
    if (lane->next.op == NRG_RING_BEGIN) {
        lane->names[lane->depth] = lane->next.name;
        lane->begun_ns[lane->depth++] = lane->next.t_ns;
    } else if (lane->next.op == NRG_RING_END)
        lane->depth--;
    lane->last_ns = lane->next.t_ns;
    skip_records(lane, lane->next_records);
    lane->next_records = 0;
}

void nrg_span_lane_settle(struct nrg_span_lane *lane)
{
    struct nrg_ring_slot *slot = lane->slot;
    atomic_store_explicit(&slot->tail, lane->tail, memory_order_release);
}

void nrg_span_lane_give_back(struct nrg_span_lane *lane)
{
    struct nrg_ring_slot *slot = lane->slot;
    uint64_t owner = lane->owner;
    atomic_store_explicit(&slot->tail, lane->head, memory_order_relaxed);
    atomic_store_explicit(&slot->phase, NRG_RING_CLAIMED, memory_order_relaxed);
    atomic_compare_exchange_strong_explicit(&slot->owner, &owner, 0, memory_order_release,
                                            memory_order_relaxed);
}

/* Part of the kernel's ABI, like that of processes in procfs.c. */
static clockid_t thread_clock(int32_t tid)
{
    return (clockid_t)(~(uint32_t)tid << 3 | 6);
}

static int read_schedstat(const struct nrg_span_lane *lane, int64_t *cpu_ns)
{
    char text[96];
    ssize_t n = nrg_pread_text(lane->cpu_fd, text, sizeof text);
    if (n <= 0)
        return n == -ESRCH || n == 0 ? -ESRCH : (int)n;
    return nrg_parse_i64(text, strcspn(text, " \n"), cpu_ns) || *cpu_ns < 0 ? -ENOTSUP : 0;
}

int nrg_span_lane_cpu(struct nrg_span_lane *lane, int64_t *cpu_ns)
{
    struct timespec ts;
    if (lane->foreign || lane->pid <= 0 || lane->tid <= 0)
        return -ENOTSUP;
    if (lane->pid == (int32_t)getpid()) {
        if (clock_gettime(thread_clock(lane->tid), &ts))
            return -ESRCH;
        *cpu_ns = (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
        return 0;
    }
    if (lane->cpu_fd >= 0)
        return read_schedstat(lane, cpu_ns);
    return syscall(SYS_tgkill, lane->pid, lane->tid, 0) && errno == ESRCH ? -ESRCH : -ENOTSUP;
}
