/*
 * See join.h. All layer files are read before anything is written. The output is a copy of the
 * power source, which is never changed in place; it is removed again when something fails.
 */
#include "import/join.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/mem.h"
#include "base/temp.h"
#include "import/internal.h"
#include "import/layers/read.h"
#include "import/log.h"
#include "record/store/database.h"
#include "record/store/writer.h"
#include "sensors/channel.h"

struct join {
    const struct nrg_import_join_options *options;
    struct nrg_import_join_result *result;
    struct nrg_layer_import *imports;
    char path[4200];   /* of the file that is written */
    char folder[4096]; /* of a temporary output, to be removed */
    bool replaces;     /* path takes the output's place at the end */
    bool made;         /* path exists and is ours */
    struct nrg_store *store;
};

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Where to write: the output, a file that will replace it, or a temporary one. */
static int choose_path(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    if (!o->output) {
        int rc = nrg_temp_folder(j->folder, sizeof j->folder, "nrg-join");
        if (rc)
            return nrg_fail(err, rc, nrg_temp_dir(), "cannot make a folder in it: %s",
                            strerror(-rc));
        snprintf(j->path, sizeof j->path, "%s/join.nrg", j->folder);
        return 0;
    }
    if (strlen(o->output) > 4000)
        return nrg_fail(err, -ENAMETOOLONG, "--output", "the path is too long");
    j->replaces = o->power && same_file(o->power, o->output);
    if (j->replaces && !o->overwrite)
        return nrg_fail(err, -EEXIST, o->output,
                        "is the recording itself: give another --output, or --force");
    snprintf(j->path, sizeof j->path, "%s%s", o->output, j->replaces ? ".joining" : "");
    return 0;
}

/* Creates an empty recording, which checks that the path can be written, then copies the pages. */
static int copy_recording(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    struct nrg_recording *from;
    sqlite3 *to = NULL;
    int rc = nrg_recording_open(o->power, &from, err);
    if (rc)
        return rc;
    rc = nrg_store_create(j->path, o->overwrite || j->replaces, &j->store, err);
    j->made = !rc;
    if (!rc)
        rc = nrg_store_close(j->store, err);
    j->store = NULL;
    if (!rc && (rc = nrg_database_open_writable(j->path, "", &to)) == SQLITE_OK)
        rc = nrg_database_copy(to, nrg_recording_database(from));
    if (rc > 0)
        rc = nrg_fail(err, -EIO, j->path, "cannot copy the recording: %s", sqlite3_errstr(rc));
    sqlite3_close(to);
    nrg_recording_close(from);
    return rc;
}

static int import_power(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    const struct nrg_import_options import = {.path = o->power,
                                              .output = j->path,
                                              .overwrite = o->overwrite || j->replaces,
                                              .zone_offset_ns = o->zone_offset_ns,
                                              .idle_w = o->idle_w};
    struct nrg_import_result result;
    if (nrg_import_is_layers(o->power))
        return nrg_fail(err, -EINVAL, o->power, "is a file of layer times, not of power");
    int rc = nrg_import(&import, &result, err);
    j->made = !rc;
    return rc;
}

static int place_all(struct join *j, struct nrg_error *err)
{
    struct nrg_recording *recording = NULL;
    int rc = j->options->power ? nrg_recording_open(j->path, &recording, err) : 0;
    for (size_t i = 0; !rc && i < j->options->n_layers; i++)
        rc = nrg_import_place(&j->imports[i], recording, err);
    nrg_recording_close(recording);
    return rc;
}

/* Continues after the numbers of earlier imports into the same recording. */
static int first_number(struct join *j, int64_t *number, struct nrg_error *err)
{
    int rc = nrg_database_integer(nrg_store_database(j->store),
                                  "SELECT count(*) + 1 FROM meta WHERE key GLOB 'import.*.file'",
                                  number);
    return rc ? nrg_fail(err, rc, j->path, "cannot be read: %s", strerror(-rc)) : 0;
}

