/*
 * See shapes/internal.h: what rules are written with. They read shapes and contents of inputs here,
 * compute with dimensions, and set types and contents of outputs. Types that the file declares
 * (value_info, outputs) are joined with what the rules say: a number beats a symbol, a symbol beats
 * nothing; where two numbers differ the file's is used and the difference is counted, because
 * exporters know more than our rules.
 */
#include "graph/onnx/shapes/internal.h"

#include <errno.h>
#include <string.h>

bool onnx_has(const struct nrg_op *op, size_t i)
{
    return i < op->n_inputs && op->inputs[i]->type->kind != NRG_T_NONE;
}

bool onnx_shape_of(const struct nrg_value *value, struct onnx_shape *shape)
{
    const struct nrg_type *type = value->type;
    shape->rank = -1;
    shape->dtype = type->dtype;
    if (type->kind != NRG_T_TENSOR || type->rank < 0 || type->rank > ONNX_MAX_RANK ||
        (type->rank && !type->dims))
        return false;
    shape->rank = type->rank;
    if (type->rank)
        memcpy(shape->d, type->dims, (size_t)type->rank * sizeof *shape->d);
    return true;
}

bool onnx_in(const struct nrg_op *op, size_t i, struct onnx_shape *shape)
{
    shape->rank = -1;
    shape->dtype = NRG_DTYPE_UNKNOWN;
    return i < op->n_inputs && onnx_shape_of(op->inputs[i], shape);
}

enum nrg_dtype onnx_in_dtype(const struct nrg_op *op, size_t i)
{
    return i < op->n_inputs ? op->inputs[i]->type->dtype : NRG_DTYPE_UNKNOWN;
}

const struct onnx_known *onnx_in_known(const struct onnx *x, const struct nrg_op *op, size_t i)
{
    return i < op->n_inputs ? onnx_get_known(x, op->inputs[i]) : NULL;
}

bool onnx_is(const struct nrg_op *op, const char *type)
{
    const char *colons = strstr(op->kind, "::");
    return colons && !strcmp(colons + 2, type);
}

enum nrg_dtype onnx_attr_dtype(const struct nrg_op *op, const char *name, int64_t otherwise)
{
    return onnx_dtype((uint64_t)nrg_op_int(op, name, otherwise));
}

int onnx_list(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i,
              int64_t *out, int max)
{
    const struct nrg_attr *attr = name ? nrg_op_attr(op, name) : NULL;
    const struct onnx_known *known = onnx_in_known(x, op, i);
    const int64_t *from = NULL;
    size_t n = 0;
    if (attr && attr->kind == NRG_A_INTS)
        from = attr->is, n = attr->n;
    else if (attr && attr->kind == NRG_A_INT)
        from = &attr->i, n = 1;
    else if (!onnx_has(op, i))
        return -1;
    else if (known && known->i)
        from = known->i, n = known->n;
    if (!from || n > (size_t)max)
        return -2;
    memcpy(out, from, n * sizeof *out);
    return (int)n;
}

int64_t onnx_one_dim(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i)
{
    int64_t element;
    return onnx_list(x, op, name, i, &element, 1) == 1 ? onnx_dim(element) : NRG_DIM_UNKNOWN;
}

bool onnx_list_dims(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i,
                    struct onnx_shape *shape)
{
    struct onnx_shape list;
    int n = onnx_list(x, op, name, i, shape->d, ONNX_MAX_RANK);
    bool counted = onnx_in(op, i, &list) && list.rank == 1 && list.d[0] <= ONNX_MAX_RANK;
    shape->rank = n;
    for (int k = 0; k < n; k++)
        shape->d[k] = onnx_dim(shape->d[k]);
    if (n < 0)
        onnx_unknown_dims(shape, counted ? (int)list.d[0] : -1);
    return n >= 0;
}

void onnx_unknown_dims(struct onnx_shape *shape, int rank)
{
    shape->rank = rank < 0 || rank > ONNX_MAX_RANK ? -1 : rank;
    for (int i = 0; i < shape->rank; i++)
        shape->d[i] = NRG_DIM_UNKNOWN;
}

int64_t onnx_dim_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (a == 1 || b == 1)
        return a == 1 ? b : a;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? NRG_DIM_UNKNOWN : product;
}

int64_t onnx_dim_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (!a || !b)
        return a ? a : b;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? NRG_DIM_UNKNOWN : sum;
}

int64_t onnx_dim_div(int64_t a, int64_t b)
{
    return a < 0 || b < 1 ? NRG_DIM_UNKNOWN : a / b;
}

int64_t onnx_elements(const struct onnx_shape *shape)
{
    int64_t product = shape->rank < 0 ? NRG_DIM_UNKNOWN : 1;
    for (int i = 0; i < shape->rank; i++)
        product = onnx_dim_mul(product, shape->d[i]);
    return product;
}

/* A number other than 1 decides; two unlike symbols, or a symbol and 1, leave it to run time. */
int64_t onnx_dim_broadcast(int64_t a, int64_t b, bool *bad)
{
    if (a == b)
        return a;
    if (a == 1 || b == 1)
        return a == 1 ? b : a;
    if (a >= 0 && b >= 0)
        *bad = true;
    return a >= 0 ? a : b >= 0 ? b : NRG_DIM_UNKNOWN;
}

