/*
 * See internal.h: which module an operator belongs to. ONNX has no modules; exporters leave
 * traces:
 *  - PyTorch 1.13+ names nodes "/layer1/layer1.0/conv1/Conv": one part per module on the way. A
 *    child of a Sequential repeats its parent's name ("layer1.0" under "layer1"), and the second
 *    call of a module gets a suffix ("/relu_1/Relu"), which is removed when no such module has
 *    parameters and the one without suffix is there.
 *    Modules that are only containers (a ModuleDict) leave no part; the names of parameters, which
 *    have them, set the path right: "/h.0/c_fc" reads "h.0.mlp.c_fc.bias".
 *  - PyTorch's newer exporter writes metadata: pkg.torch.onnx.name_scopes, a Python list of
 *    qualified names ("['', 'layer1', 'layer1.0', 'conv2d']", the last is the call itself), and
 *    class_hierarchy, the classes in the same order; or only `namespace` ("/layer1: Cls/…").
 *    An optimiser that fuses two nodes keeps the names of the last: a convolution that a batch norm
 *    was folded into says that it is the norm. The name of the weight it reads says what it is.
 *    ONNX Runtime's optimiser writes "fused /conv1/Conv" and "/fc/MatMul/MatMulAddFusion".
 *  - TensorFlow converters write "model/conv1/Conv2D".
 *  - Otherwise the name of a weight gives it: "layer1.0.conv1.weight".
 * Without any of these the module stays NULL (unknown). None of this changes a cost, only where it
 * is shown.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "graph/onnx/internal.h"
#include "graph/scope_path.h"

#define LONGEST    1024
#define N_METADATA 9

struct scopes {
    struct onnx *x;
    struct onnx_map modules; /* names that have parameters, and those above them */
    struct onnx_map seen;    /* paths that nodes were given */
    struct onnx_map owners;  /* path, or scope as written -> the module whose parameters it reads */
    bool collecting;         /* the first pass: only learn */
};

/* Next quoted text of a Python list; false at the end. */
static bool next_quoted(const char **p, const char **text, size_t *len)
{
    const char *start = strpbrk(*p, "'\"");
    const char *end = start ? strchr(start + 1, *start) : NULL;
    if (!end)
        return false;
    *text = start + 1;
    *len = (size_t)(end - start - 1);
    *p = end + 1;
    return true;
}

static int add_module(struct onnx *x, const char *name, const char *class, size_t class_len)
{
    const char *dot = class_len ? memrchr(class, '.', class_len) : NULL;
    size_t skip = dot ? (size_t)(dot - class) + 1 : 0;
    char *class_name =
        nrg_arena_copy(&x->model->arena, class_len ? class + skip : "", class_len - skip);
    return class_name && !nrg_model_add_module(x->model, name, class_name) ? 0 : onnx_no_memory(x);
}

/* All but the last entry of name_scopes are modules; each with its class. */
static int from_lists(struct onnx *x, const char *names, const char *classes, struct nrg_op *op)
{
    const char *name, *next, *class = "";
    size_t len, next_len, class_len = 0;
    bool more = next_quoted(&names, &name, &len);
    while (more && (more = next_quoted(&names, &next, &next_len))) {
        const char *module = onnx_map_get(&x->modules, name, len);
        if (!classes || !next_quoted(&classes, &class, &class_len))
            class_len = 0;
        if (!module) {
            char *copy = nrg_arena_copy(&x->model->arena, name, len);
            int rc = copy ? onnx_map_add(x, &x->modules, copy, len, copy) : onnx_no_memory(x);
            if (rc || (rc = add_module(x, copy, class, class_len)))
                return rc;
            module = copy;
        }
        op->module = module;
        name = next;
        len = next_len;
    }
    return 0;
}

/* "/layer1: Cls/layer1.0: Cls/conv2d: call": the name before the last but one colon. */
static int from_namespace(struct onnx *x, const char *text, struct nrg_op *op)
{
    const char *start = NULL, *part = text;
    size_t len = 0;
    for (const char *slash; (slash = strchr(part, '/')); part = slash + 1) {
        const char *colon = memchr(part, ':', (size_t)(slash - part));
        if (colon) {
            start = part;
            len = (size_t)(colon - part);
        }
    }
    if (!start)
        return 0;
    return (op->module = nrg_arena_copy(&x->model->arena, start, len)) ? 0 : onnx_no_memory(x);
}

