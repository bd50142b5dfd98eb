/*
 * The SQL statements of the store, each as one function. A function lists the values of its row in
 * the order of the statement's parameters; execute_statement binds them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/mem.h"
#include "record/store/internal.h"

#define GRAPH_ZSTD_LEVEL 6

static const char *const texts[] = {
    [NRG_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [NRG_SQL_COMMIT] = "COMMIT",
    [NRG_SQL_META] = "INSERT OR REPLACE INTO meta VALUES(?,?)",
    [NRG_SQL_CHUNK] = "INSERT INTO chunk(series,first_ns,last_ns,n,width_ns,time_unit_ns,stats,"
                      "data) VALUES(?,?,?,?,?,?,?,?)",
    [NRG_SQL_DROP] = "DELETE FROM chunk WHERE id=?",
    [NRG_SQL_CLOCK] = "INSERT OR REPLACE INTO clock VALUES(?,?,?)",
    [NRG_SQL_EVENT] = "INSERT INTO event(t_ns,kind,source,detail) VALUES(?,?,?,?)",
    [NRG_SQL_PROCESS] = "INSERT OR REPLACE INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [NRG_SQL_RUN] = "INSERT OR REPLACE INTO run VALUES(?,?,?,?,?)",
    [NRG_SQL_SENSOR] = "INSERT INTO sensor VALUES(?,?,?,?)",
    [NRG_SQL_CHANNEL] =
        "INSERT INTO channel(series,col,sensor,wrap,update_ns,lag_ns,wide,covers_cpu,name,"
        "quantity,kind,unit,parent,provenance,source,scale,resolution,limit_w,error_low,"
        "error_high,window_ns) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [NRG_SQL_SERIES] = "INSERT INTO series VALUES(?,?,?,?,?)",
    [NRG_SQL_SPAN_NAME] = "INSERT OR REPLACE INTO span_name VALUES(?,?,?,?)",
    [NRG_SQL_SPAN_TRACK] = "INSERT OR REPLACE INTO span_track VALUES(?,?,?,?,?,?,?)",
    [NRG_SQL_SPAN_PATH] = "INSERT OR REPLACE INTO span_path VALUES(?,?,?)",
    [NRG_SQL_GRAPH] = "INSERT INTO graph(name,format,data) VALUES(?,?,?)",
};

static int prepare_statement(struct nrg_sql *sql, enum nrg_sql_statement which)
{
    return sqlite3_prepare_v3(sql->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                              &sql->statements[which], NULL);
}

void nrg_sql_init(struct nrg_sql *sql, sqlite3 *db)
{
    *sql = (struct nrg_sql){.db = db};
}

int nrg_sql_prepare(struct nrg_sql *sql, sqlite3 *db)
{
    int rc = SQLITE_OK;
    nrg_sql_init(sql, db);
    for (unsigned i = 0; rc == SQLITE_OK && i < NRG_SQL_GRAPH; i++)
        rc = prepare_statement(sql, (enum nrg_sql_statement)i);
    if (rc != SQLITE_OK)
        nrg_sql_finalize(sql);
    return rc;
}

void nrg_sql_finalize(struct nrg_sql *sql)
{
    for (size_t i = 0; i < NRG_SQL_STATEMENTS; i++)
        sqlite3_finalize(sql->statements[i]);
    *sql = (struct nrg_sql){0};
}

static int to_errno(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
        return 0;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        nrg_memory_lacked(); /* texts beside the readings are written without asking */
        return -ENOMEM;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return -EROFS;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    default:
        return -EIO;
    }
}

static int bind_value(sqlite3_stmt *s, int at, const struct nrg_sql_value *v)
{
    switch (v->kind) {
    case NRG_SQL_INTEGER:
        return sqlite3_bind_int64(s, at, v->integer);
    case NRG_SQL_REAL:
        return sqlite3_bind_double(s, at, v->real);
    case NRG_SQL_TEXT:
        return sqlite3_bind_text(s, at, v->bytes, -1, SQLITE_STATIC);
    case NRG_SQL_BLOB:
        return sqlite3_bind_blob64(s, at, v->bytes, v->len, SQLITE_STATIC);
    case NRG_SQL_NULL:
        break;
    }
    return sqlite3_bind_null(s, at);
}

