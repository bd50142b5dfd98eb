/*
 * Python pickles as data: a stack machine that builds a tree of plain values and never calls,
 * imports or constructs anything. What a pickle would have called is kept as an OBJECT (callee,
 * arguments, state) for the reader to interpret; what it may name is asked of `allow`, and any
 * other global ends the reading with an error that names it.
 *
 * Protocols 2 to 5 without the text opcodes of 0 and 1, extension registry and out-of-band
 * buffers. Memory is bounded by NRG_PKL_FACTOR bytes for each byte of the pickle (at least
 * 1 MiB); memo numbers by the pickle's size. Values may be shared and cyclic: walk with a depth
 * limit and a budget. Texts are not copied: the pickle's bytes must outlive the values.
 */
#ifndef NRG_GRAPH_TORCH_PICKLE_H
#define NRG_GRAPH_TORCH_PICKLE_H

#include "base/arena.h"
#include "base/error.h"
#include "graph/torch/pickle_value.h"

#define NRG_PKL_FACTOR 256

struct nrg_pickle {
    const uint8_t *bytes;
    size_t size;
    const char *where; /* for messages */
    bool (*allow)(const char *global);
};

/*
 * Reads one pickle from *at and moves *at behind its end. Values live in the arena. 0, or -errno
 * with the byte's offset in err.
 */
int nrg_pickle_read(const struct nrg_pickle *pickle, size_t *at, struct nrg_arena *arena,
                    struct nrg_pkl **out, struct nrg_error *err);

#endif
