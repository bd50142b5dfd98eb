/* See cputime.h: how much of a strand's CPU time a row can have had in a slot. */
#include <math.h>

#include "attribute/cputime/cputime.h"

/* The most CPU time that the strand can have had in so much of the slot: it has so many threads,
 * the machine so many CPUs, and the threads beside used at least so much of them. */
static double room_in(const struct nrg_cpu_time *times, const struct nrg_cpu_slot *slot, double s)
{
    double elsewhere_s = (double)slot->beside * ((double)slot->width_s - s);
    double taken_s = fmax(0, (double)slot->beside_s - elsewhere_s);
    return fmin((double)slot->threads * s, times->cpus * s - taken_s);
}

struct nrg_cpu_bounds nrg_cpu_bounds(const struct nrg_cpu_time *times,
                                     const struct nrg_cpu_slot *slot, double open_s)
{
    double cpu_s = (double)slot->cpu_s, all_s = (double)slot->open_s;
    double row_s = fmin(open_s, (double)slot->width_s), rest_s = (double)slot->width_s - row_s;
    /* A thread that waits does so outside of its spans rather than inside, as far as that goes. */
    double spans_s = fmax(0, fmin(cpu_s, room_in(times, slot, fmin(all_s, (double)slot->width_s))));
    double own_s = all_s > 0 ? spans_s * open_s / all_s : 0;
    double least_s = fmax(0, cpu_s - room_in(times, slot, rest_s));
    double most_s = fmin(cpu_s, room_in(times, slot, row_s));
    return (struct nrg_cpu_bounds){fmin(own_s, least_s), own_s, fmax(own_s, most_s)};
}
