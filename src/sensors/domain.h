/*
 * What a channel's fixed domain name already says, for drivers that learn names from a file
 * (simulate, replay): psys, machine and wall are wide, packages cover the processors, cores are
 * part of their package. Only fills what is certain from the name; pure function on its argument.
 */
#ifndef NRG_SENSORS_DOMAIN_H
#define NRG_SENSORS_DOMAIN_H

#include "sensors/channel.h"

/* Sets wide, covers_cpu and, when it is empty, parent. The parent may not exist: see
 * nrg_rapl_fix_parents. */
void nrg_domain_describe(struct nrg_channel *channel);

#endif
