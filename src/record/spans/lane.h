/*
 * One thread that marks spans, as the recorder sees it: the reader of its ring, and its CPU time.
 *
 * Records are copied before they are checked, because the program may write to them at any time.
 * Whatever a record contains, its event has a time between the last one's and now, and ends never
 * outnumber begins.
 *
 * Ownership: new, free, by the drain; the segment outlives it. Errors: a negative errno, or NULL
 * when out of memory. Not thread-safe.
 */
#ifndef NRG_RECORD_SPANS_LANE_H
#define NRG_RECORD_SPANS_LANE_H

#include "base/clock.h"
#include "record/spans/segment.h"

#define NRG_LANE_WINDOW    512  /* records copied at a time */
#define NRG_LANE_MAX_DEPTH 1024 /* the client records no deeper ones */

/* CLOCK_MONOTONIC from the clock of the records, by a straight line through two pairs. */
struct nrg_span_clock {
    enum nrg_ring_clock kind;
    int64_t ns, before_ns; /* of the last pair, and one at least 2 ms earlier */
    uint64_t tsc, before_tsc;
    double ns_per_tick;
    int64_t now_ns; /* no record that was read can be later */
};

void nrg_span_clock_init(struct nrg_span_clock *clock, enum nrg_ring_clock kind);
/* Takes a new pair; returns its time. */
int64_t nrg_span_clock_update(struct nrg_span_clock *clock);

struct nrg_span_history;

struct nrg_lane_event {
    int64_t t_ns;
    enum nrg_ring_op op;
    uint32_t name, track; /* numbers; track of past spans only */
    int64_t value;        /* NRG_MISSING: none */
    int64_t begin_ns;     /* of past spans */
    int64_t launch_ns;    /* of past spans that a thread launched; NRG_MISSING: none */
    int32_t launch_tid;
};

struct nrg_span_lane {
    const struct nrg_span_segment *segment;
    struct nrg_ring_slot *slot;
    size_t number; /* of the slot */
    uint64_t owner;
    int32_t pid, tid;
    int64_t start_ticks, track; /* track: its id, 0 until it has marked something */
    char name[16];
    bool foreign;              /* of another pid namespace: its pid means nothing here */
    bool over;                 /* its thread has ended: nothing more will come */
    uint64_t tail, read, head; /* records given out, copied, there */
    uint64_t dropped;          /* of the slot's count, already reported */
    uint64_t too_deep;         /* of these; may be ahead of them for a moment */
    uint64_t nameless;         /* likewise */
    unsigned depth, hidden;    /* open spans; begins that were too deep */
    int64_t last_ns;
    int64_t begun_ns[NRG_LANE_MAX_DEPTH]; /* of the open spans */
    uint32_t names[NRG_LANE_MAX_DEPTH];
    int64_t launch_ns; /* of the past span to come; NRG_MISSING: none */
    int32_t launch_tid;
    struct nrg_span_history *history; /* of the thread, once launches are to be placed */
    struct nrg_lane_event next;
    unsigned next_records; /* of the event in `next`; 0: there is none */
    size_t at, filled;
    struct nrg_ring_record window[NRG_LANE_WINDOW];
    int cpu_fd;                     /* its schedstat, -1: none */
    int64_t cpu_ns, cpu_checked_ns; /* last value; when it was last read unchanged */
    bool cpu_held;                  /* read unchanged since its row was written */
};

/* NULL when out of memory. */
struct nrg_span_lane *nrg_span_lane_new(const struct nrg_span_segment *segment, size_t slot,
                                        uint64_t pid_namespace);
void nrg_span_lane_free(struct nrg_span_lane *lane);

/* Reads how far the ring is filled; returns the records waiting. Impossible counts are damage. */
uint64_t nrg_span_lane_look(struct nrg_span_lane *lane, uint64_t *damaged);
/* Adds what was dropped since the last call. */
struct nrg_lane_drops {
    uint64_t all, too_deep, nameless; /* the latter are parts, and may be ahead for a moment */
};
void nrg_span_lane_dropped(struct nrg_span_lane *lane, struct nrg_lane_drops *drops);

/* True when lane->next is the next event. */
bool nrg_span_lane_peek(struct nrg_span_lane *lane, const struct nrg_span_clock *clock,
                        uint64_t *damaged);
/* Leaves the event in lane->next behind. */
void nrg_span_lane_advance(struct nrg_span_lane *lane);
/* Makes the room of finished records free for the program. */
void nrg_span_lane_settle(struct nrg_span_lane *lane);
/* Frees the slot for another thread. The lane must be over. */
void nrg_span_lane_give_back(struct nrg_span_lane *lane);

/* CPU time of the thread in ns; -ESRCH when it has gone, -ENOTSUP when it can't be known. */
int nrg_span_lane_cpu(struct nrg_span_lane *lane, int64_t *cpu_ns);

#endif
