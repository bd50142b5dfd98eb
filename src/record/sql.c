/* See sql.h. */
#include "record/store/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int nrg_sql_prepare(struct nrg_sql *sql, sqlite3 *db)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *text;
    } all[] = {
        {&sql->begin, "BEGIN IMMEDIATE"},
        {&sql->commit, "COMMIT"},
        {&sql->meta, "INSERT OR REPLACE INTO meta VALUES(?,?)"},
        {&sql->chunk, "INSERT INTO chunk(series,first_ns,last_ns,n,width_ns,time_unit_ns,stats,"
                      "data) VALUES(?,?,?,?,?,?,?,?)"},
        {&sql->drop, "DELETE FROM chunk WHERE id=?"},
        {&sql->clock, "INSERT OR REPLACE INTO clock VALUES(?,?,?)"},
        {&sql->event, "INSERT INTO event(t_ns,kind,source,detail) VALUES(?,?,?,?)"},
        {&sql->process, "INSERT OR REPLACE INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
        {&sql->run, "INSERT OR REPLACE INTO run VALUES(?,?,?,?,?)"},
        {&sql->sensor, "INSERT INTO sensor VALUES(?,?,?,?)"},
        {&sql->channel,
         "INSERT INTO channel(series,col,sensor,wrap,update_ns,lag_ns,wide,covers_cpu,name,"
         "quantity,kind,unit,parent,provenance,source,scale,resolution,limit_w,error_low,"
         "error_high) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
        {&sql->series, "INSERT INTO series VALUES(?,?,?,?,?)"},
    };
    *sql = (struct nrg_sql){0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int rc =
            sqlite3_prepare_v3(db, all[i].text, -1, SQLITE_PREPARE_PERSISTENT, all[i].stmt, NULL);
        if (rc != SQLITE_OK) {
            nrg_sql_finalize(sql);
            return rc;
        }
    }
    return SQLITE_OK;
}

void nrg_sql_finalize(struct nrg_sql *sql)
{
    sqlite3_stmt *const all[] = {sql->begin, sql->commit, sql->meta,    sql->chunk,
                                 sql->drop,  sql->clock,  sql->event,   sql->process,
                                 sql->run,   sql->sensor, sql->channel, sql->series};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sqlite3_finalize(all[i]);
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

int nrg_sql_step(sqlite3_stmt *stmt)
{
    int rc = stmt ? sqlite3_step(stmt) : SQLITE_NOMEM;
    sqlite3_reset(stmt);
    return to_errno(rc);
}

int nrg_sql_copy_database(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    if (!backup)
        return sqlite3_errcode(to);
    sqlite3_backup_step(backup, -1);
    return sqlite3_backup_finish(backup);
}

int nrg_sql_meta(struct nrg_sql *sql, const char *key)
{
    sqlite3_bind_text(sql->meta, 1, key, -1, SQLITE_TRANSIENT);
    return nrg_sql_step(sql->meta);
}

int nrg_sql_chunk(struct nrg_sql *sql, const struct nrg_chunk *chunk, int64_t *id)
{
    sqlite3_stmt *s = sql->chunk;
    sqlite3_bind_int(s, 1, chunk->series);
    sqlite3_bind_int64(s, 2, chunk->first_ns);
    sqlite3_bind_int64(s, 3, chunk->last_ns);
    sqlite3_bind_int64(s, 4, (int64_t)chunk->n);
    sqlite3_bind_int64(s, 5, chunk->width_ns);
    sqlite3_bind_int64(s, 6, chunk->time_unit_ns);
    if (chunk->stats)
        sqlite3_bind_blob64(s, 7, chunk->stats, chunk->stats_len, SQLITE_STATIC);
    else
        sqlite3_bind_null(s, 7);
    sqlite3_bind_blob64(s, 8, chunk->data, chunk->data_len, SQLITE_STATIC);
    int rc = nrg_sql_step(s);
    *id = rc ? 0 : sqlite3_last_insert_rowid(sqlite3_db_handle(s));
    return rc;
}

int nrg_sql_drop_chunk(struct nrg_sql *sql, int64_t id)
{
    sqlite3_bind_int64(sql->drop, 1, id);
    return nrg_sql_step(sql->drop);
}

int nrg_sql_clock(struct nrg_sql *sql, const struct nrg_clock_pair *pair)
{
    sqlite3_bind_int64(sql->clock, 1, pair->mono_ns);
    sqlite3_bind_int64(sql->clock, 2, pair->real_ns);
    if (pair->tsc)
        sqlite3_bind_int64(sql->clock, 3, (int64_t)pair->tsc);
    else
        sqlite3_bind_null(sql->clock, 3);
    return nrg_sql_step(sql->clock);
}

int nrg_sql_event(struct nrg_sql *sql, const struct nrg_event *event)
{
    sqlite3_bind_int64(sql->event, 1, event->t_ns);
    sqlite3_bind_text(sql->event, 2, event->kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(sql->event, 3, event->source, -1, SQLITE_STATIC);
    sqlite3_bind_text(sql->event, 4, event->detail, -1, SQLITE_STATIC);
    return nrg_sql_step(sql->event);
}

int nrg_sql_process(struct nrg_sql *sql, const struct nrg_process_info *p)
{
    const int64_t numbers[] = {
        p->id,     p->pid,           p->parent_pid,     p->start_ticks, p->first_ns, p->last_ns,
        p->cpu_ns, p->cpu_before_ns, p->peak_rss_bytes, p->uid,         p->ended};
    const char *const texts[] = {p->name, p->command, p->container, p->unit};
    int at = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(sql->process, at++, numbers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sqlite3_bind_text(sql->process, at++, texts[i], -1, SQLITE_STATIC);
    return nrg_sql_step(sql->process);
}

int nrg_sql_run(struct nrg_sql *sql, const struct nrg_run *run)
{
    sqlite3_bind_int64(sql->run, 1, run->id);
    sqlite3_bind_text(sql->run, 2, run->kind, -1, SQLITE_STATIC);
    sqlite3_bind_int64(sql->run, 3, run->begin_ns);
    if (run->end_ns)
        sqlite3_bind_int64(sql->run, 4, run->end_ns);
    else
        sqlite3_bind_null(sql->run, 4);
    if (run->exit_code >= 0)
        sqlite3_bind_int(sql->run, 5, run->exit_code);
    else
        sqlite3_bind_null(sql->run, 5);
    return nrg_sql_step(sql->run);
}

static int bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    return sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

int nrg_sql_sensor(struct nrg_sql *sql, int64_t id, const char *driver, const char *name,
                   int64_t period_ns)
{
    sqlite3_bind_int64(sql->sensor, 1, id);
    bind_text(sql->sensor, 2, driver);
    bind_text(sql->sensor, 3, name);
    sqlite3_bind_int64(sql->sensor, 4, period_ns);
    return nrg_sql_step(sql->sensor);
}

int nrg_sql_channel(struct nrg_sql *sql, int series, size_t column, int64_t sensor,
                    const struct nrg_channel *c)
{
    const int64_t integers[] = {series,       (int64_t)column, sensor,  (int64_t)c->wrap,
                                c->update_ns, c->lag_ns,       c->wide, c->covers_cpu};
    const char *const texts[] = {c->name,
                                 nrg_quantity_name(c->quantity),
                                 nrg_kind_name(c->kind),
                                 nrg_quantity_unit(c->quantity),
                                 c->parent,
                                 nrg_provenance_name(c->provenance),
                                 c->source};
    const double reals[] = {c->scale, c->resolution, c->limit_w, c->error_low, c->error_high};
    int at = 1;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        sqlite3_bind_int64(sql->channel, at++, integers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bind_text(sql->channel, at++, texts[i]);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        sqlite3_bind_double(sql->channel, at++, reals[i]);
    return nrg_sql_step(sql->channel);
}

int nrg_sql_series(struct nrg_sql *sql, int id, enum nrg_series_kind kind, int64_t sensor,
                   size_t n_columns)
{
    char columns[200] = "";
    for (const char *const *name = nrg_series_columns(kind); name && *name; name++) {
        size_t len = strlen(columns);
        snprintf(columns + len, sizeof columns - len, "%s%s", len ? "," : "", *name);
    }
    sqlite3_bind_int64(sql->series, 1, id);
    bind_text(sql->series, 2, nrg_series_kind_name(kind));
    sqlite3_bind_int64(sql->series, 3, sensor);
    sqlite3_bind_int64(sql->series, 4, (int64_t)n_columns);
    bind_text(sql->series, 5, columns);
    return nrg_sql_step(sql->series);
}
