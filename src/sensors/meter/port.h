/*
 * Where a meter's bytes come from: a serial line (or a pty), a file that grows, a named pipe, or
 * the output of a program. What a path is decides itself when it is opened, so that a capture in
 * a file can stand in for a serial line.
 *
 * A port has one descriptor for its whole life (an epoll), whatever happens to the device:
 * unplugged, it is opened again by its path every second. nrg_port_next never blocks and never
 * allocates; one thread. Serial lines are set up raw, 8N1, without modem lines, and locked
 * (flock) against a second reader, who would steal bytes.
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
    bool from_start; /* of a file that is there: else only what is added */
};

enum nrg_port_event {
    NRG_PORT_NOTHING, /* nothing to do before the descriptor is readable again */
    NRG_PORT_BYTES,
    NRG_PORT_GONE,  /* unplugged; tried again every second */
    NRG_PORT_BACK,  /* opened again */
    NRG_PORT_CUT,   /* the file was replaced or cut: the next byte follows no other */
    NRG_PORT_ENDED, /* a program or the writer of a pipe ended; why says how */
    NRG_PORT_ALARM, /* the time of nrg_port_alarm has come */
};

struct nrg_port_news {
    enum nrg_port_event event;
    size_t n;       /* of bytes */
    int64_t end_ns; /* when the last of them had arrived */
    char why[128];  /* of GONE and ENDED */
};

/* True for the speeds that termios has. */
bool nrg_port_baud_known(unsigned baud);
/* How long one byte is on the line: start, eight bits, stop. */
int64_t nrg_port_byte_ns(unsigned baud);

/*
 * What can be known without opening (opening resets some boards): is it there, may we read it.
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
void nrg_port_next(struct nrg_port *port, uint8_t *bytes, size_t size, struct nrg_port_news *news);
/* Asks for an alarm at that time of the monotonic clock; 0: none. */
void nrg_port_alarm(struct nrg_port *port, int64_t at_ns);
/* The device is faster than it makes sense to follow: not read for a millisecond. */
void nrg_port_breathe(struct nrg_port *port);

/* meter_program.c: `sh -c command`, in a process group of its own. The pipe to read, or -errno. */
int nrg_program_start(const char *command, pid_t *pid, int *pidfd, struct nrg_error *err);
/* How it ended, when that can still be found out. */
void nrg_program_why(int pidfd, char *why, size_t size);
/* Ends the group and reaps the program; `pipe_open`: somebody may still hold its output. */
void nrg_program_stop(pid_t pid, int pidfd, bool pipe_open);

/* meter_serial.c: raw, 8N1, at that speed, locked. 0, or -errno with err. */
int nrg_serial_setup(int fd, const char *path, unsigned baud, struct nrg_error *err);

#endif
