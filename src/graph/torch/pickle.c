/*
 * See pickle.h. One function for each group of opcodes, found through a table; the loop knows
 * nothing of them. Marks are kept beside the stack, so that a pickle cannot take values from
 * below its mark.
 */
#include "graph/torch/pickle.h"

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
    int rc; /* the first error: nothing is taken or pushed after it */
    struct nrg_error *err;
};

static void refuse_pickle(struct vm *vm, int code, const char *what)
{
    vm->rc = nrg_fail_at(vm->err, code, vm->in->where, (long long)vm->op_at, "%s", what);
}

static void no_memory(struct vm *vm)
{
    refuse_pickle(vm, -ENOMEM, "the pickle needs more memory than its size allows");
}

/* NULL: the pickle ends before, or something failed earlier. */
static const uint8_t *take_bytes(struct vm *vm, size_t n)
{
    if (!vm->rc && n > vm->in->size - vm->at)
        refuse_pickle(vm, -EBADMSG, "the pickle ends too early");
    if (vm->rc)
        return NULL;
    vm->at += n;
    return vm->in->bytes + vm->at - n;
}

/* A little-endian count of `width` bytes. */
static uint64_t take_count(struct vm *vm, size_t width)
{
    const uint8_t *p = take_bytes(vm, width);
    uint64_t n = 0;
    for (size_t i = width; p && i-- > 0;)
        n = n << 8 | p[i];
    return n;
}

static void push_value(struct vm *vm, struct nrg_pkl *v)
{
    if (!vm->rc && (!v || nrg_append(&vm->stack, &vm->n_stack, &vm->cap_stack, &v, sizeof v)))
        no_memory(vm);
}

static struct nrg_pkl *new_value(struct vm *vm, enum nrg_pkl_kind kind)
{
    struct nrg_pkl *v = vm->rc ? NULL : nrg_arena_alloc(vm->arena, sizeof *v);
    if (v)
        v->kind = kind;
    return v;
}

static void push_int(struct vm *vm, enum nrg_pkl_kind kind, int64_t i)
{
    struct nrg_pkl *v = new_value(vm, kind);
    if (v)
        v->i = i;
    push_value(vm, v);
}

/* Values above the last mark: only those may be taken. */
static size_t n_free(const struct vm *vm)
{
    return vm->n_stack - (vm->n_marks ? vm->marks[vm->n_marks - 1] : 0);
}

/* The caller uses them before the next push; NULL after an error. */
static struct nrg_pkl **pop_values(struct vm *vm, size_t n)
{
    if (!vm->rc && n_free(vm) < n)
        refuse_pickle(vm, -EBADMSG, "the pickle takes from an empty stack");
    if (vm->rc)
        return NULL;
    vm->n_stack -= n;
    return vm->stack + vm->n_stack;
}

static struct nrg_pkl *pop_value(struct vm *vm)
{
    struct nrg_pkl **top = pop_values(vm, 1);
    return top ? *top : NULL;
}

/* The value stays on the stack. */
static struct nrg_pkl *top_value(struct vm *vm)
{
    struct nrg_pkl *v = pop_value(vm);
    vm->n_stack += v != NULL;
    return v;
}

/* Everything above the last mark; the caller uses it before the next push. */
static struct nrg_pkl **pop_mark(struct vm *vm, size_t *n)
{
    *n = 0;
    if (!vm->n_marks) {
        refuse_pickle(vm, -EBADMSG, "the pickle has no mark to go back to");
        return NULL;
    }
    size_t from = vm->marks[--vm->n_marks];
    *n = vm->n_stack - from;
    vm->n_stack = from;
    return vm->stack ? vm->stack + from : NULL;
}

static void add_items(struct vm *vm, struct nrg_pkl *v, struct nrg_pkl **items, size_t n)
{
    if (v->n + n > v->cap) {
        size_t cap = v->cap ? v->cap * 2 : n;
        if (cap < v->n + n)
            cap = v->n + n;
        struct nrg_pkl **grown = nrg_arena_array(vm->arena, cap, sizeof(struct nrg_pkl *));
        if (!grown) {
            no_memory(vm);
            return;
        }
        if (v->n)
            memcpy(grown, v->items, v->n * sizeof *grown);
        v->items = grown;
        v->cap = cap;
    }
    if (n)
        memcpy(v->items + v->n, items, n * sizeof *items);
    v->n += n;
}

