/*
 * Shared by the targets of layer times: the reader on bytes in both layouts, then a walk over all
 * that it collected. Events of each track must come in order of time and nest.
 */
#ifndef NRG_TESTS_FUZZ_LAYERS_H
#define NRG_TESTS_FUZZ_LAYERS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/internal.h"
#include "import/layers/read.h"

static inline void fuzz_walk(const struct nrg_span_sink *sink)
{
    struct nrg_span_order order;
    if (nrg_span_order_make(&order, sink->records, sink->n, sink->n_descriptions))
        return;
    for (size_t track = 1; track <= sink->n_descriptions; track++) {
        struct nrg_span_nesting walk;
        struct nrg_span_nesting_event event;
        int64_t last_ns = INT64_MIN;
        size_t open = 0;
        nrg_span_nesting_init(&walk, sink->records, &order, (uint32_t)track, sink->slack_ns);
        while (nrg_span_nesting_next(&walk, &event) > 0) {
            if (event.t_ns < last_ns || (event.event == NRG_SPAN_END && !open--))
                abort();
            open += event.event == NRG_SPAN_BEGIN;
            last_ns = event.t_ns;
        }
        nrg_span_nesting_release(&walk);
    }
    nrg_span_order_release(&order);
}

static inline void fuzz_layers(const uint8_t *data, size_t size)
{
    for (int packed = 0; size && packed < 2; packed++) {
        const struct nrg_import_join_options options = {
            .idle_w = NAN, .layout = packed ? NRG_LAYOUT_PACKED : NRG_LAYOUT_RECORDED};
        struct nrg_import_layers file = {.path = "fuzz"};
        struct nrg_layer_import im = {.options = &options, .file = &file};
        struct nrg_error err = {0};
        double busy[16];
        FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
        if (!in)
            return;
        int rc = nrg_layer_import_stream(&im, in, "fuzz", &err);
        /* A failure has a reason; a success has spans. */
        if (rc ? !err.what[0] : !im.sink->n)
            abort();
        if (!rc) {
            int64_t first_ns, last_ns;
            fuzz_walk(im.sink);
            if (nrg_span_sink_extent(im.sink, &first_ns, &last_ns) || last_ns < first_ns ||
                nrg_span_sink_activity(im.sink, first_ns, 1 + (last_ns - first_ns) / 16, busy, 16))
                abort();
            for (int i = 0; i < 16; i++)
                if (!(busy[i] >= 0 && busy[i] < 1 + 1e-6))
                    abort();
        }
        nrg_layer_import_release(&im);
        free(file.notes);
        fclose(in);
    }
}

#endif
