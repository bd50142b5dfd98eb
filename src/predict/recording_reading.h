/*
 * Inside the reader of recordings (dataset_recording.c): one recording that is being read, with its
 * attribution, its graph and the join that is being filled. recording_run.c knows the spans of
 * programs that ran, dataset_recording.c the rest. Functions return 0, or -errno with `err` filled.
 */
#ifndef NRG_PREDICT_RECORDING_READING_H
#define NRG_PREDICT_RECORDING_READING_H

#include "graph/nametab.h"
#include "predict/dataset/join.h"
#include "predict/dataset/internal.h"

/* A model's graph, counted; as the recording keeps it, or as given. */
struct nrg_recorded_model {
    char name[256];
    struct nrg_model model;
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    bool has_model, has_graph;
};

/* All operator spans of one kind inside of one module. */
struct nrg_kind_sum {
    const char *family;
    uint32_t node;
    double module_calls;
    size_t last_parent; /* row whose calls are in module_calls */
    struct nrg_seen seen;
};

struct nrg_reading {
    struct nrg_dataset *set;
    const struct nrg_read_options *options;
    const char *path;
    struct nrg_error *err;
    struct nrg_recording *recording;
    struct nrg_attribution a;
    bool has_attribution;
    struct nrg_recorded_model graph;
    struct nrg_join join;
    struct nrg_nametab nodes; /* of the tree, by path */
    struct nrg_kind_sum *kinds;
    size_t n_kinds, cap_kinds;
    size_t joined, foreign;
};

int nrg_reading_note(const struct nrg_reading *reading, const char *text);
int nrg_reading_no_memory(const struct nrg_reading *reading);

/* The row that this one stands in; NULL: none. */
const struct nrg_attribution_row *nrg_reading_above(const struct nrg_reading *reading,
                                                    const struct nrg_attribution_row *row);
/* NULL, or why the row's energy can't be used. */
const char *nrg_reading_unusable(const struct nrg_attribution_row *row);
struct nrg_seen nrg_reading_seen(const struct nrg_reading *reading,
                                 const struct nrg_attribution_row *row);

/* Puts the forward spans of modules, and operators in them, where they belong in the join. */
int nrg_reading_run_spans(struct nrg_reading *reading);

#endif
