/*
 * Runs a command and writes what it cost as one line of JSON to FILE, by wait4's rusage: CPU time
 * of it and of all children that it waited for, and its peak of resident memory. A process of its
 * own because the peak is inherited over exec: forked from an interpreter it would be that one's.
 *
 *   measure FILE COMMAND [ARG...]
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval tv)
{
    return (double)tv.tv_sec + (double)tv.tv_usec * 1e-6;
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: measure FILE COMMAND [ARG...]\n");
        return 2;
    }
    double begin_s = now_s();
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0)
        return 1;
    FILE *out = fopen(argv[1], "w");
    if (!out)
        return 1;
    fprintf(out,
            "{\"exit_code\": %d, \"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f,"
            " \"max_rss_bytes\": %ld, \"switches\": %ld, \"faults\": %ld}\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), now_s() - begin_s,
            seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss * 1024,
            usage.ru_nvcsw + usage.ru_nivcsw, usage.ru_minflt);
    fclose(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
