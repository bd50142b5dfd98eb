/*
 * What a database that somebody else made may do and cost here: read its tables, as often and as
 * long as its size explains. The limits follow from the file: no value is longer than the file, no
 * table has more rows than fit into it, and SQLite takes so many steps per byte at most.
 *
 * Errors: negative errno with the reason in err. Threads: a database in one at a time.
 */
#ifndef NRG_RECORD_STORE_GUARD_H
#define NRG_RECORD_STORE_GUARD_H

#include <stdint.h>

#include "base/error.h"

struct sqlite3;

/* Limits and rights of a database of nrg_source_open; before anything else is asked of it. */
int nrg_guard_set(struct sqlite3 *db, const char *path, struct nrg_error *err);
/* For a database that is written to after somebody else made it: its schema runs no code. */
void nrg_guard_writer(struct sqlite3 *db);
/* Allows the steps of one more statement. Returns how many rows it can have. */
int64_t nrg_guard_statement(struct sqlite3 *db);
/* -EBADMSG: there is more than plain tables and indexes, or tables that compute their values. */
int nrg_guard_check_schema(struct sqlite3 *db, const char *path, struct nrg_error *err);

#endif
