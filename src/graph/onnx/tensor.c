/*
 * See internal.h: TensorProto. Of a tensor we need its type, how many bytes it takes, and the
 * contents only of small ones, because shapes are computed from them (Reshape's target, Slice's
 * bounds, Resize's scales). Contents are in raw_data (little endian), in one of the typed fields,
 * or in another file beside the model (external_data); that file is opened for small integer
 * tensors only, and only when it lies in the model's own folder or below it. Refused: negative
 * dimensions, dimensions whose product does not fit 63 bits.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/parse.h"
#include "base/read_at.h"
#include "graph/onnx/internal.h"

enum {
    T_DIMS = 1,
    T_TYPE = 2,
    T_FLOATS = 4,
    T_INT32S = 5,
    T_INT64S = 7,
    T_NAME = 8,
    T_RAW = 9,
    T_DOUBLES = 10,
    T_UINT64S = 11,
    T_EXTERNAL = 13,
    T_LOCATION = 14
};

struct contents {
    struct nrg_pb msg; /* the whole tensor */
    enum nrg_dtype dtype;
    int64_t numel;
    struct nrg_pb_field raw;
    bool is_raw, is_external;
    struct nrg_pb_field location;
    int64_t offset, length;
};

static int dims_of(struct onnx *x, struct nrg_pb msg, uint32_t number, int64_t *dims, int *rank)
{
    struct nrg_pb_numbers list = {.msg = msg, .number = number};
    uint64_t dim;
    for (*rank = 0; nrg_pb_number(&list, &dim) > 0; dims[(*rank)++] = (int64_t)dim) {
        if (dim > INT64_MAX)
            return onnx_fail(x, list.msg.at, "a tensor has a negative dimension (%lld)",
                             (long long)dim);
        if (*rank == ONNX_MAX_RANK)
            return onnx_fail(x, list.msg.at, "a tensor has more than %d dimensions", ONNX_MAX_RANK);
    }
    return list.run.why ? onnx_broken(x, &list.run) : 0;
}

static int64_t number_of(const struct nrg_pb_field *field)
{
    int64_t value = 0;
    if (nrg_parse_i64((const char *)field->bytes, field->size, &value) || value < 0)
        return -1;
    return value;
}

/* One key and value of external_data. */
static void read_external_data(struct contents *c, struct nrg_pb msg)
{
    struct nrg_pb_field key = onnx_text_field(msg, 1), value;
    if (!nrg_pb_find(msg, 2, &value) || value.wire != NRG_PB_BYTES)
        return;
    if (onnx_text_is(&key, "location"))
        c->location = value;
    else if (onnx_text_is(&key, "offset"))
        c->offset = number_of(&value);
    else if (onnx_text_is(&key, "length"))
        c->length = number_of(&value);
}

/* "weights.bin" beside the model; nothing that leads out of its folder. */
static bool path_of(const struct onnx *x, const struct nrg_pb_field *where, char *path, size_t size)
{
    const char *name = x->source->name ? x->source->name : "";
    const char *slash = strrchr(name, '/');
    size_t folder = slash ? (size_t)(slash - name) + 1 : 0;
    const char *text = (const char *)where->bytes;
    if (!where->size || text[0] == '/' || memchr(text, 0, where->size) ||
        memmem(text, where->size, "..", 2) || folder + where->size >= size)
        return false;
    memcpy(path, name, folder);
    memcpy(path + folder, text, where->size);
    path[folder + where->size] = 0;
    return true;
}

static bool read_external(const struct onnx *x, const struct contents *c, uint8_t *bytes,
                          size_t size)
{
    char path[4096];
    struct stat st;
    if (c->offset < 0 || !path_of(x, &c->location, path, sizeof path))
        return false;
    int fd = nrg_open_regular(path, &st, NULL);
    if (fd < 0)
        return false;
    bool good = nrg_read_at(fd, bytes, size, (off_t)c->offset) == (ssize_t)size;
    close(fd);
    return good;
}

/* Infinity and what is no number are of no use as a size: neither is followed. */
static double half_value(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023) / 1024;
    double value = ldexp((exponent ? 1 : 0) + fraction, exponent ? exponent - 15 : -14);
    if (exponent == 31)
        return NAN;
    return bits >> 15 & 1 ? -value : value;
}

static double real_value(enum nrg_dtype dtype, uint64_t bits)
{
    return dtype == NRG_F64    ? nrg_pb_double(bits)
           : dtype == NRG_F32  ? nrg_pb_float(bits)
           : dtype == NRG_BF16 ? nrg_pb_float(bits << 16)
                               : half_value(bits);
}

static int64_t whole_value(enum nrg_dtype dtype, uint64_t bits)
{
    unsigned size = nrg_dtype_bits(dtype);
    bool is_signed = dtype == NRG_I32 || dtype == NRG_I16 || dtype == NRG_I8;
    if (is_signed && bits >> (size - 1) & 1)
        bits |= ~((UINT64_C(1) << size) - 1);
    return (int64_t)bits;
}

static void from_raw(const struct contents *c, const uint8_t *bytes, int64_t *i, double *f)
{
    size_t size = nrg_dtype_bits(c->dtype) / 8;
    for (size_t k = 0; k < (size_t)c->numel; k++) {
        uint64_t bits = 0;
        for (size_t b = 0; b < size; b++)
            bits |= (uint64_t)bytes[k * size + b] << (8 * b);
        if (f)
            f[k] = real_value(c->dtype, bits);
        else
            i[k] = whole_value(c->dtype, bits);
    }
}

