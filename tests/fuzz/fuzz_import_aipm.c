/*
 * Fuzz target: AIPowerMeter's JSON lines. Whatever the bytes, the importer ends with a reason or
 * with records in order of time.
 */
#include <stddef.h>
#include <stdint.h>

#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(data, size);
    return 0;
}
