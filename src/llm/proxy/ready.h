/*
 * Which descriptors have something to do, by epoll. Those of streams can be held: what comes is not
 * told but left with the kernel until a tick that all of them share, every `gather_ns`, so that one
 * read and one write pass on what else takes several, which are most of what the relay costs. An
 * end or error of a descriptor that is held is told at once, and so is all that is not held.
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
    bool held;
    struct nrg_ready_end *previous, *next; /* of those that are held */
};

struct nrg_ready {
    int epoll; /* -1: none */
    struct nrg_ready_end *held;
    int64_t gather_ns, due_ns; /* due_ns: the next tick, where something is held */
};

int nrg_ready_open(struct nrg_ready *ready, int64_t gather_ns);
void nrg_ready_close(struct nrg_ready *ready);
/* With a mask of 0 it is not watched. */
void nrg_ready_watch(struct nrg_ready *ready, struct nrg_ready_end *end, int fd, uint32_t mask,
                     bool held);
/* Its descriptor was closed, which took it out of the set. */
void nrg_ready_forget(struct nrg_ready *ready, struct nrg_ready_end *end);
/* Waits up to timeout_ms, or to the next tick; events (of NRG_READY_EVENTS) have the ends in
 * data.ptr. How many, or -errno. */
int nrg_ready_wait(struct nrg_ready *ready, struct epoll_event *events, int timeout_ms,
                   int64_t now_ns);
/* Whether it is time to look at all that is held; if so, the next tick is set. */
bool nrg_ready_tick(struct nrg_ready *ready, int64_t now_ns);

#endif
