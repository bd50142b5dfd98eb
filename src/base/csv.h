/*
 * Comma-separated text. Read from memory, record by record: cells may stand in double quotes, with
 * commas, line ends and doubled quotes inside (RFC 4180). Quoted cells are unquoted in place, so
 * the text must be writable and is used up; cells point into it and are good until it is freed.
 *
 * Init, next until it returns 0, release. Errors name file and line.
 */
#ifndef NRG_BASE_CSV_H
#define NRG_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

#define NRG_CSV_MAX_CELLS 1024

struct nrg_cell {
    const char *text; /* not terminated */
    size_t len;
};

struct nrg_csv {
    char *at, *end;
    const char *name; /* of the file, for messages */
    long long line;   /* of the record that `next` gave, from 1 */
    long long lines;  /* read so far */
    struct nrg_cell *cells;
    size_t n, cap;
};

void nrg_csv_init(struct nrg_csv *csv, char *text, size_t size, const char *name);
void nrg_csv_release(struct nrg_csv *csv);

/* 1: a record is in cells; 0: no more; -errno. Blank lines are stepped over. */
int nrg_csv_next(struct nrg_csv *csv, struct nrg_error *err);

/* The column of that name in the record at hand, white space around names ignored; -1: none. */
int nrg_csv_find(const struct nrg_csv *csv, const char *name);

/* A cell as a number; empty cells and "nan" are NAN. -EINVAL for anything else. */
int nrg_cell_number(struct nrg_cell cell, double *out);

/*
 * Writes text as a cell: in quotes where it has to be; NULL is an empty one. Spreadsheets take a
 * cell that begins with = + - @, a tab or a line end for a formula and run it: such a text gets an
 * apostrophe before it, which they take for "this is text" and nrg_csv_next takes away again.
 * Numbers stay numbers.
 */
void nrg_csv_cell(FILE *out, const char *text);

#endif
