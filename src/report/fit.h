/*
 * Fits finished text to the columns of a terminal: of tables the blank columns that all rows have
 * are dropped until they fit, what is still too long is wrapped, a row in its last cell and a
 * sentence by its words. Texts without blanks stay whole. With `unicode` a number's uJ and us are
 * written with a micro sign.
 *
 * Rows are lines of at least four cells with two blanks between them, up to an empty line. Escape
 * sequences of colours take no column. No state; 0 or -ENOMEM.
 */
#ifndef NRG_REPORT_FIT_H
#define NRG_REPORT_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct nrg_fit {
    unsigned width; /* 0: any */
    bool wrap;      /* else only tables are made narrower */
    bool unicode;
};

int nrg_fit_print(FILE *out, const char *text, size_t len, const struct nrg_fit *fit);

#endif
