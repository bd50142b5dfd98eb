/*
 * See runner.h. Cool-down: before the first run the idle machine is measured for two seconds; after
 * each run, the machine is measured second by second until its power is within 5 % of that, or the
 * time is up. On a machine without a sensor that is the load alone.
 */
#include "cli/compare/runner.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/again.h"
#include "cli/internal.h"
#include "cli/stop.h"

#define IDLE_TOLERANCE 0.05
#define SEPARATOR      "---"

struct session {
    struct nrg_cli *cli;
    struct nrg_compare_runner *r;
    unsigned random;
    double idle_w;
    int64_t spent_ns; /* by runs of this time */
    int done, left;
};

int nrg_compare_commands(struct nrg_compare_runner *r, int argc, char **argv)
{
    int at = 0;
    while (at < argc && strcmp(argv[at], SEPARATOR) != 0)
        at++;
    r->commands[0] = r->commands[1] = argv;
    if (at < argc) {
        argv[at] = NULL;
        r->commands[1] = argv + at + 1;
    }
    return r->commands[0][0] && r->commands[1][0] ? 0 : -EINVAL;
}

/* ---- one run ---- */

static int add_words(struct nrg_list *list, const char *const *words)
{
    int rc = 0;
    for (size_t i = 0; !rc && words && words[i]; i++)
        rc = nrg_opt_list.store(&nrg_opt_list, list, words[i]);
    return rc;
}

/* Runs `nrg run OPTIONS -o path [-- COMMAND]`; the output of all goes to a log beside it. */
static int record(const struct session *s, const char *path, const char *const *more,
                  char *const *command)
{
    const char *const head[] = {"nrg", "run", "-q", "-f", "-o", path, NULL};
    const char *const root[] = {"--root", s->cli->root, NULL};
    struct nrg_list argv = {0};
    struct nrg_str log = {0};
    int rc = add_words(&argv, head);
    rc = rc ? rc : add_words(&argv, s->cli->root ? root : NULL);
    rc = rc ? rc : add_words(&argv, s->r->with.items);
    rc = rc ? rc : add_words(&argv, more);
    if (!rc && command) {
        rc = add_words(&argv, (const char *const[]){"--", NULL});
        rc = rc ? rc : add_words(&argv, (const char *const *)command);
    }
    if (!rc)
        rc = nrg_str_addf(&log, "%s.log", path);
    if (!rc)
        rc = nrg_again(argv.items, log.text);
    free(argv.items);
    nrg_str_release(&log);
    return rc;
}

/* Mean power of the machine over a while, by a recording that is not kept; NAN. */
static double measure_power(const struct session *s, const char *seconds)
{
    const char *const more[] = {"--system", "--for", seconds, NULL};
    struct nrg_compare_side side = {0};
    struct nrg_error err;
    struct nrg_str path = {0};
    double power_w = NAN;
    if (nrg_str_addf(&path, "%s/idle.nrg", s->r->made_folder))
        return NAN;
    if (!record(s, path.text, more, NULL) && !nrg_compare_side_add(&side, path.text, &err))
        power_w = side.runs[0].energy_j / side.runs[0].duration_s;
    nrg_compare_side_release(&side);
    unlink(path.text);
    nrg_str_addf(&path, ".log");
    unlink(path.text);
    nrg_str_release(&path);
    return power_w;
}

static void cool_down(const struct session *s)
{
    int64_t until_ns = nrg_now_ns() + s->r->cool_ns;
    while (!isnan(s->idle_w) && nrg_now_ns() < until_ns && !nrg_stop_asked())
        if (!(measure_power(s, "1s") > s->idle_w * (1 + IDLE_TOLERANCE)))
            return;
}

/* ---- which runs ---- */

static int run_path(const struct session *s, int side, int number, struct nrg_str *path)
{
    path->len = 0;
    return nrg_str_addf(path, "%s/%c-%03d.nrg", s->r->made_folder, "ab"[side], number + 1);
}

static void join_words(char *const *words, struct nrg_str *line)
{
    for (size_t i = 0; words[i]; i++)
        nrg_str_addf(line, "%s%s", i ? " " : "", words[i]);
}

/* 1: there and whole; 0: to be run; -EEXIST: of another command. */
static int is_done(const struct session *s, const char *path, int side)
{
    struct nrg_recording *recording;
    struct nrg_error err;
    struct nrg_str line = {0};
    char clean[1024];
    int64_t end_ns;
    if (access(path, F_OK) || nrg_recording_open(path, &recording, &err))
        return 0;
    join_words(s->r->commands[side], &line);
    nrg_copy_clean(clean, sizeof clean, line.text ? line.text : "", line.len);
    const char *was = nrg_recording_text(recording, "command_line");
    int rc = nrg_recording_integer(recording, "end_ns", &end_ns) ? 0
             : was && strcmp(was, clean) == 0                    ? 1
                                                                 : -EEXIST;
    if (rc < 0)
        fprintf(stderr, "nrg: %s is of another command (%.200s): give another folder with -o\n",
                path, was ? was : "?");
    nrg_str_release(&line);
    nrg_recording_close(recording);
    return rc;
}

