/* Fuzz target: nrg import --into a recording with its log and journal, and the result's table. */
#include "fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char layers[] = "{\"traceEvents\": [{\"name\": \"a\", \"ph\": \"X\", \"ts\": 1, "
                                 "\"dur\": 5, \"pid\": 1, \"tid\": 1}]}";
    struct beside_before before;
    lay_recording(data, size);
    write_file("layers.json", (const uint8_t *)layers, sizeof layers - 1);
    note_recording(&before);
    run_nrg((const char *const[]){"import", "layers.json", "--into", "run.nrg", "-o", "out.nrg",
                                  "--offset", "0", NULL});
    run_nrg((const char *const[]){"attribute", "out.nrg", NULL});
    check_recording(&before);
    leave_recording();
    return 0;
}
