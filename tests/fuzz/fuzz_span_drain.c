/*
 * Fuzz target: the drain of spans on memory that a program scribbles over. The input is a list of
 * writes to slots, names and rings, with rounds of the drain in between. Whatever stands there,
 * rows come in order of time, nothing is later than now, no track ends more than it began, and
 * names and tracks are told before they are used.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/spans/drain.h"
#include "sensors/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_TRACKS 4096
#define MAX_STEPS  64

struct state {
    const uint8_t *at, *end;
    struct nrg_span_segment *segment;
    struct nrg_queue queue;
    struct nrg_span_drain *drain;
    int64_t last_ns[8], n_names, n_tracks;
    long depth[MAX_TRACKS];
};

static void take(struct state *s, void *to, size_t size)
{
    size_t there = (size_t)(s->end - s->at), n = size < there ? size : there;
    memset(to, 0, size);
    memcpy(to, s->at, n);
    s->at += n;
}

static uint32_t take_number(struct state *s, size_t bytes)
{
    uint32_t number = 0;
    take(s, &number, bytes);
    return number;
}

static char *memory(struct state *s, size_t offset)
{
    return (char *)s->segment->header + offset;
}

static struct nrg_ring_slot *take_slot(struct state *s)
{
    return &nrg_span_segment_slots(s->segment)[take_number(s, 1)];
}

static void write_record(struct state *s)
{
    size_t slot = take_number(s, 1), place = take_number(s, 2);
    struct nrg_ring_record record;
    take(s, &record, sizeof record);
    if (record.clock < 4) /* plausible times need not be guessed */
        record.clock = (uint64_t)nrg_now_ns() - record.clock * 1000;
    memcpy(memory(s, NRG_RING_RINGS_AT + slot * NRG_RING_RING_BYTES + place * sizeof record),
           &record, sizeof record);
}

static void write_slot(struct state *s)
{
    struct nrg_ring_slot *slot = take_slot(s);
    uint32_t what = take_number(s, 1);
    uint64_t value;
    take(s, &value, sizeof value);
    if (what % 8 == 0) /* a thread that lives */
        atomic_store(&slot->owner, (uint64_t)getpid() << 32 | (uint32_t)getpid());
    else if (what % 8 == 1)
        atomic_store(&slot->owner, value);
    else if (what % 8 == 2)
        atomic_store(&slot->phase, (uint32_t)value % 4);
    else if (what % 8 == 3)
        atomic_store(&slot->head, value);
    else if (what % 8 == 4)
        atomic_fetch_add(&slot->head, value % 70000);
    else if (what % 8 == 5)
        atomic_store(&slot->tail, value);
    else if (what % 8 == 6)
        atomic_store(value % 2 ? &slot->dropped : &slot->nameless, value);
    else
        take(s, &slot->pid_namespace, 32);
}

static void write_name(struct state *s)
{
    size_t at = (size_t)take_number(s, 3) * NRG_RING_NAME_UNIT % NRG_RING_NAMES_BYTES;
    struct nrg_ring_name head = {.number = (uint32_t)(at / NRG_RING_NAME_UNIT)};
    size_t room = NRG_RING_NAMES_BYTES - at;
    head.text_bytes = take_number(s, 2);
    head.kind_bytes = (uint8_t)take_number(s, 1);
    head.detail_bytes = (uint8_t)take_number(s, 1);
    memcpy(memory(s, NRG_RING_NAMES_AT + at), &head, room < 11 ? room : 11);
    if (room > 64)
        take(s, memory(s, NRG_RING_NAMES_AT + at + 11), take_number(s, 1) % 48);
}

