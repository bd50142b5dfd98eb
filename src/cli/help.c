/* --help and man pages, from the commands' tables: see cli.h. */
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

/* ---- text in 80 columns ---- */

#define COLUMNS     80
#define HELP_COLUMN 31

struct wrapper {
    size_t column, indent; /* where the line is, where the next one begins */
};

static size_t width_of(const char *text, size_t len)
{
    size_t width = 0;
    for (size_t i = 0; i < len; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80; /* not inside a character */
    return width;
}

static void new_line(struct wrapper *w)
{
    printf("\n%*s", (int)w->indent, "");
    w->column = w->indent;
}

/* Words of a text, with as many blanks between them as it has. */
static void put_words(struct wrapper *w, const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        size_t blanks = 0, n = 0;
        while (text + blanks < end && text[blanks] == ' ')
            blanks++;
        while (text + blanks + n < end && text[blanks + n] != ' ')
            n++;
        size_t width = width_of(text + blanks, n);
        if (w->column > w->indent && w->column + blanks + width > COLUMNS)
            new_line(w);
        else
            printf("%*s", (int)blanks, ""), w->column += blanks;
        printf("%.*s", (int)n, text + blanks);
        w->column += width;
        text += blanks + n;
    }
}

/* Where the second column of a line begins, or its own text: wrapped lines go on there. */
static size_t hanging_indent(const char *line, size_t len)
{
    size_t lead = strspn(line, " ");
    for (size_t i = lead; i + 2 < len; i++)
        if (line[i] == ' ' && line[i + 1] == ' ')
            return width_of(line, i + strspn(line + i, " "));
    return lead;
}

/*
 * Paragraphs. Lines that begin with a blank, or have columns (three blanks), stay lines, with what
 * follows them in their last column; others are filled.
 */
static void put_text(const char *text)
{
    struct wrapper w = {0};
    size_t hang = 0; /* of the line before, when that is to stay a line */
    bool any = false;
    while (*text) {
        size_t len = strcspn(text, "\n"), lead = strspn(text, " ");
        bool fixed = lead || memmem(text, len, "   ", 3), more = any && len && lead == hang;
        more &= lead > 0 || !fixed;
        w.indent = more ? hang : 0;
        if (!more && w.column)
            new_line(&w);
        if (!more)
            hang = w.indent = fixed ? hanging_indent(text, len) : 0;
        if (!len)
            putchar('\n');
        if (more)
            put_words(&w, " ", 1);
        put_words(&w, text + (more ? lead : 0), len - (more ? lead : 0));
        any = len;
        text += len + (text[len] == '\n');
    }
    putchar('\n');
}

/* "  nrg run ...   # what it does": the comment goes above a line that is too long. */
static void put_examples(const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        const char *mark = memmem(text, len, " # ", 3);
        size_t command = mark ? (size_t)(mark - text) : len;
        while (command && text[command - 1] == ' ')
            command--;
        if (mark && width_of(text, len) > COLUMNS)
            printf("  %.*s\n%.*s\n", (int)(len - (size_t)(mark + 1 - text)), mark + 1, (int)command,
                   text);
        else
            printf("%.*s\n", (int)len, text);
        text += len + (text[len] == '\n');
    }
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
        struct wrapper w = {.column = HELP_COLUMN, .indent = HELP_COLUMN};
        if (strlen(head) < HELP_COLUMN - 3)
            printf("  %-*s", HELP_COLUMN - 2, head);
        else
            printf("  %s\n%*s", head, HELP_COLUMN, "");
        put_words(&w, help, strlen(help));
        putchar('\n');
    }
}

void nrg_help_command(const struct nrg_command *c)
{
    char usage[400];
    printf("nrg %s: %s\n\n", c->name, c->summary);
    snprintf(usage, sizeof usage, "Usage: nrg %s %s", c->name, c->synopsis);
    put_text(usage);
    putchar('\n');
    put_text(c->about);
    printf("\nOptions:\n");
    print_options(c->options);
    print_options(nrg_common_options);
    if (c->examples) {
        printf("\nExamples:\n");
        put_examples(c->examples);
    }
}

static void help_all(void)
{
    printf("nrg %s, the energy profiler for machine learning\n\nUsage: nrg COMMAND [OPTIONS]\n\n",
           NRG_VERSION);
    for (size_t i = 0; nrg_commands[i]; i++)
        printf("  %-10s %s\n", nrg_commands[i]->name, nrg_commands[i]->summary);
    printf("\nStart with:  nrg sensors\n"
           "             nrg run -- python3 train.py\n"
           "Help on one: nrg COMMAND --help\n"
           "Versions:    nrg --version, with -v those of the libraries that it works with\n");
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
    printf(".SH OPTIONS\n.TP\n\\fB\\-\\-version\\fR [\\fB\\-v\\fR, \\fB\\-\\-verbose\\fR]\n"
           "The version; verbose: also those of the libraries that nrg works with, whether they "
           "are bundled "
           "or dynamic, and where they come from.\n");
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
        nrg_say("there is no command '%s': did you mean '%s'? See nrg help", name, guess.best);
    else
        nrg_say("there is no command '%s': see nrg help", name);
    return NULL;
}

int nrg_help_generate(int argc, char **argv)
{
    const struct nrg_command *command = NULL;
    if (argc > 1 && !strcmp(argv[1], "--completion"))
        return nrg_completion(argc > 2 ? argv[2] : "bash");
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
