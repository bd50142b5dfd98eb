/*
 * Types as the printers of PyTorch 0.3 to 2.x write them. A dump repeats a few hundred types
 * thousands of times, so the text of a type is first measured (brackets counted up to the comma,
 * "=" or bracket that ends it) and looked up; only an unknown text is parsed.
 *
 *   base    tensor types (tensor.c) | (A, B) | NamedTuple(a : A, b : B = 1) | Dict(K, V) |
 *           Union(A, B) | Future[A] or Future(A) | Enum<…> | InterfaceType<…> | a.b.Class | word
 *   suffix  A[] list, A? optional, A[Undefined] (says nothing about shape)
 *
 * The Python spellings List[A], Optional[A], Tuple[A, B] of str() are read as well. A type that is
 * none of these is kept as text (NRG_T_OTHER): an unknown type must not lose the node.
 */
#include <string.h>

#include "graph/torchscript/lex.h"

const struct nrg_type ts_unknown_type = {.kind = NRG_T_UNKNOWN, .rank = -1, .requires_grad = -1};

static int parse_type(struct ts *ts, int depth, const struct nrg_type **out);

static const struct name_kind {
    const char *name;
    enum nrg_type_kind kind;
} words[] = {
    {"int", NRG_T_INT},        {"float", NRG_T_FLOAT},          {"bool", NRG_T_BOOL},
    {"str", NRG_T_STRING},     {"string", NRG_T_STRING},        {"complex", NRG_T_COMPLEX},
    {"number", NRG_T_NUMBER},  {"Scalar", NRG_T_NUMBER},        {"None", NRG_T_NONE},
    {"NoneType", NRG_T_NONE},  {"Device", NRG_T_DEVICE},        {"Tensor", NRG_T_TENSOR},
    {"Dynamic", NRG_T_TENSOR}, {"SymInt", NRG_T_INT},           {"SymFloat", NRG_T_FLOAT},
    {"SymBool", NRG_T_BOOL},   {"UNKNOWN_TYPE", NRG_T_UNKNOWN},
};

