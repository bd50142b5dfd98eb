/*
 * A connection to the server: plain or TLS, made without waiting, its addresses tried in turn.
 * Embedded, owned by a connection of the relay; close may be called at any time. Errors: a negative
 * errno. Threads: one.
 */
#ifndef NRG_LLM_PROXY_LINK_H
#define NRG_LLM_PROXY_LINK_H

#include <stdint.h>

#include "llm/proxy/address.h"
#include "llm/proxy/tls.h"

enum nrg_link_state { NRG_LINK_CLOSED, NRG_LINK_CONNECTS, NRG_LINK_SHAKES_HANDS, NRG_LINK_OPEN };

struct nrg_link {
    int fd; /* -1: closed */
    enum nrg_link_state state;
    size_t tries, failed; /* addresses since connecting began; those of them with an error */
    size_t address;       /* that is tried, or was taken */
    int64_t began_ns;     /* when connecting began */
    int64_t tried_ns;     /* when the address was tried */
    struct nrg_tls *tls;  /* the relay's; NULL: plain */
    bool dated;           /* the kernel notes when bytes come */
    struct nrg_tls_session *session;
    bool want_write; /* TLS waits to write before it can go on */
    char why[160];   /* it failed */
};

void nrg_link_init(struct nrg_link *link, struct nrg_tls *tls, bool dated);
/* 0, or -errno with link->why when no address can be tried. */
int nrg_link_connect(struct nrg_link *link, const struct nrg_upstream *upstream, int64_t now_ns);
/*
 * Tries the next address when the one that is tried has not answered for some time: 0.25 s in the
 * first round, four times as long in each one after. True when it did; the descriptor is another
 * one then, or the link is closed.
 */
bool nrg_link_try_next(struct nrg_link *link, const struct nrg_upstream *upstream, int64_t now_ns);
/*
 * Goes on with connecting, when its descriptor is ready. 0: it is open; -EAGAIN: not yet; -errno
 * with link->why. The descriptor may be another one afterwards.
 */
int nrg_link_advance(struct nrg_link *link, struct nrg_upstream *upstream, int64_t now_ns);
void nrg_link_close(struct nrg_link *link);

/* As recv and send, with -errno, and link->why where reading failed. Of an open link only. */
ssize_t nrg_link_read(struct nrg_link *link, void *to, size_t n);
/* Of a plain one; *came_ns: when the last of these bytes came, by CLOCK_REALTIME. 0: not known. */
ssize_t nrg_link_read_dated(struct nrg_link *link, void *to, size_t n, int64_t *came_ns);
ssize_t nrg_link_write(struct nrg_link *link, const void *from, size_t n);

#endif
