/*
 * Which descriptors have something to do, by epoll, in two sets: those that are told at once, and
 * streams whose texts may wait. The second is asked at most once in `gather_ns`: what came since is
 * then one read and one write for each stream instead of several, which are most of what the relay
 * costs. What is told at once is not held up by it.
 *
 * Embedded, by the relay. Errors: a negative errno. Threads: one.
 */
#ifndef NRG_LLM_PROXY_READY_H
#define NRG_LLM_PROXY_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define NRG_READY_EVENTS 128

/* A descriptor that is watched; what it belongs to is found by it. */
struct nrg_ready_end {
    int fd; /* that is registered, -1: none */
    uint32_t mask;
    bool later;
};

struct nrg_ready {
    int now, later; /* epoll; -1: none */
    size_t n_later;
    int64_t gather_ns, due_ns;
};

int nrg_ready_open(struct nrg_ready *ready, int64_t gather_ns);
void nrg_ready_close(struct nrg_ready *ready);
/* With a mask of 0 it is not watched. */
void nrg_ready_watch(struct nrg_ready *ready, struct nrg_ready_end *end, int fd, uint32_t mask,
                     bool later);
/* Its descriptor was closed, which took it out of its set. */
void nrg_ready_forget(struct nrg_ready *ready, struct nrg_ready_end *end);
/* Waits up to timeout_ms; events (of NRG_READY_EVENTS) have the ends in data.ptr. How many, or
 * -errno. */
int nrg_ready_wait(struct nrg_ready *ready, struct epoll_event *events, int timeout_ms);

#endif
