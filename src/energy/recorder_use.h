/*
 * CPU time of the recorder itself. Where the busy time of the machine is made of ticks, each given
 * to whoever runs at it, a recorder that wakes up by a timer is in none of them, or in far too
 * many, by the phase of its timer: but it knows its own CPU time (channel cpu.recorder).
 *
 * What it used in a baseline is in the power of that; only what is beyond it counts.
 *
 * Plain data; the timeline is the frame's. One thread at a time.
 */
#ifndef NRG_ENERGY_RECORDER_USE_H
#define NRG_ENERGY_RECORDER_USE_H

#include "energy/frame.h"

struct nrg_recorder_use {
    const struct nrg_timeline *own; /* NULL: not recorded */
    double before;                  /* CPUs that it had in the baselines */
};

/* Ticks, given to whoever runs at them (or exact times that are shown in ticks: they look alike).
 */
bool nrg_busy_samples(const struct nrg_frame *frame);

/* Nothing where the busy time does not sample: it has the recorder's in it. */
struct nrg_recorder_use nrg_recorder_use_find(struct nrg_frame *frame);
/* CPU seconds between two instants, beyond what it used in the baselines. */
double nrg_recorder_use_s(const struct nrg_recorder_use *use, int64_t begin_ns, int64_t end_ns);

#endif
