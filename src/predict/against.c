/*
 * See against.h. A module may have rows at several places of the span tree (training and
 * validation, two blocks that share it). They are summed, then divided by their calls. A row below
 * a backward span, or below another row of the same module, is not another forward pass.
 */
#include "predict/against.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/module_path.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"

const char *const nrg_verdict_names[NRG_VERDICTS] = {"", "inside", "overlaps", "outside"};

struct run {
    struct nrg_against *out;
    const struct nrg_attribution *a;
    const struct nrg_module_tree *tree;
    const struct nrg_prediction *prediction;
    const char *root_class;
    struct nrg_map modules; /* path -> node of the tree */
    struct nrg_map foreign; /* names that are not in the graph */
};

void nrg_against_release(struct nrg_against *against)
{
    free(against->rows);
    free(against->only_graph);
    free(against->without_operators);
    free(against->only_recording);
    *against = (struct nrg_against){0};
}

/* The node of the graph that a row is a forward pass of; NULL: none. */
static struct nrg_tree_node *node_of(const struct run *r, const struct nrg_attribution_row *row)
{
    const char *path = nrg_module_path(r->a, row, r->root_class);
    return path ? nrg_map_get(&r->modules, path) : NULL;
}

static bool below_itself(const struct run *r, const struct nrg_attribution_row *row,
                         const struct nrg_tree_node *node)
{
    for (row = nrg_row_above(r->a, row); row; row = nrg_row_above(r->a, row))
        if (nrg_row_is(row, NRG_KIND_MODULE) && node_of(r, row) == node)
            return true;
    return false;
}

/* ---- sums over rows ---- */

static void add_to_sum(struct nrg_against_row *sum, const struct nrg_attribution_row *row,
                       bool inner)
{
    sum->method =
        sum->recorded_calls && sum->method != row->method ? NRG_METHOD_MIXED : row->method;
    sum->recorded_calls += row->calls;
    sum->flags |= row->flags;
    if (inner) /* its energy and time are in the outer row's */
        return;
    sum->measured_j += row->energy_j;
    sum->low_j += row->scaled_low_j; /* a prediction knows nothing of an estimate's scale */
    sum->high_j += row->scaled_high_j;
    sum->time_s += row->time_s;
}

static int add_foreign(struct run *r, size_t at)
{
    const char *name = r->a->rows[at].name;
    if (nrg_map_get(&r->foreign, name))
        return 0;
    r->out->only_recording[r->out->n_only_recording++] = at;
    return nrg_map_set(&r->foreign, name, &r->a->rows[at]);
}

static void add_backward(struct run *r, const struct nrg_attribution_row *row)
{
    r->out->backward_calls += row->calls;
    if (!nrg_row_below_backward(r->a, row))
        r->out->backward_j = (isnan(r->out->backward_j) ? 0 : r->out->backward_j) + row->energy_j;
}

static int add_rows(struct run *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->a->n_rows; i++) {
        const struct nrg_attribution_row *row = &r->a->rows[i];
        if (nrg_row_is(row, NRG_KIND_BACKWARD))
            add_backward(r, row);
        if (!nrg_row_is(row, NRG_KIND_MODULE) || nrg_row_below_backward(r->a, row))
            continue;
        const struct nrg_tree_node *node = node_of(r, row);
        if (node)
            add_to_sum(&r->out->rows[node - r->tree->nodes], row, below_itself(r, row, node));
        else
            rc = add_foreign(r, i);
    }
    return rc;
}

/* ---- per pass, and compared ---- */

/*
 * Calls of a module in one pass. A graph of scopes knows them only up to a divisor: two calls of a
 * part may be one call of the module. Recorded passes of the whole model decide, where there are
 * any.
 */
static double calls_of(const struct run *r, size_t node)
{
    const struct nrg_against_row *rows = r->out->rows;
    uint64_t passes = rows[0].recorded_calls, recorded = rows[node].recorded_calls;
    if (!node || !r->tree->calls_known)
        return 1;
    size_t calls = r->tree->nodes[node].calls;
    if (r->tree->calls_told || !passes || !recorded || recorded % passes)
        return (double)calls;
    return calls % (recorded / passes) ? (double)calls : (double)(recorded / passes);
}

