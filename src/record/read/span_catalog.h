/*
 * What the span events of a recording refer to: names, tracks and paths (format.h). Loaded when
 * spans are wanted, so that opening a recording stays cheap. Recordings made before there were
 * spans have an empty one.
 *
 * Nothing in the file is trusted: rows with ids that are not positive, and paths whose parent is
 * not an earlier path, are left out.
 *
 * Ownership: load, release. Errors: a negative errno, with the reason in err. Threads: one at a
 * time.
 */
#ifndef NRG_RECORD_READ_SPAN_CATALOG_H
#define NRG_RECORD_READ_SPAN_CATALOG_H

#include "record/read/recording.h"

struct nrg_span_catalog {
    struct nrg_span_name *names; /* sorted by id */
    size_t n_names, cap_names;
    struct nrg_span_track *tracks;
    size_t n_tracks, cap_tracks;
    struct nrg_span_path *paths;
    size_t n_paths, cap_paths;
};

/* Counters and marks alone do not count as spans. */
bool nrg_recording_has_spans(struct nrg_recording *recording);

int nrg_span_catalog_load(struct nrg_span_catalog *catalog, struct nrg_recording *recording,
                          struct nrg_error *err);
void nrg_span_catalog_release(struct nrg_span_catalog *catalog);

/* NULL when there is none of that id. */
const struct nrg_span_name *nrg_span_catalog_name(const struct nrg_span_catalog *, int64_t id);
const struct nrg_span_track *nrg_span_catalog_track(const struct nrg_span_catalog *, int64_t id);
const struct nrg_span_path *nrg_span_catalog_path(const struct nrg_span_catalog *, int64_t id);

#endif
