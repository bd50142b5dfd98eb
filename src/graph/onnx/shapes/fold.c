/*
 * Contents of small tensors through the operators that shapes are computed with (see
 * shapes/internal.h). Exporters spell "x.view(x.size(0), -1)" as Shape, Gather, Unsqueeze, Concat,
 * Reshape; to know the Reshape's target the contents are followed through the chain. Integers are
 * exact; an element that is not known, or is a symbolic dimension, stays so through what only moves
 * it, and arithmetic with it is not known (except times 0 and 1, plus 0). Floats occur in Resize's
 * scales; there NaN is "not known". Tensors of more than one dimension are only passed through,
 * never indexed.
 */
#include <math.h>
#include <stdlib.h>

#include "graph/cost.h"
#include "graph/onnx/shapes/internal.h"

enum fold_op {
    ADD,
    SUB,
    MUL,
    DIV,
    MOD,
    MIN,
    MAX,
    AND,
    OR,
    EQ,
    LT,
    LE,
    GT,
    GE,
    NEG,
    ABS,
    NOT,
    FLOOR,
    CEIL,
    ROUND,
    SQRT
};

struct operand {
    const struct onnx_known *k;
    size_t step; /* 0: one element for all */
};

static int64_t quotient(int64_t a, int64_t b)
{
    return !b || (a == INT64_MIN && b == -1) ? ONNX_NOT_KNOWN : a / b;
}

/* ONNX Mod takes the divisor's sign, fmod=1 the dividend's; shapes are never negative. */
static int64_t modulo(int64_t a, int64_t b)
{
    if (!b || b == -1)
        return b ? 0 : ONNX_NOT_KNOWN;
    int64_t rest = a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t with_unknown(enum fold_op what, int64_t a, int64_t b)
{
    bool a_known = onnx_element_known(a);
    int64_t sure = a_known ? a : b;
    if (!onnx_element_known(sure)) /* equal symbols are equal */
        return a == b && a != ONNX_NOT_KNOWN && what == EQ ? 1 : ONNX_NOT_KNOWN;
    if (what == MUL && sure == 0)
        return 0;
    if ((what == MUL && sure == 1) || (what == ADD && sure == 0) || (what == MAX && sure <= 0))
        return a_known ? b : a;
    if (!a_known && ((what == DIV && sure == 1) || (what == SUB && sure == 0)))
        return a;
    bool a_dim = (a_known ? b : a) != ONNX_NOT_KNOWN; /* a dimension is never negative */
    return what == EQ && a_dim && sure < 0 ? 0 : ONNX_NOT_KNOWN;
}

static int64_t on_ints(enum fold_op what, int64_t a, int64_t b)
{
    int64_t out;
    if (!onnx_element_known(a) || !onnx_element_known(b))
        return with_unknown(what, a, b);
    switch (what) {
    case ADD:
        return __builtin_add_overflow(a, b, &out) ? ONNX_NOT_KNOWN : out;
    case SUB:
        return __builtin_sub_overflow(a, b, &out) ? ONNX_NOT_KNOWN : out;
    case MUL:
        return __builtin_mul_overflow(a, b, &out) ? ONNX_NOT_KNOWN : out;
    case DIV:
        return quotient(a, b);
    case MOD:
        return modulo(a, b);
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case AND:
        return a && b;
    case OR:
        return a || b;
    case EQ:
        return a == b;
    case LT:
        return a < b;
    case LE:
        return a <= b;
    case GT:
        return a > b;
    case GE:
        return a >= b;
    case NEG:
        return a == INT64_MIN ? ONNX_NOT_KNOWN : -a;
    case ABS:
        return a == INT64_MIN ? ONNX_NOT_KNOWN : a < 0 ? -a : a;
    case NOT:
        return !a;
    default:
        return a;
    }
}

static double on_floats(enum fold_op what, double a, double b)
{
    switch (what) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return a / b;
    case MIN:
        return fmin(a, b);
    case MAX:
        return fmax(a, b);
    case NEG:
        return -a;
    case ABS:
        return fabs(a);
    case FLOOR:
        return floor(a);
    case CEIL:
        return ceil(a);
    case ROUND:
        return rint(a);
    case SQRT:
        return sqrt(a);
    default:
        return NAN;
    }
}

static bool get_operand(const struct onnx *x, const struct nrg_op *op, size_t i, size_t n,
                        struct operand *out)
{
    out->k = onnx_in_known(x, op, i);
    out->step = out->k && out->k->n == n;
    return out->k && (out->k->n == n || out->k->n == 1);
}

/* Elements of the output as its type says; 0 also when there are none or too many. */
static size_t out_elements(const struct nrg_op *op)
{
    int64_t n = op->n_outputs ? nrg_type_numel(op->outputs[0]->type) : -1;
    return n < 0 || n > ONNX_MAX_KNOWN ? 0 : (size_t)n;
}

