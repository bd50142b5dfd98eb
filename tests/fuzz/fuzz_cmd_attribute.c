/* Fuzz target: nrg attribute, in the views and forms that read different parts of a recording. */
#include "fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const forms[][6] = {
        {"attribute", "run.nrg", NULL},
        {"attribute", "--by", "module", "--json", "run.nrg", NULL},
        {"attribute", "--trace", "run.nrg", NULL},
        {"attribute", "--method", "regress", "--csv", "run.nrg", NULL},
        {"attribute", "--from=0.2", "--to=0.7", "--json", "run.nrg", NULL},
        {"attribute", "--by", "step", "--folded", "run.nrg", NULL},
    };
    run_on_recording(data, size, forms[0]);
    run_on_recording(data, size, forms[1 + sum_input(data, size) % 5]);
    return 0;
}
