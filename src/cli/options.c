/*
 * Option parsing from the commands' tables, on getopt_long: see cli.h. Only what a table
 * declares exists; the common options are in a table of their own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/words.h"
#include "cli/internal.h"
#include "cli/settings.h"

const struct nrg_opt nrg_common_options[] = {
    {"root", 0, NRG_OPT_STRING, "DIR",
     "look at the machine whose /sys, /proc and /dev are below DIR (also: NRG_ROOT)",
     offsetof(struct nrg_cli, root)},
    {"quiet", 'q', NRG_OPT_FLAG, NULL, "only errors on stderr", offsetof(struct nrg_cli, quiet)},
    {"verbose", 'v', NRG_OPT_FLAG, NULL, "more messages on stderr",
     offsetof(struct nrg_cli, verbose)},
    {"help", 'h', NRG_OPT_FLAG, NULL, "this text", offsetof(struct nrg_cli, help)},
    {0},
};

#define MAX_OPTIONS 64

/* Codes that getopt returns for long options: larger than any letter. */
#define FIRST_CODE 1000

struct table {
    struct option longs[MAX_OPTIONS + 1];
    const struct nrg_opt *opts[MAX_OPTIONS];
    bool common[MAX_OPTIONS];
    int n;
    struct nrg_str shorts;
};

static int add_options(struct table *t, const struct nrg_opt *opts, bool common)
{
    for (; opts && opts->name && t->n < MAX_OPTIONS; opts++) {
        static const int has_args[] = {[NRG_TAKES_NOTHING] = no_argument,
                                       [NRG_TAKES_VALUE] = required_argument,
                                       [NRG_TAKES_OPTIONAL] = optional_argument};
        int has_arg = has_args[opts->type->takes];
        t->longs[t->n] = (struct option){opts->name, has_arg, NULL, FIRST_CODE + t->n};
        t->opts[t->n] = opts;
        t->common[t->n++] = common;
        if (opts->letter) {
            int rc = nrg_str_addf(&t->shorts, "%c%s", opts->letter,
                                  has_arg == required_argument ? ":" : "");
            if (rc)
                return rc;
        }
    }
    return 0;
}

static int index_of(const struct table *t, int code)
{
    if (code >= FIRST_CODE)
        return code - FIRST_CODE;
    for (int i = 0; i < t->n; i++)
        if (t->opts[i]->letter == code)
            return i;
    return -1;
}

const char *nrg_option_wants(const struct nrg_opt *opt, char *buf, size_t size)
{
    if (opt->type->takes == NRG_TAKES_NOTHING)
        return "yes or no";
    return opt->type->wants ? opt->type->wants
                            : nrg_choice_words(opt->type->choices, false, buf, size);
}

static int say_wanted(const struct nrg_cli *cli, const struct nrg_opt *opt, const char *value)
{
    char words[256];
    nrg_usage(cli, "--%s wants %s, not '%s'", opt->name, nrg_option_wants(opt, words, sizeof words),
              value ? value : "");
    return -EINVAL;
}

/* "no such option '--rat': did you mean --rate?" */
static void say_unknown(const struct nrg_cli *cli, const struct table *t, const char *word)
{
    char typed[64];
    struct nrg_guess guess = {.typed = typed};
    nrg_copy(typed, sizeof typed, !strncmp(word, "--", 2) ? word + 2 : "");
    typed[strcspn(typed, "=")] = '\0';
    for (int i = 0; i < t->n; i++)
        nrg_guess_offer(&guess, t->opts[i]->name);
    nrg_usage(cli, "no such option '%s': %s%s%s%s --help", word,
              guess.best ? "did you mean --" : "", guess.best ? guess.best : "",
              guess.best ? "? See nrg " : "see nrg ", cli->command->name);
}

static int parse_all(struct nrg_cli *cli, struct table *t, void *values, int argc, char **argv)
{
    int code;
    optind = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, t->shorts.text, t->longs, NULL)) != -1) {
        const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
        int i = code == '?' || code == ':' ? -1 : index_of(t, code);
        if (i < 0 && code == ':')
            nrg_usage(cli, "a value is missing after '%s': see nrg %s --help", word,
                      cli->command->name);
        else if (i < 0)
            say_unknown(cli, t, word);
        if (i < 0)
            return -EINVAL;
        const struct nrg_opt *opt = t->opts[i];
        char *base = t->common[i] ? (void *)cli : values;
        int rc = opt->type->store(opt->type, base + opt->offset, optarg);
        if (rc)
            return rc == -ENOMEM ? rc : say_wanted(cli, opt, optarg);
        nrg_settings_given(cli->settings, opt, optarg);
    }
    return optind;
}

/* Whether all that follows the first operand is a command; if not, keeps the place of "--". */
static bool wants_command(const struct nrg_command *c, int argc, char **argv)
{
    static char separator[] = NRG_SEPARATOR;
    if (!c->takes_command || !c->runs_commands || c->runs_commands(argc, argv))
        return c->takes_command;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--"))
            argv[i] = separator;
    return false;
}

int nrg_options_parse(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct table t = {0};
    if (cli->command->defaults)
        memcpy(values, cli->command->defaults, cli->command->values_size);
    /* '+': options after the first operand belong to the measured command; ':' missing values. */
    int rc = nrg_settings_apply(cli, values);
    if (!rc)
        rc = nrg_str_addf(&t.shorts, wants_command(cli->command, argc, argv) ? "+:" : ":");
    if (!rc)
        rc = add_options(&t, cli->command->options, false);
    if (!rc)
        rc = add_options(&t, nrg_common_options, true);
    if (!rc)
        rc = parse_all(cli, &t, values, argc, argv);
    nrg_str_release(&t.shorts);
    return rc;
}

void nrg_options_release(const struct nrg_command *command, void *values)
{
    for (const struct nrg_opt *opt = command->options; opt && opt->name; opt++) {
        struct nrg_list *list = (void *)((char *)values + opt->offset);
        if (opt->type->is_list)
            free(list->items);
    }
}