static void push_items(struct vm *vm, enum nrg_pkl_kind kind, struct nrg_pkl **items, size_t n)
{
    struct nrg_pkl *v = new_value(vm, kind);
    if (v)
        add_items(vm, v, items, n);
    push_value(vm, v);
}

static void op_proto(struct vm *vm, uint8_t op)
{
    if (take_count(vm, 1) > 5)
        refuse_pickle(vm, -ENOTSUP, "the pickle's protocol is newer than 5");
}

static void op_frame(struct vm *vm, uint8_t op)
{
    take_count(vm, 8);
}

static void op_constant(struct vm *vm, uint8_t op)
{
    push_int(vm, op == 'N' ? NRG_PKL_NONE : NRG_PKL_BOOL, op == 0x88);
}

static void op_int(struct vm *vm, uint8_t op)
{
    uint64_t n = take_count(vm, op == 'J' ? 4 : op == 'M' ? 2 : 1);
    push_int(vm, NRG_PKL_INT, op == 'J' ? (int32_t)(uint32_t)n : (int64_t)n);
}

static void op_long(struct vm *vm, uint8_t op)
{
    uint64_t n = take_count(vm, op == 0x8a ? 1 : 4), i = 0;
    const uint8_t *p = take_bytes(vm, n);
    for (size_t k = n; p && n <= 8 && k-- > 0;)
        i = i << 8 | p[k];
    if (p && n && n < 8 && p[n - 1] & 0x80)
        i |= UINT64_MAX << (8 * n);
    push_int(vm, n > 8 ? NRG_PKL_BIGINT : NRG_PKL_INT, (int64_t)i);
}

static void op_float(struct vm *vm, uint8_t op)
{
    const uint8_t *p = take_bytes(vm, 8);
    uint64_t bits = 0;
    for (size_t i = 0; p && i < 8; i++)
        bits = bits << 8 | p[i];
    struct nrg_pkl *v = new_value(vm, NRG_PKL_FLOAT);
    if (v)
        memcpy(&v->f, &bits, sizeof v->f);
    push_value(vm, v);
}

static void op_text(struct vm *vm, uint8_t op)
{
    bool is_text = op == 'X' || op == 0x8c || op == 0x8d || op == 'T' || op == 'U';
    size_t width = op == 0x8c || op == 'C' || op == 'U'     ? 1
                   : op == 0x8d || op == 0x8e || op == 0x96 ? 8
                                                            : 4;
    uint64_t n = take_count(vm, width);
    const uint8_t *p = take_bytes(vm, n);
    struct nrg_pkl *v = new_value(vm, is_text ? NRG_PKL_TEXT : NRG_PKL_BYTES);
    if (v) {
        v->s = (const char *)p;
        v->n = n;
    }
    push_value(vm, v);
}

static void op_mark(struct vm *vm, uint8_t op)
{
    if (nrg_append(&vm->marks, &vm->n_marks, &vm->cap_marks, &vm->n_stack, sizeof *vm->marks))
        no_memory(vm);
}

static void op_pop(struct vm *vm, uint8_t op)
{
    size_t n;
    if (op == '1' || !n_free(vm))
        pop_mark(vm, &n);
    else
        pop_value(vm);
}

static void op_dup(struct vm *vm, uint8_t op)
{
    push_value(vm, top_value(vm));
}

static bool is_small_tuple(uint8_t op)
{
    return op >= 0x85 && op <= 0x87;
}

/* The kind that an opcode makes; sets are lists here. */
static enum nrg_pkl_kind container_kind(uint8_t op)
{
    return op == '}' || op == 'd'                         ? NRG_PKL_DICT
           : op == ')' || op == 't' || is_small_tuple(op) ? NRG_PKL_TUPLE
                                                          : NRG_PKL_LIST;
}

