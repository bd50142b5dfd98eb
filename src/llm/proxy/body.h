/*
 * Where the body of an HTTP/1.1 message ends, found in the bytes as they come, in any pieces. The
 * bytes themselves are passed on as they are, chunk sizes and extensions included; what they carry
 * is shown to a callback on the way.
 *
 * Refused (-EBADMSG): chunk sizes that are no number or beyond 2^60, line ends that are not CR LF,
 * control characters in extensions and trailers, more than 8 KiB of either.
 *
 * Plain data, nothing is allocated. Any thread.
 */
#ifndef NRG_LLM_PROXY_BODY_H
#define NRG_LLM_PROXY_BODY_H

#include <sys/types.h>

#include "llm/proxy/head.h"

struct nrg_http_body {
    enum nrg_http_framing framing;
    int state;
    uint64_t left;   /* of the length, or of the chunk */
    unsigned digits; /* of the chunk's size */
    unsigned line;   /* bytes of extensions and trailers */
    bool at_end;     /* all but the last line end of a chunked body was taken */
    bool done;
};

void nrg_http_body_init(struct nrg_http_body *body, enum nrg_http_framing framing, uint64_t length);

/*
 * Takes bytes of the body; returns how many belong to it, which is less than n at its end. Stops
 * once before the line end that ends a chunked body, with at_end set, so that trailers can be
 * added; the next call goes on. `carried` may be NULL.
 */
typedef void nrg_http_carried_fn(void *arg, const char *at, size_t n);
ssize_t nrg_http_body_take(struct nrg_http_body *body, const char *at, size_t n,
                           nrg_http_carried_fn *carried, void *arg);
/* The sender closed the connection: whether the body was complete. */
bool nrg_http_body_ended(const struct nrg_http_body *body);

#endif
