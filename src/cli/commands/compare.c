/* nrg compare: whether B really uses less than A, from recordings or by running both. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/runner.h"
#include "cli/internal.h"
#include "compare/gate.h"
#include "report/compare/report.h"

enum { EXIT_GATE = 3, EXIT_NOT_COMPARABLE = 4 };

struct values {
    struct nrg_compare_runner runner;
    const char *json, *markdown, *html, *by;
    struct nrg_list gates;
    double confidence_percent, detect_percent;
    int top;
    bool force, self_check;
};

static const struct values defaults = {
    .confidence_percent = 95, .detect_percent = 1, .top = 10, .runner = {.warmup = 1}};

static int store_gate(const struct nrg_opt_type *type, void *field, const char *value)
{
    struct nrg_gate gate;
    int rc = nrg_gate_parse(&gate, value);
    return rc ? rc : nrg_opt_list.store(type, field, value);
}

#define RUNNER(field) (offsetof(struct values, runner) + offsetof(struct nrg_compare_runner, field))

static const struct nrg_opt options[] = {
    {"run", 'n', NRG_OPT_COUNT, "N", "run both commands N times, in turn", RUNNER(runs)},
    {"output", 'o', NRG_OPT_STRING, "FOLDER",
     "with --run: for the recordings; those that are there are not run again", RUNNER(folder)},
    {"with", 'w', NRG_OPT_LIST, "OPTION",
     "with --run: an option of nrg run, such as --with=--rate=100Hz; may be repeated",
     RUNNER(with)},
    {"warmup", 0, NRG_OPT_COUNT_IN(0, 1000, "a number from 0 to 1000"), "N",
     "with --run: runs of each before that do not count (default 1)", RUNNER(warmup)},
    {"cool-down", 0, NRG_OPT_DURATION, "TIME",
     "with --run: wait after each run until the machine draws what it drew before, at most TIME",
     RUNNER(cool_ns)},
    {"keep-going", 'k', NRG_OPT_FLAG, NULL, "with --run: runs that fail count, too",
     RUNNER(keep_going)},
    {"seed", 0, NRG_OPT_COUNT, "N", "with --run: of the random order", RUNNER(seed)},
    {"self-check", 0, NRG_OPT_FLAG, NULL,
     "compare the first command, or the recordings, with themselves: what the machine shows where "
     "there is no difference",
     offsetof(struct values, self_check)},
    {"by", 'b', NRG_OPT_STRING, "KEY",
     "the sides are the two values of this note (nrg run --note KEY=VALUE)",
     offsetof(struct values, by)},
    {"fail-if", 0, NRG_OPT_OWN_LIST(store_gate, "a condition such as \"energy > +2%\""),
     "CONDITION",
     "exit with 3 when the whole interval is beyond, such as \"energy > +2%\"; also program, time, "
     "power, energy_delay, memory; may be repeated",
     offsetof(struct values, gates)},
    {"detect", 0, NRG_OPT_NUMBER_IN(1e-3, 1000, "a percentage"), "PERCENT",
     "say how many runs would show this difference (default 1)",
     offsetof(struct values, detect_percent)},
    {"confidence", 0, NRG_OPT_NUMBER_IN(50, 99.9999999, "a percentage from 50 to below 100"),
     "PERCENT", "of the intervals (default 95)", offsetof(struct values, confidence_percent)},
    {"force", 'f', NRG_OPT_FLAG, NULL, "compare also what is not comparable",
     offsetof(struct values, force)},
    {"top", 0, NRG_OPT_COUNT, "N", "rows of each kind in the table (default 10)",
     offsetof(struct values, top)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "everything as JSON, to stdout or FILE",
     offsetof(struct values, json)},
    {"markdown", 0, NRG_OPT_FILE, "FILE", "as Markdown, for a pull request",
     offsetof(struct values, markdown)},
    {"html", 0, NRG_OPT_STRING, "FILE", "as a page, one file that needs no network; - is stdout",
     offsetof(struct values, html)},
    {0},
};

/* ---- which recordings ---- */

