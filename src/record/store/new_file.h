/*
 * Where a new recording is going to be. Its file has no name until it holds a whole database and is
 * on the disk; then it gets its name at once. So whoever looks there, after a kill or a power cut,
 * finds a recording or nothing, and a recording that is overwritten stays until there is a new one.
 *
 * Ownership: embedded; claim, then release, which removes what was not published. Errors: a
 * negative errno, with the reason in err. Threads: one at a time.
 */
#ifndef NRG_RECORD_STORE_NEW_FILE_H
#define NRG_RECORD_STORE_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct nrg_new_file {
    char *path;
    char *temporary; /* the file's name for now; NULL: it has none */
    int fd;          /* -1: none */
    bool overwrite, published;
};

/* Opens a file beside `path`. -EEXIST when there is one at `path`, unless overwrite. */
int nrg_new_file_claim(struct nrg_new_file *file, const char *path, bool overwrite,
                       struct nrg_error *err);
/*
 * Writes the file, waits until it is on the disk, and gives it its name. -EEXIST as above, or when
 * the log of another recording lies beside it, which SQLite would take for its own.
 */
int nrg_new_file_publish(struct nrg_new_file *file, const void *bytes, size_t size,
                         struct nrg_error *err);
void nrg_new_file_release(struct nrg_new_file *file);

#endif
