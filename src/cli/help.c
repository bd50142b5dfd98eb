/* --help, man pages and shell completion, all from the commands' tables: see cli.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <nrg/nrg.h>

#include "base/words.h"
#include "cli/internal.h"

/* What an option is for, and its words. Returns buf. */
static const char *option_help(const struct nrg_opt *opt, char *buf, size_t size)
{
    char words[512] = "";
    if (opt->type->choices)
        nrg_choice_words(opt->type->choices, true, words, sizeof words);
    snprintf(buf, size, "%s%s", opt->help, words);
    return buf;
}

static void print_options(const struct nrg_opt *opts)
{
    for (; opts && opts->name; opts++) {
        char head[64], help[1024];
        bool optional = opts->type->takes == NRG_TAKES_OPTIONAL;
        snprintf(head, sizeof head, "%s%c%s--%s%s%s%s", opts->letter ? "-" : " ",
                 opts->letter ? opts->letter : ' ', opts->letter ? ", " : "  ", opts->name,
                 optional    ? "[="
                 : opts->arg ? " "
                             : "",
                 opts->arg ? opts->arg : "", optional ? "]" : "");
        option_help(opts, help, sizeof help);
        if (strlen(head) < 28)
            printf("  %-28s %s\n", head, help);
        else
            printf("  %s\n  %-28s %s\n", head, "", help);
    }
}

void nrg_help_command(const struct nrg_command *c)
{
    printf("nrg %s: %s\n\nUsage: nrg %s %s\n\n%s\n", c->name, c->summary, c->name, c->synopsis,
           c->about);
    printf("\nOptions:\n");
    print_options(c->options);
    print_options(nrg_common_options);
    if (c->examples)
        printf("\nExamples:\n%s", c->examples);
}

static void help_all(void)
{
    printf("nrg %s, the energy profiler for machine learning\n\nUsage: nrg COMMAND [OPTIONS]\n\n",
           NRG_VERSION);
    for (size_t i = 0; nrg_commands[i]; i++)
        printf("  %-10s %s\n", nrg_commands[i]->name, nrg_commands[i]->summary);
    printf("\nStart with:  nrg sensors\n"
           "             nrg run -- python3 train.py\n"
           "Help on one: nrg COMMAND --help\n");
}

/* Escapes for roff: a leading dot or quote, backslashes and hyphens. */
static void roff_text(const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        line_start = *text == '\n';
    }
}

static void roff_options(const struct nrg_opt *opts)
{
    for (; opts && opts->name; opts++) {
        char help[1024];
        printf(".TP\n");
        if (opts->letter)
            printf("\\fB\\-%c\\fR, ", opts->letter);
        printf("\\fB\\-\\-");
        roff_text(opts->name);
        printf("\\fR");
        if (opts->arg)
            printf(opts->type->takes == NRG_TAKES_OPTIONAL ? "[=\\fI%s\\fR]" : " \\fI%s\\fR",
                   opts->arg);
        putchar('\n');
        roff_text(option_help(opts, help, sizeof help));
        putchar('\n');
    }
}

static void man_command(const struct nrg_command *c)
{
    printf(".TH NRG\\-%s 1 \"\" \"nrg %s\"\n.SH NAME\nnrg\\-%s \\- ", c->name, NRG_VERSION,
           c->name);
    roff_text(c->summary);
    printf("\n.SH SYNOPSIS\n\\fBnrg %s\\fR ", c->name);
    roff_text(c->synopsis);
    printf("\n.SH DESCRIPTION\n.nf\n");
    roff_text(c->about);
    printf("\n.fi\n.SH OPTIONS\n");
    roff_options(c->options);
    roff_options(nrg_common_options);
    if (c->examples) {
        printf(".SH EXAMPLES\n.nf\n");
        roff_text(c->examples);
        printf(".fi\n");
    }
    printf(".SH SEE ALSO\n\\fBnrg\\fR(1)\n");
}

static void man_all(void)
{
    printf(".TH NRG 1 \"\" \"nrg %s\"\n.SH NAME\nnrg \\- the energy profiler for machine learning\n"
           ".SH SYNOPSIS\n\\fBnrg\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n",
           NRG_VERSION);
    for (size_t i = 0; nrg_commands[i]; i++) {
        printf(".TP\n\\fBnrg\\-%s\\fR(1)\n", nrg_commands[i]->name);
        roff_text(nrg_commands[i]->summary);
        putchar('\n');
    }
}

static void completion_words(const struct nrg_opt *opts)
{
    for (; opts && opts->name; opts++)
        printf(" --%s", opts->name);
}

/* Lines of a case statement on COMMAND:OPTION, for the options whose words are known. */
static void completion_choices(const struct nrg_command *command)
{
    for (const struct nrg_opt *opt = command->options; opt && opt->name; opt++) {
        if (!opt->type->choices || opt->type->takes != NRG_TAKES_VALUE)
            continue;
        printf("        %s:--%s", command->name, opt->name);
        if (opt->letter)
            printf("|%s:-%c", command->name, opt->letter);
        printf(") choices=\"");
        for (const struct nrg_choice *c = opt->type->choices; c->word; c++)
            printf("%s%s", c == opt->type->choices ? "" : " ", c->word);
        printf("\" ;;\n");
    }
}

static void print_completion(void)
{
    printf("# bash completion for nrg, generated by: nrg help --completion\n_nrg() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} words choices=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"");
    for (size_t i = 0; nrg_commands[i]; i++)
        printf("%s ", nrg_commands[i]->name);
    printf("help\"\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; nrg_commands[i]; i++) {
        printf("        %s) words=\"", nrg_commands[i]->name);
        completion_words(nrg_commands[i]->options);
        completion_words(nrg_common_options);
        printf("\" ;;\n");
    }
    printf("        esac\n        case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]} in\n");
    for (size_t i = 0; nrg_commands[i]; i++)
        completion_choices(nrg_commands[i]);
    printf("        esac\n    fi\n"
           "    if [ -n \"$choices\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$choices\" -- \"$cur\"))\n"
           "    elif [ \"$COMP_CWORD\" -eq 1 ] || [[ $cur == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\n"
           "complete -o filenames -F _nrg nrg\n");
}

const struct nrg_command *nrg_find_command(const char *name)
{
    for (size_t i = 0; nrg_commands[i]; i++)
        if (!strcmp(nrg_commands[i]->name, name))
            return nrg_commands[i];
    struct nrg_guess guess = {.typed = name};
    for (size_t i = 0; nrg_commands[i]; i++)
        nrg_guess_offer(&guess, nrg_commands[i]->name);
    if (guess.best)
        fprintf(stderr, "nrg: there is no command '%s': did you mean '%s'? See nrg help\n", name,
                guess.best);
    else
        fprintf(stderr, "nrg: there is no command '%s': see nrg help\n", name);
    return NULL;
}

int nrg_help_generate(int argc, char **argv)
{
    const struct nrg_command *command = NULL;
    if (argc > 1 && !strcmp(argv[1], "--completion")) {
        print_completion();
        return 0;
    }
    bool man = argc > 1 && !strcmp(argv[1], "--man");
    const char *name = argc > (man ? 2 : 1) ? argv[man ? 2 : 1] : NULL;
    if (name && strcmp(name, "nrg") && !(command = nrg_find_command(name)))
        return 2;
    if (man && command)
        man_command(command);
    else if (man)
        man_all();
    else if (command)
        nrg_help_command(command);
    else
        help_all();
    return 0;
}
