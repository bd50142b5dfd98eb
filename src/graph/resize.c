/*
 * See resize.h. The batch is the first dimension of the model's first tensor input, the sequence
 * its second, unless symbols are called so.
 */
#include "graph/resize.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/resize_symbols.h"

#define MAX_RANK  64
#define MAX_DEPTH 64

/* ---- inputs ---- */

static const struct nrg_type *first_input(const struct nrg_model *model)
{
    const struct nrg_block *body = model->n_graphs ? model->graphs[0]->body : NULL;
    for (size_t i = 0; body && i < body->n_inputs; i++) {
        const struct nrg_type *type = body->inputs[i]->type;
        if (type->kind == NRG_T_TENSOR && type->rank > 0 && type->dims)
            return type;
    }
    return NULL;
}

static int axis_of(const char *name)
{
    return !strcmp(name, "batch") ? 0 : !strcmp(name, "seq") ? 1 : -1;
}

static int64_t input_dim(const struct nrg_model *model, int axis)
{
    const struct nrg_type *type = first_input(model);
    return type && axis >= 0 && axis < type->rank ? type->dims[axis] : NRG_DIM_UNKNOWN;
}

int64_t nrg_model_size(const struct nrg_model *model, const char *name)
{
    int64_t dim = input_dim(model, axis_of(name));
    return dim >= 0 ? dim : -1;
}

/* ---- new types ---- */

/* What a dimension becomes; `at` is the same dimension in the other trace. */
struct resizer {
    struct nrg_model *model;
    struct nrg_symbols *symbols; /* NULL: two traces */
    double before[2], after[2];  /* batch and sequence of the two traces */
    double wanted[2];            /* NAN: as in the first trace */
    const char *where;
    struct nrg_error *err;
};

