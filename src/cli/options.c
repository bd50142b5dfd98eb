/*
 * Option parsing from the commands' tables, on getopt_long: see cli.h. Only what a table
 * declares exists; the three common options are in a table of their own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/common.h"

const struct nrg_opt nrg_common_options[] = {
    {"root", 0, NRG_OPT_STRING, "DIR",
     "look at the machine whose /sys, /proc and /dev are below DIR (also: NRG_ROOT)",
     offsetof(struct nrg_cli, root)},
    {"quiet", 'q', NRG_OPT_FLAG, NULL, "no talk on stderr but errors",
     offsetof(struct nrg_cli, quiet)},
    {"verbose", 'v', NRG_OPT_FLAG, NULL, "more talk on stderr", offsetof(struct nrg_cli, verbose)},
    {"help", 'h', NRG_OPT_FLAG, NULL, "this text", offsetof(struct nrg_cli, help)},
    {0},
};

#define MAX_OPTIONS 64

/* Codes returned by getopt for long options: beyond any letter. */
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
        int has_arg = opts->type == NRG_OPT_FLAG   ? no_argument
                      : opts->type == NRG_OPT_FILE ? optional_argument
                                                   : required_argument;
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

static int add_to_list(struct nrg_list *list, const char *value)
{
    if (nrg_reserve(&list->items, &list->cap, list->n + 2, sizeof *list->items))
        return -ENOMEM;
    list->items[list->n++] = value;
    list->items[list->n] = NULL;
    return 0;
}

static int store_number(const struct nrg_opt *opt, void *field, const char *value)
{
    double number;
    int rc = nrg_parse_double(value, strlen(value), &number);
    if (rc)
        return rc;
    if (opt->type == NRG_OPT_NUMBER) {
        *(double *)field = number;
        return 0;
    }
    if (number < 1 || number > 1e9 || number != (double)(int)number)
        return -ERANGE;
    *(int *)field = (int)number;
    return 0;
}

/* Zero is what a field holds that was not given: nobody should get "for ever" for "0s". */
static int store_duration(int64_t *field_ns, const char *value)
{
    int rc = nrg_parse_duration_ns(value, field_ns);
    return rc ? rc : *field_ns > 0 ? 0 : -ERANGE;
}

static int store(const struct nrg_opt *opt, void *values, const char *value)
{
    void *field = (char *)values + opt->offset;
    switch (opt->type) {
    case NRG_OPT_FLAG:
        *(bool *)field = true;
        return 0;
    case NRG_OPT_STRING:
        *(const char **)field = value;
        return 0;
    case NRG_OPT_FILE:
        *(const char **)field = value ? value : "-";
        return 0;
    case NRG_OPT_LIST:
        return add_to_list(field, value);
    case NRG_OPT_DURATION:
        return store_duration(field, value);
    case NRG_OPT_RATE:
        return nrg_parse_rate_hz(value, field);
    case NRG_OPT_NUMBER:
    case NRG_OPT_COUNT:
        return store_number(opt, field, value);
    }
    return -EINVAL;
}

static const char *expected(enum nrg_opt_type type)
{
    switch (type) {
    case NRG_OPT_DURATION:
        return "a duration such as 10s, 250ms or 2min";
    case NRG_OPT_RATE:
        return "a rate such as 1Hz, 100Hz or 1kHz (up to 100kHz)";
    case NRG_OPT_COUNT:
        return "a whole number, 1 or more";
    default:
        return "a number";
    }
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

static int parse_all(struct nrg_cli *cli, struct table *t, void *values, int argc, char **argv)
{
    int code;
    optind = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, t->shorts.text, t->longs, NULL)) != -1) {
        const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
        if (code == '?' || code == ':') {
            fprintf(stderr, "nrg %s: %s '%s': see nrg %s --help\n", cli->command->name,
                    code == ':' ? "a value is missing after" : "no such option", word,
                    cli->command->name);
            return -EINVAL;
        }
        int i = index_of(t, code);
        int rc = i < 0 ? -EINVAL : store(t->opts[i], t->common[i] ? (void *)cli : values, optarg);
        if (rc) {
            fprintf(stderr, "nrg %s: --%s wants %s, not '%s'\n", cli->command->name,
                    i < 0 ? "?" : t->opts[i]->name, expected(i < 0 ? 0 : t->opts[i]->type),
                    optarg ? optarg : "");
            return -EINVAL;
        }
    }
    return optind;
}

int nrg_options_parse(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct table t = {0};
    /* '+': options after the first operand belong to the measured command; ':' missing values. */
    int rc = nrg_str_addf(&t.shorts, cli->command->takes_command ? "+:" : ":");
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
        if (opt->type == NRG_OPT_LIST)
            free(list->items);
    }
}
