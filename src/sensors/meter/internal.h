/*
 * Private to meter/: a meter's settings (probe.c), and the parts that a port is made of, serial
 * lines (serial.c) and programs (program.c). The caller owns descriptors and states; errors are a
 * negative errno with a reason; any thread.
 */
#ifndef NRG_SENSORS_METER_INTERNAL_H
#define NRG_SENSORS_METER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sensors/meter/channels.h"
#include "sensors/meter/port.h"

/* What a URI says to all kinds of meters. */
struct nrg_meter_settings {
    const struct nrg_meter_kind *kind;
    struct nrg_port_options port;
    int64_t period_ns, average_ns;
    struct nrg_meter_adjust adjust;
};

/* Reads all of the URI but covers=; the caller frees *decoder. */
int nrg_meter_read_uri(struct nrg_uri *uri, struct nrg_meter_settings *settings,
                       struct nrg_meter_field *fields, size_t *n_fields, void **decoder,
                       struct nrg_error *err);

/* devices.c: adds rows= to the URI of a program that prints lines of several GPUs. */
int nrg_meter_find_devices(struct nrg_uri *uri, struct nrg_error *err);

/* True for the speeds that termios has. */
bool nrg_serial_baud_known(unsigned baud);
/* How long one byte takes on the line: start bit, eight bits, stop bit. */
int64_t nrg_serial_byte_ns(unsigned baud);
/* Raw, 8N1, at that speed, locked. 0, or -errno with err. */
int nrg_serial_setup(int fd, const char *path, unsigned baud, struct nrg_error *err);

/* `sh -c command` in a process group of its own. The pipe to read from, or -errno. */
int nrg_program_start(const char *command, pid_t *pid, int *pidfd, struct nrg_error *err);
/* How it ended, as far as that can still be found out. */
void nrg_program_why(int pidfd, char *why, size_t size);
/* Ends the group and reaps the program; `pipe_open`: somebody may still hold its output. */
void nrg_program_stop(pid_t pid, int pidfd, bool pipe_open);

#endif
