/*
 * See node_sums.h. A module of one operator is that operator under another name, and has its
 * bounds. Such modules belong to the own work of the module around them: their errors cancel there
 * as those of other operators do, and what goes on between them is part of that module.
 *
 * Where only operators were measured there are no such modules: then a module is less certain than
 * the operators that it was taken from.
 */
#include "predict/node_sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

struct node {
    struct nrg_parts parts;
    double beside[NRG_MODULE_UNITS];  /* inclusive */
    double named_low_j, named_high_j; /* of the modules of one operator directly below */
    bool named;                       /* is one itself */
    double more;                      /* part of their energy that its parts may use more in it */
};

struct sums {
    struct nrg_prediction *out;
    const struct nrg_physical *model;
    const struct nrg_module_tree *tree;
    struct node *nodes;
};

static void add_beside(double sum[NRG_MODULE_UNITS], const struct nrg_work *w)
{
    for (int u = 0; u < NRG_MODULE_UNITS; u++)
        sum[u] += w->times * w->beside[u];
}

static void add_to_tree(struct sums *s, const struct nrg_placed *p, double self_j)
{
    size_t node = p->node;
    s->out->nodes[node].self_j += self_j;
    for (;;) {
        nrg_estimate_add(&s->out->nodes[node].estimate, &p->estimate, p->work.times);
        s->out->nodes[node].operators++;
        add_beside(s->nodes[node].beside, &p->work);
        if (!node)
            return;
        node = s->tree->nodes[node].parent;
    }
}

/* Marks the modules that are this operator alone, and gives them its bounds. */
static void name_operator(struct sums *s, const struct nrg_placed *p,
                          const struct nrg_estimate *bounds)
{
    struct nrg_node_estimate *nodes = s->out->nodes;
    if (p->work.is_rest || !nrg_physical_has_modules(s->model))
        return;
    for (size_t node = p->node; nodes[node].operators == 1; node = s->tree->nodes[node].parent) {
        nodes[node].estimate = p->estimate;
        nodes[node].estimate.energy_j = bounds->energy_j;
        nodes[node].estimate.low_j = bounds->low_j;
        nodes[node].estimate.high_j = bounds->high_j;
        nodes[node].self_low_j = node == p->node ? bounds->low_j : 0;
        nodes[node].self_high_j = node == p->node ? bounds->high_j : 0;
        s->nodes[node].named = true;
        if (!node)
            return;
    }
}

static void add_own_work(struct sums *s, const struct nrg_placed *p)
{
    size_t node = p->node;
    while (node && s->nodes[node].named)
        node = s->tree->nodes[node].parent;
    nrg_estimate_add(&s->nodes[node].parts.own, &p->estimate, p->work.times);
    add_beside(s->nodes[node].parts.beside, &p->work);
}

/* What of a node's own work is not in the modules of one operator below it. */
static void set_self_bounds(struct nrg_node_estimate *node, const struct node *n)
{
    node->self_low_j = fmin(node->self_j, fmax(0, n->parts.own.low_j - n->named_low_j));
    node->self_high_j = fmax(node->self_j, n->parts.own.high_j - n->named_high_j);
}

static void finish_node(struct sums *s, size_t at)
{
    struct nrg_node_estimate *node = &s->out->nodes[at];
    struct node *n = &s->nodes[at], *up = &s->nodes[s->tree->nodes[at].parent];
    enum nrg_node_level level = at ? NRG_NODE_MODULE : NRG_NODE_MODEL;
    if (!n->named) {
        nrg_physical_finish(s->model, level, n->beside, &node->estimate);
        n->parts.least_j = n->named_low_j;
        nrg_estimate_within(s->model, level, &n->parts, &node->estimate);
        set_self_bounds(node, n);
    }
    if (!at)
        return;
    if (n->named) {
        up->named_low_j += node->estimate.low_j;
        up->named_high_j += node->estimate.high_j;
    } else {
        up->parts.low_j += node->estimate.low_j;
        up->parts.high_j += node->estimate.high_j;
        up->parts.n++;
    }
}

/*
 * A whole may use more than its parts alone may. Then each of its parts may use more in it, in
 * proportion to its energy. Parents come first.
 */
static void raise_below(struct sums *s, size_t at)
{
    struct nrg_node_estimate *node = &s->out->nodes[at];
    struct node *n = &s->nodes[at];
    if (at)
        node->estimate.high_j += s->nodes[s->tree->nodes[at].parent].more * node->estimate.energy_j;
    double parts_j = n->parts.high_j + n->named_high_j + node->self_high_j;
    if (!(node->estimate.high_j > parts_j))
        return;
    n->more = (node->estimate.high_j - parts_j) / node->estimate.energy_j;
    node->self_high_j += n->more * node->self_j;
}

/* Bounds of all nodes; without an interval of the whole there is none of its own work. */
static void set_bounds(struct sums *s)
{
    for (size_t i = s->tree->n; i-- > 0;) /* children stand after their parents */
        if (s->out->nodes[i].operators)
            finish_node(s, i);
    for (size_t i = 0; i < s->tree->n; i++) {
        struct nrg_node_estimate *node = &s->out->nodes[i];
        if (isnan(node->estimate.low_j))
            node->self_low_j = node->self_high_j = NAN;
        else if (node->operators)
            raise_below(s, i);
    }
}

int nrg_sum_nodes(struct nrg_prediction *out, const struct nrg_physical *model,
                  const struct nrg_module_tree *tree, const struct nrg_placed *placed)
{
    struct sums s = {out, model, tree, nrg_calloc(tree->n + 1, sizeof *s.nodes)};
    if (!s.nodes)
        return -ENOMEM;
    for (size_t i = 0; i < out->n_operators; i++)
        if (placed[i].work.times > 0)
            add_to_tree(&s, &placed[i], out->operators[i].estimate.energy_j);
    for (size_t i = 0; i < out->n_operators; i++)
        if (placed[i].work.times > 0)
            name_operator(&s, &placed[i], &out->operators[i].estimate);
    for (size_t i = 0; i < out->n_operators; i++)
        if (placed[i].work.times > 0)
            add_own_work(&s, &placed[i]);
    set_bounds(&s);
    free(s.nodes);
    return 0;
}
