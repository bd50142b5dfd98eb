/*
 * See measure_plan.h. Operators are matched with the graph by call, family of kinds and order,
 * because the graph and the dispatcher may name one operator differently.
 */
#include "predict/dataset/measure_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/parse.h"
#include "graph/kind_family.h"

#define MOST_NODES  1000000
#define MOST_PLACES 10000000

void nrg_plan_release(struct nrg_plan *plan)
{
    json_decref(plan->document);
    free(plan->nodes);
    free(plan->places);
    *plan = (struct nrg_plan){0};
}

/* ---- reading ---- */

static bool count_of(const json_t *number, uint32_t *out)
{
    json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;
    *out = n >= 0 && n < UINT32_MAX ? (uint32_t)n : 0;
    return n >= 0 && n < UINT32_MAX;
}

static int read_place(struct nrg_plan *plan, const json_t *place, bool is_operator)
{
    struct nrg_plan_place p = {.path = json_string_value(json_array_get(place, 0)),
                               .node = (uint32_t)plan->n};
    if (!p.path || !count_of(json_array_get(place, 1), &p.call) ||
        (is_operator && !count_of(json_array_get(place, 2), &p.order)))
        return -EBADMSG;
    if (plan->n_places >= MOST_PLACES ||
        nrg_append(&plan->places, &plan->n_places, &plan->cap_places, &p, sizeof *plan->places))
        return -ENOMEM;
    return 0;
}

static int read_node(struct nrg_plan *plan, const json_t *item)
{
    const char *kind = json_string_value(json_object_get(item, "kind"));
    const json_t *id = json_object_get(item, "id"), *places = json_object_get(item, "places");
    struct nrg_plan_node node = {.id = json_integer_value(id)};
    if (!kind || !json_is_integer(id) || !json_is_array(places))
        return -EBADMSG;
    bool is_operator = !strcmp(kind, "operator");
    if (is_operator && !(node.operator_name = json_string_value(json_object_get(item, "name"))))
        return -EBADMSG;
    int rc = 0;
    for (size_t i = 0; !rc && i < json_array_size(places); i++)
        rc = read_place(plan, json_array_get(places, i), is_operator);
    if (rc || plan->n >= MOST_NODES ||
        nrg_append(&plan->nodes, &plan->n, &plan->cap, &node, sizeof *plan->nodes))
        return rc ? rc : -ENOMEM;
    return 0;
}

int nrg_plan_read(struct nrg_plan *plan, const char *text, const char *where, struct nrg_error *err)
{
    json_error_t why;
    *plan = (struct nrg_plan){.document = json_loads(text, 0, &why)};
    const char *schema = json_string_value(json_object_get(plan->document, "schema"));
    const json_t *nodes = json_object_get(plan->document, "nodes");
    plan->model = json_string_value(json_object_get(plan->document, "model"));
    int rc = schema && !strcmp(schema, "nrg.measure/1") && plan->model && json_is_array(nodes)
                 ? 0
                 : -EBADMSG;
    for (size_t i = 0; !rc && i < json_array_size(nodes); i++)
        rc = read_node(plan, json_array_get(nodes, i));
    if (!rc)
        return 0;
    nrg_plan_release(plan);
    return nrg_fail(err, rc, where,
                    rc == -ENOMEM ? "out of memory"
                                  : "its note 'measure' is not what nrg.torch.measure writes "
                                    "(nrg.measure/1)");
}

struct nrg_plan_node *nrg_plan_find(const struct nrg_plan *plan, const char *phase)
{
    size_t len = strlen(NRG_PLAN_PHASE);
    int64_t id;
    if (strncmp(phase, NRG_PLAN_PHASE, len) != 0 ||
        nrg_parse_i64(phase + len, strlen(phase + len), &id))
        return NULL;
    if (id >= 0 && (uint64_t)id < plan->n && plan->nodes[id].id == id) /* the usual order */
        return &plan->nodes[id];
    for (size_t i = 0; i < plan->n; i++)
        if (plan->nodes[i].id == id)
            return &plan->nodes[i];
    return NULL;
}

