/*
 * nrg's end of a connection to nrgd: connect, agree on a version, ask. A conversation has one
 * deadline, from connecting to its last answer, so that a daemon that hangs, or takes its time with
 * each answer, costs a line and not the run.
 *
 * A link is the caller's (nrg_nrgd_close). 0 or a negative errno with the reason in err. One
 * thread at a time.
 */
#ifndef NRG_SENSORS_NRGD_LINK_H
#define NRG_SENSORS_NRGD_LINK_H

#include "base/clock.h"
#include "base/error.h"
#include "sensors/nrgd/wire.h"

/* For all that a command has to say to nrgd before it goes on without it. nrgd may have to be
 * started first. */
#define NRG_NRGD_PATIENCE_NS (3 * NRG_NS_PER_S)

struct nrg_nrgd_link {
    int fd;
    unsigned version;    /* that both speak */
    int64_t deadline_ns; /* nothing is waited for beyond it: -ETIMEDOUT */
    struct nrg_wire_welcome welcome;
};

/* Where the socket is: NRG_DAEMON, or NRG_DAEMON_SOCKET of fixes.h. "" (NRG_DAEMON=): nrgd is not
 * to be asked. */
const char *nrg_nrgd_socket(void);

/*
 * -ENOENT: there is no daemon here; -EPROTONOSUPPORT: it is of another version, err says what to
 * do. Close after success only.
 */
int nrg_nrgd_connect(struct nrg_nrgd_link *link, const char *path, int64_t patience_ns,
                     struct nrg_error *err);
void nrg_nrgd_close(struct nrg_nrgd_link *link);

/*
 * Sends a request and reads its answer, of the type `expected`, into *answer. Descriptors that come
 * with it are put into fds and *n_fds (both NULL where none are expected: those that come are
 * closed). A refusal is an error with nrgd's own words.
 */
int nrg_nrgd_ask(struct nrg_nrgd_link *link, enum nrg_wire_type type, uint32_t sensor,
                 uint32_t wanted, enum nrg_wire_type expected, union nrg_wire_packet *answer,
                 int *fds, size_t *n_fds, struct nrg_error *err);

/* The two halves of it, for who does not want to wait: after -ETIMEDOUT the answer may still come.
 * -ENODEV when the request can't be sent; nrgd's own words may still be there to be read. */
int nrg_nrgd_request(struct nrg_nrgd_link *link, enum nrg_wire_type type, uint32_t sensor,
                     uint32_t wanted, struct nrg_error *err);
int nrg_nrgd_answer(struct nrg_nrgd_link *link, enum nrg_wire_type expected,
                    union nrg_wire_packet *answer, int *fds, size_t *n_fds, struct nrg_error *err);

#endif
