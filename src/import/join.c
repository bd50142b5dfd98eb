/*
 * See import_join.h. All layer files are read before anything is written; the output is made beside
 * the power source, never in it, and is gone again when something fails.
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

#include "base/mem.h"
#include "record/database.h"
#include "import/log.h"
#include "record/import_place.h"
#include "record/store/internal.h"
#include "record/store/writer.h"
#include "sensors/channel.h"

struct join {
    const struct nrg_import_join_options *options;
    struct nrg_import_join_result *result;
    struct nrg_layer_import *imports;
    char path[4200];   /* what is written */
    char folder[4096]; /* of a temporary output, to be removed */
    bool replaces;     /* path takes the output's place at the end */
    bool made;         /* path exists and is ours */
    struct nrg_store *store;
};

static bool is_database(const char *path)
{
    static const char magic[] = "SQLite format 3"; /* with its NUL */
    char head[sizeof magic];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return n == sizeof head && !memcmp(head, magic, sizeof magic);
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Where to write: the output, a file that will replace it, or one that nobody sees. */
static int choose_path(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    const char *tmp = getenv("TMPDIR");
    if (!o->output) {
        snprintf(j->folder, sizeof j->folder, "%.4000s/nrg-join-XXXXXX",
                 tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(j->folder)) {
            int code = -errno;
            char where[256];
            nrg_copy(where, sizeof where, j->folder);
            j->folder[0] = '\0';
            return nrg_fail(err, code, where, "cannot create: %s", strerror(-code));
        }
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

/* An empty recording claims the path and says why it can't; then the other's pages fill it. */
static int copy_recording(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    struct nrg_recording *check;
    sqlite3 *from = NULL, *to = NULL;
    int rc = nrg_recording_open(o->power, &check, err);
    if (rc)
        return rc;
    nrg_recording_close(check);
    rc = nrg_store_create(j->path, o->overwrite || j->replaces, &j->store, err);
    if (rc)
        return rc;
    j->made = true;
    rc = nrg_store_close(j->store, err);
    j->store = NULL;
    if (rc)
        return rc;
    int code = nrg_database_open(o->power, &from);
    if (code == SQLITE_OK)
        code = sqlite3_open_v2(j->path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK)
        code = nrg_sql_copy_database(to, from);
    sqlite3_close(to);
    sqlite3_close(from);
    return code == SQLITE_OK ? 0
                             : nrg_fail(err, -EIO, j->path, "cannot copy the recording: %s",
                                        sqlite3_errstr(code));
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

/* Numbers of earlier imports into the same recording are taken. */
static int64_t first_number(struct join *j)
{
    return 1 + nrg_database_number(nrg_store_database(j->store),
                                   "SELECT count(*) FROM meta WHERE key GLOB 'import.*.file'");
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

static int tell_written(struct nrg_layer_import *im, const struct nrg_span_sink_result *r)
{
    int rc = nrg_layer_count(im, r->empty, "span", "spans", "of no length");
    if (!rc)
        rc = nrg_layer_count(im, r->unclosed, "span was", "spans were", "never closed");
    if (!rc)
        rc = nrg_layer_count(im, r->cut, "span", "spans",
                             "cut where a later one began on the same track");
    bool all = r->outside == r->spans && r->spans && r->samples_last_ns, after;
    after = r->first_ns > r->samples_last_ns;
    if (!rc && all)
        rc = nrg_layer_note(im,
                            "all spans lie outside of the power's readings: they %s: "
                            "--timezone-offset, --offset or --align?",
                            after ? "begin after the last one" : "end before the first one");
    else if (!rc)
        rc = nrg_layer_count(im, r->outside, "span lies", "spans lie",
                             "outside of the power's readings");
    return rc;
}

static int write_file(struct join *j, struct nrg_layer_import *im, int64_t number,
                      struct nrg_error *err)
{
    struct nrg_span_sink_result written;
    int rc = nrg_span_sink_write(im->sink, j->store, 0, &written);
    if (rc == -ERANGE)
        return nrg_fail(err, rc, im->file->path,
                        "lies before the recording's clock began: is the offset right?");
    if (!rc)
        rc = tell_written(im, &written);
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

/* Spans alone: a run as long as they are, and a wall clock when they have dates. */
static int describe_alone(struct join *j)
{
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    bool dates = true;
    char text[512] = "imported from ";
    for (size_t i = 0; i < j->result->n_files; i++) {
        const struct nrg_import_layers *f = &j->result->files[i];
        first_ns = f->first_ns < first_ns ? f->first_ns : first_ns;
        last_ns = f->last_ns > last_ns ? f->last_ns : last_ns;
        dates &= f->wall_clock;
    }
    size_t len = strlen(text);
    nrg_copy_clean(text + len, sizeof text - len, j->result->files[0].path,
                   strlen(j->result->files[0].path));
    nrg_store_text(j->store, "command_line", text);
    nrg_store_text(j->store, "imported_from", text + len);
    nrg_store_text(j->store, "import_format", j->result->files[0].format);
    nrg_store_text(j->store, "nrg_version", NRG_VERSION);
    nrg_store_integer(j->store, "begin_ns", first_ns);
    nrg_store_integer(j->store, "end_ns", last_ns);
    const struct nrg_run run = {
        .id = 1, .kind = "run", .begin_ns = first_ns, .end_ns = last_ns, .exit_code = -1};
    int rc = nrg_store_run(j->store, &run);
    const int64_t edges[] = {first_ns, last_ns};
    for (size_t i = 0; !rc && dates && i < 2; i++) {
        struct nrg_clock_pair pair = {.mono_ns = edges[i], .real_ns = edges[i]};
        rc = nrg_store_clock(j->store, &pair);
    }
    return rc;
}

/* A log of a single reading has no length: the run is then as long as the spans beside it. */
static int widen_run(struct join *j)
{
    struct nrg_run run = {.id = 1,
                          .kind = "run",
                          .begin_ns = j->result->begin_ns,
                          .end_ns = j->result->end_ns,
                          .exit_code = -1};
    if (run.begin_ns < run.end_ns || is_database(j->options->power))
        return 0;
    for (size_t i = 0; i < j->result->n_files; i++) {
        const struct nrg_import_layers *f = &j->result->files[i];
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
    int64_t number = first_number(j);
    for (size_t i = 0; !rc && i < o->n_layers; i++)
        rc = write_file(j, &j->imports[i], number + (int64_t)i, err);
    if (!rc && (rc = o->power ? widen_run(j) : describe_alone(j)))
        nrg_fail(err, rc, j->path, "cannot write: %s", strerror(-rc));
    if (!rc && !isnan(o->idle_w))
        nrg_store_real(j->store, "idle_w", o->idle_w);
    int closed = nrg_store_close(j->store, rc ? NULL : err);
    j->store = NULL;
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

static int finish(struct join *j, struct nrg_error *err)
{
    if (!j->options->output)
        return nrg_recording_open(j->path, &j->result->recording, err);
    if (j->replaces && rename(j->path, j->options->output))
        return nrg_fail(err, -errno, j->options->output, "cannot be replaced: %s", strerror(errno));
    return 0;
}

static int run(struct join *j, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = j->options;
    int rc = read_layers(j, err);
    if (!rc)
        rc = choose_path(j, err);
    if (!rc && o->power)
        rc = is_database(o->power) ? copy_recording(j, err) : import_power(j, err);
    if (!rc)
        rc = place_all(j, err);
    if (!rc)
        rc = write_spans(j, err);
    if (!rc)
        rc = finish(j, err);
    if (j->made && (rc || !o->output))
        unlink(j->path); /* an open recording stays readable */
    if (j->folder[0])
        rmdir(j->folder);
    return rc;
}

int nrg_import_join(const struct nrg_import_join_options *options,
                    struct nrg_import_join_result *result, struct nrg_error *err)
{
    struct join *j = calloc(1, sizeof *j);
    *result = (struct nrg_import_join_result){0};
    if (!options->n_layers) {
        free(j);
        return nrg_fail(err, -EINVAL, NULL, "no file of layer times");
    }
    result->files = calloc(options->n_layers, sizeof *result->files);
    if (j)
        j->imports = calloc(options->n_layers, sizeof *j->imports);
    int rc = j && result->files && j->imports ? 0 : nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (!rc) {
        j->options = options;
        j->result = result;
        result->n_files = options->n_layers;
        rc = run(j, err);
        for (size_t i = 0; i < options->n_layers; i++)
            nrg_layer_import_release(&j->imports[i]);
    }
    if (j)
        free(j->imports);
    free(j);
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