void nrg_plan_calls(const struct nrg_plan *plan, const struct nrg_module_tree *tree, uint32_t *told)
{
    const json_t *calls = json_object_get(plan->document, "calls");
    for (size_t i = 0; i < tree->n; i++)
        count_of(json_object_get(calls, tree->nodes[i].name), &told[i]);
}

/* ---- matching with a graph ---- */

struct match {
    const char *family;
    uint32_t call; /* of the join */
    uint32_t order, from;
};

static int by_place(const void *a, const void *b)
{
    const struct match *x = a, *y = b;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    int order = strcmp(x->family, y->family);
    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

/* The call of the join that a place means; NRG_NO_CALL. */
static uint32_t call_of(const struct nrg_join *j, const struct nrg_map *names,
                        const struct nrg_plan_place *place)
{
    int64_t node = nrg_map_number(names, place->path, strlen(place->path));
    if (node < 0 || place->call >= j->calls.count_of[node])
        return NRG_NO_CALL;
    return j->calls.first_of[node] + place->call;
}

/* Matches graph operators of one family in one call with those dispatched, in order. */
static int apply_group(const struct nrg_plan *plan, struct nrg_join *j, const struct match *m,
                       size_t n)
{
    const struct nrg_call *call = &j->calls.calls[m->call];
    size_t found = 0;
    for (int round = 0; round < 2; round++) {
        if (round && found != n)
            return nrg_dataset_note(j->set, j->where, -1,
                                    found ? "operators that run more or less often than the graph "
                                            "says: left out"
                                          : "operators that the graph does not have: left out");
        found = 0;
        for (size_t i = 0; i < call->n_ops; i++) {
            uint32_t op = j->calls.ops[call->first_op + i];
            if (j->calls.node_of_op[op] != call->node ||
                strcmp(nrg_kind_family(j->reduced->operators[op].kind), m->family) != 0)
                continue;
            if (round)
                j->of_op[op] = plan->nodes[m[found].from].seen;
            found++;
        }
    }
    return 0;
}

static int apply_operators(const struct nrg_plan *plan, struct nrg_join *j, struct match *m,
                           size_t n)
{
    int rc = 0;
    if (n)
        qsort(m, n, sizeof *m, by_place);
    for (size_t i = 0, end; !rc && i < n; i = end) {
        for (end = i + 1;
             end < n && m[end].call == m[i].call && !strcmp(m[end].family, m[i].family);)
            end++;
        rc = apply_group(plan, j, m + i, end - i);
    }
    return rc;
}

/* Applies the places of modules, and collects those of operators. */
static int apply_modules(const struct nrg_plan *plan, struct nrg_join *j,
                         const struct nrg_map *names, struct match *matches, size_t *n)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < plan->n_places; i++) {
        const struct nrg_plan_place *place = &plan->places[i];
        const struct nrg_plan_node *node = &plan->nodes[place->node];
        uint32_t call = call_of(j, names, place);
        bool measured = node->seen.repeats > 0; /* false after an interruption */
        if (call == NRG_NO_CALL && measured)
            rc = nrg_dataset_note(j->set, j->where, -1,
                                  "nodes without operators in the graph: left out");
        else if (call != NRG_NO_CALL && node->operator_name)
            matches[(*n)++] = (struct match){.family = nrg_kind_family(node->operator_name),
                                             .call = call,
                                             .order = place->order,
                                             .from = place->node};
        else if (measured)
            j->of_call[call] = node->seen;
    }
    return rc;
}

int nrg_plan_apply(const struct nrg_plan *plan, struct nrg_join *j)
{
    struct nrg_map names = {0};
    struct match *matches = nrg_calloc(plan->n_places + 1, sizeof *matches);
    size_t n = 0;
    int rc = matches ? nrg_module_tree_index(j->tree, &names) : -ENOMEM;
    if (!rc)
        rc = apply_modules(plan, j, &names, matches, &n);
    if (!rc)
        rc = apply_operators(plan, j, matches, n);
    nrg_map_release(&names);
    free(matches);
    return rc;
}
