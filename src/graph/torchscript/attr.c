/*
 * Attributes: "[name=value, …]" after a node's kind. Values are read as what they look like: int,
 * float, string, list, tensor; what is none of these (complex, tuple, dict, type, enum) is kept
 * as text. Where a constant prints less than it is (True as 1, 1.0 as 1 up to 1.4, strings
 * without quotes up to 1.0), the type of the node's output decides (ts_fit_constant).
 *
 * The end of a value that is not read by its own grammar is found by counting brackets. A comma
 * ends it only when "name=" follows, a "]" only when "(" does: unquoted strings hold both.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "graph/torchscript/lex.h"

#define RAW_LINES_MAX 4096 /* bytes that an unquoted string may go on after its first line */

/* "," or "]" comes next. */
static bool value_ends(const struct ts *ts)
{
    const char *p = ts_after_blanks(ts->p, ts->end);
    return p < ts->end && (*p == ',' || *p == ']');
}

int ts_number(struct ts *ts, const char *at, const char *end, struct nrg_attr *attr)
{
    size_t len = (size_t)(end - at);
    bool negative = len && *at == '-';
    if (ts_equals(at + negative, len - negative, "inf")) {
        attr->f = negative ? -INFINITY : INFINITY;
    } else if (ts_equals(at + negative, len - negative, "nan")) {
        attr->f = NAN;
    } else if (!nrg_parse_i64(at, len, &attr->i)) {
        attr->kind = NRG_A_INT;
        attr->f = (double)attr->i;
        return 0;
    } else if (!memchr("0123456789-.", len ? *at : 'x', 12) ||
               nrg_parse_double(at, len, &attr->f)) {
        return TS_SYNTAX;
    }
    attr->kind = NRG_A_FLOAT;
    return 0;
}

/* A comma after which the next attribute begins. */
static bool next_attribute(const char *comma, const char *end)
{
    const char *p = ts_after_blanks(comma + 1, end), *name = p;
    while (p < end && (ts_is(*p, TS_IDENT) || *p == '.'))
        p++;
    return p > name && p < end && *p == '=';
}

static const char *skip_quoted(const char *p, const char *end)
{
    for (const char *q = p + 1; q < end && *q != '\n'; q++) {
        if (*q == '"')
            return q;
        q += *q == '\\';
    }
    return p; /* a quote alone, in an unquoted string */
}

/* Where a value of unknown grammar ends; `nesting` false: brackets mean nothing. */
static const char *raw_end(const struct ts *ts, const char *limit, bool nesting)
{
    unsigned depth = 0;
    for (const char *p = ts->p; p < limit; p++) {
        char c = *p;
        if (c == '"')
            p = skip_quoted(p, limit);
        else if (nesting && (c == '(' || c == '[' || c == '{'))
            depth++;
        else if (depth && (c == ')' || c == ']' || c == '}'))
            depth--;
        else if (!depth && c == ']' && p + 1 < limit && p[1] == '(')
            return p;
        else if (!depth && c == ',' && next_attribute(p, limit))
            return p;
    }
    return NULL;
}

static const char *raw_extent(const struct ts *ts)
{
    const char *eol = ts_line_end(ts);
    const char *end = raw_end(ts, eol, true);
    if (!end)
        end = raw_end(ts, eol, false);
    if (!end && ts->braces) {
        size_t left = (size_t)(ts->end - eol);
        end = raw_end(ts, eol + (left < RAW_LINES_MAX ? left : RAW_LINES_MAX), false);
    }
    return end;
}

static bool is_small_tensor(const char *at, const char *end)
{
    return end - at > 8 && end[-1] == ']' && ts_find_word(at, end, "Type{");
}

static int raw_value(struct ts *ts, struct nrg_attr *attr)
{
    const char *at = ts->p, *end = raw_extent(ts);
    if (!end)
        return TS_SYNTAX;
    ts->p = end;
    while (end > at && ts_is(end[-1], TS_BLANK))
        end--;
    if (is_small_tensor(at, end))
        return ts_tensor_value(ts, at, end, attr);
    /* Up to 1.0 strings had no quotes. */
    attr->kind = ts->braces ? NRG_A_STRING : NRG_A_OTHER;
    attr->s = ts_intern(ts, at, (size_t)(end - at));
    return attr->s ? 0 : ts_no_memory(ts);
}

static int number_value(struct ts *ts, struct nrg_attr *attr)
{
    const char *at = ts->p;
    while (ts->p < ts->end &&
           (ts_is(*ts->p, TS_IDENT) || *ts->p == '.' || *ts->p == '-' || *ts->p == '+'))
        ts->p++;
    return ts_number(ts, at, ts->p, attr);
}

/* "{(0,2)}": the same with a complex number, which no attribute can hold. */
static int single_complex(struct ts *ts, struct nrg_attr *attr)
{
    const char *eol = ts_line_end(ts), *close = memchr(ts->p, ')', (size_t)(eol - ts->p));
    if (!close)
        return TS_SYNTAX;
    ts->p = close + 1;
    attr->kind = NRG_A_TENSOR;
    return ts_take(ts, '}') ? 0 : TS_SYNTAX;
}

