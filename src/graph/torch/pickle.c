/*
 * See pickle.h. One function for each group of opcodes, found through a table; the loop knows
 * nothing of them. Marks are kept beside the stack, so that a pickle cannot take values from
 * below its mark.
 */
#include "graph/torch/pickle_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/bytes.h"

#define GLOBAL_MAX 512
#define ARENA_MIN  ((size_t)1 << 20)

struct vm {
    const struct nrg_pickle *in;
    size_t at, op_at;
    struct nrg_arena *arena;
    struct nrg_pkl **stack;
    size_t n_stack, cap_stack;
    size_t *marks;
    size_t n_marks, cap_marks;
    struct nrg_pkl **memo;
    size_t n_memo, cap_memo; /* n_memo: entries made by MEMOIZE's counting */
    struct nrg_pkl *result;
    struct nrg_error *err;
};

static int fail(struct vm *vm, int code, const char *what)
{
    return nrg_fail_at(vm->err, code, vm->in->where, (long long)vm->op_at, "%s", what);
}

static int no_memory(struct vm *vm)
{
    return fail(vm, -ENOMEM, "the pickle needs more memory than its size allows");
}

static int take(struct vm *vm, size_t n, const uint8_t **bytes)
{
    if (n > vm->in->size - vm->at)
        return fail(vm, -EBADMSG, "the pickle ends too early");
    *bytes = vm->in->bytes + vm->at;
    vm->at += n;
    return 0;
}

/* A little-endian count of `width` bytes. */
static int take_count(struct vm *vm, size_t width, uint64_t *n)
{
    const uint8_t *p = NULL;
    int rc = take(vm, width, &p);
    *n = 0;
    for (size_t i = width; !rc && i-- > 0;)
        *n = *n << 8 | p[i];
    return rc;
}

static int push(struct vm *vm, struct nrg_pkl *v)
{
    if (!v || nrg_reserve(&vm->stack, &vm->cap_stack, vm->n_stack + 1, sizeof(struct nrg_pkl *)))
        return no_memory(vm);
    vm->stack[vm->n_stack++] = v;
    return 0;
}

static struct nrg_pkl *make(struct vm *vm, enum nrg_pkl_kind kind)
{
    struct nrg_pkl *v = nrg_arena_alloc(vm->arena, sizeof *v);
    if (v)
        v->kind = kind;
    return v;
}

static int push_int(struct vm *vm, enum nrg_pkl_kind kind, int64_t i)
{
    struct nrg_pkl *v = make(vm, kind);
    if (v)
        v->i = i;
    return push(vm, v);
}

static size_t floor_of(const struct vm *vm)
{
    return vm->n_marks ? vm->marks[vm->n_marks - 1] : 0;
}

static int pop(struct vm *vm, struct nrg_pkl **v)
{
    if (vm->n_stack <= floor_of(vm))
        return fail(vm, -EBADMSG, "the pickle takes from an empty stack");
    *v = vm->stack[--vm->n_stack];
    return 0;
}

/* Everything above the last mark; the caller uses it before the next push. */
static int pop_mark(struct vm *vm, struct nrg_pkl ***items, size_t *n)
{
    if (!vm->n_marks)
        return fail(vm, -EBADMSG, "the pickle has no mark to go back to");
    size_t from = vm->marks[--vm->n_marks];
    *items = vm->stack ? vm->stack + from : NULL;
    *n = vm->n_stack - from;
    vm->n_stack = from;
    return 0;
}

static int add_items(struct vm *vm, struct nrg_pkl *v, struct nrg_pkl **items, size_t n)
{
    if (v->n + n > v->cap) {
        size_t cap = v->cap ? v->cap * 2 : n;
        if (cap < v->n + n)
            cap = v->n + n;
        struct nrg_pkl **grown = nrg_arena_array(vm->arena, cap, sizeof(struct nrg_pkl *));
        if (!grown)
            return no_memory(vm);
        if (v->n)
            memcpy(grown, v->items, v->n * sizeof *grown);
        v->items = grown;
        v->cap = cap;
    }
    if (n)
        memcpy(v->items + v->n, items, n * sizeof *items);
    v->n += n;
    return 0;
}

