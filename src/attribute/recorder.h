/*
 * The recorder is a load itself: who reads more often wakes an idle machine more often. What draws
 * its watts once, as soon as any CPU is awake, it has to itself whenever it reads in an idle
 * baseline, and shares with the workload in the run. So idle power of the baseline has too much of
 * it, in proportion to the readings per second, and spans lack that: reading faster was less true.
 *
 * How many watts these are nothing says. They are taken to be a tenth of what a CPU second draws,
 * give or take two (NRG_WOKEN_OFF).
 *
 * One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_RECORDER_H
#define NRG_ATTRIBUTE_RECORDER_H

#include "attribute/internal.h"

/* What a CPU second draws in the mean of the run; INFINITY: it is not known. */
double nrg_cpu_watts(const struct nrg_engine *engine, const struct nrg_part *part);
/* CPUs that the workload had in the mean of the run; 0: not known. */
double nrg_own_busy(const struct nrg_engine *engine);
/* CPUs that the recorder had in the run beyond those of the baseline and that busy time may not
 * show: as recorded, or, of recorders that did not say it, what so many more readings take. */
double nrg_recorder_more_busy(const struct nrg_engine *engine, const struct nrg_part *part);
/* What a CPU of the workload draws more than is above the baseline; 0: nothing, or not known. */
double nrg_recorder_woken_w(struct nrg_engine *engine, const struct nrg_part *part);

#endif
