/*
 * Lists and tensors as values: "[1, 2]", "[0.5, inf]", "["a", "b"]", "[True, False]" (kept as
 * integers), and the print of a small tensor, "1 2 3 [ CPULongType{3} ]". Only integers survive
 * that print exactly, and only when it is a vector or a plain matrix; floats are rounded to four
 * digits, so that their values are not kept. Mixed and nested lists are left to the caller,
 * which keeps them as text.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "graph/torchscript/lex.h"

static int add_float(struct ts *ts, double value)
{
    if (nrg_append(&ts->floats, &ts->n_floats, &ts->cap_floats, &value, sizeof *ts->floats))
        return ts_no_memory(ts);
    return 0;
}

static int string_element(struct ts *ts)
{
    const char *text;
    int rc = ts_string(ts, &text);
    return rc ? rc : ts_push(ts, &ts->strings, (void *)text);
}

static int number_element(struct ts *ts, bool *floats)
{
    struct nrg_attr element = {0};
    const char *at = ts->p;
    if (ts_take_word(ts, "True"))
        element.i = 1;
    else if (!ts_take_word(ts, "False")) {
        while (ts->p < ts->end && *ts->p != ',' && *ts->p != ']' && *ts->p != '\n' &&
               !ts_is(*ts->p, TS_BLANK))
            ts->p++;
        int rc = ts_number(ts, at, ts->p, &element);
        if (rc)
            return rc;
        *floats |= element.kind == NRG_A_FLOAT;
    }
    int rc = ts_add_int(ts, element.i);
    return rc ? rc : add_float(ts, element.f);
}

static int read_elements(struct ts *ts, bool *floats)
{
    for (ts->p++;;) {
        ts_skip_blanks(ts);
        if (ts_take(ts, ']'))
            return ts->strings.n && ts->n_ints ? TS_SYNTAX : 0;
        int rc = ts_peek(ts) == '"' ? string_element(ts) : number_element(ts, floats);
        if (rc)
            return rc;
        ts_skip_blanks(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != ']')
            return TS_SYNTAX;
    }
}

int ts_list(struct ts *ts, struct nrg_attr *attr)
{
    bool floats = false;
    ts->n_ints = ts->n_floats = ts->strings.n = 0;
    int rc = read_elements(ts, &floats);
    if (rc)
        return rc;
    if (ts->strings.n) {
        attr->kind = NRG_A_STRINGS;
        return ts_pop_array(ts, &ts->strings, 0, &attr->ss, &attr->n);
    }
    attr->kind = floats ? NRG_A_FLOATS : NRG_A_INTS;
    attr->n = ts->n_ints;
    if (!floats) {
        attr->is = ts_copy_ints(ts, ts->ints, attr->n);
        return attr->is ? 0 : ts_no_memory(ts);
    }
    double *fs = nrg_arena_array(&ts->model->arena, attr->n, sizeof *fs);
    if (!fs)
        return ts_no_memory(ts);
    memcpy(fs, ts->floats, attr->n * sizeof *fs);
    attr->fs = fs;
    return 0;
}

/* "CPULongType": the backend's name comes first; no list of backends would stay complete. */
static enum nrg_dtype dtype_at_end(const char *at, size_t len)
{
    for (; len; at++, len--) {
        enum nrg_dtype dtype = nrg_dtype_from_name(at, len);
        if (*at >= 'A' && *at <= 'Z' && dtype != NRG_DTYPE_UNKNOWN)
            return dtype;
    }
    return NRG_DTYPE_UNKNOWN;
}

static bool is_integer(enum nrg_dtype dtype)
{
    return dtype >= NRG_I64 && dtype <= NRG_BOOL;
}

/* The integers before the bracket, into the scratch list; 0 if there is anything else. */
static size_t read_ints(struct ts *ts, const char *at, const char *end)
{
    const char *p = ts->p, *real_end = ts->end;
    size_t before = ts->n_ints;
    int64_t value;
    bool good = true;
    ts->p = at;
    ts->end = end;
    for (;;) {
        ts_skip_blanks(ts);
        if (ts->p >= ts->end)
            break;
        if (ts_int(ts, &value) || ts_add_int(ts, value)) {
            good = false;
            break;
        }
    }
    ts->p = p;
    ts->end = real_end;
    return good ? ts->n_ints - before : 0;
}

/* "{2,3}" into the scratch list. */
static int read_shape(struct ts *ts, const char *brace)
{
    const char *p = ts->p;
    int rc = 0;
    ts->n_ints = 0;
    ts->p = brace + 1;
    while (!rc && !ts_take(ts, '}')) {
        int64_t dim;
        ts_skip_blanks(ts);
        if (ts_int(ts, &dim) || dim < 0)
            rc = TS_SYNTAX;
        else
            rc = ts_add_int(ts, dim);
        ts_take(ts, ',');
    }
    ts->p = p;
    return rc;
}

int ts_tensor_value(struct ts *ts, const char *at, const char *end, struct nrg_attr *attr)
{
    const char *type = memrchr(at, '[', (size_t)(end - at));
    const char *name = ts_find_word(type, end, "Type{");
    if (!name)
        return TS_SYNTAX;
    int rc = read_shape(ts, name + 4);
    if (rc)
        return rc;
    size_t rank = ts->n_ints;
    enum nrg_dtype dtype = dtype_at_end(type + 1, (size_t)(name - type - 1));
    attr->kind = NRG_A_TENSOR;
    attr->tensor = nrg_type_tensor(&ts->model->arena, dtype, (int)rank, ts->ints);
    if (!attr->tensor)
        return ts_no_memory(ts);
    size_t n = is_integer(dtype) && rank <= 2 ? read_ints(ts, at, type) : 0;
    if (n && nrg_type_numel(attr->tensor) == (int64_t)n) {
        attr->n = n;
        attr->is = ts_copy_ints(ts, ts->ints + rank, n);
        attr->i = ts->ints[rank];
    }
    return attr->n && !attr->is ? ts_no_memory(ts) : 0;
}
