/*
 * Fuzz target: nrg compare of a recording with a copy of itself, in all its forms. What lies on
 * disk stays as it was.
 */
#include "fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_on_recording(data, size,
                     (const char *const[]){"compare", "--force", "run.nrg", "run.nrg", "--",
                                           "run.nrg", "run.nrg", "run.nrg", NULL});
    run_on_recording(data, size,
                     (const char *const[]){"compare", "--self-check", "--json", "--html=/dev/null",
                                           "--markdown=/dev/null", "run.nrg", "run.nrg", NULL});
    return 0;
}
