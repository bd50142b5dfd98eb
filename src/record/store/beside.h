/*
 * What SQLite keeps beside a recording: FILE-wal (the log of a recorder that runs or was killed),
 * FILE-shm (its index) and FILE-journal. They decide what the file says, so whoever may put one
 * there could forge results: only those of the file's owner, or of this user, are taken.
 *
 * Errors: negative errno with the reason in err. Thread-safe.
 */
#ifndef NRG_RECORD_STORE_BESIDE_H
#define NRG_RECORD_STORE_BESIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define NRG_BESIDE_LOG     "-wal"
#define NRG_BESIDE_INDEX   "-shm"
#define NRG_BESIDE_JOURNAL "-journal"

struct nrg_beside {
    int fd; /* for reading; -1: it is not there, or empty */
    int64_t bytes;
};

/* Opens one for a reader. -EPERM: a link, no file, or somebody's who is not `owner`. */
int nrg_beside_open(const char *path, const char *suffix, uid_t owner, struct nrg_beside *file,
                    struct nrg_error *err);
/* True for a plain file of this user without a second name: nobody else can have put it there. */
bool nrg_beside_is_own(const char *side);
/* For a writer: what lies there is this user's own and a plain file, or nothing. */
int nrg_beside_check(const char *path, struct nrg_error *err);

#endif
