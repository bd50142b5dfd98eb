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
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define MAX_SERVED     256
#define SERVED_OF_USER 32
#define PLACES_OF_USER 64
#define FDS_OF_USER    64
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

void nrg_places_settle(struct nrg_places *places, int64_t now_ns)
{
    for (size_t i = places->n; i-- > places->n_served;)
        if (nrg_places_unfetched(places->items[i].fd) <= 0)
            forget(places, i);
    places->settled_ns = now_ns;
    places->fresh = false;
}

int64_t nrg_places_due_ns(const struct nrg_places *places)
{
    if (places->n == places->n_served)
        return INT64_MAX;
    return places->settled_ns + (places->fresh ? SETTLE_SOON_NS : SETTLE_NS);
}

/* What a user has, or users up to a rank. */
struct held {
    size_t places, served, fds;
};

static void count(struct held *held, const struct nrg_places *places, size_t i)
{
    held->places++;
    held->served += i < places->n_served;
    held->fds += places->items[i].n_fds;
}

static struct held held_by_user(const struct nrg_places *places, uid_t uid)
{
    struct held held = {0};
    for (size_t i = 0; i < places->n; i++)
        if (places->items[i].uid == uid)
            count(&held, places, i);
    return held;
}

static struct held held_up_to(const struct nrg_places *places, enum nrg_rank rank)
{
    struct held held = {0};
    for (size_t i = 0; i < places->n; i++)
        if (places->items[i].rank <= rank)
            count(&held, places, i);
    return held;
}

/* Those of higher rank may stand in places that are for all, so all are counted for them. */
static size_t left_of(const struct nrg_places *places, enum nrg_rank rank, size_t all,
                      size_t (*number)(const struct held *held))
{
    size_t left = SIZE_MAX;
    for (enum nrg_rank r = rank; r < NRG_RANKS; r++) {
        struct held held = held_up_to(places, r);
        size_t most = share(all, r), has = number(&held);
        left = at_most(left, most > has ? most - has : 0);
    }
    return left;
}

static size_t number_of_places(const struct held *held)
{
    return held->places;
}

static size_t number_of_served(const struct held *held)
{
    return held->served;
}

static size_t number_of_fds(const struct held *held)
{
    return held->fds;
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
    return held_by_user(places, uid).places < part(places->max, PLACES_OF_USER) &&
           left_of(places, rank, places->max, number_of_places) > 0;
}

bool nrg_places_can_owe(struct nrg_places *places, uid_t uid, enum nrg_rank rank, int64_t now_ns)
{
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
        const struct nrg_place *place = &places->items[i];
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
    size_t own = served_of(places, uid);
    *evicted = -1;
    if (own >= part(places->max_served, SERVED_OF_USER))
        return -EAGAIN;
    if (left_of(places, rank, places->max_served, number_of_served) > 0)
        return 0;
    if (rank > NRG_RANK_OTHER)
        *evicted = idlest_of_largest(places, NRG_RANK_OTHER, 0);
    if (*evicted < 0) /* one more than it would have itself, so that nobody takes turns */
        *evicted = idlest_of_largest(places, rank, own + 1);
    return *evicted < 0 ? -EBUSY : 0;
}

struct nrg_place *nrg_places_add(struct nrg_places *places, int fd, uid_t uid, enum nrg_rank rank,
                                 bool owing)
{
    size_t i = places->n++;
    places->fresh |= owing;
    if (!owing) { /* the first that owes makes way */
        places->items[i] = places->items[places->n_served];
        i = places->n_served++;
    }
    places->items[i] =
        (struct nrg_place){.fd = fd, .uid = uid, .rank = rank, .heard_ns = nrg_now_ns()};
    return &places->items[i];
}

void nrg_places_end(struct nrg_places *places, size_t i)
{
    struct nrg_place ended = places->items[i];
    size_t last = --places->n_served;
    nrg_session_release(&ended.session);
    places->items[i] = places->items[last];
    places->items[last] = ended; /* now the first of those that owe */
    places->fresh = true;
    if (nrg_places_unfetched(ended.fd) <= 0)
        forget(places, last);
}

unsigned nrg_places_spare_fds(struct nrg_places *places, const struct nrg_place *place,
                              int64_t now_ns)
{
    size_t of_user = part(places->max_fds, FDS_OF_USER), spare = 0;
    if (nrg_places_unfetched(place->fd) != 0)
        return 0;
    do {
        size_t has = held_by_user(places, place->uid).fds;
        spare = at_most(left_of(places, place->rank, places->max_fds, number_of_fds),
                        of_user > has ? of_user - has : 0);
    } while (spare < NRG_SHARE_MAX && may_look_again(places, now_ns));
    return (unsigned)spare;
}
