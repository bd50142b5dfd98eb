/* See pickle_value.h. */
#include "graph/torch/pickle_value.h"

#include <string.h>

bool nrg_pkl_is_text(const struct nrg_pkl *v, const char *text)
{
    size_t len = strlen(text);
    return v && v->kind == NRG_PKL_TEXT && v->n == len && !memcmp(v->s, text, len);
}

const char *nrg_pkl_callee(const struct nrg_pkl *v)
{
    bool named = v && v->kind == NRG_PKL_OBJECT && v->callee->kind == NRG_PKL_GLOBAL;
    return named ? v->callee->s : "";
}

const struct nrg_pkl *nrg_pkl_item(const struct nrg_pkl *v, size_t i)
{
    bool there = v && (v->kind == NRG_PKL_TUPLE || v->kind == NRG_PKL_LIST) && i < v->n;
    return there ? v->items[i] : NULL;
}

/* A pickle may also fill a plain list into an object: an odd count is not a dict. */
bool nrg_pkl_is_dict(const struct nrg_pkl *v)
{
    return v &&
           (v->kind == NRG_PKL_DICT || (v->kind == NRG_PKL_OBJECT && v->n % 2 == 0 &&
                                        (!strcmp(nrg_pkl_callee(v), "collections.OrderedDict") ||
                                         !strcmp(nrg_pkl_callee(v), "collections.defaultdict"))));
}

struct nrg_pkl *nrg_pkl_get(const struct nrg_pkl *v, const char *key)
{
    for (size_t i = 0; nrg_pkl_is_dict(v) && i + 1 < v->n; i += 2)
        if (nrg_pkl_is_text(v->items[i], key))
            return v->items[i + 1];
    return NULL;
}
