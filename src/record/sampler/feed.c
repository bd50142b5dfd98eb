/* See feed.h. */
#include "record/sampler/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* More waiting rows than this are handed over at once, whatever the second says. */
#define MAX_WAITING 8192

static void on_row(struct nrg_sink *sink, unsigned group, int64_t t_ns, int64_t width_ns,
                   const int64_t *raw)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    if (group < feed->n_groups)
        nrg_rows_add(&feed->rows[group], t_ns, width_ns, raw);
    if (feed->live && group < feed->n_groups)
        nrg_live_row(feed->live, feed->found, group, t_ns, raw);
    feed->last_t_ns = t_ns;
}

static void say(struct nrg_feed *feed, const char *kind, const char *source, const char *detail)
{
    struct nrg_message *m = nrg_message_new(feed->queue, NRG_MSG_EVENT);
    if (!m)
        return;
    m->event.t_ns = nrg_now_ns();
    nrg_copy(m->event.kind, sizeof m->event.kind, kind);
    nrg_copy(m->event.source, sizeof m->event.source, source);
    nrg_copy(m->event.detail, sizeof m->event.detail, detail);
    nrg_queue_push(feed->queue, m);
    nrg_log(feed->ctx, NRG_DEBUG, "%s: %s: %s", source, kind, detail);
}

/* Faults are told when they begin and when they change, not at every reading. */
static void on_fault(struct nrg_sink *sink, unsigned channel, int error)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    if (channel >= feed->found->n_channels || feed->error[channel] == error)
        return;
    feed->error[channel] = error;
    feed->faulty = true;
    say(feed, "fault", feed->found->channels[channel].name, strerror(-error));
}

/* Of a meter that the user brought along: said at once, while the plug can still be pushed in. */
static void on_note(struct nrg_sink *sink, const char *kind, const char *text)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    say(feed, kind, feed->found->sensor, text);
    nrg_log(feed->ctx, NRG_WARNING, "%s: %s", feed->found->sensor, text);
}

static void on_gpu_process(struct nrg_sink *sink, const struct nrg_gpu_process *g)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    const int64_t row[NRG_G_COLUMNS] = {g->pid, g->gpu, g->device_pid, g->sm_ppm, g->memory_bytes};
    if (feed->gpu_series > 0)
        nrg_rows_add(&feed->gpu_rows, g->t_ns, 0, row);
}

/*
 * How the machine fares is context for the energy and for the processes, which are read at most
 * this often too. /proc/stat costs 20 us on a small machine and a millisecond on a large one.
 */
#define CONTEXT_PERIOD_NS (100 * NRG_NS_PER_MS)

static bool is_context(enum nrg_quantity quantity)
{
    return quantity == NRG_SECONDS || quantity == NRG_BYTES || quantity == NRG_TEMPERATURE ||
           quantity == NRG_CLOCK;
}

/*
 * As often as asked, but not faster than the device has news; and often enough that a counter
 * can't wrap twice unseen, however slowly the user wants to look.
 */
static int64_t choose_period(const struct nrg_found *found, double rate_hz)
{
    int64_t asked = (int64_t)(1e9 / rate_hz), native = INT64_MAX, wrap = INT64_MAX;
    for (size_t c = 0; c < found->n_channels; c++) {
        const struct nrg_channel *channel = &found->channels[c];
        if (!found->wanted[c])
            continue;
        int64_t update_ns = channel->update_ns;
        if (is_context(channel->quantity) && update_ns < CONTEXT_PERIOD_NS)
            update_ns = CONTEXT_PERIOD_NS;
        if (update_ns < native)
            native = update_ns;
        if (channel->wrap && channel->limit_w > 0 && channel->quantity == NRG_ENERGY) {
            double wrap_s = (double)channel->wrap * channel->scale / channel->limit_w;
            if (wrap_s * 0.5e9 < (double)wrap)
                wrap = (int64_t)(wrap_s * 0.5e9);
        }
    }
    int64_t period = native != INT64_MAX && native > asked ? native : asked;
    if (wrap < NRG_NS_PER_MS)
        wrap = NRG_NS_PER_MS;
    return wrap < period ? wrap : period;
}

