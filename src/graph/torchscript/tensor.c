/*
 * Tensor types, in all the forms that seven years of printers gave them:
 *
 *   Float(10, 3)  Float(3, 20!)  Float(*, *)      sizes; "!" marks a stride that is not contiguous
 *   Tensor(dtype = Float , shape = (*, 10)        profiled, 1.1 and 1.2: the printer forgot a ")"
 *   Float(32:128, 128:1, requires_grad=0, device=cpu)              size:stride
 *   Float(32, 128, strides=[128, 1], requires_grad=0, device=cpu)  since 1.8; SS(-2) is symbolic
 *   FloatTensor(requires_grad=0)  Tensor(*, 8)    no rank, or no dtype
 *
 * No sizes after a bare dtype ("Long()") mean rank 0; after a name that ends in Tensor they mean
 * that the rank is unknown. Strides are kept only when there is one for every dimension.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "graph/torchscript/lex.h"

/* In the scratch list: sizes and strides take turns. */
struct dims {
    size_t n;
    bool strides_told;
};

int ts_int(struct ts *ts, int64_t *out)
{
    const char *p = ts->p;
    bool negative = p < ts->end && *p == '-', overflow = false;
    const char *digits = p += negative;
    uint64_t value = 0;
    for (; p < ts->end && ts_is(*p, TS_DIGIT); p++)
        overflow |= __builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    if (p == digits)
        return -EINVAL;
    ts->p = p;
    if (overflow || value > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *out = negative ? (int64_t)(~value + 1) : (int64_t)value;
    return 0;
}

int ts_add_int(struct ts *ts, int64_t value)
{
    if (nrg_append(&ts->ints, &ts->n_ints, &ts->cap_ints, &value, sizeof *ts->ints))
        return ts_no_memory(ts);
    return 0;
}

int64_t *ts_copy_ints(struct ts *ts, const int64_t *from, size_t n)
{
    int64_t *copy = nrg_arena_array(&ts->model->arena, n, sizeof *copy);
    if (copy && n)
        memcpy(copy, from, n * sizeof *copy);
    return copy;
}

/* "12", "*", "?", "SS(-2)", or a symbol's name. */
static int size_or_stride(struct ts *ts, int64_t *out)
{
    *out = NRG_DIM_UNKNOWN;
    if (ts_take(ts, '*') || ts_take(ts, '?'))
        return 0;
    bool symbol = ts_take_word(ts, "SS(");
    int rc = ts_int(ts, out);
    if (rc == -EINVAL && !symbol) {
        const char *at = ts->p;
        while (ts->p < ts->end && ts_is(*ts->p, TS_IDENT))
            ts->p++;
        return ts->p > at ? 0 : TS_SYNTAX;
    }
    /* A size beyond 63 bits is as good as unknown; reader.c warns. */
    if (rc) {
        *out = NRG_DIM_UNKNOWN;
        ts->n_huge_dims += rc == -ERANGE;
    }
    if (*out < 0 && (!symbol || *out > -2))
        *out = NRG_DIM_UNKNOWN;
    return symbol && !ts_take(ts, ')') ? TS_SYNTAX : 0;
}

static int read_dim(struct ts *ts, struct dims *dims)
{
    int64_t size, stride = NRG_DIM_UNKNOWN;
    int rc = size_or_stride(ts, &size);
    if (rc)
        return rc;
    ts_take(ts, '!');
    if (ts_take(ts, ':')) {
        rc = size_or_stride(ts, &stride);
        if (rc)
            return rc;
        dims->strides_told = true;
    }
    dims->n++;
    rc = ts_add_int(ts, size);
    return rc ? rc : ts_add_int(ts, stride);
}

/* "strides=[128, 1]", after the bracket. */
static int read_strides(struct ts *ts, struct dims *dims)
{
    size_t n = 0;
    while (!ts_take(ts, ']')) {
        int64_t stride;
        ts_skip_blanks(ts);
        int rc = size_or_stride(ts, &stride);
        if (rc)
            return rc;
        if (n < dims->n)
            ts->ints[n * 2 + 1] = stride;
        n++;
        ts_skip_blanks(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != ']')
            return TS_SYNTAX;
    }
    dims->strides_told = n && n == dims->n;
    return 0;
}

static const char *option_end(const struct ts *ts)
{
    const char *p = ts->p;
    int depth = 0;
    for (; p < ts->end && *p != '\n'; p++) {
        if (memchr("([{", *p, 3))
            depth++;
        else if (memchr(")]}", *p, 3) && depth-- == 0)
            break;
        else if (*p == ',' && !depth)
            break;
    }
    while (p > ts->p && ts_is(p[-1], TS_BLANK))
        p--;
    return p;
}

/* The printer forgot a bracket: in "shape = (*, 10)):" the second one ends the list of inputs. */
static bool profiled_ends(struct ts *ts)
{
    const char *p = ts->p;
    if (p >= ts->end || *p != ')')
        return true;
    p = ts_after_blanks(p + 1, ts->end);
    return p < ts->end && (*p == ':' || *p == '{');
}

/* "shape = (*, 10)", after the bracket; "(*)" is what an unknown rank looks like as well. */
static int profiled_shape(struct ts *ts, struct dims *dims, bool *rank_told)
{
    while (!ts_take(ts, ')')) {
        ts_skip_blanks(ts);
        int rc = read_dim(ts, dims);
        if (rc)
            return rc;
        ts_skip_blanks(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != ')')
            return TS_SYNTAX;
    }
    if (dims->n == 1 && ts->ints[0] == NRG_DIM_UNKNOWN)
        dims->n = 0;
    else
        *rank_told = true;
    return 0;
}

static bool key_is(struct ts *ts, const char *key)
{
    const char *at = ts->p;
    if (ts_take_word(ts, key)) {
        ts_skip_blanks(ts);
        if (ts_take(ts, '=')) {
            ts_skip_blanks(ts);
            return true;
        }
    }
    ts->p = at;
    return false;
}

/* key=value; those that we do not know are skipped. */
static int read_option(struct ts *ts, struct nrg_type *type)
{
    int64_t flag;
    if (key_is(ts, "requires_grad") && !ts_int(ts, &flag))
        type->requires_grad = flag != 0;
    const char *value = ts->p;
    if (key_is(ts, "device")) {
        value = ts->p;
        type->device = ts_intern(ts, value, (size_t)(option_end(ts) - value));
        if (!type->device)
            return ts_no_memory(ts);
    } else if (key_is(ts, "dtype")) {
        value = ts->p;
        type->dtype = nrg_dtype_from_name(value, (size_t)(option_end(ts) - value));
    }
    ts->p = option_end(ts);
    return 0;
}

static bool is_option(const struct ts *ts)
{
    const char *p = ts->p;
    while (p < ts->end && ts_is(*p, TS_IDENT))
        p++;
    if (p == ts->p || ts_is(*ts->p, TS_DIGIT))
        return false;
    p = ts_after_blanks(p, ts->end);
    return p < ts->end && *p == '=';
}

static int set_dims(struct ts *ts, struct nrg_type *type, const struct dims *dims, bool rank_told)
{
    size_t n = dims->n;
    if (n > INT32_MAX)
        return TS_SYNTAX;
    type->rank = n || rank_told ? (int)n : -1;
    if (!n)
        return 0;
    int64_t *both = ts_copy_ints(ts, ts->ints, n * 2);
    if (!both)
        return ts_no_memory(ts);
    for (size_t i = 0; i < n; i++) {
        both[i] = ts->ints[i * 2];
        both[n + i] = ts->ints[i * 2 + 1];
    }
    type->dims = both;
    type->strides = dims->strides_told ? both + n : NULL;
    return 0;
}

int ts_tensor_options(struct ts *ts, struct nrg_type *type, bool rank_told)
{
    struct dims dims = {0};
    ts->n_ints = 0;
    for (;;) {
        int rc;
        ts_skip_blanks(ts);
        if (ts_take(ts, ')'))
            break;
        if (key_is(ts, "shape") && ts_take(ts, '(')) {
            rc = profiled_shape(ts, &dims, &rank_told);
            if (!rc && profiled_ends(ts))
                break;
        } else if (ts_take_word(ts, "strides=[")) {
            rc = read_strides(ts, &dims);
        } else {
            rc = is_option(ts) ? read_option(ts, type) : read_dim(ts, &dims);
        }
        ts_skip_blanks(ts);
        if (!rc && !ts_take(ts, ',') && ts_peek(ts) != ')')
            rc = TS_SYNTAX;
        if (rc)
            return rc;
    }
    return set_dims(ts, type, &dims, rank_told);
}
