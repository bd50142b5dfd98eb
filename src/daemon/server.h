/*
 * The loop of nrgd: accepts, answers, ends connections that are too slow, and itself when nobody
 * is there. One thread, nothing blocks but poll; what a client does not fetch is not kept for it.
 */
#ifndef NRG_DAEMON_SERVER_H
#define NRG_DAEMON_SERVER_H

#include "daemon/catalog.h"

struct nrg_server_options {
    int listener;    /* a listening SOCK_SEQPACKET socket */
    int signals;     /* a signalfd: readable means stop */
    int64_t idle_ns; /* end after so long without a connection; 0: never */
    struct nrg_policy policy;
};

/* Returns 0 after a signal or when idle, a negative errno when the socket is of no use. */
int nrg_server_run(const struct nrg_context *ctx, const struct nrg_server_options *options);

#endif
