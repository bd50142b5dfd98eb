/* The way from the server to the client. See proxy.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "llm/proxy/internal.h"

static bool type_is(struct nrg_http_text type, const char *word)
{
    const char *end = memchr(type.at ? type.at : "", ';', type.n);
    size_t n = end ? (size_t)(end - type.at) : type.n;
    while (n && type.at[n - 1] == ' ')
        n--;
    return n && nrg_http_text_is((struct nrg_http_text){type.at, n}, word);
}

/* A coded answer passes, but can't be read. */
static enum nrg_scan_form form_of(const struct nrg_http_head *head)
{
    if (head->encoded)
        return NRG_SCAN_NOTHING;
    if (type_is(head->content_type, "text/event-stream"))
        return NRG_SCAN_EVENTS;
    if (type_is(head->content_type, "application/x-ndjson") ||
        type_is(head->content_type, "application/jsonl"))
        return NRG_SCAN_LINES;
    return type_is(head->content_type, "application/json") ? NRG_SCAN_JSON : NRG_SCAN_NOTHING;
}

/* The joules so far as text; NULL: not known, or not asked for. */
static const char *joules_text(struct nrg_connection *c, char *text, size_t size)
{
    struct nrg_proxy *p = c->proxy;
    if (!c->wants_joules || !c->counted || !c->request.api)
        return NULL;
    double joules = p->events.joules(p->events.arg, &c->request);
    if (!isfinite(joules))
        return NULL;
    snprintf(text, size, "%.6g", joules);
    return text;
}

/* Usage that the client did not ask for goes out again; the body's length is another one then. */
static void begin_filter(struct nrg_connection *c, enum nrg_scan_form form, int status)
{
    bool filters = c->asked_usage && form == NRG_SCAN_EVENTS && status < 300;
    if (filters && !c->filter)
        c->filter = nrg_calloc(1, sizeof *c->filter);
    else if (!filters) {
        free(c->filter);
        c->filter = NULL;
    }
    if (c->filter)
        *c->filter = (struct nrg_usage_filter){.n = 0};
}

/* One that must have none (to HEAD, 204, 304): were it sent all the same, it would be taken for the
 * next answer. */
static bool announces_body(const struct nrg_http_head *head)
{
    return head->framing == NRG_BODY_CHUNKED || head->length;
}

/* Fields that would have the client wait for a body, or that it does not know. */
static bool is_unframed(const struct nrg_connection *c, const struct nrg_http_head *head)
{
    bool chunked = head->framing == NRG_BODY_CHUNKED;
    return c->unchunk || head->status < 200 || head->status == 204 ||
           (chunked && (c->client_1_0 || c->answer_body.framing == NRG_BODY_NONE));
}

static void begin_answer(struct nrg_connection *c, const struct nrg_http_head *head)
{
    enum nrg_http_framing framing = nrg_http_answer_framing(head, c->to_head);
    enum nrg_scan_form form = c->request.api ? form_of(head) : NRG_SCAN_NOTHING;
    nrg_http_body_init(&c->answer_body, framing, head->length);
    nrg_llm_scan_init(&c->answer_scan, form);
    c->request.status = head->status;
    c->request.streamed = form == NRG_SCAN_EVENTS || form == NRG_SCAN_LINES;
    begin_filter(c, form, head->status);
    c->unchunk =
        (c->client_1_0 && framing == NRG_BODY_CHUNKED) || (c->filter && framing == NRG_BODY_LENGTH);
    c->close_client |=
        framing == NRG_BODY_CLOSE || c->asking != NRG_ASK_DONE || c->proxy->stopping || c->unchunk;
    c->close_server = head->last || framing == NRG_BODY_CLOSE || c->asking != NRG_ASK_DONE ||
                      (framing == NRG_BODY_NONE && announces_body(head));
    c->trailer = c->wants_joules && c->counted && c->request.streamed && !c->unchunk &&
                 framing == NRG_BODY_CHUNKED;
    c->answering = NRG_ANSWER_BODY;
}

static bool pass_head(struct nrg_connection *c, const struct nrg_http_head *head, bool final)
{
    char joules[32];
    struct nrg_proxy_buffer *to = &c->to_client;
    size_t room = nrg_buffer_room(to);
    struct nrg_http_out out = {to->at + to->to, room, 0};
    struct nrg_http_extra extra = {.unframed = is_unframed(c, head)};
    if (final)
        extra = (struct nrg_http_extra){
            .close = c->close_client,
            .unframed = extra.unframed,
            .trailer = c->trailer,
            .joules = c->request.streamed ? NULL : joules_text(c, joules, sizeof joules)};
    nrg_http_write_answer(&out, head, &extra);
    if (out.n > out.size) {
        nrg_request_fail(c, 502, "the head of the server's answer is too long");
        return false;
    }
    to->to += out.n;
    return true;
}

