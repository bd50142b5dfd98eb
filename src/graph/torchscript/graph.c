/*
 * One graph: header, lines, blocks, return.
 *
 *   graph(%x : T,            or, up to 1.0:   graph(%x : T
 *         %y : U):                                  %y : U) {
 *     node…                                     node…
 *       block0(%i : int):                         block0(%i : int) {
 *         node…                                     -> (%r)
 *         -> (%r)                                 }
 *     return (%z)                               return (%z);
 *                                             }
 *
 * People paste parts of dumps. A line that cannot be read is skipped; a text that ends, or turns
 * into something else, ends the graph there. In both cases, and where the text says itself that
 * something is left out ("...", a comment line), names may refer to lines that are gone: those
 * become values of unknown type. finish_graph() says in warnings what is missing and marks the
 * graph incomplete. A graph that is whole but uses a name that nothing defines is an error.
 */
#include <errno.h>

#include "graph/torchscript/lex.h"

#define JUNK_MAX 8 /* more lines in a row that are not IR end the graph */

enum end { GOES_ON, BLOCK_ENDS, GRAPH_ENDS, CUT };

static int read_lines(struct ts *ts, struct nrg_block *block, int depth, enum end *how);

/* A good line shows that the bad ones before it are in the middle of the graph: skipped. */
static void good_line(struct ts *ts, const char *at)
{
    struct ts_state *state = &ts->state;
    state->last_line = ts_line_at(ts, at);
    if (!state->n_junk)
        return;
    if (!state->n_skipped)
        state->skipped_line = state->junk_line;
    state->n_skipped += state->n_junk;
    state->n_junk = 0;
}

static void skip_line(struct ts *ts)
{
    ts->p = ts_line_end(ts);
}

/* From the beginning of the line that could not be read: `at`. */
static enum end skip_junk(struct ts *ts, const char *at)
{
    struct ts_state *state = &ts->state;
    ts->p = at;
    const char *eol = ts_line_end(ts);
    if (ts_find_graph(at, eol))
        return CUT;
    if (!state->n_junk++)
        state->junk_line = ts_line_at(ts, at);
    ts->p = eol;
    return state->n_junk > JUNK_MAX ? CUT : GOES_ON;
}

/* The outputs that ts_typed has collected become inputs of a block. */
static int take_inputs(struct ts *ts, struct nrg_block *block)
{
    struct nrg_value **inputs = nrg_arena_array(&ts->model->arena, ts->n_outputs, sizeof *inputs);
    if (!inputs)
        return ts_no_memory(ts);
    block->inputs = inputs;
    block->n_inputs = ts->n_outputs;
    for (size_t i = 0; i < ts->n_outputs; i++) {
        int rc = ts_define_value(ts, &ts->outputs[i], NULL, NULL, &inputs[i]);
        if (rc)
            return rc;
    }
    return 0;
}

static void open_body(struct ts *ts)
{
    ts_skip_blanks(ts);
    if (ts_take(ts, '{'))
        ts->braces = true;
    else
        ts_take(ts, ':');
    ts_skip_blanks(ts);
    if (ts_peek(ts) == '#')
        skip_line(ts);
}

static bool is_ellipsis(const struct ts *ts)
{
    return ts_looking_at(ts, "..") || ts_looking_at(ts, "\xe2\x80\xa6");
}

/* One input, stage line or comment of the header. */
static int header_line(struct ts *ts, bool *nodes_follow)
{
    const char *at = ts->p;
    if (ts_peek(ts) != '%') {
        ts->state.edited |= ts_peek(ts) != '-';
        skip_line(ts);
        return 0;
    }
    int rc = ts_typed(ts);
    if (rc)
        return rc;
    ts_skip_blanks(ts);
    if (ts_peek(ts) == '=') {
        /* The header's end is lost: this is a node already. */
        ts->n_outputs--;
        ts->p = at;
        *nodes_follow = ts->state.edited = true;
    }
    ts_take(ts, ',');
    return 0;
}

/* After "graph(". */
static int read_header(struct ts *ts, struct nrg_block *body)
{
    bool nodes_follow = false;
    int rc = 0;
    ts->n_outputs = 0;
    ts->braces = false;
    for (;;) {
        ts_skip_space(ts);
        if (ts->p >= ts->end || ts_take(ts, ')') || nodes_follow)
            break;
        const char *at = ts->p;
        rc = header_line(ts, &nodes_follow);
        if (rc < 0)
            return rc;
        if (rc && skip_junk(ts, at) == CUT)
            break;
    }
    if (!nodes_follow)
        open_body(ts);
    return take_inputs(ts, body);
}