int onnx_scopes(struct onnx *x, struct nrg_pb node, struct nrg_op *op)
{
    struct nrg_pb_field names, classes;
    if (onnx_metadata(node, N_METADATA, "pkg.torch.onnx.name_scopes", &names)) {
        bool has = onnx_metadata(node, N_METADATA, "pkg.torch.onnx.class_hierarchy", &classes);
        const char *list = onnx_text(x, &names);
        const char *class_list = has ? onnx_text(x, &classes) : NULL;
        return list ? from_lists(x, list, class_list, op) : onnx_no_memory(x);
    }
    if (onnx_metadata(node, N_METADATA, "namespace", &names)) {
        const char *text = onnx_text(x, &names);
        return text ? from_namespace(x, text, op) : onnx_no_memory(x);
    }
    if (x->call && (!op->label || !strchr(op->label, '/'))) {
        op->module = x->call->module;
        op->scope = x->call->scope ? x->call->scope : x->call->label;
    }
    return 0;
}

static bool has_name(const struct onnx_map *map, const char *text, size_t len)
{
    return onnx_map_get(map, text, len) != NULL;
}

/* "a.b.weight" makes "a.b" and "a" known. */
static int learn_modules(struct scopes *s)
{
    for (size_t i = 0; i < s->x->model->n_params; i++) {
        const char *name = s->x->model->params[i].name;
        const char *dot = strrchr(name, '.');
        for (; dot; dot = memrchr(name, '.', (size_t)(dot - name))) {
            size_t len = (size_t)(dot - name);
            if (has_name(&s->modules, name, len))
                break;
            int rc = onnx_map_add(s->x, &s->modules, name, len, (void *)(uintptr_t)name);
            if (rc)
                return rc;
        }
    }
    return 0;
}

/* Length without "_<number>", or len when there is none. */
static size_t without_number(const char *text, size_t len)
{
    size_t n = len;
    while (n && isdigit((unsigned char)text[n - 1]))
        n--;
    return n < len && n > 1 && text[n - 1] == '_' ? n - 1 : len;
}

/* For nrg_scope_path: a part that ends in the number of a call. */
static size_t strip_call_number(const char *path, size_t len, const void *arg)
{
    const struct scopes *s = arg;
    size_t shorter = without_number(path, len);
    return shorter < len && !has_name(&s->modules, path, len) &&
                   (has_name(&s->modules, path, shorter) || has_name(&s->seen, path, shorter))
               ? shorter
               : len;
}

/* Nodes without a path: the first weight that has one. */
static const char *from_weight(struct onnx *x, const struct nrg_op *op)
{
    for (size_t i = 1; i < op->n_inputs; i++) {
        const struct nrg_value *value = op->inputs[i];
        const struct nrg_op *maker = value->producer;
        if (maker && !strcmp(maker->kind, "onnx::Identity") && maker->n_inputs)
            value = maker->inputs[0], maker = value->producer;
        const char *dot = strrchr(value->name, '.');
        if (!maker && dot && dot > value->name && value->type->kind == NRG_T_TENSOR)
            return nrg_arena_copy(&x->model->arena, value->name, (size_t)(dot - value->name));
    }
    return NULL;
}

/* The module of an initializer, "a.b" of "a.b.weight"; 0 when it has none. */
static size_t owner_of(const struct nrg_value *value)
{
    const char *dot =
        value->producer || value->type->kind != NRG_T_TENSOR || !strncmp(value->name, "onnx::", 6)
            ? NULL
            : strrchr(value->name, '.');
    return dot ? (size_t)(dot - value->name) : 0;
}

static const char *last_part(const char *path, size_t len)
{
    const char *dot = memrchr(path, '.', len);
    return dot ? dot + 1 : path;
}

/* A node's name as it was before ONNX Runtime fused others into it. */
struct written {
    const char *text;
    size_t len;
};

static struct written as_written(const char *text)
{
    while (!strncmp(text, "fused ", 6))
        text += 6;
    const char *fusion = strstr(text, "Fusion");
    const char *slash = fusion ? memrchr(text, '/', (size_t)(fusion - text)) : NULL;
    return (struct written){text, slash ? (size_t)(slash - text) : strlen(text)};
}

/* The length of its scope, with the number of the call: "/q_1" of "/q_1/MatMul". */
static size_t scope_length(struct written w)
{
    const char *slash = memrchr(w.text, '/', w.len);
    return slash ? (size_t)(slash - w.text) : 0;
}

/* `key` belongs to the module; to none ("") when there are two that it could belong to. */
static int note_owner(struct scopes *s, const char *key, size_t n, const char *module, size_t len)
{
    const char *known = onnx_map_get(&s->owners, key, n);
    if (known && (!*known || (strlen(known) == len && !memcmp(known, module, len))))
        return 0;
    char *copy = nrg_arena_copy(&s->x->model->arena, module, known ? 0 : len);
    return copy ? onnx_map_add(s->x, &s->owners, key, n, copy) : onnx_no_memory(s->x);
}

