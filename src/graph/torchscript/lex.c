/*
 * See lex.h. Lines are counted only when a number is needed, from the last place counted to,
 * with memchr: cheaper than a test per byte, and the parsers need not track ends of lines.
 *
 * A dump taken from PYTORCH_JIT_LOG_LEVEL has "[DUMP file.cpp:610] " before every line, one
 * quoted in a mail or an issue "> ". Both are skipped wherever a line may begin, so that no copy
 * of the text is needed.
 */
#include "graph/torchscript/lex.h"

#define LOG_PREFIX_MAX 300

#define I (TS_NAME | TS_IDENT)
#define D (TS_NAME | TS_IDENT | TS_DIGIT)
#define N TS_NAME
#define S TS_STOP
/* clang-format off */
const uint8_t ts_classes[256] = {
    ['\t'] = TS_BLANK, ['\r'] = TS_BLANK, [' '] = TS_BLANK, ['\n'] = S,
    ['('] = S, [')'] = S, ['['] = S, [']'] = S, ['{'] = S, ['}'] = S, [','] = S, ['='] = S,
    ['<'] = N | S, ['>'] = N | S, ['#'] = N | S, [':'] = N | S,
    ['!'] = N, ['"'] = N, ['$'] = N, ['%'] = N, ['&'] = N, ['\''] = N, ['*'] = N, ['+'] = N,
    ['-'] = N, ['.'] = N, ['/'] = N, ['?'] = N, ['@'] = N, ['\\'] = N, ['^'] = N,
    ['`'] = N, ['|'] = N, ['~'] = N,
    ['0' ... '9'] = D, ['A' ... 'Z'] = I, ['a' ... 'z'] = I, ['_'] = I,
    [0x80 ... 0xff] = N,
};
/* clang-format on */

static void skip_prefix(struct ts *ts)
{
    const char *p = ts->p, *end = ts->end;
    if (*p == '>') {
        while (p < end && (*p == '>' || ts_is(*p, TS_BLANK)))
            p++;
        ts->p = p;
        return;
    }
    const char *word = ++p;
    while (p < end && *p >= 'A' && *p <= 'Z')
        p++;
    if (p - word < 2 || p == end || !ts_is(*p, TS_BLANK))
        return;
    size_t max = (size_t)(end - p) < LOG_PREFIX_MAX ? (size_t)(end - p) : LOG_PREFIX_MAX;
    const char *close = memchr(p, ']', max);
    if (close && !memchr(p, '\n', (size_t)(close - p)))
        ts->p = close + 1;
}

void ts_skip_space(struct ts *ts)
{
    while (ts->p < ts->end) {
        if (*ts->p == '\n') {
            ts->p++;
            if (ts->p < ts->end && (*ts->p == '[' || *ts->p == '>'))
                skip_prefix(ts);
        } else if (ts_is(*ts->p, TS_BLANK)) {
            ts->p++;
        } else {
            break;
        }
    }
}

const char *ts_name_end(const char *at, const char *end)
{
    while (at < end && ts_is(*at, TS_NAME)) {
        if (*at == ':') {
            if (end - at < 2 || at[1] != ':')
                break;
            at++;
        }
        at++;
    }
    return at;
}

uint32_t ts_line_at(struct ts *ts, const char *at)
{
    const char *from = ts->counted;
    while (from < at && (from = memchr(from, '\n', (size_t)(at - from)))) {
        from++;
        ts->line++;
    }
    if (at > ts->counted)
        ts->counted = at;
    return ts->line;
}
