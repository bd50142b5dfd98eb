/*
 * String constants. The printer escapes \\ \' \" \a \b \f \n \r \t \v and writes every other byte
 * that is not printable as a backslash and three "octal digits" that it computes in signed
 * arithmetic: a byte of 0x80 or more gives characters below '0' (é prints as \0)+\/.) and not
 * as \303\251). byte = 64 a + 8 b + c, each counted from '0', modulo 256, reads both forms.
 *
 * No string holds a raw end of line. The result is cleaned like all texts of a model: UTF-8 without
 * control characters except line ends and tabs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/torchscript/lex.h"

/* The closing quote, or NULL; *escaped: there is something to decode. */
static const char *closing_quote(const struct ts *ts, bool *escaped)
{
    *escaped = false;
    for (const char *p = ts->p; p < ts->end && *p != '\n'; p++) {
        if (*p == '"')
            return p;
        if (*p == '\\') {
            *escaped = true;
            if (++p == ts->end || *p == '\n')
                break;
        }
    }
    return NULL;
}

static bool is_odd_digit(char c)
{
    return c >= ')' && c <= '7';
}

/* One escape after its backslash; returns how many bytes it took. */
static size_t decode_escape(const char *p, const char *end, char *out)
{
    static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
    if (end - p >= 3 && is_odd_digit(p[0]) && is_odd_digit(p[1]) && is_odd_digit(p[2])) {
        int byte = 64 * (p[0] - '0') + 8 * (p[1] - '0') + (p[2] - '0');
        *out = (char)(byte & 0xff);
        return 3;
    }
    const char *known = *p ? strchr(from, *p) : NULL;
    *out = known ? to[known - from] : *p;
    return 1;
}

/* Cleans piece by piece, because line ends and tabs of a string mean something. */
static void clean_string(char *text, size_t len, const char *raw)
{
    size_t out = 0;
    for (size_t at = 0; at < len;) {
        size_t n = 0;
        while (at + n < len && raw[at + n] != '\n' && raw[at + n] != '\t' && raw[at + n] != ' ')
            n++;
        if (n) {
            nrg_copy_clean(text + out, n + 1, raw + at, n);
            out += strlen(text + out);
        }
        at += n;
        if (at < len)
            text[out++] = raw[at++];
    }
    text[out] = '\0';
}

static const char *decode_string(struct ts *ts, const char *p, const char *end)
{
    size_t len = 0;
    char *raw = nrg_arena_alloc(&ts->model->arena, (size_t)(end - p) + 1);
    char *text = nrg_arena_alloc(&ts->model->arena, (size_t)(end - p) + 1);
    if (!raw || !text)
        return NULL;
    while (p < end) {
        if (*p == '\\')
            p += 1 + decode_escape(p + 1, end, &raw[len++]);
        else
            raw[len++] = *p++;
    }
    clean_string(text, len, raw);
    return text;
}

int ts_string(struct ts *ts, const char **out)
{
    bool escaped;
    if (!ts_take(ts, '"'))
        return TS_SYNTAX;
    const char *end = closing_quote(ts, &escaped);
    if (!end)
        return TS_SYNTAX;
    *out = escaped ? decode_string(ts, ts->p, end) : ts_intern(ts, ts->p, (size_t)(end - ts->p));
    ts->p = end + 1;
    return *out ? 0 : ts_no_memory(ts);
}
