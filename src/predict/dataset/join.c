/*
 * See dataset/join.h. Calls are in the order of the tree, a module's before the calls it makes. So
 * going backwards makes the parts of a module before the module.
 */
#include "predict/dataset/join.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/graph_work.h"

#define NO_ROW UINT32_MAX
#define MOST_OF_IT                                                                                 \
    0.95 /* an operator with this share of a module's traffic stands for the module */

void nrg_join_release(struct nrg_join *j)
{
    nrg_calls_release(&j->calls);
    nrg_draft_release(&j->draft);
    free(j->of_call);
    free(j->of_op);
    free(j->row_of_call);
    free(j->row_of_op);
    free(j->covered);
    *j = (struct nrg_join){0};
}

/* Sizes of the first input. A sequence is a dimension of tokens or of vectors, not of pixels. */
static void find_sizes(struct nrg_join *j)
{
    const struct nrg_type *t = j->reduced->n_inputs ? j->reduced->inputs[0]->type : NULL;
    j->batch = j->seq = NAN;
    if (!t || t->kind != NRG_T_TENSOR || t->rank < 1 || !t->dims || t->dims[0] <= 0)
        return;
    bool tokens = t->rank == 2 && (t->dtype == NRG_I64 || t->dtype == NRG_I32);
    j->batch = (double)t->dims[0];
    if ((tokens || t->rank == 3) && t->dims[1] > 0)
        j->seq = (double)t->dims[1];
}

int nrg_join_init(struct nrg_join *j, struct nrg_dataset *set, const struct nrg_reduced *reduced,
                  const struct nrg_module_tree *tree, const uint32_t *told, struct nrg_error *err)
{
    *j = (struct nrg_join){.set = set, .reduced = reduced, .tree = tree};
    int rc = nrg_calls_make(&j->calls, reduced, tree, told);
    if (rc)
        return nrg_fail(err, rc, NULL, "out of memory");
    size_t n = j->calls.n + 1, n_ops = reduced->n_operators + 1;
    j->of_call = nrg_calloc(n, sizeof *j->of_call);
    j->of_op = nrg_calloc(n_ops, sizeof *j->of_op);
    j->row_of_call = malloc(n * sizeof *j->row_of_call);
    j->row_of_op = malloc(n_ops * sizeof *j->row_of_op);
    j->covered = nrg_calloc(n_ops, sizeof *j->covered);
    if (!j->of_call || !j->of_op || !j->row_of_call || !j->row_of_op || !j->covered) {
        nrg_join_release(j);
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    }
    memset(j->row_of_call, 0xff, n * sizeof *j->row_of_call);
    memset(j->row_of_op, 0xff, n_ops * sizeof *j->row_of_op);
    find_sizes(j);
    return 0;
}

void nrg_seen_add(struct nrg_seen *sum, const struct nrg_seen *more)
{
    if (!(sum->repeats > 0) || more->provenance > sum->provenance)
        sum->provenance = more->provenance;
    sum->energy_j += more->energy_j;
    sum->time_s += more->time_s;
    sum->repeats += more->repeats;
    sum->is_mean |= more->is_mean;
}

/* ---- rows ---- */

static int note_left_out(struct nrg_join *j, const char *text)
{
    return nrg_dataset_note(j->set, j->where, -1, text);
}

/* Sets everything but the features of the work and the parts. 1: no energy above idle. */
static int begin_row(struct nrg_join *j, const struct nrg_seen *seen)
{
    struct nrg_draft *d = &j->draft;
    const char *provenance = nrg_provenance_name(seen->provenance);
    nrg_draft_clear(d);
    d->row.device = j->device;
    d->row.model = j->model;
    d->row.energy_j = seen->energy_j / seen->repeats;
    d->row.repeats = seen->repeats;
    d->row.provenance = nrg_dataset_text(j->set, provenance, strlen(provenance));
    d->features[NRG_F_TIME_S] = seen->time_s / seen->repeats;
    d->features[NRG_F_BATCH] = j->batch;
    d->features[NRG_F_SEQ] = j->seq;
    if (d->row.energy_j > 0 && isfinite(d->row.energy_j))
        return 0;
    int rc = note_left_out(j, "no energy above idle was measured: left out");
    return rc ? rc : 1;
}

