/*
 * See spans/rows.h. Times only go up within a series; an event that comes too late gets the time of
 * the one before it and is counted.
 */
#include "record/spans/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/store/writer.h"
#include "sensors/channel.h"

#define MAX_TRACKS 4096 /* with past spans */

/* A track with past spans. For a thread's own track the number is 0. */
struct nrg_past_track {
    int64_t id, start_ticks;
    int32_t pid;
    uint32_t number;
    size_t series;
};

void nrg_span_rows_init(struct nrg_span_rows *r, const struct nrg_span_drain_options *options)
{
    *r = (struct nrg_span_rows){.queue = options->queue,
                                .spans_series = options->spans_series,
                                .threads_series = options->threads_series};
    nrg_rows_init(&r->spans, NRG_S_COLUMNS);
    nrg_rows_init(&r->threads, NRG_T_COLUMNS);
    for (size_t i = 0; i < NRG_PAST_SERIES; i++)
        nrg_rows_init(&r->past[i], NRG_S_COLUMNS);
    nrg_span_texts_init(&r->texts, options->segment, options->queue);
}

void nrg_span_rows_release(struct nrg_span_rows *r)
{
    nrg_rows_release(&r->spans);
    nrg_rows_release(&r->threads);
    for (size_t i = 0; i < NRG_PAST_SERIES; i++)
        nrg_rows_release(&r->past[i]);
    free(r->tracks);
    nrg_span_histories_release(&r->histories);
    nrg_span_texts_release(&r->texts);
}

/* Gives the track an id, which is returned, and sends it to the writer. */
static int64_t add_track(struct nrg_span_rows *r, struct nrg_span_track *track)
{
    track->id = ++r->next_track;
    nrg_queue_push(r->queue,
                   &(struct nrg_message){.kind = NRG_MSG_SPAN_TRACK, .span_track = *track});
    return track->id;
}

/* A thread becomes a track with the first event that it marks. */
static void ensure_thread_track(struct nrg_span_rows *r, struct nrg_span_lane *lane,
                                struct nrg_span_totals *totals)
{
    struct nrg_span_track track = {
        .kind = "thread", .pid = lane->pid, .tid = lane->tid, .start_ticks = lane->start_ticks};
    if (lane->track)
        return;
    nrg_copy_clean(track.name, sizeof track.name, lane->name,
                   strnlen(lane->name, sizeof lane->name));
    lane->track = add_track(r, &track);
    totals->threads++;
}

static void add_thread_row(struct nrg_span_rows *r, const struct nrg_span_lane *lane, int64_t t_ns)
{
    int64_t values[NRG_T_COLUMNS] = {[NRG_T_TRACK] = lane->track, [NRG_T_CPU_NS] = lane->cpu_ns};
    r->threads_last_ns = t_ns > r->threads_last_ns ? t_ns : r->threads_last_ns;
    nrg_rows_add(&r->threads, r->threads_last_ns, 0, values);
}

/*
 * A thread that sleeps gets no rows. When it runs again, a row for the end of its sleep comes
 * first, so that its new CPU time is not spread over the sleep.
 */
void nrg_span_rows_cpu(struct nrg_span_rows *r, struct nrg_span_lane *lane, int64_t t_ns,
                       int64_t cpu_ns)
{
    bool first = lane->cpu_ns == NRG_MISSING;
    if (!first && cpu_ns < lane->cpu_ns)
        return; /* the thread itself knows better than the kernel's account of its last tick */
    if (!first && cpu_ns == lane->cpu_ns) {
        lane->cpu_checked_ns = t_ns;
        lane->cpu_held = true;
        return;
    }
    if (lane->cpu_held)
        add_thread_row(r, lane, lane->cpu_checked_ns);
    lane->cpu_held = false;
    lane->cpu_ns = cpu_ns;
    add_thread_row(r, lane, t_ns);
}

static bool belongs_to(const struct nrg_past_track *t, const struct nrg_span_lane *lane,
                       uint32_t number)
{
    if (!number)
        return !t->number && t->id == lane->track;
    return t->number == number && t->pid == lane->pid && t->start_ticks == lane->start_ticks;
}

static struct nrg_past_track *new_past_track(struct nrg_span_rows *r, struct nrg_span_lane *lane,
                                             uint32_t number)
{
    struct nrg_span_track track = {.pid = lane->pid, .start_ticks = lane->start_ticks};
    if (r->n_tracks >= MAX_TRACKS ||
        nrg_reserve(&r->tracks, &r->cap_tracks, r->n_tracks + 1, sizeof *r->tracks) ||
        (number && nrg_span_texts_track(&r->texts, number, &track)))
        return NULL;
    nrg_copy(track.kind, sizeof track.kind, strncmp(track.domain, "gpu", 3) ? "log" : "gpu");
    struct nrg_past_track *t = &r->tracks[r->n_tracks];
    *t = (struct nrg_past_track){.id = number ? add_track(r, &track) : lane->track,
                                 .start_ticks = lane->start_ticks,
                                 .pid = lane->pid,
                                 .number = number,
                                 .series = r->n_tracks % NRG_PAST_SERIES};
    r->last_track = r->n_tracks++;
    return t;
}

