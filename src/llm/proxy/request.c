/* The way from the client to the server. See proxy.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/proxy/allowed.h"
#include "llm/proxy/internal.h"

#define REUSE_NS (4 * NRG_NS_PER_S) /* many servers close idle connections after 5 s */

static size_t take_slot(struct nrg_proxy *p)
{
    size_t slot = 0;
    while (p->slots[slot])
        slot++;
    p->slots[slot] = true;
    return slot;
}

static void count_request(struct nrg_connection *c, const struct nrg_http_head *head)
{
    struct nrg_proxy *p = c->proxy;
    const struct nrg_llm_api *api = nrg_llm_api_of(head);
    nrg_llm_scan_init(&c->ask_scan, api ? NRG_SCAN_JSON : NRG_SCAN_NOTHING);
    nrg_llm_scan_init(&c->answer_scan, NRG_SCAN_NOTHING);
    p->figures.requests++;
    c->counted = true;
    c->request = (struct nrg_proxy_request){.id = ++p->next_id,
                                            .slot = take_slot(p),
                                            .api = api,
                                            .begin_ns = p->now_ns,
                                            .seen = c->answer_scan.seen};
    if (!api)
        nrg_path_kind(head, c->request.path);
    p->events.begin(p->events.arg, &c->request);
}

void nrg_request_end(struct nrg_connection *c, enum nrg_proxy_outcome outcome)
{
    struct nrg_proxy *p = c->proxy;
    if (!c->counted)
        return;
    c->counted = false;
    p->streams -= c->request.streamed && c->request.first_ns;
    c->request.seen = c->answer_scan.seen;
    if (c->request.api)
        nrg_llm_seen_settle(&c->request.seen, c->request.api);
    if (outcome == NRG_REQUEST_ANSWERED && c->request.streamed && c->request.seen.failed)
        outcome = NRG_REQUEST_BROKEN;
    if (!c->request.seen.model[0])
        nrg_copy(c->request.seen.model, sizeof c->request.seen.model, c->ask_scan.seen.model);
    c->request.outcome = outcome;
    if (!c->request.end_ns)
        c->request.end_ns = p->now_ns;
    p->slots[c->request.slot] = false;
    p->events.end(p->events.arg, &c->request);
}

void nrg_request_refuse(struct nrg_connection *c, int status, const char *what, const char *why)
{
    char body[512];
    struct nrg_proxy_buffer *to = &c->to_client;
    int n = snprintf(body, sizeof body,
                     "{\"error\":{\"message\":\"nrg llm proxy: %s%s%s\",\"type\":\"proxy_error\","
                     "\"code\":%d}}\n",
                     what, *why ? ": " : "", why, status);
    struct nrg_http_out out = {to->at + to->to, nrg_buffer_room(to), 0};
    out.at = to->at + to->to; /* making room may have moved it */
    nrg_http_addf(&out,
                  "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                  "Connection: close\r\n\r\n",
                  status, what, n);
    if (!c->to_head)
        nrg_http_add(&out, body, (size_t)n);
    if (out.n <= out.size)
        to->to += out.n;
    c->close_client = true;
    c->answering = NRG_ANSWER_DONE;
    c->request.status = status;
    nrg_connection_drop_server(c);
    nrg_request_end(c, NRG_REQUEST_BROKEN);
}

void nrg_request_fail(struct nrg_connection *c, int status, const char *why)
{
    c->proxy->figures.failed++;
    nrg_request_refuse(c, status, status == 504 ? "Gateway Timeout" : "Bad Gateway", why);
}

static void refuse_request(struct nrg_connection *c, bool to_head, int status, const char *what,
                           const char *why)
{
    c->proxy->figures.refused++;
    c->asking = NRG_ASK_BODY; /* what follows is not read as a request */
    c->to_head = to_head;
    nrg_request_refuse(c, status, what, why);
}

static void give_up(struct nrg_connection *c, bool in_body, int status, const char *what,
                    const char *why)
{
    c->request.status = status;
    nrg_request_end(c, NRG_REQUEST_CANCELLED);
    refuse_request(c, in_body && c->to_head, status, what, why);
}

