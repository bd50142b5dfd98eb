/*
 * See log.h: recognises the format, reads the file twice, and reports where it is wrong. Adding a
 * format is one file (internal.h) and one line in the table below.
 */
#include "import/log.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/json/set.h"
#include "base/mem.h"
#include "import/foreign.h"
#include "import/internal.h"

/* clang-format off */
static const struct nrg_import_format *const formats[] = {
    &nrg_import_aipowermeter,
    &nrg_import_jetson_log,
    &nrg_import_tegrastats,
    &nrg_import_perf_stat,
    &nrg_import_codecarbon,
    &nrg_import_zeus_energy,
    &nrg_import_zeus_power,
    &nrg_import_nvidia_smi,
};
/* clang-format on */

static bool is_blank(const struct nrg_str *line)
{
    for (size_t i = 0; i < line->len; i++)
        if (!isspace((unsigned char)line->text[i]))
            return false;
    return true;
}

static int line_error(struct nrg_import *im, int code, struct nrg_error *err)
{
    const char *why = code == -EMSGSIZE ? "the line is too long to be a record" : strerror(-code);
    return nrg_fail_at(err, code, im->options->path, im->lines.number, "%s", why);
}

/* The next line that is not blank. 1, 0 at the end, -errno. */
static int next_line(struct nrg_import *im, struct nrg_error *err)
{
    int rc;
    while ((rc = nrg_lines_next(&im->lines)) > 0 && is_blank(&im->lines.text))
        ;
    return rc < 0 ? line_error(im, rc, err) : rc;
}

static const struct nrg_import_format *matching_format(const char *line, size_t len)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->match(line, len))
            return formats[i];
    return NULL;
}

static int unknown_format(const struct nrg_import *im, struct nrg_error *err)
{
    const char *what =
        nrg_import_foreign_file(im->options->path, im->lines.text.text, im->lines.text.len);
    if (what)
        return nrg_fail(err, -EINVAL, im->options->path, "%s", what);
    if (nrg_import_foreign_json(im->lines.in, im->options->path, err))
        return -EINVAL;
    return nrg_fail_at(err, -EINVAL, im->options->path, im->lines.number,
                       "is neither a log nor layer times that nrg knows: AIPowerMeter's "
                       "power_metrics.json, tegrastats, "
                       "nvidia-smi --format=csv, perf stat -I -x, , CodeCarbon's emissions.csv, "
                       "Zeus's CSV, a Jetson power log (20250128-13:38:25.941535,mV,mA), "
                       "or CSV of nrg's own (time_s,package-0:energy_j)");
}

static int find_format(struct nrg_import *im, struct nrg_error *err)
{
    int rc = next_line(im, err);
    if (rc < 0)
        return rc;
    if (!rc)
        return nrg_fail(err, -ENODATA, im->options->path, "is empty");
    im->format = matching_format(im->lines.text.text, im->lines.text.len);
    if (!im->format)
        return unknown_format(im, err);
    im->result.format = im->format->name;
    if (im->held && !im->format->means)
        return nrg_fail(err, -EINVAL, im->options->path,
                        "--integrate held is for logs of means over an interval; %s has none",
                        im->format->name);
    im->state = im->format->state_size ? nrg_calloc(1, im->format->state_size) : NULL;
    if (im->format->state_size && !im->state)
        return nrg_fail(err, -ENOMEM, im->options->path, "out of memory");
    return 0;
}

/* Adds the place to the error of a format. */
static int bad_record(struct nrg_import *im, int rc, struct nrg_error *err)
{
    if (im->lines.unfinished && rc == -EINVAL) {
        im->result.unfinished_line = im->lines.number;
        return 0;
    }
    if (err) {
        err->offset = im->lines.number;
        snprintf(err->where, sizeof err->where, "%s", im->options->path);
    }
    return rc;
}

/* A format that needs to see what follows writes its last record here. */
static int finish_pass(struct nrg_import *im, struct nrg_error *err)
{
    int rc = im->format->finish ? im->format->finish(im, err) : 0;
    if (rc && err)
        snprintf(err->where, sizeof err->where, "%s", im->options->path);
    if (!rc && (rc = nrg_import_end_segment(im)))
        nrg_fail(err, rc, im->options->path, "cannot be imported: %s", nrg_input_why(-rc));
    return rc;
}

static int read_records(struct nrg_import *im, struct nrg_error *err)
{
    int rc = nrg_lines_rewind(&im->lines), more = 0;
    if (rc)
        return nrg_fail(err, rc, im->options->path, "cannot be read twice: %s", strerror(-rc));
    im->result.records = im->result.segments = 0;
    im->have_time = im->in_segment = false;
    while (!rc && (more = next_line(im, err)) > 0) {
        rc = im->format->record(im, im->lines.text.text, im->lines.text.len, err);
        if (rc)
            rc = bad_record(im, rc, err);
    }
    if (!rc && more < 0)
        rc = more;
    return rc ? rc : finish_pass(im, err);
}

