/*
 * Who holds how much of nrgd. What it sends stays on its own account until the client has fetched
 * it or is gone: descriptors count against the kernel's limit of its user (RLIMIT_NOFILE), packets
 * against the memory of its control group. Closing the connection changes nothing of that. So a
 * connection whose answer is not fetched keeps its place here when it ends: it owes, until its
 * queue is empty (SIOCOUTQ).
 *
 * Three things are shared out: places of those who are served, all places, and descriptors on
 * their way. Of each a user has a small part at most, users outside of the group together half, the
 * group seven eighths, so that root is always served; who has least gets the place of the idlest of
 * who has most, and users outside of the group make room first.
 *
 * One thread. 0 or a negative errno.
 */
#ifndef NRG_DAEMON_PLACES_H
#define NRG_DAEMON_PLACES_H

#include "daemon/session.h"

enum nrg_rank { NRG_RANK_OTHER, NRG_RANK_MEMBER, NRG_RANK_ROOT, NRG_RANKS };

struct nrg_client {
    int fd;
    uid_t uid;
    enum nrg_rank rank;
    unsigned n_fds; /* descriptors that were sent to it and are not fetched */
    int64_t heard_ns;
    struct nrg_session session;
};

struct nrg_places {
    struct nrg_client *items; /* n_served that are served, then those that only owe */
    size_t n, n_served;
    size_t max, max_served, max_fds; /* for all users together */
    int64_t settled_ns;              /* when it was looked who has fetched what he owed */
    bool fresh;                      /* somebody owes since */
};

/* The most descriptors of which the process makes use, whatever its limit. */
#define NRG_PLACES_FDS 4096

/* `limit` is RLIMIT_NOFILE: half of it are places, half are files of sensors. */
int nrg_places_init(struct nrg_places *places, size_t limit);
void nrg_places_release(struct nrg_places *places);

/* Closes those that owed something and have fetched it. */
void nrg_places_settle(struct nrg_places *places, int64_t now_ns);

/* When that is due next; INT64_MAX: nobody owes anything. */
int64_t nrg_places_due_ns(const struct nrg_places *places);

/* Whether one more packet may be owed by this user. If not, it is closed without a word. */
bool nrg_places_can_owe(struct nrg_places *places, uid_t uid, enum nrg_rank rank, int64_t now_ns);

/*
 * Whether a connection may be served. 0: yes, after *evicted (-1: nobody) has been told and ended;
 * -EAGAIN: the user has as many as he may have; -EBUSY: all places are taken.
 */
int nrg_places_find(const struct nrg_places *places, uid_t uid, enum nrg_rank rank,
                    ptrdiff_t *evicted);

/* Takes fd, to be served, or (owing) to be closed once it has fetched what was sent. After
 * nrg_places_can_owe only. */
struct nrg_client *nrg_places_add(struct nrg_places *places, int fd, uid_t uid, enum nrg_rank rank,
                                  bool owing);

/* Ends the session of a served one. Its place in the list goes to the last that is served. */
void nrg_places_end(struct nrg_places *places, size_t i);

/* How many descriptors may be sent to this one. */
unsigned nrg_places_spare_fds(struct nrg_places *places, const struct nrg_client *client,
                              int64_t now_ns);

/* What the peer has not fetched, in bytes of the kernel; negative errno: the kernel can't say. */
int nrg_places_unfetched(int fd);

#endif
