/*
 * Contents of small tensors through the operators that shapes are computed with (see
 * shapes/internal.h). Exporters spell "x.view(x.size(0), -1)" as Shape, Gather, Unsqueeze, Concat,
 * Reshape; to know the Reshape's target the contents are followed through the chain. Integers are
 * exact; an element that is not known, or is a symbolic dimension, stays so through what only moves
 * it, and arithmetic with it is not known (except times 0 and 1, plus 0). Floats occur in Resize's
 * scales and where padding is computed as in TensorFlow (Cast, Div, Ceil, Clip, Cast); there NaN is
 * "not known", and every result is rounded to the tensor's own precision, because a Ceil or Floor
 * behind it shows the difference. Tensors of more than one dimension are only passed through, never
 * indexed.
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
    SQRT,
    RECIPROCAL,
    RELU,
    POW
};

struct operand {
    const struct onnx_known *k;
    size_t step; /* 0: one element for all */
};

static int64_t quotient(int64_t a, int64_t b)
{
    return !b || (a == INT64_MIN && b == -1) ? ONNX_NOT_KNOWN : a / b;
}

/* ONNX Mod takes the divisor's sign; with fmod=1 it is not folded. */
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
    case RELU:
        return a > 0 ? a : 0;
    default:
        return ONNX_NOT_KNOWN;
    }
}

/* fmin and fmax would take the known one of two. */
static double on_floats(enum fold_op what, double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
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
    case RECIPROCAL:
        return 1 / a;
    case RELU:
        return fmax(a, 0);
    case POW:
        return pow(a, b);
    default:
        return NAN;
    }
}

static int64_t compare_floats(enum fold_op what, double a, double b)
{
    if (isnan(a) || isnan(b))
        return ONNX_NOT_KNOWN;
    return what == EQ   ? a == b
           : what == LT ? a < b
           : what == LE ? a <= b
           : what == GT ? a > b
                        : a >= b;
}

/* As the tensor holds it: 16-bit floats are followed only where they are whole and exact. */
static double in_precision(double value, enum nrg_dtype dtype)
{
    if (dtype == NRG_F64)
        return value;
    if (dtype == NRG_F32)
        return (double)(float)value;
    return value == rint(value) && fabs(value) <= 256 ? value : NAN;
}