static int end_row(struct nrg_join *j, enum nrg_node_level level, const char *node,
                   const char *kind, uint32_t *row)
{
    struct nrg_draft *d = &j->draft;
    d->row.level = level;
    d->row.node = nrg_dataset_text(j->set, node, strlen(node));
    d->row.kind = nrg_dataset_text(j->set, kind, strlen(kind));
    return nrg_dataset_add(j->set, d, row);
}

static const char *path_of(const struct nrg_join *j, size_t op)
{
    return j->tree->nodes[j->calls.node_of_op[op]].name;
}

/* ---- operators ---- */

/* A row of one operator that was measured alone. */
static int add_operator(struct nrg_join *j, size_t op, const struct nrg_seen *seen)
{
    const char *kind;
    int rc = begin_row(j, seen);
    if (rc)
        return rc < 0 ? rc : 0;
    if (!nrg_work_features(j->reduced, &j->reduced->operators[op], &kind, j->draft.features))
        return note_left_out(j, "operators of unknown cost: left out");
    return end_row(j, NRG_NODE_OPERATOR, path_of(j, op), kind, &j->row_of_op[op]);
}

static bool same_group(const struct nrg_join *j, size_t a, size_t b)
{
    const struct nrg_seen *x = &j->of_op[a], *y = &j->of_op[b];
    return y->is_mean && j->calls.node_of_op[a] == j->calls.node_of_op[b] &&
           x->energy_j == y->energy_j && x->repeats == y->repeats && x->time_s == y->time_s;
}

/* A row of several operators: energy is linear in work, so mean energy fits mean work. */
static int add_mean(struct nrg_join *j, size_t first)
{
    double sum[NRG_FEATURES] = {0}, n = 0;
    const char *kind = NULL, *other;
    int rc = begin_row(j, &j->of_op[first]);
    if (rc)
        return rc < 0 ? rc : 0;
    for (size_t i = first; i < j->reduced->n_operators; i++) {
        double f[NRG_FEATURES] = {0};
        if (!same_group(j, first, i))
            continue;
        if (!nrg_work_features(j->reduced, &j->reduced->operators[i], &other, f))
            return note_left_out(j, "operators of unknown cost: left out");
        kind = kind ? kind : other;
        for (int k = 0; k < NRG_FEATURES; k++)
            sum[k] += f[k];
        n++;
    }
    static const enum nrg_feature work[] = {NRG_F_MACS,          NRG_F_READ_BYTES,
                                            NRG_F_WRITTEN_BYTES, NRG_F_COPIED_BYTES,
                                            NRG_F_SCORE_BYTES,   NRG_F_PARAMS};
    for (size_t k = 0; k < sizeof work / sizeof *work; k++)
        j->draft.features[work[k]] = sum[work[k]] / n;
    j->draft.row.multiplicity = (uint64_t)n;
    uint32_t row;
    if ((rc = end_row(j, NRG_NODE_OPERATOR, path_of(j, first), kind, &row)))
        return rc;
    for (size_t i = first; i < j->reduced->n_operators; i++)
        if (same_group(j, first, i))
            j->row_of_op[i] = row;
    return 0;
}

static int add_operators(struct nrg_join *j)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < j->reduced->n_operators; i++) {
        if (!(j->of_op[i].repeats > 0) || j->row_of_op[i] != NO_ROW)
            continue;
        rc = j->of_op[i].is_mean ? add_mean(j, i) : add_operator(j, i, &j->of_op[i]);
    }
    return rc;
}

static double traffic_bytes(const struct nrg_operator *op)
{
    bool known = op->cost.read_bytes >= 0 && op->cost.written_bytes >= 0;
    return known ? (double)op->cost.read_bytes + (double)op->cost.written_bytes : NAN;
}

