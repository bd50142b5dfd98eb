/*
 * See reader.h. A file is mapped when it can be and read otherwise (stdin, pipes). The arena may
 * grow to ARENA_FACTOR times the file's size: enough for any real file, and a bound for hostile
 * ones.
 */
#include "graph/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "graph/readers.h"

#define ARENA_FACTOR 64
#define ARENA_MIN    ((size_t)16 * 1024 * 1024)
#define PIPE_LIMIT   ((size_t)4 * 1024 * 1024 * 1024)

/* One line each, so that branches that add one do not conflict. */
/* clang-format off */
const struct nrg_reader *const nrg_readers[] = {
    &nrg_reader_onnx,
    &nrg_reader_tensorrt,
    &nrg_reader_model_summary,
    &nrg_reader_torchscript,
    &nrg_reader_torchscript_archive,
    &nrg_reader_torch_checkpoint,
    &nrg_reader_safetensors,
    &nrg_reader_shard_index,
    &nrg_reader_gguf,
    &nrg_reader_modules_json,
    &nrg_reader_foreign,
    &nrg_reader_pt2,
    NULL,
};
/* clang-format on */

static const struct nrg_reader *reader_by_name(const char *name)
{
    for (size_t i = 0; nrg_readers[i]; i++)
        if (!strcmp(nrg_readers[i]->name, name))
            return nrg_readers[i];
    return NULL;
}

static const struct nrg_reader *reader_by_content(const struct nrg_source *source)
{
    const struct nrg_reader *best = NULL;
    int most = 0;
    for (size_t i = 0; nrg_readers[i]; i++) {
        int sure = nrg_readers[i]->match(source);
        if (sure > most) {
            most = sure;
            best = nrg_readers[i];
        }
    }
    return best;
}

int nrg_model_read_bytes(const struct nrg_source *source, const char *format,
                         struct nrg_model *model, struct nrg_error *err)
{
    *model = (struct nrg_model){0};
    if (!source->size)
        return nrg_fail(err, -ENODATA, source->name, "is empty");
    const struct nrg_reader *reader = format ? reader_by_name(format) : reader_by_content(source);
    if (!reader)
        return format ? nrg_fail(err, -EINVAL, "--format", "no reader is called '%s'", format)
                      : nrg_fail(err, -EBADMSG, source->name,
                                 "is of no format that nrg reads: see nrg graph --help");
    size_t limit =
        source->size < SIZE_MAX / ARENA_FACTOR ? source->size * ARENA_FACTOR : SIZE_MAX / 2;
    model->arena.limit = limit < ARENA_MIN ? ARENA_MIN : limit;
    model->format = reader->name;
    int rc = reader->read(source, model, err);
    if (rc)
        nrg_model_release(model);
    return rc;
}

static int read_stream(int fd, struct nrg_str *text)
{
    char buf[65536];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        int rc = n < 0                    ? -errno
                 : text->len > PIPE_LIMIT ? -EFBIG
                                          : nrg_str_add(text, buf, (size_t)n);
        if (rc)
            return rc;
    }
    return 0;
}

/* Model folders (Hugging Face, TensorFlow SavedModel): the file in them that says the most. */
static int read_folder(const char *path, const char *format, struct nrg_model *model,
                       struct nrg_error *err)
{
    static const char *const names[] = {"model.safetensors.index.json",
                                        "model.safetensors",
                                        "pytorch_model.bin.index.json",
                                        "pytorch_model.bin",
                                        "model.onnx",
                                        "saved_model.pb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[4096];
        struct stat st;
        int n = snprintf(file, sizeof file, "%s/%s", path, names[i]);
        if (n > 0 && (size_t)n < sizeof file && !stat(file, &st) && S_ISREG(st.st_mode))
            return nrg_model_read(file, format, model, err);
    }
    return nrg_fail(err, -EISDIR, path, "is a folder without a model that nrg knows by name");
}

/* From an open file that is no folder. */
static int read_open_file(int fd, const struct stat *st, const char *name, const char *format,
                          struct nrg_model *model, struct nrg_error *err)
{
    struct nrg_str text = {0};
    struct nrg_mapped map = {0};
    bool is_mapped = S_ISREG(st->st_mode) && !nrg_mapped_open(&map, fd, (size_t)st->st_size);
    int rc = is_mapped ? 0 : read_stream(fd, &text);
    struct nrg_source source = {
        .bytes = map.bytes, .size = map.size, .name = name, .is_path = fd != STDIN_FILENO};
    if (!is_mapped) {
        source.bytes = (const uint8_t *)text.text;
        source.size = text.len;
    }
    rc = rc ? nrg_fail(err, rc, name, "cannot read: %s", strerror(-rc))
            : nrg_model_read_bytes(&source, format, model, err);
    if (nrg_mapped_close(&map)) {
        if (!rc)
            nrg_model_release(model);
        rc = nrg_fail(err, -EIO, name, NRG_MAPPED_CUT);
    }
    nrg_str_release(&text);
    return rc;
}

int nrg_model_read(const char *path, const char *format, struct nrg_model *model,
                   struct nrg_error *err)
{
    bool from_stdin = !strcmp(path, "-");
    const char *name = from_stdin ? "stdin" : path;
    struct stat st;
    int fd = from_stdin ? STDIN_FILENO : nrg_open_readable(path, &st, err), rc;
    if (fd < 0)
        return fd;
    if (from_stdin && fstat(fd, &st))
        rc = nrg_fail(err, -errno, name, "%s", strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        rc = read_open_file(fd, &st, name, format, model, err);
    else
        rc = from_stdin ? nrg_fail(err, -EISDIR, name, "is a folder")
                        : read_folder(path, format, model, err);
    if (!from_stdin)
        close(fd);
    return rc;
}
