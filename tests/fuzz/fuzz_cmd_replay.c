/* Fuzz target: a recording played back as a sensor, twice over. */
#include "fuzz_mutate.h"

#include "record/read/replay.h"
#include "sensors/virtual/replay_source.h"

#define MAX_ROWS 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_replay_source *source;
    struct nrg_error err;
    static struct nrg_replay_row row;
    struct beside_before before;
    lay_recording(data, size);
    note_recording(&before);
    if (!nrg_replay_recording_open(&source, "run.nrg", &err)) {
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < MAX_ROWS && source->next(source, &row) > 0; i++)
                ;
            source->rewind(source);
        }
        source->close(source);
    }
    check_recording(&before);
    leave_recording();
    return 0;
}
