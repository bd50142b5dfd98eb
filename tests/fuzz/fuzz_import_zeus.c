/* Fuzz target: logs of Zeus. See fuzz_import_aipm.c; the corpus makes the difference. */
#include <stddef.h>
#include <stdint.h>

#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(data, size);
    return 0;
}
