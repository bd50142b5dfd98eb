/*
 * See recording.h; database.c opens the file, also after a crash. An error names the file and says
 * what it is instead of a recording.
 */
#include "record/read/recording.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/search.h"
#include "record/read/still.h"
#include "record/store/column.h"
#include "record/store/database.h"
#include "record/store/guard.h"

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
    struct nrg_codec *codec; /* one for all readers: a decoder is 100 kB that have to be cleared */
    bool owned;
    size_t damage;
    int failed; /* the first failure that is not the file's, see nrg_recording_check */
    char *path;
    struct meta *meta;
    size_t n_meta, cap_meta;
    struct nrg_recorded_channel *channels;
    size_t n_channels, cap_channels;
    char unscaled[48]; /* the name of a channel that is left out; "": none */
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
    struct nrg_stills **stills;
};

#define MAX_SPAN_NS  (INT64_C(1) << 52) /* longer periods and lags mean damage */
#define MAX_COUNT    (INT64_MAX / 2)    /* sums of two do not overflow */
#define IDS_TO_SPARE 1000000            /* process ids above their number; more mean damage */

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

static int load_meta(void *arg, sqlite3_stmt *s)
{
    struct nrg_recording *r = arg;
    struct meta m;
    size_t size = (size_t)sqlite3_column_bytes(s, 1) + 1;
    m.value = malloc(size);
    if (!m.value)
        return -ENOMEM;
    nrg_database_text(s, 0, m.key, sizeof m.key);
    nrg_database_text(s, 1, m.value, size);
    int rc = nrg_append(&r->meta, &r->n_meta, &r->cap_meta, &m, sizeof m);
    if (rc)
        free(m.value);
    return rc;
}

static int load_series(void *arg, sqlite3_stmt *s)
{
    struct nrg_recording *r = arg;
    const char *kind = (const char *)sqlite3_column_text(s, 1);
    int k = kind ? nrg_series_kind_from_name(kind) : -1;
    int n_columns = sqlite3_column_int(s, 2);
    struct series_info info = {sqlite3_column_int(s, 0), (enum nrg_series_kind)k,
                               (size_t)n_columns};
    if (k < 0 || info.id <= 0 || n_columns <= 0 || info.n_columns > NRG_CHUNK_MAX_COLUMNS ||
        info.n_columns < nrg_series_least_columns(info.kind))
        return 0; /* a kind that this version does not know, or damage */
    return nrg_append(&r->series, &r->n_series, &r->cap_series, &info, sizeof info);
}

static struct series_info *find_series(const struct nrg_recording *r, int id)
{
    for (size_t i = 0; i < r->n_series; i++)
        if (r->series[i].id == id)
            return &r->series[i];
    return NULL;
}

