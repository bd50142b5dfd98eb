/*
 * What follows from a channel's fixed domain name, for drivers that read names from a file
 * (simulate, replay): psys, machine and wall are wide, packages cover the processors, cores are
 * part of their package. Pure function on its argument; cannot fail; any thread.
 */
#ifndef NRG_SENSORS_DOMAIN_H
#define NRG_SENSORS_DOMAIN_H

#include "sensors/channel.h"

/* Sets wide, covers_cpu and, when it is empty, parent. The parent may not exist: see
 * nrg_rapl_fix_parents. */
void nrg_domain_describe(struct nrg_channel *channel);

#endif
