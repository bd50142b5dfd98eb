/*
 * See places.h. The parts of one user, and why:
 *   SERVED_OF_USER   as many programs that measure at the same time; eight users fill the places
 *   PLACES_OF_USER   the same again may be told that they are too many
 *   FDS_OF_USER      two sensors of 32 channels, or sixteen programs that begin at the same moment
 *                    with four; who fetches at once never notices
 * Looking who has fetched is a system call for each that owes. It is done soon after somebody began
 * to owe, as most fetch at once, and when somebody would have to do without; but at most a hundred
 * times a second. Who does not fetch is looked at once a second.
 */
#include "daemon/places.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define MAX_SERVED     256
#define SERVED_OF_USER 32
#define PLACES_OF_USER 64
#define FDS_OF_USER    64
#define DISCARDS       64 /* packets at a time */
#define SETTLE_NS      NRG_NS_PER_S
#define SETTLE_SOON_NS (10 * NRG_NS_PER_MS)

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What one user may have: where the limit of descriptors is low, an eighth. */
static size_t part(size_t all, size_t of_user)
{
    return at_most(all / 8 + 1, of_user);
}

/* What users up to a rank may have together. */
static size_t share(size_t all, enum nrg_rank rank)
{
    return rank == NRG_RANK_OTHER ? all / 2 : rank == NRG_RANK_MEMBER ? all - all / 8 : all;
}

int nrg_places_init(struct nrg_places *places, size_t limit)
{
    size_t max = at_most(limit, NRG_PLACES_FDS) / 2;
    *places = (struct nrg_places){.items = nrg_calloc(max + 1, sizeof *places->items),
                                  .max = max,
                                  .max_served = at_most(max, MAX_SERVED),
                                  .max_fds = max,
                                  .settled_ns = nrg_now_ns()};
    return places->items ? 0 : -ENOMEM;
}

void nrg_places_release(struct nrg_places *places)
{
    for (size_t i = 0; i < places->n; i++) {
        nrg_session_release(&places->items[i].session);
        close(places->items[i].fd);
    }
    free(places->items);
    *places = (struct nrg_places){0};
}

int nrg_places_unfetched(int fd)
{
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) ? -errno : bytes;
}

static void forget(struct nrg_places *places, size_t i)
{
    close(places->items[i].fd);
    places->items[i] = places->items[--places->n];
}

/*
 * What it still sends is thrown away. It may have sent its own end of the connection, which would
 * live, with all that it did not fetch, for as long as that lies here.
 */
static void discard(int fd)
{
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    for (int i = 0; i < DISCARDS && recvmsg(fd, &message, MSG_DONTWAIT) >= 0; i++)
        message = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
}

static void settle_one(struct nrg_places *places, size_t i)
{
    discard(places->items[i].fd);
    if (nrg_places_unfetched(places->items[i].fd) <= 0)
        forget(places, i);
}

void nrg_places_settle(struct nrg_places *places, int64_t now_ns)
{
    for (size_t i = places->n; i-- > places->n_served;)
        settle_one(places, i);
    places->settled_ns = now_ns;
    places->fresh = false;
}

/* Those of one user: few, so this may be done at any time. */
static void settle_user(struct nrg_places *places, uid_t uid)
{
    for (size_t i = places->n; i-- > places->n_served;)
        if (places->items[i].uid == uid)
            settle_one(places, i);
}

int64_t nrg_places_due_ns(const struct nrg_places *places)
{
    if (places->n == places->n_served)
        return INT64_MAX;
    return places->settled_ns + (places->fresh ? SETTLE_SOON_NS : SETTLE_NS);
}

struct held {
    size_t places, served, fds;
};

/* What a user has, and what all users up to each rank have. */
struct holdings {
    struct held own, up_to[NRG_RANKS];
};

static void add(struct held *sum, const struct held *one)
{
    sum->places += one->places;
    sum->served += one->served;
    sum->fds += one->fds;
}

static struct holdings count(const struct nrg_places *places, uid_t uid)
{
    struct holdings h = {0};
    for (size_t i = 0; i < places->n; i++) {
        const struct nrg_client *place = &places->items[i];
        const struct held one = {1, i < places->n_served, place->n_fds};
        add(&h.up_to[place->rank], &one);
        if (place->uid == uid)
            add(&h.own, &one);
    }
    for (size_t r = 1; r < NRG_RANKS; r++)
        add(&h.up_to[r], &h.up_to[r - 1]);
    return h;
}

static size_t remainder_of(size_t most, size_t has)
{
    return most > has ? most - has : 0;
}