static const struct name_kind containers[] = {
    {"Dict", NRG_T_DICT},    {"Union", NRG_T_UNION},       {"Future", NRG_T_FUTURE},
    {"Await", NRG_T_FUTURE}, {"RRef", NRG_T_FUTURE},       {"List", NRG_T_LIST},
    {"Tuple", NRG_T_TUPLE},  {"Optional", NRG_T_OPTIONAL}, {"NamedTuple", NRG_T_TUPLE},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct nrg_type *new_type(struct ts *ts, enum nrg_type_kind kind)
{
    struct nrg_type *type = nrg_arena_alloc(&ts->model->arena, sizeof *type);
    if (type)
        *type = (struct nrg_type){.kind = kind, .rank = -1, .requires_grad = -1};
    return type;
}

static int named_type(struct ts *ts, enum nrg_type_kind kind, const char *at, size_t len,
                      const struct nrg_type **out)
{
    struct nrg_type *type = new_type(ts, kind);
    const char *name = type ? ts_intern(ts, at, len) : NULL;
    if (!name)
        return ts_no_memory(ts);
    type->name = name;
    *out = type;
    return 0;
}

static int wrap_type(struct ts *ts, enum nrg_type_kind kind, const struct nrg_type **io)
{
    struct nrg_type *type = new_type(ts, kind);
    const struct nrg_type **arg = nrg_arena_alloc(&ts->model->arena, sizeof *arg);
    if (!type || !arg)
        return ts_no_memory(ts);
    *arg = *io;
    type->args = arg;
    type->n_args = 1;
    *io = type;
    return 0;
}

/* " = x" after a field of a named tuple: printed raw, unquoted. */
static void skip_default(struct ts *ts)
{
    int depth = 0;
    ts_skip_blanks(ts);
    if (ts_peek(ts) != '=')
        return;
    for (; ts->p < ts->end && *ts->p != '\n'; ts->p++) {
        if (memchr("([{", *ts->p, 3))
            depth++;
        else if (memchr(")]}", *ts->p, 3) && depth-- == 0)
            return;
        else if (*ts->p == ',' && !depth)
            return;
    }
}

static void skip_field_name(struct ts *ts)
{
    const char *at = ts->p;
    while (ts->p < ts->end && ts_is(*ts->p, TS_IDENT))
        ts->p++;
    ts_skip_blanks(ts);
    if (!ts_take(ts, ':')) {
        ts->p = at;
        return;
    }
    ts_skip_blanks(ts);
}

/* After the opening bracket, up to and with the closing one. */
static int read_members(struct ts *ts, int depth, char close, bool fields, struct nrg_type *type)
{
    size_t base = ts->type_args.n;
    ts_skip_blanks(ts);
    while (!ts_take(ts, close)) {
        const struct nrg_type *member;
        if (fields)
            skip_field_name(ts);
        int rc = parse_type(ts, depth + 1, &member);
        if (!rc)
            rc = ts_push(ts, &ts->type_args, (void *)member);
        if (rc)
            return rc;
        if (fields)
            skip_default(ts);
        ts_skip_blanks(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != close)
            return TS_SYNTAX;
        ts_skip_blanks(ts);
    }
    return ts_pop_array(ts, &ts->type_args, base, &type->args, &type->n_args);
}

static int container_type(struct ts *ts, int depth, enum nrg_type_kind kind, bool fields,
                          const struct nrg_type **out)
{
    char close = *ts->p++ == '(' ? ')' : ']';
    struct nrg_type *type = new_type(ts, kind);
    if (!type)
        return ts_no_memory(ts);
    *out = type;
    return read_members(ts, depth, close, fields, type);
}

/* "Enum<a.b>", "InterfaceType<a>", "ClassType<a>". */
static int angled_type(struct ts *ts, const char *word, size_t len, const struct nrg_type **out)
{
    const char *inside = ts->p + 1;
    const char *eol = ts_line_end(ts);
    int depth = 0;
    for (; ts->p < eol; ts->p++) {
        depth += (*ts->p == '<') - (*ts->p == '>');
        if (!depth)
            break;
    }
    if (ts->p == eol)
        return TS_SYNTAX;
    const char *close = ts->p++;
    if (ts_equals(word, len, "Enum"))
        return named_type(ts, NRG_T_OTHER, word, (size_t)(ts->p - word), out);
    return named_type(ts, NRG_T_CLASS, inside, (size_t)(close - inside), out);
}

static bool is_tensor_word(const char *word, size_t len, enum nrg_dtype *dtype, bool *rank_told)
{
    static const char suffix[] = "Tensor";
    size_t n = sizeof suffix - 1;
    bool ends = len >= n && !memcmp(word + len - n, suffix, n);
    size_t stem = ends ? len - n : len;
    *rank_told = !ends;
    *dtype = NRG_DTYPE_UNKNOWN;
    if (ends && (!stem || ts_equals(word, stem, "Profiled")))
        return true;
    if (word[0] < 'A' || word[0] > 'Z')
        return false;
    *dtype = nrg_dtype_from_name(word, stem);
    return *dtype != NRG_DTYPE_UNKNOWN;
}

/* With its options, when they follow. */
static int tensor_type(struct ts *ts, enum nrg_dtype dtype, bool rank_told,
                       const struct nrg_type **out)
{
    struct nrg_type *type = new_type(ts, NRG_T_TENSOR);
    if (!type)
        return ts_no_memory(ts);
    type->dtype = dtype;
    *out = type;
    return ts_take(ts, '(') ? ts_tensor_options(ts, type, rank_told) : 0;
}

/* A word without "(": of the table, a dtype, a class (with dots), or unknown. */
static int word_type(struct ts *ts, const char *word, size_t len, const struct nrg_type **out)
{
    for (size_t i = 0; i < COUNT(words); i++) {
        if (!ts_equals(word, len, words[i].name))
            continue;
        struct nrg_type *type = new_type(ts, words[i].kind);
        *out = type;
        return type ? 0 : ts_no_memory(ts);
    }
    enum nrg_dtype dtype;
    bool rank_told;
    if (is_tensor_word(word, len, &dtype, &rank_told))
        return tensor_type(ts, dtype, rank_told, out);
    bool class = memchr(word, '.', len) || (len > 9 && !memcmp(word, "__torch__", 9));
    return named_type(ts, class ? NRG_T_CLASS : NRG_T_OTHER, word, len, out);
}

static int base_type(struct ts *ts, int depth, const struct nrg_type **out)
{
    const char *word = ts->p;
    enum nrg_dtype dtype;
    bool rank_told;
    if (*word == '(')
        return container_type(ts, depth, NRG_T_TUPLE, false, out);
    while (ts->p < ts->end && (ts_is(*ts->p, TS_IDENT) || *ts->p == '.' || *ts->p == '$'))
        ts->p++;
    size_t len = (size_t)(ts->p - word);
    char next = ts_peek(ts);
    if (!len)
        return TS_SYNTAX;
    if (next == '<')
        return angled_type(ts, word, len, out);
    if (next == '(' && is_tensor_word(word, len, &dtype, &rank_told))
        return tensor_type(ts, dtype, rank_told, out);
    if (next == '(' || (next == '[' && ts->end - ts->p > 1 && ts->p[1] != ']'))
        for (size_t i = 0; i < COUNT(containers); i++)
            if (ts_equals(word, len, containers[i].name))
                return container_type(ts, depth, containers[i].kind, *word == 'N', out);
    if (next == '(')
        return TS_SYNTAX;
    return word_type(ts, word, len, out);
}

static int parse_type(struct ts *ts, int depth, const struct nrg_type **out)
{
    if (depth > TS_MAX_DEPTH)
        return ts_too_deep(ts);
    if (ts->p >= ts->end)
        return TS_SYNTAX;
    int rc = base_type(ts, depth, out);
    while (!rc) {
        if (ts_take_word(ts, "[]"))
            rc = wrap_type(ts, NRG_T_LIST, out);
        else if (ts_take(ts, '?'))
            rc = wrap_type(ts, NRG_T_OPTIONAL, out);
        else if (!ts_take_word(ts, "[Undefined]"))
            break;
        if (++depth > TS_MAX_DEPTH)
            return ts_too_deep(ts);
    }
    return rc;
}

/* Where the text of a type ends, without knowing its grammar. */
static const char *type_end(const struct ts *ts)
{
    const char *p = ts->p;
    unsigned depth = 0;
    for (; p < ts->end; p++) {
        if (!ts_is(*p, TS_STOP))
            continue;
        char c = *p;
        if (c == '(' || c == '[' || c == '{' || c == '<')
            depth++;
        else if (c == '\n' || (!depth && c != ':'))
            break;
        else if (c == ')' || c == ']' || c == '}' || c == '>')
            depth--;
    }
    while (p > ts->p && ts_is(p[-1], TS_BLANK))
        p--;
    return p;
}

/* Only these can follow a type; a parser that stops elsewhere has misread it. */
static bool at_type_end(struct ts *ts)
{
    const char *p = ts_after_blanks(ts->p, ts->end);
    return p == ts->end || memchr(",=)\n:{;#", *p, 8);
}

int ts_type(struct ts *ts, const struct nrg_type **out)
{
    const char *at = ts->p, *measured = type_end(ts);
    size_t len = (size_t)(measured - at), base = ts->type_args.n;
    if (!len)
        return TS_SYNTAX;
    struct nrg_map_entry *entry = nrg_map_at(&ts->types, at, len);
    if (!entry)
        return ts_no_memory(ts);
    if (entry->data) {
        *out = entry->data;
        ts->p = measured;
        return 0;
    }
    int rc = parse_type(ts, 0, out);
    ts->type_args.n = base;
    if (rc < 0)
        return rc;
    if (rc || !at_type_end(ts)) {
        ts->p = measured;
        rc = named_type(ts, NRG_T_OTHER, at, len, out);
        if (rc)
            return rc;
    }
    if (ts->p == measured)
        entry->data = (void *)*out;
    return 0;
}