static int add_files(struct nrg_compare_side *side, char **paths, int n)
{
    struct nrg_error err;
    for (int i = 0; i < n; i++)
        if (nrg_compare_side_add(side, paths[i], &err))
            return nrg_complain(&err, 1);
    return 0;
}

/* Where "--" is among the operands; n: nowhere. */
static int find_separator(int n, char **operands)
{
    int at = 0;
    while (at < n && strcmp(operands[at], NRG_SEPARATOR) != 0)
        at++;
    return at;
}

static int add_two_sides(const struct nrg_cli *cli, struct nrg_compare_side sides[2], int argc,
                         char **argv)
{
    int at = find_separator(argc, argv), n_b = argc - at - 1;
    if (at == 0 || n_b < 1 || find_separator(n_b, argv + at + 1) < n_b)
        return nrg_usage(cli, "wants two sets of recordings: nrg compare A.nrg... -- B.nrg..., or "
                              "commands: nrg compare --run 10 -- CMD_A --- CMD_B");
    int code = add_files(&sides[0], argv, at);
    return code ? code : add_files(&sides[1], argv + at + 1, n_b);
}

/* The recordings in turn on either side: where there is nothing to be found. */
static int add_in_turn(const struct nrg_cli *cli, struct nrg_compare_side sides[2], int argc,
                       char **argv)
{
    int code = argc < 2
                   ? nrg_usage(cli, "--self-check wants two or more recordings, or --run N and "
                                    "a command")
                   : 0;
    for (int i = 0; !code && i < argc; i++)
        code = add_files(&sides[i % 2], &argv[i], 1);
    return code;
}

struct grouping {
    struct nrg_str names[2];
};

static int note_of(const char *path, const char *key, struct nrg_str *value)
{
    struct nrg_recording *recording;
    struct nrg_error err;
    char name[128];
    if (nrg_recording_open(path, &recording, &err))
        return nrg_complain(&err, 1);
    snprintf(name, sizeof name, "note.%s", key);
    const char *text = nrg_recording_text(recording, name);
    int code = 0;
    if (!text)
        fprintf(stderr, "nrg: %s: has no note '%s': nrg run --note %s=VALUE makes one\n", path, key,
                key);
    if (!text)
        code = 1;
    else if (nrg_str_addf(value, "%s", text))
        code = nrg_out_of_memory();
    nrg_recording_close(recording);
    return code;
}

static int add_by_note(const char *key, struct nrg_compare_side sides[2], struct grouping *group,
                       int argc, char **argv)
{
    int code = 0;
    sides[0].by = sides[1].by = key;
    for (int i = 0; !code && i < argc; i++) {
        struct nrg_str value = {0};
        int s = 0;
        code = note_of(argv[i], key, &value);
        while (!code && s < 2 && group->names[s].text && strcmp(group->names[s].text, value.text))
            s++;
        if (!code && s == 2) {
            fprintf(stderr, "nrg: %s: note '%s' has a third value, '%s'; two are compared\n",
                    argv[i], key, value.text);
            code = 1;
        }
        if (!code && !group->names[s].text && nrg_str_addf(&group->names[s], "%s", value.text))
            code = nrg_out_of_memory();
        if (!code) {
            sides[s].name = group->names[s].text;
            code = add_files(&sides[s], &argv[i], 1);
        }
        nrg_str_release(&value);
    }
    if (!code && !group->names[1].text) {
        fprintf(stderr, "nrg: note '%s' has one value only: nothing to compare\n", key);
        code = 1;
    }
    return code;
}

static int run_both(struct nrg_cli *cli, struct values *v, struct nrg_compare_side sides[2],
                    int argc, char **argv)
{
    if (v->by)
        return nrg_usage(cli, "--by is for recordings, not for commands to run");
    if (nrg_compare_commands(&v->runner, argc, argv) ||
        (v->runner.commands[0] == v->runner.commands[1]) != v->self_check)
        return nrg_usage(
            cli, v->self_check
                     ? "--self-check wants one command: nrg compare --self-check --run 10 -- CMD"
                     : "wants two commands: nrg compare --run 10 -- CMD_A --- CMD_B");
    return nrg_compare_run(cli, &v->runner, sides);
}

