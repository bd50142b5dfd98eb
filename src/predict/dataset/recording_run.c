/*
 * See internal.h. Recordings of programs that ran: all forward spans of a module are calls of it,
 * wherever they are in the span tree. Operator spans are summed per module and kind, and divided by
 * the number of such operators in one call of the graph.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/module_path.h"
#include "base/mem.h"
#include "graph/kind_family.h"
#include "predict/dataset/internal.h"

#define SAMPLES_OFF 0.05 /* of the graph's batch: an epoch's last batch may be smaller */

/* The node of the tree that a module's row is a call of; -1: none. */
static int64_t node_of(struct nrg_reading *r, const struct nrg_attribution_row *row)
{
    const char *path = nrg_module_path(&r->a, row, r->graph.tree.nodes[0].class_name);
    return path ? nrg_map_number(&r->nodes, path, strlen(path)) : -1;
}

/* The samples that the program counted must be the batch that the graph was traced with. */
static int check_samples(const struct nrg_reading *r, const struct nrg_attribution_row *row)
{
    for (size_t i = 0; i < row->n_counts; i++) {
        if (strcmp(row->counts[i].name, "samples") != 0 || isnan(r->join.batch))
            continue;
        double batch = row->counts[i].amount / (double)row->calls;
        if (fabs(batch / r->join.batch - 1) > SAMPLES_OFF)
            return nrg_fail(r->err, -EINVAL, r->path,
                            "the model was called with %.4g samples at a time, its graph '%s' is "
                            "for %.4g: trace it with the same sizes",
                            batch, r->graph.name, r->join.batch);
    }
    return 0;
}

static int add_module(struct nrg_reading *r, const struct nrg_attribution_row *row)
{
    int64_t node = node_of(r, row);
    const char *why = nrg_reading_unusable(row);
    struct nrg_seen seen = nrg_reading_seen(r, row);
    if (node < 0) {
        r->foreign++;
        return 0;
    }
    r->joined++;
    if (!node && check_samples(r, row))
        return -EINVAL;
    if (!why && !r->join.calls.count_of[node])
        why = "modules without operators in the graph: left out";
    if (why)
        return nrg_reading_note(r, why);
    for (uint32_t i = 0; i < r->join.calls.count_of[node]; i++)
        nrg_seen_add(&r->join.of_call[r->join.calls.first_of[node] + i], &seen);
    return 0;
}

static struct nrg_kind_sum *kind_at(struct nrg_reading *r, uint32_t node, const char *family)
{
    for (size_t i = r->n_kinds; i-- > 0;)
        if (r->kinds[i].node == node && !strcmp(r->kinds[i].family, family))
            return &r->kinds[i];
    if (nrg_reserve(&r->kinds, &r->cap_kinds, r->n_kinds + 1, sizeof *r->kinds))
        return NULL;
    r->kinds[r->n_kinds] =
        (struct nrg_kind_sum){.family = family, .node = node, .last_parent = SIZE_MAX};
    return &r->kinds[r->n_kinds++];
}

/* Adds an operator's spans in a module. The energy of an outer operator includes inner ones. */
static int add_operator(struct nrg_reading *r, const struct nrg_attribution_row *row)
{
    const struct nrg_attribution_row *module = nrg_row_above(&r->a, row);
    if (!module || !nrg_row_is(module, NRG_KIND_MODULE))
        return 0;
    int64_t node = node_of(r, module);
    const char *why = nrg_reading_unusable(row);
    if (node < 0)
        return 0;
    if (why)
        return nrg_reading_note(r, why);
    struct nrg_kind_sum *sum = kind_at(r, (uint32_t)node, nrg_kind_family(row->name));
    struct nrg_seen seen = nrg_reading_seen(r, row);
    if (!sum)
        return nrg_reading_no_memory(r);
    nrg_seen_add(&sum->seen, &seen);
    if (sum->last_parent != row->parent)
        sum->module_calls += (double)module->calls;
    sum->last_parent = row->parent;
    return 0;
}

static bool is_of(const struct nrg_reading *r, const struct nrg_kind_sum *sum, size_t op)
{
    return r->join.calls.node_of_op[op] == sum->node && r->graph.reduced.operators[op].times > 0 &&
           !strcmp(nrg_kind_family(r->graph.reduced.operators[op].kind), sum->family);
}

/* Gives each operator of the graph its share of the energy of one call of the module. */
static int share_out(struct nrg_reading *r, const struct nrg_kind_sum *sum)
{
    double in_pass = 0, calls = r->join.calls.count_of[sum->node];
    size_t n = 0;
    for (size_t i = 0; i < r->graph.reduced.n_operators; i++) {
        if (!is_of(r, sum, i))
            continue;
        in_pass += (double)r->graph.reduced.operators[i].times;
        n++;
    }
    if (!n || !(calls > 0))
        return nrg_reading_note(r,
                                "operators that the graph has none of in their module: left out");
    struct nrg_seen seen = sum->seen;
    seen.repeats = sum->module_calls * in_pass / calls;
    seen.is_mean = n > 1;
    for (size_t i = 0; i < r->graph.reduced.n_operators; i++)
        if (is_of(r, sum, i))
            r->join.of_op[i] = seen;
    return 0;
}

int nrg_reading_run_spans(struct nrg_reading *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->a.n_rows; i++) {
        const struct nrg_attribution_row *row = &r->a.rows[i];
        if (nrg_row_below_backward(&r->a, row))
            continue;
        if (nrg_row_is(row, NRG_KIND_MODULE))
            rc = add_module(r, row);
        else if (nrg_row_is(row, NRG_KIND_OPERATOR))
            rc = add_operator(r, row);
    }
    for (size_t i = 0; !rc && i < r->n_kinds; i++)
        rc = share_out(r, &r->kinds[i]);
    return rc;
}
