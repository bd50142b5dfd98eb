/*
 * The executions of layers that were imported into a recording (import/join.h), in the order of
 * the file that they came from: file by file, cycle by cycle, layers as the file lists them. Rules
 * that walk over both logs once need that order, and where windows overlap time does not show it.
 *
 * Ownership: the caller frees *runs. Errors: a negative errno, with the reason in err. Threads: one
 * at a time. Names are found with span_catalog.h.
 */
#ifndef NRG_RECORD_READ_LAYER_RUNS_H
#define NRG_RECORD_READ_LAYER_RUNS_H

#include "record/read/recording.h"

struct nrg_layer_run {
    int64_t begin_ns, end_ns; /* the window that the file gives */
    int64_t duration_ns;      /* run time that the file gives; the window may be rounded */
    int64_t cycle;            /* from 1 */
    int64_t name;             /* span_name.id */
    int32_t file;             /* series: one per file */
};

int nrg_layer_runs_load(struct nrg_recording *recording, struct nrg_layer_run **runs, size_t *n,
                        struct nrg_error *err);

#endif
