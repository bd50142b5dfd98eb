/* Fuzz target: nrg llm report, as text and as JSON. What lies on disk stays as it was. */
#include "fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_on_recording(data, size, (const char *const[]){"llm", "report", "run.nrg", NULL});
    run_on_recording(data, size, (const char *const[]){"llm", "report", "--json", "run.nrg", NULL});
    return 0;
}
