/*
 * A model, analysed: read, brought to another size where that is asked for, reduced, costed, with
 * its tree of modules and its totals. Everything that looks into models starts here.
 *
 * An analysis owns all its parts; they point at each other, so it is not to be copied. The models
 * in the options must outlive it. Functions return 0, or -errno with err and nothing to release;
 * `name` is filled in any case, for messages. Not thread-safe.
 */
#ifndef NRG_GRAPH_ANALYSIS_H
#define NRG_GRAPH_ANALYSIS_H

#include <limits.h>

#include "graph/module_tree.h"
#include "graph/reader.h"
#include "graph/resize.h"

/* All zero: format by content, the file's own sizes, nrg's convention. */
struct nrg_analysis_options {
    const char *format;             /* NULL: by content */
    const struct nrg_model *params; /* gives the shapes of parameters; NULL: none */
    const struct nrg_model *trace;  /* the model at another size, for `sizes`; NULL: none */
    const struct nrg_size *sizes;
    size_t n_sizes;
    enum nrg_convention convention;
    bool want_graph; /* a file without a graph is an error: -ENODATA */
};

struct nrg_analysis {
    char name[PATH_MAX]; /* of the file; "stdin" */
    struct nrg_model model;
    bool has_graph; /* false: parameters only, and `reduced` is empty */
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    struct nrg_totals totals;
    enum nrg_convention convention; /* of the costs */
};

/* From a file; "-" is stdin. */
int nrg_analyse(struct nrg_analysis *analysis, const char *path,
                const struct nrg_analysis_options *options, struct nrg_error *err);
/* From the content of a file. The bytes may go afterwards. */
int nrg_analyse_bytes(struct nrg_analysis *analysis, const struct nrg_source *source,
                      const struct nrg_analysis_options *options, struct nrg_error *err);
/* An analysis that is all zero is fine, too. */
void nrg_analysis_release(struct nrg_analysis *analysis);

/*
 * A model for the options' `params`. Where the file lists no parameters but has a graph, they are
 * those of the graph. 0, or -errno with err and nothing to release.
 */
int nrg_params_read(struct nrg_model *params, const char *path, struct nrg_error *err);

#endif