static int push_items(struct vm *vm, enum nrg_pkl_kind kind, struct nrg_pkl **items, size_t n)
{
    struct nrg_pkl *v = make(vm, kind);
    if (!v)
        return no_memory(vm);
    int rc = add_items(vm, v, items, n);
    return rc ? rc : push(vm, v);
}

static int op_proto(struct vm *vm, uint8_t op)
{
    uint64_t version = 0;
    int rc = take_count(vm, 1, &version);
    if (!rc && version > 5)
        rc = fail(vm, -ENOTSUP, "the pickle's protocol is newer than 5");
    return rc;
}

static int op_frame(struct vm *vm, uint8_t op)
{
    uint64_t n = 0;
    return take_count(vm, 8, &n);
}

static int op_constant(struct vm *vm, uint8_t op)
{
    return op == 'N' ? push_int(vm, NRG_PKL_NONE, 0) : push_int(vm, NRG_PKL_BOOL, op == 0x88);
}

static int op_int(struct vm *vm, uint8_t op)
{
    uint64_t n = 0;
    int rc = take_count(vm, op == 'J' ? 4 : op == 'M' ? 2 : 1, &n);
    return rc ? rc : push_int(vm, NRG_PKL_INT, op == 'J' ? (int32_t)(uint32_t)n : (int64_t)n);
}

static int op_long(struct vm *vm, uint8_t op)
{
    uint64_t n = 0, i = 0;
    const uint8_t *p = NULL;
    int rc = take_count(vm, op == 0x8a ? 1 : 4, &n);
    if (!rc)
        rc = take(vm, n, &p);
    if (rc)
        return rc;
    if (n > 8)
        return push_int(vm, NRG_PKL_BIGINT, 0);
    for (size_t k = n; k-- > 0;)
        i = i << 8 | p[k];
    if (n && n < 8 && p[n - 1] & 0x80)
        i |= UINT64_MAX << (8 * n);
    return push_int(vm, NRG_PKL_INT, (int64_t)i);
}

