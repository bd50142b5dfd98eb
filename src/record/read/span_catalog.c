/* See span_catalog.h. Ids are mostly 1, 2, 3, ...: item k - 1 is tried first, then the others. */
#include "record/read/span_catalog.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"
#include "record/store/database.h"

static int load_name(void *arg, sqlite3_stmt *s)
{
    struct nrg_span_catalog *c = arg;
    struct nrg_span_name name = {.id = sqlite3_column_int64(s, 0)};
    size_t len = (size_t)sqlite3_column_bytes(s, 2);
    len = len > NRG_SPAN_NAME_MAX ? NRG_SPAN_NAME_MAX : len;
    name.text = malloc(len + 1);
    if (!name.text)
        return -ENOMEM;
    nrg_database_text(s, 1, name.kind, sizeof name.kind);
    nrg_database_text(s, 2, name.text, len + 1);
    nrg_database_text(s, 3, name.detail, sizeof name.detail);
    int rc = nrg_append(&c->names, &c->n_names, &c->cap_names, &name, sizeof name);
    if (rc)
        free(name.text);
    return rc;
}

static int load_track(void *arg, sqlite3_stmt *s)
{
    struct nrg_span_catalog *c = arg;
    struct nrg_span_track track = {.id = sqlite3_column_int64(s, 0),
                                   .pid = sqlite3_column_int(s, 2),
                                   .tid = sqlite3_column_int(s, 3),
                                   .start_ticks = sqlite3_column_int64(s, 4)};
    nrg_database_text(s, 1, track.kind, sizeof track.kind);
    nrg_database_text(s, 5, track.domain, sizeof track.domain);
    nrg_database_text(s, 6, track.name, sizeof track.name);
    return nrg_append(&c->tracks, &c->n_tracks, &c->cap_tracks, &track, sizeof track);
}

static int load_path(void *arg, sqlite3_stmt *s)
{
    struct nrg_span_catalog *c = arg;
    struct nrg_span_path path = {sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1),
                                 sqlite3_column_int64(s, 2)};
    if (path.parent < 0 || path.parent >= path.id) /* parents come first: no cycles */
        return 0;
    return nrg_append(&c->paths, &c->n_paths, &c->cap_paths, &path, sizeof path);
}

static const struct {
    const char *table, *text;
    int (*load)(void *, sqlite3_stmt *);
    bool needed; /* by spans */
} tables[] = {
    {"span_name", "SELECT id, kind, name, detail FROM span_name WHERE id > 0 ORDER BY id",
     load_name, true},
    {"span_track",
     "SELECT id, kind, pid, tid, start_ticks, domain, name FROM span_track WHERE id > 0"
     " ORDER BY id",
     load_track, true},
    {"span_path", "SELECT id, parent, name FROM span_path WHERE id > 0 ORDER BY id", load_path,
     false},
};

bool nrg_recording_has_spans(struct nrg_recording *recording)
{
    return nrg_recording_count(recording, "span_name", "kind NOT IN ('counter', 'mark')") > 0;
}

int nrg_span_catalog_load(struct nrg_span_catalog *c, struct nrg_recording *recording,
                          struct nrg_error *err)
{
    sqlite3 *db = nrg_recording_database(recording);
    int rc = 0;
    *c = (struct nrg_span_catalog){0};
    const char *path = nrg_recording_path(recording);
    bool spans = nrg_recording_series_of(recording, NRG_SPANS, NULL, 0) > 0;
    for (size_t i = 0; !rc && i < sizeof tables / sizeof *tables; i++)
        if (nrg_recording_has_table(recording, tables[i].table))
            rc = nrg_database_each(db, path, tables[i].text, tables[i].load, c, err);
        else if (spans && tables[i].needed)
            rc = nrg_fail(err, -EBADMSG, path,
                          "has spans, but no table '%s' to tell them: it is damaged, or its writer "
                          "left it out (docs/recording-format.md)",
                          tables[i].table);
    if (!rc)
        rc = nrg_recording_check(recording, err);
    if (nrg_recording_note_failure(recording, rc))
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
static const void *find_by_id(const void *items, size_t n, size_t size, int64_t id)
{
    const char *base = items;
    if (!n) /* there are no items to point at */
        return NULL;
    if (id > 0 && (uint64_t)id <= n && *(const int64_t *)(base + ((size_t)id - 1) * size) == id)
        return base + ((size_t)id - 1) * size;
    const char *item = base + nrg_count_below(items, n, size, id) * size;
    return item < base + n * size && *(const int64_t *)(const void *)item == id ? item : NULL;
}

const struct nrg_span_name *nrg_span_catalog_name(const struct nrg_span_catalog *c, int64_t id)
{
    return find_by_id(c->names, c->n_names, sizeof *c->names, id);
}

const struct nrg_span_track *nrg_span_catalog_track(const struct nrg_span_catalog *c, int64_t id)
{
    return find_by_id(c->tracks, c->n_tracks, sizeof *c->tracks, id);
}

const struct nrg_span_path *nrg_span_catalog_path(const struct nrg_span_catalog *c, int64_t id)
{
    return find_by_id(c->paths, c->n_paths, sizeof *c->paths, id);
}