static void scale_to_pass(struct nrg_against_row *row)
{
    double factor = row->calls / (double)row->recorded_calls;
    row->measured_j *= factor;
    row->low_j *= factor;
    row->high_j *= factor;
    row->time_s *= factor;
}

static void compare_row(struct nrg_against_row *row, const struct nrg_estimate *e)
{
    if (!(row->measured_j > 0) || !(e->energy_j > 0))
        return;
    row->error = e->energy_j / row->measured_j - 1;
    if (isnan(e->low_j) || isnan(e->high_j))
        return;
    if (row->measured_j >= e->low_j && row->measured_j <= e->high_j)
        row->verdict = NRG_VERDICT_INSIDE;
    else if (row->high_j >= e->low_j && row->low_j <= e->high_j)
        row->verdict = NRG_VERDICT_OVERLAPS;
    else
        row->verdict = NRG_VERDICT_OUTSIDE;
}

static void finish_row(struct run *r, size_t i)
{
    struct nrg_against *out = r->out;
    struct nrg_against_row *row = &out->rows[i];
    const struct nrg_node_estimate *predicted = &r->prediction->nodes[i];
    row->calls = calls_of(r, i);
    row->error = NAN;
    if (!row->recorded_calls) {
        row->measured_j = row->low_j = row->high_j = row->time_s = NAN;
        if (predicted->operators && row->calls > 0)
            out->only_graph[out->n_only_graph++] = i;
        return;
    }
    out->n_matched++;
    if (!(row->calls > 0)) /* the graph has the module but never calls it */
        row->calls = 1;
    scale_to_pass(row);
    if (!predicted->operators)
        out->without_operators[out->n_without_operators++] = i;
    else
        compare_row(row, &predicted->estimate);
}

/* Calls per pass, where the recording has passes of the whole model. */
static void compare_calls(struct nrg_against *out)
{
    double passes = (double)out->rows[0].recorded_calls;
    for (size_t i = 1; passes > 0 && i < out->n; i++)
        if (out->rows[i].recorded_calls)
            out->other_calls +=
                fabs((double)out->rows[i].recorded_calls / passes - out->rows[i].calls) > 1e-6;
}

static int summarise_errors(struct nrg_against *out)
{
    double sum = 0, *errors = nrg_calloc(out->n + 1, sizeof *errors);
    if (!errors)
        return -ENOMEM;
    for (size_t i = 0; i < out->n; i++) {
        out->verdicts[out->rows[i].verdict]++;
        if (isnan(out->rows[i].error))
            continue;
        errors[out->n_compared++] = fabs(out->rows[i].error);
        sum += fabs(out->rows[i].error);
    }
    size_t n = out->n_compared;
    out->mean_error = n ? sum / (double)n : NAN;
    out->median_error = nrg_median(errors, n);
    free(errors);
    return 0;
}

static int init_comparison(struct run *r)
{
    struct nrg_against *out = r->out;
    out->n = r->tree->n;
    out->rows = nrg_calloc(out->n + 1, sizeof *out->rows);
    out->only_graph = nrg_calloc(out->n + 1, sizeof *out->only_graph);
    out->without_operators = nrg_calloc(out->n + 1, sizeof *out->without_operators);
    out->only_recording = nrg_calloc(r->a->n_rows + 1, sizeof *out->only_recording);
    int rc =
        out->rows && out->only_graph && out->without_operators && out->only_recording ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < out->n; i++)
        rc = nrg_map_set(&r->modules, r->tree->nodes[i].name, &r->tree->nodes[i]);
    return rc;
}

int nrg_against_make(struct nrg_against *out, const struct nrg_attribution *a,
                     const struct nrg_module_tree *tree, const struct nrg_prediction *prediction)
{
    struct run r = {.out = out,
                    .a = a,
                    .tree = tree,
                    .prediction = prediction,
                    .root_class = tree->n ? tree->nodes[0].class_name : ""};
    *out = (struct nrg_against){.backward_j = NAN};
    int rc = init_comparison(&r);
    if (!rc)
        rc = add_rows(&r);
    for (size_t i = 0; !rc && i < out->n; i++)
        finish_row(&r, i);
    if (!rc) {
        compare_calls(out);
        rc = summarise_errors(out);
    }
    nrg_map_release(&r.modules);
    nrg_map_release(&r.foreign);
    if (rc)
        nrg_against_release(out);
    return rc;
}
