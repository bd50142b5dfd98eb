/*
 * What a total adds: the one rule, for the report (energy/domains.c, energy/wall.c) and for
 * the energy so far of a recorder that still runs (record/sampler/live.c).
 *
 * A domain is an energy counter, or a power gauge where there is no counter of that name or only a
 * coarse one (a plug's watt-hours). The total takes every domain that is not wide and that no other
 * domain of the total contains, and no estimate of processors that are measured. Only when there
 * are none of those, or none covers the processors, it takes the widest meter. Otherwise the widest
 * is shown beside the parts as a check: it may see fans and disks, and must never be added.
 *
 * Plain functions on the caller's arrays; any thread.
 */
#ifndef NRG_SENSORS_TOTAL_H
#define NRG_SENSORS_TOTAL_H

#include "sensors/channel.h"

/* The channels of a recording, or of a recorder, with what their readings have shown. */
struct nrg_total_source {
    void *arg;
    size_t n;
    const struct nrg_channel *(*channel)(void *arg, size_t i);
    bool (*was_read)(void *arg, size_t i);         /* at least once */
    double (*seen_step_j)(void *arg, size_t i);    /* of a counter: nrg_total_seen_step_j */
    double (*gauge_energy_j)(void *arg, size_t i); /* of a power gauge, in the run */
};

/* Whether channel i is a domain. Asks for gauge_energy_j only beside a coarse counter. */
bool nrg_total_is_domain(const struct nrg_total_source *source, size_t i);

/*
 * The step of a counter, from its readings, because drivers do not always know it: the mean of the
 * steps that it made, when it stood still more often than it moved. Else 0.
 */
double nrg_total_seen_step_j(size_t still, size_t moved, double moved_j);

/* A counter of a powered part that stands still for this long is broken and is not a domain. */
#define NRG_STUCK_NS INT64_C(500000000)
bool nrg_total_is_stuck(const struct nrg_channel *channel, double energy_j, double duration_s);

/* How far a gauge's readings are behind in the mean, by what its driver says of its averaging: its
 * time constant, or half of a running mean and of an update. 0: no more than an update. */
double nrg_total_lag_s(const struct nrg_channel *channel);

/* Energy that the averaging of a power gauge has not shown yet, from its first and last value. NAN:
 * unknown. */
double nrg_total_lag_j(const struct nrg_channel *channel, double first_w, double last_w);

/* A domain with its energy in the run. */
struct nrg_total_item {
    const struct nrg_channel *channel;
    const char *driver, *sensor;
    double energy_j;
    size_t index; /* the caller's */
    bool in_total;
    bool ordered; /* private */
};

/* Copies the items to `out` (n): each domain before its parts, else as they are. */
void nrg_total_order(struct nrg_total_item *items, size_t n, struct nrg_total_item *out);

/* Sets in_total of all. Index of the widest meter beside the total, n: none, or it is the total. */
size_t nrg_total_choose(struct nrg_total_item *items, size_t n);

/* True for what a total of parts adds: neither wide nor contained in another part, nor an estimate
 * beside a measured one. */
bool nrg_total_is_part(const struct nrg_total_item *items, size_t n, size_t i);
/* The widest meter other than `besides` and the lines that belong to it (n: no exception). n: none.
 */
size_t nrg_total_widest(const struct nrg_total_item *items, size_t n, size_t besides);
/* One meter, or two of its lines that measure the machine together (phases, two supplies). */
bool nrg_total_same_meter(const struct nrg_total_item *a, const struct nrg_total_item *b);

#endif
