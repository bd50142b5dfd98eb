/*
 * Values that came out of a pickle: a tree of plain data, which may be shared and cyclic. The arena
 * given to nrg_pickle_read owns them; texts point into the pickle. Any value may be of an
 * unexpected kind: the functions below accept NULL and every kind, and cannot fail.
 */
#ifndef NRG_GRAPH_TORCH_PICKLE_VALUE_H
#define NRG_GRAPH_TORCH_PICKLE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
