/*
 * Opening a recording's file for reading, wherever it lies and whatever the recorder left beside
 * it. The caller closes the database, also after an error (it may be NULL).
 */
#ifndef NRG_RECORD_DATABASE_H
#define NRG_RECORD_DATABASE_H

#include <stdint.h>

struct sqlite3;

/* An SQLite code. */
int nrg_database_open(const char *path, struct sqlite3 **db);

/* The number that a PRAGMA or SELECT gives first, -1 when it fails. */
int64_t nrg_database_number(struct sqlite3 *db, const char *sql);

#endif
