/* See link.h. */
#include "llm/proxy/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define PATIENCE_NS (250 * NRG_NS_PER_MS)

void nrg_link_init(struct nrg_link *link, struct nrg_tls *tls, bool dated)
{
    *link = (struct nrg_link){.fd = -1, .tls = tls, .dated = dated};
}

void nrg_link_close(struct nrg_link *link)
{
    nrg_tls_close(link->tls, link->session);
    link->session = NULL;
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    link->state = NRG_LINK_CLOSED;
    link->want_write = false;
}

static int fail(struct nrg_link *link, int code)
{
    snprintf(link->why, sizeof link->why, "%s", strerror(-code));
    return code;
}

static int try_address(struct nrg_link *link, const struct nrg_upstream *upstream)
{
    const int on = 1;
    const struct sockaddr_storage *to = &upstream->addresses[link->address];
    nrg_link_close(link);
    link->fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0)
        return -errno;
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (link->dated)
        setsockopt(link->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    if (connect(link->fd, (const struct sockaddr *)to, upstream->lengths[link->address]) &&
        errno != EINPROGRESS)
        return -errno;
    link->state = NRG_LINK_CONNECTS;
    return 0;
}

/* Goes on with the next address, round and round, until as many have failed as there are. */
static int try_addresses(struct nrg_link *link, const struct nrg_upstream *upstream, int64_t now_ns)
{
    int rc = -EHOSTUNREACH;
    while (link->failed < upstream->n) {
        link->address = (upstream->first + link->tries++) % upstream->n;
        link->tried_ns = now_ns;
        rc = try_address(link, upstream);
        if (!rc)
            return 0;
        link->failed++;
    }
    nrg_link_close(link);
    return fail(link, rc);
}

int nrg_link_connect(struct nrg_link *link, const struct nrg_upstream *upstream, int64_t now_ns)
{
    link->tries = link->failed = 0;
    link->began_ns = now_ns;
    link->why[0] = 0;
    return try_addresses(link, upstream, now_ns);
}

bool nrg_link_try_next(struct nrg_link *link, const struct nrg_upstream *upstream, int64_t now_ns)
{
    size_t rounds = (link->tries - 1) / upstream->n;
    int64_t patience_ns = PATIENCE_NS << (2 * (rounds < 4 ? rounds : 4));
    if (link->state != NRG_LINK_CONNECTS || upstream->n < 2 ||
        now_ns - link->tried_ns < patience_ns)
        return false;
    try_addresses(link, upstream, now_ns);
    return true;
}

static int finish_connect(struct nrg_link *link, struct nrg_upstream *upstream, int64_t now_ns)
{
    int code = 0;
    socklen_t length = sizeof code;
    struct sockaddr_storage peer;
    socklen_t peer_length = sizeof peer;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &code, &length))
        code = errno;
    if (code) {
        link->failed++;
        int rc = try_addresses(link, upstream, now_ns);
        if (link->failed >= upstream->n && rc)
            return fail(link, -code);
        return rc ? rc : -EAGAIN;
    }
    if (getpeername(link->fd, (struct sockaddr *)&peer, &peer_length))
        return errno == ENOTCONN ? -EAGAIN : fail(link, -errno);
    link->state = NRG_LINK_OPEN;
    upstream->first = link->address;
    if (link->tls) {
        link->session = nrg_tls_open(link->tls, link->fd);
        if (!link->session)
            return fail(link, -ENOMEM);
        link->state = NRG_LINK_SHAKES_HANDS;
    }
    return 0;
}

int nrg_link_advance(struct nrg_link *link, struct nrg_upstream *upstream, int64_t now_ns)
{
    int rc = 0;
    if (link->state == NRG_LINK_CONNECTS)
        rc = finish_connect(link, upstream, now_ns);
    if (!rc && link->state == NRG_LINK_SHAKES_HANDS) {
        rc = nrg_tls_handshake(link->tls, link->session, &link->want_write);
        if (!rc)
            link->state = NRG_LINK_OPEN;
        else if (rc != -EAGAIN)
            nrg_tls_explain(link->tls, link->session, link->why, sizeof link->why);
    }
    return rc;
}

/* A result of recv or the like with errno, as a result of the link's. */
static ssize_t received(struct nrg_link *link, ssize_t got)
{
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        return fail(link, -errno);
    return got < 0 ? -errno : got;
}

ssize_t nrg_link_read(struct nrg_link *link, void *to, size_t n)
{
    if (!link->session)
        return received(link, recv(link->fd, to, n, 0));
    ssize_t got = nrg_tls_read(link->tls, link->session, to, n, &link->want_write);
    if (got == -EPROTO)
        nrg_tls_explain(link->tls, link->session, link->why, sizeof link->why);
    else if (got < 0 && got != -EAGAIN)
        return fail(link, (int)got);
    return got;
}

ssize_t nrg_link_read_dated(struct nrg_link *link, void *to, size_t n, int64_t *came_ns)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
        struct cmsghdr align;
    } control;
    struct iovec into = {to, n};
    struct msghdr message = {.msg_iov = &into,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct timespec came = {0};
    ssize_t got = recvmsg(link->fd, &message, 0);
    struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SO_TIMESTAMPNS)
        memcpy(&came, CMSG_DATA(head), sizeof came);
    *came_ns = came.tv_sec * NRG_NS_PER_S + came.tv_nsec;
    return received(link, got);
}

ssize_t nrg_link_write(struct nrg_link *link, const void *from, size_t n)
{
    if (link->session)
        return nrg_tls_write(link->tls, link->session, from, n, &link->want_write);
    ssize_t sent = send(link->fd, from, n, MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}
