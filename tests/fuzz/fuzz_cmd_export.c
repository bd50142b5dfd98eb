/* Fuzz target: nrg export, one of its formats by the input. Rows of a minute: a hostile recording
 * can last so long that shorter ones are a hundred million, which is allowed. */
#include "fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const forms[][6] = {
        {"export", "run.nrg", NULL},
        {"export", "--wide", "1min", "run.nrg", NULL},
        {"export", "--format", "json", "run.nrg", NULL},
        {"export", "--processes", "run.nrg", NULL},
        {"export", "--format", "firefox", "run.nrg", NULL},
        {"export", "--format", "speedscope", "run.nrg", NULL},
    };
    run_on_recording(data, size, forms[sum_input(data, size) % (sizeof forms / sizeof *forms)]);
    return 0;
}
