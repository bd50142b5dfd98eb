/*
 * Heads of HTTP/1.1 messages: read strictly, and written anew for the other side.
 *
 * What two programs could read differently is refused: both Content-Length and Transfer-Encoding,
 * several lengths, a length that is no number, codings other than chunked, a chunked body in
 * HTTP/1.0, folded lines, line ends without CR, blanks before a colon, control characters. Fields
 * that belong to one connection are not passed on (Connection and what it names, Keep-Alive, TE,
 * Upgrade, Proxy-…).
 *
 * Texts point into the bytes that were given. Nothing is allocated. Any thread.
 */
#ifndef NRG_LLM_PROXY_HEAD_H
#define NRG_LLM_PROXY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRG_HTTP_HEAD_MAX 16384

struct nrg_http_text {
    const char *at;
    size_t n;
};

enum nrg_http_framing { NRG_BODY_NONE, NRG_BODY_LENGTH, NRG_BODY_CHUNKED, NRG_BODY_CLOSE };

struct nrg_http_head {
    size_t size; /* with the empty line */
    struct nrg_http_text first, fields;
    struct nrg_http_text method, target; /* of a request */
    int status;                          /* of an answer */
    bool is_answer, http_1_0;
    bool last; /* the sender closes, or wants it closed, after this message */
    bool upgrade, wants_joules, encoded, expects;
    struct nrg_http_text connection, content_type, host, origin;
    enum nrg_http_framing framing; /* of an answer: as its fields say (nrg_http_answer_framing) */
    uint64_t length;
    const char *why; /* it is refused */
};

/* Bytes of the head; 0: not complete yet; -EBADMSG with head->why; -E2BIG. */
int nrg_http_head_parse(struct nrg_http_head *head, const char *at, size_t n, bool is_answer);

/* The body of an answer depends on the request's method, too. */
enum nrg_http_framing nrg_http_answer_framing(const struct nrg_http_head *head, bool to_head);

/* The field's next line, without its line end; false after the last. *at starts as fields.at. */
struct nrg_http_field {
    struct nrg_http_text name, value;
};
bool nrg_http_next_field(const struct nrg_http_head *head, const char **at,
                         struct nrg_http_field *field);
bool nrg_http_text_is(struct nrg_http_text text, const char *word); /* whatever the case */
bool nrg_http_is_token(struct nrg_http_text text);                  /* as names are */
/* A field that only means something in a head, of which a trailer must not speak: it frames or
 * routes the message, says who asks or what its body is, or belongs to one connection. */
bool nrg_http_head_only(struct nrg_http_text name);
/* Whether a list such as "close, TE" has the word. */
bool nrg_http_list_has(struct nrg_http_text list, struct nrg_http_text word);

/* Where heads are written: `n` beyond `size` says that there was no room. */
struct nrg_http_out {
    char *at;
    size_t size, n;
};
void nrg_http_add(struct nrg_http_out *out, const char *text, size_t n);
void nrg_http_addf(struct nrg_http_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The head for the server: its host, and its prefix before the path. Answers must come uncoded,
 * because they are read on their way. unframed: without the length of the body and the empty line,
 * which the caller adds. */
void nrg_http_write_request(struct nrg_http_out *out, const struct nrg_http_head *head,
                            const char *host, const char *prefix, bool unframed);
/* What the proxy adds to an answer. */
struct nrg_http_extra {
    bool close;    /* "Connection: close" */
    bool unframed; /* the body ends with the connection, or is none, whatever the server said */
    const char *joules; /* x-nrg-joules; NULL: none */
    bool trailer;       /* x-nrg-joules follows the body */
};
void nrg_http_write_answer(struct nrg_http_out *out, const struct nrg_http_head *head,
                           const struct nrg_http_extra *extra);

#endif
