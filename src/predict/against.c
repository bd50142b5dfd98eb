/*
 * See against.h. Rows of one module may stand at several places of the tree of spans (training and
 * validation, two blocks that share it): they are summed, then divided by their calls. A row below
 * a backward span, or below another row of the same module, is no further forward pass.
 */
#include "predict/against.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/module_path.h"
#include "graph/path_map.h"

const char *const nrg_verdict_names[NRG_VERDICTS] = {"", "inside", "overlaps", "outside"};

struct run {
    struct nrg_against *out;
    const struct nrg_attribution *a;
    const struct nrg_module_tree *tree;
    const struct nrg_prediction *prediction;
    const char *root_class;
    struct nrg_path_map modules; /* path -> node of the tree */
    struct nrg_path_map foreign; /* names that the graph has not */
};

void nrg_against_release(struct nrg_against *against)
{
    free(against->rows);
    free(against->only_graph);
    free(against->without_operators);
    free(against->only_recording);
    *against = (struct nrg_against){0};
}

static bool is_kind(const struct nrg_attribution_row *row, const char *kind)
{
    return !strcmp(row->kind, kind);
}

static const struct nrg_attribution_row *above(const struct run *r,
                                               const struct nrg_attribution_row *row)
{
    return row->parent < r->a->n_rows ? &r->a->rows[row->parent] : NULL;
}

static bool below_backward(const struct run *r, const struct nrg_attribution_row *row)
{
    for (row = above(r, row); row; row = above(r, row))
        if (is_kind(row, NRG_KIND_BACKWARD))
            return true;
    return false;
}

/* The node of the graph that a row is a forward pass of; NULL: none. */
static struct nrg_tree_node *node_of(const struct run *r, const struct nrg_attribution_row *row)
{
    const char *path = nrg_module_path(r->a, row, r->root_class);
    return path ? nrg_path_map_get(&r->modules, path) : NULL;
}

static bool below_itself(const struct run *r, const struct nrg_attribution_row *row,
                         const struct nrg_tree_node *node)
{
    for (row = above(r, row); row; row = above(r, row))
        if (is_kind(row, NRG_KIND_MODULE) && node_of(r, row) == node)
            return true;
    return false;
}

/* ---- sums over rows ---- */

static void add_row(struct nrg_against_row *sum, const struct nrg_attribution_row *row, bool inner)
{
    sum->method =
        sum->recorded_calls && sum->method != row->method ? NRG_METHOD_MIXED : row->method;
    sum->recorded_calls += row->calls;
    sum->flags |= row->flags;
    if (inner) /* its energy and time are in the outer row's */
        return;
    sum->measured_j += row->energy_j;
    sum->low_j += row->low_j;
    sum->high_j += row->high_j;
    sum->time_s += row->time_s;
}

static int add_foreign(struct run *r, size_t at)
{
    const char *name = r->a->rows[at].name;
    if (nrg_path_map_get(&r->foreign, name))
        return 0;
    r->out->only_recording[r->out->n_only_recording++] = at;
    return nrg_path_map_set(&r->foreign, name, &r->a->rows[at]);
}

static void add_backward(struct run *r, const struct nrg_attribution_row *row)
{
    r->out->backward_calls += row->calls;
    if (!below_backward(r, row))
        r->out->backward_j = (isnan(r->out->backward_j) ? 0 : r->out->backward_j) + row->energy_j;
}

static int add_rows(struct run *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->a->n_rows; i++) {
        const struct nrg_attribution_row *row = &r->a->rows[i];
        if (is_kind(row, NRG_KIND_BACKWARD))
            add_backward(r, row);
        if (!is_kind(row, NRG_KIND_MODULE) || below_backward(r, row))
            continue;
        const struct nrg_tree_node *node = node_of(r, row);
        if (node)
            add_row(&r->out->rows[node - r->tree->nodes], row, below_itself(r, row, node));
        else
            rc = add_foreign(r, i);
    }
    return rc;
}

/* ---- per pass, and compared ---- */

/*
 * A graph of scopes tells the calls of a module only up to a divisor: two calls of its part may be
 * one of its own. Where passes of the whole model were recorded, these tell.
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

static void per_pass(struct nrg_against_row *row)
{
    double factor = row->calls / (double)row->recorded_calls;
    row->measured_j *= factor;
    row->low_j *= factor;
    row->high_j *= factor;
    row->time_s *= factor;
}

static void compare(struct nrg_against_row *row, const struct nrg_estimate *e)
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
    if (!(row->calls > 0)) /* the graph has it, and never calls it */
        row->calls = 1;
    per_pass(row);
    if (!predicted->operators)
        out->without_operators[out->n_without_operators++] = i;
    else
        compare(row, &predicted->estimate);
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int summarise(struct nrg_against *out)
{
    double sum = 0, *errors = calloc(out->n + 1, sizeof *errors);
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
    out->mean_error = out->median_error = NAN;
    if (n) {
        qsort(errors, n, sizeof *errors, by_value);
        out->mean_error = sum / (double)n;
        out->median_error = (errors[(n - 1) / 2] + errors[n / 2]) / 2;
    }
    free(errors);
    return 0;
}

static int prepare(struct run *r)
{
    struct nrg_against *out = r->out;
    out->n = r->tree->n;
    out->rows = calloc(out->n + 1, sizeof *out->rows);
    out->only_graph = calloc(out->n + 1, sizeof *out->only_graph);
    out->without_operators = calloc(out->n + 1, sizeof *out->without_operators);
    out->only_recording = calloc(r->a->n_rows + 1, sizeof *out->only_recording);
    int rc =
        out->rows && out->only_graph && out->without_operators && out->only_recording ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < out->n; i++)
        rc = nrg_path_map_set(&r->modules, r->tree->nodes[i].name, &r->tree->nodes[i]);
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
    int rc = prepare(&r);
    if (!rc)
        rc = add_rows(&r);
    for (size_t i = 0; !rc && i < out->n; i++)
        finish_row(&r, i);
    if (!rc) {
        compare_calls(out);
        rc = summarise(out);
    }
    nrg_path_map_release(&r.modules);
    nrg_path_map_release(&r.foreign);
    if (rc)
        nrg_against_release(out);
    return rc;
}
