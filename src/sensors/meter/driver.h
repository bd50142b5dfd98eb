/*
 * External meters: what all of them share.
 *
 * A meter is a driver whose device is named by a URI (meter/uri.h). Three parts meet here:
 *
 *   port      where bytes come from: a serial line, a file that grows, a program's output. Opens,
 *             sets up, notices that the device is gone, opens it again when it is back
 *             (meter/port.h).
 *   decoder   bytes to readings. A pure machine: no file, no clock, no allocation; this is what
 *             the fuzz targets drive. It trusts no length that it reads.
 *   meter     readings to rows: channels, scales, time stamps, statistics; says when the device
 *             is silent, gone, or sends garbage (meter/driver.c). All drivers of byte meters use
 *             its probe, open, read, fd and close; `nrg meter watch` uses it without a recorder.
 *
 * Time: a port stamps the end of what it read. A decoder goes back from there by the bytes that
 * followed (byte_ns each) to the first byte of its line or frame: the moment at which the meter
 * sent it. The meter then goes back by half of the averaging period, to the middle of the interval
 * that the mean describes.
 *
 * Errors are 0 or a negative errno with a reason. A meter belongs to the thread that reads it.
 */
#ifndef NRG_SENSORS_METER_DRIVER_H
#define NRG_SENSORS_METER_DRIVER_H

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
    double resolution; /* smallest step in the quantity's SI unit; 0: not known */
    uint64_t wrap;     /* range of a counter in steps of resolution; 0: does not wrap */
};

/* One reading. Values in SI units, in the order of the fields; NAN: this reading has none. */
struct nrg_meter_reading {
    int64_t sent_ns;    /* when its first byte left the meter: the end of the averaging period */
    int64_t average_ns; /* averaging period; 0: not told, the meter's setting is used */
    const double *values;
    size_t n_values;
    double rssi_dbm; /* NAN: none */
};

/* Where a decoder puts what it finds. */
struct nrg_meter_out {
    void (*reading)(struct nrg_meter_out *, const struct nrg_meter_reading *);
    /* Bytes that are not a reading, and why, for people who bring a meter up. `bytes` is valid
     * during the call only and is at most a line or frame. `harmless`: text that a working meter
     * prints too (banner, help, another node's packet), so not a sign of a bad line. */
    void (*refused)(struct nrg_meter_out *, const void *bytes, size_t n, const char *why,
                    bool harmless);
    /* For `nrg meter watch --raw`: every byte as it arrives. Not for decoders. Optional. */
    void (*raw)(struct nrg_meter_out *, const void *bytes, size_t n);
};

struct nrg_meter_decoder {
    size_t state_size; /* of the state, plain memory that the meter allocates and frees */
    /*
     * Reads the decoder's own keys of the URI into a state of zeros and fills the fields (at most
     * NRG_METER_FIELDS). 0, or -errno with err.
     */
    int (*init)(void *state, struct nrg_uri *uri, struct nrg_meter_field *fields, size_t *n_fields,
                struct nrg_error *err);
    /* end_ns: when the last of these bytes arrived; byte_ns: how long one takes on the line, 0
     * for files and pipes. Any cut of the stream gives the same readings. */
    void (*feed)(void *state, const uint8_t *bytes, size_t n, int64_t end_ns, int64_t byte_ns,
                 struct nrg_meter_out *out);
    /* The stream was interrupted: an unfinished line or frame is dropped. */
    void (*reset)(void *state);
    /* The stream ended properly (a file): the unfinished rest may be a reading. Optional. */
    void (*end)(void *state, int64_t end_ns, struct nrg_meter_out *out);
    /* No reading came for some periods. The decoder of a file that has stopped growing may hand
     * out what is left, and goes on if the file grows again. Optional. */
    void (*pause)(void *state, struct nrg_meter_out *out);
};

/* A decoder's state, to be released with free(). *n_fields is set. 0, or -errno with err. */
int nrg_meter_decoder_new(const struct nrg_meter_decoder *decoder, struct nrg_uri *uri,
                          struct nrg_meter_field *fields, size_t *n_fields, void **state,
                          struct nrg_error *err);

enum nrg_port_kind { NRG_PORT_SERIAL, NRG_PORT_FILE, NRG_PORT_PROGRAM };

/* One line in the table in meter/probe.c for each kind of meter. */
struct nrg_meter_kind {
    const struct nrg_driver *driver; /* its name is the scheme */
    const struct nrg_meter_decoder *decoder;
    enum nrg_port_kind port;
    unsigned baud;   /* of serial ports, unless baud= is given */
    bool from_start; /* a file is read from its start unless from=end is given */
};

/* True for a URI whose bytes a program prints: reading it runs a command. */
bool nrg_meter_runs_program(const char *text);

/* The functions of a byte meter's driver; probe is in meter/probe.c. */
int nrg_meter_probe(struct nrg_probe *probe, struct nrg_error *err);
int nrg_meter_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                   struct nrg_error *err);
int nrg_meter_read(void *state, struct nrg_sink *sink);
int nrg_meter_fd(void *state);
void nrg_meter_close(void *state);
/* clang-format off */
#define NRG_METER_DRIVER(scheme, text, probe_function)                                             \
    {.name = (scheme), .summary = (text), .flags = NRG_ON_REQUEST, .probe = (probe_function),       \
     .open = nrg_meter_open, .read = nrg_meter_read, .fd = nrg_meter_fd, .close = nrg_meter_close}
/* clang-format on */

/* What a meter has seen so far. */
struct nrg_meter_stats {
    uint64_t bytes, readings, refused, refused_bytes, harmless, opened;
    double rssi_dbm;   /* signal strength in the last reading that had one; NAN: none had */
    int64_t period_ns; /* between readings, as learnt from them; 0: not yet */
};

/*
 * For `nrg meter watch`: the state that `open` gave begins with this, for byte meters and MQTT.
 * `watch` gets readings and refusals besides the sink; NULL: nobody watches.
 */
struct nrg_meter_monitor {
    struct nrg_meter_out *watch;
    struct nrg_meter_stats stats;
};

/* Updates the period in the statistics with the interval between two readings. */
void nrg_meter_learn_period(struct nrg_meter_stats *stats, int64_t interval_ns);
/*
 * How long a meter may be quiet before it counts as silent: some periods (period_ns if it is given,
 * else the learnt one), but at least least_ns, and first_ns before the first reading.
 */
int64_t nrg_meter_patience_ns(const struct nrg_meter_stats *stats, int64_t period_ns,
                              int64_t least_ns, int64_t first_ns);

#endif