/* What a user of that rank may still get. What is for higher ranks, too, these may have taken. */
static struct held left(const struct nrg_places *places, enum nrg_rank rank,
                        const struct holdings *h)
{
    struct held least = {.places = remainder_of(part(places->max, PLACES_OF_USER), h->own.places),
                         .served =
                             remainder_of(part(places->max_served, SERVED_OF_USER), h->own.served),
                         .fds = remainder_of(part(places->max_fds, FDS_OF_USER), h->own.fds)};
    for (enum nrg_rank r = rank; r < NRG_RANKS; r++) {
        const struct held *has = &h->up_to[r];
        least.places = at_most(least.places, remainder_of(share(places->max, r), has->places));
        least.served =
            at_most(least.served, remainder_of(share(places->max_served, r), has->served));
        least.fds = at_most(least.fds, remainder_of(share(places->max_fds, r), has->fds));
    }
    return least;
}

static bool may_look_again(struct nrg_places *places, int64_t now_ns)
{
    if (now_ns - places->settled_ns < SETTLE_SOON_NS)
        return false;
    nrg_places_settle(places, now_ns);
    return true;
}

static bool has_room(const struct nrg_places *places, uid_t uid, enum nrg_rank rank)
{
    const struct holdings h = count(places, uid);
    return left(places, rank, &h).places > 0;
}

bool nrg_places_can_owe(struct nrg_places *places, uid_t uid, enum nrg_rank rank, int64_t now_ns)
{
    if (has_room(places, uid, rank))
        return true;
    settle_user(places, uid); /* who has just ended, say, has left all that he owed */
    return has_room(places, uid, rank) ||
           (may_look_again(places, now_ns) && has_room(places, uid, rank));
}

static size_t served_of(const struct nrg_places *places, uid_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < places->n_served; i++)
        n += places->items[i].uid == uid;
    return n;
}

/* Of the user below or at `rank` with the most places, that which was silent longest. -1: none has
 * more than `than`. */
static ptrdiff_t idlest_of_largest(const struct nrg_places *places, enum nrg_rank rank, size_t than)
{
    ptrdiff_t found = -1;
    size_t most = than;
    for (size_t i = 0; i < places->n_served; i++) {
        const struct nrg_client *place = &places->items[i];
        if (place->rank > rank)
            continue;
        size_t served = served_of(places, place->uid);
        bool idler =
            found >= 0 && served == most && place->heard_ns < places->items[found].heard_ns;
        if (served > most || idler)
            found = (ptrdiff_t)i;
        most = served > most ? served : most;
    }
    return found;
}

int nrg_places_find(const struct nrg_places *places, uid_t uid, enum nrg_rank rank,
                    ptrdiff_t *evicted)
{
    const struct holdings h = count(places, uid);
    *evicted = -1;
    if (h.own.served >= part(places->max_served, SERVED_OF_USER))
        return -EAGAIN;
    if (left(places, rank, &h).served > 0)
        return 0;
    if (rank > NRG_RANK_OTHER)
        *evicted = idlest_of_largest(places, NRG_RANK_OTHER, 0);
    if (*evicted < 0) /* one more than it would have itself, so that nobody takes turns */
        *evicted = idlest_of_largest(places, rank, h.own.served + 1);
    return *evicted < 0 ? -EBUSY : 0;
}

struct nrg_client *nrg_places_add(struct nrg_places *places, int fd, uid_t uid, enum nrg_rank rank,
                                  bool owing)
{
    size_t i = places->n++;
    places->fresh |= owing;
    if (!owing) { /* the first that owes makes way */
        places->items[i] = places->items[places->n_served];
        i = places->n_served++;
    }
    places->items[i] =
        (struct nrg_client){.fd = fd, .uid = uid, .rank = rank, .heard_ns = nrg_now_ns()};
    return &places->items[i];
}

void nrg_places_end(struct nrg_places *places, size_t i)
{
    struct nrg_client ended = places->items[i];
    size_t last = --places->n_served;
    nrg_session_release(&ended.session);
    places->items[i] = places->items[last];
    places->items[last] = ended; /* now the first of those that owe */
    places->fresh = true;
    if (nrg_places_unfetched(ended.fd) <= 0)
        forget(places, last);
}

static size_t spare_fds(const struct nrg_places *places, const struct nrg_client *client)
{
    const struct holdings h = count(places, client->uid);
    return left(places, client->rank, &h).fds;
}

unsigned nrg_places_spare_fds(struct nrg_places *places, const struct nrg_client *client,
                              int64_t now_ns)
{
    if (client->session.state != NRG_SESSION_GREETED || nrg_places_unfetched(client->fd) != 0)
        return 0;
    size_t spare = spare_fds(places, client);
    if (spare < NRG_SHARE_MAX) { /* who began with many programs has fetched by now */
        settle_user(places, client->uid);
        spare = spare_fds(places, client);
    }
    if (spare < NRG_SHARE_MAX && may_look_again(places, now_ns))
        spare = spare_fds(places, client);
    return (unsigned)spare;
}
