/*
 * Texts by their bytes: tables whose keys stay in the source (which outlives the reading), a pool
 * for the terminated copies that the model keeps, and stacks of pointers.
 *
 * A table is a list of entries in the order they came and open-addressing slots of eight bytes that
 * point into it: values are used soon after they are defined, so that entries are still in the
 * cache, and the slots are few enough to stay there. Slot and entry point at each other; a slot
 * whose entry does not point back is free. So a table is emptied by setting its count to 0: a
 * file may hold ten thousand small graphs after a large one.
 *
 * The hash reads eight bytes at a time and folds a 128-bit product. Its seed differs per process,
 * because a text made to collide could otherwise make the reader quadratic.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/mem.h"
#include "graph/torchscript/lex.h"

#define FIRST_CAP  64
#define POOL_SIZE  4096
#define POOL_LARGE 512 /* longer texts get their own room */

static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load(const char *p, size_t len)
{
    uint64_t word = 0;
    memcpy(&word, p, len);
    return word;
}

static uint64_t seed(void)
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    return random ? load(random, 8) : 0;
}

static uint64_t hash_of(uint64_t h, const char *text, size_t len)
{
    h ^= len * UINT64_C(0x9e3779b97f4a7c15);
    for (; len > 8; text += 8, len -= 8)
        h = fold(h ^ load(text, 8), UINT64_C(0xd6e8feb86659fd93));
    uint64_t tail = 0;
    if (len >= 4)
        tail = load(text, 4) << 32 | load(text + len - 4, 4);
    else if (len)
        tail = (uint64_t)(uint8_t)text[0] << 16 | (uint64_t)(uint8_t)text[len / 2] << 8 |
               (uint8_t)text[len - 1];
    return fold(h ^ tail, UINT64_C(0xa0761d6478bd642f));
}

static bool is_free(const struct ts_table *table, size_t at)
{
    uint32_t i = table->slots[at].entry;
    return i >= table->n || table->entries[i].slot != at;
}

static void place(struct ts_table *table, uint32_t i)
{
    size_t at = table->entries[i].hash & (table->cap - 1);
    while (!is_free(table, at))
        at = (at + 1) & (table->cap - 1);
    table->slots[at] = (struct ts_slot){table->entries[i].hash, i};
    table->entries[i].slot = (uint32_t)at;
}

static int grow(struct ts_table *table)
{
    size_t cap = table->cap ? table->cap * 2 : FIRST_CAP, n = table->n;
    struct ts_slot *slots = calloc(cap, sizeof *slots);
    struct ts_entry *entries = realloc(table->entries, cap / 2 * sizeof *entries);
    if (entries)
        table->entries = entries;
    if (!slots || !entries || cap > UINT32_MAX) {
        free(slots);
        return -ENOMEM;
    }
    free(table->slots);
    table->slots = slots;
    table->cap = cap;
    if (!table->seed)
        table->seed = seed();
    /* Each entry must find those before it in place, and those after it not yet. */
    for (table->n = 0; table->n < n;) {
        uint32_t i = (uint32_t)table->n;
        table->entries[i].slot = UINT32_MAX;
        table->n++;
        place(table, i);
    }
    return 0;
}

struct ts_entry *ts_table_at(struct ts_table *table, const char *text, size_t len)
{
    if (table->n >= table->cap / 2 && grow(table))
        return NULL;
    uint32_t hash = (uint32_t)hash_of(table->seed, text, len);
    size_t at = hash & (table->cap - 1);
    for (;; at = (at + 1) & (table->cap - 1)) {
        uint32_t i = table->slots[at].entry;
        if (is_free(table, at))
            break;
        struct ts_entry *entry = &table->entries[i];
        if (table->slots[at].hash == hash && entry->len == len && !memcmp(entry->key, text, len))
            return entry;
    }
    uint32_t i = (uint32_t)table->n++;
    table->slots[at] = (struct ts_slot){hash, i};
    table->entries[i] = (struct ts_entry){text, NULL, (uint32_t)len, hash, (uint32_t)at};
    return &table->entries[i];
}

void ts_table_forget(struct ts_table *table)
{
    table->n = 0;
}

void ts_table_release(struct ts_table *table)
{
    free(table->entries);
    free(table->slots);
    *table = (struct ts_table){0};
}

static char *room_for(struct ts *ts, size_t size)
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
    char *copy = room_for(ts, len + 1);
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
    struct ts_entry *entry = ts_table_at(&ts->texts, text, len);
    if (entry && !entry->data)
        entry->data = (char *)ts_copy(ts, text, len);
    return entry ? entry->data : NULL;
}

int ts_push(struct ts *ts, struct ts_stack *stack, void *item)
{
    if (nrg_reserve(&stack->items, &stack->cap, stack->n + 1, sizeof *stack->items))
        return ts_no_memory(ts);
    stack->items[stack->n++] = item;
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
