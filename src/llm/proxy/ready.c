/* See ready.h. */
#include "llm/proxy/ready.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

int nrg_ready_open(struct nrg_ready *r, int64_t gather_ns)
{
    *r = (struct nrg_ready){.later = -1, .gather_ns = gather_ns};
    r->now = epoll_create1(EPOLL_CLOEXEC);
    if (r->now >= 0)
        r->later = epoll_create1(EPOLL_CLOEXEC);
    return r->later < 0 ? -errno : 0;
}

void nrg_ready_close(struct nrg_ready *r)
{
    if (r->now >= 0)
        close(r->now);
    if (r->later >= 0)
        close(r->later);
    r->now = r->later = -1;
}

void nrg_ready_forget(struct nrg_ready *r, struct nrg_ready_end *end)
{
    r->n_later -= end->fd >= 0 && end->later;
    end->fd = -1;
}

static void leave(struct nrg_ready *r, struct nrg_ready_end *end)
{
    struct epoll_event event = {0};
    epoll_ctl(end->later ? r->later : r->now, EPOLL_CTL_DEL, end->fd, &event);
    nrg_ready_forget(r, end);
}

void nrg_ready_watch(struct nrg_ready *r, struct nrg_ready_end *end, int fd, uint32_t mask,
                     bool later)
{
    struct epoll_event event = {.events = mask, .data.ptr = end};
    bool watched = end->fd == fd && fd >= 0;
    if (watched && mask == end->mask && later == end->later)
        return;
    /* Errors and hang-ups are told whatever the mask, again and again: taken out, they are not. */
    if (watched && (!mask || later != end->later)) {
        leave(r, end);
        watched = false;
    }
    if (fd < 0 || !mask ||
        epoll_ctl(later ? r->later : r->now, watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event))
        return;
    r->n_later += later && !watched;
    *end = (struct nrg_ready_end){fd, mask, later};
}

/* Whole milliseconds until the second set's turn, at most so many. */
static int turn_ms(const struct nrg_ready *r, int64_t now_ns, int most_ms)
{
    int64_t left_ns = r->due_ns - now_ns;
    if (!r->n_later)
        return most_ms;
    int64_t ms = left_ns > 0 ? (left_ns + NRG_NS_PER_MS / 2) / NRG_NS_PER_MS : 0;
    return ms < most_ms ? (int)ms : most_ms;
}

int nrg_ready_wait(struct nrg_ready *r, struct epoll_event *events, int timeout_ms)
{
    const int half = NRG_READY_EVENTS / 2;
    int n = epoll_wait(r->now, events, half, turn_ms(r, nrg_now_ns(), timeout_ms));
    if (n < 0 && errno != EINTR)
        return -errno;
    n = n < 0 ? 0 : n;
    int64_t now_ns = nrg_now_ns();
    if (!r->n_later || turn_ms(r, now_ns, 1) > 0)
        return n;
    int more = epoll_wait(r->later, events + n, half, 0);
    r->due_ns = more == half ? now_ns : now_ns + r->gather_ns;
    return more > 0 ? n + more : n;
}
