/*
 * One client: what it may ask next, and the answer. No input or output here: bytes in, bytes and
 * descriptors out, so that it can be fuzzed.
 *
 * What a client can cost is bounded: one greeting, as many descriptions as there are sensors (and
 * once more), one opening; then either nothing or one reading per request. Anything else ends the
 * connection. Descriptors are handed over while there are some to spare, else readings are.
 */
#ifndef NRG_DAEMON_SESSION_H
#define NRG_DAEMON_SESSION_H

#include "daemon/catalog.h"

enum nrg_session_state { NRG_SESSION_NEW, NRG_SESSION_GREETED, NRG_SESSION_OPEN, NRG_SESSION_DONE };

struct nrg_session {
    struct nrg_catalogs *catalogs;
    enum nrg_wire_view view;
    enum nrg_session_state state;
    unsigned version;            /* of the client's HELLO; 0: it has not come yet */
    struct nrg_catalog *catalog; /* from the greeting on */
    unsigned n_described;
    struct nrg_served *served; /* open for readings */
    uint32_t wanted;
    unsigned spare_fds; /* descriptors that may be sent now: the caller's to say */
};

/* What is sent: a packet and descriptors, which are released once it is sent. */
struct nrg_reply {
    union nrg_wire_packet packet;
    size_t size;
    int fds[NRG_SHARE_MAX];
    size_t n_fds;
    struct nrg_served *shared;
    void *shared_state;
};

void nrg_session_init(struct nrg_session *session, struct nrg_catalogs *catalogs,
                      enum nrg_wire_view view);
void nrg_session_release(struct nrg_session *session);

/*
 * Takes a packet of n bytes, as it came, and makes the reply (nrg_reply_release). 0, or a negative
 * errno: the reply is a refusal and the connection is to be closed after it.
 */
int nrg_session_take(struct nrg_session *session, union nrg_wire_packet *packet, size_t n,
                     struct nrg_reply *reply);
void nrg_reply_release(struct nrg_reply *reply);

/* The descriptors of a reply could not be sent: makes it one without any, and the session one that
 * asks for readings. As nrg_session_take. */
int nrg_session_stream(struct nrg_session *session, struct nrg_reply *reply);

/* Makes the reply a refusal, in the oldest version: a client that has not said which it speaks must
 * be able to read it. Returns `error`. */
int nrg_reply_refuse(struct nrg_reply *reply, int error, const char *text);

#endif