/* What an opcode puts into a container: so many values, or all above the last mark. */
static struct nrg_pkl **pop_items(struct vm *vm, uint8_t op, size_t *n)
{
    *n = op == 'a' ? 1 : op == 's' ? 2 : is_small_tuple(op) ? op - 0x84u : 0;
    return *n ? pop_values(vm, *n) : pop_mark(vm, n);
}

static void op_empty(struct vm *vm, uint8_t op)
{
    push_items(vm, container_kind(op), NULL, 0);
}

static void op_collect(struct vm *vm, uint8_t op)
{
    size_t n;
    struct nrg_pkl **items = pop_items(vm, op, &n);
    if (op == 'd' && n % 2)
        refuse_pickle(vm, -EBADMSG, "a dictionary has a key without a value");
    push_items(vm, container_kind(op), items, n);
}

/* Objects may be filled like a list or a dict, never both: one array holds either. */
static void op_fill(struct vm *vm, uint8_t op)
{
    bool pairs = op == 's' || op == 'u';
    size_t n;
    struct nrg_pkl **items = pop_items(vm, op, &n), *v = top_value(vm);
    if (!v)
        return;
    if (v->kind != NRG_PKL_OBJECT && v->kind != (pairs ? NRG_PKL_DICT : NRG_PKL_LIST))
        refuse_pickle(vm, -EBADMSG, "the pickle fills something that is not a container");
    else if (pairs && (n % 2 || v->n % 2))
        refuse_pickle(vm, -EBADMSG, "a dictionary has a key without a value");
    else
        add_items(vm, v, items, n);
}

static void push_global(struct vm *vm, const char *module, size_t module_len, const char *name,
                        size_t name_len)
{
    char clean[GLOBAL_MAX];
    if (module_len + name_len + 2 > GLOBAL_MAX) {
        refuse_pickle(vm, -EBADMSG, "the pickle names something with more than 500 letters");
        return;
    }
    struct nrg_pkl *v = new_value(vm, NRG_PKL_GLOBAL);
    char *text = v ? nrg_arena_alloc(vm->arena, module_len + name_len + 2) : NULL;
    if (!text) {
        no_memory(vm);
        return;
    }
    memcpy(text, module, module_len);
    text[module_len] = '.';
    memcpy(text + module_len + 1, name, name_len);
    v->s = text;
    v->n = module_len + 1 + name_len;
    nrg_copy_clean(clean, sizeof clean, text, v->n);
    if (strlen(text) != v->n || !vm->in->allow(text))
        vm->rc = nrg_fail_at(vm->err, -EPERM, vm->in->where, (long long)vm->op_at,
                             "the pickle asks for %.200s: refused (nothing is run from a model "
                             "file; save a state_dict or a TorchScript archive instead)",
                             clean);
    push_value(vm, v);
}

static const char *take_line(struct vm *vm, size_t *len)
{
    const char *from = (const char *)vm->in->bytes + vm->at;
    const char *end = vm->rc ? NULL : memchr(from, '\n', vm->in->size - vm->at);
    if (!vm->rc && !end)
        refuse_pickle(vm, -EBADMSG, "the pickle ends too early");
    if (!end)
        return NULL;
    *len = (size_t)(end - from);
    vm->at += *len + 1;
    return from;
}

static void op_global(struct vm *vm, uint8_t op)
{
    size_t module_len = 0, name_len = 0;
    const char *module = take_line(vm, &module_len);
    const char *name = take_line(vm, &name_len);
    if (name)
        push_global(vm, module, module_len, name, name_len);
}

static void op_stack_global(struct vm *vm, uint8_t op)
{
    const struct nrg_pkl *name = pop_value(vm), *module = pop_value(vm);
    if (!module)
        return;
    if (module->kind != NRG_PKL_TEXT || name->kind != NRG_PKL_TEXT)
        refuse_pickle(vm, -EBADMSG, "the pickle names a global without text");
    else
        push_global(vm, module->s, module->n, name->s, name->n);
}

