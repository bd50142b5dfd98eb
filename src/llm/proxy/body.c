/* See body.h. */
#include "llm/proxy/body.h"

#include <errno.h>

#define MOST_LINE_BYTES 8192u
#define MOST_CHUNK      (1ULL << 60)

enum state {
    SIZE,      /* hex digits of a chunk's size */
    EXTENSION, /* what follows them */
    SIZE_LF,   /* the LF of that line */
    DATA,      /* of a chunk or of a length */
    DATA_CR,
    DATA_LF,
    TRAILER,    /* at the begin of a line */
    TRAILER_IN, /* inside of one */
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

static int take_size(struct nrg_http_body *b, unsigned char c)
{
    int digit = hex_digit(c);
    if (digit >= 0) {
        b->left = b->left * 16 + (unsigned)digit;
        return ++b->digits > 16 || b->left > MOST_CHUNK ? -EBADMSG : SIZE;
    }
    if (!b->digits)
        return -EBADMSG;
    b->digits = 0;
    return c == '\r' ? SIZE_LF : c == ';' || c == ' ' || c == '\t' ? EXTENSION : -EBADMSG;
}

/* A byte of an extension or trailer, which `in` stays in until CR. */
static int take_text(struct nrg_http_body *b, unsigned char c, enum state in, enum state lf)
{
    if (c == '\r')
        return (int)lf;
    if (++b->line > MOST_LINE_BYTES || (c < ' ' && c != '\t') || c == 0x7f)
        return -EBADMSG;
    return (int)in;
}

static int take_byte(struct nrg_http_body *b, unsigned char c)
{
    switch ((enum state)b->state) {
    case SIZE:
        return take_size(b, c);
    case EXTENSION:
        return take_text(b, c, EXTENSION, SIZE_LF);
    case SIZE_LF:
        b->line = b->left ? 0 : b->line; /* trailers are limited in all */
        return c != '\n' ? -EBADMSG : b->left ? DATA : TRAILER;
    case DATA_CR:
        return c == '\r' ? DATA_LF : -EBADMSG;
    case DATA_LF:
        return c == '\n' ? SIZE : -EBADMSG;
    case TRAILER:
    case TRAILER_IN:
        return take_text(b, c, TRAILER_IN, TRAILER_LF);
    case TRAILER_LF:
        return c == '\n' ? TRAILER : -EBADMSG;
    case LAST_CR:
        return c == '\r' ? LAST_LF : -EBADMSG;
    case LAST_LF:
        b->done = c == '\n';
        return b->done ? LAST_LF : -EBADMSG;
    case DATA:
        break;
    }
    return -EBADMSG;
}

static size_t take_data(struct nrg_http_body *b, const char *at, size_t n,
                        nrg_http_carried_fn *carried, void *arg)
{
    size_t part = b->left < n ? (size_t)b->left : n;
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
                           nrg_http_carried_fn *carried, void *arg)
{
    size_t i = 0;
    while (i < n && !b->done) {
        if (b->state == DATA) {
            i += take_data(b, at + i, n - i, carried, arg);
            continue;
        }
        if (b->state == TRAILER && at[i] == '\r') {
            b->state = LAST_CR;
            b->at_end = true;
            return (ssize_t)i;
        }
        int next = take_byte(b, (unsigned char)at[i]);
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