static bool take_head(struct nrg_connection *c)
{
    struct nrg_http_head head;
    struct nrg_proxy_buffer *in = &c->from_server;
    if (!nrg_buffer_used(in) || nrg_buffer_used(&c->to_client))
        return false; /* a head gets a buffer of its own */
    int rc = nrg_http_head_parse(&head, in->at + in->from, nrg_buffer_used(in), true);
    if (!rc)
        return false;
    if (rc < 0 || head.status == 101) {
        nrg_request_fail(c, 502, rc < 0 ? head.why : "the server switches to another protocol");
        return true;
    }
    bool final = head.status >= 200;
    if (final)
        begin_answer(c, &head);
    bool known = final || !c->client_1_0; /* HTTP/1.0 has no answers of 1xx */
    if (!known || pass_head(c, &head, final))
        nrg_buffer_take(in, head.size);
    return true;
}

static void on_answered(void *arg, const char *at, size_t n)
{
    struct nrg_connection *c = arg;
    struct nrg_proxy_buffer *out = &c->to_client;
    nrg_llm_scan_feed(&c->answer_scan, at, n);
    if (c->filter) {
        struct nrg_http_out to = {out->at + out->to, NRG_PROXY_BUFFER - out->to, 0};
        nrg_usage_filter_feed(c->filter, at, n, &to);
        out->to += to.n;
    } else if (c->unchunk) {
        memcpy(out->at + out->to, at, n);
        out->to += n;
    }
}

#define CHUNK_HEAD 10 /* eight digits and a line end */
#define CHUNK_ROOM (CHUNK_HEAD + 2)

static bool makes_chunks(const struct nrg_connection *c)
{
    return c->filter && !c->unchunk && c->answer_body.framing == NRG_BODY_CHUNKED;
}

/* Room for the size of a chunk, which is known when its bytes are there. */
static size_t open_chunk(struct nrg_connection *c)
{
    c->to_client.to += makes_chunks(c) ? CHUNK_HEAD : 0;
    return c->to_client.to;
}

static void close_chunk(struct nrg_connection *c, size_t from)
{
    struct nrg_proxy_buffer *out = &c->to_client;
    char size[CHUNK_HEAD + 1];
    if (!makes_chunks(c))
        return;
    if (out->to == from) { /* a chunk of nothing would end the body */
        out->to -= CHUNK_HEAD;
        return;
    }
    snprintf(size, sizeof size, "%08x\r\n", (unsigned)(out->to - from));
    memcpy(out->at + from - CHUNK_HEAD, size, CHUNK_HEAD);
    memcpy(out->at + out->to, "\r\n", 2);
    out->to += 2;
}

/* What is held of an event that never ended. */
static void end_filter(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *out = &c->to_client;
    if (!c->filter || nrg_buffer_room(out) < c->filter->n + CHUNK_ROOM)
        return;
    size_t from = open_chunk(c);
    struct nrg_http_out to = {out->at + out->to, NRG_PROXY_BUFFER - out->to, 0};
    nrg_usage_filter_end(c->filter, &to);
    out->to += to.n;
    close_chunk(c, from);
}

static void add_text(struct nrg_connection *c, const char *text)
{
    struct nrg_proxy_buffer *out = &c->to_client;
    memcpy(out->at + out->to, text, strlen(text));
    out->to += strlen(text);
}

void nrg_answer_note_pace(struct nrg_connection *c, uint64_t texts)
{
    const struct nrg_proxy *p = c->proxy;
    int64_t since_ns = (texts ? c->came_ns : p->now_ns) - c->text_ns;
    if (texts)
        c->text_ns = c->came_ns;
    else if (since_ns < p->options.gather_ns)
        return; /* too early to say */
    c->pace_ns += (since_ns / (int64_t)(texts ? texts : 1) - c->pace_ns) / 4;
}

