/*
 * See module_tree.h. Names are collected first (each with all its parents), then sorted into the
 * order of a walk, then costs and parameters are added to their module and all above it.
 *
 * Calls: graphs that call modules give them exactly. In an inlined graph each call of a module
 * repeats the operators of its scope, so the calls are the greatest common divisor of how often
 * each (kind, source line) of the scope stands there; a module that runs nothing itself has that
 * of its children.
 */
#include "graph/module_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "graph/param_list.h"

struct name {
    const char *path;
    const char *class_name;
    uint32_t parent, first_child, last_child, next; /* 0: none (the root is no child) */
    uint32_t at;                                    /* place in the walk */
    size_t calls;                                   /* where the graph has calls */
};

struct builder {
    struct nrg_module_tree *tree;
    struct name *names;
    size_t n, cap;
    struct nrg_map index; /* path -> number + 1 */
    int rc;
};

static const char *last_part(const char *text, char separator)
{
    const char *at = strrchr(text, separator);
    return at ? at + 1 : text;
}

static uint32_t add_name(struct builder *b, const char *path);

/* Adds what is above the last part of a path; its number. */
static uint32_t add_parent(struct builder *b, const char *path)
{
    const char *dot = strrchr(path, '.');
    const char *up = dot ? nrg_arena_copy(&b->tree->arena, path, (size_t)(dot - path)) : "";
    if (!up)
        b->rc = -ENOMEM;
    return up ? add_name(b, up) : 0;
}

/* Adds the path and all above it; its number. */
static uint32_t add_name(struct builder *b, const char *path)
{
    size_t have = (size_t)(uintptr_t)nrg_map_get(&b->index, path);
    if (have || b->rc)
        return have ? (uint32_t)(have - 1) : 0;
    struct name name = {.path = path, .class_name = "", .parent = *path ? add_parent(b, path) : 0};
    uint32_t me = (uint32_t)b->n;
    if (b->rc || nrg_append(&b->names, &b->n, &b->cap, &name, sizeof name) ||
        nrg_map_set(&b->index, path, (void *)(uintptr_t)b->n)) {
        b->rc = -ENOMEM;
        return 0;
    }
    if (me) {
        struct name *above = &b->names[name.parent];
        if (above->last_child)
            b->names[above->last_child].next = me;
        else
            above->first_child = me;
        above->last_child = me;
    }
    return me;
}

static void add_modules(struct builder *b, const struct nrg_model *model)
{
    for (size_t i = 0; model && i < model->n_modules && !b->rc; i++) {
        uint32_t at = add_name(b, model->modules[i].name);
        if (model->modules[i].class_name && !b->rc)
            b->names[at].class_name = last_part(model->modules[i].class_name, '.');
    }
}

static void add_graph_modules(struct builder *b, const struct nrg_reduced *g)
{
    for (size_t i = 0; i < g->n_dropped && !b->rc; i++)
        if (g->dropped[i].op->module)
            add_name(b, g->dropped[i].op->module);
    for (size_t i = 0; i < g->n_operators && !b->rc; i++)
        if (g->operators[i].module)
            add_name(b, g->operators[i].module);
    for (size_t i = 0; i < g->n_modules && !b->rc; i++) {
        uint32_t at = add_name(b, g->modules[i].path);
        if (b->rc)
            return;
        if (!b->names[at].class_name[0])
            b->names[at].class_name = g->modules[i].class_name;
        b->names[at].calls = g->modules[i].calls;
    }
}

/* Places the nodes in the order of a walk, without recursion: names can be deep. */
static void place_nodes(struct builder *b)
{
    struct nrg_module_tree *tree = b->tree;
    uint32_t at = 0;
    tree->nodes = nrg_calloc(b->n, sizeof *tree->nodes);
    if (!tree->nodes) {
        b->rc = -ENOMEM;
        return;
    }
    for (;;) {
        struct name *name = &b->names[at];
        struct nrg_tree_node *node = &tree->nodes[tree->n];
        name->at = (uint32_t)tree->n++;
        const struct name *above = &b->names[name->parent];
        *node = (struct nrg_tree_node){.name = name->path,
                                       .local = last_part(name->path, '.'),
                                       .class_name = name->class_name,
                                       .parent = above->at,
                                       .depth = at ? tree->nodes[above->at].depth + 1 : 0,
                                       .size = 1,
                                       .calls = name->calls,
                                       .repeats = 1};
        if (name->first_child) {
            at = name->first_child;
            continue;
        }
        while (at && !b->names[at].next)
            at = b->names[at].parent;
        if (!at)
            return;
        at = b->names[at].next;
    }
}

static struct nrg_tree_node *node_of(struct builder *b, const char *path)
{
    size_t at = path ? (size_t)(uintptr_t)nrg_map_get(&b->index, path) : 0;
    return &b->tree->nodes[at ? b->names[at - 1].at : 0];
}

/* ---- costs ---- */

