/*
 * replay: plays a log or a recording back as if it were a live sensor,
 * --sensor replay:FILE[?speed=2&loop=1].
 * The source (replay_source.h) gives rows in the file's own time. The first row is placed at the
 * first read; each read emits the rows that have become due since, stamped with the time on the
 * monotonic clock when they were due.
 *
 * speed: the file's time runs that much faster. Watts stay watts: increments of energy counters
 *   are divided by the speed, so that counters and gauges of one file still agree; the joules of
 *   a run are therefore the file's divided by speed.
 * loop: the last row and the first row of the next round are at the same time. The first row is
 *   skipped and counters continue, so no energy appears or vanishes in between.
 * Counters are played as the sum of their steps, unwrapped and wrapped again, so that neither a
 *   loop nor a speed breaks one that wraps inside the file.
 *
 * At the end of the file one read returns -ENODATA, so that a recording shows why nothing more
 * comes; later reads return -ENODEV, so that the recorder stops reading. A gap is never filled.
 * Bad lines are skipped; each is a fault of the column it concerns.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/domain.h"
#include "sensors/drivers.h"
#include "sensors/integrate.h"
#include "sensors/rapl/common.h"
#include "sensors/virtual/replay_csv.h"

/* A read takes at most this many lines, so that a loop of microseconds does not block it. */
#define MAX_LINES_PER_READ 65536

struct spec {
    char path[256];
    double speed;
    bool loop;
};

static int parse_option(struct spec *spec, const char *text, size_t len, struct nrg_error *err)
{
    if (len > 6 && !strncmp(text, "speed=", 6) &&
        !nrg_parse_double(text + 6, len - 6, &spec->speed) && spec->speed >= 1e-3 &&
        spec->speed <= 1e3)
        return 0;
    if (len == 6 && !strncmp(text, "loop=", 5) && (text[5] == '0' || text[5] == '1')) {
        spec->loop = text[5] == '1';
        return 0;
    }
    return nrg_fail(err, -EINVAL, "--sensor",
                    "replay takes ?speed=0.001..1000 and &loop=0|1 after the file, not '%.*s'",
                    (int)len, text);
}

static int parse_spec(struct spec *spec, const char *text, struct nrg_error *err)
{
    *spec = (struct spec){.speed = 1};
    if (!text || !*text)
        return nrg_fail(err, -EINVAL, "--sensor", "replay wants a file: --sensor replay:FILE");
    const char *option = strrchr(text, '?');
    size_t len = option ? (size_t)(option - text) : strlen(text);
    if (strlen(text) >= sizeof spec->path)
        return nrg_fail(err, -ENAMETOOLONG, "--sensor", "the file's path is too long");
    memcpy(spec->path, text, len);
    spec->path[len] = '\0';
    int rc = 0;
    while (!rc && option) {
        option++;
        const char *next = strchr(option, '&');
        rc = parse_option(spec, option, next ? (size_t)(next - option) : strlen(option), err);
        option = next;
    }
    return rc;
}

/* The one place that knows the forms of files. */
static int open_source(const struct nrg_context *ctx, struct nrg_replay_source **source,
                       const struct spec *spec, struct nrg_error *err)
{
    if (!nrg_is_database(spec->path))
        return nrg_replay_csv_open(source, spec->path, err);
    if (!ctx->open_recording)
        return nrg_fail(err, -ENOTSUP, spec->path, "recordings can't be played back here");
    return ctx->open_recording(source, spec->path, err);
}

/* The period between the first two rows is the best guess of how often the sensor updated. */
static int64_t first_period_ns(struct nrg_replay_source *source, struct nrg_replay_row *row,
                               int *rows)
{
    int64_t t_ns = 0;
    unsigned group = 0;
    *rows = 0;
    for (int lines = 0; *rows < 2 && lines < 1000; lines++) {
        int rc = source->next(source, row);
        if (rc == 0 || source->failed)
            break;
        if (rc < 0 || (*rows && row->group != group))
            continue;
        if (++*rows == 1) {
            t_ns = row->t_ns;
            group = row->group;
        }
    }
    return *rows == 2 ? row->t_ns - t_ns : 0;
}

static int add_channels(struct nrg_probe *probe, const struct spec *spec,
                        const struct nrg_replay_source *source, int64_t period_ns)
{
    char sensor[64];
    const char *slash = strrchr(spec->path, '/');
    snprintf(sensor, sizeof sensor, "replay of %.48s", slash ? slash + 1 : spec->path);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return -ENOMEM;
    nrg_copy(found->locator, sizeof found->locator, probe->argument);
    for (size_t i = 0; i < source->n_channels; i++) {
        const struct nrg_channel *from = &source->channels[i];
        struct nrg_channel *channel =
            nrg_found_channel(found, from->name, from->quantity, from->kind);
        if (!channel)
            return -ENOMEM;
        *channel = *from;
        channel->update_ns =
            from->update_ns ? (int64_t)llround((double)from->update_ns / spec->speed) : period_ns;
        channel->window_ns = (int64_t)llround((double)from->window_ns / spec->speed);
        channel->lag_ns = (int64_t)llround((double)from->lag_ns / spec->speed);
        snprintf(channel->source, sizeof channel->source, "%.120s", spec->path);
        if (!source->described &&
            (channel->quantity == NRG_ENERGY || channel->quantity == NRG_POWER))
            nrg_domain_describe(channel);
    }
    return 0;
}

