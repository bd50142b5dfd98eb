/*
 * A client's connection with the one to the server: moving bytes as far as both sides allow. What
 * the bytes mean is request.c's and answer.c's business. See proxy.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "llm/proxy/internal.h"

#define MANY_STREAMS 8

size_t nrg_buffer_room(struct nrg_proxy_buffer *b)
{
    if (b->from == b->to)
        b->from = b->to = 0;
    if (b->from && b->to == NRG_PROXY_BUFFER) {
        memmove(b->at, b->at + b->from, b->to - b->from);
        b->to -= b->from;
        b->from = 0;
    }
    return NRG_PROXY_BUFFER - b->to;
}

void nrg_buffer_take(struct nrg_proxy_buffer *b, size_t n)
{
    b->from += n;
}

struct nrg_connection *nrg_connection_new(struct nrg_proxy *p, int client)
{
    const int on = 1;
    struct nrg_connection *c = nrg_calloc(1, sizeof *c);
    char *bytes = c ? malloc((size_t)4 * NRG_PROXY_BUFFER) : NULL;
    if (!bytes) {
        free(c);
        return NULL;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->proxy = p;
    c->client = client;
    c->from_client.at = bytes;
    c->to_server.at = bytes + NRG_PROXY_BUFFER;
    c->from_server.at = bytes + (size_t)2 * NRG_PROXY_BUFFER;
    c->to_client.at = bytes + (size_t)3 * NRG_PROXY_BUFFER;
    c->client_end = (struct nrg_proxy_end){.connection = c, .watched.fd = -1};
    c->server_end = (struct nrg_proxy_end){.connection = c, .is_server = true, .watched.fd = -1};
    c->active_ns = c->sent_ns = p->now_ns;
    nrg_limits_await_head(c);
    nrg_link_init(&c->server, p->tls, !p->tls && p->options.gather_ns);
    c->next = p->first;
    if (c->next)
        c->next->previous = c;
    p->first = c;
    p->n++;
    p->figures.connections++;
    return c;
}

void nrg_connection_free(struct nrg_connection *c)
{
    nrg_hold_release(c);
    free(c->filter);
    free(c->from_client.at);
    free(c);
}

void nrg_connection_drop_server(struct nrg_connection *c)
{
    nrg_link_close(&c->server);
    nrg_ready_forget(&c->proxy->ready, &c->server_end.watched);
    c->server_end.readable = false;
    c->server_over = false;
    c->to_server.from = c->to_server.to = 0;
    c->from_server.from = c->from_server.to = 0;
}

/* The client would take its end for that of the answer, of which some is still to come, or here. */
static bool would_look_whole(const struct nrg_connection *c)
{
    bool lacks = c->answering == NRG_ANSWER_BODY ||
                 (c->answering == NRG_ANSWER_DONE && nrg_buffer_used(&c->to_client));
    return c->cuts || (lacks && nrg_answer_ends_by_close(c));
}

