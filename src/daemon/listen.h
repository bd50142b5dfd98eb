/*
 * The socket that nrgd serves: handed over by systemd (socket activation, sd_listen_fds(3)), or
 * made here where there is no systemd. A descriptor, or a negative errno with the reason in err.
 */
#ifndef NRG_DAEMON_LISTEN_H
#define NRG_DAEMON_LISTEN_H

#include "base/error.h"

/* LISTEN_PID and LISTEN_FDS of the environment, which are taken out of it. -ENOENT: none. */
int nrg_listen_inherited(struct nrg_error *err);

/* A socket of our own at `path`, open to everybody: who sees what is decided by group. */
int nrg_listen_at(const char *path, struct nrg_error *err);

#endif
