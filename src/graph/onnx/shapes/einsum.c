/*
 * See shapes/internal.h: Einsum's equation, "bhid,bhjd->bhij". Each letter has one extent over all
 * operands (1 gives way to another); "..." stands for the dimensions in front that are broadcast.
 * Without "->" the output is "..." and the letters that occur once, in alphabetical order.
 */
#include <ctype.h>
#include <string.h>

#include "graph/onnx/shapes/internal.h"

struct letters {
    int64_t extent[128];
    int times[128];
    struct onnx_shape dots;
};

static bool set_extent(struct letters *l, unsigned char letter, int64_t dim)
{
    bool bad = false;
    l->extent[letter] = l->times[letter]++ ? onnx_dim_broadcast(l->extent[letter], dim, &bad) : dim;
    return !bad;
}

/* One operand's term, up to ',' or '-' or the end. */
static bool read_term(struct letters *l, const char **p, const struct onnx_shape *in)
{
    struct onnx_shape dots = {0};
    int named = 0, at = 0;
    for (const char *q = *p; *q && *q != ',' && *q != '-'; q++)
        named += isalpha((unsigned char)*q) != 0;
    for (; **p && **p != ',' && **p != '-'; (*p)++) {
        unsigned char c = (unsigned char)**p;
        if (isspace(c))
            continue;
        if (c == '.' && !strncmp(*p, "...", 3)) {
            for (; at < in->rank - named; at++)
                dots.d[dots.rank++] = in->d[at];
            named = 0;
            *p += 2;
        } else if (c > 127 || !isalpha(c) || at >= in->rank || !set_extent(l, c, in->d[at++])) {
            return false;
        } else if (named) {
            named--; /* letters before the dots take dimensions from the front */
        }
    }
    return at == in->rank && onnx_broadcast(&l->dots, &dots);
}

static bool output_term(const struct letters *l, const char *p, struct onnx_shape *out)
{
    for (out->rank = 0; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (isspace(c))
            continue;
        if (c == '.' && !strncmp(p, "...", 3)) {
            for (int i = 0; i < l->dots.rank && out->rank < ONNX_MAX_RANK; i++)
                out->d[out->rank++] = l->dots.d[i];
            p += 2;
        } else if (c > 127 || !l->times[c] || out->rank == ONNX_MAX_RANK) {
            return false;
        } else {
            out->d[out->rank++] = l->extent[c];
        }
    }
    return true;
}

static bool implicit_output(const struct letters *l, struct onnx_shape *out)
{
    *out = l->dots;
    for (int c = 0; c < 128; c++)
        if (l->times[c] == 1) {
            if (out->rank == ONNX_MAX_RANK)
                return false;
            out->d[out->rank++] = l->extent[c];
        }
    return true;
}

bool onnx_einsum_shape(const char *equation, const struct onnx_shape *in, size_t n,
                       struct onnx_shape *out)
{
    struct letters l = {.dots = {.dtype = out->dtype}};
    const char *p = equation;
    for (size_t i = 0; i < n; i++) {
        if (!read_term(&l, &p, &in[i]) || (i + 1 < n && *p++ != ','))
            return false;
    }
    if (!*p)
        return implicit_output(&l, out);
    return p[0] == '-' && p[1] == '>' && output_term(&l, p + 2, out);
}
