/* See cputime.h: how much of a strand's CPU time a row can have had in a slot. */
#include <math.h>

#include "attribute/cputime/cputime.h"

/* The strand has so many threads, the machine so many CPUs, and the threads beside used at least so
 * much of them. */
double nrg_cpu_room(const struct nrg_cpu_time *times, const struct nrg_cpu_slot *slot, double s)
{
    double elsewhere_s = (double)slot->beside * ((double)slot->width_s - s);
    double taken_s = fmax(0, (double)slot->beside_s - elsewhere_s);
    return fmax(0, fmin((double)slot->threads * s, times->cpus * s - taken_s));
}

double nrg_cpu_in_spans(const struct nrg_cpu_time *times, const struct nrg_cpu_slot *slot)
{
    double open_s = fmin((double)slot->open_s, (double)slot->width_s);
    return fmax(0, fmin((double)slot->cpu_s, nrg_cpu_room(times, slot, open_s)));
}

struct nrg_cpu_bounds nrg_cpu_bounds(const struct nrg_cpu_time *times,
                                     const struct nrg_cpu_slot *slot, double open_s, double own_s)
{
    double cpu_s = fmax(0, (double)slot->cpu_s);
    double row_s = fmin(open_s, (double)slot->width_s), rest_s = (double)slot->width_s - row_s;
    double least_s = fmax(0, cpu_s - nrg_cpu_room(times, slot, rest_s));
    double most_s = fmin(cpu_s, nrg_cpu_room(times, slot, row_s));
    return (struct nrg_cpu_bounds){fmin(own_s, least_s), own_s, fmax(own_s, most_s)};
}
