/* Fuzz targets of whole recordings, their bytes as they would lie on disk: opens one, calls back.
 */
#ifndef NRG_FUZZ_RECORDING_H
#define NRG_FUZZ_RECORDING_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "record/read/recording.h"
#include "record/store/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES ((size_t)1 << 18)

static int fuzz_recording(const uint8_t *data, size_t size, void (*use)(struct nrg_recording *))
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
        !nrg_guard_check_schema(db, "fuzz", &err) &&
        !nrg_recording_from_database(db, "fuzz", &recording, &err)) {
        use(recording);
        nrg_recording_close(recording);
    }
    sqlite3_close(db);
    return 0;
}

#endif
