/* See span_tree.h. Nodes are never removed. */
#include "attribute/span_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sensors/channel.h"

int nrg_span_tree_init(struct nrg_span_tree *t)
{
    const struct nrg_span_node top = {.number = NRG_MISSING, .name = UINT32_MAX};
    *t = (struct nrg_span_tree){0};
    return nrg_append(&t->nodes, &t->n, &t->cap, &top, sizeof top);
}

void nrg_span_tree_release(struct nrg_span_tree *t)
{
    free(t->nodes);
    nrg_index_release(&t->index);
    *t = (struct nrg_span_tree){0};
}

static int64_t find_child(const struct nrg_span_tree *t, uint32_t hash, uint32_t parent,
                          uint32_t name, int64_t number)
{
    uint32_t i;
    for (size_t at = hash; (i = nrg_index_next(&t->index, hash, &at));) {
        const struct nrg_span_node *node = &t->nodes[i];
        if (node->parent == parent && node->name == name && node->number == number)
            return i;
    }
    return -1;
}

int64_t nrg_span_tree_child(struct nrg_span_tree *t, uint32_t parent, uint32_t name, int64_t number)
{
    if (nrg_index_reserve(&t->index))
        return -ENOMEM;
    uint64_t key[2] = {(uint64_t)parent << 32 | name, (uint64_t)number};
    uint32_t hash = (uint32_t)nrg_hash(t->index.seed, key, sizeof key);
    int64_t known = find_child(t, hash, parent, name, number);
    if (known >= 0)
        return known;
    if (t->n >= NRG_TREE_NODES || t->nodes[parent].depth >= NRG_TREE_DEPTH) {
        t->folded++;
        return parent;
    }
    const struct nrg_span_node node = {parent, name, number, t->nodes[parent].depth + 1};
    if (nrg_append(&t->nodes, &t->n, &t->cap, &node, sizeof node))
        return -ENOMEM;
    nrg_index_add(&t->index, hash, (uint32_t)t->n - 1);
    return (int64_t)t->n - 1;
}
