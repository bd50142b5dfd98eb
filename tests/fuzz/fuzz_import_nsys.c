/*
 * Fuzz target: databases of nsys export, their bytes as they would lie on disk. Opened from memory;
 * what a file may cost is the target of recordings (fuzz_recording.c).
 */
#include <sqlite3.h>

#include "fuzz_layers.h"
#include "import/layers/nsys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES ((size_t)1 << 18)

static void read_database(sqlite3 *db)
{
    const struct nrg_import_join_options options = {.idle_w = NAN};
    struct nrg_import_layers file = {.path = "fuzz"};
    struct nrg_layer_import im = {.options = &options, .file = &file, .sink = nrg_span_sink_new()};
    struct nrg_error err = {0};
    int rc = im.sink ? nrg_nsys_read(&im, db, &err) : 0;
    if (rc && !err.what[0])
        abort();
    if (!rc && im.sink)
        fuzz_walk(im.sink);
    nrg_layer_import_release(&im);
    free(file.notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sqlite3 *db = NULL;
    unsigned char *copy = size && size <= MAX_BYTES ? sqlite3_malloc64(size) : NULL;
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (size > 20 && copy[18] == 2) /* the log's mode can't be had in memory */
        copy[18] = copy[19] = 1;
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_deserialize(db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) ==
            SQLITE_OK)
        read_database(db);
    sqlite3_close(db);
    return 0;
}
