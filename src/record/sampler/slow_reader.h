/*
 * A thread for one sensor that may block. The recorder asks for a reading at a run's edge and
 * waits a limited time for it; a thread that never comes back is left behind, not joined.
 */
#ifndef NRG_RECORD_SLOW_READER_H
#define NRG_RECORD_SLOW_READER_H

#include "record/sampler/feed.h"

struct nrg_slow_reader {
    struct nrg_feed feed;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t asked, served;
    bool started, stop, ended, stuck;
};

int nrg_slow_reader_start(struct nrg_slow_reader *reader);
void nrg_slow_reader_ask(struct nrg_slow_reader *reader);
/* 0, or -ETIMEDOUT: it hangs. */
int nrg_slow_reader_wait(struct nrg_slow_reader *reader);
void nrg_slow_reader_stop(struct nrg_slow_reader *reader);
void nrg_slow_reader_release(struct nrg_slow_reader *reader);

#endif
