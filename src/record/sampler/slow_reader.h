/*
 * A thread for one sensor that may block. The recorder asks for a reading at a run's edge and
 * waits a limited time for it. A thread that hangs in its device is abandoned, not joined.
 *
 * Ownership: embedded; the recorder initialises the feed, then start, stop, release. Errors: a
 * negative errno. Threads: all calls come from one thread.
 */
#ifndef NRG_RECORD_SAMPLER_SLOW_READER_H
#define NRG_RECORD_SAMPLER_SLOW_READER_H

#include "record/pace.h"
#include "record/sampler/feed.h"

struct nrg_slow_reader {
    struct nrg_feed feed;
    const struct nrg_pace *pace; /* the recorder's */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t asked, served;
    bool started, stop, ended, stuck, quicken;
};

int nrg_slow_reader_start(struct nrg_slow_reader *reader);
/* From now on at the feed's quick period. */
void nrg_slow_reader_quicken(struct nrg_slow_reader *reader);
void nrg_slow_reader_ask(struct nrg_slow_reader *reader);
/* 0, or -ETIMEDOUT: it hangs. */
int nrg_slow_reader_wait(struct nrg_slow_reader *reader);
void nrg_slow_reader_stop(struct nrg_slow_reader *reader);
void nrg_slow_reader_release(struct nrg_slow_reader *reader);

#endif
