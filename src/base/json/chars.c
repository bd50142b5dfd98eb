/*
 * See internal.h. Texts are found with memchr and copied in pieces; nearly all have no escape in
 * them. Skipping looks at one byte at a time by a table, and jumps over texts.
 */
#include "base/internal.h"

#include <errno.h>
#include <string.h>

size_t nrg_json_fill(struct nrg_json_stream *s, size_t want)
{
    if (s->end - s->at >= want || s->at_end)
        return s->end - s->at;
    memmove(s->buffer, s->buffer + s->at, s->end - s->at);
    s->before_bytes += s->at;
    s->end -= s->at;
    s->at = 0;
    while (s->end < want && !s->at_end) {
        errno = 0;
        size_t n = fread(s->buffer + s->end, 1, NRG_JSON_BUFFER - s->end, s->in);
        s->end += n;
        s->at_end = n == 0;
        if (n == 0 && ferror(s->in))
            s->error = errno ? -errno : -EIO;
    }
    return s->end;
}

void nrg_json_skip_mark(struct nrg_json_stream *s)
{
    if (nrg_json_fill(s, 3) >= 3 && !memcmp(s->buffer + s->at, "\xef\xbb\xbf", 3))
        s->at += 3;
}

static void append_text(struct nrg_json_stream *s, const char *bytes, size_t len)
{
    size_t room = NRG_JSON_TEXT_MAX - s->len;
    s->cut |= len > room;
    len = len > room ? room : len;
    memcpy(s->text + s->len, bytes, len);
    s->len += len;
}

static int parse_hex4(const char *p)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], digit = c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
        if (digit < 0 || digit > 15 || (c > '9' && (c | 32) < 'a'))
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

static void add_code(struct nrg_json_stream *s, unsigned code)
{
    char utf8[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        utf8[i] = (char)(0x80 | (code & 0x3f));
    utf8[0] = (char)(lead[n] | code);
    append_text(s, utf8, n);
}

/* After "\u". Half of a surrogate pair without the other becomes '?'. */
static void read_unicode(struct nrg_json_stream *s)
{
    int code = nrg_json_fill(s, 4) >= 4 ? parse_hex4(s->buffer + s->at) : -1;
    if (code < 0) {
        append_text(s, "?", 1);
        return;
    }
    s->at += 4;
    if (code >= 0xd800 && code < 0xdc00 && nrg_json_fill(s, 6) >= 6 && s->buffer[s->at] == '\\' &&
        s->buffer[s->at + 1] == 'u') {
        int low = parse_hex4(s->buffer + s->at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            s->at += 6;
            add_code(s, 0x10000u + ((unsigned)(code - 0xd800) << 10) + (unsigned)(low - 0xdc00));
            return;
        }
    }
    if (code >= 0xd800 && code < 0xe000)
        append_text(s, "?", 1);
    else
        add_code(s, (unsigned)code);
}

static void read_escape(struct nrg_json_stream *s)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = s->buffer[s->at++];
    const char *known = c ? strchr(from, c) : NULL;
    if (known)
        append_text(s, &to[known - from], 1);
    else if (c == 'u')
        read_unicode(s);
    else
        append_text(s, &c, 1);
}

static size_t skip_blanks_at(const struct nrg_json_stream *s, size_t at)
{
    while (at < s->end && (s->buffer[at] == ' ' || s->buffer[at] == '\n' || s->buffer[at] == '\r' ||
                           s->buffer[at] == '\t'))
        at++;
    return at;
}

/* Whether the quote before s->at ends a text that was written without escapes. */
static bool ends_raw_text(struct nrg_json_stream *s)
{
    nrg_json_fill(s, 256);
    size_t at = skip_blanks_at(s, s->at);
    if (at == s->end)
        return true;
    char c = s->buffer[at];
    if (c == ':')
        return true;
    if (c == ',') {
        at = skip_blanks_at(s, at + 1);
        return at == s->end || (s->buffer[at] && strchr("\"{[}]-0123456789tfnNI", s->buffer[at]));
    }
    if (c != '}' && c != ']')
        return false;
    at = skip_blanks_at(s, at + 1);
    return at == s->end || (s->buffer[at] && strchr(",}]", s->buffer[at]));
}

/* Up to the closing quote; `keep`: appends what it reads to s->text. False: the file ends before.
 */
static bool scan_raw_text(struct nrg_json_stream *s, bool keep)
{
    for (;;) {
        if (!nrg_json_fill(s, 1))
            return false;
        const char *from = s->buffer + s->at;
        const char *quote = memchr(from, '"', s->end - s->at);
        size_t len = quote ? (size_t)(quote - from) : s->end - s->at;
        if (keep)
            append_text(s, from, len);
        s->at += len;
        if (!quote)
            continue;
        s->at++;
        if (ends_raw_text(s))
            return true;
        if (keep)
            append_text(s, "\"", 1);
    }
}

static bool scan_escaped_text(struct nrg_json_stream *s, bool keep)
{
    for (;;) {
        if (!nrg_json_fill(s, 1))
            return false;
        const char *from = s->buffer + s->at;
        size_t have = s->end - s->at;
        const char *quote = memchr(from, '"', have);
        size_t len = quote ? (size_t)(quote - from) : have;
        const char *escape = memchr(from, '\\', len);
        len = escape ? (size_t)(escape - from) : len;
        if (keep)
            append_text(s, from, len);
        s->at += len + (escape || quote);
        if (!escape && quote)
            return true;
        if (escape && !nrg_json_fill(s, 1))
            return false;
        if (escape && keep)
            read_escape(s);
        else if (escape)
            s->at++;
    }
}

static bool scan_text(struct nrg_json_stream *s, bool keep)
{
    return s->flags & NRG_JSON_RAW_TEXTS ? scan_raw_text(s, keep) : scan_escaped_text(s, keep);
}

bool nrg_json_read_text(struct nrg_json_stream *s)
{
    s->len = 0;
    s->cut = false;
    bool ended = scan_text(s, true);
    s->text[s->len] = '\0';
    return ended;
}

static bool in_word(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.' || c == '_';
}

void nrg_json_read_word(struct nrg_json_stream *s)
{
    s->len = 0;
    s->cut = false;
    while (nrg_json_fill(s, 1)) {
        size_t from = s->at;
        while (s->at < s->end && in_word((unsigned char)s->buffer[s->at]))
            s->at++;
        append_text(s, s->buffer + from, s->at - from);
        if (s->at < s->end)
            break;
    }
    s->text[s->len] = '\0';
}

bool nrg_json_skip_brackets(struct nrg_json_stream *s)
{
    uint64_t open = 1;
    while (nrg_json_fill(s, 1)) {
        while (s->at < s->end) {
            char c = s->buffer[s->at++];
            if (c == '"') {
                if (!scan_text(s, false))
                    return false;
            } else if (c == '{' || c == '[') {
                open++;
            } else if ((c == '}' || c == ']') && --open == 0) {
                return true;
            }
        }
    }
    return false;
}
