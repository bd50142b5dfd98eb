/*
 * Fuzz target: a whole recording, its bytes as they would lie on disk, up to the report. No
 * matter what it holds, the report is made or refused, and its JSON can be written.
 */
#include <stdlib.h>

#include "energy/summary.h"
#include "fuzz/fuzz_recording.h"
#include "report/run/report.h"

static void report(struct nrg_recording *recording)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    for (size_t i = 0; i < n && i < 2; i++) {
        struct nrg_summary summary;
        struct nrg_error err;
        if (nrg_summary_make(&summary, recording, &runs[i], NRG_SPLIT_ACTIVE, &err))
            continue;
        struct nrg_report r = {.recording = recording, .runs = &summary, .n_runs = 1};
        json_t *json = nrg_report_json(&r);
        free(json_dumps(json, 0));
        json_decref(json);
        nrg_summary_release(&summary);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_recording(data, size, report);
}