static int execute_statement(struct nrg_sql *sql, enum nrg_sql_statement which,
                             const struct nrg_sql_value *row, size_t n)
{
    int rc = !sql->db                 ? SQLITE_NOMEM
             : sql->statements[which] ? SQLITE_OK
                                      : prepare_statement(sql, which);
    sqlite3_stmt *s = sql->statements[which];
    for (size_t i = 0; rc == SQLITE_OK && i < n; i++)
        rc = bind_value(s, (int)i + 1, &row[i]);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    sqlite3_reset(s);
    return to_errno(rc);
}

#define ROW(...) ((const struct nrg_sql_value[]){__VA_ARGS__})
#define EXECUTE(sql, which, ...)                                                                   \
    execute_statement(sql, which, ROW(__VA_ARGS__),                                                \
                      sizeof ROW(__VA_ARGS__) / sizeof(struct nrg_sql_value))

static struct nrg_sql_value integer(int64_t value)
{
    return (struct nrg_sql_value){.kind = NRG_SQL_INTEGER, .integer = value};
}

static struct nrg_sql_value integer_if(bool known, int64_t value)
{
    return known ? integer(value) : (struct nrg_sql_value){.kind = NRG_SQL_NULL};
}

static struct nrg_sql_value real(double value)
{
    return (struct nrg_sql_value){.kind = NRG_SQL_REAL, .real = value};
}

static struct nrg_sql_value text(const char *value)
{
    return (struct nrg_sql_value){.kind = NRG_SQL_TEXT, .bytes = value};
}

static struct nrg_sql_value blob(const void *bytes, size_t len)
{
    return (struct nrg_sql_value){
        .kind = bytes ? NRG_SQL_BLOB : NRG_SQL_NULL, .bytes = bytes, .len = len};
}

int nrg_sql_begin(struct nrg_sql *sql)
{
    return execute_statement(sql, NRG_SQL_BEGIN, NULL, 0);
}

int nrg_sql_commit(struct nrg_sql *sql)
{
    return execute_statement(sql, NRG_SQL_COMMIT, NULL, 0);
}

int nrg_sql_meta(struct nrg_sql *sql, const char *key, struct nrg_sql_value value)
{
    return EXECUTE(sql, NRG_SQL_META, text(key), value);
}

int nrg_sql_chunk(struct nrg_sql *sql, const struct nrg_chunk *c, int64_t *id)
{
    int rc =
        EXECUTE(sql, NRG_SQL_CHUNK, integer(c->series), integer(c->first_ns), integer(c->last_ns),
                integer((int64_t)c->n), integer(c->width_ns), integer(c->time_unit_ns),
                blob(c->stats, c->stats_len), blob(c->data, c->data_len));
    *id = rc ? 0 : sqlite3_last_insert_rowid(sql->db);
    return rc;
}

int nrg_sql_drop_chunk(struct nrg_sql *sql, int64_t id)
{
    return EXECUTE(sql, NRG_SQL_DROP, integer(id));
}

int nrg_sql_clock(struct nrg_sql *sql, const struct nrg_clock_pair *pair)
{
    return EXECUTE(sql, NRG_SQL_CLOCK, integer(pair->mono_ns), integer(pair->real_ns),
                   integer_if(pair->tsc != 0, (int64_t)pair->tsc));
}

int nrg_sql_event(struct nrg_sql *sql, const struct nrg_event *event)
{
    return EXECUTE(sql, NRG_SQL_EVENT, integer(event->t_ns), text(event->kind), text(event->source),
                   text(event->detail));
}

