/* See lines.h. */
#include "record/lines.h"

#include <errno.h>
#include <string.h>

void nrg_lines_init(struct nrg_lines *lines, FILE *in)
{
    *lines = (struct nrg_lines){.in = in};
}

void nrg_lines_release(struct nrg_lines *lines)
{
    nrg_str_release(&lines->text);
}

int nrg_lines_rewind(struct nrg_lines *lines)
{
    lines->number = 0;
    clearerr(lines->in);
    return fseek(lines->in, 0, SEEK_SET) ? -errno : 0;
}

/* getc keeps NUL bytes, which fgets would take for the end of the piece. */
int nrg_lines_next(struct nrg_lines *lines)
{
    struct nrg_str *text = &lines->text;
    char piece[4096];
    size_t n = 0;
    int c, rc = 0;
    text->len = 0;
    lines->unfinished = false;
    lines->number++;
    while (!rc && (c = getc_unlocked(lines->in)) != EOF && c != '\n') {
        piece[n++] = (char)c;
        if (n == sizeof piece) {
            rc = text->len > NRG_LINE_MAX ? -EMSGSIZE : nrg_str_add(text, piece, n);
            n = 0;
        }
    }
    if (!rc)
        rc = nrg_str_add(text, piece, n);
    if (rc)
        return rc;
    if (c == EOF && ferror(lines->in))
        return -EIO;
    lines->unfinished = c == EOF;
    if (text->len && text->text[text->len - 1] == '\r')
        text->text[--text->len] = '\0';
    return c == EOF && !text->len && !n ? 0 : 1;
}
