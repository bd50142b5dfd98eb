/*
 * Fuzz target: a whole recording, its bytes as they would lie on disk, up to the report. No
 * matter what it holds, the report is made or refused, and its JSON can be written.
 */
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "energy/summary.h"
#include "record/read/recording.h"
#include "report/run/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES ((size_t)1 << 18)

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
    sqlite3 *db = NULL;
    struct nrg_recording *recording;
    struct nrg_error err;
    unsigned char *copy = size && size <= MAX_BYTES ? sqlite3_malloc64(size) : NULL;
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    /* The log's mode can't be had in memory: it says the same without. */
    if (size > 20 && copy[18] == 2)
        copy[18] = copy[19] = 1;
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_deserialize(db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) ==
            SQLITE_OK &&
        !nrg_recording_from_database(db, "fuzz", &recording, &err)) {
        report(recording);
        nrg_recording_close(recording);
    }
    sqlite3_close(db);
    return 0;
}
