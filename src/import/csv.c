/*
 * CSV logs as the replay driver reads them (sensors/virtual/replay_csv.c, docs/simulate.md) as recordings:
 *
 *     time_s,package-0:energy_j,gpu-0:power_w
 *
 * Unlike replay, which steps over bad lines because time goes on, an import stops at the first.
 * Times that can be dates are; others count from the log's own start, and the recording has no
 * wall clock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/internal.h"
#include "sensors/domain.h"
#include "sensors/virtual/replay_source.h"

#define FLUSH_ROWS    16384
#define FIRST_DATE_NS INT64_C(978307200000000000) /* 2001 */

struct csv_import {
    const struct nrg_import_options *options;
    struct nrg_import_result *result;
    struct nrg_replay_source *source;
    struct nrg_replay_row row;
    struct nrg_rows rows;
    struct nrg_store *store;
    int series;
    int64_t *spacings; /* the first so many, for the period */
    size_t n_spacings, cap_spacings;
};

bool nrg_import_csv_match(const char *line, size_t len)
{
    static const char *const names[] = {"time_s",    "time_ns",   "time",
                                        "timestamp", "date_time", "datetime"};
    if (len >= 3 && !memcmp(line, "\xef\xbb\xbf", 3)) {
        line += 3;
        len -= 3;
    }
    const char *comma = memchr(line, ',', len);
    size_t n = comma ? (size_t)(comma - line) : 0;
    while (n && (*line == ' ' || *line == '"')) {
        line++;
        n--;
    }
    while (n && (line[n - 1] == ' ' || line[n - 1] == '"'))
        n--;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (n == strlen(names[i]) && !memcmp(line, names[i], n))
            return true;
    return false;
}

static int bad_line(const struct csv_import *c, int rc, struct nrg_error *err)
{
    if (c->source->failed)
        return nrg_fail(err, rc, c->options->path, "cannot read: %s", strerror(-rc));
    return nrg_fail_at(err, rc, c->options->path, c->source->line,
                       "is not a row of the columns in the header, in order of time");
}

static int note_spacing(struct csv_import *c, int64_t dt_ns)
{
    int rc = c->n_spacings < 65536 ? nrg_reserve(&c->spacings, &c->cap_spacings, c->n_spacings + 1,
                                                 sizeof *c->spacings)
                                   : 1;
    if (!rc)
        c->spacings[c->n_spacings++] = dt_ns;
    return rc < 0 ? rc : 0;
}

static int flush(struct csv_import *c)
{
    int rc = nrg_store_rows(c->store, c->series, &c->rows);
    c->rows.n = 0;
    return rc ? rc : nrg_store_commit(c->store);
}

