/*
 * Reader of GGUF files, versions 1 to 3: parameters only; key-value pairs are walked over. Dims
 * stand innermost first and are turned around to PyTorch's order. Quantised types store blocks of
 * elements, so bytes come from the type's block, not from a dtype. Big-endian files (their version
 * reads as a huge number) are refused.
 *
 *     "GGUF" u32 version, n_tensors, n_kv                  (u64; u32 in version 1)
 *     n_kv times       key, u32 type, value                (strings: length, bytes)
 *     n_tensors times  name, u32 n_dims, dims, u32 type, u64 offset
 */
#include <errno.h>
#include <string.h>

#include "graph/bytes.h"
#include "graph/param.h"
#include "graph/readers.h"

#define NEST_MAX 8
#define DIMS_MAX 8

struct cursor {
    const struct nrg_source *source;
    size_t at;
    unsigned version;
    struct nrg_error *err;
};

/* What ggml stores for `block` elements. */
static const struct ggml_type {
    uint16_t block, bytes;
    enum nrg_dtype dtype;
} ggml_types[] = {
    [0] = {1, 4, NRG_F32},   [1] = {1, 2, NRG_F16},  [2] = {32, 18, 0},      [3] = {32, 20, 0},
    [6] = {32, 22, 0},       [7] = {32, 24, 0},      [8] = {32, 34, 0},      [9] = {32, 36, 0},
    [10] = {256, 84, 0},     [11] = {256, 110, 0},   [12] = {256, 144, 0},   [13] = {256, 176, 0},
    [14] = {256, 210, 0},    [15] = {256, 292, 0},   [16] = {256, 66, 0},    [17] = {256, 74, 0},
    [18] = {256, 98, 0},     [19] = {256, 50, 0},    [20] = {32, 18, 0},     [21] = {256, 110, 0},
    [22] = {256, 82, 0},     [23] = {256, 136, 0},   [24] = {1, 1, NRG_I8},  [25] = {1, 2, NRG_I16},
    [26] = {1, 4, NRG_I32},  [27] = {1, 8, NRG_I64}, [28] = {1, 8, NRG_F64}, [29] = {256, 56, 0},
    [30] = {1, 2, NRG_BF16}, [34] = {256, 54, 0},    [35] = {256, 66, 0},    [39] = {32, 17, 0},
};

/* Bytes of a scalar key-value type; 0: string (8) and array (9), or unknown. */
static const uint8_t value_sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static int take(struct cursor *in, uint64_t n, const uint8_t **bytes)
{
    if (n > in->source->size - in->at)
        return nrg_fail_at(in->err, -EBADMSG, in->source->name, (long long)in->at,
                           "the GGUF header reaches beyond the file: cut off?");
    *bytes = in->source->bytes + in->at;
    in->at += n;
    return 0;
}

static int take_u32(struct cursor *in, uint32_t *n)
{
    const uint8_t *p = NULL;
    int rc = take(in, 4, &p);
    if (!rc)
        *n = nrg_le32(p);
    return rc;
}

/* A count or length: as wide as the version has it. */
static int take_count(struct cursor *in, uint64_t *n)
{
    const uint8_t *p = NULL;
    int rc = take(in, in->version == 1 ? 4 : 8, &p);
    if (!rc)
        *n = in->version == 1 ? nrg_le32(p) : nrg_le64(p);
    return rc;
}

static int take_text(struct cursor *in, const char **text, size_t *len)
{
    uint64_t n = 0;
    const uint8_t *p = NULL;
    int rc = take_count(in, &n);
    if (!rc)
        rc = take(in, n, &p);
    if (!rc) {
        *text = (const char *)p;
        *len = n;
    }
    return rc;
}

static int skip_value(struct cursor *in, uint32_t type, int depth);

static int skip_array(struct cursor *in, int depth)
{
    uint32_t type = 0;
    uint64_t n = 0;
    const uint8_t *p = NULL;
    int rc = take_u32(in, &type);
    if (!rc)
        rc = take_count(in, &n);
    if (rc)
        return rc;
    if (type < sizeof value_sizes && value_sizes[type])
        return n > in->source->size ? take(in, UINT64_MAX, &p)
                                    : take(in, n * value_sizes[type], &p);
    /* Each element takes bytes, so that a huge count ends at the end of the file. */
    for (uint64_t i = 0; !rc && i < n; i++)
        rc = skip_value(in, type, depth + 1);
    return rc;
}

static int skip_value(struct cursor *in, uint32_t type, int depth)
{
    const uint8_t *p = NULL;
    const char *text = NULL;
    size_t len = 0;
    if (type == 8)
        return take_text(in, &text, &len);
    if (type == 9 && depth < NEST_MAX)
        return skip_array(in, depth);
    if (type < sizeof value_sizes && value_sizes[type])
        return take(in, value_sizes[type], &p);
    return nrg_fail_at(in->err, -EBADMSG, in->source->name, (long long)in->at,
                       "GGUF value of type %u%s", type, type == 9 ? " is nested too deep" : "");
}

