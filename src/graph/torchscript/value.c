/*
 * Names to values. Names are unique in a graph, over all its blocks, and a value is defined
 * before it is used, so one table per graph is enough.
 *
 * A name that nothing has defined yet becomes a value of unknown type. Whether that is an error is
 * known at the end only: a cut or edited paste may refer to lines that are gone (a warning), a
 * whole graph may not. A definition that comes after its use is therefore recorded as dangling
 * too: in a whole graph it would be a cycle.
 */
#include "base/mem.h"
#include "graph/torchscript/lex.h"

static int new_value(struct ts *ts, struct nrg_map_entry *entry, struct nrg_value *room)
{
    const char *name = ts_copy(ts, entry->key, entry->len);
    if (!room)
        room = nrg_arena_alloc(&ts->model->arena, sizeof *room);
    if (!room || !name)
        return ts_no_memory(ts);
    *room = (struct nrg_value){.name = name, .type = &ts_unknown_type};
    room->id = (uint32_t)ts->state.graph->n_values++;
    entry->data = room;
    return 0;
}

static int use_value(struct ts *ts, const char *name, size_t len)
{
    struct nrg_map_entry *entry = nrg_map_at(&ts->values, name, len);
    if (!entry)
        return ts_no_memory(ts);
    if (!entry->data) {
        int rc = new_value(ts, entry, NULL);
        if (rc)
            return rc;
        struct nrg_value *value = entry->data;
        if (!ts->state.n_dangling++) {
            ts->state.dangling = value->name;
            ts->state.dangling_line = ts_line_at(ts, name);
        }
    }
    return ts_push(ts, &ts->operands, entry->data);
}

int ts_define_value(struct ts *ts, const struct ts_output *as, struct nrg_op *producer,
                    struct nrg_value *room, struct nrg_value **out)
{
    struct nrg_map_entry *entry = nrg_map_at(&ts->values, as->name, as->len);
    if (!entry)
        return ts_no_memory(ts);
    struct nrg_value *known = entry->data;
    /* A second definition (an edited dump) hides the first; a use before it is filled in. */
    if (!known || known->producer || known->type != &ts_unknown_type) {
        int rc = new_value(ts, entry, room);
        if (rc)
            return rc;
        known = entry->data;
    }
    known->type = as->type;
    known->producer = producer;
    *out = known;
    return 0;
}

int ts_value_list(struct ts *ts)
{
    if (!ts_take(ts, '('))
        return TS_SYNTAX;
    for (;;) {
        ts_skip_space(ts);
        if (ts_take(ts, ')'))
            return 0;
        if (!ts_take(ts, '%'))
            return TS_SYNTAX;
        const char *name = ts->p;
        ts->p = ts_name_end(name, ts->end);
        if (ts->p == name)
            return TS_SYNTAX;
        int rc = use_value(ts, name, (size_t)(ts->p - name));
        if (rc)
            return rc;
        ts_skip_space(ts);
        if (!ts_take(ts, ',') && ts_peek(ts) != ')')
            return TS_SYNTAX;
    }
}

int ts_typed(struct ts *ts)
{
    if (!ts_take(ts, '%'))
        return TS_SYNTAX;
    struct ts_output output = {.name = ts->p, .type = &ts_unknown_type};
    ts->p = ts_name_end(ts->p, ts->end);
    output.len = (size_t)(ts->p - output.name);
    if (!output.len)
        return TS_SYNTAX;
    ts_skip_blanks(ts);
    if (ts_take(ts, ':')) {
        ts_skip_blanks(ts);
        int rc = ts_type(ts, &output.type);
        if (rc)
            return rc;
    }
    if (nrg_append(&ts->outputs, &ts->n_outputs, &ts->cap_outputs, &output, sizeof *ts->outputs))
        return ts_no_memory(ts);
    return 0;
}
