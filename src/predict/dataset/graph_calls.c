/* See graph_calls.h. Operators that never run (a branch that is not taken) are in no call. */
#include "predict/dataset/graph_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/graph_work.h"

void nrg_calls_release(struct nrg_calls *c)
{
    free(c->calls);
    free(c->ops);
    free(c->first_of);
    free(c->count_of);
    free(c->node_of_op);
    *c = (struct nrg_calls){0};
}

static int find_nodes(struct nrg_calls *c, const struct nrg_reduced *g,
                      const struct nrg_module_tree *tree)
{
    struct nrg_map names = {0};
    int rc = nrg_module_tree_index(tree, &names);
    for (size_t i = 0; !rc && i < g->n_operators; i++)
        c->node_of_op[i] = nrg_work_node(&names, &g->operators[i]);
    nrg_map_release(&names);
    return rc;
}

/* Appends a subtree's operators to `ops`. Returns how many, or -ENOMEM. */
static int64_t add_subtree(struct nrg_calls *c, const struct nrg_reduced *g,
                           const struct nrg_module_tree *tree, size_t node)
{
    size_t first = c->n_ops;
    for (size_t i = 0; i < g->n_operators; i++) {
        uint32_t at = c->node_of_op[i];
        if (!g->operators[i].times || at < node || at >= node + tree->nodes[node].size)
            continue;
        if (nrg_append(&c->ops, &c->n_ops, &c->cap_ops, &(uint32_t){(uint32_t)i}, sizeof *c->ops))
            return -ENOMEM;
    }
    return (int64_t)(c->n_ops - first);
}

/* Whether the runs have the same modules and kinds in the same order. */
static bool are_alike(const struct nrg_calls *c, const struct nrg_reduced *g, size_t first,
                      size_t n, size_t calls)
{
    size_t width = n / calls;
    if (n % calls)
        return false;
    for (size_t i = width; i < n; i++) {
        uint32_t a = c->ops[first + i % width], b = c->ops[first + i];
        if (c->node_of_op[a] != c->node_of_op[b] ||
            strcmp(g->operators[a].kind, g->operators[b].kind) != 0)
            return false;
    }
    return true;
}

static uint32_t calls_of(const struct nrg_module_tree *tree, const uint32_t *told, size_t node)
{
    if (!node)
        return 1;
    if (told && told[node])
        return told[node];
    if (!tree->calls_known)
        return 1;
    return tree->nodes[node].calls < UINT32_MAX ? (uint32_t)tree->nodes[node].calls : 0;
}

bool nrg_call_has(const struct nrg_calls *c, size_t call, uint32_t op)
{
    size_t low = c->calls[call].first_op, high = low + c->calls[call].n_ops;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->ops[middle] == op)
            return true;
        *(c->ops[middle] < op ? &low : &high) = c->ops[middle] < op ? middle + 1 : middle;
    }
    return false;
}

/* The call above that holds this one's operators; modules without calls are skipped. */
static uint32_t parent_of(const struct nrg_calls *c, const struct nrg_module_tree *tree,
                          const struct nrg_call *call)
{
    uint32_t node = call->node;
    while (node) {
        node = tree->nodes[node].parent;
        for (uint32_t i = 0; i < c->count_of[node]; i++)
            if (nrg_call_has(c, c->first_of[node] + i, c->ops[call->first_op]))
                return c->first_of[node] + i;
    }
    return NRG_NO_CALL;
}

static int add_calls(struct nrg_calls *c, const struct nrg_reduced *g,
                     const struct nrg_module_tree *tree, size_t node, uint32_t times)
{
    size_t first = c->n_ops;
    int64_t n = times && tree->nodes[node].operators ? add_subtree(c, g, tree, node) : 0;
    if (n <= 0)
        return (int)n;
    bool apart = are_alike(c, g, first, (size_t)n, times);
    uint32_t made = apart ? times : 1;
    if (nrg_reserve(&c->calls, &c->cap, c->n + made, sizeof *c->calls))
        return -ENOMEM;
    c->first_of[node] = (uint32_t)c->n;
    for (uint32_t i = 0; i < made; i++) {
        struct nrg_call *call = &c->calls[c->n];
        *call = (struct nrg_call){.node = (uint32_t)node,
                                  .together = apart ? 1 : times,
                                  .parent = NRG_NO_CALL,
                                  .first_op = first + i * ((size_t)n / made),
                                  .n_ops = (size_t)n / made};
        call->parent = parent_of(c, tree, call);
        c->count_of[node] = i + 1;
        c->n++;
    }
    return 0;
}

int nrg_calls_make(struct nrg_calls *c, const struct nrg_reduced *g,
                   const struct nrg_module_tree *tree, const uint32_t *told)
{
    *c = (struct nrg_calls){.first_of = nrg_calloc(tree->n + 1, sizeof *c->first_of),
                            .count_of = nrg_calloc(tree->n + 1, sizeof *c->count_of),
                            .node_of_op = nrg_calloc(g->n_operators + 1, sizeof *c->node_of_op)};
    int rc = c->first_of && c->count_of && c->node_of_op ? find_nodes(c, g, tree) : -ENOMEM;
    for (size_t i = 0; !rc && i < tree->n; i++)
        rc = add_calls(c, g, tree, i, calls_of(tree, told, i));
    if (rc)
        nrg_calls_release(c);
    return rc;
}
