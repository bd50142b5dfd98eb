/* Shared by the import targets: the whole importer on bytes, in all its modes, without an output.
 */
#ifndef NRG_TESTS_FUZZ_IMPORT_H
#define NRG_TESTS_FUZZ_IMPORT_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "import/log.h"

static inline void fuzz_import(const uint8_t *data, size_t size)
{
    for (int mode = 0; size && mode < 4; mode++) {
        const struct nrg_import_options options = {.path = "fuzz",
                                                   .idle_w = NAN,
                                                   .held = mode & 1,
                                                   .segments_are_runs = mode & 2,
                                                   .zone_offset_ns = mode * INT64_C(3600000000000)};
        struct nrg_import_result result;
        struct nrg_error err = {0};
        FILE *in = fmemopen((void *)data, size, "r");
        if (!in)
            return;
        int rc = nrg_import_stream(in, &options, &result, &err);
        fclose(in);
        /* A failure has a reason; a success has records in order of time. */
        if (rc ? !err.what[0] : !result.records || result.end_ns < result.begin_ns)
            abort();
    }
}

#endif
