/*
 * See json_text.h. Benchmarks that dump a JSON text with a JSON writer leave a file that is one
 * string; it is unwrapped at most MAX_WRAPS times. Jansson bounds the nesting itself.
 */
#include "graph/json_text.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

#define PEEK      4096
#define MAX_WRAPS 3
#define MAX_RANK  32

json_t *nrg_json_open(const struct nrg_source *source, struct nrg_error *err)
{
    json_error_t why;
    json_t *root = json_loadb((const char *)source->bytes, source->size, JSON_DECODE_ANY, &why);
    for (int i = 0; root && json_is_string(root) && i < MAX_WRAPS; i++) {
        json_t *inner =
            json_loadb(json_string_value(root), json_string_length(root), JSON_DECODE_ANY, &why);
        json_decref(root);
        root = inner;
    }
    if (!root)
        nrg_fail_at(err, -EBADMSG, source->name, why.position, "is not JSON: %.100s", why.text);
    return root;
}

bool nrg_json_mentions(const struct nrg_source *source, const char *word)
{
    size_t n = source->size < PEEK ? source->size : PEEK, len = strlen(word), i = 0;
    while (i < n && strchr(" \t\r\n", source->bytes[i]) && source->bytes[i])
        i++;
    if (i == n || !strchr("{[\"", source->bytes[i]) || !source->bytes[i])
        return false;
    for (const uint8_t *p = source->bytes, *end = p + n;
         (p = memmem(p, (size_t)(end - p), word, len)); p++) {
        const uint8_t *after = p + len;
        if (p > source->bytes && p[-1] == '"' && after < end && (*after == '"' || *after == '\\'))
            return true;
    }
    return false;
}

const struct nrg_type *nrg_json_tensor(struct nrg_model *model, const json_t *dims,
                                       enum nrg_dtype dtype)
{
    int64_t d[MAX_RANK];
    size_t n = json_array_size(dims);
    if (!json_is_array(dims) || n > MAX_RANK)
        return nrg_type_tensor(&model->arena, dtype, -1, NULL);
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(dims, i);
        d[i] = json_is_integer(dim) && json_integer_value(dim) >= 0 ? json_integer_value(dim)
                                                                    : NRG_DIM_UNKNOWN;
    }
    return nrg_type_tensor(&model->arena, dtype, (int)n, d);
}

const char *nrg_json_copy(struct nrg_model *model, const char *text)
{
    size_t len = strlen(text);
    char *copy = nrg_arena_alloc(&model->arena, len + 1);
    if (copy)
        nrg_copy_clean(copy, len + 1, text, len);
    return copy;
}
