/*
 * Runs a sketch in simavr with synthetic mains, and compares what it sends with the truth.
 *
 *   emon-sim [--seconds N] [--scenario NAME] [--pty LINK] [--log FILE] [--lines] SKETCH.elf
 *
 * --pty makes LINK a symbolic link to a terminal on which the lines arrive, in real time: the
 * simulation never runs ahead of the clock, and falls behind where the machine is too slow. --log
 * writes for each packet or message the time in the simulation that it reports on, the joules of
 * the three clamps that it tells (LINE_JOULES only, else 0), and the true ones up to that time.
 * --lines prints the lines. At the end a JSON object is printed: what the processor did and, for
 * lines with an energy counter (LINE_JOULES), errors against the truth.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "board.h"
#include "config.h"

#define SETTLED_S 0.0013 /* a window that ended later than this can't be in a line yet */
#define SLICE_S   0.001

struct run {
    struct board board;
    const char *scenario, *link, *log_path, *elf;
    double seconds;
    bool print_lines, classic;
    int pty;
    FILE *log;
    char line[256];
    size_t n;
    struct mains_truth at; /* the truth that the line reports on */
    unsigned lines, lost;
    double energy_j[MAINS_CLAMPS], first_j[MAINS_CLAMPS]; /* as told by the last line */
    double volts;                                         /* sum of Vrms, but for the first line */
    struct mains_truth first, last;                       /* of lines with an energy counter */
};

static int64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* The meter reports up to the last zero crossing that it can know of, calcVI up to when each clamp
 * was looked at last, which was when the main loop went on. */
static struct mains_truth reported_time(const struct run *run)
{
    const struct board *board = &run->board;
    if (run->classic) {
        struct mains_truth at = board->truth;
        at.energy_j[0] = board->passes[1].energy_j[0];
        at.energy_j[1] = board->passes[0].energy_j[1];
        return at;
    }
    for (int k = 0; k < 3; k++)
        if (board->crossings[k].t_s <= board->truth.t_s - SETTLED_S)
            return board->crossings[k];
    return board->crossings[3];
}

static unsigned long number_at(const unsigned char *bytes, int size)
{
    unsigned long number = 0;
    for (int k = size; k--;)
        number = number << 8 | bytes[k];
    return number;
}

static void log_line(const struct run *run)
{
    const double *told_j = run->energy_j, *true_j = run->at.energy_j;
    fprintf(run->log, "%.6f %.1f %.1f %.1f %.3f %.3f %.3f\n", run->at.t_s, told_j[0], told_j[1],
            told_j[2], true_j[0], true_j[1], true_j[2]);
    fflush(run->log);
}

/* A packet of LINE_JOULES: 20 bytes. */
static void take_packet(struct run *run)
{
    unsigned char bytes[20];
    int at = 0, n = 0, more;
    if (sscanf(run->line, "OK %*d%n", &at) < 0 || !at)
        return;
    for (unsigned byte; n < 20 && sscanf(run->line + at, "%u%n", &byte, &more) == 1; n++) {
        bytes[n] = (unsigned char)byte;
        at += more;
    }
    if (n < 20)
        return;
    for (int c = 0; c < MAINS_CLAMPS; c++)
        run->energy_j[c] = (double)number_at(bytes + 8 + 4 * c, 4) / 10;
    run->last = run->at;
    if (!run->lines++) {
        run->first = run->at;
        memcpy(run->first_j, run->energy_j, sizeof run->first_j);
    } else {
        run->volts += (double)number_at(bytes + 6, 2) / 100;
    }
}

static void end_line(struct run *run)
{
    unsigned lost;
    run->line[run->n] = 0;
    if (run->print_lines)
        printf("%.6f %s\n", run->at.t_s, run->line);
    if (sscanf(run->line, "lost %u conversions", &lost) == 1)
        run->lost += lost;
    take_packet(run);
    if (run->log && (!strncmp(run->line, "OK ", 3) || !strncmp(run->line, "MSG:", 4)))
        log_line(run);
    run->n = 0;
}

static void on_byte(void *arg, uint8_t byte)
{
    struct run *run = arg;
    if (run->pty >= 0 && write(run->pty, &byte, 1) < 0 && errno != EAGAIN)
        run->pty = -1;
    if (byte == '\r')
        return;
    if (!run->n)
        run->at = reported_time(run);
    if (byte == '\n')
        end_line(run);
    else if (run->n < sizeof run->line - 1)
        run->line[run->n++] = (char)byte;
}

static int open_terminal(struct run *run)
{
    struct termios raw;
    run->pty = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (run->pty < 0 || grantpt(run->pty) || unlockpt(run->pty))
        return -1;
    const char *name = ptsname(run->pty);
    int keep = open(name, O_RDWR | O_NOCTTY); /* a reader may come and go */
    if (keep < 0 || tcgetattr(keep, &raw))
        return -1;
    cfmakeraw(&raw);
    if (tcsetattr(keep, TCSANOW, &raw))
        return -1;
    unlink(run->link);
    return symlink(name, run->link);
}

