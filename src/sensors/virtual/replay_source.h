/*
 * Where the replay driver gets its rows from. A source knows its channels once it is open and
 * then hands out rows in time order; it is rewound to play in a loop. There are two: CSV
 * (replay_csv.c) and recordings (record/read/replay.c, through nrg_context.open_recording).
 *
 * The channels of a group are consecutive, groups are numbered from 0 in that order, and a row has
 * the values of its group's channels, in order.
 *
 * The driver's read() calls `next`: no allocation per row, no stdio, one thread. Errors of single
 * lines are returned one by one, counted in bad_lines, and do not end the source. Whoever opened a
 * source closes it.
 */
#ifndef NRG_SENSORS_VIRTUAL_REPLAY_SOURCE_H
#define NRG_SENSORS_VIRTUAL_REPLAY_SOURCE_H

#include "base/error.h"
#include "sensors/channel.h"

enum { NRG_REPLAY_CHANNELS = 256 };

struct nrg_replay_row {
    int64_t t_ns; /* the source's own time; any origin, never decreasing */
    unsigned group;
    int64_t raw[NRG_REPLAY_CHANNELS]; /* per channel of the group; NRG_MISSING: gap */
};

struct nrg_replay_source {
    /* 1: a row; 0: the end; -errno: one line is unusable (bad_channel says whose value), call
     * again; -EIO and other errors of the file itself repeat until the caller gives up. */
    int (*next)(struct nrg_replay_source *, struct nrg_replay_row *row);
    int (*rewind)(struct nrg_replay_source *); /* to the first row; 0 or -errno */
    void (*close)(struct nrg_replay_source *); /* frees it */
    struct nrg_channel *channels;              /* owned */
    size_t n_channels;
    bool described; /* channels are complete: their names need not be interpreted */
    unsigned bad_channel;
    uint64_t bad_lines;
    bool failed; /* the file itself can't be read any more */
    int line;    /* of the last row, if the source has lines */
};

#endif
