/* See ready.h. */
#include "llm/proxy/ready.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

int nrg_ready_open(struct nrg_ready *r, int64_t gather_ns)
{
    *r = (struct nrg_ready){.epoll = epoll_create1(EPOLL_CLOEXEC), .gather_ns = gather_ns};
    return r->epoll < 0 ? -errno : 0;
}

void nrg_ready_close(struct nrg_ready *r)
{
    if (r->epoll >= 0)
        close(r->epoll);
    r->epoll = -1;
}

static void hold(struct nrg_ready *r, struct nrg_ready_end *end)
{
    end->held = true;
    end->previous = NULL;
    end->next = r->held;
    if (end->next)
        end->next->previous = end;
    r->held = end;
}

static void release(struct nrg_ready *r, struct nrg_ready_end *end)
{
    if (!end->held)
        return;
    end->held = false;
    if (end->previous)
        end->previous->next = end->next;
    else
        r->held = end->next;
    if (end->next)
        end->next->previous = end->previous;
}

void nrg_ready_forget(struct nrg_ready *r, struct nrg_ready_end *end)
{
    release(r, end);
    end->fd = -1;
}

void nrg_ready_watch(struct nrg_ready *r, struct nrg_ready_end *end, int fd, uint32_t mask,
                     bool held)
{
    bool watched = end->fd == fd && fd >= 0;
    held = held && mask & EPOLLIN;
    mask &= held ? ~(uint32_t)EPOLLIN : ~0u;
    if (watched && mask == end->mask && held == end->held)
        return;
    struct epoll_event event = {.events = mask, .data.ptr = end};
    /* Errors and hang-ups are told whatever the mask, again and again: taken out, they are not. */
    int what = !watched ? EPOLL_CTL_ADD : mask ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
    if (fd < 0 || (!watched && !mask) || epoll_ctl(r->epoll, what, fd, &event))
        return;
    release(r, end);
    end->fd = mask ? fd : -1;
    end->mask = mask;
    if (held)
        hold(r, end);
}

int nrg_ready_wait(struct nrg_ready *r, struct epoll_event *events, int timeout_ms, int64_t now_ns)
{
    if (!r->held)
        r->due_ns = 0;
    else {
        if (!r->due_ns)
            r->due_ns = now_ns + r->gather_ns;
        int64_t left_ns = r->due_ns > now_ns ? r->due_ns - now_ns : 0;
        int64_t left_ms = (left_ns + NRG_NS_PER_MS / 2) / NRG_NS_PER_MS;
        timeout_ms = left_ms < timeout_ms ? (int)left_ms : timeout_ms;
    }
    int n = epoll_wait(r->epoll, events, NRG_READY_EVENTS, timeout_ms);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    return n;
}

bool nrg_ready_tick(struct nrg_ready *r, int64_t now_ns)
{
    if (!r->held || now_ns < r->due_ns - NRG_NS_PER_MS / 2)
        return false;
    r->due_ns = now_ns + r->gather_ns;
    return true;
}
