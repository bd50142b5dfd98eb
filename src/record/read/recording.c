/*
 * See recording.h; database.c opens the file, also after a crash. What looks wrong is said with
 * the file's name and what it is instead.
 */
#include "record/read/recording.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/store/column.h"
#include "record/database.h"

struct series_info {
    int id;
    enum nrg_series_kind kind;
    size_t n_columns;
};

struct meta {
    char key[64];
    char *value;
};

struct nrg_recording {
    sqlite3 *db;
    bool owned;
    char *path;
    struct meta *meta;
    size_t n_meta, cap_meta;
    struct nrg_recorded_channel *channels;
    size_t n_channels, cap_channels;
    struct series_info *series;
    size_t n_series, cap_series;
    struct nrg_process_info *processes;
    size_t n_processes, cap_processes;
    struct nrg_run *runs;
    size_t n_runs, cap_runs;
    struct nrg_event *events;
    size_t n_events, cap_events;
    struct nrg_clock_pair *clocks;
    size_t n_clocks, cap_clocks;
};

#define MAX_SPAN_NS (INT64_C(1) << 52) /* a period or lag of weeks is damage */

static int64_t column_time(sqlite3_stmt *s, int column)
{
    int64_t t_ns = sqlite3_column_int64(s, column);
    return nrg_is_time(t_ns) ? t_ns : 0;
}

static int64_t column_span(sqlite3_stmt *s, int column)
{
    int64_t span_ns = sqlite3_column_int64(s, column);
    return span_ns >= 0 && span_ns <= MAX_SPAN_NS ? span_ns : 0;
}

static void copy_text(char *dst, size_t size, sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    nrg_copy_clean(dst, size, text ? text : "", text ? (size_t)sqlite3_column_bytes(s, column) : 0);
}

static int load_meta(struct nrg_recording *r, sqlite3_stmt *s)
{
    int rc = nrg_reserve(&r->meta, &r->cap_meta, r->n_meta + 1, sizeof *r->meta);
    if (rc)
        return rc;
    struct meta *m = &r->meta[r->n_meta];
    copy_text(m->key, sizeof m->key, s, 0);
    size_t size = (size_t)sqlite3_column_bytes(s, 1) + 1;
    m->value = malloc(size);
    if (!m->value)
        return -ENOMEM;
    copy_text(m->value, size, s, 1);
    r->n_meta++;
    return 0;
}

static int load_series(struct nrg_recording *r, sqlite3_stmt *s)
{
    const char *kind = (const char *)sqlite3_column_text(s, 1);
    int k = kind ? nrg_series_kind_from_name(kind) : -1;
    if (k < 0)
        return 0; /* a kind that this version does not know */
    int rc = nrg_reserve(&r->series, &r->cap_series, r->n_series + 1, sizeof *r->series);
    if (rc)
        return rc;
    int n_columns = sqlite3_column_int(s, 2);
    if (n_columns > 0 && (size_t)n_columns <= NRG_CHUNK_MAX_COLUMNS)
        r->series[r->n_series++] = (struct series_info){sqlite3_column_int(s, 0),
                                                        (enum nrg_series_kind)k, (size_t)n_columns};
    return 0;
}

static struct series_info *find_series(const struct nrg_recording *r, int id)
{
    for (size_t i = 0; i < r->n_series; i++)
        if (r->series[i].id == id)
            return &r->series[i];
    return NULL;
}

