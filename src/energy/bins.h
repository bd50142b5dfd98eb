/*
 * A recording in equal steps of time: means of all channels, and what processes used, per bin.
 * Streamed: a bin is handed out as soon as every channel has been read past its end, so memory
 * depends on the slowest channel, not on the length of the recording.
 *
 * The rules are those of timeline.h: counters are unwrapped and shared out evenly between
 * readings, gauges are trapezoids, held for one period at their ends. Time without readings is left
 * out of the mean; a bin without any reading has no value.
 *
 * What a bin points to is good during the callback. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_ENERGY_BINS_H
#define NRG_ENERGY_BINS_H

#include <math.h>

#include "record/read/recording.h"

struct nrg_span_ns {
    int64_t begin_ns, end_ns;
};

struct nrg_bin_cell {
    double sum;         /* the channel's unit for counters, unit * s for gauges */
    int64_t covered_ns; /* part of the bin that is known */
};

/* Per second for counters (W for energy); the value for gauges. NAN: not known. */
static inline double nrg_bin_mean(const struct nrg_bin_cell *cell)
{
    return cell->covered_ns > 0 ? cell->sum * 1e9 / (double)cell->covered_ns : NAN;
}

struct nrg_bin_process {
    const struct nrg_process_info *info;
    double cpu_s;                            /* used within the bin */
    int64_t rss_bytes, pss_bytes, uss_bytes; /* last known; NRG_MISSING */
};

struct nrg_bin_gpu_process {
    int64_t pid, device_pid, gpu; /* pid -1: of another namespace */
    double share_sum;             /* of the device's processors, 0..1 */
    size_t shares;                /* how many of them were reported */
    int64_t memory_bytes;         /* last known; NRG_MISSING */
};

struct nrg_bin {
    int64_t begin_ns, end_ns;
    size_t span;                      /* index of the span that it is part of */
    const struct nrg_bin_cell *cells; /* per channel of the recording */
    const struct nrg_bin_process *processes;
    size_t n_processes;
    const struct nrg_bin_gpu_process *gpu;
    size_t n_gpu;
};

struct nrg_bins_options {
    const struct nrg_span_ns *spans; /* in order of time, apart from each other */
    size_t n_spans;
    int64_t period_ns; /* bins of a span; its last one may be shorter */
    bool processes;
};

/* Calls back for each bin in order; a negative return stops and is returned. */
int nrg_bins_make(struct nrg_recording *recording, const struct nrg_bins_options *options,
                  int (*each)(void *arg, const struct nrg_bin *bin), void *arg,
                  struct nrg_error *err);

#endif
