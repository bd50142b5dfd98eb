/*
 * Turns what formats report about a line (internal.h) into channels in the first pass and into
 * rows in the second.
 *
 * Power becomes a gauge at the record's date. Reports integrate it by the trapezoid rule, as
 * AIPowerMeter itself does, so its numbers come out again. Where every record states its interval,
 * or the user asks for it (`held`), mean power times interval is exact energy: it becomes a counter
 * that starts at the beginning of the segment's first interval.
 *
 * Nothing is known between segments. Gauges have a gap after three periods without a reading
 * (sensors/integrate.h), so the period is chosen between the longest spacing inside a segment and
 * the shortest pause. Counters start again at 0.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "import/internal.h"
#include "sensors/integrate.h"

#define SPACINGS 65536
#define MAX_RAW  4e18

static int out_of_memory(struct nrg_error *err)
{
    return nrg_fail(err, -ENOMEM, NULL, "out of memory");
}

/* Keeps every stride-th spacing; a full list drops every second one and doubles the stride. */
static int note_spacing(struct nrg_import_spacing *s, int64_t dt_ns)
{
    s->longest_ns = dt_ns > s->longest_ns ? dt_ns : s->longest_ns;
    if (++s->skipped < (s->stride ? s->stride : 1))
        return 0;
    s->skipped = 0;
    if (s->n == SPACINGS) {
        for (size_t i = 0; i < s->n / 2; i++)
            s->items[i] = s->items[2 * i];
        s->n /= 2;
        s->stride = s->stride ? 2 * s->stride : 2;
    }
    return nrg_append(&s->items, &s->n, &s->cap, &dt_ns, sizeof *s->items);
}

static int64_t choose_period_ns(struct nrg_import_spacing *s)
{
    if (!s->n)
        return NRG_NS_PER_S; /* segments of one record each: there is nothing to integrate */
    int64_t period = nrg_median_i64(s->items, s->n), pause = s->shortest_pause_ns;
    if (pause && pause <= NRG_GAUGE_GAP * period && s->longest_ns < pause)
        period = (pause - 1) / NRG_GAUGE_GAP;
    return period > 0 ? period : 1;
}

static void note_pause(struct nrg_import *im, int64_t pause_ns)
{
    struct nrg_import_spacing *s = &im->spacing;
    if (!s->shortest_pause_ns || pause_ns < s->shortest_pause_ns)
        s->shortest_pause_ns = pause_ns;
    if (!im->writing || !im->store)
        return;
    struct nrg_event event = {.t_ns = im->last_ns, .kind = "segment", .source = "records"};
    snprintf(event.detail, sizeof event.detail,
             "nothing was recorded for %.3f s between two segments", (double)pause_ns / 1e9);
    nrg_store_event(im->store, &event);
}

int nrg_import_begin(struct nrg_import *im, int64_t t_ns, int64_t interval_ns,
                     struct nrg_error *err)
{
    int64_t dt_ns = im->have_time ? t_ns - im->last_ns : 0;
    if (dt_ns < 0)
        return nrg_fail(err, -ERANGE, NULL,
                        "goes back in time by %.6f s: was the clock set, or are these two "
                        "recordings? cut the file there",
                        (double)-dt_ns / 1e9);
    im->first_of_segment = !im->in_segment;
    if (im->first_of_segment && im->have_time)
        note_pause(im, dt_ns);
    if (!im->format->takes_turns && !im->first_of_segment && !im->writing &&
        note_spacing(&im->spacing, dt_ns))
        return out_of_memory(err);
    im->t_ns = t_ns;
    im->first_value = true;
    im->with_interval += interval_ns > 0 && !im->writing;
    im->interval_ns = interval_ns > 0 ? interval_ns : im->first_of_segment ? im->period_ns : dt_ns;
    if (!im->have_time)
        im->result.begin_ns = t_ns;
    if (im->first_of_segment) {
        im->segment_begin_ns = t_ns;
        memset(im->led_ns, 0, sizeof im->led_ns);
        for (size_t i = 0; im->writing && im->held && i < im->n_channels; i++)
            if (im->channels[i].quantity == NRG_ENERGY)
                im->sums[i] = 0;
    }
    im->begin_ns = !im->first_of_segment ? im->last_ns : im->held ? t_ns - im->interval_ns : t_ns;
    if (im->have_time && im->begin_ns < im->last_ns)
        im->begin_ns = im->last_ns; /* stated intervals may overlap a little */
    for (size_t i = 0; im->writing && i < im->n_channels; i++)
        im->cells[i] = im->starts[i] = NRG_MISSING;
    return 0;
}

/*
 * The channel's index, or -errno. The first pass adds channels that are not known yet. In held mode
 * a power channel was turned into energy after that.
 */
