/* See waveform/wav.h. One state per place in the stream, so that any cut of it reads the same. */
#include "sensors/waveform/wav.h"

#include <string.h>

#define ENDLESS UINT32_C(0x7fff0000) /* recorders write this or more for an unknown length */

enum { TAG_PCM = 1, TAG_FLOAT = 3, TAG_EXTENSIBLE = 0xfffe };

static uint32_t read_u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_u32(const uint8_t *p)
{
    return read_u16(p) | read_u16(p + 2) << 16;
}

void nrg_wav_begin(struct nrg_wav *wav)
{
    *wav = (struct nrg_wav){.at = NRG_WAV_RIFF};
}

static void set_bad(struct nrg_wav *wav, const char *why)
{
    wav->at = NRG_WAV_BAD;
    wav->why = why;
}

static void on_riff(struct nrg_wav *wav)
{
    const uint8_t *p = wav->head;
    if ((memcmp(p, "RIFF", 4) && memcmp(p, "RF64", 4)) || memcmp(p + 8, "WAVE", 4))
        set_bad(wav, "no WAV header; for other samples say format=");
    else
        wav->at = NRG_WAV_CHUNK;
}

/* Chunks are padded to even sizes. */
static void on_chunk(struct nrg_wav *wav)
{
    uint32_t size = read_u32(wav->head + 4);
    wav->left = (uint64_t)size + (size & 1);
    if (!memcmp(wav->head, "fmt ", 4)) {
        if (size < 16)
            set_bad(wav, "the WAV header's format is too short");
        else
            wav->at = NRG_WAV_FORMAT;
    } else if (!memcmp(wav->head, "data", 4)) {
        wav->endless = !size || size >= ENDLESS;
        wav->left = size;
        if (wav->have_format)
            wav->at = NRG_WAV_DATA;
        else
            set_bad(wav, "the WAV header has samples before their format");
    } else {
        wav->at = NRG_WAV_SKIP;
    }
}

static bool type_of(unsigned tag, unsigned bits, struct nrg_sample_type *type)
{
    *type = (struct nrg_sample_type){.bytes = (uint8_t)((bits + 7) / 8), .repeat = 1};
    type->bits = (uint8_t)(type->bytes * 8);
    type->is_float = tag == TAG_FLOAT;
    type->is_signed = bits > 8;
    if (tag == TAG_FLOAT)
        return bits == 32 || bits == 64;
    return tag == TAG_PCM && bits >= 8 && bits <= 32;
}

static void on_format(struct nrg_wav *wav, unsigned size)
{
    const uint8_t *p = wav->head;
    unsigned tag = read_u16(p), channels = read_u16(p + 2), bits = read_u16(p + 14);
    struct nrg_sample_type type;
    if (tag == TAG_EXTENSIBLE && size >= 26)
        tag = read_u16(p + 24);
    wav->have_format = false;
    wav->rate_hz = read_u32(p + 4);
    wav->frame = (struct nrg_sample_frame){0};
    const char *why =
        !type_of(tag, bits, &type) ? "the WAV's samples are neither PCM of 8 to 32 bits nor floats"
        : !channels || channels > NRG_FRAME_CHANNELS ? "the WAV header has no channels, or too many"
                                                     : NULL;
    if (why) {
        set_bad(wav, why);
        return;
    }
    for (unsigned i = 0; i < channels; i++)
        nrg_sample_frame_add(&wav->frame, &type);
    nrg_sample_frame_close(&wav->frame);
    wav->have_format = true;
    wav->at = wav->left ? NRG_WAV_SKIP : NRG_WAV_CHUNK;
}

static unsigned header_bytes(const struct nrg_wav *wav)
{
    if (wav->at == NRG_WAV_RIFF)
        return 12;
    if (wav->at == NRG_WAV_CHUNK)
        return 8;
    return wav->left < sizeof wav->head ? (unsigned)wav->left : (unsigned)sizeof wav->head;
}

static size_t collect_header(struct nrg_wav *wav, const uint8_t *bytes, size_t n)
{
    unsigned want = header_bytes(wav);
    size_t take = want - wav->have < n ? want - wav->have : n;
    memcpy(wav->head + wav->have, bytes, take);
    wav->have += (unsigned)take;
    if (wav->have < want)
        return take;
    wav->have = 0;
    wav->unit = want;
    if (wav->at == NRG_WAV_RIFF) {
        on_riff(wav);
    } else if (wav->at == NRG_WAV_CHUNK) {
        on_chunk(wav);
    } else {
        wav->left -= want;
        on_format(wav, want);
    }
    return take;
}

static size_t skip_chunk(struct nrg_wav *wav, size_t n)
{
    size_t take = wav->left < n ? (size_t)wav->left : n;
    wav->left -= take;
    if (!wav->left)
        wav->at = NRG_WAV_CHUNK;
    return take;
}

size_t nrg_wav_feed(struct nrg_wav *wav, const uint8_t *bytes, size_t n)
{
    size_t used = 0;
    while (used < n && wav->at != NRG_WAV_DATA && wav->at != NRG_WAV_BAD)
        used += wav->at == NRG_WAV_SKIP ? skip_chunk(wav, n - used)
                                        : collect_header(wav, bytes + used, n - used);
    return used;
}

size_t nrg_wav_samples(const struct nrg_wav *wav, size_t n)
{
    if (wav->at != NRG_WAV_DATA)
        return 0;
    return wav->endless || n < wav->left ? n : (size_t)wav->left;
}

void nrg_wav_took(struct nrg_wav *wav, size_t n)
{
    if (wav->at != NRG_WAV_DATA || wav->endless)
        return;
    wav->left -= n < wav->left ? n : wav->left;
    if (!wav->left)
        wav->at = NRG_WAV_CHUNK;
}
