/*
 * External meters: what all of them share.
 *
 * A meter is a driver whose device is named by a URI (meter_uri.h). Three parts meet here:
 *
 *   port      where bytes come from: a serial line, a file that grows, a program's output. Opens,
 *             sets up, notices that the device is gone, opens it again when it is back
 *             (meter_port.h).
 *   decoder   bytes to readings. A pure machine: no file, no clock, no allocation after `create`;
 *             this is what the fuzz targets drive. It trusts no length that it reads.
 *   meter     readings to rows: channels, scales, time stamps, statistics; says when the device
 *             is silent, gone, or sends garbage (meter.c). All drivers of byte meters use its
 *             probe, open, read, fd and close; `nrg meter watch` uses it without a recorder.
 *
 * Time: a port stamps the end of what it read. A decoder goes back from there by the bytes that
 * followed (byte_ns each) to the first byte of its line or frame: the moment at which the meter
 * sent it. The meter then goes back by half of the averaging period, where the mean was true.
 */
#ifndef NRG_SENSORS_METER_H
#define NRG_SENSORS_METER_H

#include <stddef.h>
#include <stdint.h>

#include "sensors/driver.h"
#include "sensors/meter/uri.h"

#define NRG_METER_FIELDS 64 /* of one meter */

/* What one value of a reading is. Becomes a channel; see nrg_meter_channels. */
struct nrg_meter_field {
    char name[32];
    enum nrg_quantity quantity;
    enum nrg_kind kind;
    double resolution; /* smallest step in the quantity's SI unit; 0: that of a float */
    uint64_t wrap;     /* of a counter, in steps of resolution; 0: does not wrap */
};

/* One reading. Values in SI units, in the order of the fields; NAN: not part of this one. */
struct nrg_meter_reading {
    int64_t sent_ns;    /* when its first byte left the meter; end of what it averages over */
    int64_t average_ns; /* how long it averages over; 0: not told, the meter's own setting holds */
    const double *values;
    size_t n_values;
    double rssi_dbm; /* NAN: none */
};

/* Where a decoder puts what it finds. */
struct nrg_meter_out {
    void (*reading)(struct nrg_meter_out *, const struct nrg_meter_reading *);
    /* Bytes that were no reading, with the reason, for people who bring a meter up. `bytes` is
     * valid during the call only, at most a line or frame. Text that a meter may well print
     * (banner, help, another node's packet) has `harmless` set: it is no sign of a bad line. */
    void (*refused)(struct nrg_meter_out *, const void *bytes, size_t n, const char *why,
                    bool harmless);
    /* For `nrg meter watch --raw`: all that comes, as it comes. Not for decoders. Optional. */
    void (*raw)(struct nrg_meter_out *, const void *bytes, size_t n);
};

struct nrg_meter_decoder {
    /*
     * Reads its own keys of the URI, fills fields (at most NRG_METER_FIELDS) and makes the state.
     * 0, or -errno with err.
     */
    int (*create)(struct nrg_uri *uri, struct nrg_meter_field *fields, size_t *n_fields,
                  void **state, struct nrg_error *err);
    /* end_ns: when the last of these bytes arrived; byte_ns: how long one takes on the line, 0
     * for files and pipes. Any cut of the stream gives the same readings. */
    void (*feed)(void *state, const uint8_t *bytes, size_t n, int64_t end_ns, int64_t byte_ns,
                 struct nrg_meter_out *out);
    /* The stream was interrupted: what was begun will not be finished. */
    void (*reset)(void *state);
    /* The stream ended properly (a file): what is left may be a reading. Optional. */
    void (*end)(void *state, int64_t end_ns, struct nrg_meter_out *out);
    /* No reading came for some periods: a file that does not grow any more may tell what is left,
     * and go on should it grow again. Optional. */
    void (*pause)(void *state, struct nrg_meter_out *out);
    void (*destroy)(void *state);
};

enum nrg_port_kind { NRG_PORT_SERIAL, NRG_PORT_FILE, NRG_PORT_PROGRAM };

/* One line in the table in meter.c for each kind of meter. */
struct nrg_meter_kind {
    const struct nrg_driver *driver; /* its name is the scheme */
    const struct nrg_meter_decoder *decoder;
    enum nrg_port_kind port;
    unsigned baud;      /* of serial ports, unless baud= is given */
    int64_t period_ns;  /* how often a reading is expected, unless period= is given; 0: unknown */
    int64_t average_ns; /* how long a reading averages over, unless average= is given; 0: none */
    bool from_start;    /* a file is read from its start unless from=end is given */
};

/*
 * Turns fields into channels of a found sensor: names, quantities, scales; a single power is
 * called "wall", is wide and covers the machine unless covers= says otherwise; several keep their
 * names, and covers=machine (all together: a channel `wall` with their sum is added) or
 * covers=NAME:machine says which; covers=none: another machine's. All powers and energies are
 * wide. Energy counters join the power of their name. Used by the byte meters and by mqtt.c.
 * `uri` gives covers=. period_ns 0: unknown, learnt from the readings by who evaluates them.
 */
int nrg_meter_channels(struct nrg_found *found, struct nrg_uri *uri,
                       const struct nrg_meter_field *fields, size_t n_fields, int64_t period_ns,
                       struct nrg_error *err);

/* A reading's values as the raw values of those channels; `raw` has room for NRG_METER_RAW. */
#define NRG_METER_RAW (NRG_METER_FIELDS + 1)
void nrg_meter_raw(const struct nrg_found *found, const struct nrg_meter_reading *reading,
                   int64_t *raw);

/*
 * What calibration found (nrg meter calibrate), the same keys for all meters: value = scale * (as
 * the meter says) + offset, scale= for powers and energies, offset= in W for powers; the meter is
 * delay= late. Without the keys nothing changes.
 */
struct nrg_meter_adjust {
    double scale, offset_w;
    int64_t delay_ns;
};
int nrg_meter_adjust_read(struct nrg_meter_adjust *adjust, struct nrg_uri *uri,
                          struct nrg_error *err);
/* `to` has room for the reading's values. Moves its time too. */
void nrg_meter_adjust_apply(const struct nrg_meter_adjust *adjust, const struct nrg_found *found,
                            const struct nrg_meter_reading *reading, double *to,
                            struct nrg_meter_reading *adjusted);

/* A byte meter's driver: `.name, .summary, .probe = nrg_meter_probe, NRG_METER_FUNCTIONS`. */
int nrg_meter_probe(struct nrg_probe *probe, struct nrg_error *err);
int nrg_meter_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                   struct nrg_error *err);
int nrg_meter_read(void *state, struct nrg_sink *sink);
int nrg_meter_fd(void *state);
void nrg_meter_close(void *state);
/* clang-format off */
#define NRG_METER_FUNCTIONS \
    .flags = NRG_ON_REQUEST, .open = nrg_meter_open, .read = nrg_meter_read, .fd = nrg_meter_fd, \
    .close = nrg_meter_close
/* clang-format on */

/* What a meter has seen so far. */
struct nrg_meter_stats {
    uint64_t bytes, readings, refused, refused_bytes, harmless, opened;
    double rssi_dbm;   /* of the last reading that had one, NAN: none had */
    int64_t period_ns; /* between readings, as learnt from them; 0: not yet */
};

/* For `nrg meter watch`: `watch` hears of readings and refusals besides the sink. */
void nrg_meter_watch(void *state, struct nrg_meter_out *watch);
const struct nrg_meter_stats *nrg_meter_statistics(void *state);

#endif
