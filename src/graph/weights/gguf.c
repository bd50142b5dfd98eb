/*
 * Reader of GGUF files, versions 1 to 3: parameters, and key-value pairs for who asks. Dims
 * are stored innermost first and are reversed to PyTorch's order. Quantised types store blocks of
 * elements, so bytes come from the type's block, not from a dtype. Big-endian files (their version
 * reads as a huge number) are refused.
 *
 *     "GGUF" u32 version, n_tensors, n_kv                  (u64; u32 in version 1)
 *     n_kv times       key, u32 type, value                (strings: length, bytes)
 *     n_tensors times  name, u32 n_dims, dims, u32 type, u64 offset
 */
#include "graph/weights/gguf.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "graph/bytes.h"
#include "graph/param.h"
#include "graph/readers.h"

#define NEST_MAX 8
#define DIMS_MAX 8

/* The first error stays in `rc`; what is taken after it is 0 or NULL. */
struct cursor {
    const struct nrg_source *source;
    size_t at;
    unsigned version;
    int64_t unknown_type; /* the first, -1: none */
    int rc;
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
    [30] = {1, 2, NRG_BF16}, [31] = {32, 18, 0},     [32] = {32, 18, 0},     [33] = {32, 18, 0},
    [34] = {256, 54, 0},     [35] = {256, 66, 0},    [36] = {32, 18, 0},     [37] = {32, 18, 0},
    [38] = {32, 18, 0},      [39] = {32, 17, 0},     [40] = {64, 36, 0},     [41] = {128, 18, 0},
};

/* Bytes of a scalar key-value type; 0: string (8) and array (9), or unknown. */
static const uint8_t value_sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* NULL: the file ends before, or something failed earlier. */
static const uint8_t *take_bytes(struct cursor *in, uint64_t n)
{
    if (!in->rc && n > in->source->size - in->at)
        in->rc = nrg_fail_at(in->err, -EBADMSG, in->source->name, (long long)in->at,
                             "the GGUF header reaches beyond the file: cut off?");
    if (in->rc)
        return NULL;
    in->at += n;
    return in->source->bytes + in->at - n;
}

static uint32_t take_u32(struct cursor *in)
{
    const uint8_t *p = take_bytes(in, 4);
    return p ? nrg_le32(p) : 0;
}

/* A count or length: as wide as the version has it. */
static uint64_t take_count(struct cursor *in)
{
    if (in->version == 1)
        return take_u32(in);
    const uint8_t *p = take_bytes(in, 8);
    return p ? nrg_le64(p) : 0;
}

static const char *take_text(struct cursor *in, size_t *len)
{
    *len = take_count(in);
    return (const char *)take_bytes(in, *len);
}

static void skip_value(struct cursor *in, uint32_t type, int depth);

static void skip_array(struct cursor *in, int depth)
{
    uint32_t type = take_u32(in);
    uint64_t n = take_count(in);
    if (type < sizeof value_sizes && value_sizes[type]) {
        take_bytes(in, n > in->source->size ? UINT64_MAX : n * value_sizes[type]);
        return;
    }
    /* Each element takes bytes, so a huge count stops at the end of the file. */
    for (uint64_t i = 0; !in->rc && i < n; i++)
        skip_value(in, type, depth + 1);
}

static void skip_value(struct cursor *in, uint32_t type, int depth)
{
    size_t len;
    if (type == 8)
        take_text(in, &len);
    else if (type == 9 && depth < NEST_MAX)
        skip_array(in, depth);
    else if (type < sizeof value_sizes && value_sizes[type])
        take_bytes(in, value_sizes[type]);
    else
        in->rc =
            nrg_fail_at(in->err, -EBADMSG, in->source->name, (long long)in->at,
                        "GGUF value of type %u%s", type, type == 9 ? " is nested too deep" : "");
}

static void read_kv(struct cursor *in, struct nrg_model *model)
{
    size_t key_len, len;
    const char *key = take_text(in, &key_len);
    uint32_t type = take_u32(in);
    if (in->rc)
        return;
    if (type != 8 || key_len != 20 || memcmp(key, "general.architecture", 20) != 0) {
        skip_value(in, type, 0);
        return;
    }
    const char *text = take_text(in, &len);
    if (text)
        model->producer = nrg_model_text(model, text, len < 100 ? len : 100);
}

static const struct ggml_type *ggml_type(uint32_t type)
{
    static const struct ggml_type unknown;
    return type < sizeof ggml_types / sizeof *ggml_types ? &ggml_types[type] : &unknown;
}

static int64_t stored_bytes(uint32_t type, const struct nrg_tensor_info *tensor)
{
    const struct ggml_type *t = ggml_type(type);
    int64_t n = 1;
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(n, tensor->dims[i], &n))
            return -1;
    return !t->block || n % t->block || n / t->block > INT64_MAX / t->bytes
               ? -1
               : n / t->block * t->bytes;
}

static void take_dims(struct cursor *in, struct nrg_tensor_info *tensor)
{
    uint32_t n = take_u32(in);
    if (n > DIMS_MAX)
        in->rc = nrg_fail_at(in->err, -EBADMSG, in->source->name, (long long)in->at,
                             "a GGUF tensor has %u dimensions", n);
    for (uint32_t i = 0; !in->rc && i < n; i++) {
        uint64_t dim = take_count(in);
        if (dim > INT64_MAX)
            in->rc = nrg_fail_at(in->err, -EOVERFLOW, in->source->name, (long long)in->at,
                                 "a GGUF tensor's dimension is beyond 63 bits");
        tensor->dims[n - 1 - i] = (int64_t)dim;
    }
    tensor->rank = (int)n;
}

