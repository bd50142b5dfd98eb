/*
 * Readers of model files: a const struct each, one line in reader.c. A reader gets the whole
 * file as bytes (mapped or read) and its name; it never executes anything from it, checks every
 * count and offset before use, and allocates only in the model's arena (whose limit is set from
 * the file's size).
 */
#ifndef NRG_GRAPH_READER_H
#define NRG_GRAPH_READER_H

#include "base/context.h"
#include "graph/graph.h"

struct nrg_source {
    const uint8_t *bytes;
    size_t size;
    const char *name; /* file name, for messages */
    /* The name is the path that was opened: files beside it may be read. Names of models that lie
     * in recordings are whatever somebody wrote there, and are no paths. */
    bool is_path;
};

struct nrg_reader {
    const char *name; /* "torchscript", "torchscript-archive", "onnx", … */
    const char *summary;
    /* 0: not mine; 1..100: how sure. Looks at the first bytes (and the name's ending) only. */
    int (*match)(const struct nrg_source *source);
    /*
     * Fills the model (graphs, modules, params, warnings). 0, or -errno with err naming file,
     * byte offset or line, and reason.
     */
    int (*read)(const struct nrg_source *source, struct nrg_model *model, struct nrg_error *err);
};

extern const struct nrg_reader *const nrg_readers[]; /* NULL-terminated */

/* Picks the surest reader and reads. `format` NULL: by content. "-" reads stdin. */
int nrg_model_read(const char *path, const char *format, struct nrg_model *model,
                   struct nrg_error *err);
int nrg_model_read_bytes(const struct nrg_source *source, const char *format,
                         struct nrg_model *model, struct nrg_error *err);

#endif