/* Tells the owner about text that came; of a whole answer it is all there at once. */
static void notice_texts(struct nrg_connection *c, uint64_t before)
{
    struct nrg_proxy *p = c->proxy;
    uint64_t n = c->answer_scan.seen.texts - before;
    if (!c->counted || !c->request.api || (c->request.streamed && !n))
        return;
    if (!c->request.first_ns && c->request.status < 300) {
        c->request.first_ns = c->text_ns = c->came_ns;
        c->pace_ns = p->options.gather_ns / 4;
        p->streams += c->request.streamed;
        p->events.first(p->events.arg, &c->request);
    }
    if (!n || !c->request.streamed)
        return;
    nrg_answer_note_pace(c, n);
    p->events.texts(p->events.arg, &c->request, n, c->came_ns);
}

static void add_trailer(struct nrg_connection *c)
{
    char text[32];
    struct nrg_proxy_buffer *out = &c->to_client;
    const char *joules = joules_text(c, text, sizeof text);
    if (!c->trailer || !joules)
        return;
    struct nrg_http_out to = {out->at + out->to, nrg_buffer_room(out), 0};
    to.at = out->at + out->to;
    nrg_http_addf(&to, "x-nrg-joules: %s\r\n", joules);
    if (to.n <= to.size)
        out->to += to.n;
}

static void end_answer(struct nrg_connection *c)
{
    c->answering = NRG_ANSWER_DONE;
    c->answered_ns = c->proxy->now_ns;
    c->request.end_ns = c->came_ns;
    nrg_request_end(c, NRG_REQUEST_ANSWERED);
    /* The server waits for the rest of a body: it would take the next request for that. */
    if (c->close_server || c->asking != NRG_ASK_DONE || nrg_buffer_used(&c->to_server))
        nrg_connection_drop_server(c);
}

static bool take_body(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *in = &c->from_server, *out = &c->to_client;
    uint64_t before = c->answer_scan.seen.texts;
    size_t room = nrg_buffer_room(out), n = nrg_buffer_used(in);
    size_t kept = 64 + NRG_HTTP_BODY_MORE + (c->filter ? c->filter->n + (size_t)2 * CHUNK_ROOM : 0);
    room = room > kept ? room - kept : 0; /* the trailer's, and what waits for its end */
    n = n < room ? n : room;
    if (!n)
        return false;
    size_t from = open_chunk(c);
    bool changed = c->unchunk || c->filter; /* on_answered writes what goes on */
    struct nrg_http_out passed = {out->at + out->to, NRG_PROXY_BUFFER - out->to, 0};
    ssize_t taken = nrg_http_body_take(&c->answer_body, in->at + in->from, n,
                                       changed ? NULL : &passed, on_answered, c);
    close_chunk(c, from);
    if (taken < 0) {
        nrg_answer_closed(c, "a chunk or trailer that is none");
        return true;
    }
    out->to += passed.n;
    nrg_buffer_take(in, (size_t)taken);
    notice_texts(c, before);
    if (c->answer_body.at_end) {
        c->answer_body.at_end = false;
        end_filter(c);
        if (makes_chunks(c))
            add_text(c, "0\r\n");
        add_trailer(c);
    }
    if (c->answer_body.done) {
        end_filter(c);
        if (makes_chunks(c))
            add_text(c, "\r\n");
    }
    return true;
}

bool nrg_answer_advance(struct nrg_connection *c)
{
    if (c->answering == NRG_ANSWER_HEAD)
        return take_head(c);
    if (c->answering != NRG_ANSWER_BODY)
        return false;
    bool moved = !c->answer_body.done && take_body(c);
    if (c->answering == NRG_ANSWER_BODY && c->answer_body.done) {
        end_answer(c);
        moved = true;
    }
    return moved;
}

bool nrg_answer_ends_by_close(const struct nrg_connection *c)
{
    return c->unchunk || c->answer_body.framing == NRG_BODY_CLOSE;
}

void nrg_answer_closed(struct nrg_connection *c, const char *why)
{
    if (c->answering == NRG_ANSWER_HEAD) {
        nrg_request_fail(c, 502, why);
        return;
    }
    nrg_connection_drop_server(c);
    if (c->answering != NRG_ANSWER_BODY)
        return;
    end_filter(c);
    bool whole =
        nrg_http_body_ended(&c->answer_body) && !nrg_buffer_used(&c->from_server) && *why == 0;
    c->answering = NRG_ANSWER_DONE;
    c->close_client = true; /* a body that ends too early says that something is missing */
    c->cuts = !whole && nrg_answer_ends_by_close(c);
    c->proxy->figures.failed += !whole;
    nrg_request_end(c, whole ? NRG_REQUEST_ANSWERED : NRG_REQUEST_BROKEN);
}