/* REDUCE, NEWOBJ and NEWOBJ_EX: what would be called, with what. Keyword arguments are dropped. */
static void op_call(struct vm *vm, uint8_t op)
{
    if (op == 0x92)
        pop_value(vm);
    struct nrg_pkl *args = pop_value(vm), *callee = pop_value(vm);
    if (!vm->rc && args->kind != NRG_PKL_TUPLE)
        refuse_pickle(vm, -EBADMSG, "the pickle calls something without a tuple of arguments");
    struct nrg_pkl *v = new_value(vm, NRG_PKL_OBJECT);
    if (v) {
        v->callee = callee;
        v->args = args;
    }
    push_value(vm, v);
}

static void op_build(struct vm *vm, uint8_t op)
{
    struct nrg_pkl *state = pop_value(vm), *v = top_value(vm);
    if (v)
        v->state = state;
}

static void op_persistent(struct vm *vm, uint8_t op)
{
    struct nrg_pkl *id = pop_value(vm), *v = new_value(vm, NRG_PKL_PERSISTENT);
    if (v)
        v->args = id;
    push_value(vm, v);
}

/* Writers number densely and need two bytes for each, so a larger number is invalid. */
static void op_put(struct vm *vm, uint8_t op)
{
    uint64_t index = op == 0x94 ? vm->n_memo : take_count(vm, op == 'q' ? 1 : 4);
    size_t before = vm->cap_memo;
    if (!vm->rc && index >= vm->in->size)
        refuse_pickle(vm, -EBADMSG, "the pickle's memo number is out of range");
    else if (!vm->rc && nrg_reserve(&vm->memo, &vm->cap_memo, index + 1, sizeof(struct nrg_pkl *)))
        no_memory(vm);
    if (vm->cap_memo > before)
        memset(vm->memo + before, 0, (vm->cap_memo - before) * sizeof(struct nrg_pkl *));
    struct nrg_pkl *v = top_value(vm);
    if (!v)
        return;
    vm->n_memo += !vm->memo[index];
    vm->memo[index] = v;
}

static void op_get(struct vm *vm, uint8_t op)
{
    uint64_t index = take_count(vm, op == 'h' ? 1 : 4);
    if (vm->rc)
        return;
    if (index >= vm->cap_memo || !vm->memo[index])
        refuse_pickle(vm, -EBADMSG, "the pickle refers to a value that it has not stored");
    else
        push_value(vm, vm->memo[index]);
}

static void op_stop(struct vm *vm, uint8_t op)
{
    vm->result = pop_value(vm);
}

/* clang-format off */
static void (*const ops[256])(struct vm *, uint8_t) = {
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
    [0x85] = op_collect, [0x86] = op_collect, [0x87] = op_collect,
    ['t'] = op_collect, ['l'] = op_collect, ['d'] = op_collect, [0x91] = op_collect,
    ['a'] = op_fill, ['s'] = op_fill,
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

static void run_opcodes(struct vm *vm)
{
    while (!vm->rc && !vm->result) {
        vm->op_at = vm->at;
        const uint8_t *op = take_bytes(vm, 1);
        if (op && ops[*op])
            ops[*op](vm, *op);
        else if (op)
            vm->rc = nrg_fail_at(vm->err, -ENOTSUP, vm->in->where, (long long)vm->op_at,
                                 "is not a pickle that PyTorch writes (opcode 0x%02x)", *op);
    }
}

int nrg_pickle_read(const struct nrg_pickle *pickle, size_t *at, struct nrg_arena *arena,
                    struct nrg_pkl **out, struct nrg_error *err)
{
    struct vm vm = {.in = pickle, .at = *at, .arena = arena, .err = err};
    size_t room =
        pickle->size < SIZE_MAX / NRG_PKL_FACTOR ? pickle->size * NRG_PKL_FACTOR : SIZE_MAX / 2;
    arena->limit = arena->used + (room < ARENA_MIN ? ARENA_MIN : room);
    run_opcodes(&vm);
    *out = vm.result;
    *at = vm.at;
    free(vm.stack);
    free(vm.marks);
    free(vm.memo);
    return vm.rc;
}
