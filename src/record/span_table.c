/* See span_table.h. Statements are prepared when there is something to write, which is seldom. */
#include "record/span_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/store/internal.h"

void nrg_span_table_clear(struct nrg_span_table *t)
{
    for (size_t i = 0; i < t->n_names; i++)
        free(t->names[i].text);
    t->n_names = t->n_tracks = t->n_paths = 0;
}

void nrg_span_table_release(struct nrg_span_table *t)
{
    nrg_span_table_clear(t);
    free(t->names);
    free(t->tracks);
    free(t->paths);
    *t = (struct nrg_span_table){0};
}

int nrg_span_table_name(struct nrg_span_table *t, const struct nrg_span_name *name)
{
    int rc = nrg_reserve(&t->names, &t->cap_names, t->n_names + 1, sizeof *t->names);
    size_t len = strnlen(name->text, NRG_SPAN_NAME_MAX);
    if (rc)
        return rc;
    struct nrg_span_name copy = *name;
    copy.text = malloc(len + 1);
    if (!copy.text)
        return -ENOMEM;
    nrg_copy_clean(copy.text, len + 1, name->text, len);
    t->names[t->n_names++] = copy;
    return 0;
}

int nrg_span_table_track(struct nrg_span_table *t, const struct nrg_span_track *track)
{
    int rc = nrg_reserve(&t->tracks, &t->cap_tracks, t->n_tracks + 1, sizeof *t->tracks);
    if (!rc)
        t->tracks[t->n_tracks++] = *track;
    return rc;
}

int nrg_span_table_path(struct nrg_span_table *t, const struct nrg_span_path *path)
{
    int rc = nrg_reserve(&t->paths, &t->cap_paths, t->n_paths + 1, sizeof *t->paths);
    if (!rc)
        t->paths[t->n_paths++] = *path;
    return rc;
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

static int write_names(const struct nrg_span_table *t, sqlite3_stmt *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < t->n_names; i++) {
        sqlite3_bind_int64(s, 1, t->names[i].id);
        bind_text(s, 2, t->names[i].kind);
        bind_text(s, 3, t->names[i].text);
        bind_text(s, 4, t->names[i].detail);
        rc = nrg_sql_step(s);
    }
    return rc;
}

static int write_tracks(const struct nrg_span_table *t, sqlite3_stmt *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < t->n_tracks; i++) {
        sqlite3_bind_int64(s, 1, t->tracks[i].id);
        bind_text(s, 2, t->tracks[i].kind);
        sqlite3_bind_int(s, 3, t->tracks[i].pid);
        sqlite3_bind_int(s, 4, t->tracks[i].tid);
        sqlite3_bind_int64(s, 5, t->tracks[i].start_ticks);
        bind_text(s, 6, t->tracks[i].domain);
        bind_text(s, 7, t->tracks[i].name);
        rc = nrg_sql_step(s);
    }
    return rc;
}

static int write_paths(const struct nrg_span_table *t, sqlite3_stmt *s)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < t->n_paths; i++) {
        sqlite3_bind_int64(s, 1, t->paths[i].id);
        sqlite3_bind_int64(s, 2, t->paths[i].parent);
        sqlite3_bind_int64(s, 3, t->paths[i].name);
        rc = nrg_sql_step(s);
    }
    return rc;
}

static int write_with(const struct nrg_span_table *t, sqlite3 *db, const char *text,
                      int (*rows)(const struct nrg_span_table *, sqlite3_stmt *))
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, text, -1, &s, NULL) == SQLITE_OK ? rows(t, s) : -EIO;
    sqlite3_finalize(s);
    return rc;
}

int nrg_span_table_write(const struct nrg_span_table *t, sqlite3 *db)
{
    int rc = 0;
    if (t->n_names)
        rc = write_with(t, db, "INSERT OR REPLACE INTO span_name VALUES(?, ?, ?, ?)", write_names);
    if (!rc && t->n_tracks)
        rc = write_with(t, db, "INSERT OR REPLACE INTO span_track VALUES(?, ?, ?, ?, ?, ?, ?)",
                        write_tracks);
    if (!rc && t->n_paths)
        rc = write_with(t, db, "INSERT OR REPLACE INTO span_path VALUES(?, ?, ?)", write_paths);
    return rc;
}