static void write_anything(struct state *s)
{
    uint8_t bytes[64];
    size_t offset = take_number(s, 3) % NRG_RING_RINGS_AT;
    take(s, bytes, sizeof bytes);
    memcpy(memory(s, offset), bytes, sizeof bytes);
}

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_rows(struct state *s, const struct nrg_message *m)
{
    bool spans = m->kind == NRG_MSG_PAST_ROWS || m->series == 1;
    for (size_t i = 0; i < m->rows.n; i++) {
        int64_t t_ns = m->rows.t_ns[i], track = nrg_rows_column(&m->rows, 0)[i];
        check(t_ns >= 0 && t_ns <= nrg_now_ns());
        check(track > 0 && track <= s->n_tracks);
        if (m->kind == NRG_MSG_ROWS) {
            check(t_ns >= s->last_ns[m->series]);
            s->last_ns[m->series] = t_ns;
        }
        if (!spans)
            continue;
        int64_t event = nrg_rows_column(&m->rows, NRG_S_EVENT)[i];
        int64_t name = nrg_rows_column(&m->rows, NRG_S_NAME)[i];
        check(event >= NRG_SPAN_BEGIN && event <= NRG_SPAN_COUNT);
        check(event == NRG_SPAN_END ? name == NRG_MISSING : name > 0 && name <= s->n_names);
        if (m->kind == NRG_MSG_ROWS && track < MAX_TRACKS) {
            s->depth[track] += event == NRG_SPAN_BEGIN ? 1 : event == NRG_SPAN_END ? -1 : 0;
            check(s->depth[track] >= 0 && s->depth[track] <= 1024);
        }
    }
}

static void check_messages(struct state *s)
{
    bool stop;
    nrg_queue_wake(&s->queue);
    for (struct nrg_message *m = nrg_queue_take(&s->queue, &stop), *next; m; m = next) {
        next = m->next;
        if (m->kind == NRG_MSG_SPAN_NAME)
            check(m->span_name.id == ++s->n_names && memchr(m->span_name.kind, 0, 16) != NULL);
        else if (m->kind == NRG_MSG_SPAN_TRACK)
            check(m->span_track.id == ++s->n_tracks && memchr(m->span_track.name, 0, 128) != NULL);
        else if (m->kind == NRG_MSG_ROWS || m->kind == NRG_MSG_PAST_ROWS)
            check_rows(s, m);
        nrg_queue_done(&s->queue, m);
    }
}

static void play(struct state *s)
{
    int steps = 0;
    while (s->at < s->end && steps < MAX_STEPS) {
        switch (take_number(s, 1) % 8) {
        case 0:
        case 1:
            write_record(s);
            break;
        case 2:
        case 3:
            write_slot(s);
            break;
        case 4:
            write_name(s);
            break;
        case 5:
            write_anything(s);
            break;
        default:
            steps++;
            nrg_span_drain_step(s->drain, false);
            nrg_span_drain_hand_over(s->drain);
            check_messages(s);
        }
    }
}

/* The memory is made once; between inputs its pages are taken out of it. */
static struct nrg_span_segment *fresh_segment(uint32_t clock)
{
    static struct nrg_span_segment segment = {.fd = -1};
    if (!segment.header && nrg_span_segment_init(&segment, true, NULL))
        abort();
    if (madvise(segment.header, NRG_RING_BYTES, MADV_REMOVE))
        abort();
    segment.header->clock = clock;
    atomic_store(&segment.header->names_used, 1);
    return &segment;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct state s;
    if (!size)
        return 0;
    memset(&s, 0, sizeof s);
    s.at = data + 1;
    s.end = data + size;
    s.segment = fresh_segment(data[0] & 1 ? NRG_RING_TSC : NRG_RING_MONOTONIC);
    nrg_queue_init(&s.queue);
    struct nrg_span_drain_options options = {
        .segment = s.segment, .queue = &s.queue, .spans_series = 1, .threads_series = 2};
    s.drain = nrg_span_drain_new(&options);
    if (!s.drain)
        abort();
    play(&s);
    nrg_span_drain_stop(s.drain);
    check_messages(&s);
    nrg_span_drain_free(s.drain);
    nrg_queue_release(&s.queue);
    return 0;
}
