/*
 * nrg's end of a connection to nrgd: connect, agree on a version, ask. Nothing here waits longer
 * than three seconds, so that a daemon that hangs costs a line and not the run.
 *
 * A link is the caller's (nrg_nrgd_close). 0 or a negative errno with the reason in err. One
 * thread at a time.
 */
#ifndef NRG_SENSORS_NRGD_LINK_H
#define NRG_SENSORS_NRGD_LINK_H

#include "base/error.h"
#include "sensors/nrgd/wire.h"

struct nrg_nrgd_link {
    int fd;
    unsigned version; /* that both speak */
    struct nrg_wire_welcome welcome;
};

/* Where the socket is: NRG_DAEMON, or NRG_DAEMON_SOCKET of fixes.h. "" (NRG_DAEMON=): nrgd is not
 * to be asked. */
const char *nrg_nrgd_socket(void);

/*
 * -ENOENT: there is no daemon here; -EPROTONOSUPPORT: it is of another version, err says what to
 * do. Close after success only.
 */
int nrg_nrgd_connect(struct nrg_nrgd_link *link, const char *path, struct nrg_error *err);
void nrg_nrgd_close(struct nrg_nrgd_link *link);

/*
 * Sends a request and reads its answer, of the type `expected`, into *answer. Descriptors that come
 * with it are put into fds and *n_fds (both NULL where none are expected: those that come are
 * closed). A refusal is an error with nrgd's own words.
 */
int nrg_nrgd_ask(struct nrg_nrgd_link *link, enum nrg_wire_type type, uint32_t sensor,
                 uint32_t wanted, enum nrg_wire_type expected, union nrg_wire_packet *answer,
                 int *fds, size_t *n_fds, struct nrg_error *err);

#endif