void nrg_connection_close(struct nrg_connection *c, enum nrg_proxy_outcome outcome)
{
    struct nrg_proxy *p = c->proxy;
    if (c->dead)
        return;
    nrg_request_end(c, outcome);
    nrg_connection_drop_server(c);
    if (would_look_whole(c)) { /* a reset instead of an end */
        const struct linger none = {.l_onoff = 1};
        setsockopt(c->client, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    }
    close(c->client);
    c->dead = true;
    if (c->previous)
        c->previous->next = c->next;
    else
        p->first = c->next;
    if (c->next)
        c->next->previous = c->previous;
    p->n--;
    c->next = p->dead;
    p->dead = c;
}

static void note_moved(struct nrg_connection *c)
{
    c->active_ns = c->proxy->now_ns;
}

/* What a client sends while it is answered are requests to come: a buffer full of them is kept. */
static bool wants_client(struct nrg_connection *c)
{
    return c->lingers || nrg_buffer_room(&c->from_client) > 0;
}

static bool read_client(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *in = &c->from_client;
    if (!c->client_end.readable || !wants_client(c))
        return false;
    if (c->lingers)
        in->from = in->to = 0;
    size_t room = nrg_buffer_room(in);
    ssize_t n = recv(c->client, in->at + in->to, room, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        c->client_end.readable = false;
        return false;
    }
    c->client_end.readable = n > 0 && (size_t)n == room;
    if (!n && nrg_request_cut(c))
        return true;
    if (n <= 0) {
        nrg_connection_close(c, NRG_REQUEST_CANCELLED);
        return false;
    }
    in->to += (size_t)n;
    if (!c->lingers) {
        note_moved(c);
        nrg_limits_came(c, (size_t)n);
    }
    return true;
}

static void server_failed(struct nrg_connection *c, const char *why)
{
    c->server_over = true;
    nrg_copy(c->server_why, sizeof c->server_why, why);
}

static bool connect_server(struct nrg_connection *c)
{
    struct nrg_proxy *p = c->proxy;
    size_t tries = c->server.tries;
    int rc = nrg_link_advance(&c->server, &p->upstream, p->now_ns);
    if (c->server.tries != tries)
        nrg_ready_forget(&c->proxy->ready, &c->server_end.watched); /* another socket */
    if (rc == -EAGAIN)
        return false;
    if (rc)
        nrg_request_fail(c, 502, c->server.why);
    return true;
}

static bool write_server(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *out = &c->to_server;
    if (c->server.state == NRG_LINK_CLOSED || c->server_over || c->asking == NRG_ASK_HOLD)
        return false;
    if (c->server.state != NRG_LINK_OPEN)
        return connect_server(c);
    if (!nrg_buffer_used(out))
        return false;
    ssize_t n = nrg_link_write(&c->server, out->at + out->from, nrg_buffer_used(out));
    if (n == -EAGAIN || n == -EINTR)
        return false;
    if (n < 0) {
        /* It may have answered before it closed: that is still to be read. */
        out->from = out->to = 0;
        c->close_server = true;
        c->server_end.readable = true;
        return true;
    }
    nrg_buffer_take(out, (size_t)n);
    note_moved(c);
    return true;
}

/* Reads, and notes when it came: what was held came before now. The wall clock may be set in
 * between, so no more than that is believed. */
static ssize_t read_link(struct nrg_connection *c, char *to, size_t n)
{
    const struct nrg_proxy *p = c->proxy;
    int64_t came_ns = 0, now_ns = p->now_ns;
    if (!c->server_end.watched.held) {
        c->came_ns = now_ns;
        return nrg_link_read(&c->server, to, n);
    }
    ssize_t got = nrg_link_read_dated(&c->server, to, n, &came_ns);
    came_ns = came_ns ? came_ns - p->epoch_ns : now_ns;
    came_ns = came_ns < now_ns ? came_ns : now_ns;
    int64_t least_ns = now_ns - NRG_PROXY_LATE_NS;
    least_ns = least_ns > c->came_ns ? least_ns : c->came_ns;
    c->came_ns = came_ns > least_ns ? came_ns : least_ns;
    return got;
}

static bool read_server(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *in = &c->from_server;
    if (c->server.state != NRG_LINK_OPEN || c->server_over ||
        (!c->server_end.readable && !c->server.session))
        return false;
    size_t room = nrg_buffer_room(in);
    if (!room)
        return false;
    ssize_t n = read_link(c, in->at + in->to, room);
    if (n == -EAGAIN || n == -EINTR) {
        c->server_end.readable = false;
        return false;
    }
    if (n <= 0) {
        server_failed(c, n ? c->server.why : "");
        return true;
    }
    if (!c->server.session)
        c->server_end.readable = (size_t)n == room;
    in->to += (size_t)n;
    note_moved(c);
    return true;
}

static bool write_client(struct nrg_connection *c)
{
    struct nrg_proxy_buffer *out = &c->to_client;
    if (!nrg_buffer_used(out))
        return false;
    ssize_t n = send(c->client, out->at + out->from, nrg_buffer_used(out), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0) {
        nrg_connection_close(c, NRG_REQUEST_CANCELLED);
        return false;
    }
    nrg_buffer_take(out, (size_t)n);
    note_moved(c);
    c->sent_ns = c->active_ns;
    return true;
}

/* Nothing of what the server sent before it went can be passed on any more. */
static bool end_server(struct nrg_connection *c)
{
    if (!c->server_over || (nrg_buffer_used(&c->from_server) && nrg_buffer_used(&c->to_client)))
        return false;
    char why[sizeof c->server_why];
    nrg_copy(why, sizeof why, c->server_why);
    if (c->answering == NRG_ANSWER_HEAD && !*why)
        nrg_copy(why, sizeof why, "the server closed the connection");
    if (c->answering == NRG_ANSWER_HEAD || c->answering == NRG_ANSWER_BODY)
        nrg_answer_closed(c, why);
    else
        nrg_connection_drop_server(c);
    return true;
}

/* An answer is out: the next request, or the end. */
static bool finish(struct nrg_connection *c)
{
    if (c->answering != NRG_ANSWER_DONE || nrg_buffer_used(&c->to_client) || c->lingers)
        return false;
    if (c->cuts) {
        nrg_connection_close(c, NRG_REQUEST_BROKEN);
        return true;
    }
    if (c->close_client || c->asking != NRG_ASK_DONE) {
        /* A close with bytes unread would take the answer away from the client again. */
        shutdown(c->client, SHUT_WR);
        c->lingers = true;
        c->client_end.readable = true;
        return true;
    }
    c->asking = NRG_ASK_HEAD;
    c->answering = NRG_ANSWER_NONE;
    nrg_limits_await_head(c);
    return true;
}

/* Texts after the first one may wait where many streams run and these come quickly. Which of them
 * do must not change with every stream that begins or ends. */
static bool may_wait(const struct nrg_connection *c)
{
    size_t enough = c->server_end.watched.held ? MANY_STREAMS / 2 : MANY_STREAMS;
    return c->server.dated && c->counted && c->request.streamed && c->request.first_ns &&
           2 * c->pace_ns < c->proxy->options.gather_ns && c->proxy->streams >= enough;
}

static void watch_both(struct nrg_connection *c)
{
    struct nrg_link *s = &c->server;
    /* That the other side closed is asked for only where it can be dealt with at once: else it is
     * told for ever. */
    uint32_t client = wants_client(c)             ? EPOLLIN | EPOLLRDHUP
                      : c->asking == NRG_ASK_DONE ? EPOLLRDHUP
                                                  : 0;
    uint32_t server = 0;
    if (nrg_buffer_used(&c->to_client))
        client |= EPOLLOUT;
    bool idle = c->answering == NRG_ANSWER_NONE;
    if (s->state != NRG_LINK_CONNECTS && !c->server_over &&
        (idle || nrg_buffer_room(&c->from_server) > 0))
        server |= EPOLLIN | EPOLLRDHUP;
    if (s->state == NRG_LINK_CONNECTS || s->want_write ||
        (s->state == NRG_LINK_OPEN && nrg_buffer_used(&c->to_server)))
        server |= EPOLLOUT;
    if (c->server_over)
        server = 0; /* it is gone */
    struct nrg_ready *ready = &c->proxy->ready;
    nrg_ready_watch(ready, &c->client_end.watched, c->client, client, false);
    nrg_ready_watch(ready, &c->server_end.watched, s->fd, server, may_wait(c));
}

void nrg_connection_pump(struct nrg_connection *c)
{
    bool moved = true;
    while (moved && !c->dead) {
        moved = read_client(c);
        while (!c->dead && nrg_request_advance(c))
            moved = true; /* a head and its body are sent together */
        if (!c->dead) {
            moved |= write_server(c);
            moved |= read_server(c);
        }
        while (!c->dead && nrg_answer_advance(c))
            moved = true;
        if (!c->dead)
            moved |= write_client(c);
        if (!c->dead && !moved)
            moved = end_server(c);
        if (!c->dead)
            moved |= finish(c);
    }
    if (!c->dead)
        watch_both(c);
}

/* A client that has closed its side wants no answer any more, as servers themselves see it. */
static bool client_left(const struct nrg_connection *c, uint32_t events)
{
    return events & (EPOLLERR | EPOLLHUP) ||
           (events & EPOLLRDHUP && (c->asking == NRG_ASK_DONE || c->lingers));
}

void nrg_connection_tick(struct nrg_connection *c)
{
    int64_t text_ns = c->text_ns;
    c->server_end.readable = true;
    nrg_connection_pump(c);
    if (!c->dead && c->text_ns == text_ns) {
        nrg_answer_note_pace(c, 0);
        watch_both(c);
    }
}

void nrg_connection_ready(struct nrg_connection *c, bool is_server, uint32_t events)
{
    if (!is_server && client_left(c, events)) {
        nrg_connection_close(c, NRG_REQUEST_CANCELLED);
        return;
    }
    if (!is_server && events & (EPOLLIN | EPOLLRDHUP))
        c->client_end.readable = true;
    if (is_server && events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
        c->server_end.readable = true;
    /* Between requests the server says nothing: it closes, or is not to be trusted. */
    if (is_server && c->answering == NRG_ANSWER_NONE &&
        events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
        nrg_connection_drop_server(c);
    nrg_connection_pump(c);
}
