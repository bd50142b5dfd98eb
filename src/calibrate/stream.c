/*
 * See stream.h. Plain loops over vectors; the barrier after each pass keeps a compiler from making
 * one pass of many.
 */
#include "calibrate/stream.h"

const char *const nrg_stream_names[NRG_STREAM_KINDS] = {"read", "write", "copy", "triad"};

#define LANES 16 /* arrays are whole lines of a cache */

unsigned nrg_stream_arrays(enum nrg_stream_kind kind)
{
    static const unsigned arrays[NRG_STREAM_KINDS] = {1, 1, 2, 3};
    return arrays[kind];
}

unsigned nrg_stream_reads(enum nrg_stream_kind kind)
{
    static const unsigned reads[NRG_STREAM_KINDS] = {1, 0, 1, 2};
    return reads[kind];
}

typedef void pass_fn(struct nrg_stream *s, size_t begin, size_t end, unsigned at);

/* One pass over a part, for registers of some lanes; four sums hide the latency of an addition. */
#define PASS(name, attributes, lanes)                                                              \
    attributes static void name(struct nrg_stream *s, size_t begin, size_t end, unsigned at)       \
    {                                                                                              \
        typedef float vec __attribute__((vector_size(4 * (lanes)), aligned(4), may_alias));        \
        float *a = s->a, *b = s->b, *c = s->c;                                                     \
        vec sums[4] = {0}, value = {0};                                                            \
        switch (s->kind) {                                                                         \
        case NRG_STREAM_READ:                                                                      \
            for (size_t i = begin; i < end; i += LANES)                                            \
                for (size_t j = 0; j < LANES; j += (lanes))                                        \
                    sums[j / (lanes) % 4] += *(const vec *)(a + i + j);                            \
            sums[0] += sums[1] + sums[2] + sums[3];                                                \
            s->sums[at % NRG_STREAM_MEMBERS] = sums[0][0];                                         \
            break;                                                                                 \
        case NRG_STREAM_WRITE:                                                                     \
            value += (float)s->passes;                                                             \
            for (size_t i = begin; i < end; i += (lanes))                                          \
                *(vec *)(a + i) = value;                                                           \
            break;                                                                                 \
        case NRG_STREAM_COPY:                                                                      \
            for (size_t i = begin; i < end; i += (lanes))                                          \
                *(vec *)(a + i) = *(const vec *)(b + i);                                           \
            break;                                                                                 \
        default:                                                                                   \
            for (size_t i = begin; i < end; i += (lanes))                                          \
                *(vec *)(a + i) = *(const vec *)(b + i) + 3.0f * *(const vec *)(c + i);            \
        }                                                                                          \
    }

PASS(pass_plain, , 4)
#if defined(__x86_64__)
PASS(pass_avx2, __attribute__((target("avx2,fma"))), 8)
#endif

static pass_fn *choose_pass(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return pass_avx2;
#endif
    return pass_plain;
}

static void stream_member(void *arg, unsigned at, unsigned n)
{
    struct nrg_stream *s = arg;
    pass_fn *pass = choose_pass();
    size_t begin, end;
    nrg_team_part(s->floats, LANES, at, n, &begin, &end);
    for (unsigned i = 0; i < s->passes; i++) {
        pass(s, begin, end, at);
        __asm__ volatile("" ::: "memory");
    }
}

void nrg_stream(struct nrg_team *team, struct nrg_stream *stream)
{
    nrg_team_run(team, stream_member, stream);
}
