/*
 * burn: floating-point work on two threads for a few seconds. Something to measure.
 *
 *   cc -O2 -pthread -o burn examples/burn.c -lm      (or: build/burn after make)
 *   nrg run -- ./burn 5 2                            (seconds, threads)
 *
 * Each thread iterates the logistic map, whose every step needs the one before, and stops by the
 * clock; the number of steps is the work done, so joules per step can be compared between
 * machines, compilers and clock settings.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_THREADS 256
#define BATCH       100000

struct worker {
    pthread_t thread;
    double until_s, x;
    unsigned long steps;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    while (now_s() < w->until_s) {
        for (int i = 0; i < BATCH; i++)
            w->x = 3.9 * w->x * (1 - w->x);
        w->steps += BATCH;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[MAX_THREADS];
    double seconds = argc > 1 ? atof(argv[1]) : 5, sum = 0;
    int n = argc > 2 ? atoi(argv[2]) : 2;
    unsigned long steps = 0;
    if (seconds <= 0 || n < 1 || n > MAX_THREADS) {
        fprintf(stderr, "usage: burn [SECONDS [THREADS]]\n");
        return 2;
    }
    double until_s = now_s() + seconds;
    for (int i = 0; i < n; i++) {
        workers[i] = (struct worker){.until_s = until_s, .x = 0.1 + 0.8 * i / MAX_THREADS};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
            perror("burn: pthread_create");
            return 1;
        }
    }
    for (int i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        steps += workers[i].steps;
        sum += workers[i].x;
    }
    printf("burn: %d threads, %.3g s, %.3g steps (check %.3f)\n", n, seconds, (double)steps, sum);
    return 0;
}
