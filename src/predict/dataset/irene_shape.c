/*
 * See irene_shape.h. A solution must be whole numbers that give the counts back, so that a wrong
 * formula or an unknown kind of layer can't pass as a plausible size. All values are float32.
 */
#include "predict/dataset/irene_shape.h"

#include <math.h>
#include <string.h>

static bool is_whole(double x)
{
    return x >= 1 && x < 1e15 && fabs(x - round(x)) < 1e-6 * (1 + fabs(x) * 1e-6);
}

/* Both roots of a x^2 + b x + c; false when there are none. */
static bool find_roots(double a, double b, double c, double out[2])
{
    double d = b * b - 4 * a * c;
    if (d < 0 && d > -1e-9 * b * b)
        d = 0;
    if (!(d >= 0) || a == 0)
        return false;
    out[0] = (-b - sqrt(d)) / (2 * a);
    out[1] = (-b + sqrt(d)) / (2 * a);
    return true;
}

static void set_gemm(struct nrg_irene_cost *cost, double n, double k, double m)
{
    cost->macs = n * k * m;
    cost->read_bytes = 4 * (n * k + k * m + m);
    cost->written_bytes = 4 * n * m;
    cost->params = k * m + m;
}

/* matmul [B,S,K]x[K,N], weight counted B times, then add_: FLOPs BSN(2K+1). */
static bool solve_linear_3d(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    double b = op->batch, s = op->seq, f = op->flops / (b * s), m = op->bytes / (4 * b), n[2];
    if (!find_roots(6 * s - 1, -(2 * m - f + s), f * s, n))
        return false;
    for (int i = 0; i < 2; i++) {
        double k = (f / n[i] - 1) / 2;
        double bytes = 4 * b * (s * k + 3 * s * n[i] + k * n[i]);
        if (!is_whole(n[i]) || !is_whole(k) || fabs(bytes - op->bytes) > 1)
            continue;
        set_gemm(cost, b * s, round(k), round(n[i]));
        return true;
    }
    return false;
}

/* addmm of n rows: FLOPs 2nkm. Which of k and m is larger is unknown and does not matter. */
static bool solve_addmm(const struct nrg_irene_op *op, double n, struct nrg_irene_cost *cost)
{
    double km = op->flops / (2 * n), sum = (op->bytes / 4 - km) / n, k[2];
    if (!find_roots(1, -sum, km, k) || !is_whole(k[0]) || !is_whole(k[1]))
        return false;
    if (fabs(4 * (n * sum + k[0] * k[1]) - op->bytes) > 1)
        return false;
    set_gemm(cost, n, round(k[0]), round(k[1]));
    return true;
}

static bool solve_linear(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    return solve_linear_3d(op, cost) || solve_addmm(op, op->batch, cost);
}

static bool solve_conv1d(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    return solve_addmm(op, op->batch * op->seq, cost);
}

/* One of the two products of attention over heads: [BA,S,D] and [BA,S,S]. */
static bool solve_product(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    double b = op->batch, s = op->seq, width = op->flops / (2 * b * s * s);
    double activation = 4 * b * s * width, scores = op->bytes - 2 * activation;
    if (!is_whole(width) || !is_whole(scores / (4 * b * s * s)))
        return false;
    cost->macs = op->flops / 2;
    cost->read_bytes = 2 * activation;
    cost->written_bytes = scores;
    cost->copied_bytes = 2 * activation;
    cost->params = 0;
    return true;
}

static bool solve_layer_norm(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    double volume = op->flops / 8, width = volume / (op->batch * op->seq);
    if (!is_whole(volume) || !is_whole(width) || fabs(16 * volume - op->bytes) > 1)
        return false;
    cost->read_bytes = 4 * (volume + 2 * width);
    cost->written_bytes = 4 * volume;
    cost->params = 2 * width;
    return true;
}

static bool solve_softmax(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    double volume = op->flops / 5;
    if (!is_whole(volume) || fabs(12 * volume - op->bytes) > 1)
        return false;
    cost->read_bytes = cost->written_bytes = cost->score_bytes = 4 * volume;
    cost->params = 0;
    return true;
}

static bool solve_tanh(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    double volume = op->flops / 4;
    if (!is_whole(volume) || fabs(4 * volume - op->bytes) > 1)
        return false;
    cost->read_bytes = cost->written_bytes = 4 * volume;
    cost->params = 0;
    return true;
}

/* Ids of 8 bytes, one per token, or per position once for all of the batch. */
static bool solve_embedding(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    double counts[] = {op->batch * op->seq, op->seq};
    for (int i = 0; i < 2; i++) {
        double width = (op->bytes / counts[i] - 8) / 4;
        if (!is_whole(width))
            continue;
        cost->read_bytes = counts[i] * (8 + 4 * width);
        cost->written_bytes = counts[i] * 4 * width;
        if (op->rows_of_table > 0)
            cost->params = op->rows_of_table * width;
        return true;
    }
    return false;
}

static const struct {
    const char *kind;
    bool (*solve)(const struct nrg_irene_op *op, struct nrg_irene_cost *cost);
} kinds[] = {
    {"Linear", solve_linear},        {"Conv1D", solve_conv1d},   {"MatMul", solve_product},
    {"LayerNorm", solve_layer_norm}, {"Softmax", solve_softmax}, {"Tanh", solve_tanh},
    {"Embedding", solve_embedding},
};

bool nrg_irene_shape(const struct nrg_irene_op *op, struct nrg_irene_cost *cost)
{
    *cost = (struct nrg_irene_cost){.params = NAN};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].kind, op->kind) && op->batch > 0 && op->seq > 0)
            if (kinds[i].solve(op, cost))
                return true;
    *cost = (struct nrg_irene_cost){.macs = op->flops / 2,
                                    .read_bytes = op->bytes / 2,
                                    .written_bytes = op->bytes / 2,
                                    .params = NAN};
    return false;
}
