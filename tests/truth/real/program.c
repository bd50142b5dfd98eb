/*
 * Something to judge nrg by: threads that go through steps of layers and mark them, and wait or
 * rest where they are told to. Beside this, a program of tests/truth/real/judge; who ran when is
 * taken from the kernel, so nothing is written down here.
 *
 *     program seconds 12 seed 3 threads 2 layers 5 gap 30 wait 2 io 0 rest 0 scale 1
 *
 * gap: work between layers (us); wait: sleeps in every other layer, half of the times (ms); io:
 * waits for the disk instead; rest: sleeps between steps (ms); scale: of the layers' lengths, 0.2
 * to 8 ms.
 */
#include <fcntl.h>
#include <math.h>
#include <nrg/nrg.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_LAYERS  64
#define MAX_THREADS 16
#define STARTUP_US  300000 /* of work before the first span */
#define SPREAD      0.12   /* of the lengths of one layer's calls, a deviation of their logarithm */

struct words {
    double seconds, seed, threads, layers, gap, wait, io, rest, scale;
    double per_us; /* loops */
    int disk;
};

struct worker {
    const struct words *words;
    int number;
    unsigned short random[3];
};

static double now_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void spin(double loops)
{
    volatile double sum = 0;
    for (double i = 0; i < loops; i++)
        sum = sum + i;
}

static void rest(double ms)
{
    struct timespec t = {0, (long)(ms * 1e6)};
    nanosleep(&t, NULL);
}

static double normal(unsigned short *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += erand48(random);
    return sum;
}

static void wait_within(struct worker *w)
{
    static const char page[65536];
    if (w->words->io > 0 && pwrite(w->words->disk, page, sizeof page, 0) > 0)
        fdatasync(w->words->disk);
    else
        rest(2 * w->words->wait * erand48(w->random));
}

static void layer(struct worker *w, int i, double mean_us)
{
    double loops = mean_us * exp(SPREAD * normal(w->random)) * w->words->per_us;
    double at = erand48(w->random);
    int waits = (w->words->wait > 0 || w->words->io > 0) && i % 2 && erand48(w->random) < 0.5;
    spin(waits ? at * loops : loops);
    if (waits) {
        wait_within(w);
        spin((1 - at) * loops);
    }
}

static uint32_t named(const char *kind, const char *what, int thread, int i)
{
    char text[64];
    snprintf(text, sizeof text, i < 0 ? "%s-%d" : "%s-%d-%d", what, thread, i);
    return nrg_name_intern(text, kind, NULL);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    const struct words *words = w->words;
    uint32_t names[MAX_LAYERS], step = named("step", "step", w->number, -1);
    double mean_us[MAX_LAYERS];
    for (int i = 0; i < (int)words->layers; i++) {
        names[i] = named("module", "layer", w->number, i);
        mean_us[i] = words->scale * 200 * pow(40, erand48(w->random));
    }
    spin(STARTUP_US * words->per_us);
    double end_s = now_s(CLOCK_MONOTONIC) + words->seconds;
    for (int64_t k = 0; now_s(CLOCK_MONOTONIC) < end_s; k++) {
        nrg_span_begin_numbered(step, k);
        for (int i = 0; i < (int)words->layers; i++) {
            nrg_span_begin_name(names[i]);
            layer(w, i, mean_us[i]);
            nrg_span_end();
            spin(2 * words->gap * erand48(w->random) * words->per_us);
        }
        nrg_span_end();
        if (words->rest > 0)
            rest(2 * words->rest * erand48(w->random));
    }
    return NULL;
}

static int set_word(struct words *w, const char *name, double value)
{
    const struct {
        const char *name;
        double *value;
    } known[] = {{"seconds", &w->seconds}, {"seed", &w->seed}, {"threads", &w->threads},
                 {"layers", &w->layers},   {"gap", &w->gap},   {"wait", &w->wait},
                 {"io", &w->io},           {"rest", &w->rest}, {"scale", &w->scale}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) {
            *known[i].value = value;
            return 0;
        }
    return -1;
}

int main(int argc, char **argv)
{
    struct words words = {.seconds = 10, .seed = 1, .threads = 1, .layers = 8, .scale = 1};
    struct worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    for (int i = 1; i + 1 < argc; i += 2)
        if (set_word(&words, argv[i], atof(argv[i + 1])))
            return 2;
    if (words.threads > MAX_THREADS || words.layers > MAX_LAYERS)
        return 2;
    FILE *disk = tmpfile();
    words.disk = disk ? fileno(disk) : -1;
    double before_s = now_s(CLOCK_THREAD_CPUTIME_ID);
    spin(1e7);
    words.per_us = 1e7 / (now_s(CLOCK_THREAD_CPUTIME_ID) - before_s) * 1e-6;
    for (int i = 0; i < (int)words.threads; i++) {
        workers[i] = (struct worker){.words = &words,
                                     .number = i,
                                     .random = {(unsigned short)words.seed, (unsigned short)i, 77}};
        if (i && pthread_create(&threads[i], NULL, work, &workers[i]))
            return 1;
    }
    work(&workers[0]);
    for (int i = 1; i < (int)words.threads; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
