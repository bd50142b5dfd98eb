/*
 * Bodies of requests that are held until they are complete, so that usage can be asked for
 * (usage.h). The head waits in the buffer to the server, without its framing, which depends on
 * what becomes of the body. A body that is longer than NRG_HOLD_MOST is passed on as it is, as is
 * one that needs no change; a changed one has a Content-Length of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "llm/proxy/internal.h"

/* What comes last may go beyond the most that is held. */
static size_t hold_size(const struct nrg_http_head *head)
{
    return NRG_HTTP_BODY_MORE + (head->framing == NRG_BODY_CHUNKED
                                     ? NRG_HOLD_MOST + NRG_PROXY_BUFFER
                                     : (size_t)head->length);
}

bool nrg_hold_begin(struct nrg_connection *c, const struct nrg_http_head *head)
{
    const struct nrg_llm_api *api = c->request.api;
    bool chunked = head->framing == NRG_BODY_CHUNKED;
    nrg_hold_release(c);
    /* Who waits for "100 Continue" would wait for ever. */
    if (!c->proxy->options.ask_usage || !api || !api->may_ask || head->expects ||
        (!chunked && (head->framing != NRG_BODY_LENGTH || head->length > NRG_HOLD_MOST)))
        return false;
    c->hold.at = malloc(hold_size(head));
    return c->hold.at;
}

void nrg_hold_release(struct nrg_connection *c)
{
    free(c->hold.at);
    c->hold = (struct nrg_proxy_hold){0};
}

static void carry(void *arg, const char *at, size_t n)
{
    struct nrg_http_out *out = arg;
    nrg_http_add(out, at, n);
}

/* What the chunks carry, in a buffer of the same size. */
static char *without_chunks(const struct nrg_proxy_hold *hold, size_t *size)
{
    struct nrg_http_body body;
    struct nrg_http_out out = {malloc(hold->n), hold->n, 0};
    size_t i = 0;
    nrg_http_body_init(&body, NRG_BODY_CHUNKED, 0);
    while (out.at && i < hold->n && !body.done) {
        ssize_t taken = nrg_http_body_take(&body, hold->at + i, hold->n - i, NULL, carry, &out);
        i += taken > 0 ? (size_t)taken : 0; /* it was taken once before */
    }
    *size = out.n;
    return out.at;
}

/* The body with the patch, in place of the one that is held. */
static void apply(struct nrg_connection *c, const char *body, size_t n,
                  const struct nrg_usage_patch *patch)
{
    size_t more = strlen(patch->text), rest = patch->at + patch->cut;
    struct nrg_http_out out = {malloc(n + more), n + more, 0};
    if (!out.at)
        return;
    nrg_http_add(&out, body, patch->at);
    nrg_http_add(&out, patch->text, more);
    nrg_http_add(&out, body + rest, n - rest);
    nrg_hold_release(c);
    c->hold = (struct nrg_proxy_hold){.at = out.at, .n = out.n};
    c->asked_usage = true;
}

static void ask_usage(struct nrg_connection *c)
{
    struct nrg_usage_patch patch;
    bool chunked = c->ask_body.framing == NRG_BODY_CHUNKED;
    size_t n = c->hold.n;
    char *plain = chunked ? without_chunks(&c->hold, &n) : NULL;
    const char *body = chunked ? plain : c->hold.at;
    if (body && n && nrg_usage_ask(body, n, &patch))
        apply(c, body, n, &patch);
    free(plain);
}

void nrg_hold_decide(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *to = &c->to_server;
    uint64_t length = c->hold.length;
    size_t head = c->hold.head;
    if (c->ask_body.done)
        ask_usage(c);
    struct nrg_http_out out = {to->at + head, NRG_PROXY_BUFFER - head, 0};
    if (c->ask_body.framing == NRG_BODY_CHUNKED && !c->asked_usage)
        nrg_http_addf(&out, "Transfer-Encoding: chunked\r\n\r\n");
    else
        nrg_http_addf(&out, "Content-Length: %llu\r\n\r\n",
                      (unsigned long long)(c->asked_usage ? c->hold.n : length));
    c->asking = NRG_ASK_HELD;
    c->answering = NRG_ANSWER_HEAD;
    to->from = 0;
    to->to = head + out.n;
}

bool nrg_hold_send(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *to = &c->to_server;
    size_t room = nrg_buffer_room(to), n = c->hold.n - c->hold.sent;
    n = n < room ? n : room;
    memcpy(to->at + to->to, c->hold.at + c->hold.sent, n);
    to->to += n;
    c->hold.sent += n;
    if (c->hold.sent < c->hold.n)
        return n > 0;
    c->asking = c->ask_body.done ? NRG_ASK_DONE : NRG_ASK_BODY;
    nrg_hold_release(c);
    return true;
}
