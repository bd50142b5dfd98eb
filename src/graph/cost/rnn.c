/*
 * Recurrent layers. Every weight matrix is applied once per time step and sequence, so MACs =
 * steps x the elements of all 2-D weights, projections included. When no file lists the weights,
 * their sizes follow from the shapes of the activations and the constant arguments:
 *   H = output features / directions, I = input features (later layers: directions x H)
 * A packed sequence is one matrix of all steps. Gate arithmetic beside the products is counted as
 * 9 (LSTM), 8 (GRU) or 2 (plain) FLOPs per hidden unit and step.
 */
#include "graph/cost/internal.h"

struct rnn {
    const struct nrg_arg *x, *weights;
    int64_t steps; /* time x batch */
    int64_t layers, directions;
    size_t rest; /* index of has_biases */
};

/* Where things are: packed sequences have batch_sizes as argument 1. */
static struct rnn rnn_layout(const struct nrg_operator *op, int gates)
{
    struct rnn r = {.x = nrg_arg_at(op, 0), .steps = NRG_COST_UNKNOWN};
    bool lstm = gates == 4;
    bool packed =
        lstm ? nrg_arg_at(op, 1)->kind == NRG_ARG_TENSOR : nrg_arg_at(op, 3)->kind == NRG_ARG_LIST;
    size_t at = packed ? 3 : 2;
    int rank = nrg_arg_rank(r.x);
    r.weights = nrg_arg_at(op, at);
    r.rest = at + 1;
    if (packed)
        r.steps = nrg_arg_dim(r.x, 0);
    else if (rank == 3)
        r.steps = nrg_cost_mul(nrg_arg_dim(r.x, 0), nrg_arg_dim(r.x, 1));
    else if (rank == 2)
        r.steps = nrg_arg_dim(r.x, 0);
    int64_t both;
    if (!nrg_arg_int(nrg_arg_at(op, r.rest + 1), &r.layers))
        r.layers = NRG_COST_UNKNOWN;
    r.directions = nrg_arg_int(nrg_arg_at(op, r.rest + 4), &both) ? both ? 2 : 1 : NRG_COST_UNKNOWN;
    return r;
}

static int64_t weights_listed(const struct nrg_arg *list)
{
    int64_t sum = 0;
    if (list->kind != NRG_ARG_LIST || list->open || !list->n_items)
        return NRG_COST_UNKNOWN;
    for (size_t i = 0; i < list->n_items; i++) {
        int rank = nrg_arg_rank(list->items[i]);
        if (rank < 0)
            return NRG_COST_UNKNOWN;
        if (rank == 2)
            sum = nrg_cost_add(sum, nrg_arg_numel(list->items[i]));
    }
    return sum;
}

static int64_t weights_from_shapes(const struct nrg_operator *op, const struct rnn *r, int gates)
{
    int64_t sum = 0, in = nrg_arg_dim(r->x, -1);
    const struct nrg_type *out = nrg_cost_output_type(op);
    if (nrg_type_numel(out) < 0 || out->rank < 2 || r->layers < 0 || r->layers > 1000 ||
        r->directions < 1)
        return NRG_COST_UNKNOWN;
    int64_t hidden = out->dims[out->rank - 1] / r->directions;
    for (int64_t i = 0; i < r->layers; i++) {
        int64_t one = nrg_cost_mul(nrg_cost_mul(gates, hidden), nrg_cost_add(in, hidden));
        sum = nrg_cost_add(sum, nrg_cost_mul(r->directions, one));
        in = nrg_cost_mul(r->directions, hidden);
    }
    return sum;
}

int nrg_cost_gate_flops(int gates)
{
    return gates == 4 ? 9 : gates == 3 ? 8 : 2;
}

void nrg_cost_rnn(const struct nrg_operator *op, struct nrg_cost *cost)
{
    struct rnn r = rnn_layout(op, op->rule->arg);
    int64_t weights = weights_listed(r.weights);
    if (weights < 0)
        weights = weights_from_shapes(op, &r, op->rule->arg);
    nrg_cost_set_macs(cost, nrg_cost_mul(r.steps, weights));
    int64_t units = nrg_cost_mul(nrg_type_numel(nrg_cost_output_type(op)), r.layers);
    cost->flops =
        nrg_cost_add(cost->flops, nrg_cost_mul(units, nrg_cost_gate_flops(op->rule->arg)));
}

/* cell(x, hx, w_ih, w_hh, b_ih, b_hh): one step. */
void nrg_cost_rnn_cell(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    int64_t out = nrg_cost_output_numel(op), in = nrg_arg_dim(x, -1);
    int64_t batch = nrg_arg_rank(x) == 1 ? 1 : nrg_arg_dim(x, 0);
    int64_t hidden = out >= 0 && batch > 0 ? out / batch : NRG_COST_UNKNOWN;
    int64_t rows = nrg_cost_mul(op->rule->arg, hidden);
    if (in >= 0 && rows >= 0) {
        int64_t w_ih[2] = {rows, in}, w_hh[2] = {rows, hidden};
        nrg_cost_infer(nrg_arg_at(op, 2), 2, w_ih);
        nrg_cost_infer(nrg_arg_at(op, 3), 2, w_hh);
        nrg_cost_infer(nrg_arg_at(op, 4), 1, &rows);
        nrg_cost_infer(nrg_arg_at(op, 5), 1, &rows);
    }
    nrg_cost_set_macs(cost, nrg_cost_mul(batch, nrg_cost_mul(rows, nrg_cost_add(in, hidden))));
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(out, nrg_cost_gate_flops(op->rule->arg)));
}
