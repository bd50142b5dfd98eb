/* See span_catalog.h. Ids are mostly 1, 2, 3, ...: the row of id k is tried first, then searched.
 */
#include "record/read/span_catalog.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/database.h"

static void copy_column(char *dst, size_t size, sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    nrg_copy_clean(dst, size, text ? text : "", text ? (size_t)sqlite3_column_bytes(s, column) : 0);
}

static int load_name(struct nrg_span_catalog *c, sqlite3_stmt *s)
{
    int rc = nrg_reserve(&c->names, &c->cap_names, c->n_names + 1, sizeof *c->names);
    size_t len = (size_t)sqlite3_column_bytes(s, 2);
    struct nrg_span_name name = {.id = sqlite3_column_int64(s, 0)};
    if (rc)
        return rc;
    len = len > NRG_SPAN_NAME_MAX ? NRG_SPAN_NAME_MAX : len;
    name.text = malloc(len + 1);
    if (!name.text)
        return -ENOMEM;
    copy_column(name.kind, sizeof name.kind, s, 1);
    copy_column(name.text, len + 1, s, 2);
    copy_column(name.detail, sizeof name.detail, s, 3);
    c->names[c->n_names++] = name;
    return 0;
}

static int load_track(struct nrg_span_catalog *c, sqlite3_stmt *s)
{
    int rc = nrg_reserve(&c->tracks, &c->cap_tracks, c->n_tracks + 1, sizeof *c->tracks);
    struct nrg_span_track track = {.id = sqlite3_column_int64(s, 0),
                                   .pid = sqlite3_column_int(s, 2),
                                   .tid = sqlite3_column_int(s, 3),
                                   .start_ticks = sqlite3_column_int64(s, 4)};
    if (rc)
        return rc;
    copy_column(track.kind, sizeof track.kind, s, 1);
    copy_column(track.domain, sizeof track.domain, s, 5);
    copy_column(track.name, sizeof track.name, s, 6);
    c->tracks[c->n_tracks++] = track;
    return 0;
}

static int load_path(struct nrg_span_catalog *c, sqlite3_stmt *s)
{
    int rc = nrg_reserve(&c->paths, &c->cap_paths, c->n_paths + 1, sizeof *c->paths);
    struct nrg_span_path path = {sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1),
                                 sqlite3_column_int64(s, 2)};
    /* Parents come first: there can be no circle. */
    if (!rc && path.parent >= 0 && path.parent < path.id)
        c->paths[c->n_paths++] = path;
    return rc;
}

static const struct {
    const char *table, *text;
    int (*load)(struct nrg_span_catalog *, sqlite3_stmt *);
} tables[] = {
    {"span_name", "SELECT id, kind, name, detail FROM span_name WHERE id > 0 ORDER BY id",
     load_name},
    {"span_track",
     "SELECT id, kind, pid, tid, start_ticks, domain, name FROM span_track WHERE id > 0"
     " ORDER BY id",
     load_track},
    {"span_path", "SELECT id, parent, name FROM span_path WHERE id > 0 ORDER BY id", load_path},
};

static bool has_table(sqlite3 *db, const char *table)
{
    char text[96];
    snprintf(text, sizeof text, "SELECT count(*) FROM sqlite_master WHERE name = '%s'", table);
    return nrg_database_number(db, text) > 0;
}

int nrg_span_catalog_load(struct nrg_span_catalog *c, struct nrg_recording *recording,
                          struct nrg_error *err)
{
    sqlite3 *db = nrg_recording_database(recording);
    int rc = 0;
    *c = (struct nrg_span_catalog){0};
    for (size_t i = 0; !rc && i < sizeof tables / sizeof *tables; i++) {
        if (!has_table(db, tables[i].table))
            continue;
        sqlite3_stmt *s = NULL;
        int code = sqlite3_prepare_v2(db, tables[i].text, -1, &s, NULL);
        while (!rc && (code == SQLITE_OK || code == SQLITE_ROW)) {
            code = sqlite3_step(s);
            rc = code == SQLITE_ROW ? tables[i].load(c, s) : 0;
        }
        if (rc)
            nrg_fail(err, rc, nrg_recording_path(recording), "out of memory");
        else if (code != SQLITE_DONE)
            rc = nrg_fail(err, -EBADMSG, nrg_recording_path(recording),
                          "the recording is damaged: %s", sqlite3_errmsg(db));
        sqlite3_finalize(s);
    }
    if (rc)
        nrg_span_catalog_release(c);
    return rc;
}

void nrg_span_catalog_release(struct nrg_span_catalog *c)
{
    for (size_t i = 0; i < c->n_names; i++)
        free(c->names[i].text);
    free(c->names);
    free(c->tracks);
    free(c->paths);
    *c = (struct nrg_span_catalog){0};
}

/* Items of one size that begin with their id, sorted by it. */
static const void *find(const void *items, size_t n, size_t size, int64_t id)
{
    const char *base = items;
    size_t low = 0, high = n;
    if (id > 0 && (uint64_t)id <= n && *(const int64_t *)(base + ((size_t)id - 1) * size) == id)
        return base + ((size_t)id - 1) * size;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int64_t at = *(const int64_t *)(base + middle * size);
        if (at == id)
            return base + middle * size;
        if (at < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct nrg_span_name *nrg_span_catalog_name(const struct nrg_span_catalog *c, int64_t id)
{
    return find(c->names, c->n_names, sizeof *c->names, id);
}

const struct nrg_span_track *nrg_span_catalog_track(const struct nrg_span_catalog *c, int64_t id)
{
    return find(c->tracks, c->n_tracks, sizeof *c->tracks, id);
}

const struct nrg_span_path *nrg_span_catalog_path(const struct nrg_span_catalog *c, int64_t id)
{
    return find(c->paths, c->n_paths, sizeof *c->paths, id);
}
