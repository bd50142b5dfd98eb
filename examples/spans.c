/*
 * Marks what it does, for nrg: a prefill and some decoding steps of a pretended language model.
 *
 *     cc -o spans examples/spans.c $(pkg-config --cflags --libs nrg)
 *     nrg run -o spans.nrg -- ./spans
 *     nrg attribute spans.nrg
 *
 * Without nrg run it does the same work, and the marks cost a branch each.
 */
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>

static double work(size_t n)
{
    volatile double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)i * 1e-9;
    return sum;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    uint32_t step =
        nrg_name_intern("decode", "step", NULL); /* a name with a kind, known by number */
    double sum = 0;
    nrg_span_begin("prefill");
    sum += work(40000000);
    nrg_span_end();
    for (int i = 0; i < steps; i++) {
        nrg_span_begin_numbered(step, i + 1);
        sum += work(4000000);
        nrg_span_begin("sample");
        sum += work(1000000);
        nrg_span_end();
        nrg_count_add("tokens", 4);
        nrg_span_end();
    }
    nrg_mark("done");
    printf("%g\n", sum);
    return 0;
}
