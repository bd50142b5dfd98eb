/*
 * Joules of requests while they run, for the header that answers can carry: the machine's energy
 * since each change, above idle where that is known, in equal parts to the requests that run. Quick
 * and rough: no counts are used, and between readings the power is taken to stay as it was. The
 * recording gives the final figures.
 *
 * Plain data; the recorder outlives it. One thread.
 */
#ifndef NRG_LLM_PROVISIONAL_H
#define NRG_LLM_PROVISIONAL_H

#include <stddef.h>
#include <stdint.h>

#include "record/sampler/recorder.h"

struct nrg_provisional {
    struct nrg_recorder *recorder;
    double idle_w;            /* 0: not known */
    int64_t read_ns, t_ns;    /* when the recorder was asked, and the time of what it said */
    double energy_j, power_w; /* what it said, and the power since the time before */
    int64_t at_ns;            /* what has been shared out so far */
    double shared_j;          /* energy up to then */
    double each_j;            /* that a request would have that ran all the time */
    size_t running;
    bool known;
};

void nrg_provisional_init(struct nrg_provisional *p, struct nrg_recorder *recorder, double idle_w,
                          int64_t begin_ns); /* of the run */
/* What a request that begins now, ends now or is asked about now has: its joules are the
 * difference of two. NAN: not known. */
double nrg_provisional_at(struct nrg_provisional *p, int64_t now_ns);
/* One more (1) or one less (-1) runs from now on. */
void nrg_provisional_runs(struct nrg_provisional *p, int64_t now_ns, int more);

#endif