static enum nrg_dtype out_dtype(const struct nrg_op *op)
{
    return op->n_outputs ? op->outputs[0]->type->dtype : NRG_DTYPE_UNKNOWN;
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

static int64_t to_int(double f)
{
    return f > -9e15 && f < 9e15 ? (int64_t)f : ONNX_NOT_KNOWN;
}

/* A number that a narrow integer cannot hold becomes another one there. */
static int64_t in_range(int64_t value, enum nrg_dtype dtype)
{
    unsigned bits = nrg_dtype_bits(dtype);
    bool is_signed = dtype == NRG_I32 || dtype == NRG_I16 || dtype == NRG_I8;
    if (dtype == NRG_I64 || dtype == NRG_BOOL || !onnx_element_known(value))
        return value;
    int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
    int64_t high = is_signed ? -low - 1 : bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
    return value < low || value > high ? ONNX_NOT_KNOWN : value;
}

static int fold_elements(struct onnx *x, struct nrg_op *op, int what)
{
    int64_t i[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    struct operand a, b;
    size_t n = out_elements(op);
    if (op->n_inputs > 2 || nrg_op_int(op, "fmod", 0) || !get_operand(x, op, 0, n, &a) ||
        !get_operand(x, op, op->n_inputs > 1 ? 1 : 0, n, &b))
        return 0;
    if (a.k->i && b.k->i) {
        for (size_t k = 0; k < n; k++)
            i[k] = on_ints((enum fold_op)what, a.k->i[k * a.step], b.k->i[k * b.step]);
        return onnx_know_ints(x, op, 0, i, n);
    }
    if (!a.k->f || !b.k->f)
        return 0;
    for (size_t k = 0; k < n; k++) {
        double one = a.k->f[k * a.step], two = b.k->f[k * b.step];
        i[k] = compare_floats((enum fold_op)what, one, two);
        f[k] = in_precision(on_floats((enum fold_op)what, one, two), out_dtype(op));
    }
    return what >= EQ && what <= GE ? onnx_know_ints(x, op, 0, i, n)
                                    : onnx_know_floats(x, op, 0, f, n);
}

/* A bound of Clip: an attribute in old opsets, then input `i`; true when it is not in the way. */
static bool clip_bound(const struct onnx *x, const struct nrg_op *op, const char *name, size_t i,
                       double *bound)
{
    const struct nrg_attr *attr = nrg_op_attr(op, name);
    const struct onnx_known *k = onnx_in_known(x, op, i);
    if (attr && attr->kind == NRG_A_FLOAT)
        *bound = attr->f;
    else if (k && k->n == 1 && (k->f || onnx_element_known(k->i[0])))
        *bound = k->f ? k->f[0] : (double)k->i[0];
    else
        return !attr && !onnx_has(op, i);
    return !isnan(*bound);
}

static int fold_clip(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    double low = -INFINITY, high = INFINITY, f[ONNX_MAX_KNOWN];
    int64_t i[ONNX_MAX_KNOWN];
    if (!k || !clip_bound(x, op, "min", 1, &low) || !clip_bound(x, op, "max", 2, &high))
        return 0;
    for (size_t e = 0; e < k->n; e++) {
        double value = k->f ? k->f[e] : onnx_element_known(k->i[e]) ? (double)k->i[e] : NAN;
        f[e] = isnan(value) ? NAN : fmin(fmax(value, low), high);
        i[e] = to_int(f[e]);
        if (k->i && onnx_dim(k->i[e]) < -1 && low <= 0 && high == INFINITY)
            i[e] = k->i[e]; /* a dimension is never negative */
    }
    return k->f ? onnx_know_floats(x, op, 0, f, k->n) : onnx_know_ints(x, op, 0, i, k->n);
}

static int fold_cast(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    enum nrg_dtype to = out_dtype(op);
    bool real = to >= NRG_F64 && to <= NRG_BF16, whole = to >= NRG_I64 && to <= NRG_BOOL;
    int64_t i[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    if (!k || (!real && !whole) || k->n > ONNX_MAX_KNOWN)
        return 0;
    for (size_t n = 0; n < k->n; n++) {
        i[n] = k->i ? k->i[n] : to_int(k->f[n]);
        if (to == NRG_BOOL && onnx_element_known(i[n]))
            i[n] = k->i ? k->i[n] != 0 : k->f[n] != 0;
        i[n] = in_range(i[n], to);
        f[n] = k->f ? k->f[n] : onnx_element_known(k->i[n]) ? (double)k->i[n] : NAN;
        f[n] = in_precision(f[n], to);
    }
    return real ? onnx_know_floats(x, op, 0, f, k->n) : onnx_know_ints(x, op, 0, i, k->n);
}

static int fold_where(struct onnx *x, struct nrg_op *op, int what)
{
    size_t n = out_elements(op);
    struct operand c, a, b;
    int64_t i[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    if (!get_operand(x, op, 0, n, &c) || !get_operand(x, op, 1, n, &a) ||
        !get_operand(x, op, 2, n, &b) || !c.k->i || !a.k->i != !b.k->i)
        return 0;
    for (size_t e = 0; e < n; e++) {
        int64_t yes = c.k->i[e * c.step];
        const struct operand *from = yes ? &a : &b;
        bool known = onnx_element_known(yes);
        i[e] = known && a.k->i ? from->k->i[e * from->step] : ONNX_NOT_KNOWN;
        f[e] = known && a.k->f ? from->k->f[e * from->step] : NAN;
    }
    return a.k->i ? onnx_know_ints(x, op, 0, i, n) : onnx_know_floats(x, op, 0, f, n);
}

/* A list to one element. */
static int fold_reduce(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    struct onnx_shape in;
    if (!k || !k->n || !onnx_in(op, 0, &in) || in.rank > 1 || out_elements(op) != 1)
        return 0;
    int64_t all = k->i ? k->i[0] : 0;
    double sum = k->f ? k->f[0] : 0;
    for (size_t e = 1; e < k->n; e++) {
        all = k->i ? on_ints((enum fold_op)what, all, k->i[e]) : 0;
        sum = k->f ? on_floats((enum fold_op)what, sum, k->f[e]) : 0;
        sum = in_precision(sum, out_dtype(op));
    }
    return k->i ? onnx_know_ints(x, op, 0, &all, 1) : onnx_know_floats(x, op, 0, &sum, 1);
}

static const struct fold {
    const char *kind;
    onnx_fold_fn *fold;
    int what;
} folds[] = {
    {"onnx::Abs", fold_elements, ABS},
    {"onnx::Add", fold_elements, ADD},
    {"onnx::And", fold_elements, AND},
    {"onnx::Cast", fold_cast, 0},
    {"onnx::CastLike", fold_cast, 0},
    {"onnx::Ceil", fold_elements, CEIL},
    {"onnx::Clip", fold_clip, 0},
    {"onnx::Concat", onnx_fold_concat, 0},
    {"onnx::Div", fold_elements, DIV},
    {"onnx::Equal", fold_elements, EQ},
    {"onnx::Expand", onnx_fold_expand, 0},
    {"onnx::Flatten", onnx_fold_same, 0},
    {"onnx::Floor", fold_elements, FLOOR},
    {"onnx::Gather", onnx_fold_gather, 0},
    {"onnx::Greater", fold_elements, GT},
    {"onnx::GreaterOrEqual", fold_elements, GE},
    {"onnx::Identity", onnx_fold_same, 0},
    {"onnx::Less", fold_elements, LT},
    {"onnx::LessOrEqual", fold_elements, LE},
    {"onnx::Max", fold_elements, MAX},
    {"onnx::Min", fold_elements, MIN},
    {"onnx::Mod", fold_elements, MOD},
    {"onnx::Mul", fold_elements, MUL},
    {"onnx::Neg", fold_elements, NEG},
    {"onnx::NonZero", onnx_fold_nonzero, 0},
    {"onnx::Not", fold_elements, NOT},
    {"onnx::Or", fold_elements, OR},
    {"onnx::Pow", fold_elements, POW},
    {"onnx::Reciprocal", fold_elements, RECIPROCAL},
    {"onnx::ReduceMax", fold_reduce, MAX},
    {"onnx::ReduceMin", fold_reduce, MIN},
    {"onnx::ReduceProd", fold_reduce, MUL},
    {"onnx::ReduceSum", fold_reduce, ADD},
    {"onnx::Relu", fold_elements, RELU},
    {"onnx::Reshape", onnx_fold_same, 0},
    {"onnx::Round", fold_elements, ROUND},
    {"onnx::Slice", onnx_fold_slice, 0},
    {"onnx::Split", onnx_fold_split, 0},
    {"onnx::Sqrt", fold_elements, SQRT},
    {"onnx::Squeeze", onnx_fold_same, 0},
    {"onnx::Sub", fold_elements, SUB},
    {"onnx::Tile", onnx_fold_expand, 0},
    {"onnx::Transpose", onnx_fold_transpose, 0},
    {"onnx::Unsqueeze", onnx_fold_same, 0},
    {"onnx::Where", fold_where, 0},
};

int onnx_fold(struct onnx *x, struct nrg_op *op)
{
    const struct fold *row =
        bsearch(op->kind, folds, sizeof folds / sizeof *folds, sizeof *folds, nrg_kind_order);
    return row ? row->fold(x, op, row->what) : 0;
}
