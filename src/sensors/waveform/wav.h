/*
 * The header of a WAV stream, read as its bytes come. Nothing in it is trusted: chunks of any size
 * are skipped, never stored; rates, channels and widths are checked. A recorder that did not know
 * the length when it began wrote 0 or a huge one: that means "until the stream ends".
 * PCM of 8 to 32 bits and floats of 32 and 64, plain or extensible, RIFF and RF64. Plain data,
 * nothing to release, one thread; a bad header is the state NRG_WAV_BAD, not an errno.
 */
#ifndef NRG_SENSORS_WAVEFORM_WAV_H
#define NRG_SENSORS_WAVEFORM_WAV_H

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
    unsigned have, unit; /* unit: bytes of the last complete header, still in head */
    uint64_t left;       /* bytes of this chunk that are still to come */
    bool endless, have_format;
    double rate_hz;
    struct nrg_sample_frame frame;
    const char *why; /* for NRG_WAV_BAD */
};

void nrg_wav_begin(struct nrg_wav *wav);
/*
 * Reads headers from the front of the bytes; returns how many bytes it used. In NRG_WAV_DATA it
 * uses none: the caller takes samples and reports them with nrg_wav_took.
 */
size_t nrg_wav_feed(struct nrg_wav *wav, const uint8_t *bytes, size_t n);
/* How many of n bytes are samples. */
size_t nrg_wav_samples(const struct nrg_wav *wav, size_t n);
void nrg_wav_took(struct nrg_wav *wav, size_t n);

#endif
