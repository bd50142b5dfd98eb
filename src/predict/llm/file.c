/*
 * A config from a path: what the file is, its first bytes say. Weights are mapped and only their
 * headers are looked at. A safetensors file or an index says how weights are stored, the
 * config.json beside it what they are; a file from elsewhere than a path has nothing beside it.
 */
#include "predict/llm/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "predict/llm/shape.h"

#define CONFIG_LIMIT ((size_t)16 << 20)
#define PATH_SIZE    4096
#define LEAST_STORED 0.95 /* of the parameters of a config: tied weights are stored once */

/* Length of a number that Python writes and JSON does not have; 0: it is none. */
static size_t python_number(const char *text, size_t left)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if (len <= left && !memcmp(text, words[i], len))
            return len;
    }
    return 0;
}

/*
 * The document with such numbers as null: Nemotron's published configs have an Infinity where
 * nobody looks. Where a size should be, null is missing.
 */
static int make_json(const char *text, size_t size, struct nrg_str *out)
{
    bool in_text = false;
    size_t from = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < size; i++) {
        in_text ^= text[i] == '"';
        i += in_text && text[i] == '\\';
        size_t len = in_text ? 0 : python_number(text + i, size - i);
        if (!len)
            continue;
        rc = nrg_str_add(out, text + from, i - from);
        if (!rc)
            rc = nrg_str_add(out, "null", 4);
        from = i + len;
        i = from - 1;
    }
    return rc ? rc : nrg_str_add(out, text + from, size - from);
}

static int read_json(struct nrg_llm_config *c, const uint8_t *bytes, size_t size, const char *name,
                     struct nrg_error *err)
{
    struct nrg_str text = {0};
    json_error_t why;
    if (size > CONFIG_LIMIT)
        return nrg_fail(err, -EFBIG, name, "is too large for a config.json");
    if (make_json((const char *)bytes, size, &text)) {
        nrg_str_release(&text);
        return nrg_fail(err, -ENOMEM, name, "out of memory");
    }
    json_t *root = json_loadb(text.text, text.len, JSON_REJECT_DUPLICATES, &why);
    nrg_str_release(&text);
    if (!root)
        return nrg_fail_at(err, -EBADMSG, name, why.line, "is not JSON: %s", why.text);
    int rc = nrg_llm_config_parse(c, root, name, err);
    json_decref(root);
    return rc;
}

/* config.json in the folder of `path`. False: there is none. */
static bool find_beside(const char *path, char *out)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    int n = snprintf(out, PATH_SIZE, "%.*sconfig.json", slash ? (int)(slash + 1 - path) : 0, path);
    return n > 0 && n < PATH_SIZE && !stat(out, &st) && S_ISREG(st.st_mode);
}

/*
 * Weights as they are stored, where a tensor has an element for each: of quantised ones several are
 * in an element, and the config says their bits.
 */
static int take_stored(struct nrg_llm_config *c, const struct nrg_model *model, const char *name,
                       struct nrg_error *err)
{
    struct nrg_llm_shape shape;
    if (c->quantised)
        return 0;
    nrg_llm_count_stored(c, model);
    nrg_llm_shape_make(&shape, c);
    if (c->stored_params == 0 || c->stored_params >= LEAST_STORED * shape.params)
        return 0;
    return nrg_fail(err, -EBADMSG, name,
                    "has %.4g parameters, its config.json makes %.4g: not of this model, or "
                    "quantised and not said so in a quantization_config",
                    c->stored_params, shape.params);
}

static int read_weights(struct nrg_llm_config *c, const struct nrg_source *source,
                        struct nrg_error *err)
{
    char path[PATH_SIZE];
    struct nrg_model model;
    int rc = nrg_model_read_bytes(source, NULL, &model, err);
    if (rc)
        return rc;
    bool beside = source->is_path && find_beside(source->name, path);
    rc = beside ? nrg_llm_config_read(c, path, err) : -ENOTSUP;
    if (!rc && !model.n_warnings) /* else one shard of several, or shards that are missing */
        rc = take_stored(c, &model, source->name, err);
    if (rc == -ENOTSUP) { /* a family that is not known may still have the usual tensors */
        struct nrg_error why;
        rc = nrg_llm_config_tensors(c, &model, source->name, beside ? &why : err);
    }
    nrg_model_release(&model);
    return rc;
}

int nrg_llm_config_read_bytes(struct nrg_llm_config *c, const uint8_t *bytes, size_t size,
                              const char *name, bool beside, struct nrg_error *err)
{
    const struct nrg_source source = {
        .bytes = bytes, .size = size, .name = name, .is_path = beside};
    size_t at = 0, head = size < 65536 ? size : 65536;
    while (at < size && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    if (at == size)
        return nrg_fail(err, -ENODATA, name, "is empty");
    if (bytes[at] == '<')
        return nrg_fail(err, -EBADMSG, name, "is HTML or XML: a web page in place of the file?");
    if (size >= 4 && !memcmp(bytes, "GGUF", 4))
        return nrg_llm_config_gguf(c, &source, err);
    if (bytes[at] == '{' && !memmem(bytes, head, "\"weight_map\"", 12))
        return read_json(c, bytes, size, name, err);
    if (bytes[at] == '{' || (size > 9 && bytes[8] == '{'))
        return read_weights(c, &source, err);
    return nrg_fail(err, -EBADMSG, name,
                    "is no config.json, GGUF or safetensors file: see nrg predict --help");
}

static int read_folder(struct nrg_llm_config *c, const char *folder, struct nrg_error *err)
{
    static const char *const names[] = {"model.safetensors.index.json", "model.safetensors",
                                        "config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_SIZE];
        struct stat st;
        int n = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (n > 0 && (size_t)n < sizeof path && !stat(path, &st) && S_ISREG(st.st_mode))
            return nrg_llm_config_read(c, path, err);
    }
    return nrg_fail(err, -EISDIR, folder, "is a folder without a config.json");
}

int nrg_llm_config_read(struct nrg_llm_config *c, const char *path, struct nrg_error *err)
{
    struct nrg_mapped map = {0};
    struct stat st;
    if (nrg_llm_is_by_hand(path))
        return nrg_llm_config_by_hand(c, path, err);
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return read_folder(c, path, err);
    int fd = nrg_open_regular(path, &st, err);
    if (fd < 0)
        return fd;
    int rc = st.st_size <= 0 ? nrg_fail(err, -ENODATA, path, "is empty")
                             : nrg_mapped_open(&map, fd, (size_t)st.st_size);
    if (rc && st.st_size > 0)
        nrg_fail(err, rc, path, "cannot read: %s", strerror(-rc));
    if (!rc) {
        rc = nrg_llm_config_read_bytes(c, map.bytes, map.size, path, true, err);
        if (nrg_mapped_close(&map))
            rc = nrg_fail(err, -EIO, path, NRG_MAPPED_CUT);
    }
    close(fd);
    return rc;
}
