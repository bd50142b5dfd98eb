/*
 * Readers of safetensors files and of the index that lists a model's shards. A file is a u64
 * header length, a JSON object (name to dtype, shape and data offsets) and the data, which is
 * never touched. An index maps names to files beside it; every file is opened once, and only plain
 * file names are followed. The same index form lists pytorch_model.bin shards: those go to the
 * checkpoint reader.
 *
 *     0        u64 n
 *     8        {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
 *     8 + n    data; offsets count from here
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/map.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "base/parse.h"
#include "graph/bytes.h"
#include "graph/json_text.h"
#include "graph/param.h"
#include "graph/readers.h"

#define HEADER_MAX ((uint64_t)100 * 1000 * 1000)
#define SHARDS_MAX 10000

static int match_safetensors(const struct nrg_source *source)
{
    if (source->size < 10)
        return 0;
    uint64_t n = nrg_le64(source->bytes);
    return n >= 2 && n <= HEADER_MAX && source->bytes[8] == '{' && source->bytes[7] == 0 &&
                   source->bytes[6] == 0
               ? 90
               : 0;
}

/* Bytes and shape agree, or one of them is not known, or more than can be counted, which is said
 * elsewhere. Elements may be smaller than a byte. */
static bool fits_shape(const struct nrg_tensor_info *tensor)
{
    double bits = nrg_dtype_bits(tensor->dtype);
    for (int i = 0; i < tensor->rank; i++)
        bits *= (double)tensor->dims[i];
    return bits == 0 || bits > (double)INT64_MAX || fabs(bits / 8 - (double)tensor->bytes) < 1;
}

static int add_tensor(const struct nrg_source *source, struct nrg_model *model, const char *name,
                      const json_t *entry, uint64_t data_size, struct nrg_error *err)
{
    struct nrg_tensor_info tensor = {.requires_grad = -1, .storage_numel = -1, .bytes = -1};
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (!dtype || !nrg_json_dims(json_object_get(entry, "shape"), 0, &tensor))
        return nrg_fail(err, -EBADMSG, source->name, "tensor '%.100s' has no dtype and shape",
                        name);
    tensor.dtype = nrg_dtype_from_name(dtype, strlen(dtype));
    if (json_is_integer(from) && json_is_integer(to)) {
        json_int_t begin = json_integer_value(from), end = json_integer_value(to);
        if (begin < 0 || end < begin)
            return nrg_fail(err, -EBADMSG, source->name, "tensor '%.100s' ends before it begins",
                            name);
        tensor.bytes = end - begin;
        if (!fits_shape(&tensor))
            return nrg_fail(err, -EBADMSG, source->name,
                            "tensor '%.100s' has %lld bytes, which its shape and dtype do not make",
                            name, (long long)tensor.bytes);
        if ((uint64_t)end > data_size && !model->n_warnings)
            nrg_model_warn(model, "'%.100s' lies beyond the end: only shapes are known", name);
    }
    return nrg_param_add(model, source->name, name, strlen(name), &tensor, NRG_ROLE_GUESS, err);
}

static int read_header(const struct nrg_source *source, struct nrg_model *model,
                       struct nrg_error *err)
{
    json_error_t why;
    uint64_t n = source->size >= 8 ? nrg_le64(source->bytes) : 0;
    if (n < 2 || n > HEADER_MAX || n > source->size - 8)
        return nrg_fail(err, -EBADMSG, source->name,
                        "is not a safetensors file, or is cut off within its header");
    json_t *root = json_loadb((const char *)source->bytes + 8, n, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(root)) {
        bool is_json = root != NULL;
        json_decref(root);
        return nrg_fail_at(err, -EBADMSG, source->name, is_json ? 8 : 8 + why.position,
                           "the safetensors header is not a JSON object: %.100s",
                           is_json ? "" : why.text);
    }
    const char *name;
    json_t *entry;
    int rc = 0;
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") != 0)
            rc = add_tensor(source, model, name, entry, source->size - 8 - n, err);
        if (rc)
            break;
    }
    json_decref(root);
    return rc;
}

static int read_safetensors(const struct nrg_source *source, struct nrg_model *model,
                            struct nrg_error *err)
{
    int rc = read_header(source, model, err);
    if (!rc && strstr(source->name, "-of-0"))
        nrg_model_warn(model, "one shard of several: give the .index.json beside it");
    return rc ? rc : nrg_param_finish(model, source->name, err);
}

