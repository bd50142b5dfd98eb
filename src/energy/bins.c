/*
 * See bins.h. One walk over all series in order of time. A reading closes the stretch since the
 * channel's last one, and the stretch is shared out to the bins that it touches; those stay open
 * until no channel can add to them any more. A channel that has gone silent does not hold bins
 * open for ever: after WAIT_NS (or three of its periods) they go out without it.
 */
#include "energy/bins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "energy/internal.h"
#include "record/read/still.h"

#define WAIT_NS         (5 * NRG_NS_PER_S)
#define PROCESS_WAIT_NS (15 * NRG_NS_PER_S)
#define TICK_NS         (200 * NRG_NS_PER_MS)
#define MAX_BINS        INT64_C(100000000)
#define BATCH           1024
#define MAX_NS          (INT64_MAX / 4) /* a file may hold any number: sums of two times must fit */

struct channel_state {
    bool seen, lost; /* lost: a counter's register could not be read */
    int64_t t_ns, raw;
    double value;
    int64_t period_ns;
};

struct bins {
    const struct nrg_recording *recording;
    const struct nrg_bins_options *options;
    const struct nrg_recorded_channel *channels;
    size_t n_channels;
    struct channel_state *states;
    int64_t *first_bin; /* of each span, and one past the end */
    int64_t n_bins;
    int64_t next;              /* first bin that has not been handed out */
    struct nrg_open_bin *open; /* from `next` on */
    size_t n_open, cap_open;
    struct nrg_bin_processes processes;
    int64_t front_ns, check_ns;
    int64_t tick_ns, settled_ns; /* a row of processes; the last one whose tick is over */
    bool ticking;
    int (*each)(void *, const struct nrg_bin *);
    void *arg;
};

static size_t span_of(const struct bins *b, int64_t k)
{
    size_t upto = nrg_count_up_to(b->first_bin, b->options->n_spans, sizeof *b->first_bin, k);
    return upto ? upto - 1 : 0;
}

static struct nrg_span_ns bin_edges(const struct bins *b, int64_t k)
{
    const struct nrg_span_ns *span = &b->options->spans[span_of(b, k)];
    int64_t begin = span->begin_ns + (k - b->first_bin[span_of(b, k)]) * b->options->period_ns;
    int64_t end = begin + b->options->period_ns;
    return (struct nrg_span_ns){begin, end < span->end_ns ? end : span->end_ns};
}

/* The first bin that ends after t; n_bins when there is none. */
static int64_t bin_at(const struct bins *b, int64_t t_ns)
{
    for (size_t s = 0; s < b->options->n_spans; s++) {
        const struct nrg_span_ns *span = &b->options->spans[s];
        if (t_ns < span->begin_ns)
            return b->first_bin[s];
        if (t_ns < span->end_ns)
            return b->first_bin[s] + (t_ns - span->begin_ns) / b->options->period_ns;
    }
    return b->n_bins;
}

static void free_bin(struct nrg_open_bin *bin)
{
    free(bin->cells);
    free(bin->processes);
    free(bin->gpu);
}

/* NULL: it was handed out already, or there is no memory (*rc). Good until another is opened. */
static struct nrg_open_bin *open_bin(struct bins *b, int64_t k, int *rc)
{
    if (k < b->next || k >= b->n_bins)
        return NULL;
    while ((int64_t)b->n_open <= k - b->next) {
        struct nrg_open_bin bin = {.cells = nrg_calloc(b->n_channels + 1, sizeof *bin.cells)};
        if (!bin.cells || nrg_append(&b->open, &b->n_open, &b->cap_open, &bin, sizeof bin)) {
            free_bin(&bin);
            *rc = -ENOMEM;
            return NULL;
        }
    }
    return &b->open[k - b->next];
}

/* A stretch on which a value goes from one to another in a straight line. */
static int add_stretch(struct bins *b, size_t channel, int64_t from_ns, int64_t to_ns, double from,
                       double to)
{
    int rc = 0;
    for (int64_t k = bin_at(b, from_ns); k < b->n_bins && !rc; k++) {
        struct nrg_span_ns e = bin_edges(b, k);
        int64_t begin = from_ns > e.begin_ns ? from_ns : e.begin_ns;
        int64_t end = to_ns < e.end_ns ? to_ns : e.end_ns;
        if (e.begin_ns >= to_ns)
            break;
        struct nrg_open_bin *bin = end > begin ? open_bin(b, k, &rc) : NULL;
        if (!bin)
            continue;
        double middle = (double)(begin - from_ns) + (double)(end - begin) / 2;
        double value = from + (to - from) * middle / (double)(to_ns - from_ns);
        bin->cells[channel].sum += value * (double)(end - begin) / 1e9;
        bin->cells[channel].covered_ns += end - begin;
    }
    return rc;
}

