/* Fuzz target: the reader of ONNX models, and the passes on whatever it accepts. */
#include "fuzz/fuzz_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_graph("onnx", data, size);
    return 0;
}
