/*
 * Chunked bodies as the relay of nrg llm proxy takes them, beside a second reader that has all
 * bytes at once and knows nothing of the first: both must agree whether it is one, where it ends,
 * what it carries and what is passed on, however the bytes are cut. What is passed on is taken
 * again and passed on unchanged. Input: a byte for the cuts, then the body.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "llm/proxy/body.h"

#define MOST 4096 /* below all limits of lines */

struct text {
    char at[2 * MOST];
    size_t n;
};

/* What a reader made of a body. */
struct reading {
    int outcome; /* 1 whole, 0 not yet, -1 none */
    size_t end;
    struct text carried, passed;
};

static void add(struct text *t, const char *at, size_t n)
{
    if (n > sizeof t->at - t->n)
        abort();
    memcpy(t->at + t->n, at, n);
    t->n += n;
}

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

/* The end of a line without control characters or quotes that stay open; NULL: it is not there. */
static const char *line_end(const char *at, const char *end, bool quotes, int *outcome)
{
    bool quoted = false;
    for (; at < end && *at != '\r'; at++) {
        if (is_control(*at))
            return *outcome = -1, NULL;
        if (quotes && quoted && *at == '\\') {
            if (++at < end && is_control(*at)) /* also a CR */
                return *outcome = -1, NULL;
            if (at == end)
                return NULL;
        } else
            quoted ^= quotes && *at == '"';
    }
    if (at == end)
        return NULL;
    if (quoted || (at + 1 < end && at[1] != '\n'))
        return *outcome = -1, NULL;
    return at + 1 < end ? at : NULL;
}

/* Past a chunk's head, with its size; NULL: it is not there. */
static const char *read_size(const char *at, const char *end, uint64_t *size, struct reading *r)
{
    size_t digits = 0;
    *size = 0;
    for (; at + digits < end && isxdigit((unsigned char)at[digits]); digits++) {
        const char digit[] = {at[digits], 0};
        *size = *size * 16 + strtoull(digit, NULL, 16);
        if (digits >= 16 || *size > 1ULL << 60)
            return r->outcome = -1, NULL;
    }
    const char *next = at + digits;
    if (next < end && !digits)
        return r->outcome = -1, NULL;
    add(&r->passed, at, digits);
    while (next < end && (*next == ' ' || *next == '\t'))
        next++;
    if (next < end && *next != ';' && *next != '\r')
        return r->outcome = -1, NULL;
    next = line_end(next, end, true, &r->outcome);
    if (next)
        add(&r->passed, "\r\n", 2);
    return next ? next + 2 : NULL;
}

static bool only_in_heads(const char *at, size_t n)
{
    static const char *const names[] = {"connection",
                                        "keep-alive",
                                        "proxy-connection",
                                        "te",
                                        "upgrade",
                                        "proxy-authorization",
                                        "proxy-authenticate",
                                        "content-length",
                                        "transfer-encoding",
                                        "trailer",
                                        "host",
                                        "expect",
                                        "authorization",
                                        "cookie",
                                        "set-cookie",
                                        "content-type",
                                        "content-encoding",
                                        "content-range",
                                        "location",
                                        "max-forwards",
                                        "x-nrg-joules"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !strncasecmp(names[i], at, n))
            return true;
    return false;
}

/* Trailers and the line that ends them; what is passed on of a line that is not there yet is no
 * matter. */
static void read_trailers(const char *begin, const char *at, const char *end, struct reading *r)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    while (at < end && *at != '\r') {
        size_t n = 0;
        while (at + n < end && (isalnum((unsigned char)at[n]) || (at[n] && strchr(marks, at[n]))))
            n++;
        if (at + n < end && (!n || at[n] != ':')) {
            r->outcome = -1;
            return;
        }
        const char *stop = line_end(at + n, end, false, &r->outcome);
        if (!stop)
            return;
        if (!only_in_heads(at, n))
            add(&r->passed, at, (size_t)(stop - at) + 2);
        at = stop + 2;
    }
    if (at + 1 < end && at[1] != '\n')
        r->outcome = -1;
    else if (at + 1 < end) {
        add(&r->passed, "\r\n", 2);
        r->outcome = 1;
        r->end = (size_t)(at - begin) + 2;
    }
}

static void read_whole(const char *begin, size_t n, struct reading *r)
{
    const char *at = begin, *end = begin + n;
    uint64_t size = 1;
    *r = (struct reading){0};
    while ((at = read_size(at, end, &size, r)) && size) {
        size_t there = (size_t)(end - at) < size ? (size_t)(end - at) : (size_t)size;
        add(&r->carried, at, there);
        add(&r->passed, at, there);
        at += there;
        if ((at < end && *at != '\r') || (at + 1 < end && at[1] != '\n'))
            r->outcome = -1;
        if (end - at < 2)
            return;
        if (r->outcome)
            return;
        add(&r->passed, at, 2);
        at += 2;
    }
    if (at)
        read_trailers(begin, at, end, r);
}

static void on_carried(void *arg, const char *at, size_t n)
{
    add(&((struct reading *)arg)->carried, at, n);
}

static void read_in_pieces(const char *at, size_t n, size_t step, struct reading *r)
{
    struct nrg_http_body body;
    *r = (struct reading){0};
    nrg_http_body_init(&body, NRG_BODY_CHUNKED, 0);
    while (r->end < n && !body.done) {
        size_t left = n - r->end < step ? n - r->end : step;
        struct nrg_http_out out = {r->passed.at + r->passed.n, left + NRG_HTTP_BODY_MORE, 0};
        if (r->passed.n + out.size > sizeof r->passed.at)
            abort();
        ssize_t taken = nrg_http_body_take(&body, at + r->end, left, &out, on_carried, r);
        if (taken < 0) {
            r->outcome = -1;
            return;
        }
        if ((size_t)taken > left || out.n > out.size || (!taken && !body.at_end))
            abort();
        body.at_end = false;
        r->end += (size_t)taken;
        r->passed.n += out.n;
    }
    r->outcome = body.done;
}

static void check_same(const struct reading *a, const struct reading *b)
{
    if (a->outcome != b->outcome)
        abort();
    if (a->outcome != 1)
        return;
    if (a->end != b->end || a->carried.n != b->carried.n || a->passed.n != b->passed.n ||
        memcmp(a->carried.at, b->carried.at, a->carried.n) != 0 ||
        memcmp(a->passed.at, b->passed.at, a->passed.n) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reading whole, pieces, again;
    if (!size || size > MOST)
        return 0;
    const char *at = (const char *)data + 1;
    read_whole(at, size - 1, &whole);
    const size_t steps[] = {1, SIZE_MAX / 2, 1 + data[0]};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        read_in_pieces(at, size - 1, steps[i], &pieces);
        check_same(&whole, &pieces);
    }
    if (whole.outcome != 1)
        return 0;
    read_in_pieces(whole.passed.at, whole.passed.n, 1 + data[0], &again);
    whole.end = whole.passed.n;
    check_same(&whole, &again);
    return 0;
}