static bool at_block(const struct ts *ts)
{
    return ts_looking_at(ts, "block") && ts->end - ts->p > 5 && ts_is(ts->p[5], TS_DIGIT);
}

/* "block0(%i : int, %x : Tensor):" */
static int block_header(struct ts *ts, struct nrg_block *block)
{
    ts->n_outputs = 0;
    for (ts->p += 5; ts_is(ts_peek(ts), TS_DIGIT);)
        ts->p++;
    if (!ts_take(ts, '('))
        return TS_SYNTAX;
    while (!ts_take(ts, ')')) {
        ts_skip_space(ts);
        int rc = ts_typed(ts);
        if (rc)
            return rc;
        ts_skip_space(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != ')')
            return TS_SYNTAX;
    }
    open_body(ts);
    return take_inputs(ts, block);
}

static int nested_block(struct ts *ts, struct nrg_op *owner, int depth, enum end *how)
{
    struct nrg_block *block = nrg_arena_alloc(&ts->model->arena, sizeof *block);
    if (!block)
        return ts_no_memory(ts);
    block->owner = owner;
    int rc = block_header(ts, block);
    if (!rc)
        rc = read_lines(ts, block, depth + 1, how);
    return rc ? rc : ts_push(ts, &ts->blocks, block);
}

static int node_blocks(struct ts *ts, struct nrg_op *op, int depth, enum end *how)
{
    size_t base = ts->blocks.n;
    for (;;) {
        ts_skip_space(ts);
        if (!at_block(ts))
            break;
        const char *at = ts->p;
        int rc = nested_block(ts, op, depth, how);
        if (rc < 0)
            return rc;
        if (rc)
            *how = skip_junk(ts, at);
        if (*how == GRAPH_ENDS || *how == CUT)
            break;
        *how = GOES_ON;
        ts_skip_space(ts);
        if (ts->braces && ts_take(ts, '}'))
            continue;
    }
    return ts_pop_array(ts, &ts->blocks, base, &op->blocks, &op->n_blocks);
}

static int read_node(struct ts *ts, struct nrg_block *block, int depth, enum end *how)
{
    const char *at = ts->p;
    struct nrg_op *op;
    int rc = ts_op(ts, block, &op);
    if (rc)
        return rc;
    good_line(ts, at);
    rc = ts_push(ts, &ts->ops, op);
    return rc ? rc : node_blocks(ts, op, depth, how);
}

/* "return (%a)" or "-> (%a)", after the word. */
static int read_results(struct ts *ts, struct nrg_block *block)
{
    const char *at = ts->p;
    ts_skip_blanks(ts);
    ts->operands.n = 0;
    int rc = ts_value_list(ts);
    if (rc)
        return rc;
    ts_take(ts, ';');
    good_line(ts, at);
    return ts_pop_array(ts, &ts->operands, 0, &block->outputs, &block->n_outputs);
}

/* "prim::Print(%1)" as hand-written text has it, and "^Function()(%1)". */
static bool at_call(const struct ts *ts)
{
    if (ts_peek(ts) == '^')
        return true;
    const char *end = ts_name_end(ts->p, ts->end);
    return end < ts->end && (*end == '(' || *end == '[') && ts_find_word(ts->p, end, "::");
}

static int other_line(struct ts *ts, struct nrg_block *block, int depth, enum end *how)
{
    if (ts_looking_at(ts, "--") || ts_peek(ts) == '#' || is_ellipsis(ts)) {
        ts->state.edited |= ts_peek(ts) != '-';
        skip_line(ts);
        return 0;
    }
    if (ts_take_word(ts, "return")) {
        *how = GRAPH_ENDS;
        int rc = read_results(ts, ts->state.graph->body);
        ts->state.ended = !rc;
        return rc;
    }
    if (depth && ts_take_word(ts, "->")) {
        *how = BLOCK_ENDS;
        return read_results(ts, block);
    }
    if (ts_looking_at(ts, "```") || ts_looking_at(ts, "with ") ||
        ts_find_graph(ts->p, ts->p + 6 < ts->end ? ts->p + 6 : ts->end)) {
        *how = CUT;
        return 0;
    }
    return at_call(ts) ? read_node(ts, block, depth, how) : TS_SYNTAX;
}