static int fail_not_determined(struct resizer *r, const struct nrg_value *value, int64_t a,
                               int64_t b)
{
    return nrg_fail(r->err, -ENOTSUP, r->where,
                    "%%%s is %lld in one trace and %lld in the other: neither batch nor sequence "
                    "tell why",
                    value->name, (long long)a, (long long)b);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

/* Linear in the one size that differs: d = a + b x size. */
static int linear_dim(struct resizer *r, const struct nrg_value *value, int axis, int64_t d1,
                      int64_t d2, int64_t *out)
{
    double slope = (double)(d2 - d1) / (r->after[axis] - r->before[axis]);
    double size = isnan(r->wanted[axis]) ? r->before[axis] : r->wanted[axis];
    double d = (double)d1 + slope * (size - r->before[axis]);
    if (!(d >= 0 && d < 1e15) || fabs(d - round(d)) > 1e-9)
        return fail_not_determined(r, value, d1, d2);
    *out = llround(d);
    return 0;
}

static int traced_dim(struct resizer *r, const struct nrg_value *value, int64_t d1, int64_t d2,
                      int64_t *out)
{
    bool differs[2] = {r->before[0] != r->after[0], r->before[1] != r->after[1]};
    double scale[2], wants[2], ratio = (double)d2 / (double)d1, found = NAN;
    *out = d1;
    if (d1 == d2 || d1 < 0 || d2 < 0)
        return 0;
    if (differs[0] != differs[1])
        return linear_dim(r, value, differs[0] ? 0 : 1, d1, d2, out);
    for (int i = 0; i < 2; i++) {
        scale[i] = r->after[i] / r->before[i];
        wants[i] = isnan(r->wanted[i]) ? 1 : r->wanted[i] / r->before[i];
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            if (d1 <= 0 || !is_near(ratio, pow(scale[0], i) * pow(scale[1], j)))
                continue;
            double d = (double)d1 * pow(wants[0], i) * pow(wants[1], j);
            if (!isnan(found) && !is_near(found, d)) /* two laws fit, with different results */
                return fail_not_determined(r, value, d1, d2);
            found = d;
        }
    if (isnan(found) || fabs(found - round(found)) > 1e-6 || found >= 1e15)
        return fail_not_determined(r, value, d1, d2);
    *out = llround(found);
    return 0;
}

/* Strides of a tensor that is dense in some order of its dimensions; false: it is not. */
static bool dense_strides(const struct nrg_type *old, const int64_t *dims, int64_t *strides)
{
    int order[MAX_RANK];
    int64_t step = 1, before = 1;
    for (int i = 0; i < old->rank; i++) {
        int at = i;
        for (; at > 0 && (old->strides[order[at - 1]] > old->strides[i] ||
                          (old->strides[order[at - 1]] == old->strides[i] && old->dims[i] != 1));
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < old->rank; i++) {
        if (old->dims[order[i]] != 1 && old->strides[order[i]] != before)
            return false;
        strides[order[i]] = step;
        before *= old->dims[order[i]];
        if (__builtin_mul_overflow(step, dims[order[i]], &step))
            return false;
    }
    return true;
}

static int set_dims(struct resizer *r, struct nrg_value *value, const int64_t *dims)
{
    const struct nrg_type *old = value->type;
    size_t rank = (size_t)old->rank;
    struct nrg_type *type = nrg_arena_alloc(&r->model->arena, sizeof *type);
    int64_t *kept = nrg_arena_array(&r->model->arena, 2 * rank + 1, sizeof *kept);
    bool known = old->strides != NULL;
    if (!type || !kept)
        return nrg_fail(r->err, -ENOMEM, r->where, "out of memory");
    memcpy(kept, dims, rank * sizeof *dims);
    for (size_t i = 0; i < rank; i++)
        known = known && old->dims[i] > 0 && old->strides[i] >= 0 && dims[i] > 0;
    *type = *old;
    type->dims = kept;
    type->strides = known && dense_strides(old, dims, kept + rank) ? kept + rank : NULL;
    value->type = type;
    return 0;
}

static int resize_value(struct resizer *r, struct nrg_value *value, const struct nrg_value *other)
{
    const struct nrg_type *type = value->type, *second = other ? other->type : NULL;
    int64_t dims[MAX_RANK];
    bool changed = false;
    int rc = 0;
    if (type->kind != NRG_T_TENSOR || type->rank <= 0 || !type->dims || type->rank > MAX_RANK)
        return 0;
    if (other && (second->kind != NRG_T_TENSOR || second->rank != type->rank || !second->dims))
        return nrg_fail(r->err, -ENOTSUP, r->where, "%%%s has another rank in the second trace",
                        value->name);
    for (int i = 0; !rc && i < type->rank; i++) {
        dims[i] = type->dims[i];
        if (other)
            rc = traced_dim(r, value, type->dims[i], second->dims[i], &dims[i]);
        else if (dims[i] <= -2)
            dims[i] = nrg_symbols_value(r->symbols, dims[i]);
        changed |= dims[i] != type->dims[i];
    }
    return rc || !changed ? rc : set_dims(r, value, dims);
}

/* ---- walking ---- */

static int resize_list(struct resizer *r, struct nrg_value **values, size_t n,
                       struct nrg_value *const *others)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++)
        rc = resize_value(r, values[i], others ? others[i] : NULL);
    return rc;
}

static int fail_traces_differ(struct resizer *r, const struct nrg_op *a, const struct nrg_op *b)
{
    return nrg_fail(r->err, -ENOTSUP, r->where,
                    "the traces differ in more than sizes: %s in line %u, %s in line %u of the "
                    "second",
                    a ? a->kind : "nothing", a ? a->line : 0, b ? b->kind : "nothing",
                    b ? b->line : 0);
}

