/*
 * Sensors that nrgd reads in its clients' place. Each is opened once, in whatever list of sensors
 * (catalog.h) its clients found it: so there is one reading of a moment, and of each counter one
 * coarse count (coarse.c). Two of them, begun at different moments, would round differently, and
 * together tell more than either may.
 *
 * A reader has a copy of what the probe found, so it outlives the list. It is shared by all who
 * use a sensor of the same driver and name; a channel that was not there when it was opened is
 * missing until nobody uses it.
 *
 * One thread. nrg_reader_use gives a reference, nrg_reader_leave takes it. 0 or a negative errno.
 */
#ifndef NRG_DAEMON_READER_H
#define NRG_DAEMON_READER_H

#include "base/context.h"
#include "daemon/policy.h"
#include "sensors/pulse.h"

struct nrg_sensor_reader {
    const struct nrg_context *ctx;
    struct nrg_found found; /* a copy */
    size_t n;               /* channels, and their numbers in `found` */
    size_t number[NRG_WIRE_CHANNELS];
    void *state;      /* NULL: not open, because nobody uses it or it went away */
    int64_t retry_ns; /* one that went away is opened again, not before this */
    unsigned n_full, n_coarse;
    struct nrg_pulse pulse;                                          /* whether it still counts */
    struct nrg_wire_row now;                                         /* the last reading */
    struct nrg_wire_row tick;                                        /* that of the coarse view */
    int64_t last_raw[NRG_WIRE_CHANNELS], last_ns[NRG_WIRE_CHANNELS]; /* counters, at a tick */
    int64_t energy_raw[NRG_WIRE_CHANNELS]; /* what they counted in this epoch */
    int64_t source_epoch;                  /* the driver's own, at the last tick */
    struct nrg_sensor_reader *next;
};

struct nrg_readers {
    struct nrg_sensor_reader *first;
};

/* Of the n channels of `found` with these numbers. */
int nrg_reader_use(struct nrg_readers *readers, const struct nrg_context *ctx,
                   const struct nrg_found *found, const size_t *number, size_t n,
                   enum nrg_wire_view view, struct nrg_sensor_reader **out);
void nrg_reader_leave(struct nrg_sensor_reader *reader, enum nrg_wire_view view);
/* Frees those that nobody uses. */
void nrg_readers_release(struct nrg_readers *readers);

/* Brings `now` up to date. */
void nrg_reader_read(struct nrg_sensor_reader *reader);

/* coarse.c: the first reading of who has the coarse view alone, and that of a second. */
void nrg_reader_begin_coarse(struct nrg_sensor_reader *reader);
void nrg_reader_tick(struct nrg_sensor_reader *reader);

#endif