static int read_kv(struct cursor *in, struct nrg_model *model)
{
    const char *key = NULL, *text = NULL;
    size_t key_len = 0, len = 0;
    uint32_t type = 0;
    int rc = take_text(in, &key, &key_len);
    if (!rc)
        rc = take_u32(in, &type);
    if (rc)
        return rc;
    if (type != 8 || key_len != 20 || memcmp(key, "general.architecture", 20) != 0)
        return skip_value(in, type, 0);
    rc = take_text(in, &text, &len);
    if (!rc)
        model->producer = nrg_model_text(model, text, len < 100 ? len : 100);
    return rc;
}

static int64_t stored_bytes(uint32_t type, const struct nrg_tensor_info *tensor)
{
    const struct ggml_type *t =
        type < sizeof ggml_types / sizeof *ggml_types ? &ggml_types[type] : &(struct ggml_type){0};
    int64_t n = 1;
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(n, tensor->dims[i], &n))
            return -1;
    return !t->block || n % t->block || n / t->block > INT64_MAX / t->bytes
               ? -1
               : n / t->block * t->bytes;
}

static int take_dims(struct cursor *in, struct nrg_tensor_info *tensor)
{
    uint32_t n = 0;
    int rc = take_u32(in, &n);
    if (!rc && n > DIMS_MAX)
        rc = nrg_fail_at(in->err, -EBADMSG, in->source->name, (long long)in->at,
                         "a GGUF tensor has %u dimensions", n);
    for (uint32_t i = 0; !rc && i < n; i++) {
        uint64_t dim = 0;
        rc = take_count(in, &dim);
        if (!rc && dim > INT64_MAX)
            rc = nrg_fail_at(in->err, -EOVERFLOW, in->source->name, (long long)in->at,
                             "a GGUF tensor's dimension is beyond 63 bits");
        tensor->dims[n - 1 - i] = (int64_t)dim;
    }
    tensor->rank = (int)n;
    return rc;
}

static int read_tensor(struct cursor *in, struct nrg_model *model)
{
    struct nrg_tensor_info tensor = {.requires_grad = -1, .storage_numel = -1, .bytes = -1};
    const char *name = NULL;
    size_t len = 0;
    uint32_t type = 0;
    const uint8_t *offset = NULL;
    int rc = take_text(in, &name, &len);
    if (!rc)
        rc = take_dims(in, &tensor);
    if (!rc)
        rc = take_u32(in, &type);
    if (!rc)
        rc = take(in, 8, &offset);
    if (rc)
        return rc;
    if (type < sizeof ggml_types / sizeof *ggml_types)
        tensor.dtype = ggml_types[type].dtype;
    tensor.bytes = stored_bytes(type, &tensor);
    if (nrg_le64(offset) > in->source->size && !model->n_warnings)
        (void)nrg_model_warn(model, "the file is cut off: only shapes are known");
    return nrg_param_add(model, in->source->name, name, len, &tensor, NRG_ROLE_GUESS, in->err);
}

static int match_gguf(const struct nrg_source *source)
{
    return source->size >= 8 && !memcmp(source->bytes, "GGUF", 4) ? 95 : 0;
}

static int read_gguf(const struct nrg_source *source, struct nrg_model *model,
                     struct nrg_error *err)
{
    struct cursor in = {.source = source, .at = 4, .err = err};
    uint64_t n_tensors = 0, n_kv = 0;
    uint32_t version = 0;
    if (!match_gguf(source))
        return nrg_fail(err, -EBADMSG, source->name, "is no GGUF file");
    int rc = take_u32(&in, &version);
    if (!rc && (version < 1 || version > 3))
        rc = nrg_fail_at(err, -ENOTSUP, source->name, 4, "GGUF version %u is not known%s", version,
                         version & 0xffff ? "" : " (a big-endian file)");
    in.version = version;
    if (!rc)
        rc = take_count(&in, &n_tensors);
    if (!rc)
        rc = take_count(&in, &n_kv);
    for (uint64_t i = 0; !rc && i < n_kv; i++)
        rc = read_kv(&in, model);
    for (uint64_t i = 0; !rc && i < n_tensors; i++)
        rc = read_tensor(&in, model);
    if (!rc && !model->n_params)
        rc = nrg_fail(err, -ENODATA, source->name, "holds no tensors");
    if (!rc && nrg_param_modules(model))
        rc = nrg_fail(err, -ENOMEM, source->name, "needs more memory than its size allows");
    return rc;
}

const struct nrg_reader nrg_reader_gguf = {
    .name = "gguf",
    .summary = "GGUF file: parameters",
    .match = match_gguf,
    .read = read_gguf,
};
