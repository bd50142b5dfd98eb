/*
 * What the files of src/cli share: parsing options, help, and small printers. Functions that return
 * an exit code have printed the reason for it. Single-threaded.
 */
#ifndef NRG_CLI_INTERNAL_H
#define NRG_CLI_INTERNAL_H

#include "cli/cli.h"
#include "cli/output.h"

struct nrg_recording;

extern const struct nrg_opt nrg_common_options[];

/* The word that stands for a value, or NULL. */
const char *nrg_choice_word(const struct nrg_choice *choices, int value);
/* "path, module or name" into buf, with the notes when `notes`. Returns buf. */
const char *nrg_choice_words(const struct nrg_choice *choices, bool notes, char *buf, size_t size);

/* "a duration such as 10s": what the option's value has to be. Returns a constant or buf. */
const char *nrg_option_wants(const struct nrg_opt *opt, char *buf, size_t size);

/*
 * Parses argv (after the command's name) into values. Returns the index of the first operand,
 * or -EINVAL after saying on stderr what is wrong; -EBADMSG: in the settings file.
 */
int nrg_options_parse(struct nrg_cli *cli, void *values, int argc, char **argv);
void nrg_options_release(const struct nrg_command *command, void *values);

/* The folder of the user's settings, perhaps in buf; NULL when there is none. */
const char *nrg_settings_folder(char *buf, size_t size);

/* The command of that name; NULL after saying on stderr that there is none. */
const struct nrg_command *nrg_find_command(const char *name);
void nrg_help_command(const struct nrg_command *command);
/* What stands behind `nrg --version`. Returns an exit code, as the next. */
int nrg_print_version(int argc, char **argv);
/* Hidden `nrg help --man NAME`, `nrg help --completion [SHELL]`. */
int nrg_help_generate(int argc, char **argv);
/* Prints the script for bash, zsh or fish. Returns an exit code. */
int nrg_completion(const char *shell);

/* Idle power from watts or a Jetson's file; NAN for a text of NULL. Returns an exit code. */
int nrg_read_idle_power(const struct nrg_cli *cli, const char *text, double *idle_w);

/*
 * After a result of a recording: says on stderr what it lacks because the file is damaged, and why
 * it is no result where reading failed. Returns an exit code.
 */
int nrg_check_recording(const struct nrg_recording *recording);

/* Says so on stderr and returns 1. */
int nrg_out_of_memory(void);

/*
 * Opens /dev/null in the place of closed standard streams. Otherwise a file that we open would take
 * that place, and our messages would go into it. The stand-ins close on exec: a command that we
 * start finds closed what was closed.
 */
void nrg_occupy_standard_streams(void);

/*
 * A write beyond RLIMIT_FSIZE fails instead of ending nrg by SIGXFSZ. A handler, not SIG_IGN: exec
 * resets it, and commands that we start find the signal as we did.
 */
void nrg_survive_file_limit(void);

#endif