static int load_channel(void *arg, sqlite3_stmt *s)
{
    struct nrg_recording *r = arg;
    char text[32];
    struct nrg_recorded_channel c = {.series = sqlite3_column_int(s, 0)};
    int column = sqlite3_column_int(s, 1);
    nrg_database_text(s, 2, c.channel.name, sizeof c.channel.name);
    nrg_database_text(s, 3, text, sizeof text);
    int quantity = nrg_quantity_from_name(text);
    nrg_database_text(s, 4, text, sizeof text);
    int kind = nrg_kind_from_name(text);
    nrg_database_text(s, 14, text, sizeof text);
    int provenance = nrg_provenance_from_name(text);
    struct series_info *series = find_series(r, c.series);
    if (quantity < 0 || kind < 0 || provenance < 0 || column < 0 || !series ||
        (size_t)column >= series->n_columns)
        return 0; /* of a newer version, or damaged */
    c.column = (size_t)column;
    c.channel.quantity = (enum nrg_quantity)quantity;
    c.channel.kind = (enum nrg_kind)kind;
    c.channel.provenance = (enum nrg_provenance)provenance;
    c.channel.scale = sqlite3_column_double(s, 5);
    if (!(c.channel.scale > 0) || !isfinite(c.channel.scale)) {
        if (!r->unscaled[0] && (quantity == NRG_ENERGY || quantity == NRG_POWER))
            nrg_copy(r->unscaled, sizeof r->unscaled, c.channel.name);
        return 0;
    }
    c.channel.wrap = (uint64_t)sqlite3_column_int64(s, 6);
    c.channel.update_ns = column_span(s, 7);
    c.channel.lag_ns = column_span(s, 8);
    c.channel.resolution = sqlite3_column_double(s, 9);
    c.channel.limit_w = sqlite3_column_double(s, 10);
    nrg_database_text(s, 11, c.channel.parent, sizeof c.channel.parent);
    c.channel.wide = sqlite3_column_int(s, 12);
    c.channel.covers_cpu = sqlite3_column_int(s, 13);
    c.channel.error_low = sqlite3_column_double(s, 15);
    c.channel.error_high = sqlite3_column_double(s, 16);
    nrg_database_text(s, 17, c.channel.source, sizeof c.channel.source);
    nrg_database_text(s, 18, c.driver, sizeof c.driver);
    nrg_database_text(s, 19, c.sensor, sizeof c.sensor);
    c.period_ns = column_span(s, 20);
    c.channel.window_ns = column_span(s, 21);
    c.channel.group = (unsigned)sqlite3_column_int(s, 0);
    return nrg_append(&r->channels, &r->n_channels, &r->cap_channels, &c, sizeof *r->channels);
}

static int load_process(void *arg, sqlite3_stmt *s)
{
    struct nrg_recording *r = arg;
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
    if (!nrg_is_id(p.id, INT32_MAX)) /* it is an index in many tables */
        return 0;
    nrg_database_text(s, 11, p.name, sizeof p.name);
    nrg_database_text(s, 12, p.command, sizeof p.command);
    nrg_database_text(s, 13, p.container, sizeof p.container);
    nrg_database_text(s, 14, p.unit, sizeof p.unit);
    return nrg_append(&r->processes, &r->n_processes, &r->cap_processes, &p, sizeof *r->processes);
}

static int load_run(void *arg, sqlite3_stmt *s)
{
    struct nrg_recording *r = arg;
    struct nrg_run run = {
        .id = sqlite3_column_int64(s, 0),
        .begin_ns = column_time(s, 2),
        .end_ns = column_time(s, 3),
        .exit_code = sqlite3_column_type(s, 4) == SQLITE_NULL ? -1 : sqlite3_column_int(s, 4)};
    nrg_database_text(s, 1, run.kind, sizeof run.kind);
    return nrg_append(&r->runs, &r->n_runs, &r->cap_runs, &run, sizeof *r->runs);
}

static int load_event(void *arg, sqlite3_stmt *s)
{
    struct nrg_recording *r = arg;
    struct nrg_event event = {.t_ns = column_time(s, 0)};
    nrg_database_text(s, 1, event.kind, sizeof event.kind);
    nrg_database_text(s, 2, event.source, sizeof event.source);
    nrg_database_text(s, 3, event.detail, sizeof event.detail);
    return nrg_append(&r->events, &r->n_events, &r->cap_events, &event, sizeof *r->events);
}

static int load_clock(void *arg, sqlite3_stmt *s)
{
    struct nrg_recording *r = arg;
    struct nrg_clock_pair pair = {.mono_ns = column_time(s, 0),
                                  .real_ns = column_time(s, 1),
                                  .tsc = (uint64_t)sqlite3_column_int64(s, 2)};
    return nrg_append(&r->clocks, &r->n_clocks, &r->cap_clocks, &pair, sizeof *r->clocks);
}

