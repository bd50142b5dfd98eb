/*
 * For export/ and picture/: an attribution as other profilers see a program. Frames are the names
 * that rows have, each once; a stack is a row with all that it stands in; what belongs to no span
 * (idle, other processes, unattributed) has stacks of its own, so that all of them add up to the
 * machine. And the spans themselves.
 *
 * Spans are kept in memory, 32 bytes each; beyond NRG_STACKS_MOST_SPANS they are left out and
 * counted. Those of one track nest, also where some were left out.
 *
 * Load, use, release, also after load failed. Texts belong to the stacks. 0 or -errno with err.
 */
#ifndef NRG_REPORT_EXPORT_STACKS_H
#define NRG_REPORT_EXPORT_STACKS_H

#include <stdio.h>

#include "attribute/attribution.h"
#include "attribute/time_buckets.h"
#include "base/map.h"
#include "base/mem.h"
#include "record/read/span_catalog.h"

#define NRG_STACKS_MOST_SPANS ((size_t)1 << 21)

struct nrg_stack_span {
    int64_t begin_ns, end_ns; /* from the begin of the first run */
    uint32_t row;
    uint32_t track; /* of the catalog */
    uint32_t depth; /* in its track; those around it have less */
};

enum nrg_stack_rest { NRG_REST_IDLE, NRG_REST_OTHERS, NRG_REST_UNATTRIBUTED, NRG_RESTS };

struct nrg_stacks {
    const struct nrg_attribution *attribution; /* by path, with buckets */
    struct nrg_map frames;                     /* names, by number from 1 */
    uint32_t *frame_of_row;                    /* number of the frame */
    uint32_t frame_of_rest[NRG_RESTS];
    struct nrg_span_catalog catalog;
    struct nrg_stack_span *spans; /* by track, begin and depth */
    size_t n_spans, cap_spans;
    uint64_t left_out;
};

/* What was recorded, for a title: its command, cut to fit. */
enum { NRG_EXPORT_NAME = 512 };
void nrg_export_name(const struct nrg_recording *recording, char name[NRG_EXPORT_NAME]);

int nrg_stacks_load(struct nrg_stacks *stacks, struct nrg_recording *recording,
                    const struct nrg_attribution *attribution, struct nrg_error *err);
void nrg_stacks_release(struct nrg_stacks *stacks);

/* Energy of a bucket that belongs to no span, over all domains. */
double nrg_stacks_rest_j(const struct nrg_stacks *stacks, enum nrg_stack_rest rest, size_t bucket);
/* A row's own energy in a bucket, over all domains. */
double nrg_stacks_row_j(const struct nrg_stacks *stacks, size_t row, size_t bucket);

/* Writes the frames' names as JSON strings with commas between, each between the two texts. */
void nrg_stacks_put_frames(const struct nrg_stacks *stacks, const char *before, const char *after,
                           FILE *out);
/* Where the spans of the track end whose first span is that one. */
size_t nrg_stacks_track_end(const struct nrg_stacks *stacks, size_t first);
/* What a track is called: its name, or its kind and thread. Replaces *name. */
int nrg_stacks_track_name(const struct nrg_stacks *stacks, size_t track, struct nrg_str *name);

#endif
