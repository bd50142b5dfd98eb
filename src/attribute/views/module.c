/*
 * The view of modules: "layer1.0.conv1" stands below "layer1.0", wherever it was called, with what
 * its forward and its backward used in one row. Containers that are never called themselves (a
 * ModuleList) get a row too.
 *
 * A module whose name has no dot stands below the outermost module that it was called in: the
 * model itself, which has no part in the names. What is no module (operators, the user's own
 * spans) stands below the module that it was called in, or, outside of all modules, below what
 * it was called in: steps keep what is their own, their modules are shown once. Their detail says
 * so, because a step's joules elsewhere are those of all that is inside.
 */
#include <errno.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/map.h"

#define MAX_DOTS        64 /* of a name that is taken apart */
#define WITHOUT_MODULES "without its modules"

struct modules {
    struct nrg_view *v;
    const struct nrg_engine *e;
    struct nrg_arena *arena;
    struct nrg_span_tree keys; /* a node per node of the view, with the same number */
    struct nrg_map by_name;    /* modules: node of the view */
    uint32_t *outermost;       /* per place: the outermost module that it is in; 0: none */
    uint32_t unique;
};

static bool is_module(const struct nrg_view_node *node)
{
    return !strcmp(node->kind, NRG_KIND_MODULE) || !strcmp(node->kind, NRG_KIND_BACKWARD);
}

/* A node of the view, and its key: modules have one that no place has. */
static int64_t add_node(struct modules *m, struct nrg_view_node node, uint32_t name)
{
    size_t before = m->keys.n;
    int64_t key = nrg_span_tree_child(&m->keys, node.parent, name, NRG_MISSING);
    if (key < 0 || m->keys.n == before)
        return key; /* out of memory; known already; or too deep: counts to its parent */
    return nrg_view_node(m->v, m->e, node);
}

static int64_t find_module(struct modules *m, const char *text, size_t len, const char *detail,
                           uint32_t outermost);

/* "a.b" of "a.b.c", made if need be; else the model. */
static int64_t parent_of(struct modules *m, const char *text, size_t len, uint32_t outermost)
{
    while (len > 0 && text[len - 1] != '.')
        len--;
    return len > 1 ? find_module(m, text, len - 1, "", outermost) : outermost;
}

/* Recursion goes no deeper than a name has dots, and not below MAX_DOTS. */
static int64_t find_module(struct modules *m, const char *text, size_t len, const char *detail,
                           uint32_t outermost)
{
    int64_t at = nrg_map_number(&m->by_name, text, len);
    if (at >= 0) {
        struct nrg_view_node *known = &m->v->nodes[at];
        known->detail = known->detail[0] ? known->detail : detail;
        /* A backward may be seen before it is known whose part the module is. Two that call each
         * other, each the outermost once, stay as they were seen first. */
        if (!known->parent && outermost && !nrg_view_holds(m->v, (uint32_t)at, outermost) &&
            !memchr(text, '.', len))
            known->parent = outermost;
        return at;
    }
    size_t dots = 0;
    for (size_t i = 0; i < len; i++)
        dots += text[i] == '.';
    int64_t parent = dots < MAX_DOTS ? parent_of(m, text, len, outermost) : outermost;
    const char *name = nrg_arena_copy(m->arena, text, len);
    if (parent < 0 || !name)
        return -ENOMEM;
    struct nrg_view_node node = {.name = name,
                                 .kind = NRG_KIND_MODULE,
                                 .detail = detail,
                                 .root = outermost ? m->v->nodes[outermost].name : name,
                                 .parent = (uint32_t)parent,
                                 .number = NRG_MISSING};
    at = add_node(m, node, UINT32_MAX - ++m->unique);
    if (at > 0 && at != parent && nrg_map_put(&m->by_name, name, len, at))
        return -ENOMEM;
    return at;
}

/* What is around an outermost module stays without it. */
static void mark_around(struct modules *m, size_t place)
{
    for (size_t up = place; up; up = m->e->walk.rows->nodes[up].parent) {
        struct nrg_view_node *around = &m->v->nodes[m->v->view_of[up]];
        if (around->detail[0])
            return;
        around->detail = WITHOUT_MODULES;
    }
}

static int add_place(struct modules *m, size_t place)
{
    const struct nrg_span_node *from = &m->e->walk.rows->nodes[place];
    struct nrg_view_node node = nrg_view_describe(m->e, from);
    uint32_t outermost = m->outermost[from->parent];
    int64_t at;
    if (is_module(&node)) {
        at = find_module(m, node.name, strlen(node.name), node.detail, outermost);
        m->outermost[place] = outermost ? outermost : at > 0 ? (uint32_t)at : 0;
        if (!outermost)
            mark_around(m, from->parent);
    } else {
        node.parent = m->v->view_of[from->parent];
        at = add_node(m, node, from->name);
        m->outermost[place] = outermost;
    }
    m->v->view_of[place] = at > 0 ? (uint32_t)at : 0;
    return at < 0 ? (int)at : 0;
}

int nrg_view_modules(struct nrg_view *v, const struct nrg_engine *e, struct nrg_arena *arena)
{
    struct modules m = {.v = v, .e = e, .arena = arena};
    m.outermost = nrg_arena_array(&v->memory, e->walk.rows->n + 1, sizeof *m.outermost);
    int rc = m.outermost ? nrg_span_tree_init(&m.keys) : -ENOMEM;
    for (size_t i = 1; !rc && i < e->walk.rows->n; i++)
        rc = add_place(&m, i);
    for (size_t i = 1; !rc && i < v->n; i++)
        if (!v->nodes[i].name[0])
            v->nodes[i].name = v->nodes[i].detail[0] ? v->nodes[i].detail : "(model)";
    nrg_span_tree_release(&m.keys);
    nrg_map_release(&m.by_name);
    return rc;
}