static void write_meta(struct join *j, const struct nrg_import_layers *f, int64_t number)
{
    char key[64], text[512];
    struct nrg_str notes = {0};
    nrg_copy_clean(text, sizeof text, f->path, strlen(f->path));
#define KEY(name) (snprintf(key, sizeof key, "import.%lld." name, (long long)number), key)
    nrg_store_text(j->store, KEY("file"), text);
    nrg_store_text(j->store, KEY("format"), f->format);
    nrg_store_text(j->store, KEY("clock"), f->wall_clock ? "wall" : "file");
    nrg_store_text(j->store, KEY("placed"), f->placed);
    nrg_store_integer(j->store, KEY("offset_ns"), f->offset_ns);
    if (f->offset_uncertainty_ns != NRG_MISSING)
        nrg_store_integer(j->store, KEY("offset_uncertainty_ns"), f->offset_uncertainty_ns);
    for (size_t i = 0; i < f->n_notes; i++)
        nrg_str_addf(&notes, "%s%s", i ? "\n" : "", f->notes[i]);
    if (notes.len)
        nrg_store_text(j->store, KEY("note"), notes.text);
#undef KEY
    nrg_str_release(&notes);
}

static void note_written(struct nrg_layer_import *im, const struct nrg_span_sink_result *r)
{
    nrg_layer_count(im, r->empty, "span", "spans", "of no length");
    nrg_layer_count(im, r->unclosed, "span was", "spans were", "never closed");
    nrg_layer_count(im, r->cut, "span", "spans", "cut where a later one began on the same track");
    if (r->outside < r->spans || !r->spans || !r->samples_last_ns)
        nrg_layer_count(im, r->outside, "span lies", "spans lie",
                        "outside of the power's readings");
    else
        nrg_layer_note(im,
                       "all spans lie outside of the power's readings: they %s: "
                       "--timezone-offset, --offset or --align?",
                       r->first_ns > r->samples_last_ns ? "begin after the last one"
                                                        : "end before the first one");
}

static int write_file(struct join *j, struct nrg_layer_import *im, int64_t number,
                      struct nrg_error *err)
{
    struct nrg_span_sink_result written;
    int rc = nrg_span_sink_write(im->sink, j->store, &written);
    if (rc == -ERANGE)
        return nrg_fail(err, rc, im->file->path,
                        "lies before the recording's clock began: is the offset right?");
    note_written(im, &written);
    if (!rc && im->lost_note)
        rc = -ENOMEM;
    if (rc)
        return nrg_fail(err, rc, j->path, "cannot write the spans: %s", strerror(-rc));
    im->file->spans = written.spans;
    im->file->first_ns = written.first_ns;
    im->file->last_ns = written.last_ns;
    j->result->begin_ns = written.samples_first_ns;
    j->result->end_ns = written.samples_last_ns;
    write_meta(j, im->file, number);
    return 0;
}

/* Without power: a run as long as the spans, and a wall clock when all files have dates. */
static int describe_alone(struct join *j)
{
    struct nrg_import_origin o = {.path = j->result->files[0].path,
                                  .format = j->result->files[0].format,
                                  .begin_ns = INT64_MAX,
                                  .end_ns = INT64_MIN,
                                  .idle_w = NAN,
                                  .one_run = true,
                                  .wall_clock = true};
    for (size_t i = 0; i < j->result->n_files; i++) {
        const struct nrg_import_layers *f = &j->result->files[i];
        o.begin_ns = f->first_ns < o.begin_ns ? f->first_ns : o.begin_ns;
        o.end_ns = f->last_ns > o.end_ns ? f->last_ns : o.end_ns;
        o.wall_clock &= f->wall_clock;
    }
    return nrg_import_describe(j->store, &o);
}

