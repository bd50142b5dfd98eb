/*
 * Where the graphs are. Dumps come amid logs, prose and Markdown, so the text is searched for
 * "graph(" with the right neighbours: no letter before it, and a value or an empty list after
 * it. (One log message of PyTorch lacks an end of line, "After EliminateDeadCodegraph(%0 : …": with
 * a typed input after it, letters before it are fine.) The text before it on the line, or the
 * line above, may give the graph a name.
 */
#include "graph/torchscript/lex.h"

static const char *after_space(const char *p, const char *end)
{
    while (p < end && (ts_is(*p, TS_BLANK) || *p == '\n'))
        p++;
    return p;
}

/* "%x : T": an input; the operands of a node have no types. */
static bool is_typed(const char *p, const char *end)
{
    p = p < end && *p == '%' ? ts_after_blanks(ts_name_end(p, end), end) : end;
    return p < end && *p == ':';
}

/* `p` is after "graph"; `apart`: no letter comes before it. */
static bool opens_graph(const char *p, const char *end, bool apart)
{
    p = ts_after_blanks(p, end);
    if (p >= end || *p != '(')
        return false;
    p = after_space(p + 1, end);
    if (!apart)
        return is_typed(p, end);
    if (p >= end || *p == '%' || *p == '-')
        return true;
    if (*p != ')')
        return false;
    p = ts_after_blanks(p + 1, end);
    return p < end && (*p == ':' || *p == '{');
}

const char *ts_find_graph(const char *from, const char *end)
{
    static const char word[] = "graph";
    size_t len = sizeof word - 1;
    const char *p = from;
    while ((p = ts_find_word(p, end, word))) {
        bool apart = p == from || !(ts_is(p[-1], TS_IDENT) || p[-1] == '.');
        if (opens_graph(p + len, end, apart))
            return p;
        p += len;
    }
    return NULL;
}

/* A line "%a … = name(" or " = name(" whose operator has a namespace that only PyTorch uses. */
static bool is_node(const char *p, const char *eol)
{
    p = ts_after_blanks(p, eol);
    if (p >= eol || (*p != '%' && *p != '='))
        return false;
    return ts_find_word(p, eol, "= aten::") || ts_find_word(p, eol, "= prim::");
}

const char *ts_find_node(const char *from, const char *end)
{
    for (const char *p = from; p < end;) {
        const char *eol = ts_end_of_line(p, end);
        if (is_node(p, eol))
            return ts_after_blanks(p, eol);
        p = eol + 1;
    }
    return NULL;
}

static const char *line_start(const char *from, const char *p)
{
    while (p > from && p[-1] != '\n')
        p--;
    return p;
}

bool ts_with_before(const char *from, const char *graph, const char **kind, size_t *len)
{
    const char *line = line_start(from, graph), *p;
    p = ts_find_word(line, graph, "with ");
    if (!p || (p > line && ts_is(p[-1], TS_NAME)))
        return false;
    *kind = ts_after_blanks(p + 5, graph);
    const char *end = ts_name_end(*kind, graph);
    *len = (size_t)(end - *kind);
    p = ts_after_blanks(end, graph);
    return *len && p < graph && *p == '=';
}

bool ts_heading_before(const char *from, const char *graph, const char **name, size_t *len)
{
    const char *line = line_start(from, graph);
    if (line == from)
        return false;
    const char *eol = line - 1, *p = line_start(from, eol);
    if (p >= eol || *p != '#')
        return false;
    while (p < eol && *p == '#')
        p++;
    *name = ts_after_blanks(p, eol);
    const char *end = ts_name_end(*name, eol);
    *len = (size_t)(end - *name);
    return *len && ts_after_blanks(end, eol) == eol;
}
