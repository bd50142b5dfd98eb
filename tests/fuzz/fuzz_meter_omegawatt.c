/* Fuzz target: the decoder of OmegaWatt frames, with any number of inputs; see fuzz_meter.h. */
#include "fuzz_meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_decoder(&nrg_decoder_omegawatt, data, size);
}
