/*
 * The model files that a recording keeps (table graph, written by nrg_store_graph), as they were
 * given. record/ does not look inside; graph/reader.h does, and `format` names the reader.
 *
 * Ownership: get, release. Errors: a negative errno, with the reason in err. Threads: one at a
 * time. Recordings made before there were graphs have none.
 */
#ifndef NRG_RECORD_READ_GRAPH_H
#define NRG_RECORD_READ_GRAPH_H

#include "record/read/recording.h"

struct nrg_recorded_graph {
    char name[256];  /* of the file */
    char format[48]; /* as of `nrg graph --format`; "": not known */
    void *bytes;
    size_t size;
};

size_t nrg_recording_graphs(struct nrg_recording *recording); /* how many */
/* The graph of that number, from 0. -ENOENT beyond the last; -EBADMSG with err when damaged. */
int nrg_recording_graph(struct nrg_recording *recording, size_t number,
                        struct nrg_recorded_graph *graph, struct nrg_error *err);
void nrg_recorded_graph_release(struct nrg_recorded_graph *graph);

#endif
