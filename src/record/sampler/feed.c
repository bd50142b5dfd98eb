/*
 * See feed.h. Faults become events when they begin, change and end, not at every reading: a sensor
 * that fails for hours leaves two lines.
 */
#include "record/sampler/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/sampler/reopen.h"
#include "sensors/registry.h"

/* A sensor that left is looked for this often, but for a tenth of the time at most: others are read
 * by the same thread, and looking may take long. */
#define RETRY_NS     (NRG_NS_PER_S / 2)
#define RETRY_FACTOR 10
/* With more waiting rows than this, the feed hands them over without waiting for its second. */
#define MAX_WAITING 8192

static void report_event(struct nrg_feed *feed, const char *kind, const char *source,
                         const char *detail)
{
    nrg_queue_push_event(feed->queue, kind, source, detail);
    nrg_log(feed->ctx, NRG_DEBUG, "%s: %s: %s", source, kind, detail);
}

static void on_row(struct nrg_sink *sink, unsigned group, int64_t t_ns, int64_t width_ns,
                   const int64_t *raw)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    const int64_t *row = nrg_epochs_row(&feed->epochs, group, raw);
    if (group < feed->n_groups)
        nrg_rows_add(&feed->rows[group], t_ns, width_ns, row);
    if (feed->live && group < feed->n_groups)
        nrg_live_row(feed->live, feed->found, group, t_ns, row);
    feed->last_t_ns = t_ns;
    if (nrg_pulse_row(&feed->pulse, feed->found, group, t_ns, raw))
        report_event(feed, "back", feed->found->sensor,
                     "a counter that stood still was opened again, and moves");
}

static void on_fault(struct nrg_sink *sink, unsigned channel, int error)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    if (channel >= feed->found->n_channels || feed->error[channel] == error)
        return;
    feed->error[channel] = error;
    feed->faulty = true;
    report_event(feed, "fault", feed->found->channels[channel].name, strerror(-error));
}

/* From a meter that the user attached: logged at once, while the plug can still be pushed in. */
static void on_note(struct nrg_sink *sink, const char *kind, const char *text)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    report_event(feed, kind, feed->found->sensor, text);
    if (strcmp(kind, "server")) /* which one answers: for the report */
        nrg_log(feed->ctx, NRG_WARNING, "%s: %s", feed->found->sensor, text);
}

static void on_epoch(struct nrg_sink *sink, int64_t epoch)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    if (nrg_epochs_set(&feed->epochs, epoch))
        report_event(feed, "restart", feed->found->sensor,
                     "its counters began anew: what was used since their last readings is not "
                     "known");
}

static void on_gpu_process(struct nrg_sink *sink, const struct nrg_gpu_process *g)
{
    struct nrg_feed *feed = (struct nrg_feed *)sink;
    const int64_t row[NRG_G_COLUMNS] = {g->pid,    g->gpu,          g->device_pid,
                                        g->sm_ppm, g->memory_bytes, g->size_ppm};
    if (feed->gpu_series > 0)
        nrg_rows_add(&feed->gpu_rows, g->t_ns, 0, row);
}

/*
 * Load, temperature and clock rates are context for the energy and for the processes. They are read
 * no more often than processes: /proc/stat costs 20 us on a small machine and 1 ms on a large one.
 */
#define CONTEXT_PERIOD_NS (100 * NRG_NS_PER_MS)

static bool is_context(enum nrg_quantity quantity)
{
    return quantity == NRG_SECONDS || quantity == NRG_BYTES || quantity == NRG_TEMPERATURE ||
           quantity == NRG_CLOCK;
}

/*
 * A counter that updates slowly (NVIDIA's, every 100 ms) is read some times per update: a reader
 * then knows when it was updated, and how old a reading at the edge of a run is.
 */
#define SLOW_UPDATE_NS   (50 * NRG_NS_PER_MS)
#define READS_PER_UPDATE 5

