/*
 * Matrix products. MACs = elements of the result x the contracted length K; the bias is not
 * counted, as every counter we know leaves it out. K is read from the activation, so that the
 * text of a traced graph is enough; the weight's shape then follows and is noted (nrg_cost_infer).
 */
#include "graph/cost/internal.h"

/* The contracted length: last dim of `a`, else the matching dim of `b`. */
static int64_t contracted_length(const struct nrg_arg *a, const struct nrg_arg *b)
{
    int64_t k = nrg_arg_dim(a, -1);
    if (k >= 0)
        return k;
    return nrg_arg_rank(b) == 1 ? nrg_arg_dim(b, 0) : nrg_arg_dim(b, -2);
}

static int64_t rows_times_columns(const struct nrg_arg *a, const struct nrg_arg *b)
{
    /* Broadcasting of batches could make the result larger: only the plain cases. */
    if (nrg_arg_rank(b) < 1 || nrg_arg_rank(b) > 2)
        return NRG_COST_UNKNOWN;
    return nrg_cost_mul(nrg_arg_rank(b) == 1 ? 1 : nrg_arg_dim(b, -1),
                        nrg_arg_rank(a) == 1 ? 1 : nrg_cost_leading(a, 1));
}

void nrg_cost_linear(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0), *w = nrg_arg_at(op, 1);
    int64_t out = nrg_cost_output_numel(op), k = nrg_arg_dim(x, -1);
    int64_t columns = nrg_arg_rank(w) == 1 ? 1 : nrg_arg_dim(w, 0);
    if (k < 0)
        k = nrg_arg_dim(w, -1);
    if (out < 0 && nrg_arg_numel(x) >= 0 && k > 0)
        out = nrg_cost_mul(nrg_arg_numel(x) / k, columns);
    nrg_cost_set_macs(cost, nrg_cost_mul(out, k));
    if (op->n_outputs && nrg_arg_numel(x) > 0 && k > 0 && out >= 0) {
        int64_t dims[2] = {out / (nrg_arg_numel(x) / k), k};
        nrg_cost_infer(w, 2, dims);
        nrg_cost_infer(nrg_arg_at(op, 2), 1, dims);
    }
}

void nrg_cost_matmul(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *a = nrg_arg_at(op, (size_t)op->rule->arg);
    const struct nrg_arg *b = nrg_arg_at(op, (size_t)op->rule->arg + 1);
    int64_t out = nrg_cost_output_numel(op), k = contracted_length(a, b);
    if (out < 0)
        out = rows_times_columns(a, b);
    nrg_cost_set_macs(cost, nrg_cost_mul(out, k));
    if (op->rule->arg && nrg_arg_dim(b, -1) >= 0) {
        int64_t columns = nrg_arg_dim(b, -1);
        nrg_cost_infer(nrg_arg_at(op, 0), 1, &columns);
    }
}

/* beta * c + alpha * sum over the batch of a @ b. */
void nrg_cost_addbmm(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *a = nrg_arg_at(op, 1), *b = nrg_arg_at(op, 2);
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_arg_numel(a), nrg_arg_dim(b, -1)));
}

void nrg_cost_outer(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->flops = nrg_cost_mul(nrg_arg_numel(nrg_arg_at(op, 0)), nrg_arg_numel(nrg_arg_at(op, 1)));
}

/*
 * x1 W x2 + b. PyTorch runs it as multiplications and sums that no MAC counter sees, so it has
 * FLOPs but no MACs here either.
 */
void nrg_cost_bilinear(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t out = nrg_cost_output_numel(op);
    int64_t in1 = nrg_arg_dim(nrg_arg_at(op, 0), -1), in2 = nrg_arg_dim(nrg_arg_at(op, 1), -1);
    int64_t inner = nrg_cost_add(nrg_cost_mul(in1, in2), in2);
    cost->flops = nrg_cost_mul(2, nrg_cost_mul(out, inner));
    const struct nrg_type *type = nrg_cost_output_type(op);
    if (nrg_type_numel(type) >= 0 && type->rank > 0 && in1 >= 0 && in2 >= 0) {
        int64_t dims[3] = {type->dims[type->rank - 1], in1, in2};
        nrg_cost_infer(nrg_arg_at(op, 2), 3, dims);
        nrg_cost_infer(nrg_arg_at(op, 3), 1, dims);
    }
}

/* Weights are packed: 1 byte each, and the bias as 4. */
void nrg_cost_quantized_linear(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    int64_t out = nrg_cost_output_numel(op), k = nrg_arg_dim(x, -1);
    nrg_cost_set_macs(cost, nrg_cost_mul(out, k));
    if (out < 0 || k <= 0 || nrg_arg_numel(x) <= 0)
        return;
    int64_t columns = out / (nrg_arg_numel(x) / k);
    int64_t packed = nrg_cost_add(nrg_cost_mul(columns, k), nrg_cost_mul(columns, 4));
    cost->read_bytes = nrg_cost_add(cost->read_bytes, packed);
}
