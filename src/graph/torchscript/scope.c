/*
 * Scope to qualified module name. Three styles, by version:
 *
 *   1.4 and later  __module.layer1/__module.layer1.0     the last part, without "__module."
 *   up to 1.3      ResNet/Sequential[layer1]/Block[0]    the names in brackets, joined
 *   ONNX export    pkg.Net::/pkg.Seq::layer1/…::layer1.0/…::conv1
 *                  the names after "::", joined; inside a Sequential a name repeats its parent's
 *                  ("layer1", then "layer1.0"), which then stands for both
 *
 * A scope of any other style gives no module: unknown, not the root.
 */
#include "base/mem.h"
#include "graph/torchscript/lex.h"

struct path {
    struct nrg_str text;
    size_t last; /* where the last name begins */
    size_t n_parts, n_named;
};

static bool repeats_last(const struct path *path, const char *name, size_t len)
{
    size_t n = path->text.len - path->last;
    return n && len > n && !memcmp(name, path->text.text + path->last, n) && name[n] == '.';
}

static int add_name(struct path *path, const char *name, size_t len)
{
    if (!len)
        return 0;
    if (repeats_last(path, name, len)) {
        path->text.len = path->last;
        return nrg_str_add(&path->text, name, len);
    }
    int rc = path->text.len ? nrg_str_add(&path->text, ".", 1) : 0;
    path->last = path->text.len;
    return rc ? rc : nrg_str_add(&path->text, name, len);
}

static int add_part(struct path *path, const char *at, size_t len)
{
    static const char root[] = "__module";
    const char *colons = ts_find_word(at, at + len, "::"),
               *bracket = ts_find_word(at, at + len, "[");
    path->n_parts++;
    if (len >= 8 && !memcmp(at, root, 8) && (len == 8 || at[8] == '.')) {
        path->n_named++;
        path->text.len = path->last = 0;
        return len > 9 ? nrg_str_add(&path->text, at + 9, len - 9) : 0;
    }
    if (colons) {
        path->n_named++;
        return add_name(path, colons + 2, len - (size_t)(colons + 2 - at));
    }
    if (bracket && at[len - 1] == ']') {
        path->n_named++;
        path->last = path->text.len; /* names in brackets never repeat */
        return add_name(path, bracket + 1, len - (size_t)(bracket - at) - 2);
    }
    return 0;
}

static int module_of(struct ts *ts, const char *text, size_t len, const char **module)
{
    struct path path = {0};
    int rc = 0;
    for (size_t at = 0, n; !rc && at <= len; at += n + 1) {
        const char *slash = memchr(text + at, '/', len - at);
        n = slash ? (size_t)(slash - text) - at : len - at;
        rc = n ? add_part(&path, text + at, n) : 0;
    }
    /* "ResNet" alone is the root of the old style; a longer path without names is unknown. */
    if (!rc && (path.n_named || path.n_parts == 1)) {
        *module = ts_copy(ts, path.text.text ? path.text.text : "", path.text.len);
        rc = *module ? 0 : -1;
    }
    nrg_str_release(&path.text);
    return rc ? ts_no_memory(ts) : 0;
}

int ts_scope(struct ts *ts, const char *text, size_t len, struct nrg_op *op)
{
    struct nrg_map_entry *entry = nrg_map_at(&ts->scopes, text, len);
    if (!entry)
        return ts_no_memory(ts);
    struct ts_scope *scope = entry->data;
    if (!scope) {
        scope = nrg_arena_alloc(&ts->model->arena, sizeof *scope);
        if (!scope || !(scope->text = ts_copy(ts, text, len)))
            return ts_no_memory(ts);
        int rc = module_of(ts, text, len, &scope->module);
        if (rc)
            return rc;
        entry->data = scope;
    }
    op->scope = scope->text;
    op->module = scope->module;
    ts->state.scoped = true;
    return 0;
}
