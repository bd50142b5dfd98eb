/* Idle power of a run beside others, where the program rests (idle_rests.c). */
#ifndef NRG_ATTRIBUTE_IDLE_RESTS_H
#define NRG_ATTRIBUTE_IDLE_RESTS_H

#include "attribute/internal.h"

/* By how much it may be off, 95 %, once others have their watts; INFINITY: rests do not tell. */
double nrg_part_off_in_rests_w(const struct nrg_engine *engine, const struct nrg_part *part);

#endif