static int probe_replay(struct nrg_probe *probe, struct nrg_error *err)
{
    struct spec spec;
    struct nrg_replay_source *source;
    struct nrg_replay_row row;
    size_t first = probe->n_found;
    int rows;
    int rc = parse_spec(&spec, probe->argument, err);
    if (!rc)
        rc = open_source(probe->ctx, &source, &spec, err);
    if (rc)
        return rc;
    int64_t period_ns = first_period_ns(source, &row, &rows);
    if (!rows)
        rc = nrg_fail(err, -ENODATA, spec.path,
                      source->described ? "holds no readings" : "no usable line after the header");
    else if (add_channels(probe, &spec, source, (int64_t)llround((double)period_ns / spec.speed)))
        rc = nrg_fail(err, -ENOMEM, spec.path, "out of memory");
    source->close(source);
    if (!rc)
        nrg_rapl_fix_parents(probe, first);
    return rc;
}

struct replay {
    struct nrg_replay_source *source;
    struct spec spec;
    bool started, have_row, ended;
    int64_t zero_ns;           /* monotonic time of the first row */
    int64_t first_ns, last_ns; /* file time of the first row and of the last one emitted */
    int64_t offset_ns;         /* file time of earlier rounds */
    unsigned skip;             /* rows to skip at the beginning of a round */
    struct nrg_replay_row row; /* the next one */
    bool *wanted;              /* per channel, owned */
    int64_t *first_raw;        /* first value of each channel in the file; owns the next two */
    int64_t *last_raw;         /* the previous value, NRG_MISSING at the start of a round */
    int64_t *moved_raw;        /* sum of a counter's steps, unwrapped */
    int64_t *round_raw;        /* the same at the beginning of the round */
    struct {
        size_t first, n;
    } groups[NRG_REPLAY_CHANNELS]; /* the channels of each group */
};

static void replay_close(void *state)
{
    struct replay *r = state;
    if (r->source)
        r->source->close(r->source);
    free(r->wanted);
    free(r->first_raw);
    free(r);
}

static int allocate_channels(struct replay *r, const struct nrg_found *found)
{
    size_t n = r->source->n_channels;
    r->wanted = calloc(n, sizeof *r->wanted);
    r->first_raw = calloc(4 * n, sizeof *r->first_raw);
    if (!r->wanted || !r->first_raw)
        return -ENOMEM;
    r->last_raw = r->first_raw + n;
    r->moved_raw = r->first_raw + 2 * n;
    r->round_raw = r->first_raw + 3 * n;
    for (size_t i = 0; i < n; i++) {
        unsigned group = r->source->channels[i].group;
        r->first_raw[i] = r->last_raw[i] = NRG_MISSING;
        r->wanted[i] = found->wanted[i];
        if (group < NRG_REPLAY_CHANNELS && !r->groups[group].n++)
            r->groups[group].first = i;
    }
    return 0;
}

static int check_same(const struct replay *r, const struct nrg_found *found, struct nrg_error *err)
{
    bool same = r->source->n_channels == found->n_channels;
    for (size_t i = 0; same && i < found->n_channels; i++)
        same = !strcmp(r->source->channels[i].name, found->channels[i].name) &&
               r->source->channels[i].quantity == found->channels[i].quantity;
    return same ? 0 : nrg_fail(err, -ESTALE, found->locator, "changed while it was being opened");
}

static int replay_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                       struct nrg_error *err)
{
    struct replay *r = calloc(1, sizeof *r);
    if (!r)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    /* The log is the user's file, not a part of the machine under --root. */
    int rc = parse_spec(&r->spec, found->locator, err);
    if (!rc)
        rc = open_source(ctx, &r->source, &r->spec, err);
    if (!rc)
        rc = check_same(r, found, err);
    if (!rc && allocate_channels(r, found))
        rc = nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    if (rc)
        replay_close(r);
    else
        *state = r;
    return rc;
}