static int channel_index(struct nrg_import *im, const struct nrg_channel *channel,
                         struct nrg_error *err)
{
    bool held = im->writing && im->held && channel->quantity == NRG_POWER;
    size_t i = 0;
    for (; i < im->n_channels; i++) {
        const struct nrg_channel *c = &im->channels[i];
        if ((c->quantity == channel->quantity || (held && c->quantity == NRG_ENERGY)) &&
            !strcmp(c->name, channel->name))
            return (int)i;
    }
    if (i == NRG_IMPORT_CHANNELS)
        return nrg_fail(err, -E2BIG, NULL, "more than %d different values", NRG_IMPORT_CHANNELS);
    if (nrg_append(&im->channels, &im->n_channels, &im->cap_channels, channel, sizeof *channel))
        return out_of_memory(err);
    return (int)i;
}

/* Where devices take turns, the time since the last record is that since the last one that began
 * with the same channel. */
static int note_first_value(struct nrg_import *im, int i, struct nrg_error *err)
{
    int64_t last_ns = im->led_ns[i];
    if (!im->first_value || !im->format->takes_turns)
        return 0;
    im->first_value = false;
    im->led_ns[i] = im->t_ns + 1; /* 0: none yet */
    if (last_ns && !im->writing && note_spacing(&im->spacing, im->t_ns + 1 - last_ns))
        return out_of_memory(err);
    return 0;
}

int nrg_import_value(struct nrg_import *im, const struct nrg_channel *channel, double value,
                     struct nrg_error *err)
{
    int i = channel_index(im, channel, err);
    if (i < 0)
        return i;
    if (note_first_value(im, i, err))
        return -ENOMEM;
    if (!isfinite(value) || !(fabs(value / channel->scale) < MAX_RAW / 1e6))
        return nrg_fail(err, -ERANGE, NULL, "%s is out of range", channel->name);
    if (!im->writing)
        return 0;
    if (im->channels[i].kind == NRG_COUNTER) {
        im->sums[i] += value * (double)im->interval_ns / 1e9;
        value = im->sums[i];
    }
    if (fabs(value / channel->scale) < MAX_RAW)
        im->cells[i] = (int64_t)llround(value / channel->scale);
    return 0;
}

int nrg_import_add(struct nrg_import *im, const struct nrg_channel *channel, double step,
                   struct nrg_error *err)
{
    int i = channel_index(im, channel, err);
    if (i < 0 || !im->writing)
        return i < 0 ? i : 0;
    if (!isfinite(step))
        return nrg_fail(err, -ERANGE, NULL, "%s is out of range", channel->name);
    if (fabs(im->sums[i] / channel->scale) < MAX_RAW)
        im->starts[i] = (int64_t)llround(im->sums[i] / channel->scale);
    im->sums[i] += step;
    if (fabs(im->sums[i] / channel->scale) < MAX_RAW)
        im->cells[i] = (int64_t)llround(im->sums[i] / channel->scale);
    return 0;
}

/* A row where the first interval of a segment starts; counters of energy are 0 there. */
static int add_start_row(struct nrg_import *im)
{
    if (im->begin_ns >= im->t_ns)
        return 0;
    for (size_t i = 0; i < im->n_channels; i++)
        if (im->channels[i].quantity == NRG_ENERGY && im->cells[i] != NRG_MISSING)
            im->starts[i] = 0;
    im->segment_begin_ns = im->begin_ns;
    if (!im->have_time)
        im->result.begin_ns = im->begin_ns;
    return nrg_rows_add(&im->rows, im->begin_ns, 0, im->starts);
}

static int flush_rows(struct nrg_import *im)
{
    int rc = nrg_import_processes_flush(im, false);
    if (!rc && im->store)
        rc = nrg_import_flush_rows(im->store, im->series, &im->rows);
    im->rows.n = 0;
    return rc;
}

int nrg_import_end(struct nrg_import *im, struct nrg_error *err)
{
    int rc = 0;
    if (im->writing && im->held && im->first_of_segment)
        rc = add_start_row(im);
    if (!rc && im->writing)
        rc = nrg_rows_add(&im->rows, im->t_ns, 0, im->cells);
    if (!rc && (im->rows.n >= NRG_IMPORT_FLUSH_ROWS ||
                im->processes.rows[NRG_IMPORT_CPU].n >= 4 * NRG_IMPORT_FLUSH_ROWS))
        rc = flush_rows(im);
    im->have_time = im->in_segment = true;
    im->last_ns = im->result.end_ns = im->t_ns;
    im->result.records++;
    return rc ? nrg_fail(err, rc, NULL, "cannot be written: %s", strerror(-rc)) : 0;
}

