/* See column.h for the format and why it is so. */
#include "record/store/column.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/mem.h"
#include "sensors/channel.h"

enum { MODE_VARINT, MODE_DELTA, MODE_DELTA2, MODE_LINE, MODES, HAS_GAPS = 0x80 };
enum { PLANE_RAW, PLANE_ZSTD, PLANE_SAME };

/* Below this many rows a plane's header costs more than it saves. */
#define FEW_ROWS        32
#define ZSTD_LEVEL      3
#define ZSTD_WINDOW_LOG 15 /* bounds the compressor's memory; planes are at most a few 10 kB */

struct nrg_codec {
    ZSTD_CCtx *cctx;
    ZSTD_DCtx *dctx;
    struct nrg_str out;
    uint64_t *zigzag; /* one column's coded differences */
    size_t cap_zigzag;
    uint8_t *plane;
    size_t cap_plane;
};

struct nrg_codec *nrg_codec_new(void)
{
    return calloc(1, sizeof(struct nrg_codec));
}

void nrg_codec_trim(struct nrg_codec *codec)
{
    ZSTD_freeCCtx(codec->cctx);
    ZSTD_freeDCtx(codec->dctx);
    nrg_str_release(&codec->out);
    free(codec->zigzag);
    free(codec->plane);
    *codec = (struct nrg_codec){0};
}

void nrg_codec_free(struct nrg_codec *codec)
{
    if (codec)
        nrg_codec_trim(codec);
    free(codec);
}

/* Differences wrap around in 64 bits, so that any two values have one. */
static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static uint64_t unzigzag(uint64_t code)
{
    return code >> 1 ^ (~(code & 1) + 1);
}

static int put_bytes(struct nrg_codec *codec, const void *bytes, size_t len)
{
    return nrg_str_add(&codec->out, bytes, len);
}

static int put_u64(struct nrg_codec *codec, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    return put_bytes(codec, bytes, 8);
}

static int put_varint(struct nrg_codec *codec, uint64_t value)
{
    uint8_t bytes[10];
    size_t len = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[len++] = (uint8_t)(value | 0x80);
    bytes[len++] = (uint8_t)value;
    return put_bytes(codec, bytes, len);
}

static int put_varints(struct nrg_codec *codec, const int64_t *v, size_t n)
{
    uint64_t last = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        rc = put_varint(codec, zigzag((uint64_t)v[i] - last));
        last = (uint64_t)v[i];
    }
    return rc;
}

/* The value that the mode expects at row i, from the rows before it. */
static uint64_t predict_value(int mode, const int64_t *v, size_t i, uint64_t first, uint64_t step)
{
    if (mode == MODE_LINE)
        return first + (uint64_t)i * step;
    if (i == 0)
        return first;
    if (mode == MODE_DELTA2 && i > 1)
        return 2 * (uint64_t)v[i - 1] - (uint64_t)v[i - 2];
    return (uint64_t)v[i - 1] + (mode == MODE_DELTA ? step : 0);
}

/* Mean step: of a counter at steady power, or of a grid of deadlines. */
static uint64_t mean_step(const int64_t *v, size_t n)
{
    if (n < 2)
        return 0;
    uint64_t range = (uint64_t)v[n - 1] - (uint64_t)v[0];
    return (uint64_t)((int64_t)range / (int64_t)(n - 1));
}

static size_t count_bits_of(uint64_t difference)
{
    return 64 - (size_t)__builtin_clzll(zigzag(difference) | 1);
}

/* The mode that takes the fewest bits, the first of equals; of two rows or more. */
static uint8_t choose_mode(const int64_t *v, size_t n, uint64_t step)
{
    uint64_t line = (uint64_t)v[0] + step, last = (uint64_t)v[1] - (uint64_t)v[0];
    size_t bits[MODES] = {[MODE_DELTA] = count_bits_of(last - step),
                          [MODE_DELTA2] = count_bits_of(last),
                          [MODE_LINE] = count_bits_of((uint64_t)v[1] - line)};
    for (size_t i = 2; i < n; i++) {
        uint64_t d = (uint64_t)v[i] - (uint64_t)v[i - 1];
        line += step;
        bits[MODE_DELTA] += count_bits_of(d - step);
        bits[MODE_DELTA2] += count_bits_of(d - last);
        bits[MODE_LINE] += count_bits_of((uint64_t)v[i] - line);
        last = d;
    }
    uint8_t best = MODE_DELTA;
    for (uint8_t m = MODE_DELTA2; m < MODES; m++)
        best = bits[m] < bits[best] ? m : best;
    return best;
}

