/*
 * The sensors that nrgd serves: what its drivers find here that not everybody can read anyway. The
 * list of one probe stays as it is while a connection uses it; new connections get a new one when
 * it has become old and another one. A handful may be alive at once.
 *
 * One thread. A catalog is counted: nrg_catalog_get gives a reference, nrg_catalog_put takes it.
 */
#ifndef NRG_DAEMON_CATALOG_H
#define NRG_DAEMON_CATALOG_H

#include "base/context.h"
#include "daemon/reader.h"

struct nrg_served {
    const struct nrg_found *found;
    enum nrg_wire_how how; /* for the full view */
    size_t n;              /* channels, and their numbers in `found` */
    size_t number[NRG_WIRE_CHANNELS];
    struct nrg_sensor_reader *reader; /* while somebody asks for readings */
    size_t place[NRG_WIRE_CHANNELS];  /* of each channel in its rows; NRG_WIRE_CHANNELS: none */
};

struct nrg_catalog {
    struct nrg_probe probe;
    struct nrg_served items[NRG_WIRE_SENSORS];
    size_t n;
    unsigned users;
    int64_t made_ns;
    struct nrg_catalog *next;
};

struct nrg_catalogs {
    const struct nrg_context *ctx;
    struct nrg_catalog *newest;
    struct nrg_readers readers; /* of the sensors of all lists */
};

/* NULL when out of memory, or when a first probe fails. */
struct nrg_catalog *nrg_catalog_get(struct nrg_catalogs *catalogs);
void nrg_catalog_put(struct nrg_catalogs *catalogs, struct nrg_catalog *catalog);
/* Drops what no connection uses. */
void nrg_catalogs_release(struct nrg_catalogs *catalogs);

/* Describes a sensor as a view shows it. False: it has nothing for that view. */
bool nrg_served_describe(const struct nrg_served *served, enum nrg_wire_view view,
                         struct nrg_wire_sensor *out);

/*
 * Descriptors for one client, newly opened, of the wanted channels (bits, of the full view); the
 * state owns them and is closed with nrg_served_close once they are sent. -ENOTSUP: it is to ask.
 */
int nrg_served_share(const struct nrg_context *ctx, const struct nrg_served *served,
                     uint32_t wanted, void **state, int fds[NRG_SHARE_MAX]);
void nrg_served_close(const struct nrg_served *served, void *state);

/* Somebody begins or ends to ask for readings. */
int nrg_served_use(struct nrg_catalogs *catalogs, struct nrg_served *served,
                   enum nrg_wire_view view);
void nrg_served_leave(struct nrg_served *served, enum nrg_wire_view view);

/* The newest reading that the view may see, of the wanted channels. */
void nrg_served_row(struct nrg_served *served, enum nrg_wire_view view, uint32_t wanted,
                    struct nrg_wire_row *out);

/* The coarse view's readings of this second. True when somebody has that view. */
bool nrg_catalogs_tick(struct nrg_catalogs *catalogs);

#endif
