/*
 * A recording with its channels' timelines, each loaded when it is first asked for.
 *
 * Init, release; timelines belong to the frame, which borrows the recording. 0 or -errno. One
 * thread at a time.
 */
#ifndef NRG_ENERGY_FRAME_H
#define NRG_ENERGY_FRAME_H

#include "energy/timeline.h"

struct nrg_frame {
    struct nrg_recording *recording;
    const struct nrg_recorded_channel *channels;
    size_t n;
    struct nrg_timeline *timelines; /* per channel */
    bool *loaded;
};

int nrg_frame_init(struct nrg_frame *frame, struct nrg_recording *recording);
void nrg_frame_release(struct nrg_frame *frame);

/* NULL when it can't be read or is empty. */
const struct nrg_timeline *nrg_frame_timeline(struct nrg_frame *frame, size_t channel);
/* Loads those of some channels (per channel: whether), each series in one pass. Who will need them
 * all at once saves the passes; a channel that can't be read has no timeline then. 0 or -ENOMEM. */
int nrg_frame_load(struct nrg_frame *frame, const bool *wanted);
/* Frees a timeline, for now: asking for it again loads it again, and pointers to it are void. One
 * of few readings stays, which costs less memory than it would cost time to read it again. */
void nrg_frame_drop(struct nrg_frame *frame, size_t channel);
void nrg_frame_drop_all(struct nrg_frame *frame);
/* Index of a channel, or frame->n. */
size_t nrg_frame_find(const struct nrg_frame *frame, const char *name, enum nrg_quantity quantity);
/* The energy channel that accompanies `name`: one of the suffixes of sensors/channel.h. */
size_t nrg_frame_companion(const struct nrg_frame *frame, const char *name, const char *suffix);

/* Mean rate of a channel (power of energy, busy CPUs of busy time) during the recording's
 * baseline, NAN without one. */
double nrg_frame_baseline_rate(struct nrg_frame *frame, size_t channel);
/* The same between the first and the last reading of another channel: rates of channels that are
 * read at different times are of the same time then. */
double nrg_frame_baseline_rate_at(struct nrg_frame *frame, size_t channel, size_t readings_of);

/* The same of the baselines before the run, and of those after it; NAN where there is none. */
struct nrg_baseline_ends {
    double before, after;
};
struct nrg_baseline_ends nrg_frame_baseline_ends(struct nrg_frame *frame, size_t channel);
struct nrg_baseline_ends nrg_frame_baseline_ends_at(struct nrg_frame *frame, size_t channel,
                                                    size_t readings_of);

/* Standard error of that rate of a counter, by when it was updated. */
double nrg_frame_baseline_error(struct nrg_frame *frame, size_t channel);

/* What it drew in the baselines where it drew more: before the run, or after it. NAN without one.
 */
double nrg_frame_baseline_most(struct nrg_frame *frame, size_t channel);

/* What that rate may be off by in the run: half of what baselines before and after it differ by,
 * and the scatter of one; with a single baseline, what idle power may drift by. 0 without one. */
double nrg_frame_baseline_doubt(struct nrg_frame *frame, size_t channel);

/* How long the recording's baselines are in sum, and whether there is one after the last run. */
double nrg_frame_baseline_s(const struct nrg_frame *frame, bool *after);

/* N of a channel called "gpu-N"; -1: it is no GPU's. */
int nrg_gpu_number(const char *channel);

/* Standard deviation of a gauge's readings in a baseline; the largest of several. */
double nrg_frame_baseline_scatter(struct nrg_frame *frame, size_t channel);

#endif
