/*
 * See read/replay.h. Each series of samples becomes a group; its channels keep everything
 * that was recorded about them (name, quantity, provenance, wrap range, error band). Columns of
 * a series that no channel describes are left out. Processes are not played back: no sensor read
 * them.
 *
 * Rows come from a cursor, so a recording of days costs one decoded chunk per series. The cursor
 * reuses its buffers; it allocates only when a chunk is larger than all before it.
 *
 * Refuses recordings with more channels than replay can take.
 */
#include "record/read/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/read/cursor.h"
#include "sensors/virtual/replay_source.h"

struct played {
    struct nrg_replay_source source; /* first: the functions cast back */
    struct nrg_recording *recording;
    struct nrg_cursor *cursor;
    bool have_time;
    int64_t last_ns;
    int series[NRG_REPLAY_CHANNELS];    /* of each group */
    size_t column[NRG_REPLAY_CHANNELS]; /* of each channel */
    size_t n_groups;
    struct nrg_channel channels[NRG_REPLAY_CHANNELS];
};

static unsigned group_of(const struct played *p, int series)
{
    unsigned g = 0;
    while (g < p->n_groups && p->series[g] != series)
        g++;
    return g;
}

static void fill_row(const struct played *p, const struct nrg_cursor_row *from, unsigned group,
                     struct nrg_replay_row *row)
{
    size_t k = 0;
    row->group = group;
    row->t_ns = from->t_ns;
    for (size_t i = 0; i < p->source.n_channels; i++)
        if (p->channels[i].group == group)
            row->raw[k++] = from->cells[p->column[i]];
}

static int played_next(struct nrg_replay_source *source, struct nrg_replay_row *row)
{
    struct played *p = (struct played *)source;
    struct nrg_cursor_row from;
    int rc;
    while ((rc = nrg_cursor_next(p->cursor, &from)) > 0) {
        unsigned group = group_of(p, from.series);
        if (group == p->n_groups)
            continue;
        if (p->have_time && from.t_ns < p->last_ns)
            from.t_ns = p->last_ns; /* a device's late batch: keep the order in which rows came */
        p->have_time = true;
        p->last_ns = from.t_ns;
        fill_row(p, &from, group, row);
        return 1;
    }
    source->failed = rc < 0;
    return rc;
}

static int played_rewind(struct nrg_replay_source *source)
{
    struct played *p = (struct played *)source;
    nrg_cursor_rewind(p->cursor);
    p->have_time = false;
    return 0;
}

static void played_close(struct nrg_replay_source *source)
{
    struct played *p = (struct played *)source;
    nrg_cursor_free(p->cursor);
    nrg_recording_close(p->recording);
    free(p);
}

static int add_played_channel(struct played *p, const struct nrg_recorded_channel *from,
                              unsigned group)
{
    size_t i = p->source.n_channels;
    if (i == NRG_REPLAY_CHANNELS)
        return -E2BIG;
    p->channels[i] = from->channel;
    p->channels[i].group = group;
    p->column[i] = from->column;
    p->source.n_channels++;
    return 0;
}

/* Groups in order of first appearance, each one's channels together. */
static int add_channels(struct played *p, const char *path, struct nrg_error *err)
{
    size_t n;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(p->recording, &n);
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        if (group_of(p, channels[i].series) < p->n_groups)
            continue;
        unsigned group = (unsigned)p->n_groups;
        if (group == NRG_REPLAY_CHANNELS)
            return nrg_fail(err, -E2BIG, path, "more than %d groups", NRG_REPLAY_CHANNELS);
        p->series[p->n_groups++] = channels[i].series;
        for (size_t k = i; !rc && k < n; k++)
            if (channels[k].series == channels[i].series)
                rc = add_played_channel(p, &channels[k], group);
    }
    if (rc)
        return nrg_fail(err, rc, path, "more than %d channels", NRG_REPLAY_CHANNELS);
    return n ? 0 : nrg_fail(err, -ENODATA, path, "holds no channel");
}

int nrg_replay_recording_open(struct nrg_replay_source **source, const char *path,
                              struct nrg_error *err)
{
    struct played *p = calloc(1, sizeof *p);
    if (!p)
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    p->source = (struct nrg_replay_source){.next = played_next,
                                           .rewind = played_rewind,
                                           .close = played_close,
                                           .channels = p->channels,
                                           .described = true};
    int rc = nrg_recording_open(path, &p->recording, err);
    if (!rc)
        rc = add_channels(p, path, err);
    if (!rc && (rc = nrg_cursor_open(p->recording, 1u << NRG_SAMPLES, &p->cursor)))
        nrg_fail(err, rc, path, "cannot read: %s", strerror(-rc));
    if (rc) {
        played_close(&p->source);
        return rc;
    }
    *source = &p->source;
    return 0;
}
