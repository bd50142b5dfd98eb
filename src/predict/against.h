/*
 * A prediction compared with a recording of the same model: per module of the graph, the energy
 * that was predicted for one forward pass, and the energy of the recording's spans. A span is one
 * call, so the measured energy is that of one call times the module's calls in the graph.
 *
 * Only forward spans count, because a prediction is for one forward pass. Backward spans are summed
 * separately. Modules that only one of the two has are listed.
 *
 * Ownership: make, use while attribution, tree and prediction live, release. Errors: -ENOMEM.
 * Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_AGAINST_H
#define NRG_PREDICT_AGAINST_H

#include "attribute/attribution.h"
#include "predict/prediction.h"

enum nrg_verdict {
    NRG_VERDICT_NONE,     /* nothing to compare */
    NRG_VERDICT_INSIDE,   /* the measured energy lies in the predicted interval */
    NRG_VERDICT_OVERLAPS, /* only its own interval reaches into the predicted one */
    NRG_VERDICT_OUTSIDE,
    NRG_VERDICTS
};
extern const char *const nrg_verdict_names[NRG_VERDICTS];

struct nrg_against_row {
    double calls;                     /* of the module in one forward pass of the graph */
    uint64_t recorded_calls;          /* 0: no forward span of it */
    double measured_j, low_j, high_j; /* of `calls` calls; NAN: not known */
    double time_s;                    /* of `calls` calls */
    double error;                     /* predicted / measured - 1; NAN */
    enum nrg_method method;           /* NRG_METHOD_MIXED where rows differ */
    unsigned flags;                   /* of all its rows in the attribution */
    enum nrg_verdict verdict;
};

struct nrg_against {
    struct nrg_against_row *rows; /* one per node of the tree */
    size_t n;
    size_t *only_graph; /* nodes that ran in the graph but have no span */
    size_t n_only_graph;
    size_t *without_operators; /* nodes with spans, but no operator that costs anything */
    size_t n_without_operators;
    size_t *only_recording; /* rows of the attribution: the first of each module not in the graph */
    size_t n_only_recording;
    size_t n_matched, n_compared, verdicts[NRG_VERDICTS];
    double mean_error, median_error; /* of |error| over what was compared; NAN */
    double backward_j;               /* left out; NAN: there was none */
    uint64_t backward_calls;
    size_t other_calls; /* modules whose calls per pass differ between the two */
};

/* 0 or -ENOMEM. The attribution has rows by path. */
int nrg_against_make(struct nrg_against *out, const struct nrg_attribution *attribution,
                     const struct nrg_module_tree *tree, const struct nrg_prediction *prediction);
void nrg_against_release(struct nrg_against *against);

#endif
