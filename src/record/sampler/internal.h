/*
 * The recorder's own state, shared by its files: recorder.c (life), sample.c (sampling thread),
 * edge.c (readings at the edges of runs), write.c (writing thread). Purpose, life and errors:
 * recorder.h.
 *
 * Threads: `lock` guards what the sampling thread works on. The store belongs to the writing thread
 * while that runs, and to the caller's thread before and after.
 */
#ifndef NRG_RECORD_SAMPLER_INTERNAL_H
#define NRG_RECORD_SAMPLER_INTERNAL_H

#include <pthread.h>

#include "record/pace.h"
#include "record/sampler/feed.h"
#include "record/sampler/memory_watch.h"
#include "record/sampler/proctree.h"
#include "record/sampler/recorder.h"
#include "record/sampler/slow_reader.h"
#include "record/spans/drain.h"

#define NRG_OWN_THREADS 64

/* CPU time of a thread of the recorder. One that has ended keeps its last reading. */
struct nrg_own_thread {
    clockid_t clock;
    int64_t cpu_ns;
};

struct nrg_recorder {
    const struct nrg_context *ctx;
    struct nrg_context process_ctx; /* the root that processes are looked up in */
    struct nrg_probe probe;
    struct nrg_probe reserve; /* an estimate, where what measures may have no reading */
    struct nrg_store *store;
    struct nrg_queue queue;
    struct nrg_feed *feeds; /* read by the sampling thread */
    size_t n_feeds;
    struct nrg_slow_reader *slow; /* each on a thread of its own */
    size_t n_slow;
    struct nrg_proctree *tree;
    struct nrg_memory_watch *memory;
    struct nrg_span_drain *drain;     /* NULL: no spans */
    int past_series[NRG_PAST_SERIES]; /* 0: not created yet */
    int own_series;                   /* of the caller's own spans; 0: none */
    uint64_t own_spans;
    bool inside;
    enum nrg_quick quick; /* what is still to be done: NRG_QUICK_NEVER when nothing is */
    bool is_live;
    struct nrg_live live; /* where energy is asked for while it records */
    struct nrg_own_thread threads[NRG_OWN_THREADS];
    size_t n_threads;
    struct nrg_rows process_rows;
    int process_series;
    struct nrg_pace pace;
    bool slow_pace; /* little is read: few commits */
    int64_t process_period_ns, process_next_ns, commit_next_ns;
    struct nrg_clock_pair last_clock; /* mono_ns 0: none yet */
    int with_tsc, wake_fd;
    pthread_mutex_t lock; /* feeds, tree, process_rows, threads */
    pthread_cond_t stopping;
    pthread_t sampler, writer;
    bool sampling, writing; /* which threads run */
    bool sampler_stop;
    struct nrg_recorder_status status;
};

/* sample.c. The sensors that do not block are read once, and all deadlines start at now_ns. */
void nrg_recorder_first_readings(struct nrg_recorder *recorder, int64_t now_ns);
void *nrg_recorder_sample_loop(void *recorder);
/* CPU times of processes and of threads that mark spans. The caller holds the lock. */
void nrg_recorder_poll_processes(struct nrg_recorder *recorder);
/* Everything collected so far goes to the writer. The caller holds the lock. */
void nrg_recorder_hand_over(struct nrg_recorder *recorder);
/* The same without a look at the clocks, and if there is nothing, nobody is woken. */
void nrg_recorder_hand_over_rows(struct nrg_recorder *recorder);

/* edge.c. The caller holds the lock. All sensors are read, and it is committed, a moment from now.
 */
void nrg_recorder_read_soon(struct nrg_recorder *recorder);
/* The sampling thread looks at its deadlines again. */
void nrg_recorder_wake_sampler(struct nrg_recorder *recorder);

/* write.c. Writes the messages, frees them and commits. */
void nrg_recorder_store_batch(struct nrg_recorder *recorder, struct nrg_message *list);
void *nrg_recorder_write_loop(void *recorder);

#endif
