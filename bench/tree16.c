/*
 * A workload for measurements of nrg itself: a process with 16 children. Most of them sleep, as
 * the data loaders and helper processes of a training run do; two work for 10 ms in every 100 ms,
 * so that their counters move. The parent prints one line when all are there, and everything
 * ends when its parent closes the pipe on stdin or after the given seconds.
 *
 *   tree16 SECONDS
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN  16
#define BUSY      2
#define WORK_NS   10000000
#define PERIOD_NS 100000000

static int64_t now_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void child_main(int number, int64_t until_ns)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (number >= BUSY) {
        for (;;)
            pause();
    }
    while (now_ns(CLOCK_MONOTONIC) < until_ns) {
        int64_t stop_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;
        while (now_ns(CLOCK_THREAD_CPUTIME_ID) < stop_ns)
            ;
        struct timespec rest = {0, PERIOD_NS - WORK_NS};
        nanosleep(&rest, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: tree16 SECONDS\n");
        return 2;
    }
    int64_t until_ns = now_ns(CLOCK_MONOTONIC) + (int64_t)(atof(argv[1]) * 1e9);
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] < 0)
            return 1;
        if (children[i] == 0) {
            child_main(i, until_ns);
            _exit(0);
        }
    }
    puts("ready");
    fflush(stdout);
    struct pollfd in = {.fd = STDIN_FILENO, .events = 0};
    poll(&in, 1, (int)((until_ns - now_ns(CLOCK_MONOTONIC)) / 1000000));
    for (int i = 0; i < CHILDREN; i++)
        kill(children[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    return 0;
}