int nrg_feed_init(struct nrg_feed *feed, const struct nrg_context *ctx,
                  const struct nrg_found *found, double rate_hz, struct nrg_queue *queue,
                  struct nrg_store *store, int gpu_series, struct nrg_error *err)
{
    *feed = (struct nrg_feed){.sink = {on_row, on_fault, on_gpu_process, on_note},
                              .ctx = ctx,
                              .found = found,
                              .queue = queue,
                              .gpu_series = gpu_series};
    for (size_t c = 0; c < found->n_channels; c++)
        if (found->channels[c].group >= feed->n_groups)
            feed->n_groups = found->channels[c].group + 1;
    feed->series = calloc(feed->n_groups + 1, sizeof *feed->series);
    feed->rows = calloc(feed->n_groups + 1, sizeof *feed->rows);
    feed->error = calloc(found->n_channels + 1, sizeof *feed->error);
    if (!feed->series || !feed->rows || !feed->error)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    for (size_t c = 0; c < found->n_channels; c++)
        feed->rows[found->channels[c].group].n_columns++;
    nrg_rows_init(&feed->gpu_rows, NRG_G_COLUMNS);
    feed->period_ns = choose_period(found, rate_hz);
    int rc = found->driver->open(ctx, found, &feed->state, err);
    if (rc)
        feed->state = NULL;
    else if ((rc = nrg_store_sensor(store, found, feed->period_ns, feed->series, feed->n_groups)))
        nrg_fail(err, rc, found->sensor, "cannot write to the recording: %s", strerror(-rc));
    return rc;
}

void nrg_feed_release(struct nrg_feed *feed)
{
    if (feed->state)
        feed->found->driver->close(feed->state);
    for (size_t g = 0; feed->rows && g < feed->n_groups; g++)
        nrg_rows_release(&feed->rows[g]);
    nrg_rows_release(&feed->gpu_rows);
    free(feed->rows);
    free(feed->series);
    free(feed->error);
    *feed = (struct nrg_feed){0};
}

static void note_recovery(struct nrg_feed *feed, size_t group)
{
    const struct nrg_rows *rows = &feed->rows[group];
    size_t column = 0;
    for (size_t c = 0; rows->n && c < feed->found->n_channels; c++) {
        if (feed->found->channels[c].group != group)
            continue;
        if (feed->error[c] && nrg_rows_column(rows, column)[rows->n - 1] != NRG_MISSING) {
            feed->error[c] = 0;
            say(feed, "recovered", feed->found->channels[c].name, "readings are back");
        }
        column++;
    }
}

void nrg_feed_read(struct nrg_feed *feed)
{
    if (!feed->state)
        return;
    int rc = feed->found->driver->read(feed->state, &feed->sink);
    if (rc == -ENODEV) {
        say(feed, "lost", feed->found->sensor, "the device is gone");
        feed->found->driver->close(feed->state);
        feed->state = NULL;
    } else if (rc != feed->sensor_error) {
        say(feed, rc ? "fault" : "recovered", feed->found->sensor,
            rc ? strerror(-rc) : "readings are back");
    }
    feed->sensor_error = rc;
    for (size_t g = 0; g < feed->n_groups; g++) {
        if (feed->faulty)
            note_recovery(feed, g);
        if (feed->rows[g].n >= MAX_WAITING)
            nrg_feed_hand_over(feed);
    }
}

static void hand_over(struct nrg_feed *feed, int series, struct nrg_rows *rows)
{
    if (!rows->n || series <= 0)
        return;
    struct nrg_message *m = nrg_message_new(feed->queue, NRG_MSG_ROWS);
    if (!m) {
        rows->n = 0;
        return;
    }
    m->series = series;
    nrg_rows_init(&m->rows, rows->n_columns);
    if (nrg_rows_append(&m->rows, rows)) {
        nrg_message_free(m);
        return; /* tried again with more rows next second */
    }
    rows->n = 0;
    rows->width_ns = 0;
    nrg_queue_push(feed->queue, m);
}

void nrg_feed_hand_over(struct nrg_feed *feed)
{
    for (size_t g = 0; g < feed->n_groups; g++)
        hand_over(feed, feed->series[g], &feed->rows[g]);
    hand_over(feed, feed->gpu_series, &feed->gpu_rows);
}

uint64_t nrg_feed_schedule(struct nrg_feed *feed, int64_t now_ns)
{
    int64_t late = now_ns - feed->next_ns;
    uint64_t skipped = late > 0 ? (uint64_t)(late / feed->period_ns) : 0;
    feed->next_ns += (int64_t)(skipped + 1) * feed->period_ns;
    return skipped;
}
