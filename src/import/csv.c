/*
 * Imports CSV logs with the reader of the replay driver (sensors/virtual/replay_csv.c,
 * docs/simulate.md):
 *
 *     time_s,package-0:energy_j,gpu-0:power_w
 *
 * Replay skips bad lines because time goes on; an import stops at the first one. Times that are
 * plausible as dates are taken for dates. Otherwise they count from the start of the log, and the
 * recording has no wall clock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/stats.h"
#include "import/internal.h"
#include "sensors/domain.h"
#include "sensors/virtual/replay_csv.h"

#define SPACINGS      65536
#define FIRST_DATE_NS INT64_C(978307200000000000) /* 2001 */

struct csv_import {
    const struct nrg_import_options *options;
    struct nrg_import_result *result;
    struct nrg_replay_source *source;
    struct nrg_replay_row row;
    struct nrg_rows rows;
    struct nrg_store *store;
    int series;
    int64_t *spacings; /* of the first rows, for the period */
    size_t n_spacings, cap_spacings;
};

bool nrg_import_csv_match(const char *line, size_t len)
{
    static const char *const names[] = {"time_s",    "time_ns",   "time",
                                        "timestamp", "date_time", "datetime"};
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
        return nrg_fail(err, rc, c->options->path, "cannot read: %s", nrg_input_why(-rc));
    return nrg_fail_at(err, rc, c->options->path, c->source->line,
                       "is not a row of the columns in the header, in order of time");
}

static int note_spacing(struct csv_import *c, int64_t dt_ns)
{
    if (c->n_spacings == SPACINGS)
        return 0;
    return nrg_append(&c->spacings, &c->n_spacings, &c->cap_spacings, &dt_ns, sizeof dt_ns);
}

/* One pass over all rows; the first is without a store, to check them. */
static int read_rows(struct csv_import *c, struct nrg_error *err)
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
        if (c->store && !rc && c->rows.n >= NRG_IMPORT_FLUSH_ROWS)
            rc = nrg_import_flush_rows(c->store, c->series, &c->rows);
    }
    if (rc)
        return nrg_fail(err, rc, c->options->path, "cannot be imported: %s", strerror(-rc));
    return more < 0 ? bad_line(c, more, err) : 0;
}

static int open_sensor(struct csv_import *c)
{
    struct nrg_replay_source *source = c->source;
    int64_t period_ns = c->n_spacings ? nrg_median_i64(c->spacings, c->n_spacings) : NRG_NS_PER_S;
    period_ns = period_ns > 0 ? period_ns : 1;
    for (size_t i = 0; i < source->n_channels; i++) {
        struct nrg_channel *channel = &source->channels[i];
        channel->update_ns = period_ns;
        nrg_copy(channel->source, sizeof channel->source, c->options->path);
        if (channel->quantity == NRG_ENERGY || channel->quantity == NRG_POWER)
            nrg_domain_describe(channel);
    }
    return nrg_import_sensor(c->store, "csv", c->options->path, source->channels,
                             source->n_channels, period_ns, &c->series);
}

static int finish_recording(struct csv_import *c)
{
    const struct nrg_import_result *r = c->result;
    const struct nrg_import_origin origin = {.path = c->options->path,
                                             .format = "csv",
                                             .begin_ns = r->begin_ns,
                                             .end_ns = r->end_ns,
                                             .idle_w = c->options->idle_w,
                                             .one_run = true,
                                             .wall_clock = r->begin_ns >= FIRST_DATE_NS};
    int rc = nrg_import_flush_rows(c->store, c->series, &c->rows);
    return rc ? rc : nrg_import_describe(c->store, &origin);
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
        rc = read_rows(c, err);
    if (!rc && (rc = finish_recording(c)))
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
    struct csv_import c = {.options = options, .result = result};
    *result = (struct nrg_import_result){.format = "csv", .segments = 1};
    int rc = nrg_replay_csv_open(&c.source, options->path, err);
    if (rc)
        return rc;
    result->channels = c.source->n_channels;
    rc = read_rows(&c, err);
    if (!rc && !result->records)
        rc = nrg_fail(err, -ENODATA, options->path, "holds no row");
    if (!rc && options->output)
        rc = write_recording(&c, err);
    c.source->close(c.source);
    free(c.spacings);
    return rc;
}
