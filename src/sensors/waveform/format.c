/*
 * See waveform/format.h. The kernel's rule for frames: every channel begins at a multiple of its
 * own size (all its repetitions), and the frame is padded to a multiple of its largest channel.
 * Plain names are packed, as sound cards and WAV files have them.
 */
#include "sensors/waveform/format.h"

#include <errno.h>
#include <string.h>

struct text {
    const char *at, *end;
};

static bool skip_word(struct text *t, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len))
        return false;
    t->at += len;
    return true;
}

/* Up to three digits; -1 when there is none. */
static int read_digits(struct text *t)
{
    int value = -1;
    for (int i = 0; i < 3 && t->at < t->end && *t->at >= '0' && *t->at <= '9'; i++, t->at++)
        value = (value < 0 ? 0 : value) * 10 + (*t->at - '0');
    return value;
}

/* Checks the numbers, for both kinds of names, and sets them. */
static int set_layout(struct nrg_sample_type *type, int bits, int storage, int shift, int repeat)
{
    if (storage < 8 || storage > 64 || storage % 8 || bits < 1 || shift < 0 ||
        bits + shift > storage || repeat < 1 || repeat > 8)
        return -EINVAL;
    if (type->is_float && bits != 32 && bits != 64)
        return -EINVAL;
    type->bytes = (uint8_t)(storage / 8);
    type->bits = (uint8_t)bits;
    type->shift = (uint8_t)shift;
    type->repeat = (uint8_t)repeat;
    return 0;
}

/* s12/16>>4, s16/16X2>>0; "le:" or "be:" is behind us. */
static int parse_kernel(struct text *t, struct nrg_sample_type *type)
{
    type->kernel = true;
    type->is_signed = skip_word(t, "s");
    if (!type->is_signed && !skip_word(t, "u"))
        return -EINVAL;
    int bits = read_digits(t), shift = 0, repeat = 1;
    int storage = skip_word(t, "/") ? read_digits(t) : -1;
    if (skip_word(t, "X"))
        repeat = read_digits(t);
    if (skip_word(t, ">>"))
        shift = read_digits(t);
    return t->at == t->end ? set_layout(type, bits, storage, shift, repeat) : -EINVAL;
}

static int parse_plain(struct text *t, struct nrg_sample_type *type)
{
    type->is_float = skip_word(t, "f");
    type->is_signed = !type->is_float && skip_word(t, "s");
    if (!type->is_float && !type->is_signed && !skip_word(t, "u"))
        return -EINVAL;
    int bits = read_digits(t);
    type->big = skip_word(t, "be");
    if (!type->big && !skip_word(t, "le") && bits != 8)
        return -EINVAL;
    return t->at == t->end ? set_layout(type, bits, bits, 0, 1) : -EINVAL;
}

int nrg_sample_type_parse(const char *text, size_t len, struct nrg_sample_type *out)
{
    struct text t = {text, text + len};
    *out = (struct nrg_sample_type){0};
    if (skip_word(&t, "le:"))
        return parse_kernel(&t, out);
    out->big = skip_word(&t, "be:");
    return out->big ? parse_kernel(&t, out) : parse_plain(&t, out);
}

static double as_float(uint64_t bits, unsigned bytes)
{
    if (bytes == 4) {
        uint32_t half = (uint32_t)bits;
        float value;
        memcpy(&value, &half, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double nrg_sample_value(const struct nrg_sample_type *type, const uint8_t *bytes)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < type->bytes; i++)
        x = x << 8 | bytes[type->big ? i : type->bytes - 1u - i];
    if (type->is_float)
        return as_float(x, type->bytes);
    x >>= type->shift;
    unsigned unused = 64u - type->bits;
    x <<= unused;
    return type->is_signed ? (double)((int64_t)x >> unused) : (double)(x >> unused);
}

int nrg_sample_frame_add(struct nrg_sample_frame *frame, const struct nrg_sample_type *type)
{
    unsigned size = type->bytes * (unsigned)type->repeat;
    unsigned at = frame->bytes;
    if (type->kernel)
        at = (at + size - 1) / size * size;
    if (frame->n + type->repeat > NRG_FRAME_CHANNELS || at + size > NRG_FRAME_BYTES)
        return -ENOSPC;
    for (unsigned i = 0; i < type->repeat; i++) {
        frame->of[frame->n].type = *type;
        frame->of[frame->n++].offset = at + i * type->bytes;
    }
    frame->bytes = at + size;
    return 0;
}

void nrg_sample_frame_close(struct nrg_sample_frame *frame)
{
    unsigned largest = 1;
    for (unsigned i = 0; i < frame->n; i++) {
        const struct nrg_sample_type *type = &frame->of[i].type;
        unsigned size = type->kernel ? type->bytes * (unsigned)type->repeat : 1;
        if (size > largest)
            largest = size;
    }
    frame->bytes = (frame->bytes + largest - 1) / largest * largest;
}

static int refuse_format(struct nrg_error *err, const char *text, const char *at)
{
    return nrg_fail_at(err, -EINVAL, text, at - text + 1,
                       "format= wants wav, csv, or types of samples such as s16le, f32le, "
                       "le:s12/16>>4; at most %d channels in %d bytes",
                       NRG_FRAME_CHANNELS, NRG_FRAME_BYTES);
}

int nrg_sample_frame_parse(struct nrg_sample_frame *frame, const char *text, unsigned channels,
                           struct nrg_error *err)
{
    *frame = (struct nrg_sample_frame){0};
    bool list = strchr(text, ',') != NULL;
    for (const char *at = text;; at++) {
        struct nrg_sample_type type;
        size_t len = strcspn(at, ",");
        if (nrg_sample_type_parse(at, len, &type))
            return refuse_format(err, text, at);
        for (unsigned i = 0; i < (list ? 1 : channels); i++)
            if (nrg_sample_frame_add(frame, &type))
                return refuse_format(err, text, at);
        at += len;
        if (!*at)
            break;
    }
    if (!frame->n)
        return refuse_format(err, text, text);
    nrg_sample_frame_close(frame);
    return 0;
}
