/*
 * Files of recordings as SQLite databases: opening one for reading, wherever it lies and whatever a
 * killed recorder left beside it, without writing anything there; making and opening one for
 * writing; and reading single values.
 *
 * Ownership: the caller closes the database, also after an error (it may be NULL). Errors: SQLite
 * codes, unless a function has `err`: then a negative errno. Threads: a database in one at a time.
 */
#ifndef NRG_RECORD_STORE_DATABASE_H
#define NRG_RECORD_STORE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

/* For reading only; NULL after an error. Whether it is a recording is not looked at. */
int nrg_database_open(const char *path, struct sqlite3 **db, struct nrg_error *err);

/* Removes the file and what SQLite keeps beside it. */
void nrg_database_remove(const char *path);
/* `first` is SQL that runs before anything that may write to the file. */
int nrg_database_open_writable(const char *path, const char *first, struct sqlite3 **db);
/* True when the database is in that journal mode afterwards. */
bool nrg_database_set_journal(struct sqlite3 *db, const char *mode);
int nrg_database_create_schema(struct sqlite3 *db);
/* Waits until all that was committed is on the disk. */
int nrg_database_sync(struct sqlite3 *db);
/* Copies a whole database. */
int nrg_database_copy(struct sqlite3 *to, struct sqlite3 *from);

/* -ENOMEM, -EIO for what the system refused, -EBADMSG for anything else: the file is damaged. */
int nrg_database_errno(int sqlite_code);
/* The number that a PRAGMA or SELECT gives first, -1 when it fails. */
int64_t nrg_database_number(struct sqlite3 *db, const char *sql);
/* The same for those who must know: 0 or -errno; -ENODATA when there is no row. */
int nrg_database_integer(struct sqlite3 *db, const char *sql, int64_t *value);
/* A column of the current row as clean text, cut to fit; "" for NULL. */
void nrg_database_text(struct sqlite3_stmt *row, int column, char *dst, size_t size);
/*
 * Calls back with each row of a query; a negative errno from there means out of memory and stops.
 * -EBADMSG: the query failed, so the recording `path` is damaged.
 */
int nrg_database_each(struct sqlite3 *db, const char *path, const char *sql,
                      int (*each)(void *arg, struct sqlite3_stmt *row), void *arg,
                      struct nrg_error *err);

#endif