/* A log of a single reading has no length: the run then lasts as long as the spans. */
static int widen_run(struct join *j)
{
    const struct nrg_import_join_result *r = j->result;
    struct nrg_run run = {
        .id = 1, .kind = "run", .begin_ns = r->begin_ns, .end_ns = r->end_ns, .exit_code = -1};
    if (run.begin_ns < run.end_ns || nrg_is_database(j->options->power))
        return 0;
    for (size_t i = 0; i < r->n_files; i++) {
        const struct nrg_import_layers *f = &r->files[i];
        run.begin_ns = f->spans && f->first_ns < run.begin_ns ? f->first_ns : run.begin_ns;
        run.end_ns = f->spans && f->last_ns > run.end_ns ? f->last_ns : run.end_ns;
    }
    return nrg_store_run(j->store, &run);
}

static int write_spans(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    int rc = o->power ? nrg_store_extend(j->path, &j->store, err)
                      : nrg_store_create(j->path, o->overwrite, &j->store, err);
    if (rc)
        return rc;
    j->made = true;
    int64_t number = 0;
    rc = first_number(j, &number, err);
    for (size_t i = 0; !rc && i < o->n_layers; i++)
        rc = write_file(j, &j->imports[i], number + (int64_t)i, err);
    if (!rc && (rc = o->power ? widen_run(j) : describe_alone(j)))
        nrg_fail(err, rc, j->path, "cannot write: %s", strerror(-rc));
    if (!rc && !isnan(o->idle_w))
        nrg_store_real(j->store, "idle_w", o->idle_w);
    int closed = nrg_store_close(j->store, rc ? NULL : err);
    j->store = NULL;
    j->made &= closed != -EEXIST; /* somebody was faster, and the file is theirs */
    return rc ? rc : closed;
}

static int read_layers(struct join *j, struct nrg_error *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < j->options->n_layers; i++) {
        struct nrg_layer_import *im = &j->imports[i];
        im->options = j->options;
        im->file = &j->result->files[i];
        im->file->path = j->options->layers[i];
        im->file->correlation = NAN;
        im->file->offset_uncertainty_ns = NRG_MISSING;
        rc = nrg_layer_import_file(im, im->file->path, err);
    }
    return rc;
}

static int move_into_place(struct join *j, struct nrg_error *err)
{
    if (!j->options->output)
        return nrg_recording_open(j->path, &j->result->recording, err);
    if (j->replaces && rename(j->path, j->options->output))
        return nrg_fail(err, -errno, j->options->output, "cannot be replaced: %s", strerror(errno));
    return 0;
}

static int join_files(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    int rc = read_layers(j, err);
    if (!rc)
        rc = choose_path(j, err);
    if (!rc && o->power)
        rc = nrg_is_database(o->power) ? copy_recording(j, err) : import_power(j, err);
    if (!rc)
        rc = place_all(j, err);
    if (!rc)
        rc = write_spans(j, err);
    if (!rc)
        rc = move_into_place(j, err);
    if (j->made && (rc || !o->output))
        unlink(j->path); /* a recording that is open stays readable */
    if (j->folder[0])
        rmdir(j->folder);
    return rc;
}

int nrg_import_join(const struct nrg_import_join_options *options,
                    struct nrg_import_join_result *result, struct nrg_error *err)
{
    size_t n = options->n_layers;
    struct join j = {.options = options, .result = result};
    *result = (struct nrg_import_join_result){0};
    if (!n)
        return nrg_fail(err, -EINVAL, NULL, "no file of layer times");
    result->files = nrg_calloc(n, sizeof *result->files);
    j.imports = nrg_calloc(n, sizeof *j.imports);
    if (!result->files || !j.imports) {
        free(j.imports);
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    }
    result->n_files = n;
    int rc = join_files(&j, err);
    for (size_t i = 0; i < n; i++)
        nrg_layer_import_release(&j.imports[i]);
    free(j.imports);
    return rc;
}

void nrg_import_join_release(struct nrg_import_join_result *result)
{
    for (size_t i = 0; i < result->n_files; i++)
        free(result->files[i].notes);
    free(result->files);
    nrg_recording_close(result->recording);
    *result = (struct nrg_import_join_result){0};
}
