/*
 * See guard.h. Views, triggers, virtual tables, generated columns and computed indexes are code of
 * whoever made the file. SQLite is asked what there is: the text in sqlite_schema can be written in
 * many ways.
 */
#include "record/store/guard.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#include "record/store/database.h"
#include "record/store/source.h"

#define STEPS_AT_ONCE  1000 /* between two looks at the budget */
#define STEPS_ANYWAY   1000000
#define STEPS_PER_BYTE 16 /* a full scan takes about one */
#define BYTES_PER_ROW  4  /* the shortest row takes more */
#define LONGEST_ANYWAY 65536

static const struct {
    int id, most;
} limits[] = {
    {SQLITE_LIMIT_SQL_LENGTH, 20000},    {SQLITE_LIMIT_COLUMN, 200},
    {SQLITE_LIMIT_EXPR_DEPTH, 100},      {SQLITE_LIMIT_COMPOUND_SELECT, 10},
    {SQLITE_LIMIT_VDBE_OP, 25000},       {SQLITE_LIMIT_FUNCTION_ARG, 8},
    {SQLITE_LIMIT_ATTACHED, 0},          {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 100}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};

static const struct {
    int id, on;
} switches[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    {SQLITE_DBCONFIG_DQS_DDL, 0},
};

static int on_steps(void *arg)
{
    struct nrg_source_budget *budget = arg;
    budget->steps -= STEPS_AT_ONCE;
    return budget->steps < 0;
}

static bool is_among(const char *name, const char *const *names)
{
    while (name && *names && strcmp(name, *names))
        names++;
    return name && *names;
}

/*
 * Our own statements read tables, with few functions. Inside of a view nothing is read. SQLite says
 * "update of sqlite_master" when it describes a pragma as a table; nothing can be written anyway.
 */
static int authorize(void *arg, int action, const char *a, const char *b, const char *database,
                     const char *inside)
{
    static const char *const functions[] = {"count", "min", "max", "ifnull", NULL};
    static const char *const pragmas[] = {
        "application_id", "user_version", "schema_version", "table_list",
        "table_xinfo",    "index_list",   "index_xinfo",    NULL};
    bool allowed = action == SQLITE_SELECT || (action == SQLITE_READ && !inside) ||
                   (action == SQLITE_UPDATE && !strcmp(a, "sqlite_master")) ||
                   (action == SQLITE_FUNCTION && is_among(b, functions)) ||
                   (action == SQLITE_PRAGMA && is_among(a, pragmas));
    (void)arg, (void)database;
    return allowed ? SQLITE_OK : SQLITE_DENY;
}

void nrg_guard_writer(sqlite3 *db)
{
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        sqlite3_db_config(db, switches[i].id, switches[i].on, NULL);
    sqlite3_exec(db, "PRAGMA ignore_check_constraints=ON", NULL, NULL, NULL);
}

int nrg_guard_set(sqlite3 *db, const char *path, struct nrg_error *err)
{
    struct nrg_source_budget *budget = nrg_source_budget(db);
    if (!budget)
        return nrg_fail(err, -EINVAL, path, "was not opened for reading");
    int64_t longest = budget->bytes > LONGEST_ANYWAY ? budget->bytes : LONGEST_ANYWAY;
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, longest < INT_MAX ? (int)longest : INT_MAX);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(db, limits[i].id, limits[i].most);
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        sqlite3_db_config(db, switches[i].id, switches[i].on, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    nrg_guard_statement(db);
    sqlite3_progress_handler(db, STEPS_AT_ONCE, on_steps, budget);
    sqlite3_exec(db,
                 "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA cell_size_check=ON;"
                 "PRAGMA query_only=ON; PRAGMA cache_size=-4096",
                 NULL, NULL, NULL);
    sqlite3_set_authorizer(db, authorize, NULL);
    return 0;
}

int64_t nrg_guard_statement(sqlite3 *db)
{
    struct nrg_source_budget *budget = nrg_source_budget(db);
    if (!budget)
        return INT64_MAX;
    budget->steps =
        (budget->steps > 0 ? budget->steps : 0) + STEPS_ANYWAY + STEPS_PER_BYTE * budget->bytes;
    return budget->bytes / BYTES_PER_ROW + 1;
}

int nrg_guard_check_schema(sqlite3 *db, const char *path, struct nrg_error *err)
{
    /* In this order: asking for the columns of a virtual table would wake its module. */
    static const char *const counts[] = {
        "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type <> 'table'",
        "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')",
        "SELECT count(*) FROM pragma_table_list t, pragma_table_xinfo(t.name, 'main') c"
        " WHERE t.schema = 'main' AND c.hidden <> 0",
        "SELECT count(*) FROM pragma_table_list t, pragma_index_list(t.name, 'main') i"
        " WHERE t.schema = 'main' AND i.partial",
        "SELECT count(*) FROM pragma_table_list t, pragma_index_list(t.name, 'main') i,"
        " pragma_index_xinfo(i.name, 'main') c WHERE t.schema = 'main' AND c.cid = -2",
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = nrg_database_number(db, counts[i]);
        if (n < 0)
            return nrg_fail(err, -EBADMSG, path, "the recording is damaged: %s",
                            sqlite3_errmsg(db));
        if (n > 0)
            return nrg_fail(err, -EBADMSG, path,
                            "is damaged, or was not written by nrg: it has more than tables");
    }
    return 0;
}