bool nrg_request_cut(struct nrg_connection *c)
{
    bool in_head = c->asking == NRG_ASK_HEAD && c->answering == NRG_ANSWER_NONE;
    bool in_body = (c->asking == NRG_ASK_BODY && c->answering == NRG_ANSWER_HEAD) ||
                   (c->asking == NRG_ASK_HOLD && c->answering == NRG_ANSWER_NONE);
    if (!in_body && !(in_head && nrg_buffer_used(&c->from_client)))
        return false;
    give_up(c, in_body, 400, "Bad Request", "it ends too early"); /* maybe it closed both sides */
    return true;
}

void nrg_request_give_up(struct nrg_connection *c, int status, const char *what, const char *why)
{
    if (c->answering <= NRG_ANSWER_HEAD) {
        give_up(c, c->asking != NRG_ASK_HEAD, status, what, why);
        nrg_connection_pump(c);
    } else {
        nrg_connection_close(c, NRG_REQUEST_CANCELLED);
    }
}

static bool refuse_head(struct nrg_connection *c, int rc, const struct nrg_http_head *head)
{
    if (rc == -E2BIG)
        refuse_request(c, false, 431, "Request Header Fields Too Large", head->why);
    else
        refuse_request(c, false, 400, "Bad Request", head->why);
    return true;
}

/* A connection that is there may have been closed by the server since, so it must be fresh. What
 * the server said after its last answer is no answer to this request. */
static bool ensure_server(struct nrg_connection *c)
{
    struct nrg_proxy *p = c->proxy;
    if (c->server.state != NRG_LINK_CLOSED &&
        (nrg_buffer_used(&c->from_server) || p->now_ns - c->answered_ns > REUSE_NS))
        nrg_connection_drop_server(c);
    if (c->server.state != NRG_LINK_CLOSED)
        return true;
    int rc = nrg_link_connect(&c->server, &p->upstream, p->now_ns);
    if (rc)
        nrg_request_fail(c, 502, c->server.why);
    return !rc;
}

static void begin_request(struct nrg_connection *c, const struct nrg_http_head *head)
{
    struct nrg_proxy *p = c->proxy;
    struct nrg_http_out out = {c->to_server.at, NRG_PROXY_BUFFER, 0};
    c->to_head = nrg_http_text_is(head->method, "HEAD");
    c->client_1_0 = head->http_1_0;
    c->close_client = head->last || head->http_1_0;
    c->close_server = c->unchunk = c->trailer = false;
    c->wants_joules = p->options.joules || head->wants_joules;
    c->asked_usage = false;
    count_request(c, head);
    nrg_limits_await_body(c, head);
    bool holds = nrg_hold_begin(c, head);
    nrg_http_write_request(&out, head, p->upstream.authority, p->upstream.prefix, holds);
    nrg_http_body_init(&c->ask_body, head->framing, head->length);
    c->asking = holds ? NRG_ASK_HOLD : c->ask_body.done ? NRG_ASK_DONE : NRG_ASK_BODY;
    c->answering = holds ? NRG_ANSWER_NONE : NRG_ANSWER_HEAD;
    if (out.n > out.size) {
        nrg_request_refuse(c, 431, "Request Header Fields Too Large", "the head is too long");
        return;
    }
    if (holds) {
        c->hold.head = out.n;
        c->hold.length = head->length;
        return; /* the server is not needed yet */
    }
    bool there = ensure_server(c);
    c->to_server.from = 0;
    c->to_server.to = there ? out.n : 0;
}

/* Once for each of both: a page that asks again and again is told about once. */
static void tell_name(struct nrg_proxy *p, bool *told, const char *field, struct nrg_http_text name)
{
    char shown[128], text[256];
    if (*told)
        return;
    *told = true;
    nrg_copy_clean(shown, sizeof shown, name.at, name.n);
    snprintf(text, sizeof text, "refused a request with %s: %s (--allow-host allows it)", field,
             shown);
    p->events.notice(p->events.arg, text);
}