static int put_plane(struct nrg_codec *codec, size_t n, unsigned shift)
{
    const uint64_t *codes = codec->zigzag;
    uint8_t *plane = codec->plane, differ = 0, first = (uint8_t)(codes[0] >> shift);
    for (size_t i = 0; i < n; i++) {
        plane[i] = (uint8_t)(codes[i] >> shift);
        differ |= plane[i] ^ first;
    }
    size_t at = codec->out.len, bound = ZSTD_compressBound(n);
    int rc = nrg_reserve(&codec->out.text, &codec->out.cap, at + 5 + bound + 1, 1);
    if (rc)
        return rc;
    uint8_t *head = (uint8_t *)codec->out.text + at;
    size_t len = 1;
    head[0] = PLANE_SAME;
    if (differ) {
        len = ZSTD_compress2(codec->cctx, head + 5, bound, plane, n);
        head[0] = PLANE_ZSTD;
        if (ZSTD_isError(len) || len >= n) {
            head[0] = PLANE_RAW;
            len = n;
        }
    }
    if (head[0] != PLANE_ZSTD)
        memcpy(head + 5, plane, len);
    for (int i = 0; i < 4; i++)
        head[1 + i] = (uint8_t)(len >> 8 * i);
    codec->out.len = at + 5 + len;
    return 0;
}

static int put_planes(struct nrg_codec *codec, int mode, const int64_t *v, size_t n, uint64_t step)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        codec->zigzag[i] = zigzag((uint64_t)v[i] - predict_value(mode, v, i, (uint64_t)v[0], step));
        all |= codec->zigzag[i];
    }
    uint8_t width = (uint8_t)((64 - (unsigned)__builtin_clzll(all | 1) + 7) / 8);
    int rc = put_u64(codec, (uint64_t)v[0]);
    if (!rc)
        rc = put_u64(codec, step);
    if (!rc)
        rc = put_bytes(codec, &width, 1);
    for (unsigned p = 0; !rc && p < width; p++)
        rc = put_plane(codec, n, 8 * p);
    return rc;
}

/* Moves the rows that have a value to the front of `dense`; writes the bitmap if any has none. */
static int put_presence(struct nrg_codec *codec, const int64_t *v, size_t n, int64_t *dense,
                        size_t *n_dense)
{
    size_t count = 0, at = codec->out.len;
    for (size_t i = 0; i < n; i++) {
        dense[count] = v[i];
        count += v[i] != NRG_MISSING;
    }
    *n_dense = count;
    if (count == n)
        return 0;
    int rc = nrg_reserve(&codec->out.text, &codec->out.cap, at + (n + 7) / 8 + 1, 1);
    if (rc)
        return rc;
    uint8_t *bitmap = (uint8_t *)codec->out.text + at;
    memset(bitmap, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++)
        bitmap[i / 8] = (uint8_t)(bitmap[i / 8] | (v[i] != NRG_MISSING) << i % 8);
    codec->out.len = at + (n + 7) / 8;
    return 0;
}

static int put_column(struct nrg_codec *codec, const int64_t *v, size_t n, int64_t *dense)
{
    size_t mode_at = codec->out.len, n_dense;
    uint8_t mode = MODE_VARINT;
    int rc = put_bytes(codec, &mode, 1);
    if (!rc)
        rc = put_presence(codec, v, n, dense, &n_dense);
    if (rc)
        return rc;
    uint64_t step = mean_step(dense, n_dense);
    if (n_dense > FEW_ROWS)
        mode = choose_mode(dense, n_dense, step);
    codec->out.text[mode_at] = (char)(mode | (n_dense < n ? HAS_GAPS : 0));
    return mode == MODE_VARINT ? put_varints(codec, dense, n_dense)
                               : put_planes(codec, mode, dense, n_dense, step);
}

static int reserve_buffers(struct nrg_codec *codec, size_t n)
{
    int rc = nrg_reserve(&codec->zigzag, &codec->cap_zigzag, n + 1, 2 * sizeof *codec->zigzag);
    return rc ? rc : nrg_reserve(&codec->plane, &codec->cap_plane, n + 1, 1);
}

static int prepare_encoder(struct nrg_codec *codec, size_t n)
{
    int rc = reserve_buffers(codec, n);
    if (!rc && !codec->cctx) {
        codec->cctx = ZSTD_createCCtx();
        if (!codec->cctx)
            return -ENOMEM;
        ZSTD_CCtx_setParameter(codec->cctx, ZSTD_c_compressionLevel, ZSTD_LEVEL);
        ZSTD_CCtx_setParameter(codec->cctx, ZSTD_c_windowLog, ZSTD_WINDOW_LOG);
        ZSTD_CCtx_setParameter(codec->cctx, ZSTD_c_contentSizeFlag, 0);
    }
    return rc;
}

