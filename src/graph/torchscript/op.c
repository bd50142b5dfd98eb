/*
 * One node:
 *
 *   %a : T, %b : U = aten::topk[attr=1](%x, %k), scope: a/b # file.py:1:2
 *
 * with its older and rarer forms: no output ("  = prim::Print(%1)", or no "=" at all in
 * hand-written text), "^Function[attrs](scalars)(%x)" for Python functions, "CppOp[Name](%x)",
 * kinds without a namespace (up to 0.4), ", uses = [[%5.i0]];" (0.3).
 *
 * A node, its arrays, values and attributes are one piece of memory. Outputs become visible after
 * the operands are read, so that no node can use its own result. The tail (scope, source) is
 * read last: strings may hold "#" and ", scope:".
 */
#include "base/mem.h"
#include "graph/torchscript/lex.h"

struct call {
    const char *kind, *label;
    const char *text; /* the kind as written, and its length */
    size_t len;
};

static int read_outputs(struct ts *ts)
{
    ts->n_outputs = 0;
    if (ts_peek(ts) != '%' && ts_peek(ts) != '=')
        return 0;
    while (!ts_take(ts, '=')) {
        int rc = ts_typed(ts);
        if (rc)
            return rc;
        ts_skip_blanks(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != '=')
            return TS_SYNTAX;
        ts_skip_blanks(ts);
    }
    ts_skip_blanks(ts);
    return 0;
}

static bool is_prim(const char *name, size_t len)
{
    static const char *const prims[] = {
        "Constant",      "Undefined",   "FusionGroup",    "If",          "Loop",
        "Print",         "Param",       "Return",         "Eval",        "ReplaceIfUndef",
        "ListConstruct", "ListUnpack",  "TupleConstruct", "TupleUnpack", "NumToTensor",
        "TensorToNum",   "AutogradAdd", "AnyDefined",     "GradOf",      "ConstantChunk",
        "FusedConcat",   "PythonOp",    "CppOp",          "Select",
    };
    while (len && ts_is(name[len - 1], TS_DIGIT))
        len--;
    if (len && name[len - 1] == '_')
        len--;
    for (size_t i = 0; i < sizeof prims / sizeof *prims; i++)
        if (ts_equals(name, len, prims[i]))
            return true;
    return false;
}

/* Namespaces came in 2018; before, small letters were ATen's and capitals ONNX's. */
static const char *space_of(const char *name, size_t len)
{
    if (ts_find_word(name, name + len, "::"))
        return "";
    if (is_prim(name, len))
        return "prim::";
    return *name >= 'A' && *name <= 'Z' ? "onnx::" : "aten::";
}

static int read_kind(struct ts *ts, struct call *call)
{
    call->text = ts->p;
    ts->p = ts_name_end(ts->p, ts->end);
    call->len = (size_t)(ts->p - call->text);
    if (!call->len || (ts_peek(ts) != '[' && ts_peek(ts) != '('))
        return TS_SYNTAX;
    struct nrg_map_entry *entry = nrg_map_at(&ts->kinds, call->text, call->len);
    if (!entry)
        return ts_no_memory(ts);
    if (!entry->data) {
        struct nrg_str full = {0};
        const char *space = space_of(call->text, call->len);
        if (!nrg_str_add(&full, space, strlen(space)) && !nrg_str_add(&full, call->text, call->len))
            entry->data = (char *)ts_copy(ts, full.text, full.len);
        nrg_str_release(&full);
    }
    call->kind = entry->data;
    return call->kind ? 0 : ts_no_memory(ts);
}

/* Scalars of a Python function are unquoted str() texts: they end at ")(" before a list. */
static int read_scalars(struct ts *ts)
{
    const char *at = ts->p + 1, *eol = ts_line_end(ts), *p = ts->p;
    while ((p = ts_find_word(p, eol, ")("))) {
        if (p + 2 < eol && (p[2] == '%' || p[2] == ')'))
            break;
        p++;
    }
    if (!p)
        return 0; /* none were printed */
    ts->p = p + 1;
    if (p == at)
        return 0;
    struct nrg_attr attr = {.name = "scalar_args", .kind = NRG_A_OTHER};
    attr.s = ts_copy(ts, at, (size_t)(p - at));
    if (!attr.s || nrg_append(&ts->attrs, &ts->n_attrs, &ts->cap_attrs, &attr, sizeof attr))
        return ts_no_memory(ts);
    return 0;
}

static int python_function(struct ts *ts, struct call *call)
{
    const char *name = ++ts->p;
    ts->p = ts_name_end(name, ts->end);
    call->kind = "prim::PythonOp";
    call->label = ts_intern(ts, name, (size_t)(ts->p - name));
    if (!call->label)
        return ts_no_memory(ts);
    int rc = ts_peek(ts) == '[' ? ts_attributes(ts) : 0;
    if (rc || ts_peek(ts) != '(')
        return rc ? rc : TS_SYNTAX;
    return read_scalars(ts);
}

static int cpp_function(struct ts *ts, struct call *call)
{
    const char *name = ts->p += strlen("CppOp["), *eol = ts_line_end(ts);
    const char *close = ts_find_word(name, eol, "](");
    if (!close)
        return TS_SYNTAX;
    call->kind = "prim::CppOp";
    call->label = ts_intern(ts, name, (size_t)(close - name));
    ts->p = close + 1;
    return call->label ? 0 : ts_no_memory(ts);
}

