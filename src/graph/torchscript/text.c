/*
 * Texts: a pool for the terminated copies that the model keeps, and stacks of pointers. Keys of the
 * tables point into the source, which outlives the reading.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/torchscript/lex.h"

#define POOL_SIZE  4096
#define POOL_LARGE 512 /* longer texts get their own room */

static char *pool_room(struct ts *ts, size_t size)
{
    if (size > POOL_LARGE)
        return nrg_arena_alloc(&ts->model->arena, size);
    if (size > ts->pool_left) {
        ts->pool = nrg_arena_alloc(&ts->model->arena, POOL_SIZE);
        ts->pool_left = ts->pool ? POOL_SIZE : 0;
        if (!ts->pool)
            return NULL;
    }
    char *at = ts->pool;
    ts->pool += size;
    ts->pool_left -= size;
    return at;
}

const char *ts_copy(struct ts *ts, const char *text, size_t len)
{
    char *copy = pool_room(ts, len + 1);
    if (!copy)
        return NULL;
    bool plain = true;
    for (size_t i = 0; i < len; i++) {
        copy[i] = text[i];
        plain &= text[i] >= 0x20 && text[i] < 0x7f;
    }
    copy[len] = '\0';
    if (!plain)
        nrg_copy_clean(copy, len + 1, text, len);
    return copy;
}

const char *ts_intern(struct ts *ts, const char *text, size_t len)
{
    struct nrg_map_entry *entry = nrg_map_at(&ts->texts, text, len);
    if (entry && !entry->data)
        entry->data = (char *)ts_copy(ts, text, len);
    return entry ? entry->data : NULL;
}

int ts_push(struct ts *ts, struct ts_stack *stack, void *item)
{
    if (nrg_append(&stack->items, &stack->n, &stack->cap, &item, sizeof *stack->items))
        return ts_no_memory(ts);
    return 0;
}

int ts_pop_array(struct ts *ts, struct ts_stack *stack, size_t base, void *array, size_t *n)
{
    *n = stack->n - base;
    stack->n = base;
    if (!*n)
        return 0;
    void **copy = nrg_arena_array(&ts->model->arena, *n, sizeof *copy);
    if (!copy)
        return ts_no_memory(ts);
    memcpy(copy, stack->items + base, *n * sizeof *copy);
    memcpy(array, &copy, sizeof copy);
    return 0;
}

int ts_no_memory(struct ts *ts)
{
    return nrg_fail(ts->err, -ENOMEM, ts->source->name, "not enough memory for its graph");
}

int ts_too_deep(struct ts *ts)
{
    return nrg_fail_at(ts->err, -E2BIG, ts->source->name, ts_line_at(ts, ts->p),
                       "nests more than %d deep: no printer writes that", TS_MAX_DEPTH);
}
