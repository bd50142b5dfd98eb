/*
 * Bytes and the cursor: the small functions that every part of the TorchScript reader uses in its
 * inner loops. Inline, because a call per byte would cost more than the work. Nothing here
 * allocates or can fail.
 */
#ifndef NRG_GRAPH_TORCHSCRIPT_LEX_H
#define NRG_GRAPH_TORCHSCRIPT_LEX_H

#include <string.h>

#include "graph/torchscript/internal.h"

enum ts_class {
    TS_BLANK = 1, /* space, tab, carriage return */
    TS_NAME = 2,  /* may be in a value's name or a node's kind */
    TS_IDENT = 4, /* letter, digit, _ */
    TS_DIGIT = 8,
    TS_STOP = 16, /* opens, closes or ends something in a type */
};
extern const uint8_t ts_classes[256];

static inline bool ts_is(char c, unsigned class)
{
    return ts_classes[(uint8_t)c] & class;
}

static inline const char *ts_after_blanks(const char *p, const char *end)
{
    while (p < end && ts_is(*p, TS_BLANK))
        p++;
    return p;
}

static inline void ts_skip_blanks(struct ts *ts)
{
    ts->p = ts_after_blanks(ts->p, ts->end);
}

/* The character at the cursor, 0 at the end (and for a NUL byte: no syntax has one). */
static inline char ts_peek(const struct ts *ts)
{
    return ts->p < ts->end ? *ts->p : '\0';
}

static inline bool ts_take(struct ts *ts, char c)
{
    if (ts_peek(ts) != c)
        return false;
    ts->p++;
    return true;
}

static inline bool ts_looking_at(const struct ts *ts, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(ts->end - ts->p) >= len && !memcmp(ts->p, word, len);
}

static inline bool ts_take_word(struct ts *ts, const char *word)
{
    if (!ts_looking_at(ts, word))
        return false;
    ts->p += strlen(word);
    return true;
}

static inline const char *ts_end_of_line(const char *p, const char *end)
{
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    return nl ? nl : end;
}

static inline const char *ts_line_end(const struct ts *ts)
{
    return ts_end_of_line(ts->p, ts->end);
}

static inline const char *ts_find_word(const char *at, const char *end, const char *word)
{
    return at && at < end ? memmem(at, (size_t)(end - at), word, strlen(word)) : NULL;
}

static inline bool ts_equals(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

/* Blanks and ends of lines, with the prefixes that logs put before a line. */
void ts_skip_space(struct ts *ts);
/* Past the name that begins at `at`. */
const char *ts_name_end(const char *at, const char *end);
/* The number of the line that holds `at`; must not go backwards. */
uint32_t ts_line_at(struct ts *ts, const char *at);

#endif
