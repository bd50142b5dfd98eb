/*
 * CPU time of processes that are not the workload's, from the busy time of the machine and the CPU
 * time of the workload. The busy time may come in ticks of 10 ms, the workload's in ns, so that
 * their difference in one cell is mostly rounding, and its positive part alone would be CPU time
 * that nobody used. Summed up over the run, the difference is exact to one tick, and it never
 * falls: that is how much is known.
 *
 * Nothing is kept. Thread-safe.
 */
#ifndef NRG_ENERGY_OTHERS_H
#define NRG_ENERGY_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The others' seconds in each of n cells. `tick_s`: resolution of the busy time. `recorder_s`: what
 * the recorder is known to have used of them, which the busy time may have or not (NULL: nothing is
 * known); so what it shows counts as far as it is more than that.
 */
void nrg_others_spread(const double *busy_s, const double *mine_s, const double *recorder_s,
                       size_t n, double tick_s, double *others_s);

/* Of the busy time: its resolution, and how late it may count who runs. */
struct nrg_others_clock {
    double tick_s, late_s;
};

/*
 * When in its cell others were busy is not known, but cells tell how long they stay so: the less
 * neighbours are alike, the shorter. Taken for a process whose correlation decays over time, the
 * likely CPUs of each part of a cell follow from that cell and its neighbours. A rate that jumps
 * from cell to cell instead would be too low where sudden changes are looked at, and so would be
 * the watts that are found with it. Where they stay busy for longer than a cell, they go from one
 * level to another at one moment of it, which follows from the cell's CPU time.
 */
#define NRG_OTHERS_PARTS 10

struct nrg_others_profile {
    double cell_s;                      /* of nearly all cells; 0: evenly */
    double mean;                        /* CPUs */
    double weight[NRG_OTHERS_PARTS][3]; /* of the cell before, this one and the next */
    double late;                        /* how late CPU time is counted, as a part of a cell */
    double same;                        /* CPUs: closer ones are one level; 0: there are none */
};

struct nrg_others_cell {
    double cpus[NRG_OTHERS_PARTS];
    double unsure2[NRG_OTHERS_PARTS]; /* square of the CPUs by which a part may be off, about */
};

/* Cells begin at begin_ns, n + 1 of them. */
void nrg_others_fit_profile(struct nrg_others_profile *profile, const double *others_s,
                            const int64_t *begin_ns, size_t n,
                            const struct nrg_others_clock *clock);
/* Fills what is known of cell k; false: it has no parts but one, the first. */
bool nrg_others_parts(const struct nrg_others_profile *profile, const double *others_s,
                      const int64_t *begin_ns, size_t n, size_t k, struct nrg_others_cell *cell);

/*
 * A cell in bins, with the CPUs that the workload has in each: others can't have more than the rest
 * (others_room.c).
 */
#define NRG_OTHERS_BINS 100

struct nrg_others_room {
    double cpus; /* of the machine */
    bool full;   /* all of them were busy */
    double mine[NRG_OTHERS_BINS];
};

/* The workload has so many CPUs from one part of the cell (0 to 1) to another. */
void nrg_others_room_add(struct nrg_others_room *room, double from, double to, double cpus);
/* It has so many in the mean, if that is more than was said: as much more in each bin. */
void nrg_others_room_grow(struct nrg_others_room *room, double mean);
/* Moves CPU time of others to where there is room for it; what has none anywhere stays spread
 * evenly. Where all CPUs are busy, others have the room. false: nothing had to be moved. */
bool nrg_others_fit_in(const struct nrg_others_room *room, double cpus[NRG_OTHERS_BINS]);

#endif
