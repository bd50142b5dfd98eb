/*
 * See server.h. Limits, and why:
 *   MAX_CLIENTS, MAX_OF_USER   one user can't take the places of the others
 *   GREET_NS, REQUEST_NS       who connects and says nothing is gone in half a minute
 *   READ_NS                    who opened a sensor and does not ask for readings, after a minute
 * A client that does not fetch its answers is closed at the first one that does not fit into its
 * socket. One packet is taken from each client in turn, so that one who floods waits for the
 * others. Descriptors that a client passes are never taken: recvmsg is given no room for them, and
 * the connection ends.
 */
#include "daemon/server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/session.h"

#define MAX_CLIENTS 256
#define MAX_OF_USER 32
#define GREET_NS    (10 * NRG_NS_PER_S)
#define REQUEST_NS  (30 * NRG_NS_PER_S)
#define READ_NS     (60 * NRG_NS_PER_S)
#define PAUSE_NS    (NRG_NS_PER_S / 10) /* after accept failed for lack of descriptors */

struct client {
    int fd;
    uid_t uid;
    int64_t heard_ns;
    struct nrg_session session;
};

struct server {
    const struct nrg_server_options *options;
    struct nrg_catalogs catalogs;
    struct client clients[MAX_CLIENTS];
    size_t n;
    int64_t alone_ns;  /* since when there is no client */
    int64_t accept_ns; /* not before */
    int64_t tick_ns;   /* next second of the coarse view */
};

static void end_client(struct server *s, size_t i)
{
    nrg_session_release(&s->clients[i].session);
    close(s->clients[i].fd);
    s->clients[i] = s->clients[--s->n];
    if (!s->n)
        s->alone_ns = nrg_now_ns();
}