/* Typed fields: 16-bit floats and small integers are in int32_data. True: all were there. */
static bool from_fields(const struct contents *c, int64_t *i, double *f)
{
    uint32_t number = c->dtype == NRG_I64                          ? T_INT64S
                      : c->dtype == NRG_U64 || c->dtype == NRG_U32 ? T_UINT64S
                      : c->dtype == NRG_F32                        ? T_FLOATS
                      : c->dtype == NRG_F64                        ? T_DOUBLES
                                                                   : T_INT32S;
    struct nrg_pb_numbers list = {.msg = c->msg,
                                  .number = number,
                                  .element = number == T_FLOATS    ? 4
                                             : number == T_DOUBLES ? 8
                                                                   : 0};
    uint64_t bits;
    size_t n = 0;
    for (; nrg_pb_number(&list, &bits) > 0; n++) {
        if (n >= (size_t)c->numel)
            return false;
        if (f)
            f[n] = real_value(c->dtype, bits);
        else
            i[n] = (int64_t)bits;
    }
    return n == (size_t)c->numel;
}

static bool read_contents(const struct onnx *x, const struct contents *c, int64_t *i, double *f)
{
    uint8_t bytes[ONNX_MAX_KNOWN * 8];
    size_t size = (size_t)c->numel * (nrg_dtype_bits(c->dtype) / 8);
    if (c->is_external) {
        if (!i || !read_external(x, c, bytes, size))
            return false;
        from_raw(c, bytes, i, f);
        return true;
    }
    if (c->is_raw && c->raw.size != size)
        return false;
    if (!c->is_raw)
        return from_fields(c, i, f);
    from_raw(c, c->raw.bytes, i, f);
    return true;
}

static int known_of(struct onnx *x, const struct contents *c, struct onnx_known **out)
{
    bool is_real = c->dtype >= NRG_F64 && c->dtype <= NRG_BF16;
    if (c->numel < 0 || c->numel > ONNX_MAX_KNOWN || (!is_real && !nrg_dtype_is_whole(c->dtype)))
        return 0;
    size_t n = (size_t)c->numel;
    struct onnx_known *known = nrg_arena_alloc(&x->model->arena, sizeof *known);
    int64_t *i = is_real ? NULL : nrg_arena_array(&x->model->arena, n + 1, sizeof *i);
    double *f = is_real ? nrg_arena_array(&x->model->arena, n + 1, sizeof *f) : NULL;
    if (!known || (!i && !f))
        return onnx_no_memory(x);
    *known = (struct onnx_known){n, i, f};
    if (read_contents(x, c, i, f))
        *out = known;
    return 0;
}

static int read_fields(struct onnx *x, struct contents *c, struct onnx_tensor *out)
{
    struct nrg_pb msg = c->msg;
    struct nrg_pb_field field;
    int rc;
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        if (field.number == T_TYPE)
            c->dtype = onnx_dtype(field.value);
        else if (field.number == T_NAME && field.wire == NRG_PB_BYTES)
            out->name = field;
        else if (field.number == T_LOCATION)
            c->is_external = field.value == 1;
        else if (field.number == T_EXTERNAL)
            read_external_data(c, nrg_pb_inside(&field));
        else if (field.number == T_RAW && field.wire == NRG_PB_BYTES) {
            c->raw = field;
            c->is_raw = true;
        }
    }
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

static int64_t bytes_of(const struct contents *c)
{
    unsigned bits = nrg_dtype_bits(c->dtype);
    int64_t total;
    if (c->is_external && c->length >= 0)
        return c->length;
    if (!bits || c->numel < 0 || __builtin_mul_overflow(c->numel, (int64_t)bits, &total))
        return -1;
    return total / 8 + (total % 8 != 0);
}

int onnx_tensor(struct onnx *x, struct nrg_pb msg, struct onnx_tensor *out)
{
    struct contents c = {.msg = msg, .length = -1};
    int64_t dims[ONNX_MAX_RANK];
    int rank, rc;
    *out = (struct onnx_tensor){.name = {.wire = NRG_PB_BYTES, .bytes = msg.at}, .bytes = -1};
    if ((rc = read_fields(x, &c, out)) || (rc = dims_of(x, msg, T_DIMS, dims, &rank)))
        return rc;
    if (!(out->type = nrg_type_tensor(&x->model->arena, c.dtype, rank, dims)))
        return onnx_no_memory(x);
    c.numel = nrg_type_numel(out->type);
    if (c.numel == -2)
        return onnx_fail(x, msg.at, "the dimensions of tensor '%.*s' multiply to more than 63 bits",
                         (int)(out->name.size > 80 ? 80 : out->name.size), out->name.bytes);
    out->bytes = bytes_of(&c);
    return known_of(x, &c, &out->known);
}

/* SparseTensorProto: the values (whose name is the tensor's), their places, the dense dims. */
int onnx_sparse_tensor(struct onnx *x, struct nrg_pb msg, struct onnx_tensor *out)
{
    struct nrg_pb_field values;
    int64_t dims[ONNX_MAX_RANK];
    int rank, rc;
    if (!nrg_pb_find(msg, 1, &values))
        return onnx_fail(x, msg.at, "a sparse tensor has no values");
    if ((rc = onnx_tensor(x, nrg_pb_inside(&values), out)) ||
        (rc = dims_of(x, msg, 3, dims, &rank)))
        return rc;
    out->known = NULL;
    out->type = nrg_type_tensor(&x->model->arena, out->type->dtype, rank, dims);
    return out->type ? 0 : onnx_no_memory(x);
}