static void say_progress(const struct session *s, int side, int number)
{
    char left[64] = "";
    if (s->cli->quiet)
        return;
    if (s->done) {
        double each_s = (double)s->spent_ns * 1e-9 / s->done, rest_s = each_s * s->left;
        snprintf(left, sizeof left, ", about %.0f %s left", rest_s < 90 ? rest_s : rest_s / 60,
                 rest_s < 90 ? "s" : "min");
    }
    fprintf(stderr, "nrg: run %d of %d, %c%s\n", number + 1, s->r->runs, "AB"[side], left);
}

static int say_failed(const char *path, int code)
{
    if (code < 0)
        fprintf(stderr, "nrg: could not start nrg run: %s\n", strerror(-code));
    else
        fprintf(stderr,
                "nrg: the command ended with %d: its output is in %s.log; with --keep-going "
                "such runs count, too\n",
                code, path);
    return 1;
}

static int run_one(struct session *s, int side, int number)
{
    struct nrg_str path = {0};
    int code = run_path(s, side, number, &path) ? nrg_out_of_memory() : 0;
    int done = code ? 0 : is_done(s, path.text, side);
    if (!code && done < 0)
        code = 1;
    if (!code && !done) {
        int64_t begin_ns = nrg_now_ns();
        say_progress(s, side, number);
        int rc = record(s, path.text, NULL, s->r->commands[side]);
        bool usable = !rc || (rc > 0 && s->r->keep_going);
        if (!usable && !nrg_stop_asked())
            code = say_failed(path.text, rc);
        if (!usable) /* it would count as done the next time */
            unlink(path.text);
        else if (s->r->cool_ns)
            cool_down(s);
        s->spent_ns += nrg_now_ns() - begin_ns;
        s->done++;
    }
    s->left--;
    nrg_str_release(&path);
    return code;
}

static int warm_up(struct session *s)
{
    struct nrg_str path = {0};
    int code = 0;
    for (int i = 0; !code && i < 2 * s->r->warmup && !nrg_stop_asked(); i++) {
        path.len = 0;
        if (nrg_str_addf(&path, "%s/warmup.nrg", s->r->made_folder))
            code = nrg_out_of_memory();
        else if (!s->cli->quiet)
            fprintf(stderr, "nrg: warm-up %d of %d, %c\n", i / 2 + 1, s->r->warmup, "AB"[i % 2]);
        int rc = code ? 0 : record(s, path.text, NULL, s->r->commands[i % 2]);
        if (rc && !nrg_stop_asked() && !(rc > 0 && s->r->keep_going))
            return say_failed(path.text, rc);
    }
    if (path.text) {
        unlink(path.text);
        nrg_str_addf(&path, ".log");
        unlink(path.text);
    }
    nrg_str_release(&path);
    return code;
}

/* ---- all of them ---- */

static int make_folder(struct nrg_compare_runner *r)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    if (r->folder)
        nrg_copy(r->made_folder, sizeof r->made_folder, r->folder);
    else
        snprintf(r->made_folder, sizeof r->made_folder, "nrg-compare-%s", stamp);
    if (!mkdir(r->made_folder, 0777) || errno == EEXIST)
        return 0;
    fprintf(stderr, "nrg: %s: %s\n", r->made_folder, strerror(errno));
    return 1;
}

static int count_missing(const struct session *s, int *missing)
{
    struct nrg_str path = {0};
    int rc = 0;
    for (int i = 0; rc >= 0 && i < 2 * s->r->runs; i++) {
        rc = run_path(s, i % 2, i / 2, &path);
        rc = rc ? rc : is_done(s, path.text, i % 2);
        *missing += !rc;
    }
    nrg_str_release(&path);
    return rc < 0;
}

static int add_all(struct session *s, struct nrg_compare_side sides[2])
{
    struct nrg_str path = {0};
    struct nrg_error err;
    int code = 0;
    for (int i = 0; !code && i < 2 * s->r->runs; i++) {
        if (run_path(s, i % 2, i / 2, &path))
            code = nrg_out_of_memory();
        else if (is_done(s, path.text, i % 2) == 1 &&
                 nrg_compare_side_add(&sides[i % 2], path.text, &err))
            code = nrg_complain(&err, 1);
    }
    nrg_str_release(&path);
    return code;
}

static int run_missing(struct session *s)
{
    int code = 0;
    if (s->r->cool_ns && !nrg_stop_asked())
        s->idle_w = measure_power(s, "2s");
    code = warm_up(s);
    for (int i = 0; !code && i < s->r->runs && !nrg_stop_asked(); i++) {
        int first = rand_r(&s->random) & 1;
        code = run_one(s, first, i);
        if (!code && !nrg_stop_asked())
            code = run_one(s, !first, i);
    }
    return code;
}

int nrg_compare_run(struct nrg_cli *cli, struct nrg_compare_runner *r,
                    struct nrg_compare_side sides[2])
{
    struct session s = {.cli = cli,
                        .r = r,
                        .idle_w = NAN,
                        .random = r->seed ? (unsigned)r->seed : (unsigned)nrg_now_ns()};
    int code = make_folder(r);
    if (!code)
        code = count_missing(&s, &s.left);
    nrg_stop_catch();
    if (!code && s.left)
        code = run_missing(&s);
    if (!code && !cli->quiet)
        fprintf(stderr, "nrg: recordings are in %s\n", r->made_folder);
    if (nrg_stop_asked())
        fprintf(stderr, "nrg: interrupted; the same command with -o %s goes on\n", r->made_folder);
    nrg_stop_release();
    return code ? code : add_all(&s, sides);
}
