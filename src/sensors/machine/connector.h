/*
 * The kernel's proc connector: fork, exec and exit of every process as they happen. The descriptor
 * is the caller's to close. Errors are negative errno. One thread drains it.
 */
#ifndef NRG_SENSORS_MACHINE_CONNECTOR_H
#define NRG_SENSORS_MACHINE_CONNECTOR_H

#include <stdint.h>

#include "base/root.h"

struct nrg_connector_events {
    /* t_ns: CLOCK_MONOTONIC of the fork itself */
    void (*forked)(void *arg, int64_t t_ns, int32_t parent_pid, int32_t child_pid);
    void (*executed)(void *arg, int32_t pid);
    void (*exited)(void *arg, int32_t pid);
    void (*lost)(void *arg); /* the socket overflowed: poll everything once */
    void *arg;
};

/*
 * A non-blocking socket, or -errno: -EPERM without CAP_NET_ADMIN, -EXDEV in a pid namespace
 * (the connector uses the pids of the initial namespace).
 */
int nrg_connector_open(const struct nrg_root *root);
void nrg_connector_drain(int fd, const struct nrg_connector_events *events);

#endif
