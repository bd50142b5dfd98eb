/*
 * Inside the store: its state (writer.c: life and commits, add.c: what is added), prepared
 * statements (sql.c) and series on their way into the file (series.c). Others use writer.h.
 *
 * Ownership: both structs are embedded in the store and released by it. Errors: 0 or a negative
 * errno, unless a function says that it gives an SQLite code. Threads: one at a time.
 */
#ifndef NRG_RECORD_STORE_INTERNAL_H
#define NRG_RECORD_STORE_INTERNAL_H

#include <sqlite3.h>

#include "record/store/column.h"
#include "record/store/new_file.h"
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
    NRG_SQL_GRAPH, /* the last: old recordings do not have the table */
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

void nrg_sql_init(struct nrg_sql *sql, sqlite3 *db); /* statements are prepared when needed */
/* Prepares all: the tables are there. SQLITE_OK or an SQLite code. */
int nrg_sql_prepare(struct nrg_sql *sql, sqlite3 *db);
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

/*
 * Memory for making a chunk, kept from one to the next: mapping it anew each time took more time
 * than the coding of a burst of spans.
 */
struct nrg_chunk_scratch {
    int64_t *cells; /* times in the chunk's unit, then sorted columns */
    uint32_t *order;
    size_t cap_cells, cap_order;
};

void nrg_chunk_scratch_release(struct nrg_chunk_scratch *scratch);

void nrg_series_init(struct nrg_series *s, int id, enum nrg_series_kind kind, size_t n_columns);
void nrg_series_release(struct nrg_series *s);
/* Writes what is new, inside the open transaction. */
int nrg_series_write(struct nrg_series *s, struct nrg_sql *sql, struct nrg_chunk_scratch *scratch,
                     struct nrg_codec *codec, bool closing);
/* The file is lost: all rows that are still in memory go to the next one. */
void nrg_series_rewind(struct nrg_series *s);
/* After the transaction: forgets what is safely written, or that anything was tried. */
void nrg_series_settle(struct nrg_series *s, bool committed);

/* memory.c: goes on in memory, with all that can still be had. 0 or -errno: it stays as it was. */
int nrg_store_move_to_memory(struct nrg_store *store);

struct nrg_store {
    sqlite3 *db;
    struct nrg_sql sql; /* prepared statements of db */
    struct nrg_new_file file;
    char *path;
    int64_t sync_ns, synced_ns; /* how often the log is synced; when it was */
    char failure[200];          /* why the last transaction failed */
    char spilled[200];          /* why the recording moved to memory, "" when on disk */
    int lost;                   /* the first metadata that could not be written: its -errno */
    struct nrg_series *series;
    size_t n_series, cap_series;
    int first_series; /* number of series[0] */
    int64_t n_sensors;
    bool preparing;    /* db is in memory, its first transaction is open: see nrg_store_ready */
    bool finished;     /* the last commit was made */
    uint8_t *prepared; /* the file as it was published; NULL: not kept */
    size_t prepared_bytes;
    struct nrg_codec *codec;
    struct nrg_chunk_scratch scratch;
    struct nrg_clock_pair *clocks;
    size_t n_clocks, cap_clocks, n_clocks_written;
    struct nrg_event *events;
    size_t n_events, cap_events;
    struct nrg_process_info *processes;
    size_t n_processes, cap_processes;
    struct nrg_run *runs; /* all: few, and without them there is no report */
    size_t n_runs, cap_runs, n_runs_written;
    struct nrg_span_name *names; /* their texts are the store's */
    size_t n_names, cap_names;
    struct nrg_span_track *tracks;
    size_t n_tracks, cap_tracks;
    struct nrg_span_path *paths;
    size_t n_paths, cap_paths;
};

#endif
