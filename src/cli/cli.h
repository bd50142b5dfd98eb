/*
 * The command line as data. A command is one const struct in its own cmd_<name>.c and one line
 * in main.c; its options are a table. Parsing, --help, man pages and completion come from the
 * same tables, so that they can't disagree.
 *
 * Exit codes: 0 success, 1 the command failed, 2 wrong usage; `nrg run` passes its child's code
 * through, and uses 125 when nrg itself failed before the child started, 126 when the command
 * could not be executed, 127 when it was not found (as env(1) and timeout(1) do).
 */
#ifndef NRG_CLI_CLI_H
#define NRG_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"

enum nrg_opt_type {
    NRG_OPT_FLAG,     /* bool */
    NRG_OPT_STRING,   /* const char * */
    NRG_OPT_LIST,     /* struct nrg_list: may be given several times */
    NRG_OPT_DURATION, /* int64_t ns */
    NRG_OPT_RATE,     /* double Hz */
    NRG_OPT_NUMBER,   /* double */
    NRG_OPT_COUNT,    /* int */
    NRG_OPT_FILE,     /* const char *: optional value after '=', "-" without one */
};

struct nrg_list {
    const char **items; /* NULL-terminated */
    size_t n, cap;
};

struct nrg_opt {
    const char *name; /* long name */
    char letter;      /* short name, 0: none */
    enum nrg_opt_type type;
    const char *arg; /* what the value is called in help, NULL for flags */
    const char *help;
    size_t offset; /* of the field in the command's values */
};

struct nrg_cli;

struct nrg_command {
    const char *name;
    const char *summary;           /* half a line */
    const char *synopsis;          /* what follows "nrg NAME" */
    const char *about;             /* paragraphs for --help and the man page */
    const char *examples;          /* lines of "command  # what it does" */
    const struct nrg_opt *options; /* ends with a NULL name */
    size_t values_size;
    bool takes_command; /* what follows the first operand belongs to the measured command */
    int (*run)(struct nrg_cli *cli, void *values, int argc, char **argv);
};

/* Options that every command takes. */
struct nrg_cli {
    struct nrg_context ctx;
    const struct nrg_command *command;
    const char *root;
    bool quiet, verbose, help;
};

extern const struct nrg_command *const nrg_commands[]; /* NULL-terminated */

extern const struct nrg_command nrg_cmd_attribute;
extern const struct nrg_command nrg_cmd_calibrate;
extern const struct nrg_command nrg_cmd_dataset;
extern const struct nrg_command nrg_cmd_evaluate;
extern const struct nrg_command nrg_cmd_graph;
extern const struct nrg_command nrg_cmd_export;
extern const struct nrg_command nrg_cmd_import;
extern const struct nrg_command nrg_cmd_meter;
extern const struct nrg_command nrg_cmd_predict;
extern const struct nrg_command nrg_cmd_profile;
extern const struct nrg_command nrg_cmd_report;
extern const struct nrg_command nrg_cmd_run;
extern const struct nrg_command nrg_cmd_sensors;
extern const struct nrg_command nrg_cmd_train;

/*
 * Parses argv (after the command's name) into values. Returns the index of the first operand,
 * or -EINVAL after saying on stderr what is wrong.
 */
int nrg_options_parse(struct nrg_cli *cli, void *values, int argc, char **argv);
void nrg_options_release(const struct nrg_command *command, void *values);

void nrg_help_command(const struct nrg_command *command);
void nrg_help_all(void);
/* Hidden `nrg help --man NAME`, `nrg help --completion`. */
int nrg_help_generate(int argc, char **argv);

/* Says an error on stderr and returns `code`. */
int nrg_complain(const struct nrg_error *err, int code);

#endif