/* Starts the next round; false when there is nothing to repeat. */
static bool next_round(struct replay *r)
{
    if (!r->spec.loop || !r->started || r->last_ns <= r->first_ns || r->source->rewind(r->source))
        return false;
    bool full = __builtin_add_overflow(r->offset_ns, r->last_ns - r->first_ns, &r->offset_ns);
    for (size_t i = 0; i < r->source->n_channels; i++) {
        int64_t after, moved = r->moved_raw[i];
        full |= __builtin_add_overflow(moved, moved - r->round_raw[i], &after);
        full |= r->source->channels[i].kind == NRG_COUNTER && !r->source->channels[i].wrap &&
                r->first_raw[i] > 0 && __builtin_add_overflow(after, r->first_raw[i], &after);
        r->round_raw[i] = moved;
        r->last_raw[i] = NRG_MISSING;
    }
    r->skip = 1;
    return !full;
}

/* Adds the step that a counter made since its last value; a sum that would overflow stays. */
static void note_value(struct replay *r, size_t i, int64_t raw)
{
    const struct nrg_channel *channel = &r->source->channels[i];
    int64_t step, sum, last = r->last_raw[i];
    if (raw == NRG_MISSING)
        return;
    if (r->first_raw[i] == NRG_MISSING)
        r->first_raw[i] = raw;
    r->last_raw[i] = raw;
    if (channel->kind != NRG_COUNTER || last == NRG_MISSING ||
        nrg_counter_difference(channel, last, raw, &step))
        return;
    if (!__builtin_add_overflow(r->moved_raw[i], step, &sum))
        r->moved_raw[i] = sum;
}

static void note_row(struct replay *r)
{
    for (size_t k = 0; k < r->groups[r->row.group].n; k++)
        note_value(r, r->groups[r->row.group].first + k, r->row.raw[k]);
}

/* Gets r->row. 1: it is there; 0: try again; -ENODATA: the end; other -errno: the file failed. */
static int fetch_row(struct replay *r, struct nrg_sink *sink)
{
    int rc = r->source->next(r->source, &r->row);
    if (rc == 0)
        return next_round(r) ? 0 : -ENODATA;
    if (rc < 0 && r->source->failed)
        return rc;
    if (rc < 0) {
        nrg_sink_fault(sink, r->source->bad_channel, rc);
        return 0;
    }
    if (r->row.group >= NRG_REPLAY_CHANNELS)
        return 0;
    if (r->skip) {
        r->skip--;
        note_row(r);
        return 0;
    }
    r->have_row = true;
    return 1;
}

static int64_t due_ns(const struct replay *r)
{
    double file_ns = (double)(r->row.t_ns - r->first_ns) + (double)r->offset_ns;
    double wait_ns = file_ns / r->spec.speed;
    return wait_ns < 4e18 ? r->zero_ns + (int64_t)llround(wait_ns) : INT64_MAX;
}

/* A counter's value: its first value plus its steps, divided by the speed, wrapped again. */
static int64_t counter_raw(const struct replay *r, size_t i)
{
    uint64_t wrap = r->source->channels[i].wrap;
    int64_t moved = r->moved_raw[i], raw;
    if (r->spec.speed != 1) {
        double played = (double)moved / r->spec.speed;
        if (!(fabs(played) < 4e18))
            return NRG_MISSING;
        moved = (int64_t)llround(played);
    }
    if (__builtin_add_overflow(r->first_raw[i], moved, &raw))
        return NRG_MISSING;
    return wrap && raw >= 0 ? (int64_t)((uint64_t)raw % wrap) : raw;
}

static void emit_row(struct replay *r, struct nrg_sink *sink)
{
    int64_t raw[NRG_REPLAY_CHANNELS];
    note_row(r);
    r->last_ns = r->row.t_ns;
    for (size_t k = 0; k < r->groups[r->row.group].n; k++) {
        size_t i = r->groups[r->row.group].first + k;
        raw[k] = r->wanted[i] ? r->row.raw[k] : NRG_MISSING;
        if (raw[k] != NRG_MISSING && r->source->channels[i].kind == NRG_COUNTER)
            raw[k] = counter_raw(r, i);
    }
    nrg_sink_row(sink, r->row.group, due_ns(r), 0, raw);
    r->have_row = false;
}

static int replay_read(void *state, struct nrg_sink *sink)
{
    struct replay *r = state;
    int64_t now_ns = nrg_now_ns();
    if (r->ended)
        return -ENODEV;
    for (int lines = 0; lines < MAX_LINES_PER_READ; lines++) {
        int rc = r->have_row ? 1 : fetch_row(r, sink);
        if (rc < 0) {
            r->ended = true;
            return rc;
        }
        if (rc == 0)
            continue;
        if (!r->started) {
            r->started = true;
            r->zero_ns = now_ns;
            r->first_ns = r->row.t_ns;
        }
        if (due_ns(r) > now_ns)
            return 0;
        emit_row(r, sink);
    }
    return 0;
}

const struct nrg_driver nrg_driver_replay = {
    .name = "replay",
    .summary =
        "plays a recording or a CSV log back as if it were live (replay:FILE?speed=2&loop=1)",
    .flags = NRG_ON_REQUEST,
    .probe = probe_replay,
    .open = replay_open,
    .read = replay_read,
    .close = replay_close,
};
