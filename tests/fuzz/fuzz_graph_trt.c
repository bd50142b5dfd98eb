/* Fuzz target: the reader of TensorRT engine information, and the passes on whatever it accepts. */
#include "fuzz/fuzz_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_graph("tensorrt", data, size);
    return 0;
}