/* Of recordings; NULL: nothing. */
static const char *what_is_wrong(const struct values *v, int argc, char **argv)
{
    if (v->by && v->self_check)
        return "--by and --self-check do not go together";
    if ((v->by || v->self_check) && find_separator(argc, argv) < argc)
        return "--by and --self-check want one set of recordings, without --";
    return v->by && !argc ? "--by wants recordings: nrg compare --by KEY *.nrg" : NULL;
}

static int collect(struct nrg_cli *cli, struct values *v, struct nrg_compare_side sides[2],
                   struct grouping *group, int argc, char **argv)
{
    if (v->runner.runs)
        return run_both(cli, v, sides, argc, argv);
    const char *wrong = what_is_wrong(v, argc, argv);
    if (wrong)
        return nrg_usage(cli, "%s", wrong);
    if (v->self_check)
        return add_in_turn(cli, sides, argc, argv);
    return v->by ? add_by_note(v->by, sides, group, argc, argv)
                 : add_two_sides(cli, sides, argc, argv);
}

/* ---- the answer ---- */

static int say_refusals(const struct nrg_comparison *c, bool force)
{
    for (size_t i = 0; i < c->refusals.n; i++)
        fprintf(stderr, "nrg: not comparable: %s%s\n", c->refusals.items[i],
                force || i + 1 < c->refusals.n ? "" : " (--force compares all the same)");
    return c->refusals.n && !force ? EXIT_NOT_COMPARABLE : 0;
}

/* What can't be judged is no pass: a gate that was set up with too few runs would always be open.
 */
static int check_gates(const struct nrg_compare_report *report)
{
    bool met = false, undecided = false;
    for (size_t i = 0; i < report->n_conditions; i++) {
        enum nrg_gate_result result = nrg_compare_condition(report, i);
        if (result == NRG_GATE_UNDECIDED)
            fprintf(stderr, "nrg: --fail-if \"%s\" can't be decided: no interval\n",
                    report->conditions[i]);
        else if (result == NRG_GATE_MET)
            fprintf(stderr, "nrg: met: %s\n", report->conditions[i]);
        met |= result == NRG_GATE_MET;
        undecided |= result == NRG_GATE_UNDECIDED;
    }
    return met ? EXIT_GATE : undecided ? EXIT_NOT_COMPARABLE : 0;
}

static int write_document(const struct nrg_compare_report *report, const char *path,
                          void (*print)(const struct nrg_compare_report *, FILE *))
{
    FILE *out = nrg_output_open(path);
    if (!out)
        return 1;
    print(report, out);
    return nrg_output_close(out, path, 0);
}

static int print_text(const struct nrg_compare_report *report)
{
    struct nrg_fitted fitted;
    FILE *out = nrg_fitted_begin(&fitted, stdout);
    if (out)
        nrg_compare_text(report, out);
    return nrg_fitted_end(&fitted);
}

/* A refusal is said on stderr; in files that were asked for it stands in place of the answer. */
static int show(const struct nrg_cli *cli, const struct values *v,
                struct nrg_compare_report *report)
{
    bool text = !nrg_is_stdout(v->json) && !nrg_is_stdout(v->markdown) && !nrg_is_stdout(v->html) &&
                !cli->quiet && !nrg_compare_is_refused(report);
    report->colour = text && nrg_use_colour(stdout);
    int code = text ? print_text(report) : 0;
    if (!code && v->json)
        code = nrg_print_json(nrg_compare_json(report), v->json);
    if (!code && v->markdown)
        code = write_document(report, v->markdown, nrg_compare_markdown);
    if (!code && v->html)
        code = write_document(report, v->html, nrg_compare_html);
    return code;
}

/* Refusals, the answer, conditions: the exit code by all of them. */
static int give_answer(const struct nrg_cli *cli, const struct values *v,
                       const struct nrg_comparison *c)
{
    struct nrg_compare_report report = {.comparison = c,
                                        .forced = v->force,
                                        .conditions = v->gates.items,
                                        .n_conditions = v->gates.n,
                                        .top = (size_t)v->top};
    int refused = say_refusals(c, v->force);
    int code = show(cli, v, &report);
    return code ? code : refused ? refused : check_gates(&report);
}

