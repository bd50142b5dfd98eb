/* See proxy.h: the relay's life, and its listening socket. */
#include "llm/proxy/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/proxy/internal.h"

#define TICK_MS 250
#define ACCEPTS 64 /* at a time: others are to be served, too */

static int listen_at(struct nrg_proxy *p, struct nrg_error *err)
{
    struct sockaddr_storage address;
    socklen_t length;
    const int on = 1;
    int rc = nrg_listen_parse(p->options.listen, &address, &length, err);
    if (rc)
        return rc;
    p->local = nrg_address_is_loopback(&address);
    p->listener = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->listener < 0)
        return nrg_fail(err, -errno, "--listen", "%s", strerror(errno));
    setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* Connections to the server have their bytes dated (link.h). Dating is switched on for the
     * whole machine with the first such socket, which takes a while: this one lasts. */
    if (p->options.gather_ns)
        setsockopt(p->listener, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    if (bind(p->listener, (const struct sockaddr *)&address, length) ||
        listen(p->listener, SOMAXCONN))
        return nrg_fail(err, -errno, p->options.listen, "cannot listen: %s", strerror(errno));
    length = sizeof address;
    if (getsockname(p->listener, (struct sockaddr *)&address, &length))
        return nrg_fail(err, -errno, p->options.listen, "%s", strerror(errno));
    nrg_address_text(&address, length, p->address, sizeof p->address);
    return 0;
}

static void accept_again(struct nrg_proxy *p, bool on)
{
    nrg_ready_watch(&p->ready, &p->listen_end.watched, p->listener, on ? EPOLLIN : 0, false);
}

int nrg_proxy_new(struct nrg_proxy **proxy, const struct nrg_proxy_options *options,
                  const struct nrg_proxy_events *events, struct nrg_error *err)
{
    struct nrg_proxy *p = nrg_calloc(1, sizeof *p);
    if (!p)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    p->options = *options;
    p->events = *events;
    p->ready.epoll = p->listener = p->listen_end.watched.fd = -1;
    if (!p->options.connections)
        p->options.connections = NRG_PROXY_CONNECTIONS;
    p->slots = nrg_calloc(p->options.connections, sizeof *p->slots);
    int rc = p->slots ? 0 : nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (!rc)
        rc = nrg_upstream_parse(&p->upstream, options->upstream, err);
    if (!rc)
        rc = nrg_upstream_resolve(&p->upstream, err);
    if (!rc && p->upstream.tls)
        rc = nrg_tls_new(&p->tls, p->upstream.host, err);
    if (!rc)
        rc = listen_at(p, err);
    if (!rc && (rc = nrg_ready_open(&p->ready, options->gather_ns)))
        nrg_fail(err, rc, NULL, "epoll: %s", strerror(-rc));
    if (rc)
        nrg_proxy_free(p);
    else
        *proxy = p;
    return rc;
}

/* True if there was any. */
static bool free_dead(struct nrg_proxy *p)
{
    bool any = p->dead;
    while (p->dead) {
        struct nrg_connection *c = p->dead;
        p->dead = c->next;
        nrg_connection_free(c);
    }
    return any;
}

void nrg_proxy_free(struct nrg_proxy *p)
{
    if (!p)
        return;
    while (p->first)
        nrg_connection_close(p->first, NRG_REQUEST_CANCELLED);
    free_dead(p);
    nrg_tls_free(p->tls);
    if (p->listener >= 0)
        close(p->listener);
    nrg_ready_close(&p->ready);
    free(p->slots);
    free(p);
}

static bool has_room(const struct nrg_proxy *p)
{
    return p->n < p->options.connections;
}

static bool may_accept(const struct nrg_proxy *p)
{
    return !p->stopping && (has_room(p) || nrg_limits_first_to_yield(p));
}

/* False: nobody waits, or something is lacking. */
static bool accept_one(struct nrg_proxy *p)
{
    int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        /* Without a descriptor left, the next tick tries again. */
        accept_again(p, errno == EAGAIN || errno == EINTR || errno == ECONNABORTED);
        return false;
    }
    if (!has_room(p))
        nrg_limits_yield(nrg_limits_first_to_yield(p));
    struct nrg_connection *c = nrg_connection_new(p, fd);
    if (!c) {
        close(fd);
        accept_again(p, false);
        return false;
    }
    c->client_end.readable = true;
    nrg_connection_pump(c);
    return true;
}

static void accept_clients(struct nrg_proxy *p)
{
    for (int i = 0; i < ACCEPTS; i++) {
        if (!may_accept(p)) {
            accept_again(p, false); /* until somebody goes, or the next tick */
            return;
        }
        if (!accept_one(p))
            return;
    }
}

static void enforce_limits(struct nrg_proxy *p)
{
    /* While the relay itself did not run nobody kept it waiting. */
    int64_t most_ns = 2 * TICK_MS * NRG_NS_PER_MS, since_ns = p->now_ns - p->limits_ns;
    p->limits_ns = p->now_ns;
    since_ns = since_ns < most_ns ? since_ns : most_ns;
    for (struct nrg_connection *c = p->first, *next; c; c = next) {
        next = c->next;
        nrg_limits_enforce(c, since_ns);
    }
    accept_again(p, may_accept(p));
}

static void handle(struct nrg_proxy *p, const struct epoll_event *event)
{
    struct nrg_proxy_end *end = event->data.ptr;
    struct nrg_connection *c = end->connection;
    if (!c)
        accept_clients(p);
    else if (!c->dead && end->watched.fd >= 0)
        nrg_connection_ready(c, end->is_server, event->events);
}

/* Streams whose texts wait for each other. */
static void read_held(struct nrg_proxy *p)
{
    p->now_ns = nrg_now_ns();
    p->epoch_ns = nrg_realtime_ns() - p->now_ns;
    for (struct nrg_ready_end *end = p->ready.held, *next; end; end = next) {
        next = end->next; /* no connection closes another one */
        nrg_connection_tick(((struct nrg_proxy_end *)end)->connection);
    }
}

static void begin_stopping(struct nrg_proxy *p)
{
    p->stopping = true;
    accept_again(p, false);
    close(p->listener); /* who comes now is refused at once */
    p->listener = -1;
}

int nrg_proxy_run(struct nrg_proxy *p, struct nrg_error *err)
{
    struct epoll_event events[NRG_READY_EVENTS];
    p->now_ns = p->limits_ns = nrg_now_ns();
    accept_again(p, true);
    while (!p->stopping || p->first) {
        int n = nrg_ready_wait(&p->ready, events, TICK_MS, p->now_ns);
        if (n < 0)
            return nrg_fail(err, n, NULL, "epoll: %s", strerror(-n));
        p->now_ns = nrg_now_ns();
        for (int i = 0; i < n; i++)
            handle(p, &events[i]);
        if (nrg_ready_tick(&p->ready, p->now_ns))
            read_held(p);
        if (!p->stopping && p->events.stop(p->events.arg))
            begin_stopping(p);
        if (p->stopping && p->events.hurry(p->events.arg)) {
            read_held(p); /* what waits is not lost */
            break;
        }
        if (p->now_ns - p->limits_ns >= TICK_MS * NRG_NS_PER_MS)
            enforce_limits(p);
        if (free_dead(p) && !p->stopping && has_room(p))
            accept_again(p, true);
    }
    return 0;
}

const char *nrg_proxy_address(const struct nrg_proxy *p)
{
    return p->address;
}

bool nrg_proxy_is_local(const struct nrg_proxy *p)
{
    return p->local;
}

const struct nrg_proxy_figures *nrg_proxy_figures(const struct nrg_proxy *p)
{
    return &p->figures;
}
