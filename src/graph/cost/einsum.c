/*
 * einsum: MACs of a contraction are the product of the extents of all distinct indices. With
 * more than two operands that is the cost of the naive order, which a good path undercuts, so
 * operands are contracted from left to right as PyTorch does, dropping the indices that nothing
 * later needs. Ellipses count with the extents of the operand that has them. An equation with
 * one operand sums or permutes: elements, no MACs.
 */
#include <string.h>

#include "graph/cost/internal.h"

#define LETTERS 52
#define DOTS    LETTERS /* the ellipsis as one more index */

struct indices {
    uint64_t used[16];           /* bit per index, by operand */
    int64_t extent[LETTERS + 1]; /* -1: not seen */
    uint64_t result;
    bool implicit; /* no "->": indices that occur once are the result */
    int n;
};

static int index_of(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

static int letters_of(const char *p, const char *end)
{
    int n = 0;
    for (; p < end; p++)
        n += index_of(*p) >= 0;
    return n;
}

static void note_extent(struct indices *ix, int at, int64_t extent)
{
    /* A broadcast extent of 1 yields to the real one. */
    if (ix->extent[at] < 0 || ix->extent[at] == 1)
        ix->extent[at] = extent;
}

/* One operand's letters against its dims. */
static bool read_operand(struct indices *ix, const char *p, const char *end,
                         const struct nrg_arg *arg)
{
    int rank = nrg_arg_rank(arg), dim = 0, dots = rank - letters_of(p, end);
    if (rank < 0 || ix->n >= 16)
        return false;
    for (; p < end; p++) {
        int at = index_of(*p);
        if (*p == '.' && end - p >= 3 && !strncmp(p, "...", 3)) {
            int64_t all = 1;
            for (int i = 0; i < dots; i++)
                all = nrg_cost_mul(all, nrg_arg_dim(arg, dim++));
            note_extent(ix, DOTS, all);
            ix->used[ix->n] |= UINT64_C(1) << DOTS;
            p += 2;
        } else if (at >= 0) {
            if (nrg_arg_dim(arg, dim) < 0)
                return false;
            note_extent(ix, at, nrg_arg_dim(arg, dim++));
            ix->used[ix->n] |= UINT64_C(1) << at;
        }
    }
    ix->n++;
    return dim == rank;
}

static void read_result(struct indices *ix, const char *p)
{
    for (; *p; p++) {
        int at = index_of(*p);
        if (at >= 0)
            ix->result |= UINT64_C(1) << at;
        if (*p == '.')
            ix->result |= UINT64_C(1) << DOTS;
    }
}

static bool read_equation(struct indices *ix, const char *text, const struct nrg_arg *operands)
{
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text), *p = text;
    for (size_t i = 0; i < operands->n_items; i++) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        if (!read_operand(ix, p, stop, operands->items[i]))
            return false;
        p = comma ? comma + 1 : end;
    }
    ix->implicit = !arrow;
    if (arrow)
        read_result(ix, arrow + 2);
    return ix->n > 0;
}

static int64_t extents_product(const struct indices *ix, uint64_t set)
{
    int64_t n = 1;
    for (int i = 0; i <= LETTERS; i++)
        if (set >> i & 1)
            n = nrg_cost_mul(n, ix->extent[i]);
    return n;
}

static int64_t contraction_macs(const struct indices *ix)
{
    int64_t macs = 0;
    uint64_t have = ix->used[0];
    for (int i = 1; i < ix->n; i++) {
        uint64_t later = ix->implicit ? ~UINT64_C(0) : ix->result;
        for (int k = i + 1; k < ix->n; k++)
            later |= ix->used[k];
        macs = nrg_cost_add(macs, extents_product(ix, have | ix->used[i]));
        have = (have | ix->used[i]) & later;
    }
    return macs;
}

void nrg_cost_einsum_of(const char *text, const struct nrg_arg *operands, struct nrg_cost *cost)
{
    struct indices ix = {0};
    for (int i = 0; i <= LETTERS; i++)
        ix.extent[i] = -1;
    if (!text || operands->kind != NRG_ARG_LIST || operands->open ||
        !read_equation(&ix, text, operands)) {
        nrg_cost_set_macs(cost, NRG_COST_UNKNOWN);
        return;
    }
    if (ix.n == 1)
        cost->flops = nrg_arg_numel(operands);
    else
        nrg_cost_set_macs(cost, contraction_macs(&ix));
}

void nrg_cost_einsum(const struct nrg_operator *op, struct nrg_cost *cost)
{
    nrg_cost_einsum_of(nrg_arg_text(nrg_arg_at(op, 0)), nrg_arg_at(op, 1), cost);
}
