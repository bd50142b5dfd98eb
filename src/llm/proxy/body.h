/*
 * Where the body of an HTTP/1.1 message ends, found in the bytes as they come, in any pieces. What
 * is passed on is written on the way: bytes and chunks as they are, trailers that mean the same
 * behind a body as in a head. Extensions of chunks, and blanks after their sizes, are one
 * connection's (RFC 9112, 7.1.1) and stay behind, as do trailers that only a head may have
 * (nrg_http_head_only). What the chunks carry is shown to a callback.
 *
 * Refused (-EBADMSG): chunk sizes that are no number or beyond 2^60, anything but `;` behind their
 * blanks, quotes that do not end, trailers that are not `Name: value`, line ends that are not
 * CR LF, control characters, more than 8 KiB of extension or of trailers.
 *
 * Plain data, nothing is allocated. Any thread.
 */
#ifndef NRG_LLM_PROXY_BODY_H
#define NRG_LLM_PROXY_BODY_H

#include <sys/types.h>

#include "llm/proxy/head.h"

#define NRG_HTTP_NAME_KEPT 32 /* longer than any name that is dropped */
/* So many bytes more than it takes may a call pass on: what was kept, and a CR. */
#define NRG_HTTP_BODY_MORE (NRG_HTTP_NAME_KEPT + 2)

struct nrg_http_body {
    enum nrg_http_framing framing;
    int state;
    uint64_t left;   /* of the length, or of the chunk */
    unsigned digits; /* of the chunk's size */
    unsigned line;   /* bytes of extensions and trailers */
    unsigned named;  /* bytes of the trailer's name */
    bool drops;      /* the trailer is not passed on */
    bool at_end;     /* all but the last line end of a chunked body was taken */
    bool done;
    char name[NRG_HTTP_NAME_KEPT]; /* the trailer's, until it is known whether it passes */
};

void nrg_http_body_init(struct nrg_http_body *body, enum nrg_http_framing framing, uint64_t length);

/*
 * Takes bytes of the body; returns how many belong to it, which is less than n at its end. Stops
 * once before the line end that ends a chunked body, with at_end set, so that trailers can be
 * added; the next call goes on. `passed` and `carried` may be NULL.
 */
typedef void nrg_http_carried_fn(void *arg, const char *at, size_t n);
ssize_t nrg_http_body_take(struct nrg_http_body *body, const char *at, size_t n,
                           struct nrg_http_out *passed, nrg_http_carried_fn *carried, void *arg);
/* The sender closed the connection: whether the body was complete. */
bool nrg_http_body_ended(const struct nrg_http_body *body);

#endif