/* One pass: the first without a store, to learn that all of it is good. */
static int walk(struct csv_import *c, struct nrg_error *err)
{
    struct nrg_import_result *r = c->result;
    int rc = 0, more = 0;
    r->records = 0;
    while (!rc && (more = c->source->next(c->source, &c->row)) > 0) {
        if (!nrg_is_time(c->row.t_ns))
            return nrg_fail_at(err, -ERANGE, c->options->path, c->source->line,
                               "the time is out of range");
        if (r->records && !c->store)
            rc = note_spacing(c, c->row.t_ns - r->end_ns);
        r->begin_ns = r->records ? r->begin_ns : c->row.t_ns;
        r->end_ns = c->row.t_ns;
        r->records++;
        if (c->store && !rc)
            rc = nrg_rows_add(&c->rows, c->row.t_ns, 0, c->row.raw);
        if (c->store && !rc && c->rows.n >= FLUSH_ROWS)
            rc = flush(c);
    }
    if (rc)
        return nrg_fail(err, rc, c->options->path, "cannot be imported: %s", strerror(-rc));
    return more < 0 ? bad_line(c, more, err) : 0;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void describe(struct csv_import *c, int64_t period_ns)
{
    struct nrg_channel *channels = c->source->channels;
    for (size_t i = 0; i < c->source->n_channels; i++) {
        channels[i].update_ns = period_ns;
        nrg_copy(channels[i].source, sizeof channels[i].source, c->options->path);
        if (channels[i].quantity == NRG_ENERGY || channels[i].quantity == NRG_POWER)
            nrg_domain_describe(&channels[i]);
    }
    for (size_t i = 0; i < c->source->n_channels; i++) {
        bool found = false;
        for (size_t k = 0; k < c->source->n_channels; k++)
            found |= !strcmp(channels[k].name, channels[i].parent);
        if (!found)
            channels[i].parent[0] = '\0';
    }
}

static int open_sensor(struct csv_import *c)
{
    const struct nrg_driver driver = {.name = "csv"};
    bool wanted[NRG_REPLAY_CHANNELS];
    struct nrg_found found = {.driver = &driver,
                              .channels = c->source->channels,
                              .n_channels = c->source->n_channels,
                              .wanted = wanted};
    const char *slash = strrchr(c->options->path, '/');
    const char *name = slash ? slash + 1 : c->options->path;
    if (c->n_spacings)
        qsort(c->spacings, c->n_spacings, sizeof *c->spacings, by_value);
    int64_t period_ns = c->n_spacings ? c->spacings[c->n_spacings / 2] : NRG_NS_PER_S;
    period_ns = period_ns > 0 ? period_ns : 1;
    describe(c, period_ns);
    memset(wanted, true, sizeof wanted);
    nrg_copy_clean(found.sensor, sizeof found.sensor, name, strlen(name));
    return nrg_store_sensor(c->store, &found, period_ns, &c->series, 1);
}

static int write_tables(struct csv_import *c)
{
    const struct nrg_import_result *r = c->result;
    struct nrg_run run = {
        .id = 1, .kind = "run", .begin_ns = r->begin_ns, .end_ns = r->end_ns, .exit_code = -1};
    int rc = nrg_store_run(c->store, &run);
    const int64_t edges[] = {r->begin_ns, r->end_ns};
    for (size_t i = 0; !rc && r->begin_ns >= FIRST_DATE_NS && i < 2; i++) {
        struct nrg_clock_pair pair = {.mono_ns = edges[i], .real_ns = edges[i]};
        rc = nrg_store_clock(c->store, &pair);
    }
    nrg_import_metadata(c->store, c->options, "csv", r);
    return rc;
}

static int write_recording(struct csv_import *c, struct nrg_error *err)
{
    const struct nrg_import_options *o = c->options;
    int rc = c->source->rewind(c->source);
    if (rc)
        return nrg_fail(err, rc, o->path, "cannot be read twice: %s", strerror(-rc));
    rc = nrg_store_create(o->output, o->overwrite, &c->store, err);
    if (rc)
        return rc;
    nrg_rows_init(&c->rows, c->source->n_channels);
    rc = open_sensor(c);
    if (rc)
        nrg_fail(err, rc, o->output, "cannot write: %s", strerror(-rc));
    if (!rc)
        rc = walk(c, err);
    if (!rc && ((rc = flush(c)) || (rc = write_tables(c))))
        nrg_fail(err, rc, o->output, "cannot write: %s", strerror(-rc));
    nrg_rows_release(&c->rows);
    if (!rc)
        return nrg_store_close(c->store, err);
    nrg_store_discard(c->store);
    return rc;
}

int nrg_import_csv(const struct nrg_import_options *options, struct nrg_import_result *result,
                   struct nrg_error *err)
{
    struct csv_import *c = calloc(1, sizeof *c);
    if (!c)
        return nrg_fail(err, -ENOMEM, options->path, "out of memory");
    c->options = options;
    c->result = result;
    *result = (struct nrg_import_result){.format = "csv", .segments = 1};
    int rc = nrg_replay_csv_open(&c->source, options->path, err);
    if (!rc) {
        result->channels = c->source->n_channels;
        rc = walk(c, err);
    }
    if (!rc && !result->records)
        rc = nrg_fail(err, -ENODATA, options->path, "holds no row");
    if (!rc && options->output)
        rc = write_recording(c, err);
    if (c->source)
        c->source->close(c->source);
    free(c->spacings);
    free(c);
    return rc;
}