static const struct {
    const char *name, *text; /* NULL: rows are read when they are needed */
    int (*load)(void *, sqlite3_stmt *);
    bool optional;
} tables[] = {
    {"meta", "SELECT key, value FROM meta ORDER BY key", load_meta, false},
    {"series", "SELECT id, kind, n_columns FROM series", load_series, false},
    {"sensor", NULL, NULL, false},
    {"chunk", NULL, NULL, false},
    {"channel",
     "SELECT c.series, c.col, c.name, c.quantity, c.kind, c.scale, c.wrap, c.update_ns, c.lag_ns,"
     " c.resolution, c.limit_w, c.parent, c.wide, c.covers_cpu, c.provenance, c.error_low,"
     " c.error_high, c.source, s.driver, s.name, s.period_ns,"
     /* Older recordings lack the column: the name then means the 0 of the outer table. */
     " (SELECT window_ns FROM channel w WHERE w.id = c.id)"
     " FROM (SELECT 0 AS window_ns), channel c LEFT JOIN sensor s ON s.id = c.sensor"
     " ORDER BY c.id",
     load_channel, false},
    {"run", "SELECT id, kind, begin_ns, end_ns, exit_code FROM run ORDER BY id", load_run, false},
    {"process",
     "SELECT id, pid, parent_pid, start_ticks, first_ns, last_ns, cpu_ns, cpu_before_ns,"
     " peak_rss_bytes, uid, ended, name, command, container, unit FROM process ORDER BY id",
     load_process, true},
    {"event", "SELECT t_ns, kind, source, detail FROM event ORDER BY id", load_event, true},
    {"clock", "SELECT mono_ns, real_ns, tsc FROM clock ORDER BY mono_ns", load_clock, true},
};

static int load_table(struct nrg_recording *r, size_t i, struct nrg_error *err)
{
    bool there = nrg_recording_has_table(r, tables[i].name);
    int rc = nrg_recording_check(r, err);
    if (!rc && !there && !tables[i].optional)
        rc = nrg_fail(err, -EBADMSG, r->path,
                      "has no table '%s', which every recording has: it is damaged, or its writer "
                      "left it out (docs/recording-format.md)",
                      tables[i].name);
    if (rc || !there || !tables[i].load)
        return rc;
    return nrg_database_each(r->db, r->path, tables[i].text, tables[i].load, r, err);
}

/* Of a file anything may be true; of a database that this process wrote, what it wrote. */
static int check_format(struct nrg_recording *r, bool is_file, struct nrg_error *err)
{
    int64_t id = nrg_database_number(r->db, "PRAGMA application_id");
    if (id < 0)
        return nrg_fail(err, -EBADMSG, r->path, "is not a recording, or is damaged: %s",
                        sqlite3_errmsg(r->db));
    if (id != NRG_FORMAT_APPLICATION_ID)
        return nrg_fail(err, -EBADMSG, r->path,
                        "is an SQLite database, but not a recording of nrg");
    int rc = is_file ? nrg_guard_check_schema(r->db, r->path, err) : 0;
    if (rc)
        return rc;
    int64_t version = nrg_database_number(r->db, "PRAGMA user_version");
    if (version > NRG_FORMAT_VERSION)
        return nrg_fail(err, -EPROTONOSUPPORT, r->path,
                        "was written by a newer nrg (format %lld, this one reads up to %d): "
                        "update nrg",
                        (long long)version, NRG_FORMAT_VERSION);
    return 0;
}

static int load_recording(struct sqlite3 *database, const char *name, bool is_file,
                          struct nrg_recording **out, struct nrg_error *err)
{
    struct nrg_recording *r = calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(name)) || !(r->codec = nrg_codec_new()) ||
        !(r->stills = calloc(1, sizeof *r->stills))) {
        nrg_recording_close(r);
        return nrg_fail(err, -ENOMEM, name, "out of memory");
    }
    r->db = database;
    int rc = check_format(r, is_file, err);
    for (size_t i = 0; !rc && i < sizeof tables / sizeof *tables; i++)
        rc = load_table(r, i, err);
    if (rc)
        nrg_recording_close(r);
    else
        *out = r;
    return rc;
}

int nrg_recording_from_database(struct sqlite3 *database, const char *name,
                                struct nrg_recording **out, struct nrg_error *err)
{
    return load_recording(database, name, false, out, err);
}

