/* See exposition.h. One pass over each line; nothing is kept but pointers into it. */
#include "sensors/llm/exposition.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 64

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ':' || c == '.';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char *skip_blanks(char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* A page in JSON quotes: \n, \" and \\ become what they stand for. */
static size_t unquote(char *page, size_t len)
{
    size_t to = 0;
    for (size_t from = 1; from < len && page[from] != '"'; from++) {
        char c = page[from];
        if (c == '\\' && from + 1 < len) {
            c = page[++from];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
        page[to++] = c;
    }
    return to;
}

void nrg_exposition_init(struct nrg_exposition *e, char *page, size_t len)
{
    if (len && page[0] == '"')
        len = unquote(page, len);
    *e = (struct nrg_exposition){.at = page, .end = page + len};
}

/* From a quote to behind the one that closes it; NULL when none does. */
static char *skip_quoted(char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p < end ? p + 1 : NULL;
}

/* From an opening brace to the closing one; NULL when there is none on the line. */
static char *find_brace(char *p, char *end)
{
    while (p && p < end && *p != '}')
        p = *p == '"' ? skip_quoted(p, end) : p + 1;
    return p && p < end ? p : NULL;
}

/* A number as Prometheus writes them: strtod's, also NaN and +Inf. */
static bool parse_number(const char *p, const char *end, double *value)
{
    char text[NUMBER_BYTES], *rest;
    size_t len = 0;
    while (p + len < end && !is_blank(p[len]))
        len++;
    if (!len || len >= sizeof text || p[0] == '#')
        return false;
    memcpy(text, p, len);
    text[len] = '\0';
    if (strpbrk(text, "xXpP(")) /* hexadecimal, NaN(...): not theirs */
        return false;
    *value = strtod(text, &rest);
    return !*rest;
}

/* {"name", label="value"} as Prometheus 3 writes names that are not plain. */
static bool take_quoted_name(struct nrg_exposition_sample *s)
{
    const char *p = s->labels, *end = p + s->labels_len;
    if (p >= end || *p != '"')
        return false;
    const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
    if (!close)
        return false;
    s->name = p + 1;
    s->name_len = (size_t)(close - s->name);
    s->labels = close + 1;
    s->labels_len = (size_t)(end - s->labels);
    return s->name_len > 0;
}

static bool parse_line(char *line, char *end, struct nrg_exposition_sample *s)
{
    char *p = line;
    while (p < end && is_name(*p))
        p++;
    *s = (struct nrg_exposition_sample){.name = line, .labels = p, .name_len = (size_t)(p - line)};
    p = skip_blanks(p, end);
    if (p < end && *p == '{') {
        char *close = find_brace(p + 1, end);
        if (!close)
            return false;
        s->labels = p + 1;
        s->labels_len = (size_t)(close - p - 1);
        p = close + 1;
    }
    if (!s->name_len && !take_quoted_name(s))
        return false;
    p = skip_blanks(p, end);
    return p < end && parse_number(p, end, &s->value);
}

bool nrg_exposition_next(struct nrg_exposition *e, struct nrg_exposition_sample *sample)
{
    while (e->at < e->end) {
        char *line = e->at, *end = memchr(line, '\n', (size_t)(e->end - line));
        if (!end)
            end = e->end;
        e->at = end < e->end ? end + 1 : end;
        line = skip_blanks(line, end);
        if (line == end || *line == '#')
            continue;
        if (parse_line(line, end, sample)) {
            e->samples++;
            return true;
        }
        e->refused++;
    }
    return false;
}

const char *nrg_exposition_label(const struct nrg_exposition_sample *s, const char *label,
                                 size_t *len)
{
    const char *p = s->labels, *end = p + s->labels_len;
    size_t label_len = strlen(label);
    while (p < end) {
        while (p < end && (is_blank(*p) || *p == ','))
            p++;
        const char *name = p;
        while (p < end && *p != '=' && *p != '"')
            p++;
        size_t name_len = (size_t)(p - name);
        if (p >= end || *p != '=' || ++p >= end || *p != '"')
            return NULL;
        const char *text = p + 1, *close = skip_quoted((char *)p, end);
        if (!close)
            return NULL;
        *len = (size_t)(close - 1 - text);
        if (name_len == label_len && !memcmp(name, label, label_len))
            return text;
        p = close;
    }
    return NULL;
}