static void wait_until(int64_t ns)
{
    const struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

static void run_board(struct run *run)
{
    if (!run->link) {
        board_run(&run->board, run->seconds);
        return;
    }
    int64_t zero_ns = clock_ns();
    for (double t_s = SLICE_S; t_s < run->seconds; t_s += SLICE_S) {
        board_run(&run->board, t_s);
        int64_t due_ns = zero_ns + (int64_t)(t_s * 1e9), now_ns = clock_ns();
        if (now_ns < due_ns)
            wait_until(due_ns);
        else
            zero_ns += now_ns - due_ns; /* behind the clock: does not catch up */
    }
}

static void print_list(const char *name, const double *values)
{
    printf(", \"%s\": [%.6f, %.6f, %.6f]", name, values[0], values[1], values[2]);
}

/* Energy since the start, and between the first and the last line. */
static void print_errors(const struct run *run)
{
    const struct mains_truth *first = &run->first, *last = &run->last;
    double total[MAINS_CLAMPS], between[MAINS_CLAMPS];
    double v_rms = sqrt((last->vv - first->vv) / (last->t_s - first->t_s));
    for (int c = 0; c < MAINS_CLAMPS; c++) {
        double true_j = last->energy_j[c] - first->energy_j[c];
        total[c] = run->energy_j[c] / last->energy_j[c] - 1;
        between[c] = (run->energy_j[c] - run->first_j[c]) / true_j - 1;
    }
    printf(", \"vrms_error\": %.6f", run->volts / (run->lines - 1) / v_rms - 1);
    print_list("energy_error", total);
    print_list("energy_error_between_lines", between);
}

static void print_result(const struct run *run)
{
    const struct board_count *count = &run->board.count;
    double cycles = (double)count->cycles, conversions = (double)count->conversions;
    printf("{\"seconds\": %g, \"scenario\": \"%s\", \"what\": \"%s\"", run->seconds, run->scenario,
           run->board.mains->what);
    printf(", \"lines\": %u, \"lost\": %u", run->lines, run->lost);
    printf(", \"conversions\": %.0f, \"longest_gap\": %" PRIu64 ", \"shortest_gap\": %" PRIu64,
           conversions, count->longest_gap, count->shortest_gap);
    printf(", \"stack_bytes\": %u", count->stack_bytes);
    printf(", \"interrupt_cycles\": %.1f, \"interrupt_longest\": %" PRIu64,
           (double)count->adc_cycles / conversions, count->adc_longest);
    printf(", \"interrupt_share\": %.4f, \"busy_share\": %.4f, \"longest_pass_ms\": %.3f",
           (double)count->adc_cycles / cycles, 1 - (double)count->asleep / cycles,
           (double)count->longest_pass * 1e3 / CONFIG_CLOCK_HZ);
    if (run->lines > 1)
        print_errors(run);
    printf("}\n");
}

static bool read_options(struct run *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'}, {"scenario", required_argument, NULL, 'c'},
        {"pty", required_argument, NULL, 'p'},     {"log", required_argument, NULL, 'o'},
        {"lines", no_argument, NULL, 'l'},         {0},
    };
    for (int got; (got = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (got == 's')
            run->seconds = atof(optarg);
        else if (got == 'c')
            run->scenario = optarg;
        else if (got == 'p')
            run->link = optarg;
        else if (got == 'o')
            run->log_path = optarg;
        else if (got == 'l')
            run->print_lines = true;
        else
            return false;
    }
    run->elf = argv[optind];
    return argc == optind + 1 && run->seconds > 0 && mains_find(run->scenario);
}

int main(int argc, char **argv)
{
    static struct run run = {.scenario = "steady", .seconds = 5, .pty = -1};
    if (!read_options(&run, argc, argv)) {
        fprintf(stderr, "usage: emon-sim [--seconds N] [--scenario NAME] [--pty LINK] [--log FILE] "
                        "[--lines] SKETCH.elf\nscenarios:");
        for (unsigned k = 0; mains_at(k); k++)
            fprintf(stderr, " %s", mains_at(k)->name);
        fprintf(stderr, "\n");
        return 2;
    }
    run.classic = strstr(run.elf, "calcvi") != NULL;
    run.board.byte = on_byte;
    run.board.arg = &run;
    run.log = run.log_path ? fopen(run.log_path, "w") : NULL;
    if ((run.log_path && !run.log) || (run.link && open_terminal(&run))) {
        perror("emon-sim");
        return 1;
    }
    if (board_open(&run.board, run.elf, mains_find(run.scenario)))
        return 1;
    run_board(&run);
    print_result(&run);
    if (run.link)
        unlink(run.link);
    return 0;
}
