/* `nrg run --graph FILE`: the model of the run, read and counted before the run begins. */
#ifndef NRG_CLI_RUN_GRAPH_H
#define NRG_CLI_RUN_GRAPH_H

#include "base/error.h"
#include "base/mem.h"
#include "graph/module_tree.h"
#include "record/sampler/recorder.h"

struct nrg_run_graph {
    const char *path;
    const char *format; /* the reader's name */
    struct nrg_str bytes;
    struct nrg_totals totals;
    bool has_graph; /* else parameters only */
};

/* `params` NULL: none. 0 or -errno with err; release in any case. */
int nrg_run_graph_read(struct nrg_run_graph *graph, const char *path, const char *params,
                       struct nrg_error *err);
int nrg_run_graph_store(const struct nrg_run_graph *graph, struct nrg_recorder *recorder,
                        struct nrg_error *err);
/* Once the recorder has begun it takes no more counts: the graph alone, in which readers count. */
int nrg_run_graph_store_late(const struct nrg_run_graph *graph, struct nrg_recorder *recorder,
                             struct nrg_error *err);
void nrg_run_graph_release(struct nrg_run_graph *graph);

#endif
