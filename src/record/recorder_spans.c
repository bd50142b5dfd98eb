/* See recorder_spans.h. */
#include "record/recorder_spans.h"

#include <errno.h>

int nrg_recorder_spans_init(struct nrg_recorder_spans *s, const struct nrg_span_segment *segment,
                            struct nrg_store *store, struct nrg_queue *queue, int64_t cpu_period_ns)
{
    *s = (struct nrg_recorder_spans){.store = store};
    if (!segment)
        return 0;
    struct nrg_span_drain_options o = {.segment = segment,
                                       .queue = queue,
                                       .cpu_period_ns = cpu_period_ns,
                                       .spans_series = nrg_store_series(store, NRG_SPANS),
                                       .threads_series = nrg_store_series(store, NRG_THREADS)};
    if (o.spans_series < 0 || o.threads_series < 0)
        return o.spans_series < 0 ? o.spans_series : o.threads_series;
    s->drain = nrg_span_drain_new(&o);
    return s->drain ? 0 : -ENOMEM;
}

void nrg_recorder_spans_release(struct nrg_recorder_spans *s)
{
    nrg_span_drain_free(s->drain);
    s->drain = NULL;
}

static void store_past(struct nrg_recorder_spans *s, const struct nrg_message *m)
{
    int *series = &s->past_series[m->series];
    if (*series <= 0)
        *series = nrg_store_series(s->store, NRG_SPANS);
    if (*series > 0)
        nrg_store_rows(s->store, *series, &m->rows);
}

void nrg_recorder_spans_apply(struct nrg_recorder_spans *s, const struct nrg_message *m)
{
    if (m->kind == NRG_MSG_SPAN_NAME)
        nrg_store_span_name(s->store, &m->span_name);
    else if (m->kind == NRG_MSG_SPAN_TRACK)
        nrg_store_span_track(s->store, &m->span_track);
    else if (m->kind == NRG_MSG_PAST_ROWS)
        store_past(s, m);
}

void nrg_recorder_spans_finish(struct nrg_recorder_spans *s)
{
    if (!s->drain)
        return;
    struct nrg_span_totals t = nrg_span_drain_totals(s->drain);
    if (!t.threads && !t.dropped)
        return;
    nrg_store_integer(s->store, "spans", (int64_t)t.spans);
    nrg_store_integer(s->store, "spans_dropped", (int64_t)t.dropped);
    nrg_store_integer(s->store, "spans_late", (int64_t)t.late);
    nrg_store_integer(s->store, "spans_damaged", (int64_t)t.damaged);
}