/* Answers requests that are not passed on. */
static bool turned_away(struct nrg_connection *c, const struct nrg_http_head *head)
{
    struct nrg_proxy *p = c->proxy;
    const char *const *names = p->options.allowed;
    int status = 0;
    const char *what = "Not Implemented", *why = "WebSockets are not relayed";
    if (head->host.at && !nrg_allowed_host(names, head->host)) {
        status = 421;
        what = "Misdirected Request";
        why = "the name in Host is not allowed (--allow-host)";
        tell_name(p, &p->told_host, "Host", head->host);
    } else if (head->origin.at && !nrg_allowed_origin(names, head->origin, head->host)) {
        status = 403;
        what = "Forbidden";
        why = "the page in Origin is not allowed (--allow-host)";
        tell_name(p, &p->told_origin, "Origin", head->origin);
    } else if (head->upgrade) {
        status = 501;
    } else if (nrg_http_text_is(head->method, "CONNECT")) {
        status = 501;
        why = "CONNECT is not relayed";
    }
    if (status)
        refuse_request(c, nrg_http_text_is(head->method, "HEAD"), status, what, why);
    return status;
}

static bool take_head(struct nrg_connection *c)
{
    struct nrg_http_head head;
    struct nrg_proxy_buffer *in = &c->from_client;
    if (!nrg_buffer_used(in))
        return false;
    int rc = nrg_http_head_parse(&head, in->at + in->from, nrg_buffer_used(in), false);
    if (!rc)
        return false;
    if (rc < 0)
        return refuse_head(c, rc, &head);
    if (turned_away(c, &head))
        return true;
    begin_request(c, &head);
    nrg_buffer_take(in, head.size);
    return true;
}

static void on_asked(void *arg, const char *at, size_t n)
{
    struct nrg_connection *c = arg;
    nrg_llm_scan_feed(&c->ask_scan, at, n);
}

/* Takes up to n bytes of the body to another place, which has room for NRG_HTTP_BODY_MORE more.
 * False: the request is over. */
static bool move_body(struct nrg_connection *c, size_t n, struct nrg_http_out *to)
{
    struct nrg_proxy_buffer *in = &c->from_client;
    ssize_t taken = nrg_http_body_take(&c->ask_body, in->at + in->from, n, to, on_asked, c);
    if (taken < 0) {
        c->proxy->figures.refused++;
        if (c->answering <= NRG_ANSWER_HEAD)
            nrg_request_refuse(c, 400, "Bad Request", "a chunk or trailer that is none");
        else
            nrg_connection_close(c, NRG_REQUEST_CANCELLED);
        return false;
    }
    nrg_buffer_take(in, (size_t)taken);
    return true;
}

static bool take_body(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *buffer = &c->to_server;
    size_t room = nrg_buffer_room(buffer), n = nrg_buffer_used(&c->from_client);
    if (!n || room <= NRG_HTTP_BODY_MORE)
        return false;
    struct nrg_http_out out = {buffer->at + buffer->to, room, 0};
    room -= NRG_HTTP_BODY_MORE;
    if (!move_body(c, n < room ? n : room, &out))
        return true;
    buffer->to += out.n;
    if (c->ask_body.done)
        c->asking = NRG_ASK_DONE;
    return true;
}

/* A body of which all is wanted before the server gets any of it. */
static bool hold_body(struct nrg_connection *c)
{
    size_t n = nrg_buffer_used(&c->from_client);
    if (!n && !c->ask_body.done)
        return false;
    struct nrg_http_out out = {c->hold.at + c->hold.n, n + NRG_HTTP_BODY_MORE, 0};
    if (!c->ask_body.done && !move_body(c, n, &out))
        return true;
    c->hold.n += out.n;
    if ((c->ask_body.done || c->hold.n > NRG_HOLD_MOST) && ensure_server(c))
        nrg_hold_decide(c);
    return true;
}

bool nrg_request_advance(struct nrg_connection *c)
{
    if (c->asking == NRG_ASK_HEAD && c->answering == NRG_ANSWER_NONE)
        return take_head(c);
    if (c->asking == NRG_ASK_HOLD && c->answering == NRG_ANSWER_NONE)
        return hold_body(c);
    if (c->asking == NRG_ASK_HELD && c->answering != NRG_ANSWER_DONE)
        return nrg_hold_send(c);
    /* After an early answer the rest of the body goes nowhere. */
    if (c->asking == NRG_ASK_BODY && c->answering != NRG_ANSWER_DONE)
        return take_body(c);
    return false;
}
