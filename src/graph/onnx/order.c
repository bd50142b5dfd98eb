/*
 * See internal.h: puts a block's operators in an order in which every value is made before it
 * is read. Files are nearly always sorted already, which one pass finds out; otherwise Kahn's
 * algorithm, taking operators in file order where the data leaves a choice. What an operator's
 * nested blocks read counts as read by it. Operators that remain wait for each other: a cycle,
 * refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/onnx/internal.h"

struct order {
    struct onnx *x;
    struct nrg_block *block;
    size_t *waits;     /* by position: operators that must come first */
    size_t *first_use; /* by position: index into edges, a list that ends with SIZE_MAX */
    struct edge {
        size_t user, next;
    } * edges;
    size_t n_edges, cap_edges;
};

typedef int visit_fn(struct order *order, size_t maker, size_t user);

/* Operators number themselves by position while they are sorted. */
static int each_need(struct order *order, const struct nrg_op *op, size_t user, visit_fn *visit)
{
    int rc = 0;
    for (size_t i = 0; i < op->n_inputs && !rc; i++) {
        const struct nrg_op *maker = op->inputs[i]->producer;
        if (maker && maker->parent == order->block)
            rc = visit(order, maker->id, user);
    }
    for (size_t b = 0; b < op->n_blocks && !rc; b++) {
        const struct nrg_block *inner = op->blocks[b];
        for (size_t i = 0; i < inner->n_ops && !rc; i++)
            rc = each_need(order, inner->ops[i], user, visit);
        for (size_t i = 0; i < inner->n_outputs && !rc; i++) {
            const struct nrg_op *maker = inner->outputs[i]->producer;
            if (maker && maker->parent == order->block)
                rc = visit(order, maker->id, user);
        }
    }
    return rc;
}

static int is_late(struct order *order, size_t maker, size_t user)
{
    return maker >= user;
}

static int add_edge(struct order *order, size_t maker, size_t user)
{
    struct edge edge = {user, order->first_use[maker]};
    order->first_use[maker] = order->n_edges;
    order->waits[user]++;
    return nrg_append(&order->edges, &order->n_edges, &order->cap_edges, &edge, sizeof edge);
}

/* A queue, not a heap of positions: the order among operators that are ready hardly matters. */
static size_t sort_ready(struct order *order, struct nrg_op **sorted)
{
    size_t n = order->block->n_ops, done = 0, looked = 0;
    size_t *ready = nrg_calloc(n + 1, sizeof *ready), n_ready = 0;
    if (!ready)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!order->waits[i])
            ready[n_ready++] = i;
    while (looked < n_ready) {
        size_t at = ready[looked++];
        sorted[done++] = order->block->ops[at];
        for (size_t e = order->first_use[at]; e != SIZE_MAX; e = order->edges[e].next)
            if (!--order->waits[order->edges[e].user])
                ready[n_ready++] = order->edges[e].user;
    }
    free(ready);
    return done;
}

static int refuse_cycle(struct order *order)
{
    for (size_t i = 0; i < order->block->n_ops; i++)
        if (order->waits[i])
            return onnx_fail(order->x, NULL, "nodes form a cycle: '%s' waits for its own result",
                             onnx_op_name(order->block->ops[i]));
    return onnx_no_memory(order->x);
}

static int sort_block(struct order *order)
{
    size_t n = order->block->n_ops;
    struct nrg_op **sorted = nrg_arena_array(&order->x->model->arena, n, sizeof(struct nrg_op *));
    order->waits = nrg_calloc(n, sizeof *order->waits);
    order->first_use = malloc(n * sizeof *order->first_use);
    int rc = sorted && order->waits && order->first_use ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && !rc; i++)
        order->first_use[i] = SIZE_MAX;
    for (size_t i = 0; i < n && !rc; i++)
        rc = each_need(order, order->block->ops[i], i, add_edge);
    if (rc)
        rc = onnx_no_memory(order->x);
    else if (sort_ready(order, sorted) < n)
        rc = refuse_cycle(order);
    else
        order->block->ops = sorted;
    free(order->waits);
    free(order->first_use);
    free(order->edges);
    return rc;
}

int onnx_order(struct onnx *x, struct nrg_block *block)
{
    struct order order = {.x = x, .block = block};
    if (block->n_ops >= UINT32_MAX)
        return onnx_fail(x, NULL, "has too many nodes");
    for (size_t i = 0; i < block->n_ops; i++)
        block->ops[i]->id = (uint32_t)i;
    for (size_t i = 0; i < block->n_ops; i++)
        if (each_need(&order, block->ops[i], i, is_late)) {
            x->reordered = true;
            return sort_block(&order);
        }
    return 0;
}