static void add_costs(struct builder *b, const struct nrg_reduced *g)
{
    struct nrg_tree_node *nodes = b->tree->nodes;
    for (size_t i = 0; i < g->n_operators; i++) {
        const struct nrg_operator *op = &g->operators[i];
        struct nrg_tree_node *node = node_of(b, op->module);
        nrg_cost_sum(&node->self, op);
        for (;; node = &nodes[node->parent]) {
            nrg_cost_sum(&node->cost, op);
            node->operators++;
            node->unknown_operators += nrg_operator_unknown(op);
            if (node == nodes)
                break;
        }
    }
}

/* The last tensor that a module, or anything in it, made. */
static void add_outputs(struct builder *b, const struct nrg_reduced *g)
{
    struct nrg_tree_node *nodes = b->tree->nodes;
    for (size_t i = 0; i < g->n_dropped; i++) {
        const struct nrg_op *op = g->dropped[i].op;
        const struct nrg_type *type = op->n_outputs ? op->outputs[0]->type : NULL;
        if (!op->module || !type || type->kind != NRG_T_TENSOR || type->rank < 0 ||
            g->dropped[i].rule == NRG_DROP_CONSTANT || g->dropped[i].rule == NRG_DROP_SHAPE ||
            g->dropped[i].rule == NRG_DROP_GETATTR || g->dropped[i].rule == NRG_DROP_PROPERTY)
            continue;
        for (struct nrg_tree_node *node = node_of(b, op->module);; node = &nodes[node->parent]) {
            node->output = type;
            if (node == nodes)
                break;
        }
    }
    if (g->n_outputs && g->outputs[0].type->kind == NRG_T_TENSOR && g->outputs[0].type->rank >= 0)
        nodes[0].output = g->outputs[0].type;
}

static bool is_below(const struct nrg_module_tree *tree, size_t at, size_t above)
{
    return at >= above && at < above + tree->nodes[above].size;
}

/* True when an earlier parameter of the same storage is counted in the subtree `above` already. */
static bool is_counted(struct builder *b, const struct nrg_param_list *list, const uint32_t *owners,
                       size_t i, size_t above)
{
    if (list->entries[i].same_as < 0)
        return false;
    for (size_t k = (size_t)list->entries[i].same_as; k < i; k++)
        if ((k == (size_t)list->entries[i].same_as ||
             list->entries[k].same_as == list->entries[i].same_as) &&
            is_below(b->tree, b->names[owners[k]].at, above))
            return true;
    return false;
}

static void add_to(int64_t *sum, int64_t more)
{
    *sum = nrg_cost_sum_of(*sum, more);
}

static void add_params(struct builder *b, const struct nrg_param_list *list, const uint32_t *owners)
{
    struct nrg_tree_node *nodes = b->tree->nodes;
    for (size_t i = 0; i < list->n; i++) {
        const struct nrg_param_entry *e = &list->entries[i];
        size_t own = b->names[owners[i]].at;
        for (size_t at = own;; at = nodes[at].parent) {
            struct nrg_tree_node *node = &nodes[at];
            bool again = is_counted(b, list, owners, i, at);
            node->unsized_params += !again && e->bytes < 0;
            if (!again && e->numel < 0) {
                node->unknown_params += !e->is_buffer;
            } else if (!again) {
                add_to(&node->params, e->is_buffer ? 0 : e->numel);
                add_to(&node->params_self, at == own && !e->is_buffer ? e->numel : 0);
                add_to(&node->trainable, e->trainable ? e->numel : 0);
                add_to(&node->buffers, e->is_buffer ? e->numel : 0);
                add_to(&node->param_bytes, e->bytes > 0 ? e->bytes : 0);
            }
            if (!at)
                break;
        }
    }
}

/* ---- calls ---- */

