/* Spans of the recorder's caller itself. See recorder.h. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "record/sampler/internal.h"

int nrg_recorder_span_name(struct nrg_recorder *r, int64_t id, const char *kind, const char *text)
{
    struct nrg_message m = {.kind = NRG_MSG_SPAN_NAME, .span_name.id = id};
    nrg_copy(m.span_name.kind, sizeof m.span_name.kind, kind);
    m.span_name.text = strdup(text);
    return m.span_name.text ? nrg_queue_push(&r->queue, &m) : -ENOMEM;
}

int nrg_recorder_span_track(struct nrg_recorder *r, int64_t id, const char *name)
{
    struct nrg_message m = {.kind = NRG_MSG_SPAN_TRACK, .span_track = {.id = id, .kind = "log"}};
    nrg_copy(m.span_track.name, sizeof m.span_track.name, name);
    return nrg_queue_push(&r->queue, &m);
}

void nrg_recorder_span_rows(struct nrg_recorder *r, struct nrg_rows *rows, uint64_t begins)
{
    r->own_spans += begins;
    nrg_queue_push_rows(&r->queue, NRG_MSG_ROWS, r->own_series, rows);
}
