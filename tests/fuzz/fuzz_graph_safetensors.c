/* Fuzz target: safetensors headers. What is read must be released without a leak. */
#include <stddef.h>
#include <stdint.h>

#include "graph/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_source source = {.bytes = data, .size = size, .name = "fuzz"};
    struct nrg_model model;
    struct nrg_error err;
    if (!nrg_model_read_bytes(&source, "safetensors", &model, &err))
        nrg_model_release(&model);
    return 0;
}