static void read_tensor(struct cursor *in, struct nrg_model *model)
{
    struct nrg_tensor_info tensor = {.requires_grad = -1, .storage_numel = -1, .bytes = -1};
    size_t len;
    const char *name = take_text(in, &len);
    take_dims(in, &tensor);
    uint32_t type = take_u32(in);
    const uint8_t *offset = take_bytes(in, 8);
    if (!offset)
        return;
    tensor.dtype = ggml_type(type)->dtype;
    tensor.bytes = stored_bytes(type, &tensor);
    if (nrg_le64(offset) > in->source->size && !model->n_warnings)
        nrg_model_warn(model, "the file is cut off: only shapes are known");
    if (!ggml_type(type)->block && in->unknown_type < 0) {
        in->unknown_type = (int64_t)type;
        nrg_model_warn(model, "type %u of '%.*s' is not known: neither are its bytes", type,
                       (int)(len < 100 ? len : 100), name);
    }
    /* Integers are stored as weights are; a state dict's would be buffers. */
    in->rc =
        nrg_param_add(model, in->source->name, name, len, &tensor,
                      nrg_dtype_is_whole(tensor.dtype) ? NRG_ROLE_PARAM : NRG_ROLE_GUESS, in->err);
}

static int match_gguf(const struct nrg_source *source)
{
    return source->size >= 8 && !memcmp(source->bytes, "GGUF", 4) ? 95 : 0;
}

static int begin_gguf(struct cursor *in, uint64_t *n_tensors, uint64_t *n_kv)
{
    const struct nrg_source *source = in->source;
    if (!match_gguf(source))
        return nrg_fail(in->err, -EBADMSG, source->name, "is not a GGUF file");
    uint32_t version = take_u32(in);
    if (version < 1 || version > 3)
        return nrg_fail_at(in->err, -ENOTSUP, source->name, 4, "GGUF version %u is not known%s",
                           version, version & 0xffff ? "" : " (a big-endian file)");
    in->version = version;
    *n_tensors = take_count(in);
    *n_kv = take_count(in);
    return in->rc;
}

/* A number of one of the scalar types at p. */
static double number_at(const uint8_t *p, uint32_t type)
{
    uint32_t u = value_sizes[type] == 4 ? nrg_le32(p) : 0;
    uint64_t l = value_sizes[type] == 8 ? nrg_le64(p) : 0;
    float f;
    double d;
    memcpy(&f, &u, sizeof f);
    memcpy(&d, &l, sizeof d);
    switch (type) {
    case 1:
        return (int8_t)p[0];
    case 2:
        return p[0] | p[1] << 8;
    case 3:
        return (int16_t)(p[0] | p[1] << 8);
    case 4:
        return u;
    case 5:
        return (int32_t)u;
    case 6:
        return f;
    case 10:
        return (double)l;
    case 11:
        return (double)(int64_t)l;
    case 12:
        return d;
    default:
        return p[0];
    }
}

static void take_numbers(struct cursor *in, uint32_t type, uint64_t n, struct nrg_gguf_value *v)
{
    size_t size = value_sizes[type];
    const uint8_t *p = take_bytes(in, n > in->source->size ? UINT64_MAX : n * size);
    v->n = n;
    for (uint64_t i = 0; p && i < n; i++) {
        double number = number_at(p + i * size, type);
        v->number = i ? fmax(v->number, number) : number;
        v->nonzero += number != 0;
    }
}

static void take_value(struct cursor *in, struct nrg_gguf_value *v)
{
    uint32_t type = take_u32(in);
    size_t before = in->at;
    if (type < sizeof value_sizes && value_sizes[type]) {
        take_numbers(in, type, 1, v);
    } else if (type == 8) {
        v->text = take_text(in, &v->text_len);
    } else if (type == 9) {
        uint32_t of = take_u32(in);
        v->n = take_count(in);
        if (of < sizeof value_sizes && value_sizes[of]) {
            take_numbers(in, of, v->n, v);
            return;
        }
        in->at = in->rc ? in->at : before;
        skip_value(in, type, 0);
    } else {
        skip_value(in, type, 0);
    }
}

int nrg_gguf_metadata(const struct nrg_source *source,
                      int (*visit)(void *arg, const struct nrg_gguf_value *value), void *arg,
                      struct nrg_error *err)
{
    struct cursor in = {.source = source, .at = 4, .unknown_type = -1, .err = err};
    uint64_t n_tensors, n_kv = 0;
    int rc = begin_gguf(&in, &n_tensors, &n_kv);
    for (uint64_t i = 0; !rc && i < n_kv; i++) {
        struct nrg_gguf_value v = {.number = NAN, .n = 1};
        v.key = take_text(&in, &v.key_len);
        take_value(&in, &v);
        rc = in.rc ? in.rc : visit(arg, &v);
    }
    return rc;
}

static int read_gguf(const struct nrg_source *source, struct nrg_model *model,
                     struct nrg_error *err)
{
    struct cursor in = {.source = source, .at = 4, .unknown_type = -1, .err = err};
    uint64_t n_tensors, n_kv;
    int rc = begin_gguf(&in, &n_tensors, &n_kv);
    if (rc)
        return rc;
    for (uint64_t i = 0; !in.rc && i < n_kv; i++)
        read_kv(&in, model);
    for (uint64_t i = 0; !in.rc && i < n_tensors; i++)
        read_tensor(&in, model);
    return in.rc ? in.rc : nrg_param_finish(model, source->name, err);
}

const struct nrg_reader nrg_reader_gguf = {
    .name = "gguf",
    .summary = "GGUF file: parameters",
    .match = match_gguf,
    .read = read_gguf,
};