static int on_counter(struct bins *b, size_t i, int64_t t_ns, int64_t raw)
{
    struct channel_state *s = &b->states[i];
    const struct nrg_channel *c = &b->channels[i].channel;
    int64_t dt_ns = t_ns - s->t_ns;
    if (!s->seen || dt_ns <= 0)
        return 0;
    double step = nrg_counted_step(b->recording, &b->channels[i], s->raw, raw, s->t_ns, t_ns, NULL);
    s->lost = nrg_counter_is_lost(s->lost, step);
    if (step < 0 || s->lost)
        return 0;
    double rate = step * c->scale * 1e9 / (double)dt_ns;
    return add_stretch(b, i, s->t_ns, t_ns, rate, rate);
}

static int on_gauge(struct bins *b, size_t i, int64_t t_ns, double value)
{
    struct channel_state *s = &b->states[i];
    int64_t dt_ns = t_ns - s->t_ns;
    if (!s->seen)
        return add_stretch(b, i, t_ns - s->period_ns, t_ns, value, value);
    return dt_ns <= 0 || dt_ns > nrg_gauge_gap_ns(s->period_ns)
               ? 0
               : add_stretch(b, i, s->t_ns, t_ns, s->value, value);
}

static int on_sample(struct bins *b, size_t i, int64_t t_ns, int64_t raw)
{
    struct channel_state *s = &b->states[i];
    double value = (double)raw * b->channels[i].channel.scale;
    if (raw == NRG_MISSING || (s->seen && t_ns < s->t_ns) ||
        nrg_is_still(b->recording, &b->channels[i], t_ns))
        return 0;
    int rc = b->channels[i].channel.kind == NRG_COUNTER ? on_counter(b, i, t_ns, raw)
                                                        : on_gauge(b, i, t_ns, value);
    s->seen = true;
    s->t_ns = t_ns;
    s->raw = raw;
    s->value = value;
    return rc;
}

/* Processes: a stretch of CPU time over the bins that it touches. */
static int on_process(struct bins *b, const struct nrg_cursor_row *row)
{
    struct nrg_process_stretch st;
    int rc = nrg_bin_processes_row(&b->processes, row, &st);
    if (rc <= 0)
        return rc;
    rc = 0;
    for (int64_t k = bin_at(b, st.from_ns); k < b->n_bins && !rc; k++) {
        struct nrg_span_ns e = bin_edges(b, k);
        if (e.begin_ns > st.to_ns || (e.begin_ns == st.to_ns && st.to_ns > st.from_ns))
            break;
        struct nrg_open_bin *bin = open_bin(b, k, &rc);
        if (bin)
            rc = nrg_bin_processes_add(&b->processes, bin, k, &st, e);
    }
    return rc;
}

static int on_gpu(struct bins *b, const struct nrg_cursor_row *row)
{
    int rc = 0;
    /* A reading is about the time before it. */
    int64_t k = bin_at(b, row->t_ns - 1);
    struct nrg_open_bin *bin =
        k < b->n_bins && row->t_ns > bin_edges(b, k).begin_ns ? open_bin(b, k, &rc) : NULL;
    return bin ? nrg_bin_gpu_add(bin, row->cells) : rc;
}

static int on_row(struct bins *b, const struct nrg_cursor_row *row)
{
    int rc = 0;
    if (row->kind == NRG_GPU_PROCESSES)
        return on_gpu(b, row);
    if (row->kind != NRG_SAMPLES)
        return on_process(b, row);
    for (size_t i = 0; !rc && i < b->n_channels; i++)
        if (b->channels[i].series == row->series)
            rc = on_sample(b, i, row->t_ns, row->cells[b->channels[i].column]);
    return rc;
}

static bool is_complete(const struct bins *b, int64_t k)
{
    int64_t end = bin_edges(b, k).end_ns, since = b->front_ns - end;
    for (size_t i = 0; i < b->n_channels; i++) {
        const struct channel_state *s = &b->states[i];
        int64_t gap_ns = nrg_gauge_gap_ns(s->period_ns), wait = gap_ns > WAIT_NS ? gap_ns : WAIT_NS;
        if ((!s->seen || s->t_ns < end) && since <= wait)
            return false;
    }
    return since > 0 && (!b->options->processes || b->settled_ns >= end || since > PROCESS_WAIT_NS);
}

static int hand_out(struct bins *b, const struct nrg_open_bin *bin, int64_t k)
{
    struct nrg_span_ns e = bin_edges(b, k);
    struct nrg_bin out = {.begin_ns = e.begin_ns,
                          .end_ns = e.end_ns,
                          .span = span_of(b, k),
                          .cells = bin->cells,
                          .processes = bin->processes,
                          .n_processes = bin->n_processes,
                          .gpu = bin->gpu,
                          .n_gpu = bin->n_gpu};
    return b->each(b->arg, &out);
}

/* Hands out up to BATCH bins that are complete; returns how many, or what `each` returned. */
static int flush_some(struct bins *b, bool all)
{
    size_t done = 0;
    int rc = 0;
    while (!rc && done < BATCH) {
        int64_t k = b->next + (int64_t)done;
        if (k >= b->n_bins || !(all || is_complete(b, k)) || !open_bin(b, k, &rc))
            break;
        rc = hand_out(b, &b->open[done], k);
        free_bin(&b->open[done++]);
    }
    b->next += (int64_t)done;
    b->n_open -= done;
    if (done)
        memmove(b->open, b->open + done, b->n_open * sizeof *b->open);
    return rc ? rc : (int)done;
}