static int fold_elements(struct onnx *x, struct nrg_op *op, int what)
{
    int64_t i[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    struct operand a, b;
    size_t n = out_elements(op);
    if (op->n_inputs > 2 || !get_operand(x, op, 0, n, &a) ||
        !get_operand(x, op, op->n_inputs > 1 ? 1 : 0, n, &b))
        return 0;
    if (a.k->i && b.k->i) {
        for (size_t k = 0; k < n; k++)
            i[k] = on_ints((enum fold_op)what, a.k->i[k * a.step], b.k->i[k * b.step]);
        return onnx_know_ints(x, op, 0, i, n);
    }
    if (!a.k->f || !b.k->f || (what >= AND && what <= GE))
        return 0;
    for (size_t k = 0; k < n; k++)
        f[k] = on_floats((enum fold_op)what, a.k->f[k * a.step], b.k->f[k * b.step]);
    return onnx_know_floats(x, op, 0, f, n);
}

static int64_t to_int(double f)
{
    return f > -9e15 && f < 9e15 ? (int64_t)f : ONNX_NOT_KNOWN;
}

static int fold_cast(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    enum nrg_dtype to = op->n_outputs ? op->outputs[0]->type->dtype : NRG_DTYPE_UNKNOWN;
    bool real = to >= NRG_F64 && to <= NRG_BF16, whole = to >= NRG_I64 && to <= NRG_BOOL;
    int64_t i[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    if (!k || (!real && !whole) || k->n > ONNX_MAX_KNOWN)
        return 0;
    for (size_t n = 0; n < k->n; n++) {
        i[n] = k->i ? k->i[n] : to_int(k->f[n]);
        if (to == NRG_BOOL && onnx_element_known(i[n]))
            i[n] = k->i ? k->i[n] != 0 : k->f[n] != 0;
        f[n] = k->f ? k->f[n] : onnx_element_known(k->i[n]) ? (double)k->i[n] : NAN;
    }
    return real ? onnx_know_floats(x, op, 0, f, k->n) : onnx_know_ints(x, op, 0, i, k->n);
}

static int fold_where(struct onnx *x, struct nrg_op *op, int what)
{
    size_t n = out_elements(op);
    struct operand c, a, b;
    int64_t i[ONNX_MAX_KNOWN];
    if (!get_operand(x, op, 0, n, &c) || !get_operand(x, op, 1, n, &a) ||
        !get_operand(x, op, 2, n, &b) || !c.k->i || !a.k->i || !b.k->i)
        return 0;
    for (size_t e = 0; e < n; e++) {
        int64_t yes = c.k->i[e * c.step];
        i[e] = !onnx_element_known(yes) ? ONNX_NOT_KNOWN
               : yes                    ? a.k->i[e * a.step]
                                        : b.k->i[e * b.step];
    }
    return onnx_know_ints(x, op, 0, i, n);
}

/* A list to one element. */
static int fold_reduce(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    struct onnx_shape in;
    if (!k || !k->i || !k->n || !onnx_in(op, 0, &in) || in.rank > 1 || out_elements(op) != 1)
        return 0;
    int64_t all = k->i[0];
    for (size_t e = 1; e < k->n; e++)
        all = on_ints((enum fold_op)what, all, k->i[e]);
    return onnx_know_ints(x, op, 0, &all, 1);
}

static const struct fold {
    const char *kind;
    onnx_fold_fn *fold;
    int what;
} folds[] = {
    {"onnx::Abs", fold_elements, ABS},        {"onnx::Add", fold_elements, ADD},
    {"onnx::And", fold_elements, AND},        {"onnx::Cast", fold_cast, 0},
    {"onnx::Ceil", fold_elements, CEIL},      {"onnx::Concat", onnx_fold_concat, 0},
    {"onnx::Div", fold_elements, DIV},        {"onnx::Equal", fold_elements, EQ},
    {"onnx::Expand", onnx_fold_expand, 0},    {"onnx::Flatten", onnx_fold_same, 0},
    {"onnx::Floor", fold_elements, FLOOR},    {"onnx::Gather", onnx_fold_gather, 0},
    {"onnx::Greater", fold_elements, GT},     {"onnx::GreaterOrEqual", fold_elements, GE},
    {"onnx::Identity", onnx_fold_same, 0},    {"onnx::Less", fold_elements, LT},
    {"onnx::LessOrEqual", fold_elements, LE}, {"onnx::Max", fold_elements, MAX},
    {"onnx::Min", fold_elements, MIN},        {"onnx::Mod", fold_elements, MOD},
    {"onnx::Mul", fold_elements, MUL},        {"onnx::Neg", fold_elements, NEG},
    {"onnx::NonZero", onnx_fold_nonzero, 0},  {"onnx::Not", fold_elements, NOT},
    {"onnx::Or", fold_elements, OR},          {"onnx::ReduceMax", fold_reduce, MAX},
    {"onnx::ReduceMin", fold_reduce, MIN},    {"onnx::ReduceProd", fold_reduce, MUL},
    {"onnx::ReduceSum", fold_reduce, ADD},    {"onnx::Reshape", onnx_fold_same, 0},
    {"onnx::Round", fold_elements, ROUND},    {"onnx::Slice", onnx_fold_slice, 0},
    {"onnx::Split", onnx_fold_split, 0},      {"onnx::Sqrt", fold_elements, SQRT},
    {"onnx::Squeeze", onnx_fold_same, 0},     {"onnx::Sub", fold_elements, SUB},
    {"onnx::Tile", onnx_fold_expand, 0},      {"onnx::Transpose", onnx_fold_transpose, 0},
    {"onnx::Unsqueeze", onnx_fold_same, 0},   {"onnx::Where", fold_where, 0},
};

int onnx_fold(struct onnx *x, struct nrg_op *op)
{
    const struct fold *row =
        bsearch(op->kind, folds, sizeof folds / sizeof *folds, sizeof *folds, nrg_kind_order);
    return row ? row->fold(x, op, row->what) : 0;
}