const struct nrg_reader nrg_reader_safetensors = {
    .name = "safetensors",
    .summary = "safetensors file: parameters",
    .match = match_safetensors,
    .read = read_safetensors,
};

static int match_index(const struct nrg_source *source)
{
    size_t n = source->size < 4096 ? source->size : 4096;
    if (source->bytes[0] != '{')
        return 0;
    return nrg_ends_with(source->name, ".index.json")       ? 90
           : memmem(source->bytes, n, "\"weight_map\"", 12) ? 70
                                                            : 0;
}

/* A shard's file is mapped for its header only; a hostile index cannot name other folders. */
static int read_shard(const struct nrg_source *index, const char *file, struct nrg_model *model,
                      struct nrg_error *err)
{
    struct nrg_str path = {0};
    const char *slash = strrchr(index->name, '/');
    struct stat st;
    if (!*file || strchr(file, '/') || file[0] == '.')
        return nrg_fail(err, -EPERM, index->name, "names a shard outside its folder: '%.100s'",
                        file);
    if (!index->is_path)
        return nrg_model_warn(model,
                              "shard '%.100s' is not in the recording: its parameters are "
                              "not counted",
                              file);
    if (nrg_str_addf(&path, "%.*s%s", slash ? (int)(slash + 1 - index->name) : 0, index->name,
                     file))
        return nrg_fail(err, -ENOMEM, index->name, "out of memory");
    int fd = nrg_open_regular(path.text, &st, NULL), rc = 0;
    struct nrg_mapped map = {0};
    if (fd < 0 || nrg_mapped_open(&map, fd, (size_t)st.st_size)) {
        rc = nrg_model_warn(model, "shard '%.100s' is missing: its parameters are not counted",
                            file);
    } else {
        struct nrg_source shard = {
            .bytes = map.bytes, .size = map.size, .name = path.text, .is_path = true};
        rc = match_safetensors(&shard) ? read_header(&shard, model, err)
                                       : nrg_reader_torch_checkpoint.read(&shard, model, err);
        if (nrg_mapped_close(&map))
            rc = nrg_fail(err, -EIO, path.text, NRG_MAPPED_CUT);
    }
    if (fd >= 0)
        close(fd);
    nrg_str_release(&path);
    return rc;
}

static int read_shards(const struct nrg_source *source, const json_t *map, struct nrg_model *model,
                       struct nrg_error *err)
{
    struct nrg_map seen = {0};
    const char *name;
    json_t *file;
    int rc = 0;
    json_object_foreach((json_t *)map, name, file)
    {
        const char *text = json_string_value(file);
        size_t len = json_string_length(file);
        if (!text || strlen(text) != len)
            rc = nrg_fail(err, -EBADMSG, source->name, "'%.100s' has no file name", name);
        else if (nrg_map_number(&seen, text, len) >= 0)
            continue;
        else if (seen.n >= SHARDS_MAX || nrg_map_put(&seen, text, len, 0))
            rc = nrg_fail(err, -E2BIG, source->name, "lists too many shards");
        else
            rc = read_shard(source, text, model, err);
        if (rc)
            break;
    }
    nrg_map_release(&seen);
    return rc;
}

static int read_index(const struct nrg_source *source, struct nrg_model *model,
                      struct nrg_error *err)
{
    json_t *root = nrg_json_load(source, 0, err);
    const json_t *map = json_object_get(root, "weight_map");
    int rc;
    /* The shards are larger than the index: their headers bound the memory, not its size. */
    model->arena.limit = HEADER_MAX * 16;
    if (!root)
        rc = -EBADMSG;
    else if (!json_is_object(map))
        rc = nrg_fail(err, -EBADMSG, source->name, "has no weight_map");
    else
        rc = read_shards(source, map, model, err);
    json_decref(root);
    return rc ? rc : nrg_param_finish(model, source->name, err);
}

const struct nrg_reader nrg_reader_shard_index = {
    .name = "shard-index",
    .summary = "index of sharded safetensors or checkpoints (.index.json): parameters",
    .match = match_index,
    .read = read_index,
};
