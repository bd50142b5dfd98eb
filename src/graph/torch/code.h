/*
 * The class declarations in a TorchScript archive's code/ folder: which attributes of a class are
 * parameters and which are buffers, and whether it is a module at all. Files are read when the
 * first of their classes is asked for, and parsed once. Only the declarations are looked at.
 * Owns what it reads; the archive must outlive it. Results are 0 or a negative errno; one thread.
 */
#ifndef NRG_GRAPH_TORCH_CODE_H
#define NRG_GRAPH_TORCH_CODE_H

#include <stdbool.h>

#include "base/map.h"
#include "graph/torch/zip.h"

struct nrg_torch_class {
    const char *name; /* mangled, as in the pickle */
    bool is_module;
    const char *params, *buffers; /* the text between [ and ], or NULL */
    size_t params_len, buffers_len;
};

struct nrg_torch_code {
    struct nrg_zip *zip;
    struct nrg_arena arena;
    struct nrg_torch_class *classes;
    size_t n, cap;
    struct nrg_map by_name, files;
};

void nrg_torch_code_init(struct nrg_torch_code *code, struct nrg_zip *zip);
void nrg_torch_code_release(struct nrg_torch_code *code);

/* *class is valid until the next call; NULL when the archive does not have it. 0 or -errno. */
int nrg_torch_code_find(struct nrg_torch_code *code, const char *name,
                        const struct nrg_torch_class **class, struct nrg_error *err);

/* True when the list has `attribute` in quotes. */
bool nrg_torch_code_lists(const char *list, size_t len, const char *attribute, size_t attr_len);

#endif
