/* Arguments of reduced operators: what a cost formula asks about them. See reduce.h. */
#include <string.h>

#include "graph/reduce/internal.h"

static const struct nrg_arg no_arg = {.kind = NRG_ARG_NONE, .type = &nrg_type_unknown};

const struct nrg_arg *nrg_arg_at(const struct nrg_operator *op, size_t i)
{
    return i < op->n_args ? op->args[i] : &no_arg;
}

bool nrg_arg_has_tensor(const struct nrg_arg *arg)
{
    if (arg->kind == NRG_ARG_TENSOR)
        return true;
    if (arg->kind != NRG_ARG_LIST)
        return false;
    for (size_t i = 0; i < arg->n_items; i++)
        if (nrg_arg_has_tensor(arg->items[i]))
            return true;
    return arg->data != NULL;
}

static int how_much_is_known(const struct nrg_type *type)
{
    type = nrg_type_plain(type);
    if (type->kind != NRG_T_TENSOR)
        return type->kind != NRG_T_UNKNOWN;
    return 1 + (type->dtype != NRG_DTYPE_UNKNOWN) + 2 * (type->rank >= 0) +
           4 * (nrg_type_numel(type) >= 0) + (type->strides != NULL);
}

const struct nrg_type *nrg_type_better(const struct nrg_type *a, const struct nrg_type *b)
{
    return how_much_is_known(b) > how_much_is_known(a) ? b : a;
}

bool nrg_arg_int(const struct nrg_arg *arg, int64_t *out)
{
    const struct nrg_attr *c = arg->constant;
    if (!c || arg->kind == NRG_ARG_NONE)
        return false;
    if (c->kind == NRG_A_INT || c->kind == NRG_A_BOOL) {
        *out = c->i;
        return true;
    }
    if ((c->kind == NRG_A_INTS || c->kind == NRG_A_TENSOR) && c->n == 1 && c->is) {
        *out = c->is[0];
        return true;
    }
    return false;
}

int nrg_arg_ints(const struct nrg_arg *arg, int64_t *out, int max)
{
    const struct nrg_attr *c = arg->constant;
    if (arg->kind == NRG_ARG_LIST) {
        if (arg->open || arg->n_items > (size_t)max)
            return -1;
        for (size_t i = 0; i < arg->n_items; i++)
            if (!nrg_arg_int(arg->items[i], &out[i]))
                return -1;
        return (int)arg->n_items;
    }
    if (c && (c->kind == NRG_A_INTS || c->kind == NRG_A_TENSOR) && c->is && c->n <= (size_t)max) {
        memcpy(out, c->is, c->n * sizeof *out);
        return (int)c->n;
    }
    return max > 0 && nrg_arg_int(arg, out) ? 1 : -1;
}

const char *nrg_arg_text(const struct nrg_arg *arg)
{
    return arg->constant && arg->constant->kind == NRG_A_STRING ? arg->constant->s : NULL;
}

const struct nrg_type *nrg_arg_type(const struct nrg_arg *arg)
{
    const struct nrg_type *type = nrg_type_plain(arg->type);
    if (arg->kind != NRG_ARG_TENSOR || nrg_type_numel(type) >= 0 || !arg->data || arg->is_view)
        return type;
    return nrg_type_better(type, nrg_type_plain(arg->data->type));
}

int nrg_arg_rank(const struct nrg_arg *arg)
{
    const struct nrg_type *type = nrg_arg_type(arg);
    return arg->kind == NRG_ARG_TENSOR && type->kind == NRG_T_TENSOR ? type->rank : -1;
}

int64_t nrg_arg_dim(const struct nrg_arg *arg, int dim)
{
    int rank = nrg_arg_rank(arg);
    const struct nrg_type *type = nrg_arg_type(arg);
    if (dim < 0)
        dim += rank;
    if (rank < 0 || dim < 0 || dim >= rank || !type->dims || type->dims[dim] < 0)
        return NRG_COST_UNKNOWN;
    return type->dims[dim];
}

/* Elements in memory: a dimension of stride 0 repeats one. */
static int64_t stored_numel(const struct nrg_type *type)
{
    int64_t n = nrg_type_numel(type) >= 0 ? 1 : NRG_COST_UNKNOWN;
    for (int i = 0; n > 0 && i < type->rank; i++)
        if (!type->strides || type->strides[i] || !type->dims[i])
            n = nrg_cost_mul(n, type->dims[i]);
    return n;
}

int64_t nrg_type_bytes(const struct nrg_type *type)
{
    type = nrg_type_plain(type);
    if (type->kind == NRG_T_NONE)
        return 0;
    if (type->kind != NRG_T_TENSOR || !nrg_dtype_bits(type->dtype))
        return NRG_COST_UNKNOWN;
    int64_t bits = nrg_cost_mul(stored_numel(type), nrg_dtype_bits(type->dtype));
    return bits < 0 ? bits : bits / 8 + (bits % 8 != 0);
}

int64_t nrg_arg_numel(const struct nrg_arg *arg)
{
    int64_t sum = 0;
    if (arg->kind == NRG_ARG_TENSOR) {
        int64_t n = nrg_type_numel(nrg_arg_type(arg));
        return n < 0 ? NRG_COST_UNKNOWN : n;
    }
    if (arg->kind == NRG_ARG_NONE)
        return 0;
    if (arg->kind != NRG_ARG_LIST || (arg->open && !arg->n_items))
        return NRG_COST_UNKNOWN;
    for (size_t i = 0; i < arg->n_items; i++)
        if (nrg_arg_has_tensor(arg->items[i]))
            sum = nrg_cost_add(sum, nrg_arg_numel(arg->items[i]));
    return sum;
}

int64_t nrg_arg_bytes(const struct nrg_arg *arg)
{
    int64_t sum = 0;
    if (arg->kind == NRG_ARG_TENSOR) {
        const struct nrg_type *type = nrg_arg_type(arg);
        /* An inferred or printed shape without element type: the parameter has it. */
        if (arg->data && !nrg_dtype_bits(type->dtype) && nrg_type_numel(type) >= 0) {
            unsigned bits = nrg_dtype_bits(nrg_type_plain(arg->data->type)->dtype);
            return bits ? nrg_cost_mul(stored_numel(type), bits) / 8 : NRG_COST_UNKNOWN;
        }
        return nrg_type_bytes(type);
    }
    if (arg->kind != NRG_ARG_LIST)
        return 0;
    if (arg->open && !arg->n_items)
        return NRG_COST_UNKNOWN;
    for (size_t i = 0; i < arg->n_items; i++)
        sum = nrg_cost_add(sum, nrg_arg_bytes(arg->items[i]));
    return sum;
}

int64_t nrg_data_numel(const struct nrg_data *data)
{
    const struct nrg_type *type = nrg_type_plain(data->type);
    int64_t n = type->kind == NRG_T_NONE ? 0 : nrg_type_numel(type);
    return n < 0 ? NRG_COST_UNKNOWN : n;
}

void nrg_data_infer(struct nrg_data *data, enum nrg_dtype dtype, int rank, const int64_t *dims)
{
    int64_t *room = (int64_t *)(void *)(data->blank + 1);
    memcpy(room, dims, (size_t)rank * sizeof *room);
    *data->blank = (struct nrg_type){
        .kind = NRG_T_TENSOR, .dtype = dtype, .rank = rank, .requires_grad = -1, .dims = room};
    data->type = data->blank;
    data->type_inferred = true;
}

int64_t nrg_data_bytes(const struct nrg_data *data)
{
    return nrg_type_bytes(data->type);
}
