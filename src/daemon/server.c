/*
 * See server.h. Limits, and why (those of users and of descriptors are in places.c):
 *   GREET_NS, REQUEST_NS   who connects and says nothing is gone in half a minute
 *   READ_NS                who opened a sensor and does not ask for readings, after a minute
 *   ACCEPTS                people in one round: the listener's queue is never left full, and those
 *                          who are served wait for a millisecond
 * A request is taken only when the answer to the last one was fetched, so a client has one answer
 * waiting at most, and one refusal. One packet is taken from each client in turn, so that one who
 * floods waits for the others. Descriptors that a client passes are never taken: recvmsg is given
 * no room for them, and the connection ends.
 */
#include "daemon/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/places.h"

#define GREET_NS   (10 * NRG_NS_PER_S)
#define REQUEST_NS (30 * NRG_NS_PER_S)
#define READ_NS    (60 * NRG_NS_PER_S)
#define PAUSE_NS   (NRG_NS_PER_S / 10) /* after accept failed for lack of descriptors */
#define QUIET_NS   (60 * NRG_NS_PER_S) /* between two lines that say the same */
#define ACCEPTS    64

struct server {
    const struct nrg_server_options *options;
    struct nrg_catalogs catalogs;
    struct nrg_places places;
    struct pollfd *fds;
    int64_t alone_ns;  /* since when there is no client */
    int64_t accept_ns; /* not before */
    int64_t tick_ns;   /* next second of the coarse view */
    int64_t said_ns;   /* when it was said last that descriptors can't be sent */
};

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
    return n == (ssize_t)reply->size ? 0 : n < 0 ? -errno : -EMSGSIZE;
}

static bool is_gone(int rc)
{
    return rc == -EPIPE || rc == -ECONNRESET;
}

/* ETOOMANYREFS: too many descriptors of this user are on their way, some of them not by us. */
static void note_unsent(struct server *s, int rc)
{
    int64_t now_ns = nrg_now_ns();
    if (s->said_ns && now_ns - s->said_ns < QUIET_NS)
        return;
    s->said_ns = now_ns;
    nrg_log(s->catalogs.ctx, NRG_WARNING, "descriptors can't be sent, readings are: %s",
            strerror(-rc));
}

/* Sends the answer; if that can't be, one that can. A negative errno: the connection is to end. */
static int answer(struct server *s, struct nrg_client *place, struct nrg_reply *reply)
{
    int rc = send_reply(place->fd, reply);
    if (rc && reply->n_fds && !is_gone(rc)) {
        note_unsent(s, rc);
        int refused = nrg_session_stream(&place->session, reply);
        rc = send_reply(place->fd, reply);
        rc = rc ? rc : refused;
    }
    if (!rc)
        place->n_fds = (unsigned)reply->n_fds;
    nrg_reply_release(reply);
    if (!rc || is_gone(rc) || reply->packet.head.type == NRG_WIRE_REFUSED)
        return rc;
    char text[sizeof reply->packet.refused.text];
    snprintf(text, sizeof text, "the answer can't be sent: %s", strerror(-rc));
    nrg_reply_refuse(reply, rc, text);
    send_reply(place->fd, reply);
    return rc;
}

static void end_client(struct server *s, size_t i)
{
    nrg_places_end(&s->places, i);
    if (!s->places.n)
        s->alone_ns = nrg_now_ns();
}

static int take(struct server *s, struct nrg_client *place, union nrg_wire_packet *packet, size_t n,
                struct nrg_reply *reply)
{
    if (nrg_places_unfetched(place->fd) > 0)
        return nrg_reply_refuse(reply, -EBUSY, "fetch each answer before you ask again");
    place->session.spare_fds = nrg_places_spare_fds(&s->places, place, nrg_now_ns());
    return nrg_session_take(&place->session, packet, n, reply);
}

/* One packet of one client. Who has his descriptors is served no more. */
static void serve(struct server *s, size_t i)
{
    struct nrg_client *place = &s->places.items[i];
    union nrg_wire_packet packet;
    struct nrg_reply reply = {0};
    struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n = recvmsg(place->fd, &message, MSG_DONTWAIT);
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
        rc = take(s, place, &packet, (size_t)n, &reply);
    place->heard_ns = nrg_now_ns();
    if (answer(s, place, &reply) || rc || place->session.state == NRG_SESSION_DONE)
        end_client(s, i);
}

static void tell(int fd, int error, const char *text)
{
    struct nrg_reply reply = {0};
    nrg_reply_refuse(&reply, error, text);
    send_reply(fd, &reply);
}

/* Why this user is not served, or NULL; a place is made for who is. */
static const char *make_room(struct server *s, uid_t uid, enum nrg_rank rank, int *rc)
{
    ptrdiff_t evicted;
    *rc = nrg_places_find(&s->places, uid, rank, &evicted);
    if (*rc)
        return *rc == -EAGAIN ? "you have too many connections"
                              : "too many others are connected: try again later";
    if (evicted >= 0) {
        tell(s->places.items[evicted].fd, -EBUSY, "your place was needed for somebody else");
        nrg_places_end(&s->places, (size_t)evicted);
    }
    return NULL;
}