static struct nrg_past_track *find_past_track(struct nrg_span_rows *r, struct nrg_span_lane *lane)
{
    uint32_t number = lane->next.track;
    for (size_t n = 0; n < r->n_tracks; n++) {
        size_t i = (r->last_track + n) % r->n_tracks;
        if (belongs_to(&r->tracks[i], lane, number)) {
            r->last_track = i;
            return &r->tracks[i];
        }
    }
    return new_past_track(r, lane, number);
}

/* The path of the spans that were open where the work was launched. */
static int64_t find_launch(struct nrg_span_rows *r, const struct nrg_span_lane *lane,
                           struct nrg_span_totals *totals)
{
    const struct nrg_lane_event *e = &lane->next;
    int64_t path = nrg_span_history_path(&r->histories, lane, e->launch_tid, e->launch_ns);
    totals->forgotten += path == NRG_MISSING;
    return path > 0 ? path : NRG_MISSING;
}

static void add_past_span(struct nrg_span_rows *r, struct nrg_span_lane *lane,
                          struct nrg_span_totals *totals)
{
    const struct nrg_lane_event *e = &lane->next;
    struct nrg_past_track *t = find_past_track(r, lane);
    if (!t) {
        totals->damaged++;
        return;
    }
    int64_t *last = &r->past_last_ns[t->series];
    int64_t begin = e->begin_ns < *last ? *last : e->begin_ns;
    int64_t end = e->value < begin ? begin : e->value;
    int64_t values[NRG_S_COLUMNS] = {t->id, NRG_SPAN_BEGIN, nrg_span_texts_id(&r->texts, e->name),
                                     NRG_MISSING, NRG_MISSING};
    if (e->launch_ns != NRG_MISSING)
        values[NRG_S_PARENT] = find_launch(r, lane, totals);
    totals->late += begin > e->begin_ns;
    totals->spans++;
    totals->events += 2;
    nrg_rows_add(&r->past[t->series], begin, 0, values);
    values[NRG_S_EVENT] = NRG_SPAN_END;
    values[NRG_S_NAME] = values[NRG_S_PARENT] = NRG_MISSING;
    nrg_rows_add(&r->past[t->series], end, 0, values);
    r->n_past += 2;
    *last = end;
}

void nrg_span_rows_add(struct nrg_span_rows *r, struct nrg_span_lane *lane,
                       struct nrg_span_totals *totals)
{
    static const int events[] = {[NRG_RING_BEGIN] = NRG_SPAN_BEGIN,
                                 [NRG_RING_END] = NRG_SPAN_END,
                                 [NRG_RING_MARK] = NRG_SPAN_MARK,
                                 [NRG_RING_COUNT] = NRG_SPAN_COUNT};
    const struct nrg_lane_event *e = &lane->next;
    ensure_thread_track(r, lane, totals);
    if (e->op == NRG_RING_PAST) {
        add_past_span(r, lane, totals);
        return;
    }
    if (e->op == NRG_RING_CPU) {
        if (e->value >= 0)
            nrg_span_rows_cpu(r, lane, e->t_ns, e->value);
        return;
    }
    int64_t values[NRG_S_COLUMNS] = {lane->track, events[e->op], NRG_MISSING, NRG_MISSING,
                                     NRG_MISSING};
    if (e->op != NRG_RING_END)
        values[NRG_S_NAME] = nrg_span_texts_id(&r->texts, e->name);
    if (e->op == NRG_RING_BEGIN || e->op == NRG_RING_COUNT)
        values[NRG_S_VALUE] = e->value;
    if (lane->history && (e->op == NRG_RING_BEGIN || e->op == NRG_RING_END))
        nrg_span_history_add(&r->histories, lane, &r->texts);
    totals->spans += e->op == NRG_RING_BEGIN;
    totals->events++;
    totals->late += e->t_ns < r->last_ns;
    r->last_ns = e->t_ns > r->last_ns ? e->t_ns : r->last_ns;
    totals->dropped += nrg_rows_add(&r->spans, r->last_ns, 0, values) != 0;
}

bool nrg_span_rows_are_many(const struct nrg_span_rows *r)
{
    return r->spans.n >= NRG_MERGE_ROWS || r->n_past >= NRG_MERGE_ROWS;
}

void nrg_span_rows_hand_over(struct nrg_span_rows *r)
{
    nrg_queue_push_rows(r->queue, NRG_MSG_ROWS, r->spans_series, &r->spans);
    nrg_queue_push_rows(r->queue, NRG_MSG_ROWS, r->threads_series, &r->threads);
    for (size_t i = 0; i < NRG_PAST_SERIES && r->n_past; i++)
        nrg_queue_push_rows(r->queue, NRG_MSG_PAST_ROWS, (int)i, &r->past[i]);
    r->n_past = 0;
}