static int resize_block(struct resizer *r, struct nrg_block *block, const struct nrg_block *other,
                        int depth)
{
    if (depth > MAX_DEPTH)
        return nrg_fail(r->err, -EFBIG, r->where, "blocks are nested too deeply");
    if (other && (block->n_inputs != other->n_inputs || block->n_ops != other->n_ops)) {
        size_t n = block->n_ops < other->n_ops ? block->n_ops : other->n_ops, i = 0;
        while (i < n && !strcmp(block->ops[i]->kind, other->ops[i]->kind))
            i++;
        return fail_traces_differ(r, i < block->n_ops ? block->ops[i] : NULL,
                                  i < other->n_ops ? other->ops[i] : NULL);
    }
    int rc = resize_list(r, block->inputs, block->n_inputs, other ? other->inputs : NULL);
    for (size_t i = 0; !rc && i < block->n_ops; i++) {
        struct nrg_op *op = block->ops[i];
        const struct nrg_op *same = other ? other->ops[i] : NULL;
        if (same && (strcmp(op->kind, same->kind) || op->n_outputs != same->n_outputs ||
                     op->n_blocks != same->n_blocks))
            return fail_traces_differ(r, op, same);
        rc = resize_list(r, op->outputs, op->n_outputs, same ? same->outputs : NULL);
        for (size_t b = 0; !rc && b < op->n_blocks; b++)
            rc = resize_block(r, op->blocks[b], same ? same->blocks[b] : NULL, depth + 1);
    }
    return rc;
}

/* ---- the two ways ---- */

static int resize_by_symbols(struct resizer *r, const struct nrg_size *sizes, size_t n)
{
    struct nrg_symbols symbols = {.model = r->model};
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        int64_t dim =
            nrg_symbols_find(r->model, sizes[i].name, input_dim(r->model, axis_of(sizes[i].name)));
        if (dim > -2)
            rc = nrg_fail(r->err, -ENOTSUP, r->where,
                          "has no symbolic dimension '%s': a graph of fixed sizes does not tell "
                          "what depends on it; give a second trace at another size with --trace",
                          sizes[i].name);
        else if (nrg_symbols_set(&symbols, dim, sizes[i].value))
            rc = nrg_fail(r->err, -ENOMEM, r->where, "out of memory");
    }
    r->symbols = &symbols;
    for (size_t g = 0; !rc && g < r->model->n_graphs; g++)
        rc = resize_block(r, r->model->graphs[g]->body, NULL, 0);
    r->symbols = NULL;
    nrg_symbols_release(&symbols);
    return rc;
}

static int resize_by_traces(struct resizer *r, const struct nrg_model *other,
                            const struct nrg_size *sizes, size_t n)
{
    static const char *const names[] = {"batch", "sequence"};
    for (int i = 0; i < 2; i++) {
        r->before[i] = (double)input_dim(r->model, i);
        r->after[i] = (double)input_dim(other, i);
        r->wanted[i] = NAN;
        if (i == 0 && (r->before[0] < 1 || r->after[0] < 1))
            return nrg_fail(r->err, -ENOTSUP, r->where, "the first input's sizes are not known");
    }
    if (r->before[1] > 0 && r->before[0] != r->after[0] &&
        is_near(r->after[0] / r->before[0], r->after[1] / r->before[1]))
        return nrg_fail(r->err, -ENOTSUP, r->where,
                        "batch and sequence grow by the same factor from one trace to the other: "
                        "which of them a dimension follows can't be told");
    for (size_t i = 0; i < n; i++) {
        int axis = axis_of(sizes[i].name);
        if (axis < 0)
            return nrg_fail(r->err, -ENOTSUP, r->where,
                            "two traces tell about --batch and --seq only, not '%s'",
                            sizes[i].name);
        r->wanted[axis] = (double)sizes[i].value;
        if (r->before[axis] == r->after[axis] && r->wanted[axis] != r->before[axis])
            return nrg_fail(r->err, -ENOTSUP, r->where,
                            "both traces have the %s %g: they don't tell what depends on it",
                            names[axis], r->before[axis]);
    }
    return resize_block(r, r->model->graphs[0]->body, other->graphs[0]->body, 0);
}

int nrg_model_resize(struct nrg_model *model, const struct nrg_model *other,
                     const struct nrg_size *sizes, size_t n, const char *where,
                     struct nrg_error *err)
{
    struct resizer r = {.model = model, .where = where, .err = err};
    if (!model->n_graphs || (other && !other->n_graphs))
        return nrg_fail(err, -ENODATA, where, "holds no graph");
    return other ? resize_by_traces(&r, other, sizes, n) : resize_by_symbols(&r, sizes, n);
}
