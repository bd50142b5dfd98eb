/*
 * See others.h. Who runs takes a CPU from the others: on a machine whose CPUs are all busy, others
 * run when the workload does not, and an even rate would say that they did so whatever it does. Its
 * watts would then look like the difference between its own and theirs.
 */
#include <math.h>

#include "energy/others.h"

#define ROUNDS 50 /* of a bisection */

/* CPUs of others in a bin, where all of them could have `more` than they want. */
static double taken(const struct nrg_others_room *room, const double *wanted, double more, size_t i)
{
    double free = fmax(room->cpus - room->mine[i], 0);
    return fmin(fmax(wanted[i] + more, 0), free);
}

static double sum_taken(const struct nrg_others_room *room, const double *wanted, double more)
{
    double sum = 0;
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++)
        sum += taken(room, wanted, more, i);
    return sum;
}

void nrg_others_room_add(struct nrg_others_room *room, double from, double to, double cpus)
{
    double first = fmax(from, 0) * NRG_OTHERS_BINS, last = fmin(to, 1) * NRG_OTHERS_BINS;
    for (size_t i = (size_t)first; i < NRG_OTHERS_BINS && (double)i < last; i++) {
        double begin = first > (double)i ? first : (double)i, end = (double)i + 1;
        room->mine[i] += cpus * ((last < end ? last : end) - begin);
    }
}

void nrg_others_room_grow(struct nrg_others_room *room, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++)
        sum += room->mine[i];
    for (size_t i = 0; sum > 0 && sum < mean * NRG_OTHERS_BINS && i < NRG_OTHERS_BINS; i++)
        room->mine[i] *= mean * NRG_OTHERS_BINS / sum;
}

static void take_all(const struct nrg_others_room *room, double *cpus)
{
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++)
        cpus[i] = taken(room, cpus, room->cpus, i);
}

bool nrg_others_fit_in(const struct nrg_others_room *room, double cpus[NRG_OTHERS_BINS])
{
    double sum = 0, low = 0, high = room->cpus;
    bool fits = true;
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++) {
        sum += cpus[i];
        fits &= cpus[i] + room->mine[i] <= room->cpus;
    }
    if (room->full)
        take_all(room, cpus);
    if (fits || room->full)
        return room->full;
    for (int i = 0; i < ROUNDS; i++) {
        double more = (low + high) / 2;
        *(sum_taken(room, cpus, more) < sum ? &low : &high) = more;
    }
    double rest = (sum - sum_taken(room, cpus, high)) / NRG_OTHERS_BINS;
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++)
        cpus[i] = taken(room, cpus, high, i) + rest;
    return true;
}
