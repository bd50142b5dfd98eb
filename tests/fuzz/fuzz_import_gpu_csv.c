/* Fuzz target: tables of nsys stats and rocprofv3. See fuzz_layers.h; the corpus makes the
 * difference. */
#include <stddef.h>
#include <stdint.h>

#include "fuzz_layers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_layers(data, size);
    return 0;
}