int nrg_sql_process(struct nrg_sql *sql, const struct nrg_process_info *p)
{
    return EXECUTE(sql, NRG_SQL_PROCESS, integer(p->id), integer(p->pid), integer(p->parent_pid),
                   integer(p->start_ticks), integer(p->first_ns), integer(p->last_ns),
                   integer(p->cpu_ns), integer(p->cpu_before_ns), integer(p->peak_rss_bytes),
                   integer(p->uid), integer(p->ended), text(p->name), text(p->command),
                   text(p->container), text(p->unit));
}

int nrg_sql_run(struct nrg_sql *sql, const struct nrg_run *run)
{
    return EXECUTE(sql, NRG_SQL_RUN, integer(run->id), text(run->kind), integer(run->begin_ns),
                   integer_if(run->end_ns != 0, run->end_ns),
                   integer_if(run->exit_code >= 0, run->exit_code));
}

int nrg_sql_span_name(struct nrg_sql *sql, const struct nrg_span_name *name)
{
    return EXECUTE(sql, NRG_SQL_SPAN_NAME, integer(name->id), text(name->kind), text(name->text),
                   text(name->detail));
}

int nrg_sql_span_track(struct nrg_sql *sql, const struct nrg_span_track *t)
{
    return EXECUTE(sql, NRG_SQL_SPAN_TRACK, integer(t->id), text(t->kind), integer(t->pid),
                   integer(t->tid), integer(t->start_ticks), text(t->domain), text(t->name));
}

int nrg_sql_span_path(struct nrg_sql *sql, const struct nrg_span_path *path)
{
    return EXECUTE(sql, NRG_SQL_SPAN_PATH, integer(path->id), integer(path->parent),
                   integer(path->name));
}

int nrg_sql_sensor(struct nrg_sql *sql, int64_t id, const char *driver, const char *name,
                   int64_t period_ns)
{
    return EXECUTE(sql, NRG_SQL_SENSOR, integer(id), text(driver), text(name), integer(period_ns));
}

int nrg_sql_channel(struct nrg_sql *sql, int series, size_t column, int64_t sensor,
                    const struct nrg_channel *c)
{
    return EXECUTE(sql, NRG_SQL_CHANNEL, integer(series), integer((int64_t)column), integer(sensor),
                   integer((int64_t)c->wrap), integer(c->update_ns), integer(c->lag_ns),
                   integer(c->wide), integer(c->covers_cpu), text(c->name),
                   text(nrg_quantity_name(c->quantity)), text(nrg_kind_name(c->kind)),
                   text(nrg_quantity_unit(c->quantity)), text(c->parent),
                   text(nrg_provenance_name(c->provenance)), text(c->source), real(c->scale),
                   real(c->resolution), real(c->limit_w), real(c->error_low), real(c->error_high),
                   integer(c->window_ns));
}

int nrg_sql_series(struct nrg_sql *sql, int id, enum nrg_series_kind kind, int64_t sensor,
                   size_t n_columns)
{
    char columns[200] = "";
    for (const char *const *name = nrg_series_columns(kind); name && *name; name++) {
        size_t len = strlen(columns);
        snprintf(columns + len, sizeof columns - len, "%s%s", len ? "," : "", *name);
    }
    return EXECUTE(sql, NRG_SQL_SERIES, integer(id), text(nrg_series_kind_name(kind)),
                   integer(sensor), integer((int64_t)n_columns), text(columns));
}

/* The model's file is kept as it was given, compressed. Nothing here looks inside. */
int nrg_sql_graph(struct nrg_sql *sql, const char *name, const char *format, const void *bytes,
                  size_t size)
{
    size_t room = ZSTD_compressBound(size);
    void *packed = malloc(room ? room : 1);
    size_t len = packed ? ZSTD_compress(packed, room, bytes, size, GRAPH_ZSTD_LEVEL) : 0;
    int rc = !packed ? -ENOMEM : ZSTD_isError(len) ? -EIO : 0;
    rc = rc ? rc : EXECUTE(sql, NRG_SQL_GRAPH, text(name), text(format), blob(packed, len));
    free(packed);
    return rc;
}