/* "{3}": a tensor of one element. */
static int single_value(struct ts *ts, struct nrg_attr *attr)
{
    struct nrg_attr element = {0};
    ts->p++;
    if (ts_peek(ts) == '(')
        return single_complex(ts, attr);
    int rc = number_value(ts, &element);
    if (rc || !ts_take(ts, '}'))
        return rc ? rc : TS_SYNTAX;
    attr->kind = NRG_A_TENSOR;
    attr->n = 1;
    attr->i = element.i;
    attr->f = element.f;
    double *f = nrg_arena_alloc(&ts->model->arena, sizeof *f);
    attr->is = element.kind == NRG_A_INT ? ts_copy_ints(ts, &element.i, 1) : NULL;
    if (!f || (element.kind == NRG_A_INT && !attr->is))
        return ts_no_memory(ts);
    *f = element.f;
    attr->fs = f;
    return 0;
}

static const struct {
    const char *word;
    enum nrg_attr_kind kind;
    int64_t i;
} words[] = {
    {"True", NRG_A_BOOL, 1},       {"False", NRG_A_BOOL, 0},    {"None", NRG_A_NONE, 0},
    {"<Tensor>", NRG_A_TENSOR, 0}, {"<Graph>", NRG_A_GRAPH, 0},
};

static int word_value(struct ts *ts, struct nrg_attr *attr)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!ts_take_word(ts, words[i].word))
            continue;
        attr->kind = words[i].kind;
        attr->i = words[i].i;
        attr->f = (double)words[i].i;
        return 0;
    }
    return number_value(ts, attr);
}

/* 'torch.device("cpu")', and "annotate(List[int], [])" whose list may be empty. */
static int called_value(struct ts *ts, struct nrg_attr *attr)
{
    if (ts_take_word(ts, "torch.device(")) {
        attr->kind = NRG_A_STRING;
        int rc = ts_string(ts, &attr->s);
        return rc || ts_take(ts, ')') ? rc : TS_SYNTAX;
    }
    ts->p += strlen("annotate(");
    const char *at = ts->p, *eol = ts_line_end(ts);
    while (ts->p < eol && *ts->p != ',' && *ts->p != '(')
        ts->p++;
    size_t len = (size_t)(ts->p - at);
    if (!ts_take(ts, ','))
        return TS_SYNTAX;
    ts_skip_blanks(ts);
    int rc = ts_peek(ts) == '[' ? ts_list(ts, attr) : TS_SYNTAX;
    if (rc || !ts_take(ts, ')'))
        return rc ? rc : TS_SYNTAX;
    if (!attr->n && ts_equals(at, len, "List[float]"))
        attr->kind = NRG_A_FLOATS;
    else if (!attr->n && ts_equals(at, len, "List[str]"))
        attr->kind = NRG_A_STRINGS;
    else if (!attr->n && !ts_equals(at, len, "List[int]") && !ts_equals(at, len, "List[bool]"))
        return TS_SYNTAX;
    return 0;
}

static int known_value(struct ts *ts, struct nrg_attr *attr)
{
    switch (ts_peek(ts)) {
    case '"':
        attr->kind = NRG_A_STRING;
        return ts_string(ts, &attr->s);
    case '[':
        return ts_list(ts, attr);
    case '{':
        return single_value(ts, attr);
    case 'a':
    case 't':
        if (ts_looking_at(ts, "annotate(") || ts_looking_at(ts, "torch.device("))
            return called_value(ts, attr);
        return TS_SYNTAX;
    default:
        return ts_is(ts_peek(ts), TS_DIGIT) ? number_value(ts, attr) : word_value(ts, attr);
    }
}

static int read_value(struct ts *ts, struct nrg_attr *attr)
{
    const char *at = ts->p, *name = attr->name;
    ts_skip_blanks(ts);
    int rc = known_value(ts, attr);
    if (rc < 0 || (!rc && value_ends(ts)))
        return rc;
    ts->p = at;
    *attr = (struct nrg_attr){.name = name};
    return raw_value(ts, attr);
}

int ts_attributes(struct ts *ts)
{
    for (ts->p++; !ts_take(ts, ']');) {
        struct nrg_attr attr = {0};
        ts_skip_blanks(ts);
        const char *at = ts->p;
        while (ts->p < ts->end && (ts_is(*ts->p, TS_IDENT) || *ts->p == '.'))
            ts->p++;
        size_t len = (size_t)(ts->p - at);
        if (!len || !ts_take(ts, '='))
            return TS_SYNTAX;
        attr.name = ts_intern(ts, at, len);
        if (!attr.name || nrg_reserve(&ts->attrs, &ts->cap_attrs, ts->n_attrs + 1, sizeof attr))
            return ts_no_memory(ts);
        int rc = read_value(ts, &attr);
        if (rc)
            return rc;
        ts->attrs[ts->n_attrs++] = attr;
        ts_skip_blanks(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != ']')
            return TS_SYNTAX;
    }
    return 0;
}

void ts_fit_constant(struct nrg_attr *attr, const struct nrg_type *type)
{
    if (strcmp(attr->name, "value"))
        return;
    if (attr->kind == NRG_A_INT && type->kind == NRG_T_BOOL)
        attr->kind = NRG_A_BOOL;
    else if (attr->kind == NRG_A_INT && type->kind == NRG_T_FLOAT)
        attr->kind = NRG_A_FLOAT;
    else if (attr->kind == NRG_A_OTHER && type->kind == NRG_T_STRING)
        attr->kind = NRG_A_STRING;
    else if (attr->kind == NRG_A_STRING && type->kind != NRG_T_STRING &&
             type->kind != NRG_T_DEVICE && type->kind != NRG_T_UNKNOWN)
        attr->kind = NRG_A_OTHER;
}
