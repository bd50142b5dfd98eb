/*
 * Inside the store: prepared statements (sql.c) and series on their way into the file (series.c).
 * Others use writer.h.
 *
 * Ownership: both structs are embedded in the store and released by it. Errors: 0 or a negative
 * errno, unless a function says that it gives an SQLite code. Threads: one at a time.
 */
#ifndef NRG_RECORD_STORE_INTERNAL_H
#define NRG_RECORD_STORE_INTERNAL_H

#include <sqlite3.h>

#include "record/store/column.h"
#include "record/store/writer.h"

enum nrg_sql_statement {
    NRG_SQL_BEGIN,
    NRG_SQL_COMMIT,
    NRG_SQL_META,
    NRG_SQL_CHUNK,
    NRG_SQL_DROP,
    NRG_SQL_CLOCK,
    NRG_SQL_EVENT,
    NRG_SQL_PROCESS,
    NRG_SQL_RUN,
    NRG_SQL_SENSOR,
    NRG_SQL_CHANNEL,
    NRG_SQL_SERIES,
    NRG_SQL_SPAN_NAME,
    NRG_SQL_SPAN_TRACK,
    NRG_SQL_SPAN_PATH,
    NRG_SQL_GRAPH, /* prepared when needed: old recordings do not have the table */
    NRG_SQL_STATEMENTS
};

/* Prepared statements: parsing is most of what a short statement costs. */
struct nrg_sql {
    sqlite3 *db;
    sqlite3_stmt *statements[NRG_SQL_STATEMENTS];
};

/* One value of a row. Texts and bytes are borrowed. */
struct nrg_sql_value {
    enum { NRG_SQL_NULL, NRG_SQL_INTEGER, NRG_SQL_REAL, NRG_SQL_TEXT, NRG_SQL_BLOB } kind;
    union {
        int64_t integer;
        double real;
        struct {
            const void *bytes;
            size_t len;
        };
    };
};

struct nrg_chunk {
    int series;
    int64_t first_ns, last_ns, width_ns, time_unit_ns;
    size_t n;
    const uint8_t *stats, *data; /* stats: NULL for none */
    size_t stats_len, data_len;
};

int nrg_sql_prepare(struct nrg_sql *sql, sqlite3 *db); /* SQLITE_OK or an SQLite code */
void nrg_sql_finalize(struct nrg_sql *sql);

int nrg_sql_begin(struct nrg_sql *sql);
int nrg_sql_commit(struct nrg_sql *sql);
int nrg_sql_meta(struct nrg_sql *sql, const char *key, struct nrg_sql_value value);
int nrg_sql_chunk(struct nrg_sql *sql, const struct nrg_chunk *chunk, int64_t *id);
int nrg_sql_drop_chunk(struct nrg_sql *sql, int64_t id);
int nrg_sql_clock(struct nrg_sql *sql, const struct nrg_clock_pair *pair);
int nrg_sql_event(struct nrg_sql *sql, const struct nrg_event *event);
int nrg_sql_process(struct nrg_sql *sql, const struct nrg_process_info *info);
int nrg_sql_run(struct nrg_sql *sql, const struct nrg_run *run);
int nrg_sql_span_name(struct nrg_sql *sql, const struct nrg_span_name *name);
int nrg_sql_span_track(struct nrg_sql *sql, const struct nrg_span_track *track);
int nrg_sql_span_path(struct nrg_sql *sql, const struct nrg_span_path *path);

/* Written once, before the run. */
int nrg_sql_sensor(struct nrg_sql *sql, int64_t id, const char *driver, const char *name,
                   int64_t period_ns);
int nrg_sql_channel(struct nrg_sql *sql, int series, size_t column, int64_t sensor,
                    const struct nrg_channel *channel);
int nrg_sql_series(struct nrg_sql *sql, int id, enum nrg_series_kind kind, int64_t sensor,
                   size_t n_columns);
int nrg_sql_graph(struct nrg_sql *sql, const char *name, const char *format, const void *bytes,
                  size_t size);

/* The rows since the last large chunk, and which of them the file already has as live chunks. */
struct nrg_series {
    int id;
    enum nrg_series_kind kind;
    struct nrg_rows rows;
    size_t written; /* rows that are in live chunks */
    int64_t *live;  /* ids of those chunks */
    size_t n_live, cap_live;
    enum { NRG_SERIES_IDLE, NRG_SERIES_LIVE, NRG_SERIES_MERGED } done; /* in this transaction */
};

void nrg_series_init(struct nrg_series *s, int id, enum nrg_series_kind kind, size_t n_columns);
void nrg_series_release(struct nrg_series *s);
/* Writes what is new, inside the open transaction. */
int nrg_series_write(struct nrg_series *s, struct nrg_sql *sql, struct nrg_codec *codec,
                     bool closing);
/* After the transaction: forgets what is safely written, or that anything was tried. */
void nrg_series_settle(struct nrg_series *s, bool committed);

#endif
