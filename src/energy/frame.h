/* A recording with its channels' timelines, loaded when first asked for. Inside src/attribute. */
#ifndef NRG_ATTRIBUTE_FRAME_H
#define NRG_ATTRIBUTE_FRAME_H

#include "energy/summary.h"
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
/* Gives a timeline's memory back; asking again loads it again. Its pointer is void. */
void nrg_frame_drop(struct nrg_frame *frame, size_t channel);
/* Index of a channel, or frame->n. quantity < 0: any. */
size_t nrg_frame_find(const struct nrg_frame *frame, const char *name, int quantity);

/* domains.c: energy per domain and the total. */
int nrg_domains_make(struct nrg_summary *summary, struct nrg_frame *frame);
/* True for what a total of parts adds: neither wide nor contained in another part. */
bool nrg_domains_is_part(const struct nrg_summary *summary, const struct nrg_domain *domain);

/* wall.c: the widest meter, besides another one (or NULL) and what belongs to that; NULL: none. */
const struct nrg_domain *nrg_domains_widest(const struct nrg_summary *summary,
                                            const struct nrg_domain *besides);
/* Two lines of one meter that measure the machine together. */
bool nrg_domains_same_wall(const struct nrg_domain *a, const struct nrg_domain *b);
/* Fills summary->wall where there are parts to compare. Needs the domains. */
void nrg_wall_make(struct nrg_summary *summary);

/* shares.c: energy per process, idle, others. Needs the domains. */
int nrg_shares_make(struct nrg_summary *summary, struct nrg_frame *frame);

/* gpu_shares.c: adds the GPUs' energy to the processes. Needs both. */
int nrg_gpu_shares_make(struct nrg_summary *summary, struct nrg_frame *frame);

/* Mean rate of a channel (power of energy, busy CPUs of busy time) during the recording's
 * baseline, NAN without one. */
double nrg_frame_baseline_rate(struct nrg_frame *frame, size_t channel);

/* Adds a line to the list of what was not measured. */
int nrg_summary_missing(struct nrg_summary *summary, const char *what, const char *why, ...)
    __attribute__((format(printf, 3, 4)));

#endif