/* AIPowerMeter describes the experiment in a file beside the records. */
static void add_description(const struct nrg_import *im)
{
    char path[4200];
    const char *slash = strrchr(im->options->path, '/');
    int folder = slash ? (int)(slash - im->options->path) + 1 : 0;
    if (folder > 4000 || im->format != &nrg_import_aipowermeter)
        return;
    snprintf(path, sizeof path, "%.*smetadata.json", folder, im->options->path);
    json_error_t why;
    json_t *doc = nrg_json_load_file(path, 0, &why);
    const char *text = json_string_value(json_object_get(doc, "description"));
    if (text && text[0])
        nrg_store_text(im->store, "note.description", text);
    json_decref(doc);
}

static int write_all(struct nrg_import *im, struct nrg_error *err)
{
    int rc = nrg_import_prepare(im, err);
    if (rc)
        return rc;
    im->writing = true;
    rc = read_records(im, err);
    if (!rc && (rc = nrg_import_finish(im)))
        nrg_fail(err, rc, im->options->output, "cannot write the recording: %s", strerror(-rc));
    if (!rc && im->store)
        add_description(im);
    return rc;
}

/* The recording is only created once all of the input is known to be good. */
static int make_recording(struct nrg_import *im, struct nrg_error *err)
{
    const struct nrg_import_options *o = im->options;
    int rc = o->output ? nrg_store_create(o->output, o->overwrite, &im->store, err) : 0;
    if (rc)
        return rc;
    rc = write_all(im, err);
    if (!rc && im->store)
        return nrg_store_close(im->store, err);
    nrg_store_discard(im->store);
    return rc;
}

int nrg_import_stream(FILE *in, const struct nrg_import_options *options,
                      struct nrg_import_result *result, struct nrg_error *err)
{
    struct nrg_import im = {.options = options, .lines = {.in = in}, .held = options->held};
    int rc = find_format(&im, err);
    if (!rc)
        rc = read_records(&im, err);
    if (!rc && !im.result.records)
        rc = nrg_fail(err, -ENODATA, options->path, "holds no record");
    if (!rc)
        rc = make_recording(&im, err);
    *result = im.result;
    nrg_import_release(&im);
    return rc;
}

/* Whether the first line that is neither blank nor a comment is the header of a CSV log. */
static bool is_csv(FILE *in)
{
    struct nrg_lines lines = {.in = in};
    int rc;
    while ((rc = nrg_lines_next(&lines)) > 0 &&
           (is_blank(&lines.text) || lines.text.text[0] == '#'))
        ;
    bool found = rc > 0 && !matching_format(lines.text.text, lines.text.len) &&
                 !nrg_import_foreign(lines.text.text, lines.text.len) &&
                 nrg_import_csv_match(lines.text.text, lines.text.len);
    nrg_lines_rewind(&lines);
    nrg_str_release(&lines.text);
    return found;
}

int nrg_import(const struct nrg_import_options *options, struct nrg_import_result *result,
               struct nrg_error *err)
{
    struct nrg_import_options o = *options;
    char path[4200];
    struct stat st;
    *result = (struct nrg_import_result){0};
    if (!stat(o.path, &st) && S_ISDIR(st.st_mode)) {
        snprintf(path, sizeof path, "%.4000s/power_metrics.json", o.path);
        o.path = path;
    }
    struct nrg_input input;
    int rc = nrg_input_open(&input, o.path, err);
    if (rc)
        return rc;
    bool csv = is_csv(input.in);
    if (csv && input.gunzip)
        rc = nrg_fail(err, -ENOTSUP, o.path, "a compressed CSV log: unpack it first");
    else if (!csv)
        rc = nrg_import_stream(input.in, &o, result, err);
    nrg_input_close(&input);
    return csv && !rc ? nrg_import_csv(&o, result, err) : rc;
}

int nrg_import_idle_power(const char *path, double *idle_w, struct nrg_error *err)
{
    json_error_t why;
    json_t *doc = nrg_json_load_file(path, 0, &why);
    if (!doc)
        return nrg_fail_at(err, -EINVAL, path, why.line > 0 ? why.line : -1, "%s", why.text);
    const json_t *value = json_object_get(doc, "avg_idle_power");
    double power_uw = json_number_value(value);
    int rc = json_is_number(value) && power_uw >= 0 && power_uw < 1e12 ? 0 : -EINVAL;
    json_decref(doc);
    if (rc)
        return nrg_fail(err, rc, path, "has no \"avg_idle_power\" in microwatts");
    *idle_w = power_uw * 1e-6;
    return 0;
}
