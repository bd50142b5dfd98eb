/* See read.h: recognises a file of layer times and hands it to its reader. */
#include "import/layers/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/foreign.h"
#include "import/internal.h"
#include "sensors/channel.h"

#define DATABASE_MAGIC "SQLite format 3"

/* The order matters: profiles of ONNX Runtime are a kind of chrome trace. */
/* clang-format off */
static const struct nrg_layer_format *const formats[] = {
    &nrg_layers_trtexec_profile,
    &nrg_layers_trtexec_times,
    &nrg_layers_ort,
    &nrg_layers_chrome,
    &nrg_layers_torch_phase,
    &nrg_layers_trt,
    &nrg_layers_nsys,
    &nrg_layers_gpu_csv,
};
/* clang-format on */

bool nrg_layer_head_is(const struct nrg_layer_head *head, size_t i, enum nrg_json_token token)
{
    return i < head->n && head->tokens[i].token == token;
}

bool nrg_layer_head_has(const struct nrg_layer_head *head, const char *key)
{
    for (size_t i = 0; i < head->n; i++)
        if (head->tokens[i].token == NRG_JSON_KEY && !strcmp(head->tokens[i].text, key))
            return true;
    return false;
}

/* The first tokens. Errors are left to the reader, which meets them again. */
static int read_tokens(FILE *in, struct nrg_layer_head *head)
{
    struct nrg_json_stream s;
    struct nrg_error ignored;
    int rc = nrg_json_init(&s, in, "", NRG_JSON_MAY_BE_CUT | NRG_JSON_RAW_TEXTS);
    while (!rc && head->n < NRG_LAYER_HEAD) {
        int token = nrg_json_next(&s, &ignored);
        if (token <= 0)
            break;
        head->tokens[head->n].token = (enum nrg_json_token)token;
        bool texts = token >= NRG_JSON_KEY && token <= NRG_JSON_NUMBER;
        nrg_copy(head->tokens[head->n].text, sizeof head->tokens->text, texts ? s.text : "");
        head->n++;
    }
    nrg_json_release(&s);
    return rc;
}

/* What stands before the first header in what nsys stats prints. */
static bool is_chatter(const char *line)
{
    static const char *const starts[] = {"Processing [", "Generating ", "NOTICE", "** "};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(line, starts[i], strlen(starts[i])))
            return true;
    return !line[strspn(line, " \t\r")];
}

int nrg_layer_header(struct nrg_lines *lines)
{
    int rc;
    while ((rc = nrg_lines_next(lines)) > 0 && is_chatter(lines->text.text))
        ;
    return rc;
}

/* The document is rewound. */
static int read_head(FILE *in, struct nrg_layer_head *head)
{
    struct nrg_lines lines = {.in = in};
    *head = (struct nrg_layer_head){.form = NRG_LAYER_TABLE};
    int rc = nrg_layer_header(&lines);
    if (rc > 0)
        nrg_copy(head->line, sizeof head->line, lines.text.text);
    nrg_str_release(&lines.text);
    if (rc == -ENOMEM)
        return rc;
    if (!strncmp(head->line, DATABASE_MAGIC, sizeof DATABASE_MAGIC - 1))
        head->form = NRG_LAYER_DATABASE;
    rc = nrg_lines_rewind(&lines);
    if (!rc && head->form == NRG_LAYER_TABLE)
        rc = read_tokens(in, head);
    if (nrg_layer_head_is(head, 0, NRG_JSON_OBJECT) || nrg_layer_head_is(head, 0, NRG_JSON_ARRAY))
        head->form = NRG_LAYER_JSON;
    int rewound = nrg_lines_rewind(&lines);
    return rc ? rc : rewound;
}

static const struct nrg_layer_format *find_format(const struct nrg_layer_head *head)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->form == head->form && (!formats[i]->match || formats[i]->match(head)))
            return formats[i];
    return NULL;
}

static int unknown_format(FILE *in, const struct nrg_layer_head *head, const char *path,
                          struct nrg_error *err)
{
    const char *what = nrg_import_foreign_file(path, head->line, strlen(head->line));
    if (what)
        return nrg_fail(err, -EINVAL, path, "%s", what);
    if (nrg_import_foreign_json(in, path, err))
        return -EINVAL;
    if (head->n == 2 && (head->tokens[1].token == NRG_JSON_ARRAY_END ||
                         head->tokens[1].token == NRG_JSON_OBJECT_END))
        return nrg_fail(err, -ENODATA, path, "holds no layer and no event");
    if (!head->n && !head->line[0])
        return nrg_fail(err, -ENODATA, path, "is empty, or no text");
    return nrg_fail(err, -EINVAL, path,
                    "is not a file of layer times that nrg knows (see nrg import --help)%s",
                    head->n ? "" : "; a log of power is given alone, or with --power-log");
}