/* The one operator that makes up a call, none of whose operators has a row; NO_ROW: none. */
static uint32_t only_operator(const struct nrg_join *j, const struct nrg_call *call)
{
    uint32_t found = NO_ROW;
    double most = -1, all = 0, macs = 0;
    for (size_t i = 0; i < call->n_ops; i++) {
        uint32_t at = j->calls.ops[call->first_op + i];
        const struct nrg_operator *op = &j->reduced->operators[at];
        double bytes = traffic_bytes(op);
        if (nrg_operator_unknown(op) || op->times != 1 || isnan(bytes) ||
            j->row_of_op[at] != NO_ROW)
            return NO_ROW;
        all += bytes;
        macs += (double)op->cost.macs;
        if (bytes > most) {
            most = bytes;
            found = at;
        }
    }
    bool is_it = found != NO_ROW && most >= MOST_OF_IT * all &&
                 (double)j->reduced->operators[found].cost.macs >= macs;
    return is_it ? found : NO_ROW;
}

static bool has_called(const struct nrg_join *j, size_t call)
{
    for (size_t i = call + 1; i < j->calls.n; i++)
        if (j->calls.calls[i].parent == call && j->of_call[i].repeats > 0)
            return true;
    return false;
}

/* Makes the call's measurement that of its only operator, where it has one. */
static int add_as_operator(struct nrg_join *j, size_t at)
{
    const struct nrg_call *call = &j->calls.calls[at];
    uint32_t op = has_called(j, at) ? NO_ROW : only_operator(j, call);
    if (op == NO_ROW)
        return 0;
    for (size_t i = 0; i < call->n_ops; i++)
        j->covered[j->calls.ops[call->first_op + i]] = true;
    int rc = add_operator(j, op, &j->of_call[at]);
    j->row_of_call[at] = j->row_of_op[op];
    if (j->row_of_op[op] != NO_ROW)
        return rc;
    j->of_call[at].repeats = 0; /* no energy, which has been noted */
    for (size_t i = 0; i < call->n_ops; i++)
        j->covered[j->calls.ops[call->first_op + i]] = false;
    return rc;
}

/* ---- modules ---- */

/* Adds the work of operators below that have no row; NULL, or why there can't be a row. */
static const char *add_rest(struct nrg_join *j, const struct nrg_call *call)
{
    double bytes = 0, flops = 0;
    for (size_t i = 0; i < call->n_ops; i++) {
        uint32_t at = j->calls.ops[call->first_op + i];
        const struct nrg_operator *op = &j->reduced->operators[at];
        if (j->row_of_op[at] != NO_ROW || j->covered[at])
            continue;
        if (nrg_operator_unknown(op) || isnan(traffic_bytes(op)))
            return "modules with operators of unknown cost: left out";
        if (op->cost.macs > 0)
            return "modules with operators that multiply and were not measured: left out (nrg run "
                   "--torch=operators, or level=\"op\", measures them)";
        bytes += (double)op->times * traffic_bytes(op);
        flops += (double)op->times * (double)(op->cost.flops > 0 ? op->cost.flops : 0);
    }
    j->draft.features[NRG_F_REST_BYTES] = bytes;
    j->draft.features[NRG_F_REST_FLOPS] = flops;
    return NULL;
}

/* Adds the operators of a call that no call below it has. */
static int add_own_operators(struct nrg_join *j, size_t at, bool *taken)
{
    const struct nrg_call *call = &j->calls.calls[at];
    int rc = 0;
    for (size_t i = 0; !rc && i < call->n_ops; i++) {
        uint32_t op = j->calls.ops[call->first_op + i];
        int64_t times = j->reduced->operators[op].times;
        if (taken[op] || j->row_of_op[op] == NO_ROW || times <= 0)
            continue;
        rc = nrg_draft_part(&j->draft, j->row_of_op[op],
                            times < UINT32_MAX ? (uint32_t)times : UINT32_MAX);
    }
    return rc;
}

/* Adds the uppermost calls below that have a row, and marks their operators as taken. */
static int add_called(struct nrg_join *j, size_t at, bool *taken)
{
    int rc = 0;
    for (size_t i = at + 1; !rc && i < j->calls.n; i++) {
        const struct nrg_call *call = &j->calls.calls[i];
        uint32_t first = j->calls.ops[call->first_op];
        if (j->row_of_call[i] == NO_ROW || taken[first] || !nrg_call_has(&j->calls, at, first))
            continue;
        if (call->node < j->calls.calls[at].node ||
            call->node >= j->calls.calls[at].node + j->tree->nodes[j->calls.calls[at].node].size)
            continue;
        rc = nrg_draft_part(&j->draft, j->row_of_call[i], 1);
        for (size_t k = 0; k < call->n_ops; k++)
            taken[j->calls.ops[call->first_op + k]] = true;
    }
    return rc;
}

