/* A model as `nrg predict` needs it: read, at the size asked for, reduced and counted. */
#ifndef NRG_CLI_PREDICT_MODEL_H
#define NRG_CLI_PREDICT_MODEL_H

#include "graph/module_tree.h"
#include "graph/resize.h"

struct nrg_model_request {
    const char *path;  /* for messages too */
    const void *bytes; /* the file's content; NULL: it is read from path */
    size_t size;
    const char *format;             /* NULL: by content */
    const struct nrg_model *params; /* NULL: none */
    const struct nrg_model *trace;  /* NULL: none */
    const struct nrg_size *sizes;
    size_t n_sizes;
};

struct nrg_counted {
    struct nrg_model model;
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    int64_t batch;
};

/* 0, or -errno with err and nothing to release. */
int nrg_counted_read(struct nrg_counted *counted, const struct nrg_model_request *request,
                     struct nrg_error *err);
void nrg_counted_release(struct nrg_counted *counted);

#endif
