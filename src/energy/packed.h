/*
 * Readings of a channel, packed: an hour at 1 kHz takes 10 to 20 MB instead of 60. Blocks of points
 * keep the first time and sum, and of the points after it the distances in time and what the
 * counter moved (of a gauge: what it showed), each in as many bytes as the block needs. Sums are
 * made again from these in the order in which they were first made, so they are the same to the
 * last bit.
 *
 * Channels that are read together have the same times, which are most of the bytes where readings
 * come somewhat late, as they do. A block whose times are those of the same block of the channel
 * that it is packed like has none of its own. From a reading on that one of them lacks, blocks
 * begin at other readings, and each has its own times again.
 *
 * Who looks at a point gets its block unpacked; the last few are kept, so walking costs little,
 * also with several walkers in about one place.
 *
 * Init, add, finish, look at; release. The first three can fail, with -ENOMEM. One thread at a
 * time.
 */
#ifndef NRG_ENERGY_PACKED_H
#define NRG_ENERGY_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRG_POINT_BLOCK 128 /* points */
#define NRG_POINT_VIEWS 8   /* unpacked blocks */

/* A block, unpacked. */
struct nrg_point_view {
    size_t block; /* SIZE_MAX: none yet */
    int64_t t_ns[NRG_POINT_BLOCK];
    double sum_j[NRG_POINT_BLOCK];
    double gauge[NRG_POINT_BLOCK]; /* of a gauge */
    bool gap[NRG_POINT_BLOCK];     /* between the point and the next one */
};

struct nrg_packed {
    const struct nrg_point_view *view; /* that was looked at last */
    struct nrg_packing *own;
};

/* `scale`: of raw values. `like`: a channel that was read together with it, NULL: none. It gets its
 * points first, and must stay until these are finished, not longer. */
int nrg_packed_init(struct nrg_packed *points, bool gauge, double scale,
                    const struct nrg_packed *like);
/* A reading later than the last one: what a counter moved by since then, 0 over a gap, or what a
 * gauge shows. `gap`: nothing is known of the time since then. */
int nrg_packed_add(struct nrg_packed *points, int64_t t_ns, int64_t raw, bool gap);
/* No more will come: until then the last points can't be looked at. */
int nrg_packed_finish(struct nrg_packed *points);
void nrg_packed_release(struct nrg_packed *points);

const struct nrg_point_view *nrg_packed_unpack(struct nrg_packed *points, size_t block);

/* The block of point i, in which it is number i % NRG_POINT_BLOCK. */
static inline const struct nrg_point_view *nrg_packed_at(struct nrg_packed *points, size_t i)
{
    size_t block = i / NRG_POINT_BLOCK;
    return points->view->block == block ? points->view : nrg_packed_unpack(points, block);
}

/* How many points are at most t_ns. */
size_t nrg_packed_up_to(struct nrg_packed *points, int64_t t_ns);

#endif