int nrg_import_interval(struct nrg_import *im, int64_t t_ns, int64_t interval_ns,
                        const struct nrg_import_energy *energies, size_t n, struct nrg_error *err)
{
    int rc = 0;
    if (im->have_time && t_ns - interval_ns > im->last_ns)
        rc = nrg_import_end_segment(im);
    if (rc)
        return nrg_fail(err, rc, NULL, "cannot be written: %s", strerror(-rc));
    rc = nrg_import_begin(im, t_ns, interval_ns, err);
    for (size_t i = 0; !rc && i < n; i++)
        if (!isnan(energies[i].energy_j))
            rc = nrg_import_add(im, &energies[i].channel, energies[i].energy_j, err);
    return rc ? rc : nrg_import_end(im, err);
}

void nrg_import_note(struct nrg_import *im, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(im->result.note, sizeof im->result.note, fmt, ap);
    va_end(ap);
}

int nrg_import_end_segment(struct nrg_import *im)
{
    if (!im->in_segment)
        return 0;
    im->in_segment = false;
    im->result.segments++;
    if (!im->writing || !im->store || !im->options->segments_are_runs)
        return 0;
    struct nrg_run run = {.id = (int64_t)im->result.segments,
                          .kind = "run",
                          .begin_ns = im->segment_begin_ns,
                          .end_ns = im->last_ns,
                          .exit_code = -1};
    /* A segment of one record has no length that could be reported. */
    return run.end_ns > run.begin_ns ? nrg_store_run(im->store, &run) : 0;
}

/* Power times a known interval is energy. */
static void hold_powers(struct nrg_import *im)
{
    for (size_t i = 0; i < im->n_channels; i++) {
        struct nrg_channel *c = &im->channels[i];
        if (c->quantity != NRG_POWER)
            continue;
        c->quantity = NRG_ENERGY;
        c->kind = NRG_COUNTER;
        c->provenance = c->provenance == NRG_MEASURED ? NRG_DERIVED : c->provenance;
    }
}

int nrg_import_prepare(struct nrg_import *im, struct nrg_error *err)
{
    if (!im->n_channels)
        return nrg_fail(err, -ENODATA, im->options->path, "holds no value that nrg knows");
    im->held |= im->with_interval == im->result.records;
    im->period_ns = im->known_period_ns ? im->known_period_ns : choose_period_ns(&im->spacing);
    if (im->held)
        hold_powers(im);
    /* Exact intervals leave no doubt about when energy was used. */
    for (size_t i = 0; i < im->n_channels; i++)
        im->channels[i].update_ns = im->held ? 0 : im->period_ns;
    nrg_rows_init(&im->rows, im->n_channels);
    im->sums = nrg_calloc(im->n_channels, sizeof *im->sums);
    im->cells = nrg_calloc(im->n_channels, sizeof *im->cells);
    im->starts = nrg_calloc(im->n_channels, sizeof *im->starts);
    if (!im->sums || !im->cells || !im->starts)
        return out_of_memory(err);
    im->result.channels = im->n_channels;
    int rc = im->store ? nrg_import_sensor(im->store, im->format->name, im->options->path,
                                           im->channels, im->n_channels, im->period_ns, &im->series)
                       : 0;
    if (!rc)
        rc = nrg_import_processes_open(im);
    return rc ? nrg_fail(err, rc, im->options->output, "cannot write: %s", strerror(-rc)) : 0;
}

int nrg_import_finish(struct nrg_import *im)
{
    const struct nrg_import_origin origin = {.path = im->options->path,
                                             .format = im->format->name,
                                             .begin_ns = im->result.begin_ns,
                                             .end_ns = im->result.end_ns,
                                             .idle_w = im->options->idle_w,
                                             .one_run = !im->options->segments_are_runs,
                                             .wall_clock = !im->undated};
    int rc = flush_rows(im);
    if (!rc)
        rc = nrg_import_processes_flush(im, true);
    if (rc || !im->store)
        return rc;
    nrg_store_text(im->store, "import_integration",
                   im->held ? "mean power times the interval that ends at the date"
                            : "trapezoid between dates");
    if (im->result.note[0])
        nrg_store_text(im->store, "import_note", im->result.note);
    return nrg_import_describe(im->store, &origin);
}

void nrg_import_release(struct nrg_import *im)
{
    if (im->state && im->format->release)
        im->format->release(im->state);
    free(im->state);
    nrg_str_release(&im->lines.text);
    nrg_rows_release(&im->rows);
    nrg_import_processes_release(im);
    free(im->channels);
    free(im->sums);
    free(im->cells);
    free(im->starts);
    free(im->spacing.items);
}
