/* Fuzz target: the reader of model_summary.json, and the passes on whatever it accepts. */
#include "fuzz/fuzz_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_graph("model-summary", data, size);
    return 0;
}