static int load_channel(struct nrg_recording *r, sqlite3_stmt *s)
{
    char text[32];
    struct nrg_recorded_channel c = {.series = sqlite3_column_int(s, 0)};
    int column = sqlite3_column_int(s, 1);
    copy_text(c.channel.name, sizeof c.channel.name, s, 2);
    copy_text(text, sizeof text, s, 3);
    int quantity = nrg_quantity_from_name(text);
    copy_text(text, sizeof text, s, 4);
    int kind = nrg_kind_from_name(text);
    copy_text(text, sizeof text, s, 14);
    int provenance = nrg_provenance_from_name(text);
    struct series_info *series = find_series(r, c.series);
    if (quantity < 0 || kind < 0 || provenance < 0 || column < 0 || !series ||
        (size_t)column >= series->n_columns)
        return 0; /* of a newer version, or damaged: nothing that we could show rightly */
    c.column = (size_t)column;
    c.channel.quantity = (enum nrg_quantity)quantity;
    c.channel.kind = (enum nrg_kind)kind;
    c.channel.provenance = (enum nrg_provenance)provenance;
    c.channel.scale = sqlite3_column_double(s, 5);
    if (!(c.channel.scale > 0) || !isfinite(c.channel.scale))
        return 0;
    c.channel.wrap = (uint64_t)sqlite3_column_int64(s, 6);
    c.channel.update_ns = column_span(s, 7);
    c.channel.lag_ns = column_span(s, 8);
    c.channel.resolution = sqlite3_column_double(s, 9);
    c.channel.limit_w = sqlite3_column_double(s, 10);
    copy_text(c.channel.parent, sizeof c.channel.parent, s, 11);
    c.channel.wide = sqlite3_column_int(s, 12);
    c.channel.covers_cpu = sqlite3_column_int(s, 13);
    c.channel.error_low = sqlite3_column_double(s, 15);
    c.channel.error_high = sqlite3_column_double(s, 16);
    copy_text(c.channel.source, sizeof c.channel.source, s, 17);
    copy_text(c.driver, sizeof c.driver, s, 18);
    copy_text(c.sensor, sizeof c.sensor, s, 19);
    c.period_ns = column_span(s, 20);
    c.channel.group = (unsigned)sqlite3_column_int(s, 0);
    int rc = nrg_reserve(&r->channels, &r->cap_channels, r->n_channels + 1, sizeof *r->channels);
    if (!rc)
        r->channels[r->n_channels++] = c;
    return rc;
}

static int load_process(struct nrg_recording *r, sqlite3_stmt *s)
{
    struct nrg_process_info p = {.id = sqlite3_column_int64(s, 0),
                                 .pid = sqlite3_column_int(s, 1),
                                 .parent_pid = sqlite3_column_int(s, 2),
                                 .start_ticks = sqlite3_column_int64(s, 3),
                                 .first_ns = column_time(s, 4),
                                 .last_ns = column_time(s, 5),
                                 .cpu_ns = sqlite3_column_int64(s, 6),
                                 .cpu_before_ns = sqlite3_column_int64(s, 7),
                                 .peak_rss_bytes = sqlite3_column_int64(s, 8),
                                 .uid = sqlite3_column_int(s, 9),
                                 .ended = sqlite3_column_int(s, 10)};
    copy_text(p.name, sizeof p.name, s, 11);
    copy_text(p.command, sizeof p.command, s, 12);
    copy_text(p.container, sizeof p.container, s, 13);
    copy_text(p.unit, sizeof p.unit, s, 14);
    int rc =
        nrg_reserve(&r->processes, &r->cap_processes, r->n_processes + 1, sizeof *r->processes);
    if (!rc)
        r->processes[r->n_processes++] = p;
    return rc;
}

static int load_run(struct nrg_recording *r, sqlite3_stmt *s)
{
    struct nrg_run run = {
        .id = sqlite3_column_int64(s, 0),
        .begin_ns = column_time(s, 2),
        .end_ns = column_time(s, 3),
        .exit_code = sqlite3_column_type(s, 4) == SQLITE_NULL ? -1 : sqlite3_column_int(s, 4)};
    copy_text(run.kind, sizeof run.kind, s, 1);
    int rc = nrg_reserve(&r->runs, &r->cap_runs, r->n_runs + 1, sizeof *r->runs);
    if (!rc)
        r->runs[r->n_runs++] = run;
    return rc;
}

static int load_event(struct nrg_recording *r, sqlite3_stmt *s)
{
    struct nrg_event event = {.t_ns = column_time(s, 0)};
    copy_text(event.kind, sizeof event.kind, s, 1);
    copy_text(event.source, sizeof event.source, s, 2);
    copy_text(event.detail, sizeof event.detail, s, 3);
    int rc = nrg_reserve(&r->events, &r->cap_events, r->n_events + 1, sizeof *r->events);
    if (!rc)
        r->events[r->n_events++] = event;
    return rc;
}

