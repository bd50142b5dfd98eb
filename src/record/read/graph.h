/*
 * The model files that a recording keeps (table graph, written by store_graph.c), as they were
 * given. record/ does not look inside: graph/reader.h does, with the format that stands beside.
 *
 * Get, release. Recordings made before there were graphs have none.
 */
#ifndef NRG_RECORD_RECORDING_GRAPH_H
#define NRG_RECORD_RECORDING_GRAPH_H

#include "record/read/recording.h"

struct nrg_recorded_graph {
    char name[256];  /* of the file */
    char format[48]; /* as of `nrg graph --format`; "": not told */
    void *bytes;
    size_t size;
};

/* The graph of that number, from 0. -ENOENT beyond the last; -EBADMSG with err when damaged. */
int nrg_recording_graph(struct nrg_recording *recording, size_t number,
                        struct nrg_recorded_graph *graph, struct nrg_error *err);
void nrg_recorded_graph_release(struct nrg_recorded_graph *graph);

#endif