bool onnx_broadcast(struct onnx_shape *into, const struct onnx_shape *other)
{
    bool bad = false;
    struct onnx_shape out = {into->rank > other->rank ? into->rank : other->rank, into->dtype, {0}};
    for (int i = 1; i <= out.rank; i++) {
        int64_t a = i <= into->rank ? into->d[into->rank - i] : 1;
        int64_t b = i <= other->rank ? other->d[other->rank - i] : 1;
        out.d[out.rank - i] = onnx_dim_broadcast(a, b, &bad);
    }
    *into = out;
    return !bad;
}

bool onnx_axis(int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return false;
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

int onnx_contradiction(struct onnx *x, const struct nrg_op *op)
{
    if (!x->n_broken++)
        x->first_broken = onnx_op_name(op);
    return ONNX_DONE;
}

/* Joins what the rule says with what the file declared, dimension by dimension. */
static void join_declared(struct onnx *x, const struct nrg_value *value, struct onnx_shape *shape)
{
    const struct nrg_type *declared = value->type;
    bool differs = false;
    if (declared->rank < 0 || declared->rank > ONNX_MAX_RANK)
        return;
    if (shape->rank >= 0 && shape->rank != declared->rank)
        differs = true;
    for (int i = 0; i < declared->rank; i++) {
        int64_t d = declared->dims[i];
        int64_t mine = shape->rank == declared->rank ? shape->d[i] : NRG_DIM_UNKNOWN;
        differs |= d >= 0 && mine >= 0 && d != mine;
        shape->d[i] = d >= 0 || mine == NRG_DIM_UNKNOWN ? d : mine;
    }
    shape->rank = declared->rank;
    if (differs && !x->n_conflicts++)
        x->first_conflict = value->name;
}

static bool has_shape(const struct nrg_type *type, const struct onnx_shape *shape)
{
    return type->kind == NRG_T_TENSOR && type->dtype == shape->dtype && type->rank == shape->rank &&
           (shape->rank <= 0 ||
            !memcmp(type->dims, shape->d, (size_t)shape->rank * sizeof *shape->d));
}

/* Most outputs have the type of the first input; then `like` saves a new one. */
static int set_type(struct onnx *x, struct nrg_value *value, const struct onnx_shape *shape,
                    const struct nrg_type *like)
{
    struct onnx_shape joined = *shape;
    if (value->type->kind != NRG_T_TENSOR)
        return 0;
    join_declared(x, value, &joined);
    if (value->type->dtype != NRG_DTYPE_UNKNOWN)
        joined.dtype = value->type->dtype;
    if (has_shape(value->type, &joined))
        return 0;
    value->type = like && has_shape(like, &joined)
                      ? like
                      : nrg_type_tensor(&x->model->arena, joined.dtype, joined.rank, joined.d);
    return value->type ? 0 : onnx_no_memory(x);
}

int onnx_set_shape(struct onnx *x, struct nrg_value *value, const struct onnx_shape *shape)
{
    return set_type(x, value, shape, NULL);
}

int onnx_out(struct onnx *x, struct nrg_op *op, size_t i, const struct onnx_shape *shape)
{
    const struct nrg_type *like = op->n_inputs ? op->inputs[0]->type : NULL;
    return i < op->n_outputs ? set_type(x, op->outputs[i], shape, like) : 0;
}

int64_t onnx_element(int64_t dim)
{
    if (dim >= 0)
        return dim;
    return dim == NRG_DIM_UNKNOWN ? ONNX_NOT_KNOWN : ONNX_NOT_KNOWN - dim;
}

bool onnx_element_known(int64_t element)
{
    return element < ONNX_NOT_KNOWN || element > ONNX_NOT_KNOWN + ONNX_SYMBOLS;
}

int64_t onnx_dim(int64_t element)
{
    if (onnx_element_known(element))
        return element >= 0 ? element : NRG_DIM_UNKNOWN;
    return element == ONNX_NOT_KNOWN ? NRG_DIM_UNKNOWN : ONNX_NOT_KNOWN - element;
}

/* Both kinds of elements have eight bytes. */
static int set_contents(struct onnx *x, const struct nrg_op *op, size_t i, const void *v, size_t n,
                        bool real)
{
    if (i >= op->n_outputs)
        return 0;
    struct onnx_known *known = nrg_arena_alloc(&x->model->arena, sizeof *known);
    void *copy = nrg_arena_array(&x->model->arena, n + 1, sizeof(int64_t));
    if (!known || !copy)
        return onnx_no_memory(x);
    memcpy(copy, v, n * sizeof(int64_t));
    *known = (struct onnx_known){n, real ? NULL : copy, real ? copy : NULL};
    return onnx_set_known(x, op->outputs[i], known);
}

int onnx_know_ints(struct onnx *x, const struct nrg_op *op, size_t i, const int64_t *v, size_t n)
{
    return set_contents(x, op, i, v, n, false);
}

int onnx_know_floats(struct onnx *x, const struct nrg_op *op, size_t i, const double *v, size_t n)
{
    return set_contents(x, op, i, v, n, true);
}