static int64_t useful_period(const struct nrg_channel *channel)
{
    bool counts_energy = channel->quantity == NRG_ENERGY && channel->kind == NRG_COUNTER &&
                         channel->provenance == NRG_MEASURED;
    if (is_context(channel->quantity) && channel->update_ns < CONTEXT_PERIOD_NS)
        return CONTEXT_PERIOD_NS;
    return counts_energy && channel->update_ns >= SLOW_UPDATE_NS
               ? channel->update_ns / READS_PER_UPDATE
               : channel->update_ns;
}

/*
 * As often as asked, but not faster than is useful for the device, and often enough that a counter
 * can't wrap twice between two readings, however slow the asked rate is.
 */
static int64_t choose_period(const struct nrg_found *found, double rate_hz)
{
    int64_t asked = (int64_t)(1e9 / rate_hz), native = INT64_MAX, wrap = INT64_MAX;
    for (size_t c = 0; c < found->n_channels; c++) {
        const struct nrg_channel *channel = &found->channels[c];
        if (!found->wanted[c])
            continue;
        int64_t useful_ns = useful_period(channel);
        if (useful_ns < native)
            native = useful_ns;
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

static bool measures_power(const struct nrg_found *found)
{
    for (size_t c = 0; c < found->n_channels; c++) {
        const struct nrg_channel *channel = &found->channels[c];
        if (found->wanted[c] && channel->provenance == NRG_MEASURED &&
            (channel->quantity == NRG_ENERGY || channel->quantity == NRG_POWER))
            return true;
    }
    return false;
}

bool nrg_feed_measures(const struct nrg_feed *feed)
{
    return measures_power(feed->found);
}

/* An estimate follows CPU times, which come in ticks: reading it more often tells nothing. */
static int64_t choose_quick_period(const struct nrg_found *found, int64_t period_ns)
{
    int64_t quick_ns = measures_power(found) ? choose_period(found, NRG_QUICK_RATE_HZ) : period_ns;
    return quick_ns < period_ns ? quick_ns : period_ns;
}

int nrg_feed_init(struct nrg_feed *feed, const struct nrg_context *ctx,
                  const struct nrg_found *found, double rate_hz, struct nrg_queue *queue,
                  struct nrg_store *store, int gpu_series, struct nrg_error *err)
{
    *feed = (struct nrg_feed){.sink = {on_row, on_fault, on_gpu_process, on_note, on_epoch},
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
    int rc = nrg_pulse_init(&feed->pulse, found);
    if (!rc)
        rc = nrg_epochs_init(&feed->epochs, found);
    if (rc || !feed->series || !feed->rows || !feed->error)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    for (size_t c = 0; c < found->n_channels; c++)
        feed->rows[found->channels[c].group].n_columns++;
    nrg_rows_init(&feed->gpu_rows, NRG_G_COLUMNS);
    feed->period_ns = choose_period(found, rate_hz);
    feed->quick_ns = choose_quick_period(found, feed->period_ns);
    rc = found->driver->open(ctx, found, &feed->state, err);
    if (rc)
        feed->state = NULL;
    else if ((rc = nrg_store_sensor(store, found, feed->period_ns, feed->series, feed->n_groups)))
        nrg_fail(err, rc, found->sensor, "cannot write to the recording: %s", strerror(-rc));
    return rc;
}

static void close_sensor(struct nrg_feed *feed)
{
    if (feed->state)
        feed->found->driver->close(feed->state);
    feed->state = NULL;
    nrg_probe_release(&feed->again);
}

void nrg_feed_release(struct nrg_feed *feed)
{
    close_sensor(feed);
    for (size_t g = 0; feed->rows && g < feed->n_groups; g++)
        nrg_rows_release(&feed->rows[g]);
    nrg_rows_release(&feed->gpu_rows);
    nrg_epochs_release(&feed->epochs);
    nrg_pulse_release(&feed->pulse);
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
            report_event(feed, "recovered", feed->found->channels[c].name, "readings are back");
        }
        column++;
    }
}

static void lose_sensor(struct nrg_feed *feed)
{
    report_event(feed, "lost", feed->found->sensor,
                 feed->ctx->gave_up_privileges
                     ? "the device is gone; opening it again may need the capabilities that nrg "
                       "gave up when its sensors were open"
                     : "the device is gone");
    close_sensor(feed);
    feed->lost = nrg_can_reopen(feed->found);
    feed->retry_ns = nrg_now_ns() + RETRY_NS;
}

static void look_for_it(struct nrg_feed *feed)
{
    int64_t now = nrg_now_ns();
    if (!feed->lost || now < feed->retry_ns)
        return;
    int rc = nrg_reopen(feed->ctx, feed->found, &feed->again, &feed->state);
    int64_t pause_ns = (nrg_now_ns() - now) * RETRY_FACTOR;
    feed->retry_ns = now + (pause_ns > RETRY_NS ? pause_ns : RETRY_NS);
    if (rc)
        return;
    feed->lost = false;
    feed->sensor_error = 0;
    report_event(feed, "back", feed->found->sensor, "the device is read again");
}

/* A dead one is read until another is open: it may come to life by itself. */
static void open_again(struct nrg_feed *feed)
{
    struct nrg_probe again;
    void *state;
    if (!nrg_can_reopen(feed->found) || feed->found->driver->fd ||
        !nrg_pulse_lacks(&feed->pulse, feed->found, nrg_now_ns()) ||
        nrg_reopen(feed->ctx, feed->found, &again, &state))
        return;
    close_sensor(feed);
    feed->again = again;
    feed->state = state;
    feed->pulse.opened = true;
    nrg_log(feed->ctx, NRG_DEBUG, "%s: a counter stands still: opened again", feed->found->sensor);
}

bool nrg_feed_is_due(const struct nrg_feed *feed, int64_t now_ns)
{
    return (feed->state || feed->lost) && !feed->found->driver->fd && feed->next_ns <= now_ns;
}

void nrg_feed_read(struct nrg_feed *feed)
{
    if (!feed->state)
        look_for_it(feed);
    if (!feed->state)
        return;
    int rc = feed->found->driver->read(feed->state, &feed->sink);
    if (rc == -ENODEV) {
        lose_sensor(feed);
    } else if (rc != feed->sensor_error) {
        report_event(feed, rc ? "fault" : "recovered", feed->found->sensor,
                     rc ? strerror(-rc) : "readings are back");
    }
    feed->sensor_error = rc;
    if (!rc)
        open_again(feed);
    for (size_t g = 0; g < feed->n_groups; g++) {
        if (feed->faulty)
            note_recovery(feed, g);
        if (feed->rows[g].n >= MAX_WAITING)
            nrg_feed_hand_over(feed);
    }
}

void nrg_feed_hand_over(struct nrg_feed *feed)
{
    for (size_t g = 0; g < feed->n_groups; g++)
        nrg_queue_push_rows(feed->queue, NRG_MSG_ROWS, feed->series[g], &feed->rows[g]);
    nrg_queue_push_rows(feed->queue, NRG_MSG_ROWS, feed->gpu_series, &feed->gpu_rows);
}

void nrg_feed_quicken(struct nrg_feed *feed, int64_t now_ns)
{
    feed->period_ns = feed->quick_ns;
    if (feed->next_ns > now_ns)
        feed->next_ns -= (feed->next_ns - now_ns) / feed->period_ns * feed->period_ns;
}

uint64_t nrg_feed_schedule(struct nrg_feed *feed, int64_t now_ns)
{
    int64_t late = now_ns - feed->next_ns;
    uint64_t skipped = late > 0 ? (uint64_t)(late / feed->period_ns) : 0;
    feed->next_ns += (int64_t)(skipped + 1) * feed->period_ns;
    return skipped;
}
