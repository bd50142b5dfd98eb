/*
 * What a span costs in C: begin and end in batches that fit into the ring, next to two reads of
 * the clock alone, in the same batches, so that a slow moment of the machine hits both. To be run
 * by `nrg run`; prints JSON with the median over batches, in ns per span.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <nrg/nrg.h>

enum { BATCH = 4096, BATCHES = 120, REST_US = 20000 };

static uint32_t name;
static volatile uint64_t sink;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void by_name(void)
{
    nrg_span_begin_name(name);
    nrg_span_end();
}

static void by_text(void)
{
    nrg_span_begin("transformer.h.11.attn.c_proj");
    nrg_span_end();
}

static void numbered(void)
{
    nrg_span_begin_numbered(name, 17);
    nrg_span_end();
}

static void count_only(void)
{
    nrg_count_add_name(name, 1);
}

static void two_monotonic(void)
{
    sink = (uint64_t)now_ns();
    sink = (uint64_t)now_ns();
}

static void two_tsc(void)
{
#if defined(__x86_64__)
    sink = __rdtsc();
    sink = __rdtsc();
#endif
}

static const struct {
    const char *name;
    void (*once)(void);
} kinds[] = {
    {"by_name_ns", by_name},  {"by_text_ns", by_text}, {"numbered_ns", numbered},
    {"count_ns", count_only}, {"two_tsc_ns", two_tsc}, {"two_monotonic_ns", two_monotonic},
};

#define KINDS (sizeof kinds / sizeof *kinds)

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double batch(void (*once)(void))
{
    int64_t before = now_ns();
    for (int i = 0; i < BATCH; i++)
        once();
    return (double)(now_ns() - before) / BATCH;
}

int main(void)
{
    static double ns[KINDS][BATCHES];
    bool active = nrg_recording_active();
    name = nrg_name_intern("bench", NULL, NULL);
    for (int b = 0; b < BATCHES; b++) {
        for (size_t k = 0; k < KINDS; k++) {
            ns[k][b] = batch(kinds[k].once);
            if (active && k < 4)
                usleep(REST_US); /* the recorder empties the ring meanwhile */
        }
    }
    printf("{\"recording\": %s", active ? "true" : "false");
    for (size_t k = 0; k < KINDS; k++) {
        qsort(ns[k], BATCHES, sizeof *ns[k], by_value);
        printf(", \"%s\": %.2f", kinds[k].name, ns[k][BATCHES / 2]);
    }
    printf("}\n");
    return 0;
}
