/*
 * See memory.h. jansson's parser (2.14) itself stumbles when it lacks memory: an assertion, a
 * free of what it never had. So a small reserve lets it finish what it was at; the result is
 * refused all the same.
 */
#include "base/json/memory.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

enum { RESERVE_BYTES = 65536 };

static alignas(max_align_t) char reserve[RESERVE_BYTES];
static atomic_size_t reserve_used; /* nothing is given back: this is the end anyway */

static void *get_memory(size_t size)
{
    void *memory = malloc(size);
    if (memory || !size)
        return memory;
    nrg_memory_lacked();
    size_t step = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (size > RESERVE_BYTES)
        return NULL;
    size_t at = atomic_fetch_add(&reserve_used, step);
    return at <= RESERVE_BYTES - step ? reserve + at : NULL;
}

void nrg_json_free(void *memory)
{
    uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)reserve;
    if (at < begin || at >= begin + RESERVE_BYTES)
        free(memory);
}

void nrg_json_watch_memory(void)
{
    json_set_alloc_funcs(get_memory, nrg_json_free);
}

json_t *nrg_json_whole(json_t *doc)
{
    if (!nrg_memory_is_lacking())
        return doc;
    json_decref(doc);
    return NULL;
}