static size_t gcd(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct group {
    const char *module;
    size_t count;
};

static struct group *group_of(struct builder *b, struct nrg_map *groups, const struct nrg_op *op)
{
    char key[600];
    snprintf(key, sizeof key, "%s|%s|%s", op->module, op->kind, op->source ? op->source : "");
    struct group *group = nrg_map_get(groups, key);
    if (group)
        return group;
    char *copy = nrg_arena_copy(&b->tree->arena, key, strlen(key));
    group = nrg_arena_alloc(&b->tree->arena, sizeof *group);
    if (!copy || !group || nrg_map_set(groups, copy, group)) {
        b->rc = -ENOMEM;
        return NULL;
    }
    group->module = op->module;
    return group;
}

/* These only hold modules and are never called. */
static bool is_list(const char *class_name)
{
    return !strcmp(class_name, "ModuleList") || !strcmp(class_name, "ModuleDict");
}

static void guess_calls(struct builder *b, const struct nrg_reduced *g)
{
    struct nrg_map groups = {0};
    struct nrg_tree_node *nodes = b->tree->nodes;
    bool told = false;
    for (size_t i = 0; i < b->tree->n; i++)
        told |= nodes[i].calls > 0;
    for (size_t i = 0; !told && !b->rc && i < g->n_dropped; i++) {
        const struct nrg_op *op = g->dropped[i].op;
        struct group *group = op->module ? group_of(b, &groups, op) : NULL;
        if (group)
            group->count++;
    }
    for (size_t i = 0; i < groups.n; i++) {
        const struct group *group = groups.entries[i].data;
        struct nrg_tree_node *node = node_of(b, group->module);
        node->calls = gcd(node->calls, group->count);
    }
    b->tree->calls_told = told;
    b->tree->calls_known = told || groups.n;
    /* Children stand behind their parents. */
    for (size_t i = b->tree->n; !told && i-- > 1;) {
        if (nodes[i].calls)
            nodes[nodes[i].parent].calls = gcd(nodes[nodes[i].parent].calls, nodes[i].calls);
        if (is_list(nodes[i].class_name))
            nodes[i].calls = 0;
    }
    nodes[0].calls = 1;
    nrg_map_release(&groups);
}

/* ---- repeats ---- */

static uint64_t mix_hash(uint64_t h, uint64_t more)
{
    h ^= more + UINT64_C(0x9e3779b97f4a7c15) + (h << 6) + (h >> 2);
    return h * UINT64_C(1099511628211);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = mix_hash(h, (uint8_t)*text);
    return mix_hash(h, 1);
}

static void sign_nodes(struct nrg_module_tree *tree)
{
    for (size_t i = tree->n; i-- > 0;) {
        struct nrg_tree_node *node = &tree->nodes[i];
        uint64_t h = mix_text(UINT64_C(14695981039346656037), node->class_name);
        h = mix_hash(h, (uint64_t)node->cost.macs);
        h = mix_hash(h, (uint64_t)node->cost.flops);
        h = mix_hash(h, (uint64_t)node->params);
        h = mix_hash(h, node->operators);
        uint64_t below = 0; /* a sum: siblings may first appear in another order */
        for (size_t c = i + 1; c < i + node->size; c += tree->nodes[c].size)
            below += mix_hash(mix_text(0, tree->nodes[c].local), tree->nodes[c].signature);
        node->signature = mix_hash(h, below);
    }
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* Numbered siblings in a row that are alike. */
static void fold_siblings(struct nrg_module_tree *tree)
{
    for (size_t i = 1; i < tree->n; i++) {
        struct nrg_tree_node *first = &tree->nodes[i];
        if (!first->repeats || !is_number(first->local))
            continue;
        for (size_t c = i + first->size; c < tree->n; c += tree->nodes[c].size) {
            struct nrg_tree_node *next = &tree->nodes[c];
            if (next->parent != first->parent || next->signature != first->signature ||
                !is_number(next->local))
                break;
            first->repeats++;
            next->repeats = 0;
        }
    }
}

static void measure_subtrees(struct nrg_module_tree *tree)
{
    for (size_t i = tree->n; i-- > 1;)
        tree->nodes[tree->nodes[i].parent].size += tree->nodes[i].size;
}

int nrg_module_tree_make(struct nrg_module_tree *tree, const struct nrg_model *model,
                         const struct nrg_reduced *reduced, const struct nrg_model *params)
{
    struct nrg_param_list list;
    struct builder b = {.tree = tree};
    *tree = (struct nrg_module_tree){0};
    b.rc = nrg_param_list_make(&list, model, reduced, params);
    uint32_t *owners = b.rc ? NULL : nrg_calloc(list.n + 1, sizeof *owners);
    if (!owners) {
        nrg_param_list_release(&list);
        return -ENOMEM;
    }
    add_name(&b, "");
    add_modules(&b, params);
    add_modules(&b, model);
    if (reduced)
        add_graph_modules(&b, reduced);
    for (size_t i = 0; i < list.n && !b.rc; i++)
        owners[i] = add_parent(&b, list.entries[i].path);
    if (!b.rc)
        place_nodes(&b);
    if (!b.rc) {
        measure_subtrees(tree);
        add_params(&b, &list, owners);
        if (reduced) {
            add_costs(&b, reduced);
            add_outputs(&b, reduced);
            guess_calls(&b, reduced);
        }
        sign_nodes(tree);
        fold_siblings(tree);
    }
    tree->n_params = list.n;
    free(owners);
    free(b.names);
    nrg_map_release(&b.index);
    nrg_param_list_release(&list);
    if (b.rc)
        nrg_module_tree_release(tree);
    return b.rc;
}

void nrg_module_tree_release(struct nrg_module_tree *tree)
{
    free(tree->nodes);
    nrg_arena_release(&tree->arena);
    *tree = (struct nrg_module_tree){0};
}

int nrg_module_tree_index(const struct nrg_module_tree *tree, struct nrg_map *numbers)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < tree->n; i++)
        rc = nrg_map_put(numbers, tree->nodes[i].name, strlen(tree->nodes[i].name), (int64_t)i);
    return rc;
}