/* Notes that the nodes of `path` read parameters of a module with the same last name. */
static int learn_owner(struct scopes *s, const struct nrg_op *op, const char *path,
                       struct written written)
{
    size_t n = strlen(path);
    if (!n || has_name(&s->modules, path, n))
        return 0;
    for (size_t i = 0; i < op->n_inputs; i++) {
        const char *name = op->inputs[i]->name;
        size_t len = owner_of(op->inputs[i]);
        const char *theirs = last_part(name, len), *ours = last_part(path, n);
        if (!len || strlen(ours) != len - (size_t)(theirs - name) ||
            strncmp(ours, theirs, strlen(ours)))
            continue;
        int rc = note_owner(s, path, n, name, len);
        return rc ? rc : note_owner(s, written.text, scope_length(written), name, len);
    }
    return 0;
}

/* Who owns a node: its call if that is known, else all calls of that name. */
static const char *find_owner(const struct scopes *s, const char *path, size_t len,
                              struct written written)
{
    const char *owner = onnx_map_get(&s->owners, written.text, scope_length(written));
    if (!owner || !*owner)
        owner = onnx_map_get(&s->owners, path, len);
    return owner && *owner ? owner : NULL;
}

static int name_op(void *arg, struct nrg_op *op)
{
    struct scopes *s = arg;
    char path[LONGEST + 1];
    const char *label = op->scope ? op->scope : op->label;
    struct written written = as_written(label ? label : "");
    int len = op->module ? -1
                         : nrg_scope_path(written.text, written.len, path, sizeof path,
                                          strip_call_number, s);
    if (len < 0) {
        if (!op->module && !s->collecting)
            op->module = from_weight(s->x, op);
        return 0;
    }
    const char *shared = onnx_map_get(&s->seen, path, (size_t)len);
    if (!shared) {
        char *copy = nrg_arena_copy(&s->x->model->arena, path, (size_t)len);
        if (!copy)
            return onnx_no_memory(s->x);
        int rc = onnx_map_add(s->x, &s->seen, copy, (size_t)len, copy);
        if (rc)
            return rc;
        shared = copy;
    }
    if (s->collecting)
        return learn_owner(s, op, shared, written);
    const char *owner = find_owner(s, path, (size_t)len, written);
    op->module = owner ? owner : shared;
    return 0;
}

/* ---- fused nodes ---- */

static int note_module(void *arg, struct nrg_op *op)
{
    struct scopes *s = arg;
    size_t len = op->module ? strlen(op->module) : 0;
    return len && !has_name(&s->seen, op->module, len)
               ? onnx_map_add(s->x, &s->seen, op->module, len, (void *)(uintptr_t)op->module)
               : 0;
}

static bool is_product(const struct nrg_op *op)
{
    static const char *const kinds[] = {
        "onnx::Conv",   "onnx::ConvTranspose",      "onnx::Gemm",
        "onnx::MatMul", "com.microsoft::FusedConv", "com.microsoft::FusedGemm"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(op->kind, kinds[i]))
            return true;
    return false;
}

/*
 * A product that is named for a module without parameters, and reads the weight of another one that
 * has no node left: the other is what it was before something was fused into it. Not so where the
 * module that is named holds the other: it may use the weight itself.
 */
static int place_fused(void *arg, struct nrg_op *op)
{
    struct scopes *s = arg;
    const char *named = op->module;
    size_t len = op->n_inputs > 1 ? owner_of(op->inputs[1]) : 0;
    if (!named || !*named || !len || !is_product(op) || has_name(&s->modules, named, strlen(named)))
        return 0;
    const char *weight = op->inputs[1]->name;
    if (has_name(&s->seen, weight, len))
        return 0;
    op->module = nrg_arena_copy(&s->x->model->arena, weight, len);
    return op->module ? 0 : onnx_no_memory(s->x);
}

static void release(struct scopes *s)
{
    onnx_map_release(&s->modules);
    onnx_map_release(&s->seen);
    onnx_map_release(&s->owners);
}

/* Twice, because "relu_1" may come before "relu" in the file; then what was fused. */
int onnx_scopes_finish(struct onnx *x)
{
    struct scopes s = {.x = x, .collecting = true};
    int rc = learn_modules(&s);
    if (!rc)
        rc = onnx_each_op(x->graph->body, name_op, &s);
    s.collecting = false;
    if (!rc)
        rc = onnx_each_op(x->graph->body, name_op, &s);
    onnx_map_release(&s.seen);
    if (!rc)
        rc = onnx_each_op(x->graph->body, note_module, &s);
    if (!rc)
        rc = onnx_each_op(x->graph->body, place_fused, &s);
    release(&s);
    return rc;
}
