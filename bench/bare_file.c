/*
 * See bare_file.h. The tables and pragmas are those of a recording; each chunk is 40 bytes, as
 * those of a reading at 1 Hz are. What nrg does besides is left out: coding, names of channels,
 * processes and runs.
 */
#include "bare_file.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/format.h"

#define CHUNKS      3
#define CHUNK_BYTES 40

static void must(sqlite3 *db, int code)
{
    if (code == SQLITE_OK || code == SQLITE_DONE)
        return;
    fprintf(stderr, "bare_loop: %s\n", db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    exit(1);
}

static void run(sqlite3 *db, const char *sql)
{
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

sqlite3 *bare_file_open(const char *path)
{
    sqlite3 *db = NULL;
    unlink(path);
    must(db, sqlite3_open(path, &db));
    run(db, "PRAGMA synchronous=OFF; PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL;"
            "PRAGMA journal_mode=WAL; BEGIN");
    run(db, nrg_format_schema);
    run(db, nrg_format_spans);
    run(db, "COMMIT; PRAGMA synchronous=NORMAL");
    return db;
}

void bare_file_commit(sqlite3 *db)
{
    static const char bytes[CHUNK_BYTES] = {1};
    sqlite3_stmt *insert = NULL;
    run(db, "BEGIN");
    must(db, sqlite3_prepare_v2(db,
                                "INSERT INTO chunk(series,first_ns,last_ns,n,width_ns,"
                                "time_unit_ns,data) VALUES(?,1,1,1,1,1,?)",
                                -1, &insert, NULL));
    for (int series = 1; series <= CHUNKS; series++) {
        sqlite3_bind_int(insert, 1, series);
        sqlite3_bind_blob(insert, 2, bytes, sizeof bytes, SQLITE_STATIC);
        must(db, sqlite3_step(insert));
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    run(db, "COMMIT");
}

void bare_file_close(sqlite3 *db)
{
    run(db, nrg_format_index);
    run(db, "PRAGMA incremental_vacuum; PRAGMA journal_mode=DELETE");
    sqlite3_close(db);
}
