/*
 * The floor: what any sampler has to pay. Wakes up on absolute deadlines and preads the given
 * energy files; nothing is parsed, kept or written. With --tree it also preads /proc/PID/stat and
 * the CPU clock of PID and its children, at most 10 times a second, as nrg does. bare_loop_file is
 * the same with an SQLite file that gets a transaction a second (bare_file.h).
 *
 *   bare_loop RATE_HZ SECONDS [--tree PID] FILE...
 *   bare_loop_file RATE_HZ SECONDS [--tree PID] [--keep PATH] FILE...
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bare_file.h"

#define MAX_FILES         16
#define MAX_PIDS          64
#define PROCESS_PERIOD_NS 100000000
#define COMMIT_PERIOD_NS  1000000000

struct loop {
    int energy[MAX_FILES], stat[MAX_PIDS];
    clockid_t clock[MAX_PIDS];
    int n_energy, n_pids;
    struct sqlite3 *kept;
};

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void add_pid(struct loop *loop, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || loop->n_pids == MAX_PIDS || clock_getcpuclockid(pid, &loop->clock[loop->n_pids]))
        return;
    loop->stat[loop->n_pids++] = fd;
}

static void add_tree(struct loop *loop, pid_t pid)
{
    char path[64];
    int child;
    add_pid(loop, pid);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *children = fopen(path, "r");
    while (children && fscanf(children, "%d", &child) == 1)
        add_pid(loop, child);
    if (children)
        fclose(children);
}

/* The sum keeps the compiler and a doubtful reader from leaving the reads out. */
static long read_energy(const struct loop *loop)
{
    char text[64];
    long sum = 0;
    for (int i = 0; i < loop->n_energy; i++)
        sum += pread(loop->energy[i], text, sizeof text, 0);
    return sum;
}

static long read_processes(const struct loop *loop)
{
    char text[1024];
    struct timespec ts;
    long sum = 0;
    for (int i = 0; i < loop->n_pids; i++) {
        sum += pread(loop->stat[i], text, sizeof text, 0);
        clock_gettime(loop->clock[i], &ts);
    }
    return sum;
}

static void keep(const struct loop *loop, bool last)
{
#ifdef WITH_FILE
    if (loop->kept)
        bare_file_commit(loop->kept);
    if (loop->kept && last)
        bare_file_close(loop->kept);
#endif
}

static int parse(struct loop *loop, int argc, char **argv)
{
    for (int i = 3; i < argc; i++) {
        if (!strcmp(argv[i], "--tree") && i + 1 < argc) {
            add_tree(loop, atoi(argv[++i]));
            continue;
        }
#ifdef WITH_FILE
        if (!strcmp(argv[i], "--keep") && i + 1 < argc) {
            loop->kept = bare_file_open(argv[++i]);
            continue;
        }
#endif
        int fd = open(argv[i], O_RDONLY);
        if (fd < 0 || loop->n_energy == MAX_FILES) {
            perror(argv[i]);
            return 1;
        }
        loop->energy[loop->n_energy++] = fd;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct loop loop;
    if (argc < 4 || atof(argv[1]) <= 0 || parse(&loop, argc, argv)) {
        fprintf(stderr, "usage: bare_loop RATE_HZ SECONDS [--tree PID] FILE...\n");
        return 2;
    }
    int64_t period_ns = (int64_t)(1e9 / atof(argv[1])), next_ns = now_ns();
    int64_t until_ns = next_ns + (int64_t)(atof(argv[2]) * 1e9), process_ns = next_ns;
    int64_t commit_ns = next_ns + COMMIT_PERIOD_NS;
    long sum = 0, wakes = 0;
    while (next_ns < until_ns) {
        next_ns += period_ns;
        struct timespec ts = {next_ns / 1000000000, next_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
        sum += read_energy(&loop);
        wakes++;
        if (loop.n_pids && next_ns >= process_ns) {
            sum += read_processes(&loop);
            process_ns = next_ns + PROCESS_PERIOD_NS;
        }
        if (next_ns >= commit_ns) {
            keep(&loop, false);
            commit_ns += COMMIT_PERIOD_NS;
        }
    }
    keep(&loop, true);
    printf("%ld wake-ups, %ld bytes, %d processes\n", wakes, sum, loop.n_pids);
    return 0;
}