int nrg_recording_open(const char *path, struct nrg_recording **out, struct nrg_error *err)
{
    sqlite3 *db;
    int rc = nrg_database_open(path, &db, err);
    if (rc)
        return rc;
    rc = load_recording(db, path, true, out, err);
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
    nrg_codec_free(r->codec);
    nrg_stills_free(r->stills ? *r->stills : NULL);
    free(r->stills);
    free(r->path);
    free(r);
}

int nrg_recording_note_failure(struct nrg_recording *r, int rc)
{
    if (!r->failed && (rc == -ENOMEM || rc == -EIO))
        r->failed = rc;
    r->damage += rc == -EBADMSG;
    return rc;
}

size_t nrg_recording_damage(const struct nrg_recording *r)
{
    return r->damage;
}

static int64_t count_rows(struct nrg_recording *r, const char *table, const char *condition)
{
    char text[160];
    int64_t n = 0;
    snprintf(text, sizeof text, "SELECT count(*) FROM %s WHERE %s", table, condition);
    int rc = nrg_recording_note_failure(r, nrg_database_integer(r->db, text, &n));
    return rc || n < 0 ? 0 : n;
}

bool nrg_recording_has_table(struct nrg_recording *r, const char *table)
{
    char condition[96];
    snprintf(condition, sizeof condition, "name = '%s'", table);
    return count_rows(r, "sqlite_master", condition) > 0;
}

int64_t nrg_recording_count(struct nrg_recording *r, const char *table, const char *condition)
{
    return nrg_recording_has_table(r, table) ? count_rows(r, table, condition) : 0;
}

int nrg_recording_check(const struct nrg_recording *r, struct nrg_error *err)
{
    if (!r->failed)
        return 0;
    return nrg_fail(err, r->failed, r->path, "cannot be read: %s", strerror(-r->failed));
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
    int64_t n;
    if (nrg_parse_i64(text, strlen(text), &n) || n < 0 || n > MAX_COUNT)
        return -EBADMSG;
    *value = n;
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

const char *nrg_recording_unscaled(const struct nrg_recording *r)
{
    return r->unscaled[0] ? r->unscaled : NULL;
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

struct nrg_stills **nrg_recording_stills(const struct nrg_recording *r)
{
    return r->stills;
}

struct nrg_codec *nrg_recording_codec(const struct nrg_recording *r)
{
    return r->codec;
}

int nrg_recording_process_ids(const struct nrg_recording *r, size_t *n_ids)
{
    size_t max_id = 0;
    for (size_t i = 0; i < r->n_processes; i++)
        if ((size_t)r->processes[i].id > max_id)
            max_id = (size_t)r->processes[i].id;
    *n_ids = max_id + 1;
    return max_id > r->n_processes + IDS_TO_SPARE ? -EBADMSG : 0;
}

size_t nrg_recording_columns(const struct nrg_recording *r, int series, enum nrg_series_kind *kind)
{
    const struct series_info *info = find_series(r, series);
    if (info && kind)
        *kind = info->kind;
    return info ? info->n_columns : 0;
}

int nrg_recording_next_series(const struct nrg_recording *r, enum nrg_series_kind kind, size_t *at)
{
    while (*at < r->n_series) {
        const struct series_info *info = &r->series[(*at)++];
        if (info->kind == kind)
            return info->id;
    }
    return 0;
}

size_t nrg_recording_series_of(const struct nrg_recording *r, enum nrg_series_kind kind,
                               int *series, size_t max)
{
    size_t n = 0, at = 0;
    for (int id; (id = nrg_recording_next_series(r, kind, &at)); n++)
        if (n < max)
            series[n] = id;
    return n;
}

int64_t nrg_recording_realtime_ns(const struct nrg_recording *r, int64_t mono_ns)
{
    if (!r->n_clocks)
        return 0;
    /* The last pair up to that time, else the first. */
    size_t upto = nrg_count_up_to(&r->clocks->mono_ns, r->n_clocks, sizeof *r->clocks, mono_ns);
    const struct nrg_clock_pair *pair = &r->clocks[upto ? upto - 1 : 0];
    return pair->real_ns + (mono_ns - pair->mono_ns);
}
