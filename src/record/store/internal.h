/* SQL statements of the store, each as one function. 0 or -errno. Used by store.c and series.c. */
#ifndef NRG_RECORD_SQL_H
#define NRG_RECORD_SQL_H

#include <sqlite3.h>

#include "base/clock.h"
#include "record/format.h"
#include "sensors/channel.h"

struct nrg_chunk {
    int series;
    int64_t first_ns, last_ns, width_ns, time_unit_ns;
    size_t n;
    const uint8_t *stats, *data;
    size_t stats_len, data_len;
};

/* Prepared statements: parsing is most of what a short statement costs. */
struct nrg_sql {
    sqlite3_stmt *begin, *commit, *meta, *chunk, *drop, *clock, *event, *process, *run;
    sqlite3_stmt *sensor, *channel, *series;
};

int nrg_sql_prepare(struct nrg_sql *sql, sqlite3 *db); /* SQLITE_OK or an SQLite code */
void nrg_sql_finalize(struct nrg_sql *sql);
/* Runs a statement that returns no rows and resets it. */
int nrg_sql_step(sqlite3_stmt *stmt);
/* SQLite's whole-database copy; returns an SQLite code. */
int nrg_sql_copy_database(sqlite3 *to, sqlite3 *from);

int nrg_sql_meta(struct nrg_sql *sql, const char *key); /* value is bound as parameter 2 */
int nrg_sql_chunk(struct nrg_sql *sql, const struct nrg_chunk *chunk, int64_t *id);
int nrg_sql_drop_chunk(struct nrg_sql *sql, int64_t id);
int nrg_sql_clock(struct nrg_sql *sql, const struct nrg_clock_pair *pair);
int nrg_sql_event(struct nrg_sql *sql, const struct nrg_event *event);
int nrg_sql_process(struct nrg_sql *sql, const struct nrg_process_info *info);
int nrg_sql_run(struct nrg_sql *sql, const struct nrg_run *run);

/* Written once, before the run. */
int nrg_sql_sensor(struct nrg_sql *sql, int64_t id, const char *driver, const char *name,
                   int64_t period_ns);
int nrg_sql_channel(struct nrg_sql *sql, int series, size_t column, int64_t sensor,
                    const struct nrg_channel *channel);
int nrg_sql_series(struct nrg_sql *sql, int id, enum nrg_series_kind kind, int64_t sensor,
                   size_t n_columns);

#endif
