/* See arena.h. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_BLOCK   ((size_t)16 * 1024)
#define LARGEST_BLOCK ((size_t)4 * 1024 * 1024)

struct nrg_arena_block {
    struct nrg_arena_block *before;
    size_t size, used;
    alignas(max_align_t) unsigned char bytes[];
};

static struct nrg_arena_block *add_block(struct nrg_arena *arena, size_t need)
{
    size_t size = arena->last ? arena->last->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;
    if (size < need)
        size = need;
    struct nrg_arena_block *block = malloc(sizeof *block + size);
    if (!block) {
        nrg_memory_lacked();
        return NULL;
    }
    block->before = arena->last;
    block->size = size;
    block->used = 0;
    arena->last = block;
    return block;
}

static void *refuse_allocation(struct nrg_arena *arena)
{
    arena->failed = true;
    return NULL;
}

void *nrg_arena_alloc(struct nrg_arena *arena, size_t size)
{
    size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 2 || (arena->limit && size > arena->limit - arena->used))
        return refuse_allocation(arena);
    size = (size + align - 1) / align * align;
    struct nrg_arena_block *block = arena->last;
    if (!block || block->size - block->used < size)
        block = add_block(arena, size);
    if (!block)
        return refuse_allocation(arena);
    void *at = block->bytes + block->used;
    block->used += size;
    arena->used +=
        size < arena->limit - arena->used || !arena->limit ? size : arena->limit - arena->used;
    return memset(at, 0, size);
}

void *nrg_arena_array(struct nrg_arena *arena, size_t n, size_t size)
{
    return size && n > SIZE_MAX / 2 / size ? refuse_allocation(arena)
                                           : nrg_arena_alloc(arena, n * size);
}

char *nrg_arena_copy(struct nrg_arena *arena, const char *text, size_t len)
{
    char *copy = nrg_arena_alloc(arena, len + 1);
    if (copy)
        memcpy(copy, text, len);
    return copy;
}

void nrg_arena_release(struct nrg_arena *arena)
{
    for (struct nrg_arena_block *block = arena->last, *before; block; block = before) {
        before = block->before;
        free(block);
    }
    arena->last = NULL;
    arena->used = 0;
    arena->failed = false;
}