static int load_clock(struct nrg_recording *r, sqlite3_stmt *s)
{
    struct nrg_clock_pair pair = {.mono_ns = column_time(s, 0),
                                  .real_ns = column_time(s, 1),
                                  .tsc = (uint64_t)sqlite3_column_int64(s, 2)};
    int rc = nrg_reserve(&r->clocks, &r->cap_clocks, r->n_clocks + 1, sizeof *r->clocks);
    if (!rc)
        r->clocks[r->n_clocks++] = pair;
    return rc;
}

static const struct {
    const char *text;
    int (*load)(struct nrg_recording *, sqlite3_stmt *);
} tables[] = {
    {"SELECT key, value FROM meta ORDER BY key", load_meta},
    {"SELECT id, kind, n_columns FROM series", load_series},
    {"SELECT c.series, c.col, c.name, c.quantity, c.kind, c.scale, c.wrap, c.update_ns, c.lag_ns,"
     " c.resolution, c.limit_w, c.parent, c.wide, c.covers_cpu, c.provenance, c.error_low,"
     " c.error_high, c.source, s.driver, s.name, s.period_ns"
     " FROM channel c LEFT JOIN sensor s ON s.id = c.sensor ORDER BY c.id",
     load_channel},
    {"SELECT * FROM process ORDER BY id", load_process},
    {"SELECT * FROM run ORDER BY id", load_run},
    {"SELECT t_ns, kind, source, detail FROM event ORDER BY id", load_event},
    {"SELECT mono_ns, real_ns, tsc FROM clock ORDER BY mono_ns", load_clock},
};

static int load_tables(struct nrg_recording *r, struct nrg_error *err)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        sqlite3_stmt *s = NULL;
        int code = sqlite3_prepare_v2(r->db, tables[i].text, -1, &s, NULL), rc = 0;
        while (code == SQLITE_OK || (!rc && code == SQLITE_ROW)) {
            code = sqlite3_step(s);
            rc = code == SQLITE_ROW ? tables[i].load(r, s) : 0;
        }
        sqlite3_finalize(s);
        if (rc)
            return nrg_fail(err, rc, r->path, "out of memory");
        if (code != SQLITE_DONE)
            return nrg_fail(err, -EBADMSG, r->path, "the recording is damaged: %s",
                            sqlite3_errmsg(r->db));
    }
    return 0;
}

static int check_format(struct nrg_recording *r, struct nrg_error *err)
{
    int64_t id = nrg_database_number(r->db, "PRAGMA application_id");
    if (id < 0)
        return nrg_fail(err, -EBADMSG, r->path, "is not a recording, or is damaged: %s",
                        sqlite3_errmsg(r->db));
    if (id != NRG_FORMAT_APPLICATION_ID)
        return nrg_fail(err, -EBADMSG, r->path,
                        "is an SQLite database, but not a recording of nrg");
    /* A view in the place of a table is a program that somebody else wrote. */
    if (nrg_database_number(r->db, "SELECT count(*) FROM sqlite_master WHERE type NOT IN "
                                   "('table','index') OR sql LIKE 'CREATE VIRTUAL%'") != 0)
        return nrg_fail(err, -EBADMSG, r->path, "is damaged, or was not written by nrg");
    int64_t version = nrg_database_number(r->db, "PRAGMA user_version");
    if (version > NRG_FORMAT_VERSION)
        return nrg_fail(err, -EPROTONOSUPPORT, r->path,
                        "was written by a newer nrg (format %lld, this one reads up to %d): "
                        "update nrg",
                        (long long)version, NRG_FORMAT_VERSION);
    return 0;
}

int nrg_recording_from_database(struct sqlite3 *database, const char *name,
                                struct nrg_recording **out, struct nrg_error *err)
{
    struct nrg_recording *r = calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(name))) {
        nrg_recording_close(r);
        return nrg_fail(err, -ENOMEM, name, "out of memory");
    }
    r->db = database;
    int rc = check_format(r, err);
    if (!rc)
        rc = load_tables(r, err);
    if (rc)
        nrg_recording_close(r);
    else
        *out = r;
    return rc;
}