static int check_outputs(const struct nrg_cli *cli, const struct values *v)
{
    if (nrg_is_stdout(v->json) + nrg_is_stdout(v->markdown) + nrg_is_stdout(v->html) > 1)
        return nrg_usage(cli, "one of --json, --markdown and --html can have stdout: give the "
                              "others a file, such as --json=FILE");
    int code = nrg_output_check(v->json);
    code = code ? code : nrg_output_check(v->markdown);
    return code ? code : nrg_output_check(v->html);
}

static int check_sides(const struct nrg_compare_side sides[2])
{
    for (int s = 0; s < 2; s++) {
        if (sides[s].n_runs)
            continue;
        if (sides[s].n_cut)
            fprintf(stderr,
                    "nrg: %s has no run with an end (%zu without: the recorder was killed, or is "
                    "at work): nothing to compare\n",
                    nrg_compare_side_name(sides, s), sides[s].n_cut);
        else
            fprintf(stderr, "nrg: %s has no run: nothing to compare\n",
                    nrg_compare_side_name(sides, s));
        return 1;
    }
    return 0;
}

static int run_compare(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct values *v = values;
    struct nrg_compare_side sides[2] = {0};
    struct grouping group = {0};
    struct nrg_comparison comparison = {0};
    struct nrg_compare_options how = {.confidence = v->confidence_percent / 100,
                                      .detect = v->detect_percent / 100};
    struct nrg_error err;
    int code = check_outputs(cli, v);
    if (!code)
        code = collect(cli, v, sides, &group, argc, argv);
    if (!code)
        code =
            v->runner.stopped_by && !(sides[0].n_runs && sides[1].n_runs) ? 1 : check_sides(sides);
    if (!code && nrg_comparison_make(&comparison, sides, &how, &err))
        code = nrg_complain(&err, 1);
    if (!code)
        code = give_answer(cli, v, &comparison);
    if (v->runner.stopped_by) /* as a shell shows it: what was shown is not the whole */
        code = 128 + v->runner.stopped_by;
    nrg_comparison_release(&comparison);
    for (int s = 0; s < 2; s++) {
        nrg_compare_side_release(&sides[s]);
        nrg_str_release(&group.names[s]);
    }
    return code;
}

static bool runs_commands(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strncmp(argv[i], "--run", 5) || !strncmp(argv[i], "-n", 2))
            return true;
    return false;
}

const struct nrg_command nrg_cmd_compare = {
    .name = "compare",
    .summary = "is B really better than A? energy and time of two sets of runs",
    .synopsis = "[OPTIONS] A.nrg... -- B.nrg... | --run N [OPTIONS] -- CMD_A --- CMD_B",
    .about =
        "Says by how much B differs from A, with an interval that holds the true difference in 95\n"
        "of 100 comparisons, or that no difference was seen and how many runs would show one.\n"
        "The interval is made of how much runs vary and of what the sensors may be off by; a "
        "drift\n"
        "of the machine over all runs is taken out.\n"
        "\n"
        "Energy is that of the machine. The program's own part, time, mean power, energy\n"
        "times time and peak memory are below it, then domains, processes, modules and\n"
        "operators, whose p-values are adjusted for their number.\n"
        "\n"
        "With --run both commands are run, in turn and in random order, each by nrg run;\n"
        "their output goes to a log beside each recording. Interrupted, the same command\n"
        "goes on.\n"
        "\n"
        "Exit code: 0, 1 for an error, 2 for wrong usage, 3 when a --fail-if is met, 4\n"
        "when the sides are not comparable, or a --fail-if can't be decided.",
    .examples = "  nrg compare before-*.nrg -- after-*.nrg\n"
                "  nrg compare --run 10 -- python3 old.py --- python3 new.py\n"
                "  nrg compare --by dtype *.nrg                  # nrg run --note dtype=bf16\n"
                "  nrg compare --run 5 --self-check -- ./bench   # what chance alone does here\n"
                "  nrg compare --fail-if \"energy > +2%\" main-*.nrg -- branch-*.nrg\n",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .takes_command = true,
    .runs_commands = runs_commands,
    .run = run_compare,
};
