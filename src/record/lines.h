/*
 * Lines of a text file that we did not write, one at a time, of bounded length, so that a file of
 * hundreds of MB costs one line and a file without line ends is refused instead of swallowed.
 * Embedded: init, release. The stream stays the caller's.
 */
#ifndef NRG_RECORD_LINES_H
#define NRG_RECORD_LINES_H

#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"

#define NRG_LINE_MAX ((size_t)16 << 20)

struct nrg_lines {
    FILE *in;
    struct nrg_str text; /* the line without its end, NUL-terminated */
    long long number;    /* of that line, from 1 */
    bool unfinished;     /* it is the last one and has no line end */
};

void nrg_lines_init(struct nrg_lines *lines, FILE *in);
/* 1: a line; 0: the end; -EMSGSIZE: longer than NRG_LINE_MAX; -EIO, -ENOMEM. */
int nrg_lines_next(struct nrg_lines *lines);
/* Back to the first line; 0 or -errno. */
int nrg_lines_rewind(struct nrg_lines *lines);
void nrg_lines_release(struct nrg_lines *lines);

#endif