/* Hands out everything that is complete; at the end, all. */
static int flush_bins(struct bins *b, bool all)
{
    int rc;
    do
        rc = flush_some(b, all);
    while (rc == BATCH);
    b->check_ns = b->front_ns + b->options->period_ns / 2;
    return rc < 0 ? rc : 0;
}

/* The recorder reads all processes in one tick: once it is over, they are known up to its time. */
static void note_time(struct bins *b, const struct nrg_cursor_row *row)
{
    b->front_ns = row->t_ns > b->front_ns ? row->t_ns : b->front_ns;
    if (b->ticking && b->front_ns - b->tick_ns >= TICK_NS) {
        b->settled_ns = b->tick_ns;
        b->ticking = false;
    }
    if (!b->ticking && row->kind == NRG_PROCESSES) {
        b->tick_ns = row->t_ns;
        b->ticking = true;
    }
}

static int walk_rows(struct bins *b, struct nrg_cursor *cursor)
{
    struct nrg_cursor_row row;
    int more = 0, rc = 0;
    while (!rc && (more = nrg_cursor_next(cursor, &row)) > 0) {
        if (row.t_ns > MAX_NS || row.t_ns < -MAX_NS)
            continue;
        rc = on_row(b, &row);
        note_time(b, &row);
        if (!rc && b->front_ns >= b->check_ns)
            rc = flush_bins(b, false);
    }
    for (size_t i = 0; !rc && !more && i < b->n_channels; i++) {
        const struct channel_state *s = &b->states[i];
        if (s->seen && b->channels[i].channel.kind == NRG_GAUGE)
            rc = add_stretch(b, i, s->t_ns, s->t_ns + s->period_ns, s->value, s->value);
    }
    return rc ? rc : more < 0 ? more : flush_bins(b, true);
}

static int count_bins(struct bins *b, struct nrg_recording *recording, struct nrg_error *err)
{
    const struct nrg_bins_options *o = b->options;
    b->first_bin = nrg_calloc(o->n_spans + 1, sizeof *b->first_bin);
    b->states = nrg_calloc(b->n_channels + 1, sizeof *b->states);
    if (!b->first_bin || !b->states)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t s = 0; s < o->n_spans; s++) {
        if (o->spans[s].end_ns > MAX_NS || o->spans[s].begin_ns < -MAX_NS)
            return nrg_fail(err, -EBADMSG, NULL, "the recording's times are damaged");
        int64_t length = o->spans[s].end_ns - o->spans[s].begin_ns;
        int64_t n = length > 0 ? (length - 1) / o->period_ns + 1 : 0;
        if (n > MAX_BINS - b->n_bins)
            return nrg_fail(err, -E2BIG, NULL, "more than %lld rows: choose a longer period",
                            (long long)MAX_BINS);
        b->first_bin[s] = b->n_bins;
        b->n_bins += n;
    }
    b->first_bin[o->n_spans] = b->n_bins;
    for (size_t i = 0; i < b->n_channels; i++) {
        const struct nrg_recorded_channel *c = &b->channels[i];
        int rc = nrg_stills_find(recording, c->series);
        if (rc)
            return nrg_fail(err, rc, NULL, "cannot be evaluated: %s", strerror(-rc));
        int64_t update_ns = nrg_channel_update_ns(recording, c);
        int64_t period = c->period_ns > update_ns ? c->period_ns : update_ns;
        b->states[i].period_ns = period < 0 ? 0 : period > MAX_NS / 8 ? MAX_NS / 8 : period;
    }
    return 0;
}

static void release_bins(struct bins *b)
{
    for (size_t i = 0; i < b->n_open; i++)
        free_bin(&b->open[i]);
    free(b->open);
    free(b->states);
    free(b->first_bin);
    nrg_bin_processes_release(&b->processes);
}

int nrg_bins_make(struct nrg_recording *recording, const struct nrg_bins_options *options,
                  int (*each)(void *, const struct nrg_bin *), void *arg, struct nrg_error *err)
{
    struct bins b = {
        .recording = recording, .options = options, .each = each, .arg = arg, .front_ns = -MAX_NS};
    struct nrg_cursor *cursor = NULL;
    unsigned kinds = 1u << NRG_SAMPLES;
    if (options->processes)
        kinds |= 1u << NRG_PROCESSES | 1u << NRG_PROCESS_MEMORY | 1u << NRG_GPU_PROCESSES;
    b.channels = nrg_recording_channels(recording, &b.n_channels);
    b.check_ns = b.settled_ns = -MAX_NS;
    int rc = count_bins(&b, recording, err);
    if (!rc) {
        rc = options->processes ? nrg_bin_processes_init(&b.processes, recording) : 0;
        if (!rc)
            rc = nrg_cursor_open(recording, kinds, &cursor);
        if (!rc && b.n_bins)
            rc = walk_rows(&b, cursor);
        if (rc)
            nrg_fail(err, rc, nrg_recording_path(recording), "cannot be evaluated: %s",
                     strerror(-rc));
    }
    nrg_cursor_free(cursor);
    release_bins(&b);
    return rc;
}
