/* See json_memory.h. */
#include "base/json_memory.h"

#include <stdlib.h>

static _Thread_local bool ran_short;

static void *get_memory(size_t size)
{
    void *memory = malloc(size);
    ran_short |= !memory && size;
    return memory;
}

void nrg_json_watch_memory(void)
{
    json_set_alloc_funcs(get_memory, free);
}

void nrg_json_ran_short(void)
{
    ran_short = true;
}

bool nrg_json_is_whole(void)
{
    return !ran_short;
}

json_t *nrg_json_whole(json_t *doc)
{
    if (!ran_short)
        return doc;
    json_decref(doc);
    return NULL;
}
