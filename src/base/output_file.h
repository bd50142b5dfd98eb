/*
 * Files that results are written to. What is there already is overwritten, but never a database:
 * the recording that a command has just read is the likeliest file to be named by mistake, and it
 * can't be made again. FIFOs and devices are written as they are; one that nobody reads is refused
 * instead of waited for. NULL with the reason in err. Thread-safe.
 */
#ifndef NRG_BASE_OUTPUT_FILE_H
#define NRG_BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* A file that is not there yet and that nobody else may read, from its first byte. */
FILE *nrg_output_private(const char *path, struct nrg_error *err);

/* Without `overwrite` only a file that is not there yet. */
FILE *nrg_output_file(const char *path, bool overwrite, struct nrg_error *err);

#endif
