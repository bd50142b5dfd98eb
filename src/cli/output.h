/*
 * Where results go: "-" is stdout, anything else a file. A failure to write is reported on stderr,
 * once; functions return exit codes 0 and 1. The one place for colours and for writing documents.
 */
#ifndef NRG_CLI_OUTPUT_H
#define NRG_CLI_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/screen.h"

/* False for NULL, which means that this output was not asked for. */
bool nrg_is_stdout(const char *path);

/* NULL after a message. */
FILE *nrg_output_open(const char *path);
/* Flushes and closes; `rc` is what the writer returned. */
int nrg_output_close(FILE *out, const char *path, int rc);
/* At the program's end: its code, but 1 after a line instead of 0 if stdout could not take all. */
int nrg_output_finish(int code);
/* Checks that the file can be written, before minutes of measuring. NULL is fine. */
int nrg_output_check(const char *path);

/* Writes a JSON document and a newline; takes the reference. */
int nrg_print_json(json_t *doc, const char *path);
/* With that many digits; with 17 the same numbers are read back. */
int nrg_print_json_digits(json_t *doc, const char *path, size_t digits);

/* The last part of a path without .gz and its ending, with a suffix: "a.nrg" of "runs/a.json.gz".
 */
void nrg_default_output(const char *path, const char *suffix, char *out, size_t size);

/*
 * Text for people, made in memory and then fitted to the columns of `to` (report/fit.h):
 * if ((out = nrg_fitted_begin(&text, to))) ...; code = nrg_fitted_end(&text). The end says what
 * went wrong, also that there was no memory for the beginning, which is NULL then.
 */
struct nrg_fitted {
    FILE *to, *made;
    char *bytes;
    size_t len;
    bool any_width; /* tables stay as they are in files and pipes; set after begin */
};
FILE *nrg_fitted_begin(struct nrg_fitted *text, FILE *to);
int nrg_fitted_end(struct nrg_fitted *text);

/* Columns of a stream, or what COLUMNS says; 0: not a terminal. */
unsigned nrg_terminal_width(FILE *stream);
/* True when the locale's texts are UTF-8. */
bool nrg_use_utf8(void);

/* True when `stream` is a terminal and NO_COLOR is unset. */
bool nrg_use_colour(FILE *stream);

#endif
