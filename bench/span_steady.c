/*
 * Marks spans at a steady pace for a given number of seconds, for bench/long: every 10 ms a step
 * with eight layers in it, each of which computes a little. Prints how many spans it marked.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nrg/nrg.h>

enum { LAYERS = 8, STEP_NS = 10000000, WORK = 20000 };

static volatile double sink;

static void compute(void)
{
    double x = 1;
    for (int i = 0; i < WORK; i++)
        x = x * 1.0000001 + 1e-9;
    sink = x;
}

static void make_step(uint32_t step, const uint32_t *layers, int64_t number)
{
    nrg_span_begin_numbered(step, number);
    for (int i = 0; i < LAYERS; i++) {
        nrg_span_begin_name(layers[i]);
        compute();
        nrg_span_end();
    }
    nrg_span_end();
}

static int64_t to_ns(const struct timespec *ts)
{
    return (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

int main(int argc, char **argv)
{
    uint32_t step = nrg_name_intern("step", "step", NULL), layers[LAYERS];
    struct timespec ts;
    char name[32];
    int64_t n = 0;
    if (argc != 2)
        return 2;
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "encoder.layer.%d", i);
        layers[i] = nrg_name_intern("module", name, "Linear");
    }
    clock_gettime(CLOCK_MONOTONIC, &ts);
    int64_t next_ns = to_ns(&ts), end_ns = next_ns + (int64_t)(atof(argv[1]) * 1e9);
    for (; next_ns < end_ns; n++) {
        make_step(step, layers, n);
        next_ns += STEP_NS;
        ts = (struct timespec){next_ns / 1000000000, next_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    }
    printf("%" PRId64 "\n", n * (LAYERS + 1));
    return 0;
}
