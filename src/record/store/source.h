/*
 * A recording's file as SQLite may read it: through a file layer (VFS) of our own that can only
 * read. Whatever a hostile file or its neighbours make SQLite want (roll back a journal, fold in a
 * log, delete the file that a journal names, spill to disk), there is nothing that it could do it
 * with. A log is read in place, with its index in memory: nothing is copied, nothing is written,
 * and a read-only folder is as good as any.
 *
 * A recording that is being written is read as of now: locks keep its recorder from moving the
 * log's pages into the file meanwhile. It writes on.
 *
 * Ownership: the source lives as long as its database, whose closing releases it. Errors: negative
 * errno with the reason in err. Threads: a database in one at a time.
 */
#ifndef NRG_RECORD_STORE_SOURCE_H
#define NRG_RECORD_STORE_SOURCE_H

#include <stdint.h>

#include "base/error.h"

struct sqlite3;

/*
 * Opens the recording `path`, its links resolved, from `fd`, which the source takes in any case.
 * The database is NULL after an error.
 */
int nrg_source_open(const char *path, int fd, struct sqlite3 **db, struct nrg_error *err);

/* What a statement may cost follows from the file's size: see guard.h. */
struct nrg_source_budget {
    int64_t bytes; /* of the file and its log */
    int64_t steps; /* of SQLite's machine that are left */
};
/* NULL for a database that was not opened here. */
struct nrg_source_budget *nrg_source_budget(struct sqlite3 *db);

#endif
