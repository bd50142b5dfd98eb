/*
 * The writing thread of the recorder: takes what the other threads queued, gives it to the store
 * and commits about once a second. The disk may block it; nothing else waits for it.
 */
#include "record/sampler/internal.h"

static void store_past_rows(struct nrg_recorder *r, const struct nrg_message *m)
{
    int *series = &r->past_series[m->series];
    if (*series <= 0)
        *series = nrg_store_series(r->store, NRG_SPANS);
    if (*series > 0)
        nrg_store_rows(r->store, *series, &m->rows);
}

static void store_message(struct nrg_recorder *r, const struct nrg_message *m)
{
    switch (m->kind) {
    case NRG_MSG_ROWS:
        nrg_store_rows(r->store, m->series, &m->rows);
        break;
    case NRG_MSG_PROCESS:
        nrg_store_process(r->store, &m->process);
        break;
    case NRG_MSG_EVENT:
        nrg_store_event(r->store, &m->event);
        break;
    case NRG_MSG_CLOCK:
        nrg_store_clock(r->store, &m->clock);
        break;
    case NRG_MSG_RUN:
        nrg_store_run(r->store, &m->run);
        break;
    case NRG_MSG_TEXT:
        nrg_store_text(r->store, m->text.key, m->text.value);
        break;
    case NRG_MSG_GRAPH:
        nrg_store_graph(r->store, m->graph.name, m->graph.format, m->graph.bytes, m->graph.size);
        break;
    case NRG_MSG_SPAN_NAME:
        nrg_store_span_name(r->store, &m->span_name);
        break;
    case NRG_MSG_SPAN_TRACK:
        nrg_store_span_track(r->store, &m->span_track);
        break;
    case NRG_MSG_SPAN_PATH:
        nrg_store_span_path(r->store, &m->span_path);
        break;
    case NRG_MSG_PAST_ROWS:
        store_past_rows(r, m);
        break;
    }
}

void nrg_recorder_store_batch(struct nrg_recorder *r, struct nrg_message *list)
{
    bool spilled = nrg_store_spilled(r->store) != NULL;
    while (list) {
        struct nrg_message *next = list->next;
        store_message(r, list);
        /* A burst of spans is written as it comes: keeping all of it would take much memory. */
        if (list->kind == NRG_MSG_ROWS && list->rows.n >= NRG_MERGE_ROWS)
            nrg_store_commit(r->store);
        nrg_queue_done(&r->queue, list);
        list = next;
    }
    nrg_store_commit(r->store);
    const char *why = nrg_store_spilled(r->store);
    if (why && !spilled) {
        struct nrg_event event = nrg_event_now("disk", "recording", why);
        nrg_store_event(r->store, &event);
        nrg_log(
            r->ctx, NRG_WARNING,
            "the recording can't be written (%s): going on in memory, the command is not affected",
            why);
    }
}

void *nrg_recorder_write_loop(void *arg)
{
    struct nrg_recorder *r = arg;
    bool stop = false;
    while (!stop)
        nrg_recorder_store_batch(r, nrg_queue_take(&r->queue, &stop));
    return NULL;
}
