/*
 * From activity records of CUPTI, or of rocprofiler-sdk, to spans on the tracks of the GPU's
 * streams. Records come in the order in which buffers are handed over; spans of a track must be
 * given in order of time. So work is kept for half a second, sorted, and then marked, each span
 * below what the thread that launched it had open at the launch. Calls that wait for the GPU are
 * spans, too: on a track for each thread that waits, which uses no energy of its own, because the
 * thread's own track is the program's. CUPTI's records of synchronisation say which GPU a call
 * waits for, and which other calls wait.
 *
 * Used by one thread at a time. Errors: what does not fit into memory is counted as lost.
 */
#ifndef NRG_INJECT_ACTIVITY_H
#define NRG_INJECT_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#include "inject/launches.h"

#define NRG_ACTIVITY_TRACKS  256
#define NRG_ACTIVITY_HOLD_NS INT64_C(500000000)

struct nrg_activity_work {
    int64_t begin_ns, end_ns;
    uint32_t correlation;
    uint32_t name;  /* libnrg's; of waits: their meaning (waits.h) */
    uint16_t track; /* of `tracks`, NRG_ACTIVITY_SYNC: that of the call's thread */
};
#define NRG_ACTIVITY_SYNC UINT16_MAX

struct nrg_activity_place {
    uint32_t device, context, stream; /* NRG_ACTIVITY_WAITS: stream is the thread that waits */
};

struct nrg_activity_track {
    struct nrg_activity_place at;
    uint32_t number; /* libnrg's */
    int64_t end_ns;  /* of waits: of the last one */
};
#define NRG_ACTIVITY_WAITS UINT32_MAX

struct nrg_gpu_activity {
    struct nrg_activity_work *work;
    size_t n, cap;
    struct nrg_activity_work *later; /* room for part of `work` while it is parted */
    size_t cap_later;
    struct nrg_activity_track tracks[NRG_ACTIVITY_TRACKS];
    size_t n_tracks;
    struct nrg_launch *launches;
    struct nrg_sync *syncs;
    int (*gpu_of)(uint32_t device); /* the number of "gpu-N" */
    int64_t offset_ns;              /* from the source's clock to CLOCK_MONOTONIC */
    uint64_t n_records, n_marked, n_lost, n_timeless, n_untied;
};

/* -ENOMEM. */
int nrg_activity_init(struct nrg_gpu_activity *activity, int (*gpu_of)(uint32_t device));
void nrg_activity_release(struct nrg_gpu_activity *activity);

/* Work on a stream of a device, in the source's time. */
void nrg_activity_add(struct nrg_gpu_activity *activity, const struct nrg_activity_place *place,
                      uint64_t start, uint64_t end, uint32_t correlation, uint32_t name);
/* A call of the runtime, which may launch or wait (`meaning` of waits.h). */
void nrg_activity_call(struct nrg_gpu_activity *activity, uint32_t thread, uint64_t start,
                       uint64_t end, uint32_t correlation, unsigned meaning);
/* Takes one record of CUPTI; kinds that are not known are left out. */
void nrg_activity_take(struct nrg_gpu_activity *activity, const void *record);
/* Marks all work that ended before a time, in order; at most `most` of it. How many it were. */
size_t nrg_activity_mark(struct nrg_gpu_activity *activity, int64_t before_ns, size_t most);

#endif
