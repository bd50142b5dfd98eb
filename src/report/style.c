/* See style.h. A byte that continues a character (10xxxxxx) takes no column of its own. */
#include "report/style.h"

#include <string.h>

struct nrg_text_style nrg_text_style(bool colour)
{
    return colour ? (struct nrg_text_style){"\033[1m", "\033[2m", "\033[33m", "\033[0m"}
                  : (struct nrg_text_style){"", "", "", ""};
}

int nrg_text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

void nrg_text_pad(FILE *out, const char *text, int width)
{
    int seen = nrg_text_width(text);
    fprintf(out, "%s%*s", text, seen < width ? width - seen : 0, "");
}

void nrg_text_right(FILE *out, const char *text, int width)
{
    int seen = nrg_text_width(text);
    fprintf(out, "%*s%s", seen < width ? width - seen : 1, "", text);
}

size_t nrg_text_bytes(const char *text, size_t width)
{
    size_t at = 0;
    for (size_t seen = 0; text[at]; at++)
        if ((text[at] & 0xc0) != 0x80 && seen++ == width)
            break;
    return at;
}

int nrg_fit_text(struct nrg_str *text, size_t width, bool middle, bool unicode)
{
    size_t columns = text->len ? (size_t)nrg_text_width(text->text) : 0;
    const char *dots = unicode ? "…" : "..";
    size_t dots_width = unicode ? 1 : 2;
    if (!unicode)
        for (size_t i = 0; i < text->len; i++)
            if ((unsigned char)text->text[i] >= 0x80) {
                columns = text->len; /* seen as bytes: one each */
                text->text[i] = '?';
            }
    if (columns <= width)
        return 0;
    size_t room = width > dots_width ? width - dots_width : 0, tail = middle ? room / 2 : 0;
    size_t head_bytes = nrg_text_bytes(text->text, room - tail);
    size_t tail_at = nrg_text_bytes(text->text, columns - tail);
    struct nrg_str cut = {0};
    int rc =
        nrg_str_addf(&cut, "%.*s%s%s", (int)head_bytes, text->text, dots, text->text + tail_at);
    if (rc) {
        nrg_str_release(&cut);
        return rc;
    }
    nrg_str_release(text);
    *text = cut;
    return 0;
}