static int op_float(struct vm *vm, uint8_t op)
{
    const uint8_t *p = NULL;
    uint64_t bits = 0;
    int rc = take(vm, 8, &p);
    if (rc)
        return rc;
    for (size_t i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    struct nrg_pkl *v = make(vm, NRG_PKL_FLOAT);
    if (v)
        memcpy(&v->f, &bits, sizeof v->f);
    return push(vm, v);
}

static int push_text(struct vm *vm, enum nrg_pkl_kind kind, size_t width)
{
    uint64_t n = 0;
    const uint8_t *p = NULL;
    int rc = take_count(vm, width, &n);
    if (!rc)
        rc = take(vm, n, &p);
    if (rc)
        return rc;
    struct nrg_pkl *v = make(vm, kind);
    if (v) {
        v->s = (const char *)p;
        v->n = n;
    }
    return push(vm, v);
}

static int op_text(struct vm *vm, uint8_t op)
{
    bool is_text = op == 'X' || op == 0x8c || op == 0x8d || op == 'T' || op == 'U';
    size_t width = op == 0x8c || op == 'C' || op == 'U'     ? 1
                   : op == 0x8d || op == 0x8e || op == 0x96 ? 8
                                                            : 4;
    return push_text(vm, is_text ? NRG_PKL_TEXT : NRG_PKL_BYTES, width);
}

static int op_mark(struct vm *vm, uint8_t op)
{
    if (nrg_reserve(&vm->marks, &vm->cap_marks, vm->n_marks + 1, sizeof *vm->marks))
        return no_memory(vm);
    vm->marks[vm->n_marks++] = vm->n_stack;
    return 0;
}

static int op_pop(struct vm *vm, uint8_t op)
{
    struct nrg_pkl *v = NULL, **items = NULL;
    size_t n = 0;
    if (op == '1' || vm->n_stack == floor_of(vm))
        return pop_mark(vm, &items, &n);
    return pop(vm, &v);
}

static int op_dup(struct vm *vm, uint8_t op)
{
    if (vm->n_stack <= floor_of(vm))
        return fail(vm, -EBADMSG, "the pickle takes from an empty stack");
    return push(vm, vm->stack[vm->n_stack - 1]);
}

static int op_empty(struct vm *vm, uint8_t op)
{
    return push_items(vm,
                      op == '}'   ? NRG_PKL_DICT
                      : op == ')' ? NRG_PKL_TUPLE
                                  : NRG_PKL_LIST,
                      NULL, 0);
}

static int op_small_tuple(struct vm *vm, uint8_t op)
{
    size_t n = op - 0x84u;
    if (vm->n_stack - floor_of(vm) < n)
        return fail(vm, -EBADMSG, "the pickle takes from an empty stack");
    vm->n_stack -= n;
    return push_items(vm, NRG_PKL_TUPLE, vm->stack + vm->n_stack, n);
}

static int op_collect(struct vm *vm, uint8_t op)
{
    struct nrg_pkl **items = NULL;
    size_t n = 0;
    int rc = pop_mark(vm, &items, &n);
    if (!rc && op == 'd' && n % 2)
        rc = fail(vm, -EBADMSG, "a dictionary has a key without a value");
    return rc ? rc
              : push_items(vm,
                           op == 'd'   ? NRG_PKL_DICT
                           : op == 't' ? NRG_PKL_TUPLE
                                       : NRG_PKL_LIST,
                           items, n);
}

/* Objects may be filled like a list or a dict, never both: one array holds either. */
static int fill(struct vm *vm, uint8_t op, struct nrg_pkl **items, size_t n)
{
    bool pairs = op == 's' || op == 'u';
    if (vm->n_stack <= floor_of(vm))
        return fail(vm, -EBADMSG, "the pickle takes from an empty stack");
    struct nrg_pkl *v = vm->stack[vm->n_stack - 1];
    if (v->kind != NRG_PKL_OBJECT && v->kind != (pairs ? NRG_PKL_DICT : NRG_PKL_LIST))
        return fail(vm, -EBADMSG, "the pickle fills something that is no container");
    if (pairs && (n % 2 || v->n % 2))
        return fail(vm, -EBADMSG, "a dictionary has a key without a value");
    return add_items(vm, v, items, n);
}

static int op_fill_one(struct vm *vm, uint8_t op)
{
    size_t n = op == 's' ? 2 : 1;
    if (vm->n_stack - floor_of(vm) < n)
        return fail(vm, -EBADMSG, "the pickle takes from an empty stack");
    vm->n_stack -= n;
    return fill(vm, op, vm->stack + vm->n_stack, n);
}

static int op_fill(struct vm *vm, uint8_t op)
{
    struct nrg_pkl **items = NULL;
    size_t n = 0;
    int rc = pop_mark(vm, &items, &n);
    return rc ? rc : fill(vm, op, items, n);
}

static int push_global(struct vm *vm, const char *module, size_t module_len, const char *name,
                       size_t name_len)
{
    char clean[GLOBAL_MAX];
    if (module_len + name_len + 2 > GLOBAL_MAX)
        return fail(vm, -EBADMSG, "the pickle names something with more than 500 letters");
    struct nrg_pkl *v = make(vm, NRG_PKL_GLOBAL);
    char *text = v ? nrg_arena_alloc(vm->arena, module_len + name_len + 2) : NULL;
    if (!text)
        return no_memory(vm);
    memcpy(text, module, module_len);
    text[module_len] = '.';
    memcpy(text + module_len + 1, name, name_len);
    v->s = text;
    v->n = module_len + 1 + name_len;
    if (strlen(text) == v->n && vm->in->allow(text))
        return push(vm, v);
    nrg_copy_clean(clean, sizeof clean, text, v->n);
    return nrg_fail_at(vm->err, -EPERM, vm->in->where, (long long)vm->op_at,
                       "the pickle asks for %.200s: refused (nothing is run from a model file; "
                       "save a state_dict or a TorchScript archive instead)",
                       clean);
}

static int take_line(struct vm *vm, const char **text, size_t *len)
{
    const char *from = (const char *)vm->in->bytes + vm->at;
    const char *end = memchr(from, '\n', vm->in->size - vm->at);
    if (!end)
        return fail(vm, -EBADMSG, "the pickle ends too early");
    *text = from;
    *len = (size_t)(end - from);
    vm->at += *len + 1;
    return 0;
}

static int op_global(struct vm *vm, uint8_t op)
{
    const char *module = NULL, *name = NULL;
    size_t module_len = 0, name_len = 0;
    int rc = take_line(vm, &module, &module_len);
    if (!rc)
        rc = take_line(vm, &name, &name_len);
    return rc ? rc : push_global(vm, module, module_len, name, name_len);
}

static int op_stack_global(struct vm *vm, uint8_t op)
{
    struct nrg_pkl *module = NULL, *name = NULL;
    int rc = pop(vm, &name);
    if (!rc)
        rc = pop(vm, &module);
    if (!rc && (module->kind != NRG_PKL_TEXT || name->kind != NRG_PKL_TEXT))
        rc = fail(vm, -EBADMSG, "the pickle names a global without text");
    return rc ? rc : push_global(vm, module->s, module->n, name->s, name->n);
}

/* REDUCE, NEWOBJ and NEWOBJ_EX: what would be called, with what. Keyword arguments are dropped. */
static int op_call(struct vm *vm, uint8_t op)
{
    struct nrg_pkl *args = NULL, *callee = NULL, *keywords = NULL;
    int rc = op == 0x92 ? pop(vm, &keywords) : 0;
    if (!rc)
        rc = pop(vm, &args);
    if (!rc)
        rc = pop(vm, &callee);
    if (!rc && args->kind != NRG_PKL_TUPLE)
        rc = fail(vm, -EBADMSG, "the pickle calls something without a tuple of arguments");
    struct nrg_pkl *v = rc ? NULL : make(vm, NRG_PKL_OBJECT);
    if (rc)
        return rc;
    if (v) {
        v->callee = callee;
        v->args = args;
    }
    return push(vm, v);
}

static int op_build(struct vm *vm, uint8_t op)
{
    struct nrg_pkl *state = NULL;
    int rc = pop(vm, &state);
    if (!rc && vm->n_stack <= floor_of(vm))
        rc = fail(vm, -EBADMSG, "the pickle takes from an empty stack");
    if (!rc)
        vm->stack[vm->n_stack - 1]->state = state;
    return rc;
}

static int op_persistent(struct vm *vm, uint8_t op)
{
    struct nrg_pkl *id = NULL;
    int rc = pop(vm, &id);
    struct nrg_pkl *v = rc ? NULL : make(vm, NRG_PKL_PERSISTENT);
    if (v)
        v->args = id;
    return rc ? rc : push(vm, v);
}

/* Writers number densely and need two bytes for each: a larger number is no honest one. */
static int put(struct vm *vm, uint64_t index)
{
    if (index >= vm->in->size)
        return fail(vm, -EBADMSG, "the pickle's memo number is out of range");
    size_t before = vm->cap_memo;
    if (nrg_reserve(&vm->memo, &vm->cap_memo, index + 1, sizeof(struct nrg_pkl *)))
        return no_memory(vm);
    if (vm->cap_memo > before)
        memset(vm->memo + before, 0, (vm->cap_memo - before) * sizeof(struct nrg_pkl *));
    if (vm->n_stack <= floor_of(vm))
        return fail(vm, -EBADMSG, "the pickle takes from an empty stack");
    vm->n_memo += !vm->memo[index];
    vm->memo[index] = vm->stack[vm->n_stack - 1];
    return 0;
}

static int op_put(struct vm *vm, uint8_t op)
{
    uint64_t index = vm->n_memo;
    int rc = op == 0x94 ? 0 : take_count(vm, op == 'q' ? 1 : 4, &index);
    return rc ? rc : put(vm, index);
}

static int op_get(struct vm *vm, uint8_t op)
{
    uint64_t index = 0;
    int rc = take_count(vm, op == 'h' ? 1 : 4, &index);
    if (!rc && (index >= vm->cap_memo || !vm->memo[index]))
        rc = fail(vm, -EBADMSG, "the pickle refers to something it has not told yet");
    return rc ? rc : push(vm, vm->memo[index]);
}

static int op_stop(struct vm *vm, uint8_t op)
{
    return pop(vm, &vm->result);
}

/* clang-format off */
static int (*const ops[256])(struct vm *, uint8_t) = {
    [0x80] = op_proto,
    [0x95] = op_frame,
    ['N'] = op_constant, [0x88] = op_constant, [0x89] = op_constant,
    ['J'] = op_int, ['K'] = op_int, ['M'] = op_int,
    [0x8a] = op_long, [0x8b] = op_long,
    ['G'] = op_float,
    ['X'] = op_text, ['T'] = op_text, ['U'] = op_text, ['B'] = op_text, ['C'] = op_text,
    [0x8c] = op_text, [0x8d] = op_text, [0x8e] = op_text, [0x96] = op_text,
    ['('] = op_mark,
    ['0'] = op_pop, ['1'] = op_pop,
    ['2'] = op_dup,
    [']'] = op_empty, ['}'] = op_empty, [')'] = op_empty, [0x8f] = op_empty,
    [0x85] = op_small_tuple, [0x86] = op_small_tuple, [0x87] = op_small_tuple,
    ['t'] = op_collect, ['l'] = op_collect, ['d'] = op_collect, [0x91] = op_collect,
    ['a'] = op_fill_one, ['s'] = op_fill_one,
    ['e'] = op_fill, ['u'] = op_fill, [0x90] = op_fill,
    ['c'] = op_global,
    [0x93] = op_stack_global,
    ['R'] = op_call, [0x81] = op_call, [0x92] = op_call,
    ['b'] = op_build,
    ['Q'] = op_persistent,
    ['q'] = op_put, ['r'] = op_put, [0x94] = op_put,
    ['h'] = op_get, ['j'] = op_get,
    ['.'] = op_stop,
};
/* clang-format on */

static int run(struct vm *vm)
{
    int rc = 0;
    while (!rc && !vm->result) {
        const uint8_t *op = NULL;
        vm->op_at = vm->at;
        if ((rc = take(vm, 1, &op)))
            break;
        rc = ops[*op] ? ops[*op](vm, *op)
                      : nrg_fail_at(vm->err, -ENOTSUP, vm->in->where, (long long)vm->op_at,
                                    "is no pickle that PyTorch writes (opcode 0x%02x)", *op);
    }
    return rc;
}

int nrg_pickle_read(const struct nrg_pickle *pickle, size_t *at, struct nrg_arena *arena,
                    struct nrg_pkl **out, struct nrg_error *err)
{
    struct vm vm = {.in = pickle, .at = *at, .arena = arena, .err = err};
    size_t room =
        pickle->size < SIZE_MAX / NRG_PKL_FACTOR ? pickle->size * NRG_PKL_FACTOR : SIZE_MAX / 2;
    arena->limit = arena->used + (room < ARENA_MIN ? ARENA_MIN : room);
    int rc = run(&vm);
    *out = vm.result;
    *at = vm.at;
    free(vm.stack);
    free(vm.marks);
    free(vm.memo);
    return rc;
}
