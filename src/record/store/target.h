/*
 * A recording's file as SQLite may write it. Beside it SQLite creates files, and reads those that
 * it finds there: in a folder that others can write, theirs. Here it creates what was not there,
 * takes what is this user's own, and never sees a journal: what we write has none to roll back.
 *
 * Errors: SQLite codes. Threads: a database in one at a time.
 */
#ifndef NRG_RECORD_STORE_TARGET_H
#define NRG_RECORD_STORE_TARGET_H

struct sqlite3;

/* `first` is SQL that runs before anything is read. NULL after an error. */
int nrg_target_open(const char *path, const char *first, struct sqlite3 **db);

#endif
