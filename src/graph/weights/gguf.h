/*
 * The key-value pairs at the head of a GGUF file, for those who want to know what the model is and
 * not only what its tensors are.
 *
 * Texts point into the file's bytes and are not terminated. Errors: 0, or -errno with err. Threads:
 * nothing is shared.
 */
#ifndef NRG_GRAPH_WEIGHTS_GGUF_H
#define NRG_GRAPH_WEIGHTS_GGUF_H

#include "graph/reader.h"

struct nrg_gguf_value {
    const char *key, *text; /* text NULL: a number or an array */
    size_t key_len, text_len;
    double number;       /* of an array its largest; NAN: no number */
    uint64_t n, nonzero; /* of an array: elements, and numbers that are not 0; else 1 */
};

/* Calls `visit` for each pair in order; one that returns non-zero ends it with that. */
int nrg_gguf_metadata(const struct nrg_source *source,
                      int (*visit)(void *arg, const struct nrg_gguf_value *value), void *arg,
                      struct nrg_error *err);

#endif
