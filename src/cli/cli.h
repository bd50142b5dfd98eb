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

/* A word that an option takes, its value, and what --help says about it in brackets. */
struct nrg_choice {
    const char *word;
    int value;
    const char *note; /* NULL: none */
};

enum nrg_opt_takes { NRG_TAKES_NOTHING, NRG_TAKES_VALUE, NRG_TAKES_OPTIONAL };

/*
 * How a value is read. store() puts it into the field and returns 0, or non-zero for a value that
 * is not valid; the message then is "--NAME wants WANTS, not 'VALUE'". The value of a
 * NRG_TAKES_OPTIONAL that was left out is NULL. A command may have types of its own.
 */
struct nrg_opt_type {
    enum nrg_opt_takes takes;
    int (*store)(const struct nrg_opt_type *type, void *field, const char *value);
    const char *wants;                /* NULL: the words of the choices */
    const struct nrg_choice *choices; /* ends with a NULL word */
    double least, most;               /* of numbers; both 0: any */
    bool is_list;                     /* the field is a struct nrg_list */
    const char *examples;             /* values that completion offers, or NULL */
};

struct nrg_list {
    const char **items; /* NULL-terminated */
    size_t n, cap;
};

struct nrg_given_ns {
    bool given;
    int64_t ns;
};

/* A machine's power, for the estimate; 0: not given. */
struct nrg_idle_full {
    double idle_w, full_w;
};

struct nrg_opt {
    const char *name; /* long name */
    char letter;      /* short name, 0: none */
    const struct nrg_opt_type *type;
    const char *arg;  /* what the value is called in help, NULL for flags */
    const char *help; /* the words of a choice follow it */
    size_t offset;    /* of the field in the command's values */
};

struct nrg_cli;

/* What stands for "--" among operands, which getopt would take out. */
#define NRG_SEPARATOR "\x01--"

struct nrg_command {
    const char *name;
    const char *summary;           /* half a line */
    const char *synopsis;          /* what follows "nrg NAME" */
    const char *about;             /* paragraphs for --help and the man page */
    const char *examples;          /* lines of "command  # what it does" */
    const struct nrg_opt *options; /* ends with a NULL name */
    size_t values_size;
    const void *defaults; /* values before any option; NULL: zeros */
    const char *actions;  /* words that the first operand may be, for completion; NULL: a file */
    int not_started_code; /* exit code when its settings file is wrong; 0: 2, as wrong usage */
    bool opens_sensors;   /* keeps the capabilities of the program's file until it has done so */
    bool takes_command;   /* what follows the first operand belongs to the measured command */
    /* Of one that takes commands or files: whether these are commands. Else options may stand
     * anywhere, and each "--" is an operand, NRG_SEPARATOR. NULL: commands. */
    bool (*runs_commands)(int argc, char **argv);
    int (*run)(struct nrg_cli *cli, void *values, int argc, char **argv);
};

/* Options that every command takes. */
struct nrg_cli {
    struct nrg_context ctx;
    const struct nrg_command *command;
    struct nrg_settings *settings; /* cli/settings.h */
    const char *root;
    bool quiet, verbose, help;
    bool ran_command; /* a measured command ran: its exit code is the program's */
};

extern const struct nrg_command *const nrg_commands[]; /* NULL-terminated */

extern const struct nrg_command nrg_cmd_attribute;
extern const struct nrg_command nrg_cmd_calibrate;
extern const struct nrg_command nrg_cmd_compare;
extern const struct nrg_command nrg_cmd_dataset;
extern const struct nrg_command nrg_cmd_doctor;
extern const struct nrg_command nrg_cmd_evaluate;
extern const struct nrg_command nrg_cmd_graph;
extern const struct nrg_command nrg_cmd_export;
extern const struct nrg_command nrg_cmd_import;
extern const struct nrg_command nrg_cmd_llm;
extern const struct nrg_command nrg_cmd_meter;
extern const struct nrg_command nrg_cmd_predict;
extern const struct nrg_command nrg_cmd_profile;
extern const struct nrg_command nrg_cmd_report;
extern const struct nrg_command nrg_cmd_run;
extern const struct nrg_command nrg_cmd_sensors;
extern const struct nrg_command nrg_cmd_train;
extern const struct nrg_command nrg_cmd_view;