static int read_lines(struct ts *ts, struct nrg_block *block, int depth, enum end *how)
{
    size_t base = ts->ops.n;
    if (depth > TS_MAX_DEPTH)
        return ts_too_deep(ts);
    for (*how = GOES_ON; *how == GOES_ON;) {
        ts_skip_space(ts);
        const char *at = ts->p;
        int rc = 0;
        if (at >= ts->end)
            *how = CUT;
        else if (*at == '%' || *at == '=')
            rc = read_node(ts, block, depth, how);
        else if (*at == '}')
            ts->p++;
        else
            rc = other_line(ts, block, depth, how);
        if (rc < 0)
            return rc;
        if (rc)
            *how = skip_junk(ts, at);
    }
    return ts_pop_array(ts, &ts->ops, base, &block->ops, &block->n_ops);
}

static int warn_missing(struct ts *ts)
{
    const struct ts_state *state = &ts->state;
    int rc = 0;
    if (!state->ended)
        rc = nrg_model_warn(ts->model,
                            "line %u: the graph ends without its return (it began at line %u): "
                            "what came after is missing",
                            state->last_line, state->first_line);
    if (!rc && state->n_skipped)
        rc = nrg_model_warn(ts->model, "line %u: %u line%s not TorchScript and left out",
                            state->skipped_line, state->n_skipped,
                            state->n_skipped == 1 ? " is" : "s from here on are");
    if (!rc && state->n_dangling)
        rc =
            nrg_model_warn(ts->model,
                           "line %u: %%%.100s is defined in a line that is missing (%u such values "
                           "in all): its type is unknown",
                           state->dangling_line, state->dangling, state->n_dangling);
    return rc ? ts_no_memory(ts) : 0;
}

static int finish_graph(struct ts *ts)
{
    struct ts_state *state = &ts->state;
    bool whole = state->ended && !state->n_skipped && !state->edited;
    if (whole && state->n_dangling)
        return nrg_fail_at(
            ts->err, -EBADMSG, ts->source->name, state->dangling_line,
            "%%%.100s is used before anything defines it; if lines were left out, put "
            "a line \"...\" in their place",
            state->dangling);
    if (!state->ended && !state->graph->n_values && !state->graph->n_ops)
        return 0; /* a word in prose: the caller drops it */
    state->graph->complete = state->ended && !state->n_skipped && !state->n_dangling;
    return state->graph->complete ? 0 : warn_missing(ts);
}

static int begin_graph(struct ts *ts, const char *name)
{
    struct nrg_graph *graph = nrg_arena_alloc(&ts->model->arena, sizeof *graph);
    struct nrg_block *body = graph ? nrg_arena_alloc(&ts->model->arena, sizeof *body) : NULL;
    if (!body)
        return ts_no_memory(ts);
    graph->name = name;
    graph->body = body;
    uint32_t line = graph->line = ts_line_at(ts, ts->p);
    ts->state = (struct ts_state){.graph = graph, .first_line = line, .last_line = line};
    nrg_map_clear(&ts->values);
    ts->ops.n = ts->blocks.n = ts->operands.n = ts->type_args.n = 0;
    return 0;
}

static int read_graph_lines(struct ts *ts)
{
    enum end how;
    int rc = read_lines(ts, ts->state.graph->body, 0, &how);
    return rc ? rc : finish_graph(ts);
}

int ts_graph(struct ts *ts, const char *name, struct nrg_graph **out)
{
    int rc = begin_graph(ts, name);
    if (rc)
        return rc;
    ts->p += strlen("graph");
    ts_skip_blanks(ts);
    ts->p++;
    *out = ts->state.graph;
    rc = read_header(ts, (*out)->body);
    return rc ? rc : read_graph_lines(ts);
}

int ts_fragment(struct ts *ts, struct nrg_graph **out)
{
    int rc = begin_graph(ts, "");
    if (rc)
        return rc;
    ts->braces = false;
    ts->state.edited = true;
    if (nrg_model_warn(ts->model,
                       "line %u: the nodes have no graph(…) before them: its inputs are "
                       "missing",
                       ts->state.first_line))
        return ts_no_memory(ts);
    *out = ts->state.graph;
    rc = read_graph_lines(ts);
    (*out)->complete = false;
    return rc;
}
