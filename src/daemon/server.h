/*
 * The loop of nrgd: accepts, answers, ends connections that are too slow, and itself when nobody
 * is there. One thread, nothing blocks but poll. Who gets a place is decided in places.h.
 */
#ifndef NRG_DAEMON_SERVER_H
#define NRG_DAEMON_SERVER_H

#include "daemon/catalog.h"

struct nrg_server_options {
    int listener;    /* a listening SOCK_SEQPACKET socket */
    int signals;     /* a signalfd: readable means stop */
    size_t max_fds;  /* descriptors that the process may have (RLIMIT_NOFILE) */
    int64_t idle_ns; /* end after so long without a connection; 0: never */
    struct nrg_policy policy;
};

/* Returns 0 after a signal or when idle, a negative errno when the socket is of no use. */
int nrg_server_run(const struct nrg_context *ctx, const struct nrg_server_options *options);

#endif
