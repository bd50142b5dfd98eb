/*
 * Fuzz target: the waveform meter with any URI: WAV, CSV, plain and industrial I/O samples; see
 * fuzz_meter.h.
 */
#include "fuzz_meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_decoder(&nrg_decoder_waveform, data, size);
}