static int add_parts(struct nrg_join *j, size_t at)
{
    bool *taken = nrg_calloc(j->reduced->n_operators + 1, sizeof *taken);
    int rc = taken ? add_called(j, at, taken) : -ENOMEM;
    if (!rc)
        rc = add_own_operators(j, at, taken);
    free(taken);
    return rc;
}

static int add_module(struct nrg_join *j, size_t at)
{
    const struct nrg_call *call = &j->calls.calls[at];
    const struct nrg_tree_node *node = &j->tree->nodes[call->node];
    int rc = begin_row(j, &j->of_call[at]);
    if (rc)
        return rc < 0 ? rc : 0;
    const char *why = add_rest(j, call);
    if (why)
        return note_left_out(j, why);
    j->draft.features[NRG_F_PARAMS] = node->unknown_params ? NAN : (double)node->params;
    if ((rc = add_parts(j, at)))
        return rc;
    const char *kind = node->class_name[0] ? node->class_name : call->node ? "module" : j->model;
    return end_row(j, call->node ? NRG_NODE_MODULE : NRG_NODE_MODEL, node->name, kind,
                   &j->row_of_call[at]);
}

/* Whether calls of one module were measured as one but differ in work. */
static bool sizes_differ(const struct nrg_join *j, size_t at)
{
    const struct nrg_call *call = &j->calls.calls[at];
    const struct nrg_call *first = &j->calls.calls[j->calls.first_of[call->node]];
    const struct nrg_seen *a = &j->of_call[at], *b = &j->of_call[first - j->calls.calls];
    if (a->energy_j != b->energy_j || a->repeats != b->repeats || call->n_ops != first->n_ops)
        return false;
    for (size_t i = 0; i < call->n_ops; i++) {
        const struct nrg_operator *x = &j->reduced->operators[j->calls.ops[call->first_op + i]];
        const struct nrg_operator *y = &j->reduced->operators[j->calls.ops[first->first_op + i]];
        if (x->cost.macs != y->cost.macs || x->cost.read_bytes != y->cost.read_bytes ||
            x->cost.written_bytes != y->cost.written_bytes)
            return true;
    }
    return false;
}

static int drop_mixed(struct nrg_join *j)
{
    for (size_t i = 0; i < j->calls.n; i++) {
        if (j->calls.calls[i].together < 2 || !(j->of_call[i].repeats > 0))
            continue;
        j->of_call[i].repeats = 0;
        if (note_left_out(j, "modules whose calls in one pass can't be told apart: left out"))
            return -ENOMEM;
    }
    for (size_t n = 0; n < j->tree->n; n++) {
        uint32_t first = j->calls.first_of[n], count = j->calls.count_of[n];
        bool mixed = false;
        for (uint32_t i = 1; i < count; i++)
            mixed |= j->of_call[first].repeats > 0 && sizes_differ(j, first + i);
        if (!mixed)
            continue;
        for (uint32_t i = 0; i < count; i++)
            j->of_call[first + i].repeats = 0;
        int rc = note_left_out(
            j, "modules that are called with different sizes in one pass, measured as "
               "one: left out");
        if (rc)
            return rc;
    }
    return 0;
}

int nrg_join_rows(struct nrg_join *j, struct nrg_error *err)
{
    int rc = nrg_dataset_counted_by(j->set, "nrg", j->where, err);
    if (rc)
        return rc;
    rc = drop_mixed(j);
    if (!rc)
        rc = add_operators(j);
    for (size_t i = j->calls.n; !rc && i-- > 0;)
        if (j->of_call[i].repeats > 0)
            rc = add_as_operator(j, i);
    for (size_t i = j->calls.n; !rc && i-- > 0;)
        if (j->of_call[i].repeats > 0 && j->row_of_call[i] == NO_ROW)
            rc = add_module(j, i);
    return rc ? nrg_fail(err, rc, j->where, "out of memory") : 0;
}