static int read_call(struct ts *ts, struct call *call)
{
    int rc;
    ts->n_attrs = 0;
    ts->operands.n = 0;
    if (ts_peek(ts) == '^') {
        rc = python_function(ts, call);
    } else if (ts_looking_at(ts, "CppOp[")) {
        rc = cpp_function(ts, call);
    } else {
        rc = read_kind(ts, call);
        if (!rc && ts_peek(ts) == '[')
            rc = ts_attributes(ts);
    }
    return rc ? rc : ts_value_list(ts);
}

static int define_outputs(struct ts *ts, struct nrg_op *op, struct nrg_value *room)
{
    op->n_outputs = ts->n_outputs;
    for (size_t i = 0; i < op->n_outputs; i++) {
        int rc = ts_define_value(ts, &ts->outputs[i], op, room + i, &op->outputs[i]);
        if (rc)
            return rc;
    }
    return 0;
}

static int build_op(struct ts *ts, const struct call *call, struct nrg_op **out)
{
    size_t n_in = ts->operands.n, n_out = ts->n_outputs, n_attrs = ts->n_attrs;
    struct nrg_op *op =
        nrg_arena_alloc(&ts->model->arena, sizeof *op + (n_in + n_out) * sizeof(void *) +
                                               n_out * sizeof(struct nrg_value) +
                                               n_attrs * sizeof(struct nrg_attr));
    if (!op)
        return ts_no_memory(ts);
    struct nrg_attr *attrs = (struct nrg_attr *)(op + 1);
    struct nrg_value *values = (struct nrg_value *)(attrs + n_attrs);
    op->kind = call->kind;
    op->label = call->label;
    op->inputs = (struct nrg_value **)(values + n_out);
    op->outputs = op->inputs + n_in;
    op->n_inputs = n_in;
    if (n_in)
        memcpy(op->inputs, ts->operands.items, n_in * sizeof *op->inputs);
    op->attrs = attrs;
    op->n_attrs = n_attrs;
    if (n_attrs)
        memcpy(attrs, ts->attrs, n_attrs * sizeof *attrs);
    if (n_attrs && n_out == 1 && !strcmp(op->kind, "prim::Constant"))
        ts_fit_constant(attrs, ts->outputs[0].type);
    op->id = (uint32_t)ts->state.graph->n_ops++;
    *out = op;
    return define_outputs(ts, op, values);
}

/* "uses = [[%5.i0], []]": a nested list that is not needed. */
static void skip_uses(struct ts *ts, const char *eol)
{
    int depth = 0;
    for (; ts->p < eol; ts->p++) {
        depth += (*ts->p == '[') - (*ts->p == ']');
        if (!depth && *ts->p == ']') {
            ts->p++;
            return;
        }
    }
}

static int read_scope(struct ts *ts, const char *eol, struct nrg_op *op)
{
    ts_skip_blanks(ts);
    const char *at = ts->p;
    while (ts->p < eol && !ts_is(*ts->p, TS_BLANK))
        ts->p++;
    size_t len = (size_t)(ts->p - at);
    if (len && at[len - 1] == ';')
        len--;
    return len ? ts_scope(ts, at, len, op) : 0;
}

static int read_source(struct ts *ts, const char *eol, struct nrg_op *op)
{
    ts_skip_blanks(ts);
    const char *at = ts->p, *end = eol;
    while (end > at && (ts_is(end[-1], TS_BLANK) || end[-1] == ';'))
        end--;
    ts->p = eol;
    if (end == at)
        return 0;
    op->source = ts_intern(ts, at, (size_t)(end - at));
    return op->source ? 0 : ts_no_memory(ts);
}

static int read_tail(struct ts *ts, struct nrg_op *op)
{
    const char *eol = ts_line_end(ts);
    int rc = 0;
    while (!rc && ts->p < eol) {
        ts_skip_blanks(ts);
        if (ts_take_word(ts, ", scope:") || ts_take_word(ts, ",scope:"))
            rc = read_scope(ts, eol, op);
        else if (ts_take_word(ts, ", uses ="))
            skip_uses(ts, eol);
        else if (ts_take(ts, '#'))
            rc = read_source(ts, eol, op);
        else if (!ts_take(ts, ';'))
            break; /* a note that a person added */
    }
    ts->p = eol;
    return rc;
}

/* "prim::FusionGroup_0": may refer to a graph that comes later. */
static bool is_numbered(const char *text, size_t len)
{
    size_t n = len;
    while (n && ts_is(text[n - 1], TS_DIGIT))
        n--;
    return n < len && n > 1 && text[n - 1] == '_';
}

int ts_op(struct ts *ts, struct nrg_block *block, struct nrg_op **out)
{
    const char *at = ts->p;
    struct call call = {0};
    int rc = read_outputs(ts);
    if (!rc)
        rc = read_call(ts, &call);
    if (!rc)
        rc = build_op(ts, &call, out);
    if (rc)
        return rc;
    (*out)->parent = block;
    (*out)->line = ts_line_at(ts, at);
    rc = read_tail(ts, *out);
    if (!rc && call.text && is_numbered(call.text, call.len))
        rc = ts_wait_for_graph(ts, *out, call.text, call.len);
    return rc;
}
