/*
 * Sensors whose channels are files that hold one number: most of sysfs. The files are opened
 * once and read with one pread each, so that a reading costs one system call and a device that
 * is renumbered or removed is noticed (ENODEV) instead of silently replaced.
 *
 * A channel's `source` says what to read:
 *   "DIR/in1_input"              the raw value is the number in the file
 *   "DIR/in1_input*curr1_input"  the raw value is the product of two files of one directory
 * A file that several channels of a group name is opened and read once per row, so power,
 * voltage and current of a rail agree with each other and cost two bus transfers, not four.
 *
 * nrg_files_open/read/share/close have the signatures of struct nrg_driver: a driver that has
 * nothing to add uses them as they are. Rows come group by group, each with its own time stamp;
 * channels of one group must stand together. A file that fails is a missing value and a fault; when
 * all wanted files say ENODEV the sensor is gone and read returns that.
 */
#ifndef NRG_SENSORS_FILES_H
#define NRG_SENSORS_FILES_H

#include "sensors/driver.h"

int nrg_files_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                   struct nrg_error *err);
int nrg_files_read(void *state, struct nrg_sink *sink);
int nrg_files_share(void *state, enum nrg_share *how, int fds[NRG_SHARE_MAX]);
void nrg_files_close(void *state);

/*
 * Makes `name` differ from the names of all channels found so far with this quantity, by appending
 * "-2", "-3" and so on. `size` is that of the buffer.
 */
void nrg_unique_name(const struct nrg_probe *probe, enum nrg_quantity quantity, char *name,
                     size_t size);

/* Whether something that was found so far measures the processors. */
bool nrg_cpu_is_covered(const struct nrg_probe *probe);

/* A found channel by name and quantity (NRG_QUANTITIES: any); NULL when there is none. */
struct nrg_channel *nrg_find_channel(const struct nrg_probe *probe, const char *name,
                                     enum nrg_quantity quantity);

/* The number that the next GPU gets: one more than any gpu-N so far. */
unsigned nrg_next_gpu(const struct nrg_probe *probe);

#endif
