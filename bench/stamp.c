/*
 * Times of exec. With a command: prints CLOCK_MONOTONIC in ns and becomes that command. Without:
 * prints it and ends. `stamp nrg run -- stamp` prints the moment before nrg's exec and the moment
 * at which its child runs. Linked statically where possible, so that its own start is short.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char line[32];
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    int64_t t_ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
    int len = snprintf(line, sizeof line, "%" PRId64 "\n", t_ns);
    if (write(STDOUT_FILENO, line, (size_t)len) != len)
        return 1;
    if (argc > 1) {
        execv(argv[1], argv + 1);
        perror(argv[1]);
        return 127;
    }
    return 0;
}
