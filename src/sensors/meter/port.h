/*
 * Where a meter's bytes come from: a serial line (or a pty), a file that grows, a named pipe, or
 * the output of a program. What a path is shows when it is opened, so that a capture in a file can
 * stand in for a serial line.
 *
 * A port has one descriptor for its whole life (an epoll), whatever happens to the device: after
 * unplugging, nrg tries to open the path again every second. nrg_port_next never blocks and never
 * allocates; one thread. Serial lines are set up raw, 8N1, without modem lines, and locked (flock)
 * against a second reader, who would steal bytes. Errors are a negative errno and say what to do.
 */
#ifndef NRG_SENSORS_METER_PORT_H
#define NRG_SENSORS_METER_PORT_H

#include <sys/types.h>

#include "sensors/meter/driver.h"

struct nrg_port;

struct nrg_port_options {
    enum nrg_port_kind kind;
    const char *place; /* path, root-relative, or command; copied */
    unsigned baud;
    bool from_start; /* read an existing file from its start, not only what is added to it */
};

enum nrg_port_event_kind {
    NRG_PORT_NOTHING, /* nothing to do before the descriptor is readable again */
    NRG_PORT_BYTES,
    NRG_PORT_GONE,  /* unplugged; tried again every second */
    NRG_PORT_BACK,  /* opened again */
    NRG_PORT_CUT,   /* the file was replaced or cut: the next byte does not continue the last */
    NRG_PORT_ENDED, /* a program or the writer of a pipe ended; why says how */
    NRG_PORT_ALARM, /* the time of nrg_port_alarm has come */
};

struct nrg_port_event {
    enum nrg_port_event_kind kind;
    size_t n;       /* of bytes */
    int64_t end_ns; /* when the last of them had arrived */
    char why[128];  /* of GONE and ENDED */
};

/*
 * Checks without opening (which resets some boards) that the place exists and may be read.
 * 0, or -errno with err saying what to do.
 */
int nrg_port_check(const struct nrg_context *ctx, const struct nrg_port_options *options,
                   struct nrg_error *err);

/* `ctx` must outlive the port. */
int nrg_port_open(const struct nrg_context *ctx, const struct nrg_port_options *options,
                  struct nrg_port **port, struct nrg_error *err);
void nrg_port_close(struct nrg_port *port);

int nrg_port_fd(const struct nrg_port *port);
/* A serial line: bytes take time on it. */
bool nrg_port_is_serial(const struct nrg_port *port);
void nrg_port_next(struct nrg_port *port, uint8_t *bytes, size_t size,
                   struct nrg_port_event *event);
/* Asks for an alarm at that time of the monotonic clock; 0: none. */
void nrg_port_alarm(struct nrg_port *port, int64_t at_ns);
/* The device is too fast to follow: it is not read for a millisecond. */
void nrg_port_breathe(struct nrg_port *port);

#endif
