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
#ifndef NRG_GRAPH_PICKLE_H
#define NRG_GRAPH_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define NRG_PKL_FACTOR 256

enum nrg_pkl_kind {
    NRG_PKL_NONE,
    NRG_PKL_BOOL,
    NRG_PKL_INT,
    NRG_PKL_BIGINT, /* more than 64 bits: not kept */
    NRG_PKL_FLOAT,
    NRG_PKL_TEXT, /* s, n bytes, UTF-8 not checked */
    NRG_PKL_BYTES,
    NRG_PKL_LIST,      /* items; sets as well */
    NRG_PKL_TUPLE,     /* items */
    NRG_PKL_DICT,      /* items: key, value, key, value… */
    NRG_PKL_GLOBAL,    /* s: "module.name" */
    NRG_PKL_OBJECT,    /* callee(args), then state; items when it was filled like a dict or list */
    NRG_PKL_PERSISTENT /* args: the id */
};

struct nrg_pkl {
    enum nrg_pkl_kind kind;
    bool seen; /* for the walker */
    size_t n, cap;
    union {
        int64_t i;
        double f;
        const char *s;
        struct nrg_pkl **items;
    };
    struct nrg_pkl *callee, *args, *state;
};

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

/* NULL-safe looks at values. */
bool nrg_pkl_is_text(const struct nrg_pkl *v, const char *text);
/* The name of an object's callee, or "". */
const char *nrg_pkl_callee(const struct nrg_pkl *v);
/* The i-th item of a tuple or list, or NULL. */
const struct nrg_pkl *nrg_pkl_item(const struct nrg_pkl *v, size_t i);
/* The value of a text key in a dict (or an object filled like one), or NULL. */
struct nrg_pkl *nrg_pkl_get(const struct nrg_pkl *v, const char *key);
/* True for dicts and objects filled like one (OrderedDict). */
bool nrg_pkl_is_dict(const struct nrg_pkl *v);

#endif
