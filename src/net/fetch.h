/*
 * Fetches a small document by HTTP or HTTPS with libcurl, which is loaded when it is first needed:
 * nrg runs where there is none. Certificates are verified; redirects are not followed; proxies of
 * the environment are not used; time and size have limits, whatever the other side does.
 *
 * New, free. One thread at a time per nrg_fetch; nrg_fetch_new first on the thread that starts the
 * others, because libcurl's own initialisation wants that. Connections are kept between calls.
 */
#ifndef NRG_NET_FETCH_H
#define NRG_NET_FETCH_H

#include <stddef.h>

#include "base/error.h"

struct nrg_fetch;

struct nrg_fetch_options {
    size_t max_bytes;            /* of an answer */
    long timeout_ms;             /* of a whole exchange */
    long connect_ms;             /* of its first part */
    const char *ca_file;         /* instead of the system's; NULL */
    const char *user, *password; /* NULL: none */
    const char *agent;           /* User-Agent; NULL: "nrg" */
};

/* Good until the next call. The body is terminated, and may hold any bytes before that. */
struct nrg_fetch_answer {
    long status;
    char content_type[128]; /* in small letters; "" when there is none */
    char *body;
    size_t len;
};

/* -ENOENT: libcurl is not installed, and err says what to install; -ENOMEM. */
int nrg_fetch_new(const struct nrg_fetch_options *options, struct nrg_fetch **fetch,
                  struct nrg_error *err);
void nrg_fetch_free(struct nrg_fetch *fetch);

/*
 * GET. `headers`: whole lines, NULL-terminated, or NULL. 0 for any status; else with the reason in
 * err: -ECONNREFUSED and -EHOSTUNREACH when nobody answers, -ETIMEDOUT, -EFBIG for more than
 * max_bytes, -EPERM when TLS can't be verified, -EPROTO for anything else.
 */
int nrg_fetch_get(struct nrg_fetch *fetch, const char *url, const char *const *headers,
                  struct nrg_fetch_answer *answer, struct nrg_error *err);

/* 0 when `url` is http:// or https:// with a host, without a password, blanks and control
 * characters; else -EINVAL with the reason. option: what it was given by, as errors name it. */
int nrg_fetch_check_url(const char *url, const char *option, struct nrg_error *err);
/* What may be kept and shown of a text with a URL: without the query and fragment of one of http://
 * or https://, which may hold a key. Other texts are copied as they are. */
void nrg_fetch_public_url(const char *url, char *to, size_t size);

#endif
