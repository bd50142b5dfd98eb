/* See body.h. */
#include "llm/proxy/body.h"

#include <errno.h>

#define MOST_LINE_BYTES 8192u
#define MOST_CHUNK      (1ULL << 60)

enum state {
    SIZE,      /* hex digits of a chunk's size */
    BLANK,     /* behind them */
    EXTENSION, /* behind ';' */
    QUOTED,    /* in one */
    ESCAPED,   /* behind a backslash there */
    SIZE_LF,   /* the LF of that line */
    DATA,      /* of a chunk or of a length */
    DATA_CR,
    DATA_LF,
    TRAILER, /* at the begin of a line */
    NAME,
    VALUE,
    TRAILER_LF,
    LAST_CR, /* what ends it all */
    LAST_LF,
};

void nrg_http_body_init(struct nrg_http_body *body, enum nrg_http_framing framing, uint64_t length)
{
    *body = (struct nrg_http_body){.framing = framing,
                                   .state = framing == NRG_BODY_CHUNKED ? SIZE : DATA,
                                   .left = framing == NRG_BODY_CLOSE ? UINT64_MAX : length};
    body->done = framing == NRG_BODY_NONE || (framing == NRG_BODY_LENGTH && !length);
    if (framing == NRG_BODY_CHUNKED)
        body->left = 0;
}

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void pass(struct nrg_http_out *passed, const char *at, size_t n)
{
    if (passed)
        nrg_http_add(passed, at, n);
}

static int take_size(struct nrg_http_body *b, char c, struct nrg_http_out *passed)
{
    int digit = hex_digit((unsigned char)c);
    if (digit >= 0) {
        b->left = b->left * 16 + (unsigned)digit;
        pass(passed, &c, 1);
        return ++b->digits > 16 || b->left > MOST_CHUNK ? -EBADMSG : SIZE;
    }
    if (!b->digits)
        return -EBADMSG;
    b->digits = 0;
    return c == '\r' ? SIZE_LF : c == ';' ? EXTENSION : c == ' ' || c == '\t' ? BLANK : -EBADMSG;
}

/* Whether the byte may be in an extension or a trailer. */
static bool is_text(struct nrg_http_body *b, char c)
{
    return ++b->line <= MOST_LINE_BYTES && ((unsigned char)c >= ' ' || c == '\t') && c != 0x7f;
}

/* What follows a chunk's size. None of it is passed on. */
static int take_extension(struct nrg_http_body *b, char c)
{
    bool quoted = b->state == QUOTED || b->state == ESCAPED;
    if (c == '\r' && !quoted)
        return SIZE_LF;
    if (!is_text(b, c))
        return -EBADMSG;
    if (b->state == BLANK)
        return c == ';' ? EXTENSION : c == ' ' || c == '\t' ? BLANK : -EBADMSG;
    if (quoted)
        return b->state == ESCAPED ? QUOTED : c == '"' ? EXTENSION : c == '\\' ? ESCAPED : QUOTED;
    return c == '"' ? QUOTED : EXTENSION;
}

/* A byte of a trailer's name, which is kept until it is known, or too long to be dropped. */
static int take_name(struct nrg_http_body *b, char c, struct nrg_http_out *passed)
{
    bool kept = b->named <= sizeof b->name;
    if (!is_text(b, c))
        return -EBADMSG;
    if (c == ':' && b->named) {
        b->drops = kept && nrg_http_head_only((struct nrg_http_text){b->name, b->named});
        if (kept && !b->drops)
            pass(passed, b->name, b->named);
        if (!b->drops)
            pass(passed, &c, 1);
        return VALUE;
    }
    if (!nrg_http_is_token((struct nrg_http_text){&c, 1}))
        return -EBADMSG;
    if (b->named < sizeof b->name)
        b->name[b->named] = c;
    else if (b->named == sizeof b->name)
        pass(passed, b->name, sizeof b->name);
    if (b->named >= sizeof b->name)
        pass(passed, &c, 1);
    b->named++;
    return NAME;
}

static int take_value(struct nrg_http_body *b, char c, struct nrg_http_out *passed)
{
    if (c == '\r')
        return TRAILER_LF;
    if (!is_text(b, c))
        return -EBADMSG;
    if (!b->drops)
        pass(passed, &c, 1);
    return VALUE;
}

/* The LF of a line end: both of its bytes are passed on, unless its line was not. */
static int take_line_feed(char c, bool drops, struct nrg_http_out *passed, enum state next)
{
    if (c != '\n')
        return -EBADMSG;
    if (!drops)
        pass(passed, "\r\n", 2);
    return (int)next;
}

static int take_byte(struct nrg_http_body *b, char c, struct nrg_http_out *passed)
{
    switch ((enum state)b->state) {
    case SIZE:
        return take_size(b, c, passed);
    case BLANK:
    case EXTENSION:
    case QUOTED:
    case ESCAPED:
        return take_extension(b, c);
    case SIZE_LF:
        b->line = b->left ? 0 : b->line; /* trailers are limited in all */
        return take_line_feed(c, false, passed, b->left ? DATA : TRAILER);
    case DATA_CR:
        return c == '\r' ? DATA_LF : -EBADMSG;
    case DATA_LF:
        return take_line_feed(c, false, passed, SIZE);
    case TRAILER:
        b->named = 0;
        return take_name(b, c, passed);
    case NAME:
        return take_name(b, c, passed);
    case VALUE:
        return take_value(b, c, passed);
    case TRAILER_LF:
        return take_line_feed(c, b->drops, passed, TRAILER);
    case LAST_CR:
        return c == '\r' ? LAST_LF : -EBADMSG;
    case LAST_LF:
        b->done = c == '\n';
        return take_line_feed(c, false, passed, LAST_LF);
    case DATA:
        break;
    }
    return -EBADMSG;
}

static size_t take_data(struct nrg_http_body *b, const char *at, size_t n,
                        struct nrg_http_out *passed, nrg_http_carried_fn *carried, void *arg)
{
    size_t part = b->left < n ? (size_t)b->left : n;
    pass(passed, at, part);
    if (carried)
        carried(arg, at, part);
    if (b->framing == NRG_BODY_CLOSE)
        return part;
    b->left -= part;
    if (!b->left) {
        b->done = b->framing == NRG_BODY_LENGTH;
        b->state = DATA_CR;
    }
    return part;
}

ssize_t nrg_http_body_take(struct nrg_http_body *b, const char *at, size_t n,
                           struct nrg_http_out *passed, nrg_http_carried_fn *carried, void *arg)
{
    size_t i = 0;
    while (i < n && !b->done) {
        if (b->state == DATA) {
            i += take_data(b, at + i, n - i, passed, carried, arg);
            continue;
        }
        if (b->state == TRAILER && at[i] == '\r') {
            b->state = LAST_CR;
            b->at_end = true;
            return (ssize_t)i;
        }
        int next = take_byte(b, at[i], passed);
        if (next < 0)
            return next;
        b->state = next;
        i++;
    }
    return (ssize_t)i;
}

bool nrg_http_body_ended(const struct nrg_http_body *b)
{
    return b->done || b->framing == NRG_BODY_CLOSE;
}