static void admit(struct server *s, int fd)
{
    enum nrg_wire_view view;
    uid_t uid = (uid_t)-1;
    int rc = nrg_policy_view(&s->options->policy, fd, &uid, &view);
    const char *why = rc ? "only members of group nrg may read here" : NULL;
    enum nrg_rank rank = !uid                           ? NRG_RANK_ROOT
                         : !rc && view == NRG_VIEW_FULL ? NRG_RANK_MEMBER
                                                        : NRG_RANK_OTHER;
    if (!nrg_places_can_owe(&s->places, uid, rank, nrg_now_ns())) {
        close(fd);
        return;
    }
    if (!why)
        why = make_room(s, uid, rank, &rc);
    if (why)
        tell(fd, rc, why);
    struct nrg_client *place = nrg_places_add(&s->places, fd, uid, rank, why != NULL);
    nrg_session_init(&place->session, &s->catalogs, view);
}

/* Everybody who waits, as far as one round goes: who can't be served is told. */
static void admit_all(struct server *s)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(s->options->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            admit(s, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            s->accept_ns = nrg_now_ns() + PAUSE_NS;
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

static int64_t patience_ns(const struct nrg_client *place)
{
    switch (place->session.state) {
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
    for (size_t i = s->places.n_served; i-- > 0;)
        if (now_ns - s->places.items[i].heard_ns >= patience_ns(&s->places.items[i]))
            end_client(s, i);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something is due next. */
static int64_t next_ns(const struct server *s, int64_t now_ns, bool ticking)
{
    const struct nrg_places *places = &s->places;
    int64_t next = nrg_places_due_ns(places);
    for (size_t i = 0; i < places->n_served; i++)
        next = earlier(next, places->items[i].heard_ns + patience_ns(&places->items[i]));
    if (!places->n && s->options->idle_ns)
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
    for (size_t i = 0; i < s->places.n_served; i++) {
        const struct nrg_session *session = &s->places.items[i].session;
        if (session->served && session->view == NRG_VIEW_COARSE)
            return true;
    }
    return false;
}

/* Seconds of the clock, so that no client decides when a reading is taken. */
static void tick(struct server *s, int64_t now_ns)
{
    if (now_ns >= s->tick_ns)
        nrg_catalogs_tick(&s->catalogs);
    s->tick_ns = (now_ns / NRG_COARSE_PERIOD_NS + 1) * NRG_COARSE_PERIOD_NS;
}

/* Who is served is heard in turn, from the end: one that ends is replaced by the last. */
static int wait_for_clients(struct server *s, bool ticking)
{
    int64_t now_ns = nrg_now_ns();
    bool pausing = now_ns < s->accept_ns;
    s->fds[0] = (struct pollfd){.fd = s->options->signals, .events = POLLIN};
    s->fds[1] = (struct pollfd){.fd = pausing ? -1 : s->options->listener, .events = POLLIN};
    for (size_t i = 0; i < s->places.n_served; i++)
        s->fds[2 + i] = (struct pollfd){.fd = s->places.items[i].fd, .events = POLLIN};
    return poll(s->fds, s->places.n_served + 2, wait_ms(next_ns(s, now_ns, ticking), now_ns));
}

static void look_after_time(struct server *s, int64_t now_ns, bool ticking)
{
    if (ticking && now_ns >= s->tick_ns)
        tick(s, now_ns);
    else if (!ticking)
        s->tick_ns = (now_ns / NRG_COARSE_PERIOD_NS + 1) * NRG_COARSE_PERIOD_NS;
    if (now_ns < nrg_places_due_ns(&s->places))
        return;
    nrg_places_settle(&s->places, now_ns);
    if (!s->places.n)
        s->alone_ns = now_ns;
}

/* One round. 1: it is time to end. */
static int turn(struct server *s)
{
    bool ticking = has_coarse_clients(s);
    size_t n = s->places.n_served;
    int ready = wait_for_clients(s, ticking);
    if (ready < 0 && errno != EINTR)
        return -errno;
    if (ready > 0 && s->fds[0].revents)
        return 1;
    int64_t now_ns = nrg_now_ns();
    look_after_time(s, now_ns, ticking);
    for (size_t i = n; ready > 0 && i-- > 0;)
        if (s->fds[2 + i].revents)
            serve(s, i);
    end_the_silent(s, now_ns);
    if (ready > 0 && (s->fds[1].revents & POLLIN))
        admit_all(s);
    else if (ready > 0 && s->fds[1].revents)
        return -ENOTCONN;
    return !s->places.n && s->options->idle_ns && now_ns - s->alone_ns >= s->options->idle_ns;
}

int nrg_server_run(const struct nrg_context *ctx, const struct nrg_server_options *options)
{
    struct server *s = nrg_calloc(1, sizeof *s);
    if (!s || nrg_places_init(&s->places, options->max_fds)) {
        free(s);
        return -ENOMEM;
    }
    s->options = options;
    s->catalogs.ctx = ctx;
    s->alone_ns = nrg_now_ns();
    s->fds = nrg_calloc(s->places.max_served + 2, sizeof *s->fds);
    int rc = s->fds ? 0 : -ENOMEM;
    while (!rc)
        rc = turn(s);
    nrg_places_release(&s->places);
    nrg_catalogs_release(&s->catalogs);
    free(s->fds);
    free(s);
    return rc < 0 ? rc : 0;
}
