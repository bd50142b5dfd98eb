/*
 * Rows of a data set from measured calls and the graph of their model. The caller fills in what
 * each call of a module and each operator used, from a recording's spans. The join then makes
 *
 *   operators   of operators that were measured themselves, and of modules that are one operator
 *               (Linear: aten::linear; LSTM with the zeros that it starts from)
 *   modules     of all others whose operators are known: parts are the modules and operators below
 *               that have a row, the rest is what the others read and write
 *   the model   of the root
 *
 * A module with operators that multiply but were not measured is left out, because its rest would
 * be more than traffic. The data set notes what is left out, with the reason.
 *
 * Ownership: init, fill `of_call` and `of_op`, make rows, release; graph and tree outlive it.
 * Errors: 0, or -errno with err. Threads: one at a time.
 */
#ifndef NRG_PREDICT_DATASET_JOIN_H
#define NRG_PREDICT_DATASET_JOIN_H

#include "predict/dataset/graph_calls.h"
#include "predict/dataset/measurements.h"
#include "sensors/channel.h"

/* Sums over what was measured; per call: divided by repeats. */
struct nrg_seen {
    double energy_j, time_s;
    double repeats; /* calls; 0: not measured */
    enum nrg_provenance provenance;
    bool is_mean; /* of several operators of the module that can't be separated */
};

struct nrg_join {
    struct nrg_dataset *set;
    const struct nrg_reduced *reduced;
    const struct nrg_module_tree *tree;
    struct nrg_calls calls;
    const char *device, *model, *where; /* texts of the data set */
    struct nrg_seen *of_call;           /* one per call of `calls` */
    struct nrg_seen *of_op;             /* one per operator of the reduced graph */
    uint32_t *row_of_call, *row_of_op;  /* in the data set */
    bool *covered;                      /* per operator: another operator's row includes it */
    double batch, seq;
    struct nrg_draft draft;
};

/* `told` as for nrg_calls_make. 0, or -errno with err. */
int nrg_join_init(struct nrg_join *join, struct nrg_dataset *set, const struct nrg_reduced *reduced,
                  const struct nrg_module_tree *tree, const uint32_t *told, struct nrg_error *err);
void nrg_join_release(struct nrg_join *join);

void nrg_seen_add(struct nrg_seen *sum, const struct nrg_seen *more);

/* Adds the rows; device, model and where are set. 0, or -errno with err. */
int nrg_join_rows(struct nrg_join *join, struct nrg_error *err);

#endif
