/*
 * Lines of a text file that another program wrote (internal.h). Their length is bounded, so that a
 * file of hundreds of MB costs one line of memory and a file without line ends is refused.
 */
#include <errno.h>
#include <string.h>

#include "import/internal.h"

int nrg_lines_rewind(struct nrg_lines *lines)
{
    lines->number = 0;
    clearerr(lines->in);
    return fseek(lines->in, 0, SEEK_SET) ? -errno : 0;
}

/* The byte order mark that spreadsheets and PowerShell put before a text. */
static void drop_mark(struct nrg_str *text)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t n = sizeof mark - 1;
    if (text->len < n || memcmp(text->text, mark, n))
        return;
    memmove(text->text, text->text + n, text->len - n + 1);
    text->len -= n;
}

/* getc keeps NUL bytes, which would end the text that fgets reads. */
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
        return errno ? -errno : -EIO;
    lines->unfinished = c == EOF;
    if (lines->number == 1)
        drop_mark(text);
    if (text->len && text->text[text->len - 1] == '\r')
        text->text[--text->len] = '\0';
    return c == EOF && !text->len && !n ? 0 : 1;
}
