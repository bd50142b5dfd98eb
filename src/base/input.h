/*
 * A file of another program, opened for reading from front to back and perhaps again: plain or
 * gzip, told by its first bytes. Behind a FILE so that every reader can use it; of a compressed
 * one only rewinding works. A compressed file that was cut off ends where it is cut.
 *
 * Embedded: open, close. Not thread-safe.
 */
#ifndef NRG_BASE_INPUT_H
#define NRG_BASE_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct nrg_gunzip;

struct nrg_input {
    FILE *in;
    uint64_t size_bytes; /* of the file as it lies on the disk */
    struct nrg_gunzip *gunzip;
};

/* -EINVAL: not a regular file; -ENOENT: compressed, and there is no zlib. */
int nrg_input_open(struct nrg_input *input, const char *path, struct nrg_error *err);
/* Bytes of the file that were read so far: how far it is. */
uint64_t nrg_input_done_bytes(const struct nrg_input *input);
void nrg_input_close(struct nrg_input *input);

#endif
