/*
 * See runner.h. A run counts when it is whole: one that a request to stop fell into is thrown away,
 * also where its command ended well, because it may have ended early.
 */
#include "cli/compare/runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/again.h"
#include "cli/compare/internal.h"
#include "cli/internal.h"
#include "cli/run/witness.h"
#include "cli/stop.h"

#define SEPARATOR       "---"
#define MAX_SAME_SECOND 100

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

int nrg_compare_record(const struct nrg_compare_session *s, const char *path,
                       const char *const *more, char *const *command)
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

/* ---- which runs ---- */

static int run_path(const struct nrg_compare_session *s, int side, int number, struct nrg_str *path)
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
static int is_done(const struct nrg_compare_session *s, const char *path, int side)
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

/* By what a run of each side took so far; 0: none was done yet. */
static double seconds_left(const struct nrg_compare_session *s)
{
    double sum = 0;
    for (int side = 0; side < 2; side++) {
        int known = s->done[side] ? side : !side;
        if (!s->done[known])
            return 0;
        sum += (double)s->spent_ns[known] * 1e-9 / s->done[known] * s->left[side];
    }
    return sum;
}

static void say_progress(const struct nrg_compare_session *s, int side, int number)
{
    char left[64] = "";
    double rest_s = seconds_left(s);
    if (s->cli->quiet)
        return;
    if (rest_s >= 5400)
        snprintf(left, sizeof left, ", about %.1f h left", rest_s / 3600);
    else if (rest_s >= 90)
        snprintf(left, sizeof left, ", about %.0f min left", rest_s / 60);
    else if (rest_s > 0)
        snprintf(left, sizeof left, ", about %.0f s left", rest_s);
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

/* Runs the command once; what can't be used is deleted, or it would count as done the next time. */
static int run_command(struct nrg_compare_session *s, const char *path, int side)
{
    int64_t begin_ns = nrg_now_ns();
    int code = 0, rc = nrg_compare_record(s, path, NULL, s->r->commands[side]);
    bool usable = !nrg_stop_asked() && (!rc || (rc > 0 && s->r->keep_going));
    if (!usable && !nrg_stop_asked())
        code = say_failed(path, rc);
    if (!usable)
        unlink(path);
    else if (s->r->cool_ns)
        nrg_compare_cool_down(s);
    s->spent_ns[side] += nrg_now_ns() - begin_ns;
    s->done[side]++;
    return code;
}

static int run_one(struct nrg_compare_session *s, int side, int number)
{
    struct nrg_str path = {0};
    int code = run_path(s, side, number, &path) ? nrg_out_of_memory() : 0;
    int done = code ? 0 : is_done(s, path.text, side);
    if (!code && done < 0)
        code = 1;
    if (!code && !done) {
        say_progress(s, side, number);
        code = run_command(s, path.text, side);
        s->left[side]--;
    }
    nrg_str_release(&path);
    return code;
}

static int warm_up(struct nrg_compare_session *s)
{
    struct nrg_str path = {0}, log = {0};
    int code = 0;
    if (nrg_str_addf(&path, "%s/warmup.nrg", s->r->made_folder) ||
        nrg_str_addf(&log, "%s.log", path.text))
        code = nrg_out_of_memory();
    for (int i = 0; !code && i < 2 * s->r->warmup && !nrg_stop_asked(); i++) {
        if (!s->cli->quiet)
            fprintf(stderr, "nrg: warm-up %d of %d, %c\n", i / 2 + 1, s->r->warmup, "AB"[i % 2]);
        code = run_command(s, path.text, i % 2);
    }
    if (path.text)
        unlink(path.text);
    if (log.text && !code)
        unlink(log.text);
    nrg_str_release(&path);
    nrg_str_release(&log);
    return code;
}

/* ---- all of them ---- */

/* One by the time is new: else, in a folder of everybody, somebody could have laid out recordings
 * for us. */
static int make_new_folder(struct nrg_compare_runner *r)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    int rc = -EEXIST;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    snprintf(r->made_folder, sizeof r->made_folder, "nrg-compare-%s", stamp);
    for (int i = 2; rc == -EEXIST && i < MAX_SAME_SECOND; i++) {
        rc = mkdir(r->made_folder, 0777) ? -errno : 0;
        if (rc == -EEXIST)
            snprintf(r->made_folder, sizeof r->made_folder, "nrg-compare-%s-%d", stamp, i);
    }
    return rc;
}

static int make_folder(struct nrg_compare_runner *r)
{
    const char *folder = r->folder ? r->folder : r->made_folder;
    int rc = 0;
    if (!r->folder)
        rc = make_new_folder(r);
    else if (strlen(folder) >= sizeof r->made_folder)
        rc = -ENAMETOOLONG;
    else if (mkdir(folder, 0777) && errno != EEXIST)
        rc = -errno;
    if (r->folder && !rc)
        nrg_copy(r->made_folder, sizeof r->made_folder, folder);
    if (rc)
        nrg_say("%s: %s", folder, strerror(-rc));
    return rc ? 1 : 0;
}

static int count_missing(struct nrg_compare_session *s)
{
    struct nrg_str path = {0};
    int rc = 0;
    for (int i = 0; rc >= 0 && i < 2 * s->r->runs; i++) {
        rc = run_path(s, i % 2, i / 2, &path);
        rc = rc ? rc : is_done(s, path.text, i % 2);
        s->left[i % 2] += !rc;
    }
    nrg_str_release(&path);
    return rc < 0;
}

static int add_all(struct nrg_compare_session *s, struct nrg_compare_side sides[2])
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

static int run_missing(struct nrg_compare_session *s)
{
    if (s->r->cool_ns)
        s->idle = nrg_compare_measure_idle(s);
    int code = warm_up(s);
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
    struct nrg_compare_session s = {
        .cli = cli, .r = r, .random = r->seed ? (unsigned)r->seed : (unsigned)nrg_now_ns()};
    int code = make_folder(r);
    if (!code)
        code = count_missing(&s);
    nrg_witness_start(r->commands[1], -1);
    nrg_stop_catch();
    if (!code && s.left[0] + s.left[1])
        code = run_missing(&s);
    if (!code && !cli->quiet)
        fprintf(stderr, "nrg: recordings are in %s\n", r->made_folder);
    r->stopped_by = nrg_stop_signal();
    if (r->stopped_by)
        fprintf(stderr, "nrg: interrupted; the same command with -o %s goes on\n", r->made_folder);
    nrg_stop_release();
    nrg_witness_end();
    return code ? code : add_all(&s, sides);
}
