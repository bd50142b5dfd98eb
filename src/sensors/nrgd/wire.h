/*
 * What nrg and nrgd say to each other (docs/nrgd.md has the layout as a specification). The socket
 * keeps packets whole (SOCK_SEQPACKET), so there is no half of a message: a packet has the one size
 * that its type has, or is refused. Every request has one answer, and nrgd sends nothing unasked:
 *
 *   HELLO            WELCOME    versions; which view the user has, how many sensors there are
 *   SENSOR i         SENSOR     one sensor with its channels
 *   OPEN i, wanted   OPENED     with one descriptor per wanted channel, or without any
 *   READ             ROW        where OPENED came without descriptors
 *                    REFUSED    instead of any answer: why; the connection is closed then
 *
 * The head and HELLO, WELCOME and REFUSED are the same in all versions, so that two programs that
 * do not agree can still say so. Version 2 has the epoch at the end of ROW, and is otherwise as
 * version 1; both programs speak both (docs/nrgd.md). Numbers are in the machine's own order: it is
 * one machine.
 *
 * Both sides check every packet with the functions here, and trust nothing before that. Pure
 * functions; 0 or a negative errno.
 */
#ifndef NRG_SENSORS_NRGD_WIRE_H
#define NRG_SENSORS_NRGD_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "sensors/driver.h"

#define NRG_WIRE_MAGIC   UINT32_C(0x6467726e) /* "nrgd" in memory, on little-endian machines */
#define NRG_WIRE_VERSION 2
#define NRG_WIRE_OLDEST  1 /* that is spoken, too */

#define NRG_WIRE_SENSORS  64
#define NRG_WIRE_CHANNELS NRG_SHARE_MAX

enum nrg_wire_type {
    NRG_WIRE_HELLO = 1,
    NRG_WIRE_WELCOME,
    NRG_WIRE_SENSOR,
    NRG_WIRE_OPEN,
    NRG_WIRE_OPENED,
    NRG_WIRE_READ,
    NRG_WIRE_ROW,
    NRG_WIRE_REFUSED,
};

/* What a user may see. */
enum nrg_wire_view {
    NRG_VIEW_FULL = 1,   /* members of group nrg, and root */
    NRG_VIEW_COARSE = 2, /* everybody else */
};

/* How the wanted channels of an opened sensor are read. */
enum nrg_wire_how {
    NRG_HOW_ASK = 0,                       /* by READ */
    NRG_HOW_NUMBER = 1 + NRG_SHARE_NUMBER, /* from descriptors: enum nrg_share */
    NRG_HOW_COUNT = 1 + NRG_SHARE_COUNT,
};

struct nrg_wire_head {
    uint32_t magic;
    uint16_t version, type;
};

struct nrg_wire_hello { /* HELLO */
    struct nrg_wire_head head;
    char program[24]; /* version of the program, "0.2.0" */
};

struct nrg_wire_welcome { /* WELCOME */
    struct nrg_wire_head head;
    char program[24];
    uint32_t view;
    uint32_t n_sensors; /* the list stays as it is while the connection lasts */
    int64_t period_ns;  /* readings that are asked for are not newer than this */
};

struct nrg_wire_refused { /* REFUSED */
    struct nrg_wire_head head;
    int32_t error;    /* negative errno */
    char program[24]; /* version of who refuses */
    char text[132];   /* one line */
};

struct nrg_wire_request { /* SENSOR, OPEN, READ */
    struct nrg_wire_head head;
    uint32_t sensor; /* SENSOR, OPEN: its number, from 0 */
    uint32_t wanted; /* OPEN: bit per channel */
};

struct nrg_wire_channel {
    char name[48], parent[48], source[128];
    uint8_t quantity, kind, provenance, wide, covers_cpu, pad[3];
    uint64_t wrap;
    int64_t update_ns, window_ns, lag_ns;
    double scale, resolution, limit_w, error_low, error_high;
};

struct nrg_wire_sensor { /* SENSOR, the answer */
    struct nrg_wire_head head;
    char name[64];
    char driver[24]; /* that nrgd reads it with */
    uint32_t how;    /* enum nrg_wire_how */
    uint32_t n_channels;
    struct nrg_wire_channel channels[NRG_WIRE_CHANNELS]; /* those beyond n_channels are zero */
};

struct nrg_wire_opened { /* OPENED */
    struct nrg_wire_head head;
    uint32_t how;
    uint32_t n; /* descriptors that come with it */
};

struct nrg_wire_row { /* ROW */
    struct nrg_wire_head head;
    int64_t t_ns; /* CLOCK_MONOTONIC; 0: there is no reading yet */
    int64_t width_ns;
    int32_t error[NRG_WIRE_CHANNELS]; /* 0 or a negative errno */
    int64_t raw[NRG_WIRE_CHANNELS];   /* NRG_MISSING: not read */
    /* When the counters began at 0, on nrgd's clock; another one: they began anew. 0: they are the
     * sensor's own. Since version 2: 0 after nrg_wire_check of an older one. */
    int64_t epoch;
};

/* Large enough for every packet. */
union nrg_wire_packet {
    struct nrg_wire_head head;
    struct nrg_wire_hello hello;
    struct nrg_wire_welcome welcome;
    struct nrg_wire_refused refused;
    struct nrg_wire_request request;
    struct nrg_wire_sensor sensor;
    struct nrg_wire_opened opened;
    struct nrg_wire_row row;
};

bool nrg_wire_speaks(unsigned version);

/* Size of a packet from nrg (`to_daemon`) or from nrgd; 0 when there is no such type. */
size_t nrg_wire_size(unsigned version, unsigned type, bool to_daemon);

/* Zeroes the packet and writes its head, in the newest version. Returns its size. */
size_t nrg_wire_begin(union nrg_wire_packet *packet, enum nrg_wire_type type, bool to_daemon);

/* The packet as one of another version that is spoken. Returns its size. */
size_t nrg_wire_as(union nrg_wire_packet *packet, unsigned version, bool to_daemon);

/*
 * A packet of n bytes as it came, in any version that is spoken. -EPROTO: it is none;
 * -EPROTONOSUPPORT: of another version, with the head (and HELLO, WELCOME, REFUSED as a whole)
 * readable. All texts in it are terminated after a success.
 */
int nrg_wire_check(union nrg_wire_packet *packet, size_t n, bool to_daemon);

/* A channel on its way; into a channel again only when all of it makes sense, else -EPROTO. */
void nrg_wire_put_channel(struct nrg_wire_channel *wire, const struct nrg_channel *channel);
int nrg_wire_get_channel(const struct nrg_wire_channel *wire, struct nrg_channel *channel);

/* Checks a SENSOR answer as a whole: -EPROTO when a count, a text or a number makes no sense. */
int nrg_wire_check_sensor(const struct nrg_wire_sensor *sensor);

#endif