/* What a reader did is finished by what is the same for all. */
static int finish_read(struct nrg_layer_import *im, struct nrg_error *err)
{
    if (im->json.truncated)
        nrg_layer_note(im, "the file is cut off behind byte %llu; what is before is used",
                       (unsigned long long)nrg_json_position(&im->json));
    if (im->lost_note)
        return nrg_layer_out_of_memory(im, err);
    if (!im->sink->n)
        return nrg_fail(err, -ENODATA, im->file->path,
                        "holds no layer and no event with a duration");
    return 0;
}

int nrg_layer_import_stream(struct nrg_layer_import *im, FILE *in, const char *path,
                            struct nrg_error *err)
{
    struct nrg_layer_head head;
    int rc = read_head(in, &head);
    if (rc)
        return nrg_fail(err, rc, path, "cannot be read: %s", nrg_input_why(-rc));
    const struct nrg_layer_format *format = find_format(&head);
    if (!format)
        return unknown_format(in, &head, path, err);
    im->in = in;
    im->file->format = format->name;
    im->sink = nrg_span_sink_new();
    if (!im->sink ||
        (format->form == NRG_LAYER_JSON && nrg_json_init(&im->json, in, path, format->json_flags)))
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    rc = format->read(im, err);
    return rc ? rc : finish_read(im, err);
}

int nrg_layer_restart(struct nrg_layer_import *im, struct nrg_error *err)
{
    FILE *in = im->json.in;
    unsigned flags = im->json.flags;
    nrg_json_release(&im->json);
    nrg_span_sink_free(im->sink);
    im->sink = nrg_span_sink_new();
    clearerr(in);
    if (fseek(in, 0, SEEK_SET))
        return nrg_fail(err, -errno, im->file->path, "cannot be read twice: %s", strerror(errno));
    if (!im->sink || nrg_json_init(&im->json, in, im->file->path, flags))
        return nrg_layer_out_of_memory(im, err);
    return 0;
}

int nrg_layer_import_file(struct nrg_layer_import *im, const char *path, struct nrg_error *err)
{
    int rc = nrg_input_open(&im->input, path, err);
    return rc ? rc : nrg_layer_import_stream(im, im->input.in, path, err);
}

void nrg_layer_import_release(struct nrg_layer_import *im)
{
    nrg_json_release(&im->json);
    nrg_input_close(&im->input);
    nrg_span_sink_free(im->sink);
    im->sink = NULL;
}

bool nrg_import_is_layers(const char *path)
{
    struct nrg_input input;
    struct nrg_layer_head head = {0};
    if (nrg_input_open(&input, path, NULL))
        return false;
    bool found = !read_head(input.in, &head) && find_format(&head);
    /* An empty list is no power log. */
    found |= head.n == 2 && nrg_layer_head_is(&head, 1, NRG_JSON_ARRAY_END);
    nrg_input_close(&input);
    return found;
}

int nrg_layer_out_of_memory(const struct nrg_layer_import *im, struct nrg_error *err)
{
    return nrg_fail(err, -ENOMEM, im->file->path, "out of memory");
}

int64_t nrg_layer_track(struct nrg_layer_import *im, const char *name)
{
    struct nrg_span_track track = {.kind = "log"};
    const char *domain = im->options->domain;
    nrg_copy(track.domain, sizeof track.domain, domain ? domain : "");
    nrg_copy(track.name, sizeof track.name, name);
    return nrg_span_sink_track(im->sink, &track);
}

void nrg_layer_note(struct nrg_layer_import *im, const char *fmt, ...)
{
    struct nrg_import_layers *file = im->file;
    va_list ap;
    if (nrg_reserve(&file->notes, &file->cap_notes, file->n_notes + 1, sizeof *file->notes)) {
        im->lost_note = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(file->notes[file->n_notes++], sizeof *file->notes, fmt, ap);
    va_end(ap);
}

void nrg_layer_count(struct nrg_layer_import *im, uint64_t count, const char *one, const char *many,
                     const char *rest)
{
    if (count)
        nrg_layer_note(im, "%llu %s %s", (unsigned long long)count, count == 1 ? one : many, rest);
}

int nrg_layer_span(struct nrg_layer_import *im, const struct nrg_sink_span *span, uint64_t *bad)
{
    if (span->track < 0 || span->name < 0)
        return -ENOMEM;
    int rc = nrg_span_sink_span(im->sink, span);
    bool impossible = rc == -EINVAL || rc == -ERANGE;
    *bad += impossible;
    return impossible ? 0 : rc ? rc : 1;
}
