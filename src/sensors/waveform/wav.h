/*
 * The header of a WAV stream, read as its bytes come. Nothing in it is trusted: sizes of chunks
 * are skipped, never stored; rates, channels and widths are checked; a length of the samples that
 * a recorder could not know when it began (0 or near the end of its range) means "until it ends".
 * PCM of 8 to 32 bits and floats of 32 and 64, plain or extensible, RIFF and RF64.
 */
#ifndef NRG_SENSORS_WAVE_WAV_H
#define NRG_SENSORS_WAVE_WAV_H

#include "sensors/waveform/format.h"

struct nrg_wav {
    enum {
        NRG_WAV_RIFF,
        NRG_WAV_CHUNK,
        NRG_WAV_FORMAT,
        NRG_WAV_SKIP,
        NRG_WAV_DATA,
        NRG_WAV_BAD
    } at;
    uint8_t head[40];
    unsigned have, unit; /* unit: bytes of the last header that was whole, still in head */
    uint64_t left;       /* bytes of this chunk */
    bool endless, have_format;
    double rate_hz;
    struct nrg_sample_frame frame;
    const char *why; /* of NRG_WAV_BAD */
};

void nrg_wav_begin(struct nrg_wav *wav);
/*
 * Takes what belongs to headers from the front of the bytes: how many. In NRG_WAV_DATA it takes
 * none: the caller takes samples and says so with nrg_wav_took.
 */
size_t nrg_wav_feed(struct nrg_wav *wav, const uint8_t *bytes, size_t n);
/* How many of n bytes are samples. */
size_t nrg_wav_samples(const struct nrg_wav *wav, size_t n);
void nrg_wav_took(struct nrg_wav *wav, size_t n);

#endif