int nrg_recording_open(const char *path, struct nrg_recording **out, struct nrg_error *err)
{
    sqlite3 *db = NULL;
    struct stat st;
    if (access(path, R_OK) || stat(path, &st))
        return nrg_fail(err, -errno, path, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return nrg_fail(err, -EINVAL, path, "is not a regular file");
    if (!st.st_size)
        return nrg_fail(err, -ENODATA, path, "is empty");
    int code = nrg_database_open(path, &db);
    if (code != SQLITE_OK) {
        int rc = nrg_fail(err, -EIO, path, "cannot open: %s", sqlite3_errstr(code));
        sqlite3_close(db);
        return rc;
    }
    int rc = nrg_recording_from_database(db, path, out, err);
    if (rc)
        sqlite3_close(db);
    else
        (*out)->owned = true;
    return rc;
}

void nrg_recording_close(struct nrg_recording *r)
{
    if (!r)
        return;
    if (r->owned)
        sqlite3_close(r->db);
    for (size_t i = 0; i < r->n_meta; i++)
        free(r->meta[i].value);
    free(r->meta);
    free(r->channels);
    free(r->series);
    free(r->processes);
    free(r->runs);
    free(r->events);
    free(r->clocks);
    free(r->path);
    free(r);
}

const char *nrg_recording_path(const struct nrg_recording *r)
{
    return r->path;
}

const char *nrg_recording_text(const struct nrg_recording *r, const char *key)
{
    for (size_t i = 0; i < r->n_meta; i++)
        if (!strcmp(r->meta[i].key, key))
            return r->meta[i].value;
    return NULL;
}

int nrg_recording_integer(const struct nrg_recording *r, const char *key, int64_t *value)
{
    const char *text = nrg_recording_text(r, key);
    if (!text)
        return -ENOENT;
    *value = strtoll(text, NULL, 10);
    return 0;
}

void nrg_recording_each_text(const struct nrg_recording *r,
                             void (*each)(void *, const char *, const char *), void *arg)
{
    for (size_t i = 0; i < r->n_meta; i++)
        each(arg, r->meta[i].key, r->meta[i].value);
}

const struct nrg_recorded_channel *nrg_recording_channels(const struct nrg_recording *r, size_t *n)
{
    *n = r->n_channels;
    return r->channels;
}

const struct nrg_process_info *nrg_recording_processes(const struct nrg_recording *r, size_t *n)
{
    *n = r->n_processes;
    return r->processes;
}

const struct nrg_run *nrg_recording_runs(const struct nrg_recording *r, size_t *n)
{
    *n = r->n_runs;
    return r->runs;
}

const struct nrg_event *nrg_recording_events(const struct nrg_recording *r, size_t *n)
{
    *n = r->n_events;
    return r->events;
}

const struct nrg_clock_pair *nrg_recording_clocks(const struct nrg_recording *r, size_t *n)
{
    *n = r->n_clocks;
    return r->clocks;
}

struct sqlite3 *nrg_recording_database(const struct nrg_recording *r)
{
    return r->db;
}

size_t nrg_recording_columns(const struct nrg_recording *r, int series, enum nrg_series_kind *kind)
{
    const struct series_info *info = find_series(r, series);
    if (info && kind)
        *kind = info->kind;
    return info ? info->n_columns : 0;
}

size_t nrg_recording_series_of(const struct nrg_recording *r, enum nrg_series_kind kind,
                               int *series, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_series; i++) {
        if (r->series[i].kind != kind)
            continue;
        if (n < max)
            series[n] = r->series[i].id;
        n++;
    }
    return n;
}

int64_t nrg_recording_realtime_ns(const struct nrg_recording *r, int64_t mono_ns)
{
    if (!r->n_clocks)
        return 0;
    size_t low = 0, high = r->n_clocks - 1;
    while (low < high) { /* last pair at or before the time, else the first */
        size_t middle = (low + high + 1) / 2;
        if (r->clocks[middle].mono_ns <= mono_ns)
            low = middle;
        else
            high = middle - 1;
    }
    return r->clocks[low].real_ns + (mono_ns - r->clocks[low].mono_ns);
}