int nrg_columns_encode(struct nrg_codec *codec, const int64_t *const *columns, size_t n_columns,
                       size_t n, const uint8_t **bytes, size_t *len)
{
    int rc = n > NRG_CHUNK_MAX_ROWS ? -EINVAL : prepare_encoder(codec, n);
    codec->out.len = 0;
    /* The second half of the buffer holds the values that are present. */
    int64_t *dense = rc ? NULL : (int64_t *)(codec->zigzag + codec->cap_zigzag);
    for (size_t c = 0; !rc && c < n_columns; c++)
        rc = put_column(codec, columns[c], n, dense);
    *bytes = (const uint8_t *)codec->out.text;
    *len = codec->out.len;
    return rc;
}

struct input {
    const uint8_t *p, *end;
};

static const uint8_t *take_bytes(struct input *in, size_t len)
{
    if ((size_t)(in->end - in->p) < len)
        return NULL;
    const uint8_t *at = in->p;
    in->p += len;
    return at;
}

static int take_u64(struct input *in, unsigned len, uint64_t *value)
{
    const uint8_t *p = take_bytes(in, len);
    if (!p)
        return -EBADMSG;
    *value = 0;
    for (unsigned i = 0; i < len; i++)
        *value |= (uint64_t)p[i] << 8 * i;
    return 0;
}

static int take_varints(struct input *in, int64_t *out, size_t n)
{
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t code = 0;
        for (unsigned shift = 0;; shift += 7) {
            const uint8_t *p = take_bytes(in, 1);
            if (!p || shift > 63)
                return -EBADMSG;
            code |= (uint64_t)(*p & 0x7f) << shift;
            if (!(*p & 0x80))
                break;
        }
        last += unzigzag(code);
        out[i] = (int64_t)last;
    }
    return 0;
}

static int take_plane(struct nrg_codec *codec, struct input *in, size_t n)
{
    uint64_t kind, len;
    const uint8_t *bytes;
    if (take_u64(in, 1, &kind) || take_u64(in, 4, &len) || !(bytes = take_bytes(in, (size_t)len)))
        return -EBADMSG;
    if (kind == PLANE_SAME && len == 1) {
        memset(codec->plane, bytes[0], n);
        return 0;
    }
    if (kind == PLANE_RAW && len == n) {
        memcpy(codec->plane, bytes, n);
        return 0;
    }
    if (kind != PLANE_ZSTD ||
        ZSTD_decompressDCtx(codec->dctx, codec->plane, n, bytes, (size_t)len) != n)
        return -EBADMSG;
    return 0;
}

static int take_planes(struct nrg_codec *codec, struct input *in, int mode, int64_t *out, size_t n)
{
    uint64_t first, step, width;
    if (take_u64(in, 8, &first) || take_u64(in, 8, &step) || take_u64(in, 1, &width) || width > 8)
        return -EBADMSG;
    memset(codec->zigzag, 0, n * sizeof *codec->zigzag);
    for (unsigned p = 0; p < width; p++) {
        int rc = take_plane(codec, in, n);
        if (rc)
            return rc;
        for (size_t i = 0; i < n; i++)
            codec->zigzag[i] |= (uint64_t)codec->plane[i] << 8 * p;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (int64_t)(predict_value(mode, out, i, first, step) + unzigzag(codec->zigzag[i]));
    return 0;
}

static size_t count_bits(const uint8_t *bitmap, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += bitmap[i / 8] >> i % 8 & 1;
    return count;
}

static int take_column(struct nrg_codec *codec, struct input *in, int64_t *out, size_t n)
{
    uint64_t mode;
    const uint8_t *bitmap = NULL;
    if (take_u64(in, 1, &mode))
        return -EBADMSG;
    if (mode & HAS_GAPS && !(bitmap = take_bytes(in, (n + 7) / 8)))
        return -EBADMSG;
    size_t n_dense = bitmap ? count_bits(bitmap, n) : n;
    mode &= HAS_GAPS - 1;
    if (mode >= MODES)
        return -EBADMSG;
    int rc = mode == MODE_VARINT ? take_varints(in, out, n_dense)
                                 : take_planes(codec, in, (int)mode, out, n_dense);
    if (rc || !bitmap)
        return rc;
    /* Spread out from the back: the source index never overtakes the target. */
    for (size_t i = n; i-- > 0;)
        out[i] = bitmap[i / 8] >> i % 8 & 1 ? out[--n_dense] : NRG_MISSING;
    return 0;
}

int nrg_columns_decode(struct nrg_codec *codec, const uint8_t *bytes, size_t len,
                       int64_t *const *columns, size_t n_columns, size_t n)
{
    if (n > NRG_CHUNK_MAX_ROWS || !len) /* an empty value has no bytes to point at */
        return -EBADMSG;
    struct input in = {bytes, bytes + len};
    int rc = reserve_buffers(codec, n);
    if (!rc && !codec->dctx && !(codec->dctx = ZSTD_createDCtx()))
        rc = -ENOMEM;
    for (size_t c = 0; !rc && c < n_columns; c++)
        rc = take_column(codec, &in, columns[c], n);
    return rc ? rc : in.p == in.end ? 0 : -EBADMSG;
}
