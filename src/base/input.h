/*
 * A file of another program, plain or gzip (its first bytes tell), opened for reading from start to
 * end and perhaps again. It comes as a FILE so that every reader can use it; in a compressed file
 * the only seek that works is rewinding. A compressed file that was cut off ends at the cut. One
 * that unpacks to more than NRG_UNPACK_RATIO times its size (and more than NRG_UNPACK_FREE bytes)
 * is a bomb: reading fails with EFBIG there. Logs and traces shrink to a tenth or a fiftieth.
 *
 * Embedded: open, close. Not thread-safe.
 */
#ifndef NRG_BASE_INPUT_H
#define NRG_BASE_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* What a Git checkout holds in place of a large file that was not fetched. */
#define NRG_LFS_MAGIC  "version https://git-lfs"
#define NRG_LFS_ADVICE "is a Git LFS pointer, not the file itself: fetch that with `git lfs pull`"

/* Text that PowerShell's > wrote. */
#define NRG_UTF16_MAGIC  "\xff\xfe"
#define NRG_UTF16_ADVICE "is UTF-16 text (PowerShell writes it): save it as UTF-8"

#define NRG_UNPACK_RATIO 256
#define NRG_UNPACK_FREE  ((uint64_t)64 << 20)

struct stat;
struct nrg_gunzip;

struct nrg_input {
    FILE *in;
    uint64_t size_bytes; /* of the file as it lies on the disk */
    struct nrg_gunzip *gunzip;
};

/* A descriptor, with what fstat says of it; -EINVAL: not a regular file (a FIFO would hang). */
int nrg_open_regular(const char *path, struct stat *st, struct nrg_error *err);
/* The same for what may also be a folder, or a pipe that is open already (/dev/stdin, a shell's
 * <(command)). FIFOs and devices are refused: they could hang, or do something when opened. */
int nrg_open_readable(const char *path, struct stat *st, struct nrg_error *err);

/* True for an SQLite database, as recordings are. */
bool nrg_is_database(const char *path);

/* -EINVAL: not a regular file; -ENOENT: compressed, and there is no zlib. */
int nrg_input_open(struct nrg_input *input, const char *path, struct nrg_error *err);
/* What a read that failed with this errno means for people. */
const char *nrg_input_why(int error);
/* Bytes of the file on disk that were read so far, for progress. */
uint64_t nrg_input_done_bytes(const struct nrg_input *input);
void nrg_input_close(struct nrg_input *input);

#endif
