/*
 * Does an operator move memory at all? reshape and flatten are views where the input's strides
 * allow it, and `to`, `contiguous` and `dropout` do nothing with some arguments. Where types do
 * not say, reshape counts as a view (it nearly always is) and the others as work.
 *
 * The stride rule: walk the old dimensions from the innermost. Neighbours belong to one chunk
 * when stride[d] == size[d + 1] * stride[d + 1]; sizes of 1 fit anywhere. Each chunk must be
 * filled exactly by the new dimensions, taken from the innermost as well.
 */
#include <string.h>

#include "graph/reduce/internal.h"

static bool is_known(const struct nrg_type *type)
{
    return type->kind == NRG_T_TENSOR && nrg_type_numel(type) >= 0;
}

/* True when new dims from *next inwards fill exactly `size` elements. */
static bool fill_chunk(const struct nrg_type *out, int *next, int64_t size)
{
    int64_t filled = 1;
    while (*next >= 0 && (filled < size || out->dims[*next] == 1))
        filled *= out->dims[(*next)--];
    return filled == size;
}

bool nrg_reduce_viewable(const struct nrg_type *in, const struct nrg_type *out)
{
    in = nrg_type_plain(in);
    out = nrg_type_plain(out);
    if (!is_known(in) || !is_known(out) || (in->rank && !in->strides))
        return true;
    if (nrg_type_numel(in) != nrg_type_numel(out) || !nrg_type_numel(in))
        return true;
    int next = out->rank - 1;
    int64_t chunk = 1, inner_size = 0, inner_stride = 0;
    for (int d = in->rank - 1; d >= 0; d--) {
        if (in->dims[d] == 1)
            continue;
        bool joined = inner_size && in->strides[d] == inner_size * inner_stride;
        if (inner_size && !joined) {
            if (!fill_chunk(out, &next, chunk))
                return false;
            chunk = 1;
        }
        chunk *= in->dims[d];
        inner_size = in->dims[d];
        inner_stride = in->strides[d];
    }
    return fill_chunk(out, &next, chunk);
}

static bool same_place(const struct nrg_type *a, const struct nrg_type *b)
{
    return !a->device || !b->device || !strcmp(a->device, b->device);
}

static bool same_strides(const struct nrg_type *a, const struct nrg_type *b)
{
    if (!is_known(a) || !is_known(b) || a->rank != b->rank)
        return false;
    if (a->rank && (!a->strides || !b->strides))
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->strides[i] != b->strides[i])
            return false;
    return true;
}

/* to(..., copy=True, memory_format) copies whatever the types are. */
static bool asks_for_copy(const struct nrg_op *op, struct nrg_arg *const *args)
{
    int64_t copy;
    if (strcmp(op->kind, "aten::to") || op->n_inputs < 4)
        return false;
    const struct nrg_arg *arg = args[op->n_inputs - 2];
    return arg->type->kind == NRG_T_BOOL && nrg_arg_int(arg, &copy) && copy;
}

bool nrg_reduce_is_noop(const struct nrg_op *op, const struct nrg_cost_rule *rule,
                        struct nrg_arg *const *args)
{
    int64_t train;
    if (!(rule->flags & NRG_OP_MAYBE_NOOP) || !op->n_inputs || !op->n_outputs ||
        args[0]->kind != NRG_ARG_TENSOR)
        return false;
    if (rule->code[0] == 'D')
        return nrg_reducer_n_args(op) > 2 && nrg_arg_int(args[2], &train) && !train;
    const struct nrg_type *in = nrg_type_plain(args[0]->type);
    const struct nrg_type *out = nrg_type_plain(op->outputs[0]->type);
    if (!strcmp(rule->kind, "aten::contiguous"))
        return same_strides(in, out);
    return in->dtype != NRG_DTYPE_UNKNOWN && in->dtype == out->dtype && same_place(in, out) &&
           !asks_for_copy(op, args);
}
