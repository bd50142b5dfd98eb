/*
 * Fuzz target: the header of WAV streams, whole and in pieces: both must find the same samples,
 * and a format that was accepted fits its frame.
 */
#include <stdlib.h>
#include <string.h>

#include "sensors/waveform/wav.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t samples_of(struct nrg_wav *wav, const uint8_t *data, size_t size, size_t piece)
{
    size_t found = 0;
    nrg_wav_begin(wav);
    for (size_t at = 0; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece, done = 0;
        while (done < n && wav->at != NRG_WAV_BAD) {
            done += nrg_wav_feed(wav, data + at + done, n - done);
            size_t samples = nrg_wav_samples(wav, n - done);
            nrg_wav_took(wav, samples);
            done += samples;
            found += samples;
        }
        if (done > n)
            abort();
    }
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_wav whole, cut;
    size_t a = samples_of(&whole, data, size, size + 1);
    size_t b = samples_of(&cut, data, size, 1 + size % 5);
    if (a != b || a > size || whole.at != cut.at)
        abort();
    if (whole.have_format && (!whole.frame.n || whole.frame.bytes > NRG_FRAME_BYTES))
        abort();
    if ((whole.at == NRG_WAV_BAD) != (whole.why != NULL))
        abort();
    return 0;
}
