/*
 * What reaches a terminal. Names come from files, meters and other people's programs, and a
 * terminal obeys what it is shown: escape sequences, C1 controls, characters that turn the
 * direction of a line. Names are cleaned where they are read; this is the one place behind all
 * printing that lets nothing of the kind through, whoever printed it. A character that is held back
 * is shown as \u202e, which in a JSON text is the same character, and a byte that is no UTF-8 as
 * \xff. Line ends and tabs pass; a name must not bring its own, so messages go through nrg_say.
 */
#ifndef NRG_CLI_SCREEN_H
#define NRG_CLI_SCREEN_H

#include <stdarg.h>
#include <stdio.h>

/* Puts the guard before stdout and stderr. Once, at the start, before anything is printed. */
void nrg_screen_guard(void);

/* The descriptor behind a stream; a guarded one has none that fileno() knows. */
int nrg_screen_fd(FILE *stream);

/* One line on stderr, "nrg: ...", with clean text (nrg_copy_clean) and without passwords
 * (base/secret.h): what is meant for people. */
void nrg_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same behind another name than "nrg". */
void nrg_say_as(const char *who, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#endif