/* The type of the field is in the comment. A number out of its range is not valid. */
extern const struct nrg_opt_type nrg_opt_flag, nrg_opt_string, nrg_opt_list, nrg_opt_duration,
    nrg_opt_rate, nrg_opt_number, nrg_opt_count, nrg_opt_file, nrg_opt_seconds, nrg_opt_zone,
    nrg_opt_range, nrg_opt_watts, nrg_opt_bytes;
#define NRG_OPT_FLAG     (&nrg_opt_flag)     /* bool */
#define NRG_OPT_STRING   (&nrg_opt_string)   /* const char * */
#define NRG_OPT_LIST     (&nrg_opt_list)     /* struct nrg_list: may be given several times */
#define NRG_OPT_DURATION (&nrg_opt_duration) /* int64_t ns, more than 0 */
#define NRG_OPT_RATE     (&nrg_opt_rate)     /* double Hz */
#define NRG_OPT_NUMBER   (&nrg_opt_number)   /* double */
#define NRG_OPT_COUNT    (&nrg_opt_count)    /* int, 1 or more */
#define NRG_OPT_FILE     (&nrg_opt_file)     /* const char *: after '='; "-" without one */
#define NRG_OPT_SECONDS  (&nrg_opt_seconds)  /* struct nrg_given_ns, may be negative */
#define NRG_OPT_ZONE     (&nrg_opt_zone)     /* int64_t ns, local time minus UTC */
#define NRG_OPT_RANGE    (&nrg_opt_range)    /* struct nrg_given_ns: after '='; 0 without one */
#define NRG_OPT_BYTES    (&nrg_opt_bytes)    /* double, more than 0 */
#define NRG_OPT_WATTS    (&nrg_opt_watts)    /* struct nrg_idle_full */
/* double, from `from` to `to`; `text` says so */
#define NRG_OPT_NUMBER_IN(from, to, text) NRG_OPT_IN(nrg_store_number, from, to, text)
/* int, likewise */
#define NRG_OPT_COUNT_IN(from, to, text) NRG_OPT_IN(nrg_store_count, from, to, text)
/* int, the value of one of the words */
#define NRG_OPT_CHOICE(words)                                                                      \
    (&(const struct nrg_opt_type){                                                                 \
        .takes = NRG_TAKES_VALUE, .store = nrg_store_choice, .choices = (words)})
/* unsigned: a bit (1u << value) for each of the words, which commas separate */
#define NRG_OPT_CHOICES(words)                                                                     \
    (&(const struct nrg_opt_type){                                                                 \
        .takes = NRG_TAKES_VALUE, .store = nrg_store_choices, .choices = (words)})
/* int, after '='; the value of the first word without one */
#define NRG_OPT_OPTIONAL_CHOICE(words)                                                             \
    (&(const struct nrg_opt_type){                                                                 \
        .takes = NRG_TAKES_OPTIONAL, .store = nrg_store_choice, .choices = (words)})
/* A command's own type: see struct nrg_opt_type. */
#define NRG_OPT_OWN(function, text)                                                                \
    (&(const struct nrg_opt_type){.takes = NRG_TAKES_VALUE, .store = (function), .wants = (text)})
#define NRG_OPT_OWN_LIST(function, text)                                                           \
    (&(const struct nrg_opt_type){                                                                 \
        .takes = NRG_TAKES_VALUE, .store = (function), .wants = (text), .is_list = true})
#define NRG_OPT_IN(function, from, to, text)                                                       \
    (&(const struct nrg_opt_type){.takes = NRG_TAKES_VALUE,                                        \
                                  .store = (function),                                             \
                                  .wants = (text),                                                 \
                                  .least = (from),                                                 \
                                  .most = (to)})

int nrg_store_choice(const struct nrg_opt_type *type, void *field, const char *value);
int nrg_store_choices(const struct nrg_opt_type *type, void *field, const char *value);
int nrg_store_number(const struct nrg_opt_type *type, void *field, const char *value);
int nrg_store_count(const struct nrg_opt_type *type, void *field, const char *value);

/* Says on stderr what is wrong with the usage of the command: "nrg NAME: ...". Returns 2. */
int nrg_usage(const struct nrg_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints an error on stderr and returns `code`. */
int nrg_complain(const struct nrg_error *err, int code);

#endif
