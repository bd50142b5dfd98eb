/*
 * How text looks on a terminal: colours, columns that a text takes, padding and cutting. UTF-8: the
 * bytes of one character count once. No state; only nrg_fit_text can fail (-ENOMEM).
 */
#ifndef NRG_REPORT_STYLE_H
#define NRG_REPORT_STYLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"

/* Sequences to print before and after; all "" without colour. */
struct nrg_text_style {
    const char *bold, *dim, *warn, *off;
};
struct nrg_text_style nrg_text_style(bool colour);

/* Columns that a clean text takes. */
int nrg_text_width(const char *text);
/* Bytes of its first `width` columns: whole characters only. */
size_t nrg_text_bytes(const char *text, size_t width);
/* Blanks behind it, up to `width` columns. */
void nrg_text_pad(FILE *out, const char *text, int width);
/* Blanks before it, at least one. */
void nrg_text_right(FILE *out, const char *text, int width);
/* Cuts a clean text, in the middle or at the end, so that it takes at most `width` columns. */
int nrg_fit_text(struct nrg_str *text, size_t width, bool middle, bool unicode);

#endif
