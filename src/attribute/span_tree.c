/* See span_tree.h. Open addressing, at most half full; nodes are never removed. */
#include "attribute/span_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sensors/channel.h"

#define FIRST_SLOTS 256

int nrg_span_tree_init(struct nrg_span_tree *t)
{
    *t = (struct nrg_span_tree){.n_slots = FIRST_SLOTS};
    t->slots = calloc(t->n_slots, sizeof *t->slots);
    if (!t->slots || nrg_reserve(&t->nodes, &t->cap, 1, sizeof *t->nodes)) {
        nrg_span_tree_release(t);
        return -ENOMEM;
    }
    t->nodes[0] = (struct nrg_span_node){.number = NRG_MISSING, .name = UINT32_MAX};
    t->n = 1;
    return 0;
}

void nrg_span_tree_release(struct nrg_span_tree *t)
{
    free(t->nodes);
    free(t->slots);
    *t = (struct nrg_span_tree){0};
}

static size_t hash(uint32_t parent, uint32_t name, int64_t number)
{
    uint64_t h = (uint64_t)parent << 32 | name;
    h = (h ^ (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
    return (size_t)(h ^ h >> 32);
}

static uint32_t *slot_of(const struct nrg_span_tree *t, uint32_t parent, uint32_t name,
                         int64_t number)
{
    size_t at = hash(parent, name, number) & (t->n_slots - 1);
    while (t->slots[at]) {
        const struct nrg_span_node *node = &t->nodes[t->slots[at] - 1];
        if (node->parent == parent && node->name == name && node->number == number)
            break;
        at = (at + 1) & (t->n_slots - 1);
    }
    return &t->slots[at];
}

static int grow(struct nrg_span_tree *t)
{
    uint32_t *old = t->slots;
    t->slots = calloc(2 * t->n_slots, sizeof *t->slots);
    if (!t->slots) {
        t->slots = old;
        return -ENOMEM;
    }
    t->n_slots *= 2;
    for (size_t i = 1; i < t->n; i++) {
        const struct nrg_span_node *node = &t->nodes[i];
        *slot_of(t, node->parent, node->name, node->number) = (uint32_t)i + 1;
    }
    free(old);
    return 0;
}

int64_t nrg_span_tree_child(struct nrg_span_tree *t, uint32_t parent, uint32_t name, int64_t number)
{
    uint32_t *slot = slot_of(t, parent, name, number);
    if (*slot)
        return *slot - 1;
    if (t->n >= NRG_TREE_NODES || t->nodes[parent].depth >= NRG_TREE_DEPTH) {
        t->folded++;
        return parent;
    }
    if (2 * t->n >= t->n_slots) {
        if (grow(t))
            return -ENOMEM;
        slot = slot_of(t, parent, name, number);
    }
    if (nrg_reserve(&t->nodes, &t->cap, t->n + 1, sizeof *t->nodes))
        return -ENOMEM;
    uint32_t depth = t->nodes[parent].depth + 1;
    t->nodes[t->n] = (struct nrg_span_node){parent, name, number, depth};
    *slot = (uint32_t)++t->n;
    return (int64_t)t->n - 1;
}