static int send_reply(int fd, struct nrg_reply *reply)
{
    union {
        char bytes[CMSG_SPACE(NRG_SHARE_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = &reply->packet, .iov_len = reply->size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (reply->n_fds) {
        size_t size = reply->n_fds * sizeof(int);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
        memcpy(CMSG_DATA(head), reply->fds, size);
    }
    ssize_t n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    nrg_reply_release(reply);
    return n == (ssize_t)reply->size ? 0 : -EPIPE;
}

/* One packet of one client. */
static void serve(struct server *s, size_t i)
{
    struct client *client = &s->clients[i];
    union nrg_wire_packet packet;
    struct nrg_reply reply = {0};
    struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n = recvmsg(client->fd, &message, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_client(s, i);
        return;
    }
    int rc;
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        rc = nrg_reply_refuse(&reply, -EPROTO, "too long, or with descriptors");
    else
        rc = nrg_session_take(&client->session, &packet, (size_t)n, &reply);
    client->heard_ns = nrg_now_ns();
    if (send_reply(client->fd, &reply) || rc)
        end_client(s, i);
}

static size_t connections_of(const struct server *s, uid_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->clients[i].uid == uid;
    return n;
}

static void turn_away(int fd, int error, const char *text)
{
    struct nrg_reply reply = {0};
    nrg_reply_refuse(&reply, error, text);
    send_reply(fd, &reply);
    close(fd);
}

static void admit(struct server *s)
{
    enum nrg_wire_view view;
    uid_t uid;
    int fd = accept4(s->options->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            s->accept_ns = nrg_now_ns() + PAUSE_NS;
        return;
    }
    if (nrg_policy_view(&s->options->policy, fd, &uid, &view)) {
        turn_away(fd, -EACCES, "only members of group nrg may read here");
    } else if (connections_of(s, uid) >= MAX_OF_USER) {
        turn_away(fd, -EAGAIN, "you have too many connections");
    } else {
        struct client *client = &s->clients[s->n++];
        *client = (struct client){.fd = fd, .uid = uid, .heard_ns = nrg_now_ns()};
        nrg_session_init(&client->session, &s->catalogs, view);
    }
}

static int64_t patience_ns(const struct client *client)
{
    switch (client->session.state) {
    case NRG_SESSION_NEW:
        return GREET_NS;
    case NRG_SESSION_OPEN:
        return READ_NS;
    default:
        return REQUEST_NS;
    }
}

static void end_the_silent(struct server *s, int64_t now_ns)
{
    for (size_t i = s->n; i-- > 0;)
        if (now_ns - s->clients[i].heard_ns >= patience_ns(&s->clients[i]))
            end_client(s, i);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something is due next. */
static int64_t next_ns(const struct server *s, int64_t now_ns, bool ticking)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < s->n; i++)
        next = earlier(next, s->clients[i].heard_ns + patience_ns(&s->clients[i]));
    if (!s->n && s->options->idle_ns)
        next = earlier(next, s->alone_ns + s->options->idle_ns);
    if (ticking)
        next = earlier(next, s->tick_ns);
    if (s->accept_ns > now_ns)
        next = earlier(next, s->accept_ns);
    return next;
}

static int wait_ms(int64_t next, int64_t now_ns)
{
    if (next == INT64_MAX)
        return -1;
    int64_t ms = (next - now_ns + NRG_NS_PER_MS - 1) / NRG_NS_PER_MS;
    return ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

static bool has_coarse_clients(const struct server *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i].session.served && s->clients[i].session.view == NRG_VIEW_COARSE)
            return true;
    return false;
}

/* Seconds of the clock, so that no client decides when a reading is taken. */
static void tick(struct server *s, int64_t now_ns)
{
    if (now_ns >= s->tick_ns)
        nrg_catalogs_tick(&s->catalogs);
    s->tick_ns = (now_ns / NRG_COARSE_PERIOD_NS + 1) * NRG_COARSE_PERIOD_NS;
}

/* One round. 1: it is time to end. */
static int turn(struct server *s)
{
    struct pollfd fds[MAX_CLIENTS + 2];
    int64_t now_ns = nrg_now_ns();
    bool ticking = has_coarse_clients(s);
    bool full = s->n == MAX_CLIENTS || now_ns < s->accept_ns;
    fds[0] = (struct pollfd){.fd = s->options->signals, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = full ? -1 : s->options->listener, .events = POLLIN};
    for (size_t i = 0; i < s->n; i++)
        fds[2 + i] = (struct pollfd){.fd = s->clients[i].fd, .events = POLLIN};
    size_t n = s->n;
    int ready = poll(fds, n + 2, wait_ms(next_ns(s, now_ns, ticking), now_ns));
    if (ready < 0 && errno != EINTR)
        return -errno;
    if (ready > 0 && fds[0].revents)
        return 1;
    now_ns = nrg_now_ns();
    if (ticking && now_ns >= s->tick_ns)
        tick(s, now_ns);
    else if (!ticking)
        s->tick_ns = (now_ns / NRG_COARSE_PERIOD_NS + 1) * NRG_COARSE_PERIOD_NS;
    for (size_t i = n;
         ready > 0 && i-- > 0;) /* from the end: one that ends is replaced by the last */
        if (fds[2 + i].revents)
            serve(s, i);
    end_the_silent(s, now_ns);
    if (ready > 0 && (fds[1].revents & POLLIN))
        admit(s);
    else if (ready > 0 && fds[1].revents)
        return -ENOTCONN;
    return !s->n && s->options->idle_ns && now_ns - s->alone_ns >= s->options->idle_ns;
}

int nrg_server_run(const struct nrg_context *ctx, const struct nrg_server_options *options)
{
    struct server *s = nrg_calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->options = options;
    s->catalogs.ctx = ctx;
    s->alone_ns = nrg_now_ns();
    int rc = 0;
    while (!rc)
        rc = turn(s);
    while (s->n)
        end_client(s, s->n - 1);
    nrg_catalogs_release(&s->catalogs);
    free(s);
    return rc < 0 ? rc : 0;
}
