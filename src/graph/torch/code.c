/*
 * See code.h. The file of class a.b.C is code/a/b.py; a class begins with "class C(Module):"
 * in the first column and its lists are in the lines after it:
 *
 *     class Linear(Module):
 *       __parameters__ = ["weight", "bias", ]
 *       __buffers__ = []
 */
#include "graph/torch/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void nrg_torch_code_init(struct nrg_torch_code *code, struct nrg_zip *zip)
{
    *code = (struct nrg_torch_code){.zip = zip};
}

void nrg_torch_code_release(struct nrg_torch_code *code)
{
    free(code->classes);
    nrg_map_release(&code->by_name);
    nrg_map_release(&code->files);
    nrg_arena_release(&code->arena);
}

bool nrg_torch_code_lists(const char *list, size_t len, const char *attribute, size_t attr_len)
{
    const char *end = list ? list + len : NULL;
    while (list < end) {
        const char *open = memchr(list, '"', (size_t)(end - list));
        const char *close = open ? memchr(open + 1, '"', (size_t)(end - open - 1)) : NULL;
        if (!close)
            return false;
        if ((size_t)(close - open - 1) == attr_len && !memcmp(open + 1, attribute, attr_len))
            return true;
        list = close + 1;
    }
    return false;
}

static bool starts_with(const char *line, size_t len, const char *word)
{
    return len >= strlen(word) && !memcmp(line, word, strlen(word));
}

/* "class C(Module):" of file prefix "a.b" becomes class "a.b.C". */
static int add_class(struct nrg_torch_code *code, const char *prefix, size_t prefix_len,
                     const char *line, size_t len)
{
    const char *name = line + 6, *end = line + len, *p = name;
    while (p < end && *p != '(' && *p != ':')
        p++;
    size_t name_len = (size_t)(p - name), whole = prefix_len + 1 + name_len;
    char *text = nrg_arena_alloc(&code->arena, whole + 1);
    if (!text || nrg_reserve(&code->classes, &code->cap, code->n + 1, sizeof *code->classes))
        return -ENOMEM;
    memcpy(text, prefix, prefix_len);
    text[prefix_len] = '.';
    memcpy(text + prefix_len + 1, name, name_len);
    code->classes[code->n] = (struct nrg_torch_class){
        .name = text, .is_module = starts_with(p, (size_t)(end - p), "(Module)")};
    return nrg_map_put(&code->by_name, text, whole, (int64_t)code->n++);
}

static void take_list(const char *line, size_t len, const char **list, size_t *list_len)
{
    const char *open = memchr(line, '[', len);
    const char *close = open ? memchr(open, ']', len - (size_t)(open - line)) : NULL;
    if (close) {
        *list = open + 1;
        *list_len = (size_t)(close - open - 1);
    }
}

static int parse_classes(struct nrg_torch_code *code, const char *prefix, size_t prefix_len,
                         const char *text, size_t size)
{
    struct nrg_torch_class *class = NULL;
    for (const char *end = text + size, *next; text < end; text = next) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((stop ? stop : end) - text);
        next = stop ? stop + 1 : end;
        if (starts_with(text, len, "class ")) {
            int rc = add_class(code, prefix, prefix_len, text, len);
            if (rc)
                return rc;
            class = &code->classes[code->n - 1];
        } else if (class && starts_with(text, len, "  __parameters__ = [")) {
            take_list(text, len, &class->params, &class->params_len);
        } else if (class && starts_with(text, len, "  __buffers__ = [")) {
            take_list(text, len, &class->buffers, &class->buffers_len);
        }
    }
    return 0;
}

static int load_file(struct nrg_torch_code *code, const char *name, size_t prefix_len,
                     struct nrg_error *err)
{
    struct nrg_str path = {0};
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int rc = nrg_str_addf(&path, "code/%.*s.py", (int)prefix_len, name);
    for (size_t i = 5; !rc && i < 5 + prefix_len; i++)
        if (path.text[i] == '.')
            path.text[i] = '/';
    const struct nrg_zip_entry *entry = rc ? NULL : nrg_zip_find(code->zip, path.text);
    nrg_str_release(&path);
    if (entry)
        rc = nrg_zip_read(code->zip, entry, &bytes, &size, err);
    if (rc || !entry)
        return rc;
    return parse_classes(code, name, prefix_len, (const char *)bytes, size)
               ? nrg_fail(err, -ENOMEM, code->zip->where, "out of memory")
               : 0;
}

int nrg_torch_code_find(struct nrg_torch_code *code, const char *name,
                        const struct nrg_torch_class **class, struct nrg_error *err)
{
    const char *dot = strrchr(name, '.');
    size_t prefix_len = dot ? (size_t)(dot - name) : 0;
    int rc = 0;
    *class = NULL;
    if (nrg_map_number(&code->files, name, prefix_len) < 0) {
        rc = nrg_map_put(&code->files, name, prefix_len, 0);
        rc = rc ? nrg_fail(err, rc, code->zip->where, "out of memory")
                : load_file(code, name, prefix_len, err);
    }
    int64_t at = nrg_map_number(&code->by_name, name, strlen(name));
    if (!rc && at >= 0)
        *class = &code->classes[at];
    return rc;
}
